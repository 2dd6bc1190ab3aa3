"""Headless input: a conversing agent's pipe stays open whoever writes to it and whoever goes."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.live.instance import Instance, alive, kill, wait_for
from vigil.client.living import answers
from vigil.core.model.launch import Launch, RuntimeKind
from vigil.core.model.session import Session, Spec, State
from vigil.runtimes import Headless, Order


def converse(vigil: Instance) -> tuple[int, Path]:
    """Have the keeper launch an agent that says what it reads; return its pid and its folder."""
    vigil.run("other", "sleep", "1000")
    launch = Launch("talk-1", "talk", 1, 0.0)
    session = Session("talk", "talk", Spec(("cat",), "/", runtime=RuntimeKind.HEADLESS), 0.0, State.STARTING, 0.0, "")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(vigil.path)}
    Headless(vigil.home).prepare(Order(session, launch, env, ("cat",), converses=True))
    folder = vigil.home.launch("talk-1")
    return ask_keeper(vigil, {"do": "spawn", "launch": "talk-1", "folder": str(folder)})["agent"][0], folder


def test_a_conversing_agent_keeps_its_input_when_writers_and_the_daemon_go(vigil: Instance) -> None:
    pid, folder = converse(vigil)

    for word in ("one\n", "two\n"):
        with open(folder / "stdin.fifo", "w", encoding="ascii") as pipe:
            pipe.write(word)
    wait_for(lambda: (folder / "stdout.jsonl").read_text() == "one\ntwo\n", 10, "both words to come back")
    vigil.kill_daemon()
    with open(folder / "stdin.fifo", "w", encoding="ascii") as pipe:
        pipe.write("three\n")

    wait_for(lambda: (folder / "stdout.jsonl").read_text() == "one\ntwo\nthree\n", 10, "the third")
    assert alive(pid)
    ask_keeper(vigil, {"do": "forget", "launch": "talk-1"})
    wait_for(lambda: not alive(pid), 10, "the agent to see the end of its input")


def test_a_conversing_agent_keeps_its_input_when_the_keeper_is_upgraded(vigil: Instance) -> None:
    pid, folder = converse(vigil)

    ask_keeper(vigil, {"do": "upgrade"})

    wait_for(lambda: ask_keeper(vigil, {"do": "ping"})["watching"] == 4, 10, "the keeper to watch again")
    with open(os.open(folder / "stdin.fifo", os.O_WRONLY | os.O_NONBLOCK), "w", encoding="ascii") as pipe:
        pipe.write("still here\n")
    wait_for(lambda: (folder / "stdout.jsonl").read_text() == "still here\n", 10, "the word to come back")
    assert alive(pid)
    ask_keeper(vigil, {"do": "close-input", "launch": "talk-1"})
    wait_for(lambda: not alive(pid), 10, "the agent to see the end of its input")


def test_an_agent_that_prints_without_end_does_not_wake_the_daemon_without_end(vigil: Instance) -> None:
    session = vigil.run("yes", "sh", "-c", "while :; do echo y; done", runtime="headless")
    before = _cpu_ticks(vigil.daemon_pid)
    path = vigil.home.launch(session["launch"]) / "stdout.jsonl"
    size = path.stat().st_size

    wait_for(lambda: path.stat().st_size > size + (2 << 20), 30, "two more megabytes")

    assert _cpu_ticks(vigil.daemon_pid) - before < 100  # a whole second of CPU would be a loop
    assert vigil.get("yes")["last_activity_at"] is not None
    kill(session["pid"], 9)


def test_a_word_that_was_printed_before_anybody_followed_is_a_sign_of_life(vigil: Instance) -> None:
    vigil.run("quick", "sh", "-c", "echo ready; exec sleep 1000", runtime="headless")

    wait_for(lambda: vigil.get("quick")["last_activity_at"], 5, "its word to be noticed")
    session = vigil.get("quick")
    said_at, started_at = (datetime.fromisoformat(session[key]) for key in ("last_activity_at", "started_at"))
    assert said_at > started_at - timedelta(seconds=0.1)  # the kernel stamps a file by the clock of its last tick


def ask_keeper(vigil: Instance, request: dict[str, Any]) -> dict[str, Any]:
    """Ask the instance's keeper in the daemon's place: it obeys only the holder of the daemon's lock."""
    if request["do"] == "ping":
        return _ask_keeper(vigil, request)
    ran = answers(vigil.home)
    if ran:
        vigil.client.stop_daemon()
    with open(vigil.home.lock("daemon"), "ab") as lock:
        wait_for(lambda: _takes(lock.fileno()), 10, "the daemon's lock")
        answer = _ask_keeper(vigil, request)
    if ran:
        vigil.start()
    return answer


def _takes(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _ask_keeper(vigil: Instance, request: dict[str, Any]) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as sock, sock.makefile("r", encoding="utf-8") as lines:
        sock.settimeout(10)
        sock.connect(str(vigil.home.keeper_socket))
        sock.sendall(json.dumps({"id": 7, **request}).encode() + b"\n")
        for line in lines:
            answer = json.loads(line)
            if answer.get("re") == 7:
                assert answer["ok"], answer
                assert isinstance(answer, dict)
                return answer
    raise AssertionError("the keeper hung up")


def _cpu_ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
