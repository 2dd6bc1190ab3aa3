"""The watchdog diagnoses a session whose silence has outlasted its patience, and warns of what it finds (P12, DESIGN 5).

A word ends the finding at once. It discards what it read late or before a gap. `handlers/remedy` treats what it found."""

from __future__ import annotations

from typing import Any

from vigil.core.book import Book, Idle
from vigil.core.effects import Diagnose, Look, SetTimer, TimerKind
from vigil.core.events import Diagnosed, Measured, WatchdogsSet
from vigil.core.handlers.conversation import quarantine
from vigil.core.handlers.incident import remind
from vigil.core.handlers.intent import voided
from vigil.core.handlers.remedy import PEOPLE_S, treat, waits_for_people
from vigil.core.model.death import Confidence
from vigil.core.model.evidence import Evidence
from vigil.core.model.incident import IncidentKind
from vigil.core.model.progress import IDLE
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, with_vitals
from vigil.core.model.stall import Stall, Thresholds, Watchdog
from vigil.core.rules import summary
from vigil.core.rules.incident import key_of
from vigil.core.rules.stall.case import Silence, case_of, is_watched, kind_of, silent_from, what_is_open
from vigil.core.rules.stall.course import continued, is_told, words_of
from vigil.core.rules.stall.facts import FACTS
from vigil.core.rules.stall.schedule import due_at, reminder_at, reminders_of, thresholds_of
from vigil.core.rules.stall.verdict import VOID, WELL, StallVerdict, classify
from vigil.words import minutes

MEASURE_S = 5.0  # longest window for rates where no older reading exists
UNANSWERED_S = 30.0  # then the watchdog asks for the diagnosis again
SLEPT_S = 60.0  # after a longer gap silence counts anew: connections need a while to come back
LEARNING = 0.2  # the weight of a new sample
LEARNED = 3  # samples before Vigil uses what it learned
COMPARED = ("busy", "bytes come", "connected", "writes", "tool runs", "tool works", "child waits", "spins")
UNWATCHED_WORDS = "nothing of it is open any more"


def limits_for(book: Book, session: Session) -> Thresholds:
    """Look up the thresholds by which the watchdog judges a session now."""
    role = book.role_of(session)
    return thresholds_of(session.spec.agent, Watchdog() if role is None else role.spec.watchdog, book.watchdogs)


def begin(book: Book, session: Session, now: float) -> None:
    """Have the watchdog watch a launch from now on."""
    if is_watched(session):
        _arm(book, session, _due_at(book, session, now))


def rest(book: Book, session: Session, now: float) -> Session:
    """Have the watchdog count silence anew from now: before, Vigil did not listen."""
    if not is_watched(session):
        return session
    trail, stall = session.vitals.trail, session.vitals.stall
    trail = replace(trail, floor=now, reminded_at=min(trail.reminded_at, now))
    session = with_vitals(session, trail=trail, stall=None if stall is None else replace(stall, samples=0))
    session = book.keep(session, durable=False)
    begin(book, session, now)
    return session


def missed(book: Book, session: Session, lasted_s: float, now: float) -> None:
    """When Vigil did not run: have the watchdog count no silence and void findings."""
    if not is_watched(session):
        return
    floor = now if lasted_s >= SLEPT_S else min(now, silent_from(session) + lasted_s)
    words = f"Vigil itself did not run for {lasted_s:.0f} s: nothing is concluded from that"
    stall = session.vitals.stall
    if stall is not None and stall.warned_at is not None:
        stall = replace(stall, samples=0)
    else:
        stall = Stall(StallVerdict.SUPERVISOR_LATE, Confidence.CERTAIN, (words,), now, now, samples=0)
    session = with_vitals(session, trail=replace(session.vitals.trail, floor=floor), stall=stall)
    begin(book, book.keep(session, durable=False), now)


def heard(book: Book, before: Session, session: Session, now: float) -> Session:
    """When an agent spoke: end the watchdog's finding, and look earlier if patience is shorter."""
    if session.vitals.stall is not None and session.vitals.stall.verdict != StallVerdict.LIVELOCK:
        session = _over(book, session, "it spoke", now)
    if session.vitals.doing != before.vitals.doing and is_watched(session):
        next_at = _due_at(book, session, now)
        if next_at < book.checked_at.get(session.id, float("inf")):
            _arm(book, session, next_at)
    return session


def check(book: Book, session: Session, now: float) -> None:
    """When the watchdog's timer fires: diagnose a session out of patience, or look later."""
    book.checked_at.pop(session.id, None)
    if not is_watched(session):
        if session.vitals.stall is not None:
            ended = session.launch is None or session.launch.ended_at is not None  # its death says how
            book.keep(with_vitals(session, stall=None) if ended else _over(book, session, UNWATCHED_WORDS, now))
        return
    limits = limits_for(book, session)
    if session.vitals.doing.asked:
        session = remind_of_questions(book, session, limits, now)
        _arm(book, session, reminder_at(session, limits))
    elif now < (next_at := due_at(session, limits, now)):
        _arm(book, session, next_at)
    else:
        _diagnose(book, session, now)


def remind_of_questions(book: Book, session: Session, limits: Thresholds, now: float) -> Session:
    """Have the watchdog remind people of a waiting question, if it is time."""
    asked = session.vitals.doing.asked
    names = ", ".join(dict.fromkeys(one.name or "something" for one in asked))
    due = now >= reminder_at(session, limits)
    told = reminders_of(session) + due
    words = f"asked for {names} {minutes(now - asked[0].since)} ago, and nobody has answered"
    stall = Stall(StallVerdict.WAITING_HUMAN, Confidence.CERTAIN, (words,), now, asked[0].since, warnings=told)
    trail = replace(session.vitals.trail, reminded_at=now, reminders=told) if due else session.vitals.trail
    session = book.keep(with_vitals(session, stall=stall, trail=trail), durable=due)
    if due:
        book.log(now, session, "session.reminded", asked=names, waits_s=round(now - asked[0].since), count=told)
        remind(book, key_of(IncidentKind.NEEDS_INPUT, session.id), f"waits for a human: {words}")
    return session


def _diagnose(book: Book, session: Session, now: float) -> None:
    assert session.launch is not None
    book.do(Diagnose(session.launch, min(MEASURE_S, limits_for(book, session).stall_after_s / 4)))
    _arm(book, session, now + UNANSWERED_S)


def see_people(book: Book, session: Session, now: float) -> None:
    """While a person keeps the watchdog's remedy waiting: look whether they have left."""
    if is_watched(session) and waits_for_people(session, limits_for(book, session)):
        assert session.launch is not None
        book.do(Look(session.launch))
        book.do(SetTimer(session.id, TimerKind.PEOPLE, now + PEOPLE_S))


def left_alone(book: Book, before: Session, session: Session, now: float) -> None:
    """When the last person leaves: have the watchdog diagnose a stall whose remedy waited."""
    if session.vitals.attached or not is_watched(session) or session.vitals.doing.asked:
        return
    if waits_for_people(before, limits_for(book, session)):
        _diagnose(book, session, now)


def _due_at(book: Book, session: Session, now: float) -> float:
    return due_at(session, limits_for(book, session), now)


def _arm(book: Book, session: Session, at: float) -> None:
    book.checked_at[session.id] = at
    book.do(SetTimer(session.id, TimerKind.SILENCE, at))


def case_for(book: Book, session: Session, evidence: Evidence, now: float) -> Silence:
    """Make the watchdog's case of a silent session, with its kind's learned idle CPU."""
    idle = book.idle_cpu.get(kind_of(session))
    idle_cpu = idle.cpu if idle is not None and idle.samples >= LEARNED else None
    return case_of(session, evidence, limits_for(book, session), idle_cpu, now)


def diagnosed(book: Book, event: Diagnosed, now: float) -> None:
    """Take in a diagnosis of a silent session: the watchdog judges it and acts."""
    session = book.living(event.launch_id)
    if session is None or not is_watched(session) or session.vitals.doing.asked:
        return
    if event.evidence.at < max(book.void_before, session.last_activity_at or 0.0):
        _arm(book, session, max(now, _due_at(book, session, now)))  # it spoke meanwhile, or a gap came: the reading is void
        return
    case = case_for(book, session, event.evidence, now)
    session = _conclude(book, session, case, now)
    if is_watched(session):
        _arm(book, session, max(now, _due_at(book, session, now)))


def _conclude(book: Book, session: Session, case: Silence, now: float) -> Session:
    """Keep the watchdog's finding: warn of a sick session and treat it, or end warnings."""
    before, found = session.vitals.stall, classify(case)
    warned = before is not None and before.warned_at is not None
    session = with_vitals(session, stall=continued(before, found, case))
    if found.verdict in WELL:
        if warned:
            told, words = with_vitals(session, stall=before), f"found to be {found.verdict}"
            session = _over(book, told, words, now, keep=session.vitals.stall)
        return book.keep(session, durable=warned)
    if found.verdict in VOID or not is_told(case, session.vitals.stall):
        return book.keep(session, durable=False)
    return treat(book, _tell(book, session, case, now), case, found, now)


def _tell(book: Book, session: Session, case: Silence, now: float) -> Session:
    """Warn of what the watchdog found, again after `stall_repeat_s`, with what changed since."""
    stall = session.vitals.stall
    assert stall is not None
    if stall.warned_at is not None and now < stall.warned_at + case.limits.stall_repeat_s * 0.99:
        return book.keep(session, durable=False)
    state = tuple(_coarse(case, stall))
    changed = [f"{name}: {value}" for name, value in state if (name, value) not in stall.told] if stall.told else []
    counted = summary.count_stall(session.vitals.tally, stall.verdict) if stall.warnings == 0 else session.vitals.tally
    stall = replace(stall, warned_at=now, warnings=stall.warnings + 1, told=state)
    session = book.keep(with_vitals(session, stall=stall, tally=counted))
    if stall.verdict == StallVerdict.RESUME_POISONED:  # its next launch begins a new conversation
        session = quarantine(book, session, "; ".join(stall.reasons), now)
    data: dict[str, Any] = {"verdict": stall.verdict, "confidence": stall.confidence.value, "count": stall.warnings}
    data |= {"silent_s": round(case.silent_s, 1), "why": "; ".join(stall.reasons)}
    data["changed"] = changed or (["nothing"] if stall.warnings > 1 else [])
    book.log(now, session, "session.stalled", **data)
    book.change.anew[key_of(IncidentKind.STALLED, session.id)] = words_of(stall, changed)
    return session


def _coarse(case: Silence, stall: Stall) -> list[tuple[str, str]]:
    """Return the watchdog's finding in words that change only when something happens."""
    evidence = case.evidence
    shown = [("verdict", stall.verdict), ("open", what_is_open(case.doing, case.trail, case.limits)[0])]
    shown += [("state", evidence.state.value or "unknown"), ("wchan", evidence.wchan.value or "unknown")]
    shown += [(name, {True: "yes", False: "no", None: "unknown"}[FACTS[name].holds(case)]) for name in COMPARED]
    for name, number in (("connections", evidence.sockets), ("processes below", evidence.descendants)):
        shown.append((name, "unknown" if number.value is None else f"{number.value:.0f}"))
    return shown


def _over(book: Book, session: Session, why: str, now: float, keep: Stall | None = None) -> Session:
    """Drop the watchdog's finding; log its end if people were warned of it."""
    stall = session.vitals.stall
    session = with_vitals(session, stall=keep)
    if stall is None or stall.warned_at is None:
        return session
    data: dict[str, Any] = {"verdict": stall.verdict, "lasted_s": round(now - stall.since, 1), "why": why}
    if stall.step:
        data["after"] = stall.step
        session = with_vitals(session, intent=voided(session.vitals.intent, now))
    book.log(now, session, "session.stall-over", **data)
    return book.keep(session)


def configured(book: Book, event: WatchdogsSet, now: float) -> None:
    """Take in the watchdog's configured thresholds, at once."""
    if event.watchdogs == book.watchdogs:
        return
    book.watchdogs = event.watchdogs
    for session in list(book.sessions.values()):
        begin(book, session, now)


def measured(book: Book, event: Measured, _now: float) -> None:
    """Have the watchdog learn how much CPU idle agents use, by kind."""
    for launch_id, cpu in event.rates:
        session = book.living(launch_id)
        if session is None or not (session.vitals.doing == IDLE or session.vitals.doing.asked) or session.vitals.attached:
            continue  # a person who types makes it work
        kind = kind_of(session)
        before = book.idle_cpu.get(kind)
        learned = cpu if before is None else before.cpu + LEARNING * (cpu - before.cpu)
        book.idle_cpu[kind] = Idle(learned, 1 if before is None else before.samples + 1)
