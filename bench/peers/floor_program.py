"""A supervisor of thirty lines: keeps COUNT agents running and writes pid and time of every death to a pipe.

Run as a file, standard library only: python floor_program.py COUNT PIPE AGENT...
"""

from __future__ import annotations

import asyncio
import os
import sys
import time


async def supervise(count: int, deaths: int, agent: list[str]) -> None:
    """Keep so many agents running until TERM, then end them."""
    loop = asyncio.get_running_loop()
    alive: set[int] = set()
    ending = asyncio.Event()

    def launch() -> None:
        pid = os.posix_spawnp(agent[0], agent, os.environ)
        pidfd = os.pidfd_open(pid)
        alive.add(pid)
        loop.add_reader(pidfd, died, pid, pidfd)

    def died(pid: int, pidfd: int) -> None:
        os.write(deaths, b"%d %d\n" % (pid, time.monotonic_ns()))
        loop.remove_reader(pidfd)
        os.close(pidfd)
        os.waitpid(pid, 0)
        alive.discard(pid)
        if not ending.is_set():
            launch()

    for _ in range(count):
        launch()
    loop.add_signal_handler(15, ending.set)
    await ending.wait()
    for pid in alive:
        os.kill(pid, 15)  # our own child, not waited for yet: the pid is its own


if __name__ == "__main__":
    asyncio.run(supervise(int(sys.argv[1]), os.open(sys.argv[2], os.O_WRONLY), sys.argv[3:]))
