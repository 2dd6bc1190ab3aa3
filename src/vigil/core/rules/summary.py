"""Summary: what Vigil counts of a launch, and what it says at its end: work, cost, who ended it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from vigil.core.model.death import Cause, Death
from vigil.core.model.progress import Stalls, Tally
from vigil.core.model.replace import replace
from vigil.core.model.session import Session
from vigil.core.model.speech import Said, What
from vigil.core.rules.activity import UNSAID

VERDICTS = 20  # kinds of stalls that are counted apart


def count_word(tally: Tally, said: Said, is_new: bool) -> Tally:
    """Count an agent's word into its launch's summary, unless another source told it before."""
    if said.what in UNSAID or not is_new:
        return tally
    ended = said.what is What.TOOL_ENDED
    return replace(
        tally,
        words=tally.words + 1,
        tools=tally.tools + (said.what is What.TOOL_STARTED),
        failed_tools=tally.failed_tools + (ended and said.failed),
    )


def count_silence(tally: Tally, from_at: float | None, until: float) -> Tally:
    """Count the longest silence into a launch's summary; `from_at` None is an unknown begin."""
    lasted_s = 0.0 if from_at is None else until - from_at
    return replace(tally, longest_silence_s=lasted_s) if lasted_s > tally.longest_silence_s else tally


def count_stall(tally: Tally, verdict: str) -> Tally:
    known = {one.verdict: one.count for one in tally.stalls}
    if verdict not in known and len(known) >= VERDICTS:
        return tally
    known[verdict] = known.get(verdict, 0) + 1
    return replace(tally, stalls=tuple(Stalls(name, count) for name, count in known.items()))


def count_memory(tally: Tally, memory_bytes: int) -> Tally:
    return replace(tally, peak_bytes=max(memory_bytes, tally.peak_bytes or 0))


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
    Cause.PANE_CLOSED: "its pane's end",
    Cause.KILLED_BY_UNKNOWN: "somebody outside Vigil",
    Cause.UNOBSERVED: "nobody saw who",
    Cause.HOST_REBOOTED: "the host, which was booted anew",
    Cause.LIMIT: "itself, at a usage limit",
    Cause.AUTH: "itself, because it was not let in",
}


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of what one launch did; None is unknown: not said, or not measured."""

    cause: str | None  # None: it lives
    exit_code: int | None
    signal: int | None
    ended_by: str | None
    duration_s: float | None
    turns: int | None
    tools: int | None
    failed_tools: int | None
    words: int
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost_usd: float | None
    stalls: dict[str, int]  # by verdict
    longest_silence_s: float | None
    peak_rss_bytes: int | None


def summary_of(session: Session, now: float) -> Summary | None:
    """Return the summary of what a session's launch did; None if it has none."""
    launch = session.launch
    if launch is None:
        return None
    death = session.last_death if session.last_death is not None and session.last_death.launch_id == launch.id else None
    until = launch.ended_at if launch.ended_at is not None else now
    heard = session.vitals.tally.words > 0
    last_at = session.last_activity_at
    open_turn = session.vitals.doing.turn or (death is not None and death.open_turn)
    tally = count_silence(session.vitals.tally, last_at, until) if open_turn else session.vitals.tally
    spent, before = session.spent, session.vitals.spent_before
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
        stalls={one.verdict: one.count for one in tally.stalls},
        longest_silence_s=round(tally.longest_silence_s, 3) if heard else None,
        peak_rss_bytes=tally.peak_bytes,
        cause=None if death is None else death.cause.value,
        exit_code=None if death is None else death.exit_code,
        signal=None if death is None else death.signal,
        ended_by=None if death is None else ended_by(death),
    )


def ended_by(death: Death) -> str:
    if death.intent is not None and death.cause in (Cause.OPERATOR, Cause.POLICY, Cause.UNHEALTHY, Cause.STALLED):
        return f"{death.intent.actor} ({death.intent.verb})"
    return ENDED_BY[death.cause]


def told(summary: Summary) -> dict[str, Any]:
    """Return a summary as the event log and the interface show it."""
    return asdict(summary)
