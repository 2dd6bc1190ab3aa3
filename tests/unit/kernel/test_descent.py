"""A mark is inherited whatever a process does to its environment and its session."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

from tests.live.instance import wait_for
from vigil.kernel import descent
from vigil.kernel.descent import LOCKS, instance_of, is_ours, mark_of, marking, read_mark

SPOOL = "/home/alice/.local/state/vigil/spool"


def test_a_mark_says_which_instance_and_which_launch() -> None:
    mark = mark_of(SPOOL, "sabc-1")

    assert is_ours(mark, SPOOL)
    assert not is_ours(mark, "/elsewhere/spool")
    assert mark != mark_of(SPOOL, "sabc-2")
    assert 1 << 61 <= mark < 1 << 62  # far from a limit that a person sets, and below "no limit"
    assert len(instance_of(SPOOL)) == 12


def test_no_plain_limit_is_taken_for_a_mark() -> None:
    assert not any(is_ours(limit, SPOOL) for limit in (None, 0, 1024, 1 << 20, (1 << 40) - 1))


def test_a_child_without_environment_or_session_still_bears_its_mark(tmp_path: Path) -> None:
    mark = mark_of(SPOOL, "sabc-1")
    script = "env -i /bin/sh -c \"setsid -f /bin/sh -c 'echo \\$\\$ > child; read _ < hold'\""
    os.mkfifo(tmp_path / "hold")

    with marking(mark):
        subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, check=True)
    child = tmp_path / "child"
    pid = wait_for(lambda: (child.exists() and child.read_text().strip()) or None, 10, "the child")

    assert read_mark(int(pid)) == mark
    assert read_mark(os.getpid()) is None
    (tmp_path / "hold").write_text("\n")


def test_a_process_that_takes_off_its_mark_hands_on_none() -> None:
    before = resource.getrlimit(LOCKS)
    try:
        with marking(mark_of(SPOOL, "sabc-1")):
            descent.leave()
            child = subprocess.run(["cat", "/proc/self/limits"], capture_output=True, check=True)
    finally:
        resource.setrlimit(LOCKS, before)

    (line,) = [line for line in child.stdout.splitlines() if line.startswith(descent.LINE)]
    assert line.split()[3] == b"unlimited"


def test_a_process_that_is_gone_has_no_mark() -> None:
    assert read_mark(2**22) is None
