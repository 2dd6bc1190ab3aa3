"""Whom a socket leads to is known before a byte is sent, and stays so whatever is renamed meanwhile."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vigil.kernel import trust
from vigil.kernel.process import read_start_ticks
from vigil.kernel.trust import (
    PeerProcess,
    Untrusted,
    check_private,
    check_server,
    connect_own,
    is_below,
    name_of,
    open_server,
    read_lock_holder,
    read_peer,
    runs_program,
)


@contextlib.contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield listener


def me() -> tuple[int, int]:
    ticks = read_start_ticks(os.getpid())
    assert ticks is not None
    return os.getpid(), ticks


def test_an_own_listener_in_a_private_folder_is_connected_to(short: Path) -> None:
    with listening(short / "s"), connect_own(str(short / "s"), 5.0) as sock:
        assert read_peer(sock) == (os.getpid(), os.getuid())


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o755, 0o777, 0o1777])
def test_a_private_folder_is_open_to_nobody_else(short: Path, mode: int) -> None:
    with listening(short / "s"):
        short.chmod(mode)
        with pytest.raises(Untrusted, match="open to others"):
            connect_own(str(short / "s"), 5.0)


def test_a_folder_that_is_missing_holds_no_socket_and_a_link_or_a_file_is_refused(short: Path) -> None:
    check_private(str(short / "none"))
    with pytest.raises(FileNotFoundError):
        connect_own(str(short / "none" / "s"), 5.0)
    (short / "link").symlink_to(short)
    (short / "file").touch(0o600)
    for name in ("link", "file"):
        with pytest.raises(Untrusted):
            check_private(str(short / name))


@pytest.mark.parametrize(
    ("mode", "trusted"), [(0o700, True), (0o755, True), (0o1777, True), (0o777, False), (0o720, False), (0o702, False)]
)
def test_a_tmux_client_goes_where_others_cannot_put_another_socket(short: Path, mode: int, trusted: bool) -> None:
    with listening(short / "s"):
        short.chmod(mode)
        if trusted:
            assert check_server(str(short / "s")) == os.getpid()
        else:
            with pytest.raises(Untrusted, match="may be written by others"):
                check_server(str(short / "s"))


def test_a_socket_is_no_link_and_no_file(short: Path) -> None:
    (short / "file").touch()
    with listening(short / "s"):
        (short / "link").symlink_to(short / "s")
        for name in ("file", "link"):
            with pytest.raises(Untrusted, match="no socket"):
                check_server(str(short / name))
    with pytest.raises(ConnectionRefusedError):
        check_server(str(short / "s"))


def test_a_server_is_one_very_process(short: Path) -> None:
    pid, ticks = me()
    with listening(short / "s"):
        fd, found = open_server(str(short / "s"), (pid, ticks))
        os.close(fd)
        assert found == pid
        for other in ((pid, ticks + 1), (1, ticks), (os.getppid(), read_start_ticks(os.getppid()) or 0)):
            with pytest.raises(Untrusted, match="not to its tmux server"):
                open_server(str(short / "s"), other)


def test_a_full_backlog_is_not_waited_for(short: Path) -> None:
    with listening(short / "s") as listener, contextlib.ExitStack() as stack:
        listener.listen(0)
        for _ in range(4):
            sock = stack.enter_context(socket.socket(socket.AF_UNIX))
            sock.setblocking(False)
            sock.connect_ex(str(short / "s"))
        with pytest.raises(BlockingIOError):
            check_server(str(short / "s"))


def test_who_goes_by_the_descriptor_meets_the_checked_listener_though_another_was_put_in_its_place(short: Path) -> None:
    with listening(short / "s") as first, listening(short / "evil"):
        fd, _ = open_server(str(short / "s"), me())
        first.accept()[0].close()
        os.rename(short / "evil", short / "s")

        script = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        subprocess.run([sys.executable, "-c", script, name_of(fd)], pass_fds=(fd,), check=True, timeout=30)

        first.settimeout(10)
        first.accept()[0].close()
        os.close(fd)


# Peers


@pytest.mark.parametrize("option", [trust.SO_PEERPIDFD, 9999], ids=["pidfd", "an older kernel"])
@pytest.mark.parametrize("reaped", [True, False])
def test_a_peer_is_here_while_it_lives_and_not_when_its_connection_is_in_other_hands(
    short: Path, monkeypatch: pytest.MonkeyPatch, option: int, reaped: bool
) -> None:
    monkeypatch.setattr(trust, "SO_PEERPIDFD", option)  # the kernel knows no option of that number
    script = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); sys.stdin.read()"
    with listening(short / "s") as listener:
        child = subprocess.Popen([sys.executable, "-c", script, str(short / "s")], stdin=subprocess.PIPE)
        sock = listener.accept()[0]
        peer = PeerProcess(sock)
        assert (peer.pid, peer.uid, peer.is_here()) == (child.pid, os.getuid(), True)

        assert child.stdin is not None
        child.stdin.close()
        if reaped:
            child.wait(30)
        else:
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

        assert not peer.is_here()
        late = PeerProcess(sock)  # the kernel still names its pid
        assert (late.pid, late.is_here()) == (child.pid, False)
        child.wait(30)
        for one in (peer, late):
            one.close()
        sock.close()


def test_a_peer_that_was_let_go_is_not_here_though_its_descriptor_is_another_file_now(short: Path) -> None:
    with listening(short / "s") as listener, socket.socket(socket.AF_UNIX) as ours:
        ours.connect(str(short / "s"))
        with listener.accept()[0] as sock:
            peer = PeerProcess(sock)
            assert peer.is_here()
            peer.close()
            assert not peer.is_here()


# Locks and processes


def test_the_holder_of_a_lock_is_the_kernels_word_and_not_the_files(tmp_path: Path) -> None:
    path = tmp_path / "daemon.lock"
    assert read_lock_holder(str(path)) is None
    with open(path, "w+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path.write_text("1\n")  # an agent may write it
        assert read_lock_holder(str(path)) == os.getpid()
    assert read_lock_holder(str(path)) == 1, "without a lock the file's word is all there is"
    path.write_text("none of a pid")
    assert read_lock_holder(str(path)) is None


@pytest.mark.parametrize(
    "make", [lambda path: os.mkfifo(path), lambda path: path.symlink_to("/dev/zero"), lambda path: path.mkdir()]
)
def test_a_lock_that_is_no_file_is_held_by_none(tmp_path: Path, make: object) -> None:
    path = tmp_path / "daemon.lock"
    make(path)  # type: ignore[operator]
    assert read_lock_holder(str(path)) is None


def test_a_process_runs_exactly_its_program(tmp_path: Path) -> None:
    copy = tmp_path / "sleep"
    shutil.copy(str(shutil.which("sleep")), copy)
    child = subprocess.Popen([str(copy), "1000"])
    try:
        assert runs_program(child.pid, str(copy))
        assert not runs_program(child.pid, str(shutil.which("sleep")))
        assert not runs_program(child.pid, "")
    finally:
        child.kill()
        child.wait()
    assert not runs_program(child.pid, str(copy))


def test_a_descendant_is_below_and_a_stranger_is_not() -> None:
    assert is_below(os.getpid(), os.getppid())
    assert not is_below(os.getppid(), os.getpid())
    assert not is_below(0, os.getpid())
