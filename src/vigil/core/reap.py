"""Reap: what becomes of what runs: kept, put to sleep or ended; the first row that holds decides (DESIGN 4.5).

Pure, and a table. Rows that keep stand first, so no later row outranks a human, progress, or what could not be found out (P2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from vigil.core.activity import Activity
from vigil.core.model import ProcessId

BUSY_CPU = 0.1  # cores: an idle terminal program takes less, also one that draws a spinner
BUSY = {  # what an agent says it does, and that in words; one that waits for a person is not put away before it was answered
    Activity.STARTING: "it starts",
    Activity.WORKING: "a turn is open",
    Activity.THINKING: "the model was asked",
    Activity.TOOL: "a tool runs",
    Activity.WAITING_HUMAN: "it waits for a person",
    Activity.WAITING_TIMER: "it waits for a moment it named",
    Activity.THROTTLED: "it tries the model again",
}
WORKS = {  # what counts as work, in words; never `session_activity`, an mtime or a spinner
    "hook": "hook event",
    "stream": "event of its stream",
    "transcript": "transcript entry",
    "sub-agent": "word of a sub-agent",
    "screen": "change on its screen",
    "output": "output",
    "delivery": "delivery",
    "wake": "wake",
    "recovery": "recovery from its launch's folder",
}


class Class(StrEnum):
    """What a session is to the reaper."""

    ATTACHED = "attached"
    BUSY = "busy"
    UNKNOWN = "unknown"
    ORPHAN = "orphan"
    ARCHIVED = "archived"
    IDLE = "idle"
    KEEP = "keep"


class Action(StrEnum):
    """What is done about it."""

    KEEP = "keep"
    PARK = "park"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class Policy:
    """What the configuration says of reaping."""

    idle_ttl_s: float = 48 * 3600.0  # 0 is never
    grace_s: float = 60.0
    pressure: str = ""  # memory is short, in words: the longest idle is put to sleep


@dataclass(frozen=True, slots=True)
class Guard:
    """What must still be so in the moment of the kill; the tmux server itself compares it (P2)."""

    target: str  # the session in its server, by id
    cutoff: int  # the second before the reading, by the wall: nothing was printed since
    clients: str = ""  # who was attached, as its server lists it: nobody
    history: int | None = None  # instead of the cutoff: the pane draws a spinner, and no line was added
    printed: int | None = None  # without a server: so many bytes were printed by then


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What was read of one launch; None is what could not be."""

    launch_id: str
    at: float
    clients: int | None = 0  # people
    printed_at: float | None = None  # its pane printed last
    spins: bool = False  # it prints all the time, and shows the same
    cpu: float | None = None  # cores, of all its processes
    folder_gone_s: float | None = None  # its working folder is gone, for at least so long
    unreadable: str = ""  # what could not be found out
    guard: Guard | None = None
    survivors: tuple[ProcessId, ...] = ()  # of a launch that has ended


@dataclass(frozen=True, slots=True)
class Stray:
    """What carries this instance's mark and belongs to no launch that is known."""

    launch_id: str  # that it says it is of
    name: str
    processes: tuple[ProcessId, ...]
    server: ProcessId | None = None
    socket: str = ""
    pane: str = ""
    age_s: float = 0.0
    older_than_store: bool = False
    glimpse: Glimpse | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """All the table looks at, of one session or stray."""

    runs: bool = True
    human_clients: int = 0
    activity: str = Activity.UNKNOWN
    open: str = ""  # work that is open beside the agent's own turn
    cpu: float | None = None
    unreadable: str = ""
    orphan: str = ""  # why it is one
    orphan_s: float = 0.0  # for how long
    archived: bool = False
    quiet_s: float = 0.0  # since anything that counts as work
    last_work: str = ""
    idle_ttl_s: float = 0.0
    grace_s: float = 60.0
    kept: str = ""  # why it is none of the reaper's business


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: a class, what is done, when it holds, and the evidence that decided."""

    kind: Class
    action: Action
    holds: Callable[[Sighting], bool]
    why: Callable[[Sighting], str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a session is, what is done about it, and the evidence; the first line decided."""

    name: str
    launch_id: str
    kind: Class
    action: Action
    evidence: tuple[str, ...]


def recent_s(s: Sighting) -> float:
    """Return how long after work something counts as busy."""
    return min(s.grace_s, s.idle_ttl_s) if s.idle_ttl_s > 0 else s.grace_s


def _busy(s: Sighting) -> str:
    """Return what shows that it works; nothing if nothing does."""
    if not s.runs:
        return ""
    if s.activity in BUSY:
        return BUSY[Activity(s.activity)]
    if s.open:
        return s.open
    if s.cpu is not None and s.cpu >= BUSY_CPU:
        return f"its processes use {s.cpu:.2f} cores"
    return f"{s.last_work}" if s.quiet_s < recent_s(s) else ""


RULES = (  # The first row that holds decides.
    Rule(Class.ATTACHED, Action.KEEP, lambda s: s.human_clients > 0, lambda s: _people(s.human_clients)),
    Rule(Class.BUSY, Action.KEEP, lambda s: _busy(s) != "", _busy),
    Rule(Class.UNKNOWN, Action.KEEP, lambda s: s.unreadable != "", lambda s: s.unreadable),
    Rule(
        Class.ORPHAN,
        Action.KILL,
        lambda s: s.orphan != "" and s.orphan_s >= s.grace_s and not s.kept,
        lambda s: f"{s.orphan}, for {span(s.orphan_s)}",
    ),
    Rule(Class.ORPHAN, Action.KEEP, lambda s: s.orphan != "", lambda s: f"{s.orphan}; {s.kept or _in_grace(s)}"),
    Rule(
        Class.ARCHIVED,
        Action.KILL,
        lambda s: s.archived and s.runs and s.quiet_s >= s.grace_s,
        lambda s: f"it is archived and still runs; {s.last_work}",
    ),
    Rule(Class.ARCHIVED, Action.KEEP, lambda s: s.archived, lambda s: f"it is archived; {_in_grace(s) if s.runs else 'ended'}"),
    Rule(Class.IDLE, Action.PARK, lambda s: is_idle(s) and s.quiet_s >= s.idle_ttl_s, lambda s: s.last_work),
    Rule(Class.KEEP, Action.KEEP, lambda _s: True, lambda s: s.kept or _until_idle(s)),
)


def is_idle(s: Sighting) -> bool:
    """Say whether a session may be put to sleep at all."""
    return s.runs and s.idle_ttl_s > 0 and not s.kept


def classify(name: str, launch_id: str, s: Sighting) -> Verdict:
    """Return what a session is, by the first row that holds."""
    rule = next(rule for rule in RULES if rule.holds(s))
    why = rule.why(s)
    return Verdict(name, launch_id, rule.kind, rule.action, (why, *(fact for fact in _facts(s) if fact not in why)))


def _facts(s: Sighting) -> list[str]:
    """Return what else was known."""
    if not s.runs:
        return []
    facts = [] if s.unreadable else [_people(s.human_clients)]
    facts += [s.last_work] if s.last_work else []
    if s.activity != Activity.UNKNOWN:
        facts.append(f"its agent says: {s.activity}")
    if s.cpu is not None:
        facts.append(f"{s.cpu:.2f} cores in use")
    return facts


def _people(count: int) -> str:
    if not count:
        return "nobody is attached"
    return "a person is attached" if count == 1 else f"{count} people are attached"


def _in_grace(s: Sighting) -> str:
    left_s = s.grace_s - (s.orphan_s if s.orphan else s.quiet_s)
    return f"ended in {span(max(left_s, 0.0))} if it stays so"


def _until_idle(s: Sighting) -> str:
    if s.idle_ttl_s <= 0:
        return "it is never put to sleep (idle_ttl is 0)"
    return f"{s.last_work}; put to sleep after {span(s.idle_ttl_s)}"


def last_work(worked: Mapping[str, float], now: float) -> tuple[float, str]:
    """Return how long ago anything counted as work, and that in words: which evidence it was."""
    if not worked:
        return 0.0, "nothing is known of its work"
    kind = max(worked, key=lambda name: worked[name])
    quiet_s = max(0.0, now - worked[kind])
    return quiet_s, f"last work: {WORKS.get(kind, kind)}, {span(quiet_s)} ago"


UNITS = ((4 * 86400.0, 86400.0, "d"), (7200.0, 3600.0, "h"), (120.0, 60.0, "min"))  # from so long on, in so long ones


def span(seconds: float) -> str:
    """Return a span of time in words."""
    for least_s, unit_s, word in UNITS:
        if seconds >= least_s:
            return f"{seconds / unit_s:.0f} {word}"
    return f"{seconds:.0f} s"
