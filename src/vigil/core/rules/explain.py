"""Explaining: why a session is as it is, in sentences, from its record; this concludes nothing anew."""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.model.death import Cause, Death
from vigil.core.model.reading import Axis, AxisValue, Doubt, DoubtKind
from vigil.core.model.restart import HoldReason
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.speech import Activity
from vigil.core.model.stall import Sign, Stall
from vigil.core.rules.health import health_of
from vigil.core.rules.liveness import PATIENCE
from vigil.core.rules.restart import COMES_BACK
from vigil.core.rules.sighting import WORKS
from vigil.words import some, times

DOUBTFUL = (State.SUSPECT, State.STUCK)
HOLDS = {  # what ends a wait for neither a moment nor a person
    HoldReason.SURVIVOR: "is launched when the last launch is verified gone",
    HoldReason.PACE: "is launched when its turn comes",
    HoldReason.MEMORY: "is launched when the host has memory for it",
    HoldReason.KEEPER: "is launched as soon as a keeper answers",
    HoldReason.COLD_START: "is launched by vigil up, or vigil start",
}
SURE = (DoubtKind.WEDGED, DoubtKind.ORPHANED)  # the trouble is known, only its outcome is not


@dataclass(frozen=True, slots=True)
class Next:
    """In an explanation, what happens next and when; None waits for a person."""

    what: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    verdict: str
    confidence: str
    reasons: tuple[str, ...]
    evidence: tuple[Sign, ...]
    ruled_out: tuple[str, ...]
    next: tuple[Next, ...]


def explain(session: Session, checked_at: float | None = None) -> Explanation:
    """Explain why a session is in its state; `checked_at` is the watchdog's next look."""
    death = session.last_death
    over = session.state not in (*ALIVE, State.STOPPED, State.PARKED) and death is not None
    found = _found(session)
    told = found is not None and found.warned_at is not None  # then the reasons say it one by one
    reasons = [session.why if told else why_of(session), *(() if found is None else found.reasons)]
    if over and death is not None:
        reasons += [f"{line.text} ({line.source})" for line in death.evidence]
    return Explanation(
        verdict=f"{death.cause}" if over and death is not None else _verdict(session),
        confidence=_confidence(session),
        reasons=tuple(dict.fromkeys(reasons)),
        evidence=tuple(_proofs(session)),
        ruled_out=tuple(_ruled_out(session)),
        next=(*_next(session, checked_at), *_waiting(session)),
    )


def why_of(session: Session) -> str:
    """Explain a session's state in one sentence; a nearly well one names its trouble."""
    if session.state is not State.RUNNING:
        return session.why
    vitals, activity = session.vitals, session.vitals.axes.get(Axis.ACTIVITY)
    if vitals.shows(Axis.PROCESS) == AxisValue.STOPPED:
        return "its agent is stopped (SIGSTOP or Ctrl-Z), not dead"
    if vitals.shows(Axis.SERVER) == AxisValue.WEDGED:
        return "its tmux server does not answer at the moment"
    if activity is not None and activity.value == Activity.WAITING_HUMAN:
        return f"waits for a human: {activity.why}"
    if activity is not None and activity.value == Activity.THROTTLED and session.wall is not None and not session.wall.over:
        return f"{session.wall.cause}: {session.wall.text}"
    if vitals.warned is not None:
        return f"{vitals.warned.verdict}: {'; '.join(vitals.warned.reasons)}"
    return session.why


def _found(session: Session) -> Stall | None:
    """Return the watchdog's finding to explain, of a session that is up and undoubted."""
    return session.vitals.stall if session.state in (State.RUNNING, State.STARTING) and session.vitals.doubt is None else None


def _verdict(session: Session) -> str:
    if (found := _found(session)) is not None:
        return found.verdict
    if session.state is State.RUNNING and (health := health_of(session)) != "ok":
        return f"{session.state}: {health}"
    doubt = session.vitals.doubt
    return f"{session.state}: {doubt.kind}" if doubt and session.state in DOUBTFUL else session.state.value


def _confidence(session: Session) -> str:
    if (found := _found(session)) is not None:
        return found.confidence.value
    if session.state in DOUBTFUL and session.vitals.doubt is not None and session.vitals.doubt.kind not in SURE:
        return "unknown"
    if session.state in ALIVE:
        process = session.vitals.axes.get(Axis.PROCESS)
        return "certain" if process is not None and process.conclusive else "likely"
    return session.last_death.confidence.value if session.last_death is not None else "certain"


def _proofs(session: Session) -> list[Sign]:
    proofs = [
        Sign(
            axis.value,
            reading.value + (f" ({reading.why})" if reading.why else ""),
            reading.source + (", conclusive" if reading.conclusive else ""),
            reading.observed_at,
        )
        for axis in Axis
        if (reading := session.vitals.axes.get(axis)) is not None
    ]
    if session.worked and session.state in ALIVE:
        kind = max(session.worked, key=lambda evidence: session.worked[evidence])
        proofs.append(Sign("last work", WORKS.get(kind, kind), kind, session.worked[kind]))
    if (found := _found(session)) is not None:
        proofs += found.signs
    if session.last_death is not None:
        death = session.last_death
        words = f"{death.cause} ({_status(death)}); vigil death {death.id} tells all of it"
        proofs.append(Sign("last death", words, death.observed_by, death.at))
    if session.wall is not None:
        wall = session.wall
        row = " in a row" if wall.tries != 1 else ""
        words = f"{wall.cause}, met {times(wall.tries)}{row}: {wall.text}" + (f" ({wall.note})" if wall.note else "")
        proofs.append(Sign("wall", words, "its agent", wall.at))
    if session.vitals.pulse is not None:
        pulse = session.vitals.pulse
        proofs.append(Sign("heartbeat", f"{pulse.state}, waited for since", "heartbeats", pulse.due_from))
    if session.vitals.doubt is not None:
        doubt = session.vitals.doubt
        proofs.append(Sign("doubt", f"{doubt.kind}, {doubt.attempts} samples: {doubt.evidence}", "liveness", doubt.since))
    if (intent := session.vitals.intent) is not None:
        proofs.append(Sign("intent", f"{intent.verb} by {intent.actor}", "store", intent.at))
    return proofs


def _status(death: Death) -> str:
    if death.signal is not None:
        return f"signal {death.signal}"
    return "status unknown" if death.exit_code is None else f"exit {death.exit_code}"


def _ruled_out(session: Session) -> list[str]:
    out = []
    process, runtime, server = (session.vitals.axes.get(axis) for axis in (Axis.PROCESS, Axis.RUNTIME, Axis.SERVER))
    if process is not None and process.value == AxisValue.ALIVE and process.conclusive:
        out.append("the agent is dead: the kernel says that this very process lives")
    if process is not None and process.value == AxisValue.DEAD and runtime is not None and runtime.value == AxisValue.ALIVE:
        out.append("the agent lives because its pane does: the two are observed apart")
    if process is not None and process.value == AxisValue.STOPPED:
        out.append("the agent is dead: it is stopped (SIGSTOP, Ctrl-Z) and goes on with SIGCONT")
    if server is not None and server.value == AxisValue.WEDGED:
        out.append("the server is dead: it does not answer, but its process lives")
    if process is not None and process.value in (AxisValue.UNKNOWN, AxisValue.FAILED):
        out.append("the agent is dead: that it could not be read proves nothing")
    if (found := _found(session)) is not None:
        out += found.ruled_out
    death = session.last_death
    if session.state not in ALIVE and death is not None and death.intent is None:
        out.append("Vigil or an operator ended it: no intent was recorded")
    return out


def _next(session: Session, checked_at: float | None) -> list[Next]:
    policy, found = session.spec.restart, _found(session)
    if session.hold is not None:
        what = "waits for a person: vigil reset or vigil start" if session.hold.until is None else "is launched again"
        return [Next(HOLDS.get(session.hold.reason, what), session.hold.until)]
    if session.vitals.doubt is not None and session.state in (*DOUBTFUL, State.RUNNING, State.STARTING):
        return _after_doubt(session, session.vitals.doubt)
    wall = session.wall
    if session.state is State.RUNNING and wall is not None and not wall.over:
        what = "whoever gets past it brings back all of its account" if wall.until is None else "its limit should be over"
        return [Next(what, wall.until)]
    steps = [] if found is None else _after_stall(session, found, checked_at)
    if session.state in (State.RUNNING, State.STARTING):
        back = "comes back after a failure" if Cause.CRASH in COMES_BACK[policy.when] else "stays dead if it dies"
        return [*steps, Next(f"{back} (restart is {policy.when})", None)]
    if session.state is State.PARKED:
        return [Next(f"sleeps until vigil wake {session.name}, or a message to it", None)]
    if session.state in (State.STOPPED, State.FAILED, State.SUCCEEDED):
        return [Next(f"stays so until vigil start {session.name}", None)]
    if session.state is State.ENDING:
        return [Next("its processes are ended and verified gone", None)]
    return [Next(f"vigil stop {session.name} ends it", None)]


def _waiting(session: Session) -> list[Next]:
    """Explain what becomes of waiting messages."""
    number = len(session.queue)
    return (
        [Next(f"{some(number, 'message is', 'messages are')} typed, in order, when it can take them", None)] if number else []
    )


def _after_stall(session: Session, found: Stall, checked_at: float | None) -> list[Next]:
    """Explain what follows from the watchdog's finding."""
    steps = [Next("its silence is looked at again", checked_at)] if checked_at is not None else []
    if found.warned_at is None:
        return steps
    steps.append(Next("is well again as soon as it speaks", None))
    if found.kept:
        return [*steps, Next(f"is not touched: {found.kept}", None), Next(f"vigil restart {session.name} ends it", None)]
    return [*steps, Next(f"the remedy after {found.step} follows if that did not help" if found.step else "is treated", None)]


def _after_doubt(session: Session, doubt: Doubt) -> list[Next]:
    """Explain how a doubt ends: by the axis that caused it, time, or a person."""
    patience = PATIENCE[doubt.kind]
    ends = Next(f"is well again as soon as its {doubt.axis} is", None)
    by_hand = Next(f"vigil stop {session.name} ends it", None)
    if session.state is State.STUCK:
        return [by_hand] if doubt.kind is DoubtKind.ORPHANED else [ends, by_hand]
    if doubt.kind is DoubtKind.ORPHANED:
        return [by_hand, Next("is stuck, and a human is told", doubt.since + patience.stuck_after_s)]
    steps = [Next("is looked at again", doubt.sampled_at + patience.look_every_s), ends]
    if patience.samples:
        steps.append(Next(f"counts as dead after {patience.samples} equal samples", None))
    if session.state is not State.SUSPECT:
        steps.append(Next("is suspect", doubt.since + patience.suspect_after_s))
    steps.append(Next("is stuck, and a human is told", doubt.since + patience.stuck_after_s))
    return [*steps, by_hand]
