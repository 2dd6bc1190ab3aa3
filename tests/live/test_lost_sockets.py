"""A lost socket is made anew within 5 s: no command fails for it, nothing is doubled, no session is touched (P15, P10)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.live.instance import Instance, alive, command_of, is_of_session, kill, resume, wait_for
from vigil.client.living import find_daemon
from vigil.doctor.deaf import deaf_daemon
from vigil.kernel.trust import connect_own, read_peer

pytestmark = pytest.mark.usefixtures("sessions")
BACK_S = 5.0  # P15


@pytest.fixture
def sessions(vigil: Instance) -> Iterator[None]:
    """A session in tmux and a headless one; when the test is over they are the same, and never died."""
    before = {
        "t": vigil.run("t", "sleep", "1000", restart="always", backoff_base_s=0.2),
        "h": vigil.run("h", "sleep", "1000", restart="always", backoff_base_s=0.2, runtime="headless"),
    }
    yield
    for name, was in before.items():
        now = vigil.get(name)
        assert [now[key] for key in ("pid", "launch", "state")] == [was["pid"], was["launch"], "running"]
        assert (vigil.deaths(name), now["restarts"]["count"]) == ([], 0)
        agents = [pid for pid in vigil.processes() if is_of_session(pid, name) and command_of(pid) == b"sleep\x001000\x00"]
        assert agents == [was["pid"]]


def listener(path: Path) -> int | None:
    """Return who listens on a socket."""
    try:
        with connect_own(str(path), 1.0) as sock:
            return read_peer(sock)[0]
    except OSError:
        return None


def is_back(path: Path, pid: int) -> bool:
    """Say whether a process listens on its socket, which only its user may open."""
    return listener(path) == pid and stat.S_IMODE(path.lstat().st_mode) == 0o600


def wait_back(path: Path, pid: int) -> None:
    wait_for(lambda: is_back(path, pid), BACK_S, f"{path.name} of pid {pid}", lambda: listener(path))


def roles(vigil: Instance) -> dict[str, list[int]]:
    """Return the living daemons and keepers of a home, by their command lines."""
    found: dict[str, list[int]] = {"daemon": [], "keeper": []}
    for pid in vigil.processes():
        words = command_of(pid)
        for role, sign in (("daemon", b"vigil.daemon"), ("keeper", b"keeper/__main__.py")):
            if sign in words and str(vigil.path).encode() in words:
                found[role].append(pid)
    return found


def remove(path: Path) -> None:
    path.unlink()


def put_file(path: Path) -> None:
    path.unlink()
    with contextlib.suppress(FileExistsError):  # it may be back already
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def put_folder(path: Path) -> None:
    path.unlink()
    with contextlib.suppress(FileExistsError):
        path.mkdir()
        (path / "somebody's").touch()


def put_link(path: Path) -> None:
    path.unlink()
    with contextlib.suppress(FileExistsError):
        path.symlink_to("/nonexistent")


def remove_run(path: Path) -> None:
    shutil.rmtree(path.parent, ignore_errors=True)  # a socket may be back before its folder is gone


LOSSES = [remove, put_file, put_folder, put_link, remove_run]


@pytest.mark.parametrize("lose", LOSSES)
def test_the_keepers_lost_socket_is_back_and_the_next_daemon_speaks_to_it(
    vigil: Instance, lose: Callable[[Path], None]
) -> None:
    keeper = vigil.keeper_pid

    lose(vigil.home.keeper_socket)
    vigil.kill_daemon()

    assert sorted(session["name"] for session in vigil.json("ls")) == ["h", "t"]
    assert (vigil.client.status()["keeper_pid"], vigil.client.status()["keeper_wedged"]) == (keeper, False)
    assert roles(vigil)["keeper"] == [keeper]
    wait_back(vigil.home.keeper_socket, keeper)
    assert vigil.run("more", "sleep", "1000")["state"] == "running"


@pytest.mark.parametrize("lose", LOSSES)
def test_the_daemons_lost_socket_is_back_and_commands_wait_for_it(vigil: Instance, lose: Callable[[Path], None]) -> None:
    daemon, keeper = vigil.daemon_pid, vigil.keeper_pid

    lose(vigil.home.api_socket)
    began = time.monotonic()
    names = sorted(session["name"] for session in vigil.json("ls"))

    assert names == ["h", "t"]
    assert time.monotonic() - began < 15  # not the thirty seconds of a start
    wait_back(vigil.home.api_socket, daemon)
    wait_back(vigil.home.keeper_socket, keeper)
    assert roles(vigil) == {"daemon": [daemon], "keeper": [keeper]}
    vigil.wait_event("daemon.socket-lost")
    assert vigil.run("more", "sleep", "1000")["state"] == "running"
    wait_for(lambda: vigil.tmux("t", "list-panes").returncode == 0, 15, "its tmux server's socket")


@pytest.mark.parametrize("words", [("daemon", "status"), ("daemon", "stop")])
def test_daemon_stop_and_status_find_a_daemon_whose_socket_is_lost(vigil: Instance, words: tuple[str, ...]) -> None:
    daemon = vigil.daemon_pid
    vigil.home.api_socket.unlink()

    said = vigil.ok(*words)

    if words[1] == "stop":
        assert "the daemon is stopped; its sessions run on" in said
        assert not alive(daemon)
        vigil.start()
    else:
        assert f"pid {daemon}" in said


def test_a_stopped_daemon_without_a_socket_is_named_at_once_and_can_be_stopped(vigil: Instance) -> None:
    daemon = vigil.daemon_pid
    os.kill(daemon, signal.SIGSTOP)
    vigil.home.api_socket.unlink()
    try:
        for words in ("ls", "daemon status", "run -- true"):
            done = vigil.run_cli(*words.split(), timeout_s=20)
            assert (done.returncode, f"the daemon (pid {daemon}) is stopped" in done.stderr) == (5, True), done
            assert f"kill -CONT {daemon}" in done.stderr
        assert roles(vigil)["daemon"] == [daemon]

        assert "is stopped by a signal; its sessions run on" in vigil.ok("daemon", "stop")
    finally:
        resume(daemon)

    assert not alive(daemon)
    vigil.start()


def test_a_daemon_that_was_stopped_while_its_socket_went_makes_it_anew_when_it_goes_on(vigil: Instance) -> None:
    daemon, keeper = vigil.daemon_pid, vigil.keeper_pid
    for pid in (daemon, keeper):
        os.kill(pid, signal.SIGSTOP)
    remove_run(vigil.home.api_socket)

    for pid in (daemon, keeper):
        resume(pid)

    wait_back(vigil.home.api_socket, daemon)
    wait_back(vigil.home.keeper_socket, keeper)
    assert roles(vigil) == {"daemon": [daemon], "keeper": [keeper]}


def test_a_daemon_starts_without_a_stopped_keeper_whose_socket_is_lost_and_finds_it_when_it_goes_on(vigil: Instance) -> None:
    keeper = vigil.keeper_pid
    os.kill(keeper, signal.SIGSTOP)
    try:
        vigil.home.keeper_socket.unlink()
        vigil.kill_daemon()

        assert len(vigil.json("ls")) == 2
        assert (vigil.client.status()["keeper_pid"], vigil.client.status()["keeper_wedged"]) == (keeper, True)
        told = vigil.client.incidents()[0]
        assert (told["kind"], f"kill -CONT {keeper}" in told["why"]) == ("keeper-lost", True)
        assert roles(vigil)["keeper"] == [keeper]
    finally:
        resume(keeper)

    vigil.wait_event("keeper.answers", within_s=15)
    assert vigil.run("more", "sleep", "1000")["state"] == "running"
    assert vigil.keeper_pid == keeper


@pytest.mark.soak
def test_twenty_commands_at_once_after_a_loss_find_the_same_daemon(vigil: Instance, repeats: int) -> None:
    for n in range(max(3, repeats // 5)):
        if n % 2:
            remove_run(vigil.home.api_socket)
        else:
            vigil.home.api_socket.unlink()
            vigil.home.keeper_socket.unlink()
        daemon = vigil.daemon_pid
        if n % 3 == 1:
            vigil.kill_daemon()
        if n % 3 == 2:
            kill(vigil.keeper_pid, signal.SIGKILL)
        with ThreadPoolExecutor(20) as pool:
            done = list(pool.map(lambda _: vigil.run_cli("ls", "-o", "json"), range(20)))

        assert [(one.returncode, one.stderr) for one in done] == [(0, "")] * 20
        wait_back(vigil.home.api_socket, vigil.daemon_pid)
        wait_for(lambda: not vigil.client.status()["keeper_wedged"], 10, "a keeper")
        wait_for(lambda: len(roles(vigil)["keeper"]) == 1, 5, "one keeper", lambda: roles(vigil))
        assert (n % 3 == 1) == (vigil.daemon_pid != daemon)
        assert roles(vigil)["daemon"] == [vigil.daemon_pid]


HOLDS_THE_LOCK = """
import fcntl, os, sys, time
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
os.pwrite(lock, b"%d\\n" % os.getpid(), 0)
print("held", flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def holding(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a lock and does nothing: as a keeper of before whose socket is lost."""
    with subprocess.Popen([sys.executable, "-c", HOLDS_THE_LOCK, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == "held\n"
            yield holder
        finally:
            holder.kill()


def test_a_keeper_that_never_makes_its_socket_anew_is_replaced_by_the_doctor(vigil: Instance) -> None:
    os.kill(vigil.daemon_pid, signal.SIGSTOP)  # it would start another at once
    kill(vigil.keeper_pid, signal.SIGKILL)
    with holding(vigil.home.lock("keeper")) as holder:
        kill(vigil.daemon_pid, signal.SIGKILL)

        assert len(vigil.json("ls")) == 2  # the daemon watches without it
        done = vigil.run_cli("doctor", "--fix")

        assert f"ended the keeper that could not be reached (pid {holder.pid})" in done.stdout
        assert done.returncode == 0, done
        assert holder.wait(10) == -signal.SIGTERM
    wait_for(lambda: not vigil.client.status()["keeper_wedged"], 15, "the daemon to have a keeper")
    assert roles(vigil)["keeper"] == [vigil.keeper_pid]
    assert vigil.run("more", "sleep", "1000")["state"] == "running"


def test_a_daemon_that_never_makes_its_socket_anew_is_replaced_by_the_doctor(vigil: Instance) -> None:
    kill(vigil.daemon_pid, signal.SIGKILL)
    with holding(vigil.home.lock("daemon")) as holder:
        living = find_daemon(vigil.home)
        assert living is not None

        mend = deaf_daemon(vigil.home, living).mend  # the doctor itself would give it the time of a start

        assert mend is not None and f"ended the daemon that could not be reached (pid {holder.pid})" in mend()
        assert holder.wait(10) == -signal.SIGTERM
    assert roles(vigil)["daemon"] == [vigil.daemon_pid]


def test_a_process_in_the_daemons_place_is_named_and_its_socket_removed_by_the_doctor(vigil: Instance) -> None:
    daemon = vigil.daemon_pid
    listens = (
        "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print(1, flush=True)"
    )
    other = vigil.home.run / "other"
    argv = [sys.executable, "-c", f"{listens}; time.sleep(600)", str(other)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as fake:
        try:
            assert fake.stdout is not None and fake.stdout.readline()
            os.rename(other, vigil.home.api_socket)

            done = vigil.run_cli("ls")
            assert (done.returncode, f"in the place of pid {daemon}" in done.stderr) == (5, True), done
            assert "the daemon has made its own anew" in vigil.ok("doctor", "--fix")

            wait_back(vigil.home.api_socket, daemon)
            assert fake.poll() is None
        finally:
            fake.kill()


def test_a_folder_of_sockets_that_is_none_is_named_and_mended_by_the_doctor(vigil: Instance) -> None:
    daemon, keeper = vigil.daemon_pid, vigil.keeper_pid
    for pid in (daemon, keeper):
        os.kill(pid, signal.SIGSTOP)
    remove_run(vigil.home.api_socket)
    vigil.home.run.symlink_to(vigil.path / "log")
    for pid in (daemon, keeper):
        resume(pid)

    done = vigil.run_cli("ls")
    assert (done.returncode, f"{vigil.home.run} is a link: remove it" in done.stderr) == (5, True), done
    assert "moved it aside" in vigil.ok("doctor", "--fix")

    wait_back(vigil.home.api_socket, daemon)
    wait_back(vigil.home.keeper_socket, keeper)
    assert not list((vigil.path / "log").glob("*.sock"))


def test_who_has_lost_its_lock_makes_no_socket_anew(vigil: Instance) -> None:
    """Or two daemons would take it from each other."""
    lock = vigil.home.lock("daemon")
    aside = lock.with_name("aside")
    os.rename(lock, aside)
    lock.touch()
    vigil.home.api_socket.unlink()

    with pytest.raises(AssertionError):
        wait_for(vigil.home.api_socket.exists, 2.5, "a socket")

    os.rename(aside, lock)
    with open(lock, "rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    wait_back(vigil.home.api_socket, vigil.daemon_pid)
