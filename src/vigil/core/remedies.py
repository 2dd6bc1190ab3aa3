"""Remedies: what may be done about a stalled agent, from the cheapest up, and what keeps it from being done.

Pure, and tables. A verdict that is not listed has no remedy: it is told to a human, and that is all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from vigil.core.case import Case
from vigil.core.evidence import Child
from vigil.core.facts import adapters, blocked, holders
from vigil.core.model import Confidence, Session, State
from vigil.core.patience import Limits
from vigil.core.stall import Verdict

WINDOWS = 2  # equal findings in a row before anything is done (P2)
SENSORS = 2  # independent ones that speak for it (P2)


class Step(StrEnum):
    """One rung; each is verified before the next."""

    CHILD = "end-child"  # the process that hangs, and not the agent
    INTERRUPT = "interrupt"  # the turn
    STDIN = "close-stdin"  # of a headless agent that reads prompts from it
    END = "end"  # TERM, its grace, KILL


V = Verdict
LADDER = (Step.INTERRUPT, Step.STDIN, Step.END)
REMEDIES: dict[Verdict, tuple[Step, ...]] = {
    V.BLOCKED_CHILD: (Step.CHILD, *LADDER),
    V.LEAKED_PIPE: (Step.CHILD, *LADDER),
    V.TOOL_OVERRUN: (Step.CHILD, *LADDER),
    V.WEDGED_AFTER_TOOL: LADDER,
    V.LOST_RESULT: LADDER,
    V.UPSTREAM_STALL: LADDER,
    V.NETWORK_DEAD: LADDER,
    V.RESUME_POISONED: LADDER,
    V.SPINNING: LADDER,
    V.START_BLOCKED: (Step.STDIN, Step.END),
    V.LIMBO: (Step.END,),  # its answer is safe: it has said it, and that is stored
}


def hung(case: Case, verdict: Verdict) -> Child | None:
    """Return the one process to end instead of the agent, where it is known; never one of which that is only likely."""
    if verdict is V.BLOCKED_CHILD:
        found = blocked(case)
    elif verdict is V.LEAKED_PIPE:
        found = holders(case)
    elif verdict is V.TOOL_OVERRUN:
        found = adapters(case) or _topmost(case)
    else:
        found = ()
    return found[0] if found else None


def _topmost(case: Case) -> tuple[Child, ...]:
    """Return the process of an open tool that its others are below; a tool of an MCP server has none of its own."""
    own = case.own or ()
    top = [child for child in own if child.parent == case.evidence.pid]
    return tuple(top) if len(top) == 1 and not any(one.name.startswith("mcp") for one in case.doing.tools) else ()


@dataclass(frozen=True, slots=True)
class Sight:
    """What the rows that keep look at."""

    session: Session
    verdict: Verdict
    confidence: Confidence
    independent: int
    samples: int
    silent_s: float
    limits: Limits


@dataclass(frozen=True, slots=True)
class Keep:
    """One row: why nothing is done, and when that holds."""

    why: Callable[[Sight], str]
    holds: Callable[[Sight], bool]


KEEPS = (  # The first row that holds keeps. People stand first (P2).
    Keep(lambda _: "a person is attached", lambda s: s.session.attached > 0),
    Keep(lambda _: "its life is in doubt", lambda s: s.session.doubt is not None),
    Keep(lambda s: f"it is {s.session.state}", lambda s: s.session.state not in (State.RUNNING, State.STARTING)),
    Keep(lambda s: f"{s.verdict} has no remedy", lambda s: s.verdict not in REMEDIES),
    Keep(lambda _: "automatic remedies are off (stall_auto_kill)", lambda s: not s.limits.stall_auto_kill),
    Keep(lambda _: "it is not sure enough", lambda s: s.confidence is Confidence.UNKNOWN),
    Keep(
        lambda s: f"only {s.independent} of {SENSORS} independent sensors speak for it",
        lambda s: s.independent < SENSORS,
    ),
    Keep(lambda s: f"found so {s.samples} of {WINDOWS} times", lambda s: s.samples < WINDOWS),
    Keep(
        lambda s: f"it is silent for {s.silent_s:.0f} of {s.limits.liveness_timeout_s:.0f} s",
        lambda s: s.verdict is not V.LIMBO and s.silent_s < s.limits.liveness_timeout_s,
    ),
)


def kept_by(sight: Sight) -> str:
    """Return why nothing is done about a stalled agent; nothing if something may be."""
    return next((row.why(sight) for row in KEEPS if row.holds(sight)), "")


def next_step(verdict: Verdict, before: str, headless_input: bool, child: Child | None) -> Step | None:
    """Return the rung after the last one that was tried; those that there is nothing for are left out."""
    steps = [step for step in REMEDIES.get(verdict, ()) if step is not Step.CHILD or child is not None]
    steps = [step for step in steps if step is not Step.STDIN or headless_input]
    order = list(Step)
    later = order[order.index(Step(before)) + 1 :] if before else order
    return next((step for step in steps if step in later), steps[-1] if steps else None)  # the last is tried again
