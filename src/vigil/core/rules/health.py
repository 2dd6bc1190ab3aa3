"""Health: one word for people, from a session's state."""

from __future__ import annotations

from vigil.core.model.heartbeat import PulseState
from vigil.core.model.reading import Axis, AxisValue
from vigil.core.model.session import Session, State

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
ACTIVITIES = {"waiting-human": "needs-input", "throttled": "throttled"}


def health_of(session: Session) -> str:
    """Return one of ok, suspect, stalled, needs-input, throttled, unhealthy, dead, unknown."""
    process = session.vitals.axes.get(Axis.PROCESS)
    server = session.vitals.axes.get(Axis.SERVER)
    if session.state is State.RUNNING and process is not None and process.value == AxisValue.STOPPED:
        return "stalled"
    if session.state in STALLED_IN and session.vitals.stall is not None and session.vitals.stall.warned_at is not None:
        return "stalled"
    if session.state is State.RUNNING and server is not None and server.value == AxisValue.WEDGED:
        return "suspect"
    if session.state is State.RUNNING and session.vitals.pulse is not None and session.vitals.pulse.state in PULSES:
        return PULSES[session.vitals.pulse.state]
    activity = session.vitals.axes.get(Axis.ACTIVITY)
    if session.state is State.RUNNING and activity is not None and activity.value in ACTIVITIES:
        return ACTIVITIES[activity.value]
    return HEALTH[session.state]
