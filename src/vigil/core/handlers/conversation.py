"""Conversations: the wake table decides how a session resumes; a conversation that stalls is quarantined (DESIGN 4.6)."""

from __future__ import annotations

from vigil.core.book import Book
from vigil.core.model.conversation import Kept, Transcript, Wake
from vigil.core.model.death import Cause, Death, IntentVerb
from vigil.core.model.launch import Mode
from vigil.core.model.replace import replace
from vigil.core.model.restart import After, HoldReason
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.sighting import ReapClass
from vigil.core.rules.wake import INTERRUPTED, NEVER, PARKED, Life, Resumability, WakeQuestion, decide

# A session with one of these holds launches as soon as it can.
ON_ITS_WAY = frozenset({HoldReason.PACE, HoldReason.MEMORY, HoldReason.KEEPER, HoldReason.SURVIVOR})
QUARANTINED_KEPT = 20
STRIKES = 2  # an agent that stalls once may be unlucky; a poisoned conversation stalls again
QUICK_S = 60.0  # a resumed launch that ends so soon without a word did nothing
BY_ITSELF = frozenset({Cause.FINISHED, Cause.EARLY_EXIT, Cause.CRASH})
REFUSALS = {  # why it is not woken, and the way out
    "stopped": "{was}; vigil start {name} starts it",
    "crash-loop": "it is in a crash-loop ({why}); vigil reset {name} ends the wait",
    "limit": "it waits for a limit to end ({why}); vigil start {name} does not wait",
    "auth": "it waits for a login ({why}); log in, then vigil start {name}",
    Resumability.NOTHING: "{missing}; vigil wake --fresh {name} begins a new one",
    Resumability.QUARANTINED: "{missing}; vigil wake --fresh {name} begins a new one, vigil reset {name} takes this one back",
    Resumability.IN_USE: "{missing}; vigil wake --fresh {name} begins a new one",
}


def decide_wake(book: Book, session: Session, now: float, asked: Mode | None = None, by_wake: bool = False) -> Wake:
    """Have the wake table decide whether a session resumes its conversation, with reasons."""
    found, words = find_conversation(book, session)
    hold = session.hold
    if hold is not None and hold.until is not None and hold.until <= now:
        hold = None  # that wait is over
    launch, role = session.launch, book.role_of(session)
    case = WakeQuestion(
        asked,
        by_wake,
        life_of(session),
        None if hold is None else hold.reason,
        ended_of(session),
        found,
        role is not None and role.spec.after_crash == "resume",
        Mode.FRESH if launch is None else launch.mode,
        "" if launch is None else launch.woken_for,
    )
    wake = decide(case)
    if wake.mode is Mode.REFUSED:
        return replace(wake, why=_why_refused(session, wake.cause, words), until=hold.until if hold else None)
    return replace(wake, why=words) if wake.cause in set(Resumability) else wake


def _why_refused(session: Session, cause: str, missing: str) -> str:
    """Say why a session is not woken to its conversation, and what brings it back."""
    if cause == "stopped" and session.archived_at is not None and session.state is State.STOPPED:
        return was_ended(session)  # it names the way back
    return REFUSALS[cause].format(name=session.name, was=was_ended(session), why=session.why, missing=missing)


def was_ended(session: Session) -> str:
    """Say, for a refused wake, by whom or what a session was or is stopped."""
    return f"it is being ended ({session.why})" if session.state is not State.STOPPED else f"it was {session.why}"


def log_wake(book: Book, session: Session, wake: Wake, now: float, by: str) -> None:
    data = {"mode": wake.mode.value, "cause": wake.cause, "by": by}
    if wake.why:
        data["why"] = wake.why
    if session.conversation and wake.mode in (Mode.FRESH, Mode.RESUME):
        data["conversation" if wake.mode is Mode.RESUME else "left"] = session.conversation
    book.log(now, session, "session.wake", **data)


def next_wake(book: Book, session: Session, now: float) -> Wake:
    """Return how the next launch wakes: as decided if its conversation allows, else by table."""
    decided = session.waking
    if decided is not None and (decided.mode is Mode.FRESH or find_conversation(book, session)[0] is Resumability.RESUMABLE):
        return decided
    asleep = replace(session, state=State.PENDING, hold=None)  # its wait is over
    wake = decide_wake(book, asleep, now)
    log_wake(book, session, wake, now, "policy")
    return wake


def life_of(session: Session) -> Life:
    """Say, for the wake table, whether a session is awake, stopped, or (nearly) asleep."""
    if session.state is State.STOPPED or session.after in (After.STOP, After.REMOVE):
        return Life.STOPPED
    if session.state is State.ENDING and session.after is After.PARK:
        return Life.ASLEEP
    coming = session.state in (State.PENDING, State.CRASHED) and session.waits_for in ON_ITS_WAY
    return Life.AWAKE if session.state in ALIVE or coming else Life.ASLEEP


def ended_of(session: Session) -> str:
    """Find how a session's last launch left its conversation, in the wake table's words."""
    launch, death = session.launch, session.last_death
    if launch is None:
        return NEVER
    if session.state is State.ENDING and session.after is After.PARK:
        return PARKED
    if death is None or death.launch_id != launch.id:
        return INTERRUPTED
    intent = death.intent
    slept = intent is not None and (
        intent.verb is IntentVerb.HIBERNATE or (intent.verb is IntentVerb.REAP and intent.kind is ReapClass.IDLE)
    )
    return PARKED if slept and death.cause in (Cause.OPERATOR, Cause.POLICY) else death.cause


def find_conversation(book: Book, session: Session) -> tuple[Resumability, str]:
    """Look in the book whether a session's conversation can be resumed, or what is missing."""
    found, words = look_at_conversation(session)
    owner = owner_of(book, session.spec.agent, session.conversation, session.id) if found is Resumability.RESUMABLE else None
    if owner is not None:
        return Resumability.IN_USE, f"conversation {session.conversation} is open in {owner.name}"
    return found, words


def look_at_conversation(session: Session) -> tuple[Resumability, str]:
    """Say whether a session's own conversation can be resumed, wherever else it is open."""
    conversation = session.conversation
    if not conversation:
        return Resumability.NOTHING, "it has no conversation that could be resumed"
    if conversation in session.quarantined:
        words = f"conversation {conversation} is quarantined: resumed, it did nothing, or stalled again"
        return Resumability.QUARANTINED, words
    transcript = session.transcript
    if transcript is None or transcript.conversation != conversation:
        transcript = Transcript(conversation, Kept.UNKNOWN, 0.0)
    if transcript.kept is not Kept.THERE and (transcript.kept is not Kept.UNKNOWN or not _has_spoken(session)):
        return Resumability.NOTHING, transcript.why or f"no turn of conversation {conversation} was seen"
    return Resumability.RESUMABLE, transcript.why if transcript.kept is Kept.UNKNOWN else ""


def _has_spoken(session: Session) -> bool:
    """Say whether Vigil saw a turn of a conversation whose transcript cannot be read."""
    resumed = session.launch is not None and session.launch.mode is Mode.RESUME
    return resumed or session.spent.turns > session.vitals.spent_before.turns or session.prompted_at is not None


def owner_of(book: Book, agent: str, conversation: str, but: str = "") -> Session | None:
    """Find in the book another session that is, or will be, in an agent's conversation."""
    others = (other for other in book.sessions.values() if other.id != but and other.spec.agent == agent)
    return next((other for other in others if _is_in(other, conversation)), None)


def _is_in(session: Session, conversation: str) -> bool:
    """Say whether a session's living launch is in a conversation."""
    launch = session.launch
    living = session.state in ALIVE and launch is not None and launch.ended_at is None
    return living and session.conversation == conversation


def quarantine(book: Book, session: Session, why: str, now: float) -> Session:
    """Never resume a session's conversation again; `vigil reset` takes that back."""
    conversation = session.conversation
    if not conversation or conversation in session.quarantined:
        return session
    quarantined = (*session.quarantined, conversation)[-QUARANTINED_KEPT:]
    session = book.keep(replace(session, quarantined=quarantined))
    book.log(now, session, "session.quarantined", conversation=conversation, why=why)
    return session


def strike(book: Book, session: Session, why: str, now: float) -> Session:
    """Count a stall of a conversation; the second without a turn in between quarantines it."""
    if not session.conversation:
        return session
    moved = session.spent.turns > session.vitals.spent_before.turns
    session = book.keep(replace(session, strikes=1 if moved else session.strikes + 1))
    return quarantine(book, session, why, now) if session.strikes >= STRIKES else session


def judge_resume(book: Book, session: Session, now: float) -> Session:
    """Quarantine a conversation whose resumed launch ended without a word."""
    launch, death = session.launch, session.last_death
    if launch is None or launch.mode is not Mode.RESUME or death is None or death.launch_id != launch.id:
        return session
    if session.conversation != launch.conversation or not _returned_nothing(session, death):
        return session
    words = f"resumed, it ended after {death.uptime_s or 0.0:.0f} s without a turn ({death.cause})"
    return quarantine(book, session, words, now)


def _returned_nothing(session: Session, death: Death) -> bool:
    """Say whether a resumed conversation came to nothing by itself, not by people or limits."""
    if death.intent is not None or death.cause not in BY_ITSELF or session.vitals.attached or session.vitals.doing.retries:
        return False
    launch = session.launch
    prompted = launch is not None and (session.prompted_at or 0.0) >= (launch.started_at or launch.created_at)
    if death.cause is Cause.CRASH and prompted:  # it was at work
        return False
    spent, before = session.spent, session.vitals.spent_before
    said = spent.turns > before.turns or spent.output_tokens > before.output_tokens
    return not said and (death.uptime_s or 0.0) < QUICK_S
