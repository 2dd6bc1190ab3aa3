"""What the kernel says of processes among others: their children, commands and environments."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vigil.kernel.process import read_stat
from vigil.kernel.processes import read_children, read_command, read_cwd, read_environ, read_owner, read_pids, value_of


@contextmanager
def python(script: str, **where: object) -> Iterator[subprocess.Popen[str]]:
    """A process that has printed a line and waits for us; it is ended and reaped when the test is over."""
    argv = [sys.executable, "-c", f"{script}\nprint(flush=True)\ninput()", "--word", ""]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **where) as started:  # type: ignore[call-overload]
        try:
            assert started.stdout is not None and started.stdout.readline() == "\n"
            yield started
        finally:
            started.kill()


def test_the_children_of_every_thread_are_told() -> None:
    script = (
        "import os, threading\n"
        "def fork():\n    os.fork() or (os.read(held, 1), os._exit(0))\n    forked.release(); threading.Event().wait()\n"
        "held, hold = os.pipe(); forked = threading.Semaphore(0)\n"
        "for _ in range(3): threading.Thread(target=fork, daemon=True).start(); forked.acquire()"
    )
    with python(script) as parent:
        stat = read_stat(parent.pid)

        assert stat is not None and stat.threads == 4
        children = read_children(parent.pid, stat.threads)
        assert [found.ppid for child in children if (found := read_stat(child)) is not None] == [parent.pid] * 3
        assert set(children) <= set(read_pids())
        for child in children:
            os.kill(child, 9)


def test_more_children_than_the_kernel_tells_at_once_are_all_told() -> None:
    script = (
        "import os\nheld, hold = os.pipe()\n"
        "for _ in range(900):\n    if os.fork() == 0: os.close(hold); os.read(held, 1); os._exit(0)"
    )
    with python(script) as parent:  # with it the pipe ends, and all of them
        assert len(set(read_children(parent.pid, 1))) == 900


def test_nobody_has_no_children_and_a_kernel_that_does_not_tell_says_so(tmp_path: Path) -> None:
    (tmp_path / "7/task/7").mkdir(parents=True)

    assert read_children(8, 1, str(tmp_path)) == read_children(8, 2, str(tmp_path)) == []
    with pytest.raises(FileNotFoundError):
        read_children(7, 1, str(tmp_path))


def test_a_command_is_told_by_its_words_with_where_it_runs_and_whose_it_is(tmp_path: Path) -> None:
    with python("", cwd=tmp_path, env={"A": "1", "BA": "2", "EMPTY": ""}) as started:
        assert read_command(started.pid)[::3] == [os.fsencode(sys.executable), b"--word"]
        assert (read_cwd(started.pid), read_owner(started.pid)) == (str(tmp_path), os.getuid())
        environ = read_environ(started.pid)
        assert [value_of(key, environ) for key in (b"A=", b"BA=", b"EMPTY=", b"NONE=")] == [b"1", b"2", b"", None]


def test_a_zombie_has_no_words() -> None:
    with python("") as started:
        started.kill()
        os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)

        assert read_command(started.pid) == []
        stat = read_stat(started.pid)
        assert stat is not None and (stat.state, stat.wait_status) == ("Z", 9)
