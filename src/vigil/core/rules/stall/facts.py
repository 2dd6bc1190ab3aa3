"""Facts: true, false or unknown of a silent agent, each from one sensor; unknown is never false (P7, DESIGN 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from vigil.core.model.evidence import Child
from vigil.core.model.speech import What
from vigil.core.rules.activity import COMPACTION
from vigil.core.rules.stall import speech, tool, work
from vigil.core.rules.stall.case import SUBAGENT_TOOLS, Silence, is_mcp
from vigil.words import few, minutes, some


class Origin(StrEnum):
    """The sensor that a silent agent's fact rests on; facts of two sensors are independent."""

    WORDS = "words"
    OURS = "ours"
    STATE = "state"
    CPU = "cpu"
    BYTES = "bytes"
    SOCKETS = "sockets"
    FILES = "files"
    PROCESSES = "processes"
    PIPES = "pipes"


KERNEL = frozenset(Origin) - {Origin.WORDS, Origin.OURS}  # these count towards two independent facts


class StallFact(NamedTuple):
    origin: Origin
    holds: Callable[[Silence], bool | None]
    words: Callable[[Silence], str]


def _no(value: bool | None) -> bool | None:
    return None if value is None else not value


def age(seconds: float) -> str:
    return minutes(seconds, from_s=600.0)


def rate(value: float | None) -> str:
    return "unknown" if value is None else f"{value * 100:.1f} % of a core"


def tools(case: Silence) -> str:
    names = ", ".join(dict.fromkeys(one.name or "a tool" for one in case.doing.tools)) or "no tool"
    return f"{names} open for {age(case.tool_age_s)}" if case.tool_age_s is not None else names


def told(children: Iterable[Child]) -> str:
    return few([f"{child.name} (pid {child.process.pid}{_halted(child)})" for child in children], 3) or "none"


def _halted(child: Child) -> str:
    """Put into words, for a fact, what keeps a silent agent's process from working."""
    if child.state == "D":
        return f", waits in the kernel: {child.wchan or 'unknown where'}"
    return ", stopped" if child.state in ("T", "t") else ""


def _questions(count: int) -> str:
    return "a question waits for a person" if count == 1 else f"{count} questions wait for a person"


def _received(case: Silence) -> str:
    count, last_s = case.evidence.sockets.value, case.evidence.received_s.value
    if not count:
        return "it has no connection" if count == 0 else "its connections cannot be read"
    came = "no byte came" if last_s is None else f"the last byte came {age(last_s)} ago"
    return f"{some(round(count), 'connection')}, {came}"


def _spinning(case: Silence) -> str:
    waits = f", and waits {work.main_starved(case):.0%} of the time for more" if work.main_starved(case) else ""
    return f"its own process uses {rate(case.evidence.main_cpu.value)}{waits}"


def _in_circles(case: Silence) -> str:
    if case.trail.times >= (speech.COMPACTIONS if case.trail.again == COMPACTION else speech.CIRCLES):
        return f"{case.trail.again} {case.trail.times} times in a row, and nothing else"
    return f"it speaks, and nothing took it further for {age(case.now - case.trail.further_at)}"


def _quietly(case: Silence) -> str:
    return f"no word for {age(case.silent_s)}, {age(case.patience_s)} is allowed with what is open"


O = Origin  # noqa: E741
FACTS: dict[str, StallFact] = {
    "late": StallFact(O.OURS, work.late, lambda c: f"Vigil read this {age(c.evidence.late_s.value or 0)} late"),
    "stopped": StallFact(
        O.STATE, lambda c: work.in_state(c, "Tt"), lambda c: f"the kernel says it is stopped ({c.evidence.state.value})"
    ),
    "traced": StallFact(O.STATE, lambda c: c.evidence.traced.value, lambda _: "a debugger holds it"),
    "uninterruptible": StallFact(
        O.STATE,
        lambda c: work.in_state(c, "D"),
        lambda c: f"it waits in the kernel ({c.evidence.wchan.value or 'unknown where'})",
    ),
    "asks": StallFact(O.WORDS, lambda c: bool(c.doing.asked), lambda c: _questions(len(c.doing.asked))),
    "tries again": StallFact(O.WORDS, speech.tries_again, lambda _: "it said that a limit or a failing model holds it"),
    "waits": StallFact(O.WORDS, speech.waits, lambda _: "it declared a wait that is not over"),
    "turn open": StallFact(O.WORDS, lambda c: c.doing.turn or bool(c.doing.tools), lambda _: "a turn is open"),
    "tool open": StallFact(O.WORDS, lambda c: bool(c.doing.tools), tools),
    "mcp open": StallFact(O.WORDS, lambda c: any(map(is_mcp, c.doing.tools)), tools),
    "sub-agent open": StallFact(O.WORDS, lambda c: any(one.name in SUBAGENT_TOOLS for one in c.doing.tools), tools),
    "sub-agents told": StallFact(
        O.WORDS, lambda c: bool(c.trail.subagents), lambda c: some(len(c.trail.subagents), "sub-agent runs", "sub-agents run")
    ),
    "tool ended last": StallFact(
        O.WORDS, lambda c: c.trail.last == What.TOOL_ENDED, lambda _: "the last it said was that a tool ended"
    ),
    "said lately": StallFact(O.WORDS, speech.said_lately, lambda c: f"its last word came {age(c.silent_s)} ago"),
    "silent": StallFact(O.WORDS, lambda c: not speech.said_lately(c), _quietly),
    "quiet": StallFact(O.WORDS, speech.quiet, _quietly),
    "far too long": StallFact(O.WORDS, speech.far_too_long, lambda c: f"no word for {age(c.silent_s)}, whatever comes in"),
    "circles": StallFact(O.WORDS, speech.circles, _in_circles),
    "finished": StallFact(O.WORDS, speech.finished, lambda _: "it has said that it is done"),
    "over long": StallFact(O.WORDS, speech.over_long, lambda c: f"that was {age(c.now - (c.trail.result_at or c.now))} ago"),
    "empty": StallFact(O.WORDS, lambda c: c.trail.empty, lambda _: "its run came to nothing: no turn, nothing spent"),
    "resumed": StallFact(O.WORDS, lambda c: c.resumed, lambda _: "it took up an earlier conversation"),
    "stalled before": StallFact(O.WORDS, lambda c: c.stalled_before, lambda _: "that conversation had stalled before"),
    "never spoke": StallFact(O.WORDS, lambda c: not c.trail.spoke, lambda c: f"no word since its start {age(c.silent_s)} ago"),
    "ought to speak": StallFact(O.WORDS, lambda c: c.speaks, lambda _: "this kind of agent says what it does"),
    "writes": StallFact(O.FILES, work.writes, lambda _: "what it writes still grows"),
    "files unread": StallFact(O.FILES, work.files_unread, lambda _: "whether it writes could not be read"),
    "still": StallFact(O.FILES, lambda c: _no(work.writes(c)), lambda _: "nothing that it writes grows"),
    "busy": StallFact(O.CPU, work.busy, lambda c: f"it and what is below it use {rate(c.evidence.tree_cpu.value)}"),
    "calm": StallFact(
        O.CPU, lambda c: _no(work.busy(c)), lambda c: f"it uses {rate(c.evidence.tree_cpu.value)}, as when it waits"
    ),
    "spins": StallFact(O.CPU, work.spins, _spinning),
    "moves bytes": StallFact(O.BYTES, work.moves_bytes, lambda c: f"it moves {c.evidence.io.value or 0:.0f} bytes a second"),
    "moves none": StallFact(O.BYTES, lambda c: _no(work.moves_bytes(c)), lambda _: "it reads and writes nothing"),
    "connected": StallFact(O.SOCKETS, work.is_connected, _received),
    "bytes come": StallFact(O.SOCKETS, work.bytes_come, _received),
    "no byte": StallFact(O.SOCKETS, lambda c: _no(work.bytes_come(c)), _received),
    "network dead": StallFact(
        O.SOCKETS,
        work.network_dead,
        lambda c: _received(c) if not c.evidence.sockets.value else "nobody acknowledges what it sent",
    ),
    "tool runs": StallFact(O.PROCESSES, tool.runs, lambda c: f"processes of its tool: {told(c.own or ())}"),
    "no tool process": StallFact(O.PROCESSES, lambda c: _no(tool.runs(c)), lambda _: "no process of its tool is there"),
    "tool ended unseen": StallFact(
        O.PROCESSES, tool.ended_unseen, lambda _: "its tool's process has ended, and it does not see that"
    ),
    "tool works": StallFact(O.CPU, tool.works, lambda c: f"its tool works: {told(c.own or ())}"),
    "other tool works": StallFact(O.CPU, tool.other_works, lambda c: f"another tool works beside it: {told(c.own or ())}"),
    "tool stuck": StallFact(
        O.STATE, tool.is_stuck, lambda c: f"no signal reaches a process of its tool: {told(tool.stuck(c))}"
    ),
    "tool calm": StallFact(O.CPU, tool.is_calm, lambda c: f"its tool uses nothing: {told(c.own or ())}"),
    "child waits": StallFact(
        O.PROCESSES, tool.child_waits, lambda c: f"{told(tool.blocked(c))} waits for input that nobody gives"
    ),
    "pipe held": StallFact(
        O.PIPES, tool.pipe_held, lambda c: f"{told(tool.holders(c))} outlived its tool and holds its pipe open"
    ),
    "adapter deaf": StallFact(
        O.SOCKETS, tool.adapter_deaf, lambda c: f"its MCP server {told(tool.adapters(c))} receives nothing"
    ),
    "background lives": StallFact(O.PROCESSES, work.background_lives, lambda _: "something of its work goes on"),
    "left running": StallFact(
        O.PROCESSES, lambda c: bool(tool.left_running(c)), lambda c: f"it left something running: {told(tool.left_running(c))}"
    ),
}
