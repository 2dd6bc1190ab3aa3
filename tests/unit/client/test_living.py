"""A daemon that lives is found by its lock: its socket is waited for, and if it stays away it is named, and can be ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vigil.client.living import DeafDaemon, end_daemon, find_daemon, wait_for_answer
from vigil.home import Home, home_at, make_home

HOLDS = """
import fcntl, os, sys, time
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
if len(sys.argv) > 2:
    import socket
    time.sleep(0.5)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(sys.argv[2])
    sock.listen()
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def home(short: Path) -> Home:
    found = home_at(short / "home")
    make_home(found)
    return found


@pytest.fixture
def deaf(home: Home) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the daemon's lock and does not listen."""
    argv = [sys.executable, "-c", HOLDS, str(home.lock("daemon"))]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_without_a_lock_or_its_holder_no_daemon_lives(home: Home, deaf: subprocess.Popen[str]) -> None:
    found = find_daemon(home)
    assert found is not None and (found.pid, found.stopped) == (deaf.pid, False)

    deaf.kill()
    deaf.wait()

    assert find_daemon(home) is None
    home.lock("daemon").unlink()
    assert find_daemon(home) is None
    assert not wait_for_answer(home)


def test_a_daemon_without_a_socket_is_named_in_time_with_the_way_out(home: Home, deaf: subprocess.Popen[str]) -> None:
    began = time.monotonic()

    with pytest.raises(DeafDaemon, match=rf"the daemon \(pid {deaf.pid}\) runs, but .*api.sock .* vigil daemon stop") as told:
        wait_for_answer(home, start_s=0.0, socket_s=0.3)

    assert time.monotonic() - began < 10
    assert told.value.exit_code == 5


@pytest.mark.usefixtures("deaf")
def test_one_that_is_young_has_the_time_of_a_start(home: Home) -> None:
    found = find_daemon(home)
    assert found is not None
    began = time.monotonic()

    with pytest.raises(DeafDaemon):
        wait_for_answer(home, start_s=found.age_s + 1.5, socket_s=0.1)

    assert time.monotonic() - began > 0.5


def test_a_stopped_one_is_named_at_once(home: Home, deaf: subprocess.Popen[str]) -> None:
    os.kill(deaf.pid, signal.SIGSTOP)

    with pytest.raises(DeafDaemon, match=rf"is stopped.*kill -CONT {deaf.pid}"):
        wait_for_answer(home)


def test_its_socket_is_waited_for(home: Home) -> None:
    argv = [sys.executable, "-c", HOLDS, str(home.lock("daemon")), str(home.api_socket)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        while find_daemon(home) is None:
            assert process.poll() is None

        assert wait_for_answer(home)

        process.kill()


def test_its_end_is_waited_for_too(home: Home, deaf: subprocess.Popen[str]) -> None:
    ending = threading.Timer(0.3, deaf.kill)
    ending.start()

    assert not wait_for_answer(home)

    ending.join()


@pytest.mark.parametrize("stopped", [False, True])
def test_it_is_ended_by_a_signal(home: Home, deaf: subprocess.Popen[str], stopped: bool) -> None:
    if stopped:
        os.kill(deaf.pid, signal.SIGSTOP)
    found = find_daemon(home)
    assert found is not None

    end_daemon(home, found)

    assert deaf.wait(10) == -signal.SIGTERM
    end_daemon(home, found)  # once more: its pid is another's now, or nobody's
