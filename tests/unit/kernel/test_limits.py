"""Limits: what this very process has left, as the kernel tells it."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from vigil.kernel.limits import read_cgroup_tasks, read_host_tasks, read_inodes, read_open_files, read_user_tasks


def test_open_descriptors_are_counted_against_the_soft_limit() -> None:
    before = read_open_files(os.getpid())
    fd = os.open("/dev/null", os.O_RDONLY)
    try:
        now = read_open_files(os.getpid())
    finally:
        os.close(fd)

    assert before is not None and now is not None
    assert now.used == before.used + 1
    assert now.most == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_a_process_that_is_gone_has_no_limits() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)

    assert (read_open_files(pid), read_user_tasks(pid), read_cgroup_tasks(pid)) == (None, None, None)


def test_the_host_has_tasks_and_numbers_for_them() -> None:
    found = read_host_tasks()

    assert found is not None
    assert 0 < found.used < found.most
    assert found.left == found.most - found.used


def test_a_file_system_tells_its_inodes_or_has_no_bound(tmp_path: Path) -> None:
    found = read_inodes(tmp_path)

    assert found is None or 0 < found.used <= found.most
