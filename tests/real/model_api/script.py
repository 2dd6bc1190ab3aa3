"""The script: what the model does at each request of a scenario, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WORDS = "I have looked at it, and it is as it should be: there is nothing more to do here for now. All done."
SLEEP = 'python3 -c "import time; time.sleep({})"'  # a bare sleep is refused by some clients
WORKS_S = 600  # a tool that is still at work whenever a test looks


@dataclass(frozen=True)
class Say:
    """It answers, word by word."""

    pause_s: float = 0.0  # between words
    breaks: Literal["", "stall", "reset"] = ""  # what becomes of the stream half-way


@dataclass(frozen=True)
class Use:
    """It calls the client's shell, or another tool that takes a command."""

    command: str
    after_s: float = 0.0
    tool: str = ""


@dataclass(frozen=True)
class Refuse:
    """It answers with a status that is no answer."""

    status: int
    retry_after_s: int | None = None
    resets_in_s: int | None = None  # said in words, as an account's limit is


@dataclass(frozen=True)
class Break:
    """It never answers."""

    how: Literal["hang", "reset"]


Act = Say | Use | Refuse | Break

# One act a request, in order; the last is repeated for ever.
SCENARIOS: dict[str, tuple[Act, ...]] = {
    "answer": (Say(),),
    "tool": (Use("touch made-by-a-tool"), Say()),
    "long-tool": (Use(SLEEP.format(WORKS_S)), Say()),
    "deaf-tool": (Use("anything", tool="mcp__deaf__wait"), Say()),
    "two-tools": (Use(SLEEP.format(1), after_s=1), Use("touch made-by-a-tool"), Say()),  # slow enough to be seen at each
    "slow": (Say(pause_s=0.25),),
    "stall": (Say(breaks="stall"),),
    "hang": (Break("hang"),),
    "limit": (Refuse(429),),
    "limit-retry-after": (Refuse(429, retry_after_s=1),),
    "limit-resets": (Refuse(429, resets_in_s=1800),),
    "limit-twice": (Refuse(429), Refuse(429, retry_after_s=1), Say()),
    "overload": (Refuse(529),),
    "overload-twice": (Refuse(529), Refuse(529), Say()),
    "failure": (Refuse(500),),
    "failure-twice": (Refuse(500), Refuse(500), Say()),
    "unavailable": (Refuse(503),),
    "unavailable-twice": (Refuse(503), Refuse(503), Say()),
    "reset": (Break("reset"),),
    "reset-twice": (Break("reset"), Break("reset"), Say()),
    "reset-mid-stream": (Say(breaks="reset"),),
    "bad-login": (Refuse(401),),
}


def act_at(scenario: str, number: int) -> Act:
    """Return what is done at a client's request of this number, from 1."""
    acts = SCENARIOS[scenario]
    return acts[min(number, len(acts)) - 1]
