"""Looks never hold anybody up: what hangs is given up and said, and each launch is compared with itself."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.unit.builders import make_session
from tests.unit.processes import started
from vigil.core.events import Event, Weighed
from vigil.core.machine import Machine
from vigil.core.model.launch import Launch
from vigil.core.model.session import Session, State
from vigil.daemon.base.clock import Clock
from vigil.daemon.sense.processes import HUNG, Diagnoser

SOON_S = 20.0


def session_of(launch: Launch) -> Session:
    return make_session(State.RUNNING, id=launch.id.rpartition("-")[0], launch=launch)


def diagnoser_of(*launches: Launch, proc: str = "/proc", deadline_s: float = SOON_S) -> tuple[Diagnoser, list[Event]]:
    fed: list[Event] = []
    machine = Machine([session_of(launch) for launch in launches])
    return Diagnoser(machine, Clock(), fed.append, lambda: os.getppid(), proc, deadline_s), fed


async def test_a_pass_reads_every_launch_and_the_next_one_its_rates() -> None:
    with started("sh", "-c", "sleep 1000 & wait") as one:
        diagnoser, fed = diagnoser_of(one.launch)

        first = await diagnoser.sweep()
        second = await diagnoser.sweep()

        assert first[one.launch.id].cpu.tree is None
        assert second[one.launch.id].cpu.tree is not None
        assert second[one.launch.id].tree.agent is not None
        assert next(event for event in fed if isinstance(event, Weighed)).launch_id == one.launch.id


async def test_a_look_is_compared_with_the_last_one_and_waits_only_without() -> None:
    with started("sleep", "1000") as one:
        diagnoser, _ = diagnoser_of(one.launch)

        first = await diagnoser.look(one.launch)
        await asyncio.sleep(0.25)
        second = await diagnoser.look(one.launch)

        assert first.window_s is not None and second.window_s is not None
        assert abs(second.window_s - (second.at_s - first.at_s)) < 0.01
        assert second.unknown == ()


async def test_a_proc_that_hangs_is_given_up_and_said_and_soon_not_asked_any_more(tmp_path: Path) -> None:
    with started("sleep", "1000") as one:
        folder = tmp_path / str(one.pid)
        folder.mkdir()
        os.mkfifo(folder / "stat")  # who opens it waits until somebody writes
        diagnoser, _ = diagnoser_of(one.launch, proc=str(tmp_path), deadline_s=0.05)

        found = [await diagnoser.look(one.launch, 0.1) for _ in range(HUNG + 1)]

        assert all(not one.processes for one in found)
        assert found[0].unknown == ("processes: /proc gave no answer in 0.05 s: a process is stuck in the kernel",)
        assert "earlier looks have not come back" in found[-1].unknown[0]
        async with asyncio.timeout(SOON_S):  # once they come back, it is asked again
            while diagnoser._hands.hung:
                os.close(os.open(folder / "stat", os.O_RDWR | os.O_NONBLOCK))
                await asyncio.sleep(0.01)
