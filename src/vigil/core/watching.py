"""Watching: who is silent with something open is looked at when its patience ends; what is found is told, and told again.

One incident per condition, resolved when it is over (P12). Whoever speaks is well again at once. What was not read in time, or
before a gap, is void: nothing is concluded from our own lateness. What is done about it is in `recovering`.
"""

from __future__ import annotations

from typing import Any

from vigil.core import incident_rules, incidents, tally
from vigil.core.book import Book, Idle
from vigil.core.case import Case, patience_of, tools_wait_until, waits_until, what_is_open
from vigil.core.changing import replace
from vigil.core.doing import IDLE, Doing
from vigil.core.effects import Diagnose, Look, SetTimer
from vigil.core.events import Diagnosed, Measured, WatchdogsSet
from vigil.core.evidence import Evidence
from vigil.core.facts import CIRCLES, COMPACTIONS, FACTS, NOT_FURTHER
from vigil.core.incident import IncidentKind
from vigil.core.intents import voided
from vigil.core.model import Confidence, Mode, RuntimeKind, Session, Stall, State
from vigil.core.patience import Limits, limits_of
from vigil.core.recovering import PEOPLE, PEOPLE_S, treat, waits_for_people
from vigil.core.roles import Watchdog
from vigil.core.stall import SAMPLES, SICK, VOID, WELL, Finding, Verdict, classify
from vigil.core.trail import COMPACTION, SAID_NOTHING
from vigil.core.waking import quarantine

WINDOW_S = 60.0  # two findings that are nearer are one
MEASURE_S = 5.0  # rates are measured over at most so long where nothing older was read
UNANSWERED_S = 30.0  # a diagnosis that has not come by then is asked for again
SLEPT_S = 60.0  # after a gap of so much silence is counted anew: connections need a while to come back
REMINDERS = 3.0  # times the first reminder, between the later ones
LEARNING = 0.2  # how much a new sample counts
LEARNED = 3  # samples before what was learned is used
WATCHED = frozenset({State.STARTING, State.RUNNING})
COMPARED = ("busy", "bytes come", "connected", "writes", "tool runs", "tool works", "child waits", "spins")
UNWATCHED_WORDS = "nothing of it is open any more"


def limits_for(book: Book, session: Session) -> Limits:
    """Return what holds of a session now."""
    role = book.role_of(session)
    return limits_of(session.spec.agent, Watchdog() if role is None else role.spec.watchdog, book.watchdogs)


def is_watched(session: Session) -> bool:
    """Say whether silence of a session would mean anything: something is open, or it has not begun to speak."""
    launch, doing, trail = session.launch, session.doing, session.trail
    if session.state not in WATCHED or launch is None or launch.process is None or launch.ended_at is not None:
        return False
    if doing.turn or doing.tools or doing.asked or doing.retries or doing.waits:
        return True
    if not trail.spoke:
        return ought_to_speak(session)
    return trail.result_at is not None and runs_to_its_end(session)


def runs_to_its_end(session: Session) -> bool:
    """Say whether a session is over with its result: one with a terminal, or that reads prompts, waits for the next."""
    launch = session.launch
    return session.spec.runtime is RuntimeKind.HEADLESS and launch is not None and not launch.reads_input


def ought_to_speak(session: Session) -> bool:
    """Say whether a session that says nothing at all is late: its kind speaks, or it did before, or its agent is not there."""
    launch = session.launch
    return session.trail.spoke_before or session.state is State.STARTING or (launch is not None and launch.speaks)


def silent_from(session: Session) -> float:
    """Return since when a session says nothing; what nobody could hear does not count."""
    started_at = session.launch.started_at if session.launch is not None else None
    return max(session.last_activity_at or 0.0, started_at or 0.0, session.trail.floor)


def begin(book: Book, session: Session, now: float) -> None:
    """Watch a launch from now on."""
    if is_watched(session):
        _arm(book, session, _due_at(book, session, now))


def rest(book: Book, session: Session, now: float) -> Session:
    """Count silence anew: nobody listened for a while, and that is nobody's silence."""
    if not is_watched(session):
        return session
    session = replace(session, trail=replace(session.trail, floor=now, reminded_at=min(session.trail.reminded_at, now)))
    if session.stall is not None:
        session = replace(session, stall=replace(session.stall, samples=0))
    session = book.keep(session, durable=False)
    begin(book, session, now)
    return session


def missed(book: Book, session: Session, lasted_s: float, now: float) -> None:
    """Nobody looked for a while: silence did not grow by that, and what was found before is void."""
    if not is_watched(session):
        return
    floor = now if lasted_s >= SLEPT_S else min(now, silent_from(session) + lasted_s)
    words = f"Vigil itself did not run for {lasted_s:.0f} s: nothing is concluded from that"
    stall = session.stall
    if stall is not None and stall.warned_at is not None:
        stall = replace(stall, samples=0)
    else:
        stall = Stall(Verdict.SUPERVISOR_LATE, Confidence.CERTAIN, (words,), now, now, samples=0)
    session = replace(session, trail=replace(session.trail, floor=floor), stall=stall)
    begin(book, book.keep(session, durable=False), now)


def heard(book: Book, before: Session, session: Session, now: float) -> Session:
    """An agent spoke: what was found of its silence is over; what it has open now may have another patience."""
    if session.stall is not None and session.stall.verdict != Verdict.LIVELOCK:
        session = _over(book, session, "it spoke", now)
    if session.doing != before.doing and is_watched(session):
        next_at = _due_at(book, session, now)
        if next_at < book.checked_at.get(session.id, float("inf")):
            _arm(book, session, next_at)
    return session


def check(book: Book, session: Session, now: float) -> None:
    """The patience with a session may be over: look at it if it is, else later."""
    book.checked_at.pop(session.id, None)
    if not is_watched(session):
        if session.stall is not None:
            ended = session.launch is None or session.launch.ended_at is not None  # how is told by its death, and that once
            book.keep(replace(session, stall=None) if ended else _over(book, session, UNWATCHED_WORDS, now))
        return
    limits = limits_for(book, session)
    if session.doing.asked:
        session = remind_of_questions(book, session, limits, now)
        _arm(book, session, reminder_at(session, limits))
    elif now < (next_at := due_at(session, limits, now)):
        _arm(book, session, next_at)
    else:
        _diagnose(book, session, now)


def _diagnose(book: Book, session: Session, now: float) -> None:
    assert session.launch is not None
    book.do(Diagnose(session.launch, min(MEASURE_S, limits_for(book, session).stall_after_s / 4)))
    _arm(book, session, now + UNANSWERED_S)


def see_people(book: Book, session: Session, now: float) -> None:
    """A remedy waits for a person to leave: see whether they have."""
    if is_watched(session) and waits_for_people(session, limits_for(book, session)):
        assert session.launch is not None
        book.do(Look(session.launch))
        book.do(SetTimer(session.id, PEOPLE, now + PEOPLE_S))


def left_alone(book: Book, before: Session, session: Session, now: float) -> None:
    """The last person has left: a stall that was only told to them is looked at now, and treated if all that needs holds."""
    if session.attached or not is_watched(session) or session.doing.asked:
        return
    if waits_for_people(before, limits_for(book, session)):
        _diagnose(book, session, now)


def due_at(session: Session, limits: Limits, now: float) -> float:
    """Return when a session is looked at next; one that was found to be silent is looked at again on a schedule."""
    doing, since = session.doing, silent_from(session)
    if doing.asked:
        return reminder_at(session, limits)
    if (doing.retries or doing.waits) and now < (until := waits_until(doing, since)):
        return until
    if (tools_until := tools_wait_until(doing)) is not None and now < tools_until:
        return tools_until
    first_s = min(patience_of(doing, session.trail, limits), limits.stall_after_s)
    first_at = since + first_s
    if _circles(session, limits, now):
        first_at = min(first_at, now)
    stall = session.stall
    if stall is None or stall.at < first_at or stall.verdict == Verdict.SUPERVISOR_LATE:
        return first_at
    return _next_at(session, limits, stall)


def _next_at(session: Session, limits: Limits, stall: Stall) -> float:
    """Return when a silent session is looked at again: at a threshold, or when a warning is repeated."""
    since = silent_from(session)
    moments = [since + patience_of(session.doing, session.trail, limits), since + limits.liveness_timeout_s]
    moments += [stall.at + limits.stall_repeat_s, (stall.warned_at or stall.at) + limits.stall_repeat_s]
    if stall.verdict in SICK and stall.samples < max(2, SAMPLES.get(Verdict(stall.verdict), 1)):
        moments.append(stall.sampled_at + window_s(limits))
    if stall.stepped_at is not None:
        moments.append(stall.stepped_at + verify_s(limits))
    return min(at for at in moments if at > stall.at)


def window_s(limits: Limits) -> float:
    """Return how far apart two findings must be to be two."""
    return min(WINDOW_S, limits.stall_after_s / 2)


def verify_s(limits: Limits) -> float:
    """Return how long a remedy has to show."""
    return max(window_s(limits), min(10.0, limits.stall_after_s))


def _circles(session: Session, limits: Limits, now: float) -> bool:
    """Say whether a session that speaks may go in circles; it is looked at again when a warning would be repeated."""
    trail, stall = session.trail, session.stall
    if stall is not None and now - stall.at < limits.stall_repeat_s:
        return False
    many = trail.times >= (COMPACTIONS if trail.again == COMPACTION else CIRCLES)
    still_s = now - max(trail.further_at, trail.floor)
    speaks = now - trail.understood_at < limits.stall_after_s
    return session.doing.turn and (many or (speaks and still_s >= NOT_FURTHER * limits.subagent_timeout_s))


def _due_at(book: Book, session: Session, now: float) -> float:
    return due_at(session, limits_for(book, session), now)


def _arm(book: Book, session: Session, at: float) -> None:
    book.checked_at[session.id] = at
    book.do(SetTimer(session.id, "silence", at))


def reminder_at(session: Session, limits: Limits) -> float:
    """Return when a person is reminded of a question next: a while after it, then three times as rarely.

    From the last reminder on: an agent that speaks while it waits is not told of anew, and what was missed comes once.
    """
    every_s, trail = limits.approval_reminder_s, session.trail
    next_at = trail.reminded_at + REMINDERS * every_s if reminders_of(session) else session.doing.asked[0].since + every_s
    return max(next_at, trail.floor + every_s)


def reminders_of(session: Session) -> int:
    """Return how often a person was reminded of the oldest question that is open."""
    return session.trail.reminders if session.trail.reminded_at >= session.doing.asked[0].since else 0


def remind_of_questions(book: Book, session: Session, limits: Limits, now: float) -> Session:
    """Remind a person of a question that waits, if it is time; return what the session is then."""
    asked = session.doing.asked
    names = ", ".join(dict.fromkeys(one.name or "something" for one in asked))
    due = now >= reminder_at(session, limits)
    told = reminders_of(session) + due
    words = f"asked for {names} {_since(now - asked[0].since)} ago, and nobody has answered"
    stall = Stall(Verdict.WAITING_HUMAN, Confidence.CERTAIN, (words,), now, asked[0].since, warnings=told)
    trail = replace(session.trail, reminded_at=now, reminders=told) if due else session.trail
    session = book.keep(replace(session, stall=stall, trail=trail), durable=due)
    if due:
        book.log(now, session, "session.reminded", asked=names, waits_s=round(now - asked[0].since), count=told)
        incidents.remind(book, incidents.key_of(IncidentKind.NEEDS_INPUT, session.id), f"waits for a human: {words}")
    return session


def _since(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def case_of(session: Session, evidence: Evidence, limits: Limits, idle_cpu: float | None, now: float) -> Case:
    """Return what a session is judged by."""
    launch = session.launch
    assert launch is not None
    return Case(
        now,
        evidence,
        session.doing,
        session.trail,
        limits,
        silent_from(session),
        launch.started_at or launch.created_at,
        idle_cpu=idle_cpu,
        runs_to_its_end=runs_to_its_end(session),
        speaks=ought_to_speak(session),
        resumed=launch.mode is Mode.RESUME,
        stalled_before=session.strikes > 0 and not session.doing.retries,
    )


def case_for(book: Book, session: Session, evidence: Evidence, now: float) -> Case:
    """Return what a session is judged by, with what was learned of its kind of agent."""
    idle = book.idle_cpu.get(kind_of(session))
    idle_cpu = idle.cpu if idle is not None and idle.samples >= LEARNED else None
    return case_of(session, evidence, limits_for(book, session), idle_cpu, now)


def diagnosed(book: Book, event: Diagnosed, now: float) -> None:
    """Judge what was read of a silent session, and tell or do what follows."""
    session = book.living(event.launch_id)
    if session is None or not is_watched(session) or session.doing.asked:
        return
    if event.evidence.at < max(book.void_before, session.last_activity_at or 0.0):
        _arm(book, session, max(now, _due_at(book, session, now)))  # it spoke meanwhile, or nobody looked: that is void
        return
    case = case_for(book, session, event.evidence, now)
    found = classify(case)
    before = session.stall
    session = replace(session, stall=_stall(before, found, case))
    if found.verdict in WELL:
        if before is not None and before.warned_at is not None:
            session = _over(book, replace(session, stall=before), f"found to be {found.verdict}", now, keep=session.stall)
        session = book.keep(session, durable=before is not None and before.warned_at is not None)
    elif found.verdict in VOID or not _is_told(case, session.stall):
        session = book.keep(session, durable=False)
    else:
        session = _tell(book, session, case, now)
        session = treat(book, session, case, found, now)
    if is_watched(session):
        _arm(book, session, max(now, _due_at(book, session, now)))


def with_finding(before: Stall | None, found: Finding, at: float) -> Stall:
    """Return what is found now for whoever asks, with what was said and done so far; it counts for nothing."""
    stall = Stall(found.verdict, found.confidence, found.reasons, at, at, found.signs, found.ruled_out, samples=0)
    if before is None or before.verdict not in SICK or found.verdict not in SICK:
        return stall
    same = before.verdict == found.verdict
    return replace(
        before,
        verdict=found.verdict,
        confidence=found.confidence,
        reasons=found.reasons,
        at=at,
        since=before.since if same else at,
        signs=found.signs,
        ruled_out=found.ruled_out,
    )


def _stall(before: Stall | None, found: Finding, case: Case) -> Stall:
    """Return what is found now, as a continuation of what was found before."""
    same = before is not None and before.verdict == found.verdict
    goes_on = before is not None and before.verdict in SICK and found.verdict in SICK
    samples, since, at = 1, case.now, case.evidence.at
    sampled_at = at
    if same and before is not None:
        since = before.since
        counts = before.samples == 0 or at - before.sampled_at >= window_s(case.limits) * 0.9
        samples, sampled_at = (before.samples + 1, at) if counts else (before.samples, before.sampled_at)
    stall = Stall(
        found.verdict,
        found.confidence,
        found.reasons,
        at,
        since,
        found.signs,
        found.ruled_out,
        samples,
        sampled_at,
        found.independent,
    )
    if not goes_on or before is None:
        return stall
    return replace(
        stall,
        warned_at=before.warned_at,
        warnings=before.warnings,
        told=before.told,
        step=before.step,
        stepped_at=before.stepped_at,
    )


def _is_told(case: Case, stall: Stall | None) -> bool:
    """Say whether a finding is worth telling: it was seen often enough, and the silence is long enough for it."""
    assert stall is not None
    verdict = Verdict(stall.verdict)
    if stall.samples < SAMPLES.get(verdict, 1):
        return False
    if verdict is Verdict.UNKNOWN:
        return case.silent_s >= case.patience_s
    return True


def _tell(book: Book, session: Session, case: Case, now: float) -> Session:
    """Warn of a stalled session, again when it is time, and say what changed since."""
    stall, limits = session.stall, case.limits
    assert stall is not None
    if stall.warned_at is not None and now < stall.warned_at + limits.stall_repeat_s * 0.99:
        return book.keep(session, durable=False)
    state = tuple(_coarse(case, stall))
    changed = [f"{name}: {value}" for name, value in state if (name, value) not in stall.told] if stall.told else []
    counted = tally.stalled(session.tally, stall.verdict) if stall.warnings == 0 else session.tally
    stall = replace(stall, warned_at=now, warnings=stall.warnings + 1, told=state)
    session = book.keep(replace(session, stall=stall, tally=counted))
    if stall.verdict == Verdict.RESUME_POISONED:  # its next launch begins a new conversation, and a human is told
        session = quarantine(book, session, "; ".join(stall.reasons), now)
    book.log(
        now,
        session,
        "session.stalled",
        verdict=stall.verdict,
        confidence=stall.confidence.value,
        silent_s=round(case.silent_s, 1),
        count=stall.warnings,
        why="; ".join(stall.reasons),
        changed=changed or (["nothing"] if stall.warnings > 1 else []),
    )
    incident_rules.follow(book, session, now)
    incidents.say_anew(book, incidents.key_of(IncidentKind.STALLED, session.id), words_of(stall, changed))
    return session


def _coarse(case: Case, stall: Stall) -> list[tuple[str, str]]:
    """Return how things stand in words that do not change by themselves."""
    evidence = case.evidence
    shown = [("verdict", stall.verdict), ("open", what_is_open(case.doing, case.trail, case.limits)[0])]
    shown += [("state", evidence.state.value or "unknown"), ("wchan", evidence.wchan.value or "unknown")]
    shown += [(name, {True: "yes", False: "no", None: "unknown"}[FACTS[name].holds(case)]) for name in COMPARED]
    for name, number in (("connections", evidence.sockets), ("processes below", evidence.descendants)):
        shown.append((name, "unknown" if number.value is None else f"{number.value:.0f}"))
    return shown


def words_of(stall: Stall, changed: list[str] | None = None) -> str:
    """Return a finding in one sentence."""
    words = f"{stall.verdict} ({stall.confidence}): {'; '.join(stall.reasons)}"
    return f"{words}; since the last time: {', '.join(changed)}" if changed else words


def _over(book: Book, session: Session, why: str, now: float, keep: Stall | None = None) -> Session:
    """What was found is over: it is logged if it was told, and its incident resolves."""
    stall = session.stall
    session = replace(session, stall=keep)
    if stall is None or stall.warned_at is None:
        return session
    data: dict[str, Any] = {"verdict": stall.verdict, "lasted_s": round(now - stall.since, 1), "why": why}
    if stall.step:
        data["after"] = stall.step
        session = replace(session, intent=voided(session.intent, now))
    book.log(now, session, "session.stall-over", **data)
    session = book.keep(session)
    incident_rules.follow(book, session, now)
    return session


def configured(book: Book, event: WatchdogsSet, now: float) -> None:
    """Let what the configuration says of silence hold at once."""
    if event.watchdogs == book.watchdogs:
        return
    book.watchdogs = event.watchdogs
    for session in list(book.sessions.values()):
        begin(book, session, now)


def measured(book: Book, event: Measured, _now: float) -> None:
    """Learn what kinds of agents use while they wait for input."""
    for launch_id, cpu in event.rates:
        session = book.living(launch_id)
        if session is None or not _waits_for_input(session.doing) or session.attached:
            continue  # who types makes it work
        kind = kind_of(session)
        before = book.idle_cpu.get(kind)
        learned = cpu if before is None else before.cpu + LEARNING * (cpu - before.cpu)
        book.idle_cpu[kind] = Idle(learned, 1 if before is None else before.samples + 1)


def _waits_for_input(doing: Doing) -> bool:
    return doing == IDLE or bool(doing.asked)


def kind_of(session: Session) -> str:
    """Return what idle CPU is learned of: a kind of agent; of a plain command, its program."""
    return session.spec.agent if session.spec.agent != "generic" else f"generic {session.spec.command[0]}"


def clear_trail(session: Session) -> dict[str, Any]:
    """Return what a new launch begins with: it has said nothing; that its session ever did is remembered."""
    spoke = session.trail.spoke or session.trail.spoke_before
    return {"trail": replace(SAID_NOTHING, spoke_before=spoke), "stall": None}
