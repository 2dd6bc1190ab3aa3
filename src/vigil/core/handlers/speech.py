"""Speech: the core takes in what an agent says of its work, its conversation and its cost.

Hooks know best, then stream, then transcript (DESIGN 4.1): a worse source only adds what a better one may miss, the end of a
turn and a next one that began by itself. Counts and read positions become durable together: nothing counts twice."""

from __future__ import annotations

from operator import add, attrgetter

from vigil.core.book import Book
from vigil.core.events import Heard, Hooked
from vigil.core.handlers import heartbeat, watchdog
from vigil.core.handlers.doubt import is_news, well_again
from vigil.core.handlers.wall import TRIES, WALLS, at_wall, get_past
from vigil.core.model.conversation import Spent
from vigil.core.model.progress import IDLE, Doing
from vigil.core.model.reading import Axis
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, with_vitals
from vigil.core.model.speech import Said, Usage, What
from vigil.core.rules import activity, summary
from vigil.core.rules.activity import activity_facts, note_work, remember, take_in

SOURCES = ("hook", "stream", "transcript", "screen")  # the best first
MISSED = frozenset({What.TURN_ENDED, What.RESULT})  # an interrupted turn ends without a hook
CLOSING = frozenset({What.TOOL_ENDED, What.ANSWERED})  # by id, however late
UNHOOKED = frozenset({*WALLS, What.RETRIES, What.SPEAKS})
# Changes of these are written at once. A new daemon must know which source tells of prompts: an echo is not the next one.
WRITTEN = attrgetter("vitals.doing", "vitals.prompted_by", "conversation", "spent", "wall")
COSTS = attrgetter("input_tokens", "output_tokens", "cached_tokens", "cost_usd", "turns")
HEARTBEAT = "heartbeat"
SIGNS = frozenset({What.ALIVE, What.UNKNOWN})
SAME_S = 0.05  # two hooks so close count as one moment
LATER_S = 0.2  # a worse source must be so much newer, as two clocks differ
KEPT_S = 30.0  # how old the stored time of the last activity may become


def hooked(book: Book, event: Hooked, now: float) -> None:
    """Take in what an agent said by hooks, in the order of their moments."""
    in_order = sorted(event.hooks, key=lambda hook: hook.at)
    said = (replace(one, at=hook.at) for hook in in_order for one in hook.said or (Said(What.ALIVE, name=hook.name),))
    heard(book, Heard(event.launch_id, tuple(said), "hook"), now)


def heard(book: Book, event: Heard, now: float) -> None:
    """Take in an agent's words; from a dead agent only those that change its record."""
    session = book.of_launch(event.launch_id)
    if session is None or session.launch is None:
        return
    before = session
    if event.read_to:
        session = with_vitals(session, read_to={**session.vitals.read_to, **dict(event.read_to)})
    for said in event.said:
        session = _remember(_count(session, said), said, _moment_of(said, now), event.source)
    if session.launch is not None and session.launch.ended_at is not None:
        trail = session.vitals.trail
        session = with_vitals(session, trail=replace(trail, spoke=trail.spoke or bool(event.said)))
        _leave_behind(book, session, event, now)
        return
    _follow(book, before, session, event, now)


def _leave_behind(book: Book, session: Session, event: Heard, now: float) -> None:
    """Take in a dead agent's last words: turns that ended, walls met or passed."""
    worked_at = None
    own = [said for said in event.said if not said.subagent]
    for said in own:
        at = _moment_of(said, now)
        if said.what is What.RESULT and not said.failed and (session.wall is None or at > session.wall.at):
            worked_at = at
        session = at_wall(book, session, said, at, now)
    book.keep(_end_turns(session, event, now))
    if worked_at is not None and book.walled:
        get_past(book, session, worked_at, now)


def _end_turns(session: Session, event: Heard, now: float) -> Session:
    """Count the turns that a dead agent's unread words end; they open none."""
    doing = session.vitals.doing
    for said in event.said:
        at = _moment_of(said, now)
        missed = said.what in MISSED and not said.subagent
        if missed or _counts(session, event.source, said, at):
            before, doing = doing, take_in(doing, said, at)
            if before.turn and not doing.turn:
                session = _end_turn(session)
    return session


def _follow(book: Book, before: Session, session: Session, event: Heard, now: float) -> None:
    """Take in the words of a living agent, then act on all of them."""
    intake = Intake(book, session, event.source, now)
    for said in event.said:
        intake.take(said)
    session = intake.session
    facts = activity_facts(session, intake.doing, event.source, intake.changed_at)
    news = is_news(session)
    session = book.read_axes(session, facts, doing=intake.doing, last_activity_at=intake.active_at or None)
    session = heartbeat.heard(book, session, max(intake.alive_at, book.void_before), now)
    if any(said.what is not What.TICKS for said in event.said):
        session = watchdog.heard(book, before, session, now)
    if news:
        well_again(book, session, now)
    else:
        book.keep(session, durable=WRITTEN(session) != WRITTEN(before) or book.is_behind(session, KEPT_S))
    if intake.worked_at is not None and book.walled:
        get_past(book, session, intake.worked_at, now)


class Intake:
    """Applies a living agent's words to its session, one by one."""

    def __init__(self, book: Book, session: Session, source: str, now: float) -> None:
        self._book, self._source, self._now = book, source, now
        self.session = session
        self.doing = session.vitals.doing  # what its work has open after the last word
        self.changed_at: float | None = None  # when `doing` last changed
        self.active_at = self.alive_at = session.last_activity_at or 0.0  # a tick only says that it lives
        self.worked_at: float | None = None  # when a word last proved that the model answers

    def take(self, said: Said) -> None:
        """Take in the agent's next word."""
        at = _moment_of(said, self._now)
        self.alive_at = max(self.alive_at, at)
        self.session = with_vitals(self.session, trail=activity.extend_trail(self.session.vitals.trail, said, at))
        if said.what is not What.TICKS:
            self._note_activity(said, at)
            self._note_wall(said, at)
            self._note_doing(said, at)

    def _note_activity(self, said: Said, at: float) -> None:
        """Note by an agent's word that its silence ends, and that it works, if so."""
        if self.doing.turn:
            heard_from = max(self.active_at, self._book.void_before)  # before that, Vigil did not listen
            tally = summary.count_silence(self.session.vitals.tally, heard_from, at)
            self.session = with_vitals(self.session, tally=tally)
        self.active_at = max(self.active_at, at)
        if not (said.name == HEARTBEAT and said.what in SIGNS):
            self.session = note_work(self.session, "sub-agent" if said.subagent else self._source, at)
        if said.what is What.PROMPT and not said.subagent:
            self.session = _take_prompt(self.session, self._source, at)

    def _note_wall(self, said: Said, at: float) -> None:
        """Note by an agent's word that it meets, tries or got past a wall."""
        if proves_work(self.session, self.doing, said, at):
            self.worked_at = at
        self.session = at_wall(self._book, self.session, said, at, self._now)

    def _note_doing(self, said: Said, at: float) -> None:
        """Note what an agent's word opens or closes, if its source may say so."""
        counts = _counts(self.session, self._source, said, at)
        if not counts and not _opens(self.session, self.doing, self._source, said, at):
            return
        after = take_in(self.doing, said, at)
        if self.doing.turn and not after.turn:
            self.session = _end_turn(self.session)
        if after != self.doing:
            self.doing, self.changed_at = after, at


def _moment_of(said: Said, now: float) -> float:
    """Return when a word taken in was said: now if its source does not tell."""
    return now if said.at is None else min(said.at, now)


def _take_prompt(session: Session, source: str, at: float) -> Session:
    """Note by a word that its agent took a prompt; worse sources repeat it later."""
    if session.vitals.prompted_by and SOURCES.index(source) > SOURCES.index(session.vitals.prompted_by):
        return session
    return with_vitals(replace(session, prompted_at=max(at, session.prompted_at or 0.0)), prompted_by=source)


def proves_work(session: Session, doing: Doing, said: Said, at: float) -> bool:
    """Say whether a word taken in proves that the model answers: tool started, turn ended."""
    if said.subagent or (session.wall is not None and at <= session.wall.at):
        return False
    if said.what in MISSED:
        return doing.turn and not said.failed and (session.wall is None or session.wall.tried)
    return said.what is What.TOOL_STARTED


def _counts(session: Session, source: str, said: Said, at: float) -> bool:
    """Say whether an agent's word counts: late ones only close, worse sources only end turns."""
    reading = session.vitals.axes.get(Axis.ACTIVITY)
    if reading is None or reading.source not in SOURCES or SOURCES.index(source) < SOURCES.index(reading.source):
        return True
    if said.what in UNHOOKED:
        return at > reading.observed_at - LATER_S  # hooks may miss it, but they tell of the turn's end
    if source == reading.source:
        return at >= reading.observed_at - SAME_S or said.what in CLOSING
    if source == "screen" and said.what is What.ANSWERED:
        return True  # only the screen shows that the dialog is gone
    return said.what in MISSED and at > reading.observed_at + LATER_S


def _opens(session: Session, doing: Doing, source: str, said: Said, at: float) -> bool:
    """Say of words taken in whether a transcript opens a turn that no hook told.

    Its hook came when it was typed. A stream carries no moments, so it never tells of this."""
    if source != "transcript" or said.what not in TRIES or said.subagent or said.at is None or doing.turn:
        return False
    reading = session.vitals.axes.get(Axis.ACTIVITY)
    return reading is not None and at > reading.observed_at + SAME_S  # the turn before was over


def _count(session: Session, said: Said) -> Session:
    """Take in the conversation and the cost that an agent's word tells."""
    if said.conversation and said.conversation != session.conversation and not said.subagent:
        session = replace(session, conversation=said.conversation, counted=Spent(), strikes=0)
    if said.usage is not None:
        session = _spend(session, said.usage)
    return session


def _remember(session: Session, said: Said, at: float, source: str) -> Session:
    """Keep an agent's word in the ring and count it; two sources make one word."""
    ring = remember(session.vitals.recent, said, at, source)
    counted = summary.count_word(session.vitals.tally, said, is_new=ring is not session.vitals.recent)
    return with_vitals(session, recent=ring, tally=counted)


def _end_turn(session: Session) -> Session:
    """Count a turn that an agent's words ended, once for all sources."""
    return with_vitals(replace(session, spent=replace(session.spent, turns=session.spent.turns + 1)), doing=IDLE)


def _spend(session: Session, usage: Usage) -> Session:
    """Add the cost that an agent tells; of a running total, only what is new."""
    told = Spent(usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost_usd or 0.0)
    if not usage.so_far:
        return replace(session, spent=_sum(session.spent, told))
    new = Spent(
        max(0, told.input_tokens - session.counted.input_tokens),
        max(0, told.output_tokens - session.counted.output_tokens),
        max(0, told.cached_tokens - session.counted.cached_tokens),
        max(0.0, told.cost_usd - session.counted.cost_usd),
    )
    return replace(session, spent=_sum(session.spent, new), counted=_sum(session.counted, new))


def _sum(one: Spent, other: Spent) -> Spent:
    return Spent(*map(add, COSTS(one), COSTS(other)))
