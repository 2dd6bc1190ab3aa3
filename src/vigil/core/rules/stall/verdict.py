"""Verdict: why a living agent says nothing, from the evidence, with confidence and reasons (DESIGN 5).

A row names the facts it needs, those that exclude it and those that leave it in doubt. The first that holds decides: rows of
progress stand first, so no later one outranks it (P2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from vigil.core.model.death import Confidence
from vigil.core.model.evidence import Number
from vigil.core.model.stall import Sign
from vigil.core.rules.stall.case import Silence, what_is_open
from vigil.core.rules.stall.facts import FACTS, KERNEL, age, rate, told, tools


class StallVerdict(StrEnum):
    WORKING = "working"
    THINKING = "thinking"
    TOOL_RUNNING = "tool-running"
    WAITING_HUMAN = "waiting-human"
    WAITING_TIMER = "waiting-timer"
    THROTTLED = "throttled"
    UPSTREAM_STALL = "upstream-stall"
    NETWORK_DEAD = "network-dead"
    WEDGED_AFTER_TOOL = "wedged-after-tool"
    LOST_RESULT = "lost-result"
    TOOL_OVERRUN = "tool-overrun"
    BLOCKED_CHILD = "blocked-child"
    LEAKED_PIPE = "leaked-pipe"
    SPINNING = "spinning"
    STOPPED = "stopped"
    UNINTERRUPTIBLE = "uninterruptible"
    LIVELOCK = "livelock"
    START_BLOCKED = "start-blocked"
    LIMBO = "limbo"
    RESUME_POISONED = "resume-poisoned"
    SUPERVISOR_LATE = "supervisor-late"
    UNKNOWN = "unknown"


V = StallVerdict
WELL = frozenset({V.WORKING, V.THINKING, V.TOOL_RUNNING, V.WAITING_HUMAN, V.WAITING_TIMER, V.THROTTLED})
VOID = frozenset({V.SUPERVISOR_LATE})  # Vigil concludes nothing
SICK = frozenset(StallVerdict) - WELL - VOID
SAMPLES: dict[StallVerdict, int] = {V.UNINTERRUPTIBLE: 3, V.LOST_RESULT: 2}  # equal findings before a warning


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """One stall verdict: facts it needs, and those that exclude, doubt or support it."""

    verdict: StallVerdict
    needs: tuple[str, ...]
    excludes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    confidence: Confidence = Confidence.LIKELY


SURE = Confidence.CERTAIN
DEAF = ("calm", "no byte")
UNREAD_FILES = ("files unread",)
ROWS = (
    VerdictRow(V.SUPERVISOR_LATE, ("late",), confidence=SURE),
    VerdictRow(V.STOPPED, ("stopped",), ("traced",), confidence=SURE),
    VerdictRow(V.WORKING, ("traced",)),
    VerdictRow(V.WAITING_HUMAN, ("asks",), confidence=SURE),
    VerdictRow(V.RESUME_POISONED, ("resumed", "finished", "empty"), confidence=SURE),
    VerdictRow(V.WORKING, ("finished", "background lives")),
    VerdictRow(
        V.LIMBO,
        ("finished", "over long"),
        ("turn open", "background lives"),
        doubts=("bytes come", "left running", "sub-agents told", *UNREAD_FILES),
        supports=(*DEAF, "still"),
    ),
    VerdictRow(V.WORKING, ("finished",)),
    VerdictRow(V.THROTTLED, ("tries again",), confidence=SURE),
    VerdictRow(V.WAITING_TIMER, ("waits",), confidence=SURE),
    VerdictRow(V.LIVELOCK, ("turn open", "circles"), ("tool works",), confidence=Confidence.UNKNOWN),
    VerdictRow(V.WORKING, ("writes",)),
    VerdictRow(V.LOST_RESULT, ("tool open", "quiet", "tool ended unseen"), ("bytes come",), UNREAD_FILES, ("still", "no byte")),
    VerdictRow(
        V.LEAKED_PIPE, ("tool open", "quiet", "pipe held", "no tool process"), ("mcp open",), UNREAD_FILES, (*DEAF, "still")
    ),
    VerdictRow(V.BLOCKED_CHILD, ("tool open", "quiet", "child waits", "tool calm"), (), UNREAD_FILES, ("still",)),
    VerdictRow(
        V.LOST_RESULT,
        ("tool open", "quiet", "no tool process", *DEAF),
        ("mcp open", "sub-agents told", "moves bytes", "pipe held"),
        UNREAD_FILES,
        ("still",),
    ),
    VerdictRow(V.UNINTERRUPTIBLE, ("tool open", "silent", "tool stuck"), ("tool works",), confidence=SURE),
    VerdictRow(
        V.TOOL_OVERRUN,
        ("mcp open", "silent"),
        doubts=("bytes come", "other tool works", *UNREAD_FILES),
        supports=("adapter deaf", "no byte", "calm", "still"),
    ),
    VerdictRow(V.TOOL_OVERRUN, ("sub-agent open", "silent"), ("tool works", "bytes come"), UNREAD_FILES, ("still", *DEAF)),
    VerdictRow(
        V.TOOL_OVERRUN, ("tool open", "silent", "tool runs", "tool calm"), ("tool works",), UNREAD_FILES, ("no byte", "still")
    ),
    VerdictRow(V.WORKING, ("said lately", "turn open"), ("tool open",)),
    VerdictRow(V.TOOL_RUNNING, ("tool open", "said lately")),
    VerdictRow(V.TOOL_RUNNING, ("tool open", "tool works")),
    VerdictRow(V.TOOL_RUNNING, ("tool open", "bytes come"), ("far too long",)),
    VerdictRow(V.THINKING, ("turn open", "bytes come"), ("tool open", "far too long")),
    VerdictRow(V.UNINTERRUPTIBLE, ("uninterruptible", "silent"), confidence=SURE),
    VerdictRow(
        V.START_BLOCKED,
        ("never spoke", "ought to speak", "silent"),
        ("busy", "moves bytes", "bytes come"),
        UNREAD_FILES,
        DEAF,
    ),
    VerdictRow(V.RESUME_POISONED, ("resumed", "stalled before", "turn open", "silent", *DEAF), ("tool open",), UNREAD_FILES),
    VerdictRow(
        V.SPINNING,
        ("turn open", "silent", "spins", "moves none"),
        ("tool runs", "bytes come"),
        UNREAD_FILES,
        ("still", "no byte"),
    ),
    VerdictRow(
        V.NETWORK_DEAD, ("turn open", "silent", "network dead", "calm"), ("tool open", "moves bytes"), UNREAD_FILES, ("still",)
    ),
    VerdictRow(
        V.WEDGED_AFTER_TOOL,
        ("turn open", "silent", "tool ended last", "connected", *DEAF),
        ("tool open", "moves bytes"),
        UNREAD_FILES,
        ("still",),
    ),
    VerdictRow(
        V.UPSTREAM_STALL, ("turn open", "silent", "connected", *DEAF), ("tool open", "moves bytes"), UNREAD_FILES, ("still",)
    ),
    VerdictRow(V.WORKING, ("busy",)),
    VerdictRow(V.WORKING, ("moves bytes",)),
    VerdictRow(V.WORKING, ("said lately",)),
)


@dataclass(frozen=True, slots=True)
class StallFinding:
    verdict: StallVerdict
    confidence: Confidence
    reasons: tuple[str, ...]
    independent: int  # kernel sensors that speak for it
    signs: tuple[Sign, ...]
    ruled_out: tuple[str, ...]


def classify(case: Silence) -> StallFinding:
    """Return the verdict on a silent agent; unknown if no row fits."""
    held = {name: fact.holds(case) for name, fact in FACTS.items()}
    row = next((row for row in ROWS if _holds(row, held)), None)
    signs = tuple(signs_of(case))
    if row is None:
        return StallFinding(
            V.UNKNOWN, Confidence.UNKNOWN, tuple(_missing(case, held)), 0, signs, tuple(_ruled_out(case, held, None))
        )
    speak = [name for name in (*row.needs, *row.supports) if held[name]]
    reasons = dict.fromkeys(FACTS[name].words(case) for name in speak)
    doubts = [name for name in row.doubts if held[name]]
    unseen = [name for name in (*row.excludes, *row.doubts) if held[name] is None]
    confidence = row.confidence
    if row.verdict in SICK and (doubts or unseen):
        confidence = Confidence.UNKNOWN
        reasons |= dict.fromkeys(f"in doubt: {FACTS[name].words(case)}" for name in doubts)
        reasons |= dict.fromkeys(f"in doubt: whether this holds could not be read: {name}" for name in unseen)
    independent = len({FACTS[name].origin for name in speak} & KERNEL)
    return StallFinding(row.verdict, confidence, tuple(reasons), independent, signs, tuple(_ruled_out(case, held, row)))


def _holds(row: VerdictRow, held: dict[str, bool | None]) -> bool:
    return all(held[name] for name in row.needs) and not any(held[name] for name in row.excludes)


def _missing(case: Silence, held: dict[str, bool | None]) -> Iterable[str]:
    """Yield the reasons of an unknown verdict: what is known, and what stayed unread."""
    for name in ("turn open", "tool open", "silent", "never spoke"):
        if held[name]:
            yield FACTS[name].words(case)
    if case.doing.waits:
        yield "the wait that it declared is over, and it says nothing"
    unread = [name for name, value in UNREAD.items() if getattr(case.evidence, name).value is None for name in (value,)]
    if unread:
        yield f"could not be read: {', '.join(unread)}"


UNREAD = {"state": "its state", "tree_cpu": "its CPU", "sockets": "its connections", "descendants": "its processes"}


def _ruled_out(case: Silence, held: dict[str, bool | None], chosen: VerdictRow | None) -> Iterable[str]:
    """Yield what spoke against stall verdicts that nearly fit."""
    told = {chosen.verdict} if chosen else set()
    for row in ROWS:
        if row.verdict in told or row.verdict in WELL | VOID:
            continue
        against = [name for name in row.excludes if held[name]]
        missing = [name for name in row.needs if not held[name]]
        known = [name for name in missing if held[name] is False]
        if against and not missing:
            told.add(row.verdict)
            yield f"{row.verdict}: {FACTS[against[0]].words(case)}"
        elif len(row.needs) > 1 and len(missing) == 1 and known and FACTS[known[0]].origin in KERNEL:
            told.add(row.verdict)
            yield f"{row.verdict}: not so: {OPPOSITE.get(known[0], known[0])}"


OPPOSITE = {
    "calm": "it uses CPU",
    "no byte": "bytes come",
    "still": "what it writes grows",
    "connected": "it has no connection",
    "network dead": "its connections are well",
    "no tool process": "a process of its tool lives",
    "tool calm": "its tool works",
    "child waits": "no process of its tool waits for input",
    "pipe held": "nobody holds its tool's pipe",
    "tool ended unseen": "no process of its tool ended unseen",
    "spins": "its own process does not use a whole core",
    "moves none": "it reads and writes",
    "uninterruptible": "the kernel can interrupt it",
    "stopped": "it is not stopped",
    "tool runs": "no process of its tool is there",
    "tool stuck": "the kernel can interrupt its tool",
    "traced": "no debugger holds it",
}
SHOWN: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("main_cpu", "cpu of the agent", rate),
    ("main_waited", "waits for a processor", lambda value: f"{value:.0%} of the time"),
    ("tree_cpu", "cpu of all below", rate),
    ("window_s", "measured over", age),
    ("io", "bytes moved", lambda value: f"{value:.0f} a second"),
    ("sockets", "own connections", lambda value: f"{value:.0f}"),
    ("received_s", "last byte received", lambda value: f"{age(value)} before"),
    ("sent_s", "last byte sent", lambda value: f"{age(value)} before"),
    ("unacked", "not acknowledged", lambda value: f"{value:.0f} bytes"),
    ("printed_s", "printed", lambda value: f"{age(value)} before"),
    ("transcript_s", "transcript grew", lambda value: f"{age(value)} before"),
    ("subagents_s", "sub-agents wrote", lambda value: f"{age(value)} before"),
    ("memory_bytes", "memory", lambda value: f"{value / 1e6:.0f} MB"),
    ("descendants", "processes below", lambda value: f"{value:.0f}"),
    ("late_s", "read late by", lambda value: f"{value:.1f} s"),
)


def signs_of(case: Silence) -> Iterable[Sign]:
    """Yield a verdict's evidence to show: known entries with source and moment, others with why."""
    evidence = case.evidence
    what, patience_s = what_is_open(case.doing, case.trail, case.limits)
    yield Sign("silence", f"{age(case.silent_s)} of {age(patience_s)} ({what})", "its words", case.silent_from)
    if case.doing.tools:
        yield Sign("open tools", tools(case), "its words", min(one.since for one in case.doing.tools))
    if case.trail.last:
        yield Sign("last word", case.trail.last, "its words", case.trail.further_at)
    for name, text in (("state", evidence.state), ("wchan", evidence.wchan)):
        if text.value is not None or text.why:
            yield Sign(name, text.value or f"unknown: {text.why}", text.source, text.at)
    for name, shown, words in SHOWN:
        number: Number = getattr(evidence, name)
        if number.value is not None:
            yield Sign(shown, words(number.value), number.source, number.at)
        elif number.why:
            yield Sign(shown, f"unknown: {number.why}", number.source, number.at)
    if evidence.children:
        yield Sign("children", told(evidence.children), "procfs", evidence.at)
