"""Runs the measurements: python -m bench [--quick] [--write] [NAME...]

First come those that start what they need themselves, while nothing else is up. Then, for each size, a group of systems is
started with so many agents, all other measurements are made on them, and they are stopped. The pollers among them form a group
of their own, so that their work does not disturb the others.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import adoption, bringup, detection, diagnosis, idle, ingest, listing, per_session, plan, sweep
from bench.harness import Run
from bench.machine import read_machine
from bench.ours import Vigil
from bench.peers import Circus, Floor, Supervisord, System
from bench.tables import format_table, rewrite
from bench.targets import judge

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "bench" / "results"
SIZES = (1, 100, 500)

Measure = Callable[[Sequence[System], int, bool], list[dict[str, Any]]]


@dataclass(frozen=True)
class Measurement:
    """Something that is measured, and with how many sessions."""

    name: str
    measure: Measure
    sizes: tuple[int, ...] = SIZES
    is_meant: Callable[[System, int], bool] = lambda _system, _size: True


@dataclass(frozen=True)
class Lone:
    """Something that is measured while no system is up, with a size of its own."""

    name: str
    measure: Callable[[Run, bool], list[dict[str, Any]]]


def is_ours(system: System, _size: int) -> bool:
    """Say whether a system is Vigil."""
    return isinstance(system, Vigil)


def is_swept(system: System, size: int) -> bool:
    """Say whether a sweep's cost is promised of a system of this size."""
    return isinstance(system, Vigil) and (system.runtime, size) in (("headless", 1000), ("tmux", 200))


MEASUREMENTS = (  # in this order: what must find the systems untouched comes first, what kills the daemon last
    Measurement("idle", idle.measure),
    Measurement("per-session", per_session.measure, is_meant=is_ours),
    Measurement("listing", listing.measure, sizes=(1, 500)),
    Measurement("detection", detection.measure),
    Measurement("adoption", adoption.measure, is_meant=is_ours),
    Measurement("sweep", sweep.measure, sizes=(200, 1000), is_meant=is_swept),
)
LONE = (
    Lone("plan", plan.measure),
    Lone("diagnosis", diagnosis.measure),
    Lone("ingest", ingest.measure),
    Lone("bringup", bringup.measure),
)
NAMES = [measurement.name for measurement in (*LONE, *MEASUREMENTS)]
ALL_SIZES = sorted({size for measurement in MEASUREMENTS for size in measurement.sizes})


def groups(run: Run) -> list[list[System]]:
    """Return the systems that are up at the same time."""
    return [
        [Vigil(run, "headless"), Vigil(run, "tmux"), Supervisord(run), Floor(run)],
        [Circus(run), Circus(run, check_delay_s=1)],
    ]


def main(argv: list[str]) -> int:
    """Measure what is asked for, print it, keep it."""
    options = parse(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()

    def say(words: str) -> None:
        print(f"bench {time.monotonic() - began:5.0f} s  {words}", file=sys.stderr, flush=True)

    names = options.names or NAMES
    wanted = [measurement for measurement in MEASUREMENTS if measurement.name in names]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES if name in names}
    try:
        with Run() as run:
            machine = read_machine(run.folder, options.quick)
            try:
                for lone in (lone for lone in LONE if lone.name in names):
                    say(lone.name)
                    results[lone.name] += lone.measure(run, options.quick)
                for size in options.size or ALL_SIZES:
                    for group in groups(run):
                        measure_group(group, size, wanted, results, options.quick, say)
            finally:  # what was measured before a failure is worth seeing too
                tables = show({"machine": [machine], **results, "targets": judge(kept() | results)}, options.quick)
    except KeyboardInterrupt:
        say("interrupted: all that was started has been ended")
        return 130
    if options.write:
        rewrite(PAGE, tables)
    return 0


def measure_group(
    group: list[System],
    size: int,
    wanted: list[Measurement],
    results: dict[str, list[dict[str, Any]]],
    quick: bool,
    say: Callable[[str], None],
) -> None:
    """Start a group with so many agents, measure, and stop it again whatever happens."""
    due = [(m, [s for s in group if m.is_meant(s, size)]) for m in wanted if size in m.sizes]
    systems = [system for system in group if any(system in meant for _, meant in due)]
    if not systems:
        return
    with ExitStack() as stack:
        for system in systems:
            say(f"starting {system.label} with {size}")
            stack.callback(system.stop)
            system.start(size)
        for measurement, meant in due:
            if meant:
                say(f"{measurement.name} with {size}: {'; '.join(system.label for system in meant)}")
                results[measurement.name] += measurement.measure(meant, size, quick)
        say(f"stopping what runs with {size}")


def kept() -> dict[str, list[dict[str, Any]]]:
    """Return the rows that earlier runs on this machine left: a run of one part is judged together with them."""
    files = [RESULTS / f"{name}.json" for name in NAMES]
    return {path.stem: json.loads(path.read_text("utf-8"))["rows"] for path in files if path.exists()}


def show(tables: dict[str, list[dict[str, Any]]], quick: bool) -> dict[str, str]:
    """Keep the rows of every table in a file of its own, print the tables, and return them as text."""
    RESULTS.mkdir(exist_ok=True)
    formatted = {}
    for name, rows in tables.items():
        if rows:
            (RESULTS / f"{name}.json").write_text(json.dumps({"quick": quick, "rows": rows}, indent=1) + "\n", "utf-8")
            formatted[name] = format_table(name, rows)
            print(f"\n## {name}\n\n{formatted[name]}", flush=True)
    return formatted


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Vigil side by side with other supervisors.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure (default: all): {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="shorter and rougher: a few minutes")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    parser.add_argument(
        "--size",
        type=int,
        action="append",
        choices=ALL_SIZES,
        help=f"how many sessions; may be given again (default: all); {' and '.join(lone.name for lone in LONE)} have their own",
    )
    options = parser.parse_args(argv)
    for name in options.names:
        if name not in NAMES:
            parser.error(f"{name!r} is no measurement; use {', '.join(NAMES)}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
