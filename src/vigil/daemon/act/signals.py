"""Signals: only through a pidfd of exactly the recorded process (P9), and always verified."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable

from vigil.core.model.launch import ProcessId
from vigil.core.model.reading import Axis, AxisValue
from vigil.kernel import process as kernel
from vigil.observe.process import ask_kernel

KILL_GRACE_S = 5.0
SURVIVOR_GRACE_S = 3.0  # of what an agent left behind


async def end_processes(processes: Iterable[ProcessId], grace_s: float) -> list[ProcessId]:
    """Signal processes to end together: TERM, grace, KILL; return those left or unsure (P7, P9)."""
    held, unsure = {}, []
    boot = kernel.read_boot()
    for process in processes:
        # A process of another boot is gone: its pid and start time may match one of this boot (P9).
        pidfd = kernel.open_pidfd(process.pid, process.start_ticks) if process.boot == boot else None
        if pidfd is not None:
            held[pidfd] = process
        elif ask_kernel(Axis.PROCESS, process, boot, 0.0).value != AxisValue.DEAD:
            unsure.append(process)
    try:
        for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, KILL_GRACE_S)):
            left = [pidfd for pidfd in held if not kernel.has_ended(pidfd)]
            for pidfd in left:
                _send(pidfd, number)
                _send(pidfd, signal.SIGCONT)  # a stopped process sees its TERM only when it goes on
            await _all_ended(left, wait_s)
        return [*(process for pidfd, process in held.items() if not kernel.has_ended(pidfd)), *unsure]
    finally:
        for pidfd in held:
            os.close(pidfd)


def is_alive(process: ProcessId, boot: str) -> bool:
    return process.boot == boot and kernel.is_alive(process.pid, process.start_ticks)


def send(process: ProcessId, number: signal.Signals) -> None:
    """Signal exactly one recorded process, if it still lives."""
    pidfd = kernel.open_pidfd(process.pid, process.start_ticks)
    if pidfd is not None:
        try:
            _send(pidfd, number)
        finally:
            os.close(pidfd)


def _send(pidfd: int, number: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        pass  # it ended in between


async def _all_ended(pidfds: list[int], within_s: float) -> None:
    loop = asyncio.get_running_loop()
    done: list[asyncio.Future[None]] = [loop.create_future() for _ in pidfds]
    for pidfd, future in zip(pidfds, done, strict=True):
        loop.add_reader(pidfd, _resolve, future)
    try:
        if done:
            await asyncio.wait(done, timeout=within_s)
    finally:
        for pidfd in pidfds:
            loop.remove_reader(pidfd)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
