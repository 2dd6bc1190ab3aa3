"""Whatever hangs (stopped servers, commands of reactions, pipes in the spool): restarts are on time, readers are answered."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.live.instance import Instance, Json, wait_for
from tests.live.test_restarts import at
from vigil.client.client import Client
from vigil.errors import VigilError

SOAK = bool(os.environ.get("VIGIL_SOAK"))
MANY = 30 if SOAK else 8  # more than the threads of one purpose
LATE_S = 1.0 if SOAK else 3.0  # beside a whole suite everything is late
ANSWER_S = 2.0 if SOAK else 5.0
HANGS = "[[reaction]]\nkind = 'saturated'\ndo = 'run'\ncommand = ['sleep', '1000']\nbudget = 1\n"
ASKED: tuple[Callable[[Client, str], object], ...] = (
    lambda client, name: client.logs(name, 10, False),
    lambda client, name: client.send(name, "hello", 1.0),
    lambda client, name: client.terminal(name),
    lambda client, name: client.diag(name, 0.5),
    lambda client, name: client.why(name),
)
READ: tuple[Callable[[Client], object], ...] = (
    lambda client: client.events(),
    lambda client: client.deaths(),
    lambda client: client.sessions(),
    lambda client: client.session("due"),
    lambda client: client.incidents(True),
)
pytestmark = pytest.mark.timeout(240)


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    """Stop processes; let them go on whatever happens."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextmanager
def asked_all_the_time(vigil: Instance, names: list[str]) -> Iterator[None]:
    """Have callers ask hung sessions for everything, one after the other."""
    over = threading.Event()

    def ask(number: int) -> None:
        client = Client(vigil.home)
        while not over.wait(0.1):
            with suppress(VigilError):
                ASKED[number % len(ASKED)](client, names[number % len(names)])
            number += len(ASKED) + 1

    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(8)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(30)


def holds_of(vigil: Instance, name: str, count: int) -> dict[str, float]:
    """Return until when a session waited after each of so many launches."""
    found: dict[str, float] = {}

    def look() -> bool:
        session = vigil.get(name)
        if session["hold"] and session["hold"]["until"]:
            found[session["launch"]] = at(session["hold"]["until"])
        return len(found) >= count

    wait_for(look, 60, f"{count} backoffs of {name}")
    return found


def launched_at(vigil: Instance, name: str) -> dict[str, float]:
    """Return when each launch of a session was decided."""
    events = [e for e in vigil.client.events(name) if e["kind"] == "session.state" and e["data"]["to"] == "starting"]
    return {event["launch"]: at(event["at"]) for event in events}


def following(launch: str) -> str:
    session, _, number = launch.rpartition("-")
    return f"{session}-{int(number) + 1}"


def test_restarts_are_on_time_and_readers_are_answered_whatever_hangs(vigil: Instance) -> None:
    vigil.config.write_text(HANGS)
    hung = [vigil.run(f"hung{number}", "sleep", "1000") for number in range(MANY)]
    for number in range(MANY):
        vigil.run(
            f"over{number}", "sh", "-c", "exit 3", runtime="headless", restart="on-failure", max_restarts=1, backoff_base_s=0.1
        )
        os.mkfifo(vigil.home.spool / "new" / f"pipe{number}")
    wait_for(lambda: len(reactions(vigil)) == MANY, 30, "every reaction to hang")
    servers = [vigil.get(session["name"])["server_pid"] for session in hung]

    with stopped(servers), asked_all_the_time(vigil, [session["name"] for session in hung]):
        vigil.run("due", "sh", "-c", "exit 3", restart="always", max_restarts=0, backoff_base_s=0.5)
        until = holds_of(vigil, "due", 3)
        slowest_s = max(took_s(vigil, read) for read in READ)
        begun = launched_at(vigil, "due")

    late_s = {launch: begun[following(launch)] - until[launch] for launch in until if following(launch) in begun}
    assert len(late_s) >= 2
    assert all(-0.05 <= late < LATE_S for late in late_s.values()), late_s
    assert slowest_s < ANSWER_S


def reactions(vigil: Instance) -> list[Json]:
    return [event for event in vigil.client.events() if event["kind"] == "incident.reaction"]


def took_s(vigil: Instance, read: Callable[[Client], object]) -> float:
    began = time.monotonic()
    read(vigil.client)
    return time.monotonic() - began
