"""A birth: the processes of a new launch, from the keeper's words or its record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from vigil.core.events import Launched
from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.daemon.base.clock import Clock
from vigil.keeper.protocol import Born
from vigil.observe.process import read_group, read_process

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def read_birth(
    launch: Launch, born: Born, clock: Clock, boot: str, adopted: bool = False, names: tuple[str, ...] = ()
) -> Launched:
    """Return the event of a birth, with a first reading of each process."""
    at = clock.now()
    known = processes_in(born, boot)
    names = launch.names or names
    return Launched(
        launch.id,
        launch.started_at or _started_at(launch, known["agent"], clock, at),
        known["agent"],
        known.get("root"),
        known.get("server"),
        born.pane,
        tuple(_read_axes(launch, known, names, boot, at)),
        adopted,
        names,
    )


def born_of(launch: Launch) -> Born:
    """Return the birth of a launch that is known."""
    assert launch.process is not None
    root, server = ((one.pid, one.start_ticks) if one is not None else None for one in (launch.root, launch.server))
    return Born((launch.process.pid, launch.process.start_ticks), root, server, launch.pane)


def processes_in(born: Born, boot: str) -> dict[str, ProcessId]:
    """Return the born processes, by role."""
    found = {"agent": born.agent, "root": born.root, "server": born.server}
    return {role: ProcessId(*one, boot) for role, one in found.items() if one is not None}


def _started_at(launch: Launch, agent: ProcessId, clock: Clock, at: float) -> float:
    """Return when the kernel started an agent: we may hear of a birth long after it."""
    return min(at, max(launch.created_at, clock.at(agent.start_ticks / TICKS_A_SECOND)))


def _read_axes(launch: Launch, known: Mapping[str, ProcessId], names: tuple[str, ...], boot: str, at: float) -> list[Fact]:
    facts = [
        read_process(axis, known[role], boot, at)
        for axis, role in ((Axis.SERVER, "server"), (Axis.RUNTIME, "root"), (Axis.PROCESS, "agent"))
        if role in known
    ]
    if "root" not in known:
        facts.append(read_group(known["agent"], facts[-1], at))
    if names:
        facts = [fact for fact in facts if fact.axis is not Axis.PROCESS]
        facts.append(_read_found(launch, names, boot, at))
    return facts


def _read_found(launch: Launch, names: tuple[str, ...], boot: str, at: float) -> Fact:
    if launch.found is not None:
        return read_process(Axis.PROCESS, launch.found, boot, at)
    return Fact(Axis.PROCESS, AxisValue.UNKNOWN, "procfs", at, why=f"no {' or '.join(names)} runs in it yet")


def with_processes(launch: Launch, event: Launched) -> Launch:
    """Return a launch with its born processes."""
    return replace(
        launch,
        started_at=event.at,
        process=event.process,
        root=event.root,
        server=event.server,
        pane=event.pane,
        names=event.names,
    )
