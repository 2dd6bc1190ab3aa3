"""Bring-up: from the start of `vigil up` until every replica of a role has a recorded pid, with raw tmux beside it.

Each bring-up has a home of its own, so it holds the start of the daemon too. The moments are those of the event log, read
afterwards. Meanwhile the daemon is asked for all sessions every 250 ms, some ms of its time each: that says when all are up.
In a second bring-up `vigil ls` is run as often: that alone takes a good part of a core, so the rate beside it stands apart.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.harness import AGENT, Run, find_marked, percentile, wait_for_calm, wait_until
from bench.peers.contract import tool
from bench.raw_tmux import bring_up_raw
from vigil.client import Client
from vigil.client.living import answers
from vigil.home import home_at

REPLICAS = 200
ROUNDS = 5
QUICK_REPLICAS = 50
QUICK_ROUNDS = 2
RUNTIMES = ("tmux", "headless")
AT_ONCE = (1, 4)  # 4: as many as Vigil launches at once
EVERY_S = 0.25
WITHIN_S = 180.0

MANIFEST = """\
workspace = "bench"

[[team]]
name = "fleet"

[[team.role]]
name = "agent"
replicas = {count}
command = [{command}]
runtime = "{runtime}"
cwd = "/"
"""


@dataclass(frozen=True)
class BringUp:
    """One bring-up: its moments after the start of the command, and how long those who asked meanwhile waited."""

    declared_s: float  # the first replica
    launched_s: float  # the last pid
    answers_ms: list[float]
    lists_ms: list[float]


def measure(run: Run, quick: bool) -> list[dict[str, Any]]:
    """Bring all up in turn, round after round."""
    count = QUICK_REPLICAS if quick else REPLICAS
    alone: defaultdict[str, list[BringUp]] = defaultdict(list)
    listed: defaultdict[str, list[BringUp]] = defaultdict(list)
    raw: defaultdict[int, list[float]] = defaultdict(list)  # how many a second
    for _ in range(QUICK_ROUNDS if quick else ROUNDS):
        for at_once in AT_ONCE:
            wait_for_calm()
            raw[at_once].append(count / bring_up_raw(new_folder(run), count, at_once))
        for runtime in RUNTIMES:
            for kept, listing in ((alone, False), (listed, True)):
                wait_for_calm()
                kept[runtime].append(bring_up(run, runtime, count, listing))
    raw_per_s = percentile(raw[AT_ONCE[-1]], 0.5)
    ours = [row(runtime, count, alone[runtime], listed[runtime], raw_per_s) for runtime in RUNTIMES]
    return ours + [raw_row(at_once, count, raw[at_once], raw_per_s) for at_once in AT_ONCE]


def bring_up(run: Run, runtime: str, count: int, listing: bool) -> BringUp:
    """Bring up one role in a new home, ask meanwhile, and end all of it, verified."""
    folder = new_folder(run)
    client = Client(home_at(folder / "home"))
    environment = {**os.environ, "VIGIL_HOME": str(client.home.path)}
    command = ", ".join(f'"{word}"' for word in AGENT)
    manifest = folder / "vigil.toml"
    manifest.write_text(MANIFEST.format(count=count, command=command, runtime=runtime), "utf-8")

    def list_all() -> None:
        subprocess.run([tool("vigil"), "ls"], env=environment, capture_output=True, timeout=WITHIN_S, check=True)

    at = time.time()
    with open(folder / "output", "wb") as output:
        up = subprocess.Popen([tool("vigil"), "up", "--yes", str(manifest)], env=environment, stdout=output, stderr=output)
    try:
        wait_until(lambda: answers(client.home), WITHIN_S, "start of the daemon")
        answers_ms, lists_ms = ask_until_up(client, count, list_all if listing else None)
        if up.wait(WITHIN_S) != 0:
            raise RuntimeError(f"vigil up failed: {(folder / 'output').read_text('utf-8', 'replace')[-300:]}")
        declared_at, launched_at = read_moments(client, count)
    finally:
        end(client, up, str(run.folder))
    return BringUp(declared_at - at, launched_at - at, answers_ms, lists_ms)


def new_folder(run: Run) -> Path:
    """Return a new folder, whose name is short: sockets lie below it."""
    return Path(tempfile.mkdtemp(dir=run.folder, prefix="up-"))


def ask_until_up(client: Client, count: int, list_all: Callable[[], None] | None) -> tuple[list[float], list[float]]:
    """Ask the daemon for all sessions until all are up, and beside it with the command; return the ms of each answer."""
    up = threading.Event()
    deadline = time.monotonic() + WITHIN_S

    def ask() -> None:
        running = [session for session in client.sessions() if session["state"] == "running" and session["pid"]]
        if len(running) == count:
            up.set()
        elif time.monotonic() > deadline:
            raise RuntimeError(f"{len(running)} of {count} replicas were up after {WITHIN_S:g} s")

    with ThreadPoolExecutor(1) as beside:
        listing = None if list_all is None else beside.submit(time_again, list_all, up)
        try:
            answers_ms = time_again(ask, up)
        finally:
            up.set()
        return answers_ms, [] if listing is None else listing.result()


def time_again(ask: Callable[[], None], over: threading.Event) -> list[float]:
    """Ask every 250 ms until it is over; return the ms that each answer took."""
    took_ms = []
    while not over.is_set():
        at = time.monotonic()
        ask()
        took_ms.append((time.monotonic() - at) * 1000)
        over.wait(max(0.0, at + EVERY_S - time.monotonic()))
    return took_ms


def read_moments(client: Client, count: int) -> tuple[float, float]:
    """Read from the event log when the first replica was declared, and when the last pid was known."""
    declared_at, launched_at = [], []
    for event in client.follow_events(after=0):
        if event["kind"] == "session.declared":
            declared_at.append(datetime.fromisoformat(event["at"]).timestamp())
        elif event["kind"] == "session.launched":
            launched_at.append(datetime.fromisoformat(event["at"]).timestamp())
            if len(launched_at) == count:
                break
    return min(declared_at), max(launched_at)


def end(client: Client, up: subprocess.Popen[bytes], mark: str) -> None:
    """End daemon, keeper and sessions the way a user does; nothing that bears the mark of the run may be left."""
    if up.poll() is None:
        up.kill()
        up.wait()
    if answers(client.home):
        client.stop_daemon(kill_sessions=True)
    wait_until(lambda: not find_marked(mark), WITHIN_S, "end of a bring-up", every_s=0.1)


def row(runtime: str, count: int, alone: list[BringUp], listed: list[BringUp], raw_per_s: float) -> dict[str, Any]:
    """Return the line of one runtime."""
    answers_ms = [ms for one in alone for ms in one.answers_ms]
    lists_ms = [ms for one in listed for ms in one.lists_ms]
    launching = [count / (one.launched_s - one.declared_s) for one in alone]
    return {
        "system": f"vigil-{runtime}",
        "label": f"Vigil, {runtime}",
        **rates([count / one.launched_s for one in alone], count, raw_per_s),
        "declared_s": percentile([one.declared_s for one in alone], 0.5),
        "launching_per_s": percentile(launching, 0.5),
        "answer_p95_ms": percentile(answers_ms, 0.95),
        "answer_max_ms": max(answers_ms),
        "listed_per_s": percentile([count / one.launched_s for one in listed], 0.5),
        "ls_p95_ms": percentile(lists_ms, 0.95),
        "ls_max_ms": max(lists_ms),
    }


def raw_row(at_once: int, count: int, per_s: list[float], raw_per_s: float) -> dict[str, Any]:
    """Return a line of raw tmux, which nobody can ask anything."""
    unknown = ("declared_s", "launching_per_s", "answer_p95_ms", "answer_max_ms", "listed_per_s", "ls_p95_ms", "ls_max_ms")
    return {
        "system": f"raw-tmux-{at_once}",
        "label": f"raw tmux, {at_once} at once",
        **rates(per_s, count, raw_per_s),
        **dict.fromkeys(unknown),
    }


def rates(per_s: list[float], count: int, raw_per_s: float) -> dict[str, Any]:
    """Return how many came up in a second: the median over all bring-ups, the range, and the share of raw tmux's."""
    median = percentile(per_s, 0.5)
    return {
        "count": count,
        "runs": len(per_s),
        "per_s": median,
        "slowest_per_s": min(per_s),
        "fastest_per_s": max(per_s),
        "of_raw": median / raw_per_s,
        "all_per_s": per_s,
    }
