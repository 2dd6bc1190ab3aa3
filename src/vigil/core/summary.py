"""Summary: one line for each launch that ended, in the event log: what it did, what it cost, how and by whom it ended.

Exactly one: the line and the mark that it was written become durable together. It waits until what the agent wrote last was
read, which may be after its death.
"""

from __future__ import annotations

from dataclasses import dataclass

from vigil.core.book import Book
from vigil.core.changing import replace
from vigil.core.effects import Amend, SetTimer
from vigil.core.model import Cause, Death, Session
from vigil.core.recent import KEPT_OF_DEATH
from vigil.core.tally import silent

LATEST_S = 15.0  # after a death whose pane stays open
KIND = "session.summary"
TIMER = "summary"

# Who ended a launch, where no intent of ours did.
ENDED_BY: dict[Cause, str] = {
    Cause.FINISHED: "itself",
    Cause.OPERATOR: "an operator",
    Cause.POLICY: "policy",
    Cause.UNHEALTHY: "policy",
    Cause.STALLED: "policy",
    Cause.LAUNCH_FAILED: "nobody: it never came to life",
    Cause.EARLY_EXIT: "itself",
    Cause.CRASH: "itself",
    Cause.OOM: "the kernel",
    Cause.SERVER_DIED: "its tmux server's death",
    Cause.KILLED_BY_UNKNOWN: "somebody outside Vigil",
    Cause.UNOBSERVED: "nobody saw who",
    Cause.HOST_REBOOTED: "the host, which was booted anew",
    Cause.LIMIT: "itself, at a usage limit",
    Cause.AUTH: "itself, because it was not let in",
}


@dataclass(frozen=True, slots=True)
class Summary:
    """What one launch did so far, or all in all; None is unknown, because its agent does not say or nobody measured."""

    duration_s: float | None
    turns: int | None
    tools: int | None
    failed_tools: int | None
    words: int
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost_usd: float | None
    stalls: tuple[tuple[str, int], ...]
    longest_silence_s: float | None
    peak_bytes: int | None
    cause: str | None = None  # None: it lives
    exit_code: int | None = None
    signal: int | None = None
    ended_by: str | None = None


def summary_of(session: Session, now: float) -> Summary | None:
    """Return what a session's launch did; None if it has none."""
    launch = session.launch
    if launch is None:
        return None
    death = session.last_death if session.last_death is not None and session.last_death.launch_id == launch.id else None
    until = launch.ended_at if launch.ended_at is not None else now
    heard = session.tally.words > 0
    last_at = session.last_activity_at
    open_turn = session.doing.turn or (death is not None and death.open_turn)
    tally = silent(session.tally, last_at, until) if open_turn else session.tally
    spent, before = session.spent, session.spent_before
    tokens = spent.input_tokens > before.input_tokens or spent.output_tokens > before.output_tokens
    return Summary(
        duration_s=None if launch.started_at is None else round(max(0.0, until - launch.started_at), 3),
        turns=spent.turns - before.turns if heard else None,
        tools=tally.tools if heard else None,
        failed_tools=tally.failed_tools if heard else None,
        words=tally.words,
        input_tokens=spent.input_tokens - before.input_tokens if tokens else None,
        output_tokens=spent.output_tokens - before.output_tokens if tokens else None,
        cached_tokens=spent.cached_tokens - before.cached_tokens if tokens else None,
        cost_usd=round(spent.cost_usd - before.cost_usd, 6) if spent.cost_usd > before.cost_usd else None,
        stalls=tuple((one.verdict, one.count) for one in tally.stalls),
        longest_silence_s=round(tally.longest_silence_s, 3) if heard else None,
        peak_bytes=tally.peak_bytes,
        cause=None if death is None else death.cause.value,
        exit_code=None if death is None else death.exit_code,
        signal=None if death is None else death.signal,
        ended_by=None if death is None else ended_by(death),
    )


def ended_by(death: Death) -> str:
    """Return who ended a launch."""
    if death.intent is not None and death.cause in (Cause.OPERATOR, Cause.POLICY, Cause.UNHEALTHY, Cause.STALLED):
        return f"{death.intent.actor} ({death.intent.verb})"
    return ENDED_BY[death.cause]


def await_summary(book: Book, session: Session, now: float) -> None:
    """A launch has died and left its pane open: nothing says when the rest of it was read, so that is given a while."""
    if session.launch is not None and session.launch.ended_at is not None and not session.launch.summarised:
        book.do(SetTimer(session.id, TIMER, now + LATEST_S))


def summarise(book: Book, session: Session, now: float) -> Session:
    """Write the summary of a launch that has died, unless it is there; return the session as it is then."""
    launch, death = session.launch, session.last_death
    if launch is None or launch.ended_at is None or launch.summarised or death is None or death.launch_id != launch.id:
        return session
    summary = summary_of(session, now)
    assert summary is not None
    book.log(now, session, KIND, death=death.id, **told(summary))
    if session.recent[-KEPT_OF_DEATH:] != death.said:
        book.do(Amend(replace(death, said=session.recent[-KEPT_OF_DEATH:])))
    launch = replace(launch, summarised=True)
    book.change.launches.append(launch)
    return book.keep(replace(session, launch=launch))


def timer(book: Book, session: Session, now: float) -> None:
    """The rest of a dead launch was waited for long enough."""
    summarise(book, session, now)


def told(summary: Summary) -> dict[str, str | int | float | dict[str, int] | None]:
    """Return a summary as the event log and the interface have it."""
    return {
        "cause": summary.cause,
        "exit_code": summary.exit_code,
        "signal": summary.signal,
        "ended_by": summary.ended_by,
        "duration_s": summary.duration_s,
        "turns": summary.turns,
        "tools": summary.tools,
        "failed_tools": summary.failed_tools,
        "words": summary.words,
        "input_tokens": summary.input_tokens,
        "output_tokens": summary.output_tokens,
        "cached_tokens": summary.cached_tokens,
        "cost_usd": summary.cost_usd,
        "stalls": dict(summary.stalls),
        "longest_silence_s": summary.longest_silence_s,
        "peak_rss_bytes": summary.peak_bytes,
    }
