"""Nothing grows with what is gone: sessions made and removed, deaths by the thousand, and the daemon and its keeper as before.

`make test` takes a few of each, VIGIL_SOAK=1 takes 5,000 sessions and 20,000 deaths: docs/performance.md has the figures."""

from __future__ import annotations

import http.client
import json
import os
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import Instance, wait_for

SOAK = bool(os.environ.get("VIGIL_SOAK"))
SESSIONS = int(os.environ.get("VIGIL_SOAK_SESSIONS", 5000 if SOAK else 40))
DEATHS = int(os.environ.get("VIGIL_SOAK_DEATHS", 20_000 if SOAK else 40))
CRASHERS = 12
MB = 1 << 20
# Events, deaths and bundles are kept for a while; so few that the run gets to where they go.
CONFIG = """
[restart]
backoff = { base = 0.01, cap = 0.01 }
[retention]
events = %d
deaths = %d
bundles = 20
"""
GONE = ("sessions", "intents", "roles")
ROUNDS = 10 if SOAK else 1


class Line(http.client.HTTPConnection):
    """One connection to the daemon for all that is asked."""

    def __init__(self, path: Path) -> None:
        super().__init__("vigil", timeout=120)
        self._path = str(path)

    def connect(self) -> None:
        """Connect to the daemon's socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the daemon; return its answer, which must be good."""
        self.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        answer = self.getresponse()
        said = json.loads(answer.read())
        assert answer.status < 300, said
        return said


@dataclass(frozen=True)
class Size:
    """What one moment of an instance takes."""

    daemon_kb: int
    keeper_kb: int
    daemon_fds: int
    keeper_fds: int
    daemon_threads: int
    keeper_threads: int
    files: int
    rows: int  # of the tables that are empty without sessions
    kept_rows: int
    database: int
    log: int

    def __str__(self) -> str:
        return ", ".join(f"{field.name} {getattr(self, field.name):,}" for field in fields(self))


def measure(vigil: Instance) -> Size:
    daemon, keeper = f"/proc/{vigil.daemon_pid}", f"/proc/{vigil.keeper_pid}"
    with closing(sqlite3.connect(f"file:{vigil.home.database}?mode=ro", uri=True)) as database:
        rows = {
            table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in (*GONE, "launches", "events", "deaths", "incidents")
        }
    return Size(
        _rss_kb(daemon),
        _rss_kb(keeper),
        len(os.listdir(f"{daemon}/fd")),
        len(os.listdir(f"{keeper}/fd")),
        len(os.listdir(f"{daemon}/task")),
        len(os.listdir(f"{keeper}/task")),
        sum(len(names) for _, _, names in os.walk(vigil.path)),
        sum(rows[table] for table in GONE),
        sum(count for table, count in rows.items() if table not in GONE),
        vigil.home.database.stat().st_size,
        Path(f"{vigil.home.database}-wal").stat().st_size,
    )


def _rss_kb(process: str) -> int:
    words = Path(process, "status").read_text().split()
    return int(words[words.index("VmRSS:") + 1])


@pytest.fixture
def line(vigil: Instance) -> Iterator[Line]:
    kept = max(200, SESSIONS // 2)
    vigil.config.write_text(CONFIG % (10 * kept, kept))
    vigil.start()
    with closing(Line(vigil.home.api_socket)) as line:
        yield line


def come_and_go(line: Line, count: int) -> None:
    """Make sessions and remove them, one after the other."""
    for number in range(count):
        line.ask("POST", "/v1/sessions", wanted(f"s{number}"))
        line.ask("DELETE", f"/v1/sessions/s{number}")


def die(line: Line, count: int) -> None:
    """Have a few sessions die, together so often, and remove them."""
    names = [f"d{number}" for number in range(CRASHERS)]
    for name in names:
        line.ask("POST", "/v1/sessions", wanted(name, restart="always", backoff_base_s=0.01))
    died = 0
    while died < count:
        time.sleep(0.5)
        died = sum(line.ask("GET", f"/v1/sessions/{name}")["launches"] for name in names)
    for name in names:
        line.ask("DELETE", f"/v1/sessions/{name}")


def wanted(name: str, **options: Any) -> dict[str, Any]:
    env = {"PATH": os.environ["PATH"]}
    return {"name": name, "command": ["true"], "cwd": "/", "env": env, "runtime": "headless", **options}


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600 if SOAK else 300)
def test_nothing_grows_with_sessions_that_are_gone_and_with_deaths(vigil: Instance, line: Line) -> None:
    come_and_go(line, max(30, SESSIONS // 20))
    die(line, max(30, DEATHS // 20))
    warm = now = measure(vigil)
    print(f"\nwarm: {warm}", flush=True)

    for number in range(1, ROUNDS + 1):
        began = time.monotonic()
        come_and_go(line, SESSIONS // ROUNDS)
        middle = time.monotonic()
        die(line, DEATHS // ROUNDS)
        took = f"{middle - began:.0f} s and {time.monotonic() - middle:.0f} s"
        wait_for(lambda: measure(vigil).rows == 0, 30, "the rows of what is gone to go", lambda: measure(vigil))
        now = measure(vigil)
        print(f"round {number}, {SESSIONS // ROUNDS:,} sessions and {DEATHS // ROUNDS:,} deaths, {took}: {now}", flush=True)

    assert now.daemon_fds <= warm.daemon_fds + 4 and now.keeper_fds <= warm.keeper_fds + 2
    assert now.daemon_threads <= warm.daemon_threads + 8 and now.keeper_threads == warm.keeper_threads
    assert now.files <= warm.files + 20 * 8 + 20  # its bundles
    assert now.daemon_kb <= warm.daemon_kb * 1.25 + 8192
    assert now.keeper_kb <= warm.keeper_kb * 1.25 + 2048
    assert now.log <= 8 * MB


def test_a_small_retention_holds_while_deaths_go_on_and_lists_say_so(vigil: Instance) -> None:
    vigil.config.write_text(
        "[restart]\nbackoff = { base = 0.01, cap = 0.01 }\n[retention]\nevents = 60\ndeaths = 10\nbundles = 5\n"
    )
    vigil.start()
    with closing(Line(vigil.home.api_socket)) as line:
        die(line, 40)
        vigil.run("last", "false", runtime="headless", restart="never")
    last = vigil.wait_death("last")

    wait_for(lambda: len(vigil.client.deaths()) <= 11, 40, "old deaths to be deleted", lambda: len(vigil.client.deaths()))
    wait_for(lambda: len(vigil.client.events()) <= 60, 40, "old events to be deleted", lambda: len(vigil.client.events()))

    assert last["id"] in [death["id"] for death in vigil.client.deaths()]
    assert len(os.listdir(vigil.home.deaths)) <= 11
    for words in (("deaths",), ("events",), ("events", "--since", "1d")):
        said = vigil.run_cli(*words)
        assert said.returncode == 0 and f"vigil: {words[0]} are kept from 20" in said.stderr
    assert "are kept" not in vigil.run_cli("incidents", "--all").stderr
    assert "older ones than 20" in vigil.run_cli("death", "d-nobody-1").stderr
