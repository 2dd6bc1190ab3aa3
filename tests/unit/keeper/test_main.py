"""A real keeper answers whatever it is asked, with the reason where it refuses, and goes on."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vigil.keeper import main, wire

PATIENT_S = 10.0

Json = dict[str, Any]


class Line:
    """A connection to a keeper, as bytes."""

    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENT_S)
        self.sock.connect(str(path))
        self.answers = self.sock.makefile("rb")

    def ask(self, said: Json | bytes) -> Json:
        """Say something and return the next answer."""
        self.sock.sendall(said if isinstance(said, bytes) else json.dumps(said).encode() + b"\n")
        return self.read()

    def read(self) -> Json:
        answer = json.loads(self.answers.readline())
        assert isinstance(answer, dict)
        return answer

    def close(self) -> None:
        self.answers.close()
        self.sock.close()


@pytest.fixture
def path(short: Path) -> Iterator[Path]:
    """The socket of a keeper of this test's own, which runs in a Python that can be removed."""
    program = str(Path(main.__file__).parent / "__main__.py")
    files = [str(short), str(short / "lock"), str(short / "log")]
    (short / "python").symlink_to(sys.executable)
    keeper = subprocess.Popen([str(short / "python"), "-E", "-s", "-S", program, *files, "1024"], cwd="/")
    until = time.monotonic() + PATIENT_S
    while not (short / "keeper.sock").exists():
        assert time.monotonic() < until and keeper.poll() is None
        time.sleep(0.005)
    yield short / "keeper.sock"
    keeper.terminate()
    keeper.wait(PATIENT_S)


@pytest.fixture
def line(path: Path) -> Iterator[Line]:
    """A connection of the process that holds the daemon's lock."""
    with open(path.parent / "daemon.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        line = Line(path)
        yield line
        line.close()


WATCH = {"launch": "s1-1", "folder": "/nonexistent", "role": "agent", "pid": 1, "start_ticks": 7}


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ({"id": 3, "do": "dance"}, {"re": 3, "ok": False, "why": "do 'dance' is not known"}),
        ({"id": 3}, {"re": 3, "ok": False, "why": "do None is not known"}),
        ({"id": 3, "do": "spawn", "launch": "a"}, {"re": 3, "ok": False, "why": "spawn: folder is not a text: None"}),
        (
            {"id": 3, "do": "spawn", "launch": "a", "folder": "/nonexistent"},
            {"re": 3, "ok": False, "why": "/nonexistent/launch.json cannot be read"},
        ),
        (
            {"id": 3, "do": "watch", "watches": [WATCH, {"launch": "a"}]},
            {"re": 3, "ok": False, "why": "watch: folder is not a text: None"},
        ),
        (
            {"id": 3, "do": "watch", "watches": [{**WATCH, "role": "clown"}]},
            {"re": 3, "ok": False, "why": "there is no role 'clown' to record an end of"},
        ),
        (
            {"id": 3, "do": "close-input", "launch": "a"},
            {"re": 3, "ok": False, "why": "the keeper does not hold its input open"},
        ),
        (b"[]\n", {"re": 0, "ok": False, "why": "not an object"}),
        (b"hello\n", {"re": 0, "ok": False, "why": "not JSON: Expecting value: line 1 column 1 (char 0)"}),
        ({"id": 3, "do": "forget", "launch": "a"}, {"re": 3, "ok": True, "peak_kb": None}),
    ],
    ids=lambda value: str(value)[:50],
)
def test_every_request_is_answered_and_the_next_one_too(line: Line, said: Json | bytes, answered: Json) -> None:
    assert line.ask(said) == answered

    pong = line.ask({"id": 4, "do": "ping"})
    assert (pong["re"], pong["ok"], pong["watching"]) == (4, True, 0)


def test_an_order_that_is_not_understood_is_refused_with_the_reason(line: Line, tmp_path: Path) -> None:
    (tmp_path / "launch.json").write_text('{"runtime": "headless", "argv": "cat"}', "utf-8")

    answer = line.ask({"id": 3, "do": "spawn", "launch": "a", "folder": str(tmp_path)})

    assert answer == {"re": 3, "ok": False, "why": f"{tmp_path}/launch.json: argv is not a list of texts"}


def test_requests_beside_one_that_is_no_json_are_obeyed(line: Line) -> None:
    first = line.ask(b'{"id":1,"do":"ping"}\nhello\n{"id":2,"do":"ping"}\n')

    assert [(answer["re"], answer["ok"]) for answer in (first, line.read(), line.read())] == [(1, True), (0, False), (2, True)]


def test_a_daemon_that_sends_a_line_without_end_is_told_so_and_hung_up_on(path: Path, line: Line) -> None:
    other = Line(path)
    other.sock.sendall(b"x" * (wire.LINE_BYTES + 1))

    assert other.read() == {"re": 0, "ok": False, "why": "a line without end"}
    assert other.answers.readline() == b""
    assert line.ask({"id": 4, "do": "ping"})["ok"]
    other.close()


def test_a_keeper_that_cannot_be_executed_anew_says_so_and_goes_on_and_keeps_its_lock_to_itself(path: Path, line: Line) -> None:
    (path.parent / "python").unlink()

    promised = line.ask({"id": 3, "do": "upgrade"})

    assert [promised, line.read()] == [
        {"re": 3, "ok": True},
        {"re": 3, "ok": False, "why": "No such file or directory"},
    ]
    keeper = line.ask({"id": 4, "do": "ping"})["pid"]
    assert open_to_children(keeper) == ["0", "1", "2"]


def open_to_children(pid: int) -> list[str]:
    """Return the descriptors that what a process executes inherits."""
    found = {entry.name: entry.read_text() for entry in Path(f"/proc/{pid}/fdinfo").iterdir()}
    flags = {fd: int(text.partition("flags:")[2].split()[0], 8) for fd, text in found.items()}
    return sorted(fd for fd, bits in flags.items() if not bits & os.O_CLOEXEC)


STRANGER = """
import json, socket, sys
sock = socket.socket(socket.AF_UNIX); sock.settimeout(10); sock.connect(sys.argv[1])
for request in json.loads(sys.argv[2]):
    sock.sendall(json.dumps(request).encode() + b"\\n")
    print(sock.recv(65536).decode().strip())
"""


@pytest.mark.parametrize("held", [True, False], ids=["a daemon runs", "no daemon runs"])
def test_a_process_that_is_not_the_daemon_may_ping_and_no_more(path: Path, held: bool) -> None:
    lock = open(path.parent / "daemon.lock", "wb")  # noqa: SIM115
    if held:
        fcntl.flock(lock, fcntl.LOCK_EX)
    asked: list[Json] = [
        {"do": "spawn", "launch": "a", "folder": "/nonexistent"},
        {"do": "watch", "watches": [WATCH]},
        {"do": "forget", "launch": "a"},
        {"do": "close-input", "launch": "a"},
        {"do": "upgrade"},
        {"do": "quit"},
        {"do": "ping"},
    ]
    requests = json.dumps([{"id": number, **request} for number, request in enumerate(asked)])

    said = subprocess.run([sys.executable, "-c", STRANGER, str(path), requests], capture_output=True, text=True, timeout=30)

    answers = [json.loads(text) for text in said.stdout.splitlines()]
    assert [answer["ok"] for answer in answers] == [False] * 6 + [True], said
    assert {answer["why"] for answer in answers[:6]} == {"the keeper obeys only the daemon of its home, which holds its lock"}
    assert answers[6]["watching"] == 0
    lock.close()


def test_a_keeper_reads_no_lock_that_could_hang_it(path: Path) -> None:
    os.mkfifo(path.parent / "daemon.lock")
    line = Line(path)

    assert not line.ask({"id": 3, "do": "quit"})["ok"]
    assert line.ask({"id": 4, "do": "ping"})["ok"]
    line.close()


def reach(path: Path) -> Line:
    """Connect to a keeper that is about to make its socket anew."""
    until = time.monotonic() + PATIENT_S
    while True:
        with socket.socket(socket.AF_UNIX) as sock:
            if sock.connect_ex(str(path)) == 0:
                return Line(path)
        assert time.monotonic() < until
        time.sleep(0.005)


def put_folder(path: Path) -> None:
    path.unlink()
    with contextlib.suppress(FileExistsError):  # it may be back already
        path.mkdir()


def rename(path: Path) -> None:
    os.rename(path, path.with_name("aside"))


def replace(path: Path) -> None:
    """Put another process's socket in its place, at once."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path.with_name("other")))
        sock.listen()
        os.replace(path.with_name("other"), path)


@pytest.mark.parametrize("lose", [Path.unlink, rename, replace, put_folder])
def test_a_keeper_makes_its_lost_socket_anew_and_keeps_its_daemon(path: Path, line: Line, lose: Callable[[Path], None]) -> None:
    pid = line.ask({"id": 3, "do": "ping"})["pid"]

    lose(path)

    other = reach(path)
    assert other.ask({"id": 4, "do": "ping"})["pid"] == pid
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert line.ask({"id": 5, "do": "forget", "launch": "a"})["ok"]
    other.close()


def test_a_keeper_with_a_lost_socket_sleeps_when_it_is_back(path: Path, line: Line) -> None:
    pid = line.ask({"id": 3, "do": "ping"})["pid"]
    for _ in range(3):
        path.unlink()
        reach(path).close()
    line.ask({"id": 3, "do": "ping"})
    time.sleep(0.5)  # after its last word it has nothing to do

    def turns() -> int:
        return int(Path(f"/proc/{pid}/status").read_text().partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    before = turns()
    time.sleep(1.0)
    assert turns() - before <= 2


def test_a_keeper_that_became_another_makes_its_lost_socket_anew(path: Path, line: Line) -> None:
    pid = line.ask({"id": 3, "do": "ping"})["pid"]
    path.unlink()
    reach(path).close()
    assert line.ask({"id": 3, "do": "upgrade"})["ok"]
    assert line.answers.readline() == b""
    again = reach(path)
    assert again.ask({"id": 4, "do": "ping"})["pid"] == pid

    path.unlink()

    other = reach(path)
    assert (again.ask({"id": 4, "do": "ping"})["ok"], other.ask({"id": 4, "do": "ping"})["pid"]) == (True, pid)
    for one in (again, other):
        one.close()
