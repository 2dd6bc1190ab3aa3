"""A spawned program begins in its own surroundings, and whoever started it is left as it was."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from vigil.keeper.spawn import Program, spawn

PLAIN = {"PATH": os.environ["PATH"]}


@pytest.fixture(autouse=True)
def _back_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spawn leaves whoever asked for it in /, where the keeper lives."""
    monkeypatch.chdir("/")


def run(folder: Path, *argv: str, cwd: str = "/", env: Mapping[str, str] = PLAIN, nofile: int = 256) -> list[str]:
    """Spawn a program, wait for it, and return the lines it printed."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    out = os.open(folder / "out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        pid = spawn(Program(argv, env, cwd, null, out, out, (nofile, hard)))
    finally:
        os.close(null)
        os.close(out)
    assert os.waitpid(pid, 0)[1] == 0
    return [str(pid), *(folder / "out").read_text("utf-8").splitlines()]


def test_a_program_begins_in_its_own_surroundings(tmp_path: Path) -> None:
    script = "umask; ulimit -Sn; pwd; ps -o sid= -p $$; grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t'"

    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)}
    try:
        pid, *lines = run(tmp_path, "sh", "-c", script, cwd=str(tmp_path))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    assert lines[:2] == ["0022", "256"]
    assert os.path.samefile(lines[2], tmp_path)
    assert lines[3].strip() == pid
    blocked, ignored = (int(line.partition(":")[2], 16) for line in lines[4:])
    assert (blocked, ignored & 0x7FFFFFFF) == (0, 0)  # the C library itself ignores 32 and 33 in what it spawns


def test_whoever_spawned_it_is_as_before(tmp_path: Path) -> None:
    limit, mask = resource.getrlimit(resource.RLIMIT_NOFILE), os.umask(0o077)
    try:
        run(tmp_path, "true", cwd=str(tmp_path))
        with pytest.raises(OSError, match="No such file"):
            run(tmp_path, "there-is-no-such-program", cwd=str(tmp_path))

        assert os.umask(0o077) == 0o077
    finally:
        os.umask(mask)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == limit
    assert Path.cwd() == Path("/")


@pytest.mark.parametrize(
    ("argv", "cwd", "number", "what"),
    [
        (("there-is-no-such-program",), "/", errno.ENOENT, "exec"),
        (("/there/is/no/such/program",), "/", errno.ENOENT, "exec"),
        (("./plain",), ".", errno.EACCES, "exec"),
        (("plain",), "/", errno.EACCES, "exec"),
        (("./text",), ".", errno.ENOEXEC, "exec"),
        (("true",), "/there/is/no/such/folder", errno.ENOENT, "chdir"),
    ],
)
def test_what_cannot_be_executed_says_why(tmp_path: Path, argv: tuple[str, ...], cwd: str, number: int, what: str) -> None:
    (tmp_path / "plain").write_text("no program", "utf-8")
    (tmp_path / "text").write_text("no program either", "utf-8")
    (tmp_path / "text").chmod(0o700)
    path = f"/there/is/no/such/folder:{tmp_path}:{os.environ['PATH']}"

    with pytest.raises(OSError) as raised:
        run(tmp_path, *argv, cwd=str(tmp_path) if cwd == "." else cwd, env={"PATH": path})

    assert (raised.value.errno, raised.value.filename) == (number, what)


def test_the_program_of_a_later_folder_is_found_behind_one_that_may_not_be_executed(tmp_path: Path) -> None:
    (tmp_path / "echo").write_text("no program", "utf-8")

    assert run(tmp_path, "echo", "found", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})[1:] == ["found"]
