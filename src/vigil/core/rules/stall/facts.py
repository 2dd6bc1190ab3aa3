"""Facts: what can be true of a silent agent; each is true, false or unknown, and rests on one sensor (DESIGN 5).

Pure, and a table: FACTS. Unknown is never false: whoever needs a fact does not have it then (P7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from vigil.core.model.evidence import Child
from vigil.core.model.speech import What
from vigil.core.rules.activity import COMPACTION
from vigil.core.rules.stall.case import (
    GONE,
    LIMBO_S,
    SUBAGENT_TOOLS,
    TOOL_SLACK_S,
    Silence,
    is_mcp,
    tools_wait_until,
    waits_until,
)
from vigil.words import few, minutes, some

ASSUMED_IDLE = 0.05  # cores that an agent uses while it waits, before that was learned: 3 to 5 % is usual
ABOVE_IDLE = 0.05  # and so much more is work
SPINS = 0.8  # of a core, by the agent's own process
BURST_S = 0.01  # who computes for so long at a time takes all the CPU it can get; a timer needs a tenth of that
MOVES_BYTES = 1024.0  # a second
LATE_S = 2.0  # a reading that is later is void
CIRCLES = 200  # the same tool so often in a row
COMPACTIONS = 10
NOT_FURTHER = 2.0  # times the patience with a sub-agent: words come, and none takes it further
FAR_S = 3600.0  # no thought takes an hour, whatever comes over its connection
FAR_TOO_LONG = 6.0  # times the liveness timeout, where that is longer
STARTUP_S = 30.0  # what an agent starts within this serves it as long as it lives
WAITS_FOR_CHILD = frozenset({"do_wait", "wait4", "do_sigtimedwait", "sigsuspend", "__do_sys_rt_sigsuspend"})


class Origin(StrEnum):
    """Which sensor a fact rests on; two facts are independent if these differ."""

    WORDS = "words"
    OURS = "ours"
    STATE = "state"
    CPU = "cpu"
    BYTES = "bytes"
    SOCKETS = "sockets"
    FILES = "files"
    PROCESSES = "processes"
    PIPES = "pipes"


KERNEL = frozenset(Origin) - {Origin.WORDS, Origin.OURS}  # what counts towards two independent facts


@dataclass(frozen=True, slots=True)
class StallFact:
    """One fact: the sensor it rests on, when it holds, and that in words."""

    origin: Origin
    holds: Callable[[Silence], bool | None]
    words: Callable[[Silence], str]


def _no(value: bool | None) -> bool | None:
    return None if value is None else not value


def _any(values: Iterable[bool | None]) -> bool | None:
    """True if one is; unknown if none is and one is unknown."""
    found = list(values)
    return True if any(found) else None if None in found else False


def _said_lately(case: Silence) -> bool:
    return case.silent_s < case.patience_s


def _quiet(case: Silence) -> bool:
    """Silent for as long as a plain turn may be, whatever is open."""
    return case.silent_s >= case.limits.stall_after_s


def _far_too_long(case: Silence) -> bool:
    return case.silent_s >= max(FAR_S, FAR_TOO_LONG * case.limits.liveness_timeout_s)


def _late(case: Silence) -> bool | None:
    late_s = case.evidence.late_s.value
    return None if late_s is None else late_s > LATE_S


def _tries_again(case: Silence) -> bool:
    return case.doing.retries and case.now < waits_until(case.doing, case.silent_from)


def _waits(case: Silence) -> bool:
    until = tools_wait_until(case.doing)
    if until is None and case.doing.waits:
        until = waits_until(case.doing, case.silent_from)
    return until is not None and case.now < until


def _finished(case: Silence) -> bool:
    return case.runs_to_its_end and case.trail.result_at is not None and not case.doing.turn


def _over_long(case: Silence) -> bool:
    return case.trail.result_at is not None and case.now - max(case.trail.result_at, case.trail.floor) >= min(
        LIMBO_S, case.limits.stall_after_s
    )


def _circles(case: Silence) -> bool:
    trail = case.trail
    if trail.again == COMPACTION:
        return trail.times >= COMPACTIONS
    if trail.again and trail.times >= CIRCLES:
        return True
    still_s = case.now - max(trail.further_at, trail.floor)
    return case.doing.turn and trail.spoke and _speaks_on(case) and still_s >= NOT_FURTHER * case.limits.subagent_timeout_s


def _speaks_on(case: Silence) -> bool:
    """It says something all the time, and we know what: lines that nobody understands may lead anywhere."""
    return case.now - case.trail.understood_at < case.limits.stall_after_s


def _stopped(case: Silence) -> bool | None:
    state = case.evidence.state.value
    return None if state is None else state in ("T", "t")


def _in_state(case: Silence, states: str) -> bool | None:
    state = case.evidence.state.value
    return None if state is None else state in states


def _starved(waited: float | None, burst_s: float | None) -> float:
    """Return the cores that a process would have used beside those it got, were the host not busy.

    One that sleeps after a moment's work waits too, longer than it works: that is no work.
    """
    return waited if waited is not None and burst_s is not None and burst_s >= BURST_S else 0.0


def _main_starved(case: Silence) -> float:
    return _starved(case.evidence.main_waited.value, case.evidence.main_burst_s.value)


def _busy(case: Silence) -> bool | None:
    """It uses more than while it waits for input, or would if the host let it."""
    rate = case.rate(case.evidence.tree_cpu)
    if rate is None:
        return None
    rate += _main_starved(case) + sum(_starved(child.waited, child.burst_s) for child in case.evidence.children)
    return rate > (ASSUMED_IDLE if case.idle_cpu is None else case.idle_cpu) + ABOVE_IDLE


def _spins(case: Silence) -> bool | None:
    """It uses a whole core, or would if the host let it; unknown of one that runs, if nobody can say what it waited."""
    rate, least = case.rate(case.evidence.main_cpu), max(SPINS, (case.idle_cpu or 0.0) + ABOVE_IDLE)
    if rate is None or rate >= least:
        return None if rate is None else True
    if case.evidence.main_waited.value is None:
        return None if _in_state(case, "R") is not False else False
    return rate + _main_starved(case) >= least


def _if_all_was_seen(case: Silence, value: bool | None) -> bool | None:
    """Return a fact of all processes together: that it holds of none is not known while one of them is hidden."""
    return None if value is False and case.evidence.hidden.value else value


def _moves_bytes(case: Silence) -> bool | None:
    rate = case.rate(case.evidence.io)
    return None if rate is None else _if_all_was_seen(case, rate >= MOVES_BYTES)


def _connected(case: Silence) -> bool | None:
    count = case.evidence.sockets.value
    return None if count is None else _if_all_was_seen(case, count >= 1)


def _bytes_come(case: Silence) -> bool | None:
    connected = _connected(case)
    return _if_all_was_seen(case, case.is_fresh(case.evidence.received_s)) if connected else connected


def _network_dead(case: Silence) -> bool | None:
    """It has no connection at all, or nobody acknowledges what it sent over those it has."""
    connected, unacked = _connected(case), case.evidence.unacked.value
    if connected is False:
        return True
    if connected is None or unacked is None:
        return connected and None
    return unacked > 0 and _bytes_come(case) is False and case.is_fresh(case.evidence.sent_s) is False


def _writes(case: Silence) -> bool | None:
    numbers = (case.evidence.printed_s, case.evidence.transcript_s, case.evidence.subagents_s)
    known = [case.is_fresh(number) for number in numbers if number.value is not None]
    return _any(known) if known else None


def _files_unread(case: Silence) -> bool:
    """What it writes could not be looked at; a file that it never had is another matter."""
    numbers = (case.evidence.printed_s, case.evidence.transcript_s, case.evidence.subagents_s)
    return any(number.value is None and number.why for number in numbers)


def _is_mcp_open(case: Silence) -> bool:
    return any(is_mcp(one) for one in case.doing.tools)


def _is_subagent_open(case: Silence) -> bool:
    return any(one.name in SUBAGENT_TOOLS for one in case.doing.tools)


def _tool_runs(case: Silence) -> bool | None:
    return None if case.own is None else bool(case.own)


def _tool_ended_unseen(case: Silence) -> bool | None:
    """A process of the tool has ended, nobody waits for it, and no other one of it lives."""
    age_s, runs = case.tool_age_s, _tool_runs(case)
    if age_s is None or runs is None:
        return None
    dead = [child for child in case.evidence.children if child.below and child.state == "Z"]
    of_tool = [child for child in dead if child.age_s is not None and child.age_s <= age_s + TOOL_SLACK_S]
    return not runs and bool(of_tool)


def _is_child_busy(case: Silence, child: Child) -> bool | None:
    if not case.window_is_long_enough():
        return None
    cpu = None if child.cpu is None else child.cpu + _starved(child.waited, child.burst_s) > ABOVE_IDLE
    io = None if child.io is None else child.io >= MOVES_BYTES
    fresh = False if child.sockets == 0 else None if child.received_s is None else child.received_s <= case.fresh_s
    return True if any((cpu, io, fresh)) else None if cpu is None else False


def _tool_works(case: Silence) -> bool | None:
    """Any process of the tool uses CPU, moves bytes or receives some."""
    return None if case.own is None else _any(_is_child_busy(case, child) for child in case.own)


def _other_tool_works(case: Silence) -> bool | None:
    """A tool that is no MCP server's is open beside one that is, and something works that is not that server."""
    if all(is_mcp(one) for one in case.doing.tools):
        return False
    servers = {child.process for child in adapters(case)}
    return None if case.own is None else _any(_is_child_busy(case, child) for child in case.own if child.process not in servers)


def stuck(case: Silence) -> tuple[Child, ...]:
    """Return the processes of a tool that no signal reaches."""
    return tuple(child for child in case.own or () if child.state == "D")


def _tool_stuck(case: Silence) -> bool | None:
    return None if case.own is None else bool(stuck(case))


def _tool_is_calm(case: Silence) -> bool | None:
    works = _tool_works(case)
    return None if works is None or not case.own else not works


def blocked(case: Silence) -> tuple[Child, ...]:
    """Return the processes of a tool that wait for input, if all others of it only wait for them."""
    own = case.own or ()
    asking = tuple(child for child in own if child.waits_for_input)
    others = [child for child in own if not child.waits_for_input]
    return asking if asking and all(child.wchan in WAITS_FOR_CHILD for child in others) else ()


def _child_waits(case: Silence) -> bool | None:
    if case.own is None or any(child.waits_for_input is None for child in case.own):
        return None
    return bool(blocked(case))


def holders(case: Silence) -> tuple[Child, ...]:
    """Return the processes that keep a tool's pipe open although the tool's own are gone."""
    alive = [child for child in case.evidence.children if child.state not in GONE]
    return tuple(child for child in alive if child.holds_pipe and not child.below)


def _pipe_held(case: Silence) -> bool | None:
    if case.evidence.descendants.value is None:
        return None
    return bool(holders(case))


def adapters(case: Silence) -> tuple[Child, ...]:
    """Return the process that serves an open MCP tool, if exactly one bears its server's name."""
    servers = {part[1] for one in case.doing.tools if is_mcp(one) and len(part := one.name.split("__")) > 2}
    named = [
        child
        for child in case.evidence.children
        if child.below and child.state not in GONE and any(server in f"{child.name} {child.command}" for server in servers)
    ]
    top = [child for child in named if child.parent not in {other.process.pid for other in named}]
    return tuple(top) if len(top) == 1 else ()


def _adapter_deaf(case: Silence) -> bool | None:
    """The server of an open MCP tool receives nothing."""
    found = adapters(case)
    if not found or found[0].sockets is None:
        return None
    if found[0].sockets == 0:
        return True
    return None if found[0].received_s is None else found[0].received_s > case.fresh_s


def _background_lives(case: Silence) -> bool | None:
    """Something of a finished agent goes on: a sub-agent that writes, processes that work, bytes that move."""
    return _any((bool(_writes(case)), _busy(case), _moves_bytes(case)))


def left_running(case: Silence) -> tuple[Child, ...]:
    """Return what an agent started after it was up: a server of its own, and not one of its adapters."""
    born_s = case.now - case.started_at - STARTUP_S
    return tuple(
        one for one in case.evidence.children if one.state not in GONE and one.age_s is not None and one.age_s < born_s
    )


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
    """Say of a process what keeps it from working, if the kernel does."""
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
    waits = f", and waits {_main_starved(case):.0%} of the time for more" if _main_starved(case) else ""
    return f"its own process uses {rate(case.evidence.main_cpu.value)}{waits}"


def _in_circles(case: Silence) -> str:
    if case.trail.times >= (COMPACTIONS if case.trail.again == COMPACTION else CIRCLES):
        return f"{case.trail.again} {case.trail.times} times in a row, and nothing else"
    return f"it speaks, and nothing took it further for {age(case.now - case.trail.further_at)}"


def _quietly(case: Silence) -> str:
    return f"no word for {age(case.silent_s)}, {age(case.patience_s)} is allowed with what is open"


O = Origin  # noqa: E741
FACTS: dict[str, StallFact] = {
    "late": StallFact(O.OURS, _late, lambda c: f"Vigil read this {age(c.evidence.late_s.value or 0)} late"),
    "stopped": StallFact(O.STATE, _stopped, lambda c: f"the kernel says it is stopped ({c.evidence.state.value})"),
    "traced": StallFact(O.STATE, lambda c: c.evidence.traced.value, lambda _: "a debugger holds it"),
    "uninterruptible": StallFact(
        O.STATE, lambda c: _in_state(c, "D"), lambda c: f"it waits in the kernel ({c.evidence.wchan.value or 'unknown where'})"
    ),
    "asks": StallFact(O.WORDS, lambda c: bool(c.doing.asked), lambda c: _questions(len(c.doing.asked))),
    "tries again": StallFact(O.WORDS, _tries_again, lambda _: "it said that a limit or a failing model holds it"),
    "waits": StallFact(O.WORDS, _waits, lambda _: "it declared a wait that is not over"),
    "turn open": StallFact(O.WORDS, lambda c: c.doing.turn or bool(c.doing.tools), lambda _: "a turn is open"),
    "tool open": StallFact(O.WORDS, lambda c: bool(c.doing.tools), tools),
    "mcp open": StallFact(O.WORDS, _is_mcp_open, tools),
    "sub-agent open": StallFact(O.WORDS, _is_subagent_open, tools),
    "sub-agents told": StallFact(
        O.WORDS, lambda c: bool(c.trail.subagents), lambda c: some(len(c.trail.subagents), "sub-agent runs", "sub-agents run")
    ),
    "tool ended last": StallFact(
        O.WORDS, lambda c: c.trail.last == What.TOOL_ENDED, lambda _: "the last it said was that a tool ended"
    ),
    "said lately": StallFact(O.WORDS, _said_lately, lambda c: f"its last word came {age(c.silent_s)} ago"),
    "silent": StallFact(O.WORDS, lambda c: not _said_lately(c), _quietly),
    "quiet": StallFact(O.WORDS, _quiet, _quietly),
    "far too long": StallFact(O.WORDS, _far_too_long, lambda c: f"no word for {age(c.silent_s)}, whatever comes in"),
    "circles": StallFact(O.WORDS, _circles, _in_circles),
    "finished": StallFact(O.WORDS, _finished, lambda _: "it has said that it is done"),
    "over long": StallFact(O.WORDS, _over_long, lambda c: f"that was {age(c.now - (c.trail.result_at or c.now))} ago"),
    "empty": StallFact(O.WORDS, lambda c: c.trail.empty, lambda _: "its run came to nothing: no turn, nothing spent"),
    "resumed": StallFact(O.WORDS, lambda c: c.resumed, lambda _: "it took up an earlier conversation"),
    "stalled before": StallFact(O.WORDS, lambda c: c.stalled_before, lambda _: "that conversation had stalled before"),
    "never spoke": StallFact(O.WORDS, lambda c: not c.trail.spoke, lambda c: f"no word since its start {age(c.silent_s)} ago"),
    "ought to speak": StallFact(O.WORDS, lambda c: c.speaks, lambda _: "this kind of agent says what it does"),
    "writes": StallFact(O.FILES, _writes, lambda _: "what it writes still grows"),
    "files unread": StallFact(O.FILES, _files_unread, lambda _: "whether it writes could not be read"),
    "still": StallFact(O.FILES, lambda c: _no(_writes(c)), lambda _: "nothing that it writes grows"),
    "busy": StallFact(O.CPU, _busy, lambda c: f"it and what is below it use {rate(c.evidence.tree_cpu.value)}"),
    "calm": StallFact(O.CPU, lambda c: _no(_busy(c)), lambda c: f"it uses {rate(c.evidence.tree_cpu.value)}, as when it waits"),
    "spins": StallFact(O.CPU, _spins, _spinning),
    "moves bytes": StallFact(O.BYTES, _moves_bytes, lambda c: f"it moves {c.evidence.io.value or 0:.0f} bytes a second"),
    "moves none": StallFact(O.BYTES, lambda c: _no(_moves_bytes(c)), lambda _: "it reads and writes nothing"),
    "connected": StallFact(O.SOCKETS, _connected, _received),
    "bytes come": StallFact(O.SOCKETS, _bytes_come, _received),
    "no byte": StallFact(O.SOCKETS, lambda c: _no(_bytes_come(c)), _received),
    "network dead": StallFact(
        O.SOCKETS, _network_dead, lambda c: _received(c) if not c.evidence.sockets.value else "nobody acknowledges what it sent"
    ),
    "tool runs": StallFact(O.PROCESSES, _tool_runs, lambda c: f"processes of its tool: {told(c.own or ())}"),
    "no tool process": StallFact(O.PROCESSES, lambda c: _no(_tool_runs(c)), lambda _: "no process of its tool is there"),
    "tool ended unseen": StallFact(
        O.PROCESSES, _tool_ended_unseen, lambda _: "its tool's process has ended, and it does not see that"
    ),
    "tool works": StallFact(O.CPU, _tool_works, lambda c: f"its tool works: {told(c.own or ())}"),
    "other tool works": StallFact(O.CPU, _other_tool_works, lambda c: f"another tool works beside it: {told(c.own or ())}"),
    "tool stuck": StallFact(O.STATE, _tool_stuck, lambda c: f"no signal reaches a process of its tool: {told(stuck(c))}"),
    "tool calm": StallFact(O.CPU, _tool_is_calm, lambda c: f"its tool uses nothing: {told(c.own or ())}"),
    "child waits": StallFact(O.PROCESSES, _child_waits, lambda c: f"{told(blocked(c))} waits for input that nobody gives"),
    "pipe held": StallFact(O.PIPES, _pipe_held, lambda c: f"{told(holders(c))} outlived its tool and holds its pipe open"),
    "adapter deaf": StallFact(O.SOCKETS, _adapter_deaf, lambda c: f"its MCP server {told(adapters(c))} receives nothing"),
    "background lives": StallFact(O.PROCESSES, _background_lives, lambda _: "something of its work goes on"),
    "left running": StallFact(
        O.PROCESSES, lambda c: bool(left_running(c)), lambda c: f"it left something running: {told(left_running(c))}"
    ),
}
