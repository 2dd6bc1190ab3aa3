"""Remedies: what Vigil may do about a stalled agent, cheapest first, and what forbids it; without a row it only warns."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from vigil.core.model.death import Confidence
from vigil.core.model.evidence import Child
from vigil.core.model.session import Session, State
from vigil.core.model.stall import Thresholds
from vigil.core.rules.stall.case import Silence
from vigil.core.rules.stall.tool import adapters, blocked, holders
from vigil.core.rules.stall.verdict import StallVerdict

WINDOWS = 2  # equal findings in a row before a remedy (P2)
SENSORS = 2  # independent sensors before a remedy (P2)


class Remedy(StrEnum):
    """A remedy for a stalled agent; Vigil verifies each before the next."""

    CHILD = "end-child"  # the process that hangs, and not the agent
    INTERRUPT = "interrupt"  # the turn
    STDIN = "close-stdin"  # of a headless agent that reads prompts from it
    END = "end"  # TERM, its grace, KILL


V = StallVerdict
LADDER = (Remedy.INTERRUPT, Remedy.STDIN, Remedy.END)
# UNINTERRUPTIBLE has none: the host is at fault, and no signal reaches the process.
REMEDIES: dict[StallVerdict, tuple[Remedy, ...]] = {
    V.BLOCKED_CHILD: (Remedy.CHILD, *LADDER),
    V.LEAKED_PIPE: (Remedy.CHILD, *LADDER),
    V.TOOL_OVERRUN: (Remedy.CHILD, *LADDER),
    V.WEDGED_AFTER_TOOL: LADDER,
    V.LOST_RESULT: LADDER,
    V.UPSTREAM_STALL: LADDER,
    V.NETWORK_DEAD: LADDER,
    V.RESUME_POISONED: LADDER,
    V.SPINNING: LADDER,
    V.START_BLOCKED: (Remedy.STDIN, Remedy.END),
    V.LIMBO: (Remedy.END,),  # its answer is said and stored
}


def hung(case: Silence, verdict: StallVerdict) -> Child | None:
    """Return the one process to end as a remedy instead of the agent, if certain."""
    if verdict is V.BLOCKED_CHILD:
        found = blocked(case)
    elif verdict is V.LEAKED_PIPE:
        found = holders(case)
    elif verdict is V.TOOL_OVERRUN:
        found = adapters(case) or _topmost(case)
    else:
        found = ()
    return found[0] if found else None


def _topmost(case: Silence) -> tuple[Child, ...]:
    """Return a tool's topmost process, to end as a remedy; MCP tools have none."""
    own = case.own or ()
    top = [child for child in own if child.parent == case.evidence.pid]
    return tuple(top) if len(top) == 1 and not any(one.name.startswith("mcp") for one in case.doing.tools) else ()


class RemedySight(NamedTuple):
    session: Session
    verdict: StallVerdict
    confidence: Confidence
    independent: int
    samples: int
    silent_s: float
    limits: Thresholds


class RemedyKeep(NamedTuple):
    why: Callable[[RemedySight], str]
    holds: Callable[[RemedySight], bool]


KEEPS = (  # The first row that holds keeps. People stand first (P2).
    RemedyKeep(lambda _: "a person is attached", lambda s: s.session.vitals.attached > 0),
    RemedyKeep(lambda _: "its life is in doubt", lambda s: s.session.vitals.doubt is not None),
    RemedyKeep(lambda s: f"it is {s.session.state}", lambda s: s.session.state not in (State.RUNNING, State.STARTING)),
    RemedyKeep(lambda s: f"{s.verdict} has no remedy", lambda s: s.verdict not in REMEDIES),
    RemedyKeep(lambda _: "automatic remedies are off (stall_auto_kill)", lambda s: not s.limits.stall_auto_kill),
    RemedyKeep(lambda _: "it is not sure enough", lambda s: s.confidence is Confidence.UNKNOWN),
    RemedyKeep(
        lambda s: f"only {s.independent} of {SENSORS} independent sensors speak for it",
        lambda s: s.independent < SENSORS,
    ),
    RemedyKeep(lambda s: f"found so {s.samples} of {WINDOWS} times", lambda s: s.samples < WINDOWS),
    RemedyKeep(
        lambda s: f"it is silent for {s.silent_s:.0f} of {s.limits.liveness_timeout_s:.0f} s",
        lambda s: s.verdict is not V.LIMBO and s.silent_s < s.limits.liveness_timeout_s,
    ),
)


def kept_by(sight: RemedySight) -> str:
    """Return why no remedy is tried; empty if one may be."""
    return next((row.why(sight) for row in KEEPS if row.holds(sight)), "")


def next_step(verdict: StallVerdict, before: str, headless_input: bool, child: Child | None) -> Remedy | None:
    """Return the remedy after the last one tried, without those that do not apply."""
    steps = [step for step in REMEDIES.get(verdict, ()) if step is not Remedy.CHILD or child is not None]
    steps = [step for step in steps if step is not Remedy.STDIN or headless_input]
    order = list(Remedy)
    later = order[order.index(Remedy(before)) + 1 :] if before else order
    return next((step for step in steps if step in later), steps[-1] if steps else None)  # the last is tried again
