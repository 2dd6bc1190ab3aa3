"""Death: one funnel for every death, also of a failed launch: record it, charge it, decide what follows (P3, P4)."""

from __future__ import annotations

from typing import Any

from vigil.core.book import Book
from vigil.core.effects import CloseLaunch, Examine, SetTimer, TimerKind
from vigil.core.events import Exited, LaunchFailed
from vigil.core.handlers.admission import spawn_over
from vigil.core.handlers.charge import DEATHS_KEPT, charge_death, take_marker
from vigil.core.handlers.conversation import strike
from vigil.core.handlers.intent import spares_people
from vigil.core.handlers.launch import COLD_START
from vigil.core.handlers.summary import await_summary
from vigil.core.handlers.transition import become
from vigil.core.handlers.wall import meet
from vigil.core.model.death import Cause, Death, EvidenceLine, Exit, Words
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.core.model.replace import replace
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import Session, State
from vigil.core.model.speech import Activity
from vigil.core.rules import death as deaths
from vigil.core.rules.activity import KEPT_OF_DEATH
from vigil.core.rules.liveness import leaves_its_pane
from vigil.core.rules.restart import COMES_BACK, COUNTED, HELD, comes_back_by_itself, is_ours
from vigil.core.rules.stall.remedy import REMEDIES
from vigil.core.rules.stall.verdict import StallVerdict
from vigil.core.rules.wall import read_wall, stands
from vigil.words import some


def launch_failed(book: Book, event: LaunchFailed, now: float) -> None:
    """When a launch never came to life: record that as a death like any other."""
    spawn_over(book, event.launch_id, now)
    session = book.living(event.launch_id)
    if session is None:
        return
    found = Exit(event.launch_id, event.at, "daemon", started=False, ours=event.ours, status_source="launch")
    session, death, hold = record_death(book, session, found, event.why)
    if is_ours(death) and session.after is None:
        _launch_again(book, session, hold, now)
    else:
        after_death(book, session, death, hold, now)


def _launch_again(book: Book, session: Session, hold: Hold, now: float) -> None:
    """After a launch that Vigil itself lost: launch again after its hold, whatever the restart policy."""
    assert session.launch is not None and session.last_death is not None and hold.until is not None
    words = f"launched again after {session.last_death.evidence[0].text}"
    become(book, session, now, State.PENDING, words, hold=hold)
    book.do(SetTimer(session.id, TimerKind.HOLD, hold.until))
    book.end_all(session.launch)


def exited(book: Book, event: Exited, now: float) -> None:
    """When an agent exits: record its death; a repeat or an old launch changes nothing."""
    if event.exit.launch_id in book.spawning:  # its birth was not told
        spawn_over(book, event.exit.launch_id, now)
    session = book.living(event.exit.launch_id)
    if session is None:
        return
    session, death, hold = record_death(book, session, event.exit)
    after_death(book, session, death, hold, now)


def record_death(book: Book, session: Session, found: Exit, why: str = "") -> tuple[Session, Death, Hold]:
    """Record and charge the one death of a launch; return it and the next hold."""
    assert session.launch is not None
    launch = session.launch
    session, found = _with_words(book, session, found)
    uptime_s = None if launch.started_at is None else max(0.0, found.at - launch.started_at)
    when, beside = session.spec.restart.when, book.died_with(session, found.at)
    case = deaths.ExitFacts(found, session.vitals.intent, uptime_s, when, beside, launch.server_told)
    cause = deaths.classify(case)
    of_server = cause is Cause.SERVER_DIED and case.server_to_blame
    exit_code, signal = deaths.status_of(case, cause)
    evidence = deaths.evidence_of(case)
    if why:
        evidence = (EvidenceLine("launch", why), *evidence[1:])
    death = Death(
        id=f"d-{launch.id}",
        session_id=session.id,
        session=session.name,
        launch_id=launch.id,
        at=found.at,
        observed_by=found.observed_by,
        cause=cause,
        exit_code=exit_code,
        signal=signal,
        charged=cause in COUNTED and not found.ours,
        intent=session.vitals.intent,
        uptime_s=uptime_s,
        evidence=evidence,
        confidence=deaths.confidence_of(case, cause),
        activity=_doing(session),
        pid=launch.agent.pid if launch.agent is not None else None,
        server_pid=launch.server.pid if launch.server is not None else None,
        open_turn=session.vitals.doing.turn,
        said=session.vitals.recent[-KEPT_OF_DEATH:],
    )
    resets_at = session.wall.until if session.wall is not None and cause in HELD else None
    count, hold = charge_death(book, session, launch, death, resets_at, found.ours)
    charged = (*session.deaths, death.id)[-DEATHS_KEPT:] if death.charged else session.deaths
    if of_server and not launch.server_told:
        book.log(found.at, session, "server.died", **_told_of(death))
    launch = replace(launch, ended_at=found.at, server_told=launch.server_told or of_server)
    facts = (Fact(Axis.PROCESS, AxisValue.DEAD, found.status_source or found.observed_by, found.at, conclusive=True),)
    session = book.read_axes(session, facts, launch=launch, last_death=death, charges=count, doubt=None, deaths=charged)
    if _hung(session, cause):
        session = strike(book, session, "it stalled again after it was resumed", found.at)
    book.change.deaths.append(death)  # the summary writes the launch's own row
    book.log(found.at, session, "session.died", **_told_of(death))
    book.do(Examine(death, launch))
    return session, death, hold


def _hung(session: Session, cause: Cause) -> bool:
    """When a death is recorded: say whether its stall counts against the conversation."""
    if session.vitals.doing.retries or cause is Cause.FINISHED:
        return False
    stall = session.vitals.warned
    told = stall is not None and stall.verdict in REMEDIES and stall.verdict != StallVerdict.LIMBO
    return told or cause is Cause.STALLED


def _with_words(book: Book, session: Session, found: Exit) -> tuple[Session, Exit]:
    """Give a dead session the wall its last words name, and its exit the words.

    In a terminal an agent stays at a wall until a person leaves it: an exit with 0 there is that person's."""
    wall, words, launch = session.wall, found.words, session.launch
    assert launch is not None
    if words is not None:
        met = read_wall(wall, launch.id, words.cause, words.text, words.resets_at, found.at)
        return meet(book, session, met, found.at), found
    left = found.exit_code == 0 and session.spec.runtime is not RuntimeKind.HEADLESS
    known = found.exit_code is not None and not found.ambiguous
    if wall is None or wall.launch_id != launch.id or not stands(wall, found.at) or not known or left:
        return session, found
    return session, replace(found, words=Words(wall.cause, wall.text, wall.until))


def _doing(session: Session) -> str:
    """For the record of a death: return what the agent was doing, if it said."""
    activity = session.vitals.axes.get(Axis.ACTIVITY)
    if activity is None or activity.value == Activity.UNKNOWN:
        return ""
    return f"{activity.value}: {activity.why}" if activity.why else activity.value


def _told_of(death: Death) -> dict[str, Any]:
    """Return what the event log says of a recorded death."""
    return {
        "death": death.id,
        "cause": death.cause.value,
        "confidence": death.confidence.value,
        "pid": death.pid,
        "server_pid": death.server_pid,
        "exit_code": death.exit_code,
        "signal": death.signal,
        "charged": death.charged,
        "observed_by": death.observed_by,
        "intent": None if death.intent is None else f"{death.intent.verb} by {death.intent.actor}",
        "uptime_s": None if death.uptime_s is None else round(death.uptime_s, 3),
        "why": death.evidence[0].text,
    }


def after_death(book: Book, session: Session, death: Death, hold: Hold, now: float) -> None:
    """When a death is recorded: set the session's next state, or finish its end."""
    launch = session.launch
    assert launch is not None
    policy = session.spec.restart
    if session.after is not None:
        if session.state is State.STUCK:
            become(book, session, now, State.ENDING, "it died at last; the rest of it is ended")
            book.end_all(launch, unless_attended=spares_people(session.vitals.intent))
        else:
            book.keep(session)
            spares = spares_people(session.vitals.intent)
            if launch.process is None or spares:  # its end waited for its birth or its grace
                book.end_all(launch, unless_attended=spares)
        return
    words = session.wall.text if death.cause in HELD and session.wall is not None else death.evidence[0].text
    if death.cause not in COMES_BACK[policy.when]:
        state = State.SUCCEEDED if death.cause is Cause.FINISHED else State.FAILED
        become(book, session, now, state, f"{death.cause}: {words}; restart is {policy.when}", hold=None)
    elif death.cause is Cause.HOST_REBOOTED and not comes_back_by_itself(book.role_of(session)):
        become(book, session, now, State.PENDING, COLD_START, hold=Hold(HoldReason.COLD_START, None))
    elif hold.reason == HoldReason.SATURATED:
        words = f"{death.cause} again after {some(policy.max_restarts, 'restart')}: {words}"
        become(book, session, now, State.FAILED, words, hold=hold)
        if hold.until is not None:
            book.do(SetTimer(session.id, TimerKind.HOLD, hold.until))
    else:
        state = State.CRASHED if death.cause in COUNTED and take_marker(book, session, now) else State.PENDING
        become(book, session, now, state, f"{death.cause}: {words}", hold=hold)
        if hold.until is not None:
            book.do(SetTimer(session.id, TimerKind.HOLD, hold.until))
    if death.cause is Cause.LAUNCH_FAILED:
        book.end_all(launch)  # it may be half there
    elif not leaves_its_pane(session):
        book.do(CloseLaunch(launch))
    else:
        await_summary(book, session, now)


def bury(book: Book, session: Session, now: float) -> Session:
    """Record the death of a launch verified gone; a late exit is dropped (P3)."""
    launch = session.launch
    if launch is None or launch.ended_at is not None:
        return session
    session, death, hold = record_death(book, session, Exit(launch.id, now, "daemon", started=launch.process is not None))
    if session.after is None:
        after_death(book, session, death, hold, now)
        return book.sessions[session.id]
    return book.keep(session)
