"""A birth: the processes of a new launch, from the keeper's words or its record."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vigil.core.events import Launched
from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.daemon.base.ground import Ground
from vigil.keeper import wire
from vigil.keeper.protocol import Born
from vigil.kernel.process import is_alive, read_stat
from vigil.kernel.processes import read_launch
from vigil.observe.process import read_group, read_process

PANE = re.compile(r"%[0-9]{1,9}")
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def read_birth(launch: Launch, born: Born, ground: Ground, adopted: bool = False, names: tuple[str, ...] = ()) -> Launched:
    """Return the event of a birth, with a first reading of each process."""
    at = ground.now()
    known = processes_in(born, ground.boot)
    names = launch.names or names
    begun_at = ground.clock.at(known["agent"].start_ticks / TICKS_A_SECOND)  # we may hear of a birth long after it
    return Launched(
        launch.id,
        launch.started_at or min(at, max(launch.created_at, begun_at)),
        known["agent"],
        known.get("root"),
        known.get("server"),
        born.pane,
        tuple(_read_axes(launch, known, names, ground.boot, at)),
        adopted,
        names,
    )


def born_in(record: dict[str, Any] | None, launch_id: str, adopted: bool = False) -> Born | None:
    """Return who was born by a birth's record; None if it names another's processes.

    An agent may write there. An adopted agent has no mark of ours."""
    try:
        born = None if record is None else wire.read(Born, record)
    except wire.Malformed:
        return None
    if born is None or (born.pane is not None and not PANE.fullmatch(born.pane)):
        return None
    return born if adopted or _bears_marks(born, launch_id) else None


def _bears_marks(born: Born, launch_id: str) -> bool:
    """Say whether a birth's living processes bear its mark.

    An agent that cleaned its own lives in its root's session."""
    living = [one for one in (born.agent, born.root, born.server) if one is not None and is_alive(*one)]
    marks = {one: read_launch(one[0]) for one in living}
    agent, root = read_stat(born.agent[0]), born.root
    if agent is not None and root is not None and marks.get(born.agent, launch_id) is None and agent.sid == root[0]:
        marks.pop(born.agent)
    return all(mark == launch_id for mark in marks.values())


def born_of(launch: Launch) -> Born:
    assert launch.process is not None
    root, server = ((one.pid, one.start_ticks) if one is not None else None for one in (launch.root, launch.server))
    return Born((launch.process.pid, launch.process.start_ticks), root, server, launch.pane)


def processes_in(born: Born, boot: str) -> dict[str, ProcessId]:
    found = {"agent": born.agent, "root": born.root, "server": born.server}
    return {role: ProcessId(*one, boot) for role, one in found.items() if one is not None}


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
    return replace(
        launch,
        started_at=event.at,
        process=event.process,
        root=event.root,
        server=event.server,
        pane=event.pane,
        names=event.names,
        cgroup=event.cgroup,
    )
