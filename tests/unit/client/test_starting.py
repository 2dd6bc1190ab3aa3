"""Whether a daemon is there to be asked: one that is on its way out still has its socket open, and answers nobody."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vigil.client.living import answers
from vigil.home import Home, home_at, make_home

LISTENS = """
import ctypes, socket, sys, threading, time
sock = socket.socket(socket.AF_UNIX)
sock.bind(sys.argv[1])
sock.listen()
threading.Thread(target=time.sleep, args=(60,)).start()
print("listens", flush=True)
if sys.argv[2] == "dies":
    ctypes.CDLL(None).pthread_exit(None)  # the process is a zombie from now on, and its last thread keeps its files open
"""


@pytest.fixture
def home(short: Path) -> Home:
    found = home_at(short / "home")
    make_home(found)
    return found


@pytest.fixture
def listener(home: Home, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-c", LISTENS, str(home.api_socket), request.param]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "listens\n"
        yield process
        process.kill()


@pytest.mark.parametrize(("listener", "there"), [("lives", True), ("dies", False)], indirect=["listener"])
def test_a_daemon_answers_unless_it_is_dying(home: Home, listener: subprocess.Popen[str], there: bool) -> None:
    def state() -> str:
        return Path(f"/proc/{listener.pid}/stat").read_text().rpartition(")")[2].split()[0]

    while not there and state() != "Z":
        pass

    assert answers(home) is there


def test_where_nobody_listens_no_daemon_answers(home: Home) -> None:
    assert not answers(home)
