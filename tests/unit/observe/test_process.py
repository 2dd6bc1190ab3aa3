"""Facts of a launch's processes: a number that another has by now proves a death, and never shows life."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.unit.processes import a_thread
from vigil.core.model.launch import ProcessId
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.daemon.act.signals import end_processes
from vigil.kernel.process import parse_stat, read_boot, read_start_ticks
from vigil.observe.process import ask_kernel, read_group, read_process

BOOT = read_boot()
DEAD = Fact(Axis.PROCESS, AxisValue.DEAD, "pidfd", 0.0, conclusive=True)


@pytest.fixture
def of_a_thread() -> Iterator[ProcessId]:
    """The identity that a thread of ours seems to have."""
    with a_thread() as number:
        with open(f"/proc/{number}/stat", "rb") as file:
            stat = parse_stat(file.read())
        assert stat is not None
        yield ProcessId(stat.pid, stat.start_ticks, BOOT)


def test_a_process_whose_number_is_a_threads_is_dead_for_sure(of_a_thread: ProcessId) -> None:
    asked, read = ask_kernel(Axis.PROCESS, of_a_thread, BOOT, 0.0), read_process(Axis.PROCESS, of_a_thread, BOOT, 0.0)

    assert (asked.value, asked.conclusive) == (AxisValue.DEAD, True)
    assert read.value == AxisValue.DEAD


async def test_there_is_nothing_to_end_where_a_thread_has_the_number(of_a_thread: ProcessId) -> None:
    assert await end_processes([of_a_thread], 0.1) == []


def test_a_group_whose_number_another_leads_is_gone() -> None:
    other = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        ticks = read_start_ticks(other.pid)
        assert ticks is not None

        gone = read_group(ProcessId(other.pid, ticks - 1, BOOT), DEAD, 0.0)
        there = read_group(ProcessId(other.pid, ticks, BOOT), DEAD, 0.0)

        assert (gone.value, gone.conclusive, there.value) == (AxisValue.DEAD, True, AxisValue.ALIVE)
        assert os.getpgid(other.pid) == other.pid
    finally:
        other.kill()
        other.wait()
