"""Health: one word for people, from a session's state."""

from __future__ import annotations

from vigil.core.model.reading import Axis, AxisValue
from vigil.core.model.session import PulseState, Session, State

HEALTH = {
    State.PENDING: "unknown",
    State.STARTING: "unknown",
    State.RUNNING: "ok",
    State.SUSPECT: "suspect",
    State.STUCK: "unhealthy",
    State.ENDING: "unknown",
    State.CRASHED: "dead",
    State.PARKED: "unknown",
    State.STOPPED: "unknown",
    State.FAILED: "dead",
    State.SUCCEEDED: "unknown",
}
STALLED_IN = frozenset({State.STARTING, State.RUNNING})
PULSES = {PulseState.LATE: "suspect", PulseState.UNHEALTHY: "unhealthy"}
ACTIVITIES: dict[str, str] = {"waiting-human": "needs-input", "throttled": "throttled"}


def health_of(session: Session) -> str:
    """Return a session's health: ok, suspect, stalled, needs-input, throttled, unhealthy, dead or unknown."""
    vitals = session.vitals
    if session.state in STALLED_IN and vitals.warned is not None:
        return "stalled"
    if session.state is not State.RUNNING:
        return HEALTH[session.state]
    if vitals.shows(Axis.PROCESS) == AxisValue.STOPPED:
        return "stalled"
    if vitals.shows(Axis.SERVER) == AxisValue.WEDGED:
        return "suspect"
    if vitals.pulse is not None and vitals.pulse.state in PULSES:
        return PULSES[vitals.pulse.state]
    return ACTIVITIES.get(vitals.shows(Axis.ACTIVITY) or "", HEALTH[session.state])
