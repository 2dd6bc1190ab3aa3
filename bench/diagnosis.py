"""Diagnosis: what it costs to look closely at one agent, and cheaply at a whole fleet, beside how others do it.

The others' way is what seed projects have: each agent alone, its sockets from `net/tcp`, its descendants by a walk of psutil.
All processes are real: one small `sh` forks them, and they wait for a FIFO that nobody writes to until the end.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.harness import Run, percentile, wait_for_calm, wait_until
from vigil.core.model.launch import Launch, ProcessId
from vigil.daemon.sense.processes import PASS_S
from vigil.kernel import process
from vigil.kernel.stats import read_scan
from vigil.observe.diagnosis import diagnose, take_sample
from vigil.observe.sockets import read_sockets
from vigil.observe.trees import Tokens, trees_of

CHILDREN = 15  # of the one agent
AGENTS, EACH = 500, 10
QUICK_AGENTS = 50
CONNECTIONS = 100  # of a neighbour, so that there is something to tell apart
RUNS, QUICK_RUNS = 30, 10
BORN_S = 120.0
FLEET = """
a=0
while [ $a -lt "$2" ]; do
    (
        c=0
        while [ $c -lt "$3" ]; do (read -r x <"$1") & c=$((c + 1)); done
        read -r x <"$1"
    ) >/dev/null &
    echo $!
    a=$((a + 1))
done
exec >&-
read -r x <"$1"
"""


def measure(run: Run, quick: bool) -> list[dict[str, Any]]:
    """Look at one agent, then at many."""
    agents = QUICK_AGENTS if quick else AGENTS
    runs = QUICK_RUNS if quick else RUNS
    with neighbour(CONNECTIONS):
        with fleet(run.folder, 1, CHILDREN) as (launch,):
            wait_for_calm()
            rows = [*full_rows(launch, runs)]
        with fleet(run.folder, agents, EACH) as launches:
            wait_for_calm()
            rows += fleet_rows(launches, runs)
    return rows


def full_rows(launch: Launch, runs: int) -> Iterator[dict[str, Any]]:
    """Yield what a close look at one agent costs."""
    tokens = Tokens()

    def ours() -> None:
        before = take_sample(launch, tokens, thorough=False)
        found = diagnose(launch, before, take_sample(launch, tokens))
        assert len(found.processes) == CHILDREN + 1 and not found.sockets

    yield row("vigil-full", f"Vigil, one agent with {CHILDREN} children, both looks", CHILDREN, timed(ours, runs))
    yield row("theirs-full", "the same by psutil and net/tcp", CHILDREN, timed(lambda: look_like_others(launch), runs))


def fleet_rows(launches: Sequence[Launch], runs: int) -> Iterator[dict[str, Any]]:
    """Yield what a pass over a fleet costs, and at its cadence."""
    tokens = Tokens()

    def ours() -> None:
        found = trees_of(launches, read_scan(), tokens)
        read_sockets()
        assert all(len(tree.members) == EACH + 1 for tree in found.values())

    some = launches[:3]
    label = f"Vigil, cheap pass over {len(launches)} agents with {EACH} children each"
    yield row("vigil-cheap", label, len(launches), timed(ours, runs))
    took = timed(lambda: [look_like_others(launch) for launch in some], 1)
    whole = [(wall * len(launches) / len(some), cpu * len(launches) / len(some)) for wall, cpu in took]
    yield row("theirs-cheap", f"the same by psutil and net/tcp (from {len(some)} agents)", len(launches), whole)


def look_like_others(launch: Launch) -> dict[str, Any]:
    """Read one agent as others do: its descendants by psutil, its sockets from its own `net/tcp`."""
    psutil: Any = importlib.import_module("psutil")  # only here: Vigil does not need it
    assert launch.process is not None
    pid = launch.process.pid
    leader = psutil.Process(pid)
    members = [leader, *leader.children(recursive=True)]
    found: list[dict[str, Any]] = [
        member.as_dict(["pid", "status", "cpu_times", "memory_info", "num_threads", "num_fds", "cmdline"]) for member in members
    ]
    sockets = [line for table in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]]
    return {"processes": found, "established": sum(line.split()[3] == "01" for line in sockets)}


def timed(work: Callable[[], object], runs: int) -> list[tuple[float, float]]:
    """Return wall and CPU milliseconds of some runs."""
    took = []
    for _ in range(runs):
        at, cpu_at = time.perf_counter(), time.process_time()
        work()
        took.append(((time.perf_counter() - at) * 1000, (time.process_time() - cpu_at) * 1000))
    return took


def row(system: str, label: str, count: int, took: list[tuple[float, float]]) -> dict[str, Any]:
    """Return one row of the table."""
    cpu_ms = percentile([cpu for _, cpu in took], 0.5)
    return {
        "system": system,
        "label": label,
        "count": count,
        "runs": len(took),
        "p50_ms": percentile([wall for wall, _ in took], 0.5),
        "max_ms": max(wall for wall, _ in took),
        "cpu_ms": cpu_ms,
        "core_percent": cpu_ms / (PASS_S * 1000) * 100 if system == "vigil-cheap" else None,
    }


@contextlib.contextmanager
def fleet(folder: Path, agents: int, each: int) -> Iterator[list[Launch]]:
    """Start so many agents with so many children; all of them end when their FIFO is closed."""
    fifo = folder / f"fifo-{agents}"
    os.mkfifo(fifo)
    with subprocess.Popen(["sh", "-c", FLEET, "sh", str(fifo), str(agents), str(each)], stdout=subprocess.PIPE) as top:
        try:
            assert top.stdout is not None
            pids = [int(line) for line in top.stdout]
            boot = process.read_boot()
            launches = [
                Launch(f"bench{pid}-1", f"bench{pid}", 1, 0.0, process=ProcessId(pid, process.read_start_ticks(pid) or 0, boot))
                for pid in pids
            ]
            wait_until(lambda: _are_born(launches, each), BORN_S, f"{agents * (each + 1):,} processes", every_s=0.5)
            yield launches
        finally:
            deadline = time.monotonic() + BORN_S
            while top.poll() is None and time.monotonic() < deadline:  # one that was just born opens it after the others
                os.close(os.open(fifo, os.O_RDWR | os.O_NONBLOCK))
                time.sleep(0.05)


def _are_born(launches: Sequence[Launch], each: int) -> bool:
    found = trees_of(launches, read_scan(), Tokens())
    return all(len(tree.members) == each + 1 for tree in found.values())


@contextlib.contextmanager
def neighbour(connections: int) -> Iterator[None]:
    """Hold open connections that are none of the agents'."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=connections))
        for _ in range(connections):
            stack.enter_context(socket.create_connection(server.getsockname()))
            stack.enter_context(server.accept()[0])
        yield
