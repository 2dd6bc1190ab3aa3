"""A launch is judged by its own client, whoever had that pid before."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
from pathlib import Path
from typing import Any

from vigil.keeper.births import Births
from vigil.keeper.kills import Kills
from vigil.keeper.protocol import Answer
from vigil.keeper.records import Unwritten
from vigil.keeper.samples import Samples
from vigil.keeper.snapshot import Snapshots
from vigil.keeper.watch import Watcher
from vigil.kernel.cgroups import Cgroups
from vigil.kernel.host import HostFacts
from vigil.kernel.kernel_log import KernelLog


class Graves(dict[int, tuple[int, int, float]]):
    """Every number was once somebody's who was killed; each is told once."""

    def pop(self, pid: int, default: Any = None) -> Any:
        return default if pid in self else self.setdefault(pid, (0, signal.SIGKILL.value, 0.0))


def test_a_status_that_an_earlier_process_of_the_same_pid_left_is_not_its_clients(tmp_path: Path) -> None:
    epoll, host, cgroups, log = select.epoll(), HostFacts(), Cgroups(), KernelLog()
    kills = Kills(log, cgroups)
    samples = Samples(host, cgroups, log, kills)
    snapshots = Snapshots(samples, host, cgroups, log, lambda _: None)
    unwritten = Unwritten()
    watcher = Watcher(epoll, lambda _: None, samples, kills, snapshots, unwritten)
    watcher._lost = Graves()
    births = Births(epoll, watcher, samples, resource.getrlimit(resource.RLIMIT_NOFILE), unwritten)
    order = {"runtime": "tmux", "argv": ["echo", "1", "2", "%0"], "env": dict(os.environ), "cwd": "/"}
    (tmp_path / "launch.json").write_text(json.dumps(order), "utf-8")
    answers: list[Answer] = []
    here = Path.cwd()
    try:
        births.begin("l", str(tmp_path), answers.append)
    finally:
        os.chdir(here)

    (birth,) = births._by_client.values()
    while birth.output_fd >= 0 and epoll.poll(10):  # until all that it prints is read
        births.readable(birth.output_fd)
    births.client_ended()

    assert answers == []
    assert os.waitpid(birth.client, 0)[1] == 0
    births.abandon("l")
    epoll.close()
