"""Facts from the processes of an open tool. Pure: each is true, false or unknown (P7)."""

from __future__ import annotations

from vigil.core.model.evidence import Child
from vigil.core.rules.stall.case import GONE, TOOL_SLACK_S, Silence, is_mcp
from vigil.core.rules.stall.work import ABOVE_IDLE, MOVES_BYTES, any_of, starved

STARTUP_S = 30.0  # processes started within this are the agent's adapters
WAITS_FOR_CHILD = frozenset({"do_wait", "wait4", "do_sigtimedwait", "sigsuspend", "__do_sys_rt_sigsuspend"})


def runs(case: Silence) -> bool | None:
    return None if case.own is None else bool(case.own)


def ended_unseen(case: Silence) -> bool | None:
    """Say whether an open tool's process ended unreaped and no other of it lives."""
    age_s, is_there = case.tool_age_s, runs(case)
    if age_s is None or is_there is None:
        return None
    dead = [child for child in case.evidence.children if child.below and child.state == "Z"]
    of_tool = [child for child in dead if child.age_s is not None and child.age_s <= age_s + TOOL_SLACK_S]
    return not is_there and bool(of_tool)


def _is_child_busy(case: Silence, child: Child) -> bool | None:
    if not case.window_is_long_enough():
        return None
    cpu = None if child.cpu is None else child.cpu + starved(child.waited, child.burst_s) > ABOVE_IDLE
    io = None if child.io is None else child.io >= MOVES_BYTES
    fresh = False if child.sockets == 0 else None if child.received_s is None else child.received_s <= case.fresh_s
    return True if any((cpu, io, fresh)) else None if cpu is None else False


def works(case: Silence) -> bool | None:
    """Say whether any process of an open tool uses CPU, moves or receives bytes."""
    return None if case.own is None else any_of(_is_child_busy(case, child) for child in case.own)


def other_works(case: Silence) -> bool | None:
    """Say whether an open tool beside the MCP one works, by its processes."""
    if all(is_mcp(one) for one in case.doing.tools):
        return False
    servers = {child.process for child in adapters(case)}
    if case.own is None:
        return None
    return any_of(_is_child_busy(case, child) for child in case.own if child.process not in servers)


def stuck(case: Silence) -> tuple[Child, ...]:
    """Return the processes of an open tool that no signal reaches."""
    return tuple(child for child in case.own or () if child.state == "D")


def is_stuck(case: Silence) -> bool | None:
    return None if case.own is None else bool(stuck(case))


def is_calm(case: Silence) -> bool | None:
    is_busy = works(case)
    return None if is_busy is None or not case.own else not is_busy


def blocked(case: Silence) -> tuple[Child, ...]:
    """Return an open tool's processes that wait for input, if the rest wait for them."""
    own = case.own or ()
    asking = tuple(child for child in own if child.waits_for_input)
    others = [child for child in own if not child.waits_for_input]
    return asking if asking and all(child.wchan in WAITS_FOR_CHILD for child in others) else ()


def child_waits(case: Silence) -> bool | None:
    if case.own is None or any(child.waits_for_input is None for child in case.own):
        return None
    return bool(blocked(case))


def holders(case: Silence) -> tuple[Child, ...]:
    """Return the processes that hold a tool's pipe open although the tool's own are gone."""
    alive = [child for child in case.evidence.children if child.state not in GONE]
    return tuple(child for child in alive if child.holds_pipe and not child.below)


def pipe_held(case: Silence) -> bool | None:
    if case.evidence.descendants.value is None:
        return None
    return bool(holders(case))


def adapters(case: Silence) -> tuple[Child, ...]:
    """Return the process that serves an open MCP tool, if just one has its name."""
    servers = {part[1] for one in case.doing.tools if is_mcp(one) and len(part := one.name.split("__")) > 2}
    named = [
        child
        for child in case.evidence.children
        if child.below and child.state not in GONE and any(server in f"{child.name} {child.command}" for server in servers)
    ]
    top = [child for child in named if child.parent not in {other.process.pid for other in named}]
    return tuple(top) if len(top) == 1 else ()


def adapter_deaf(case: Silence) -> bool | None:
    """Say whether the server process of an open MCP tool receives nothing."""
    found = adapters(case)
    if not found or found[0].sockets is None:
        return None
    if found[0].sockets == 0:
        return True
    return None if found[0].received_s is None else found[0].received_s > case.fresh_s


def left_running(case: Silence) -> tuple[Child, ...]:
    """Return what an agent's tools left running: processes begun after its start-up."""
    born_s = case.now - case.started_at - STARTUP_S
    return tuple(
        one for one in case.evidence.children if one.state not in GONE and one.age_s is not None and one.age_s < born_s
    )
