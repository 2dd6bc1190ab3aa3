"""Ingest: how fast what agents say of themselves becomes events: lines of real samples, a long transcript, a hook.

The lines are those of the tests' samples, read again and again as the daemon reads them; storing them is not counted.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.samples.golden import agents, reading_of, sample_files, samples

from bench.harness import Run, percentile, wait_for_calm
from vigil.core.model.speech import Said
from vigil.observe.lines import read_end, read_lines, resolve
from vigil.text import decode

LINES, QUICK_LINES = 40_000, 8_000
TRANSCRIPT_MB, QUICK_TRANSCRIPT_MB = 200, 50
RUNS, QUICK_RUNS = 200, 50
PICKUPS = 10
HOOK = Path(__file__).parent.parent / "src" / "vigil" / "agents" / "hook.sh"
SIZES = {"with a payload of 1 kB": 1_000, "with a payload of 50 kB": 50_000}
Read = Callable[[dict[str, Any]], Iterable[Said]]


def measure(run: Run, quick: bool) -> list[dict[str, Any]]:
    """Read lines, take up a transcript, call the hook."""
    wait_for_calm()
    rows = [lines_row(agent, QUICK_LINES if quick else LINES) for agent in agents()]
    rows.append(pickup_row(run, QUICK_TRANSCRIPT_MB if quick else TRANSCRIPT_MB))
    return rows + hook_rows(run, QUICK_RUNS if quick else RUNS)


def lines_row(agent: str, count: int) -> dict[str, Any]:
    """Return how many lines of one kind of agent are understood in a second of CPU."""
    found = [(json.dumps(event).encode(), reading_of(path)) for path in sample_files(agent) for _, event in samples(path)]
    said = done = 0
    at = time.process_time()
    while done < count:
        for line, read in found:
            said += sum(1 for _ in read(json.loads(decode(line))))
        done += len(found)
    took_s = time.process_time() - at
    assert said > 0
    return row(
        f"lines-{agent}", f"lines of {agent}, to events", done, took_s / done * 1000, took_s / done * 1000, done / took_s
    )


def pickup_row(run: Run, megabytes: int) -> dict[str, Any]:
    """Return how long it takes to take up a long transcript at its end, and to read the next line of it."""
    path = run.folder / "transcript.jsonl"
    line = json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "x" * 2000}]}}).encode() + b"\n"
    with open(path, "wb") as file:
        for _ in range((megabytes << 20) // len(line)):
            file.write(line)
    roots = resolve([str(run.folder)])
    took = []
    for _ in range(PICKUPS):
        at = time.perf_counter()
        position = read_end(str(path), roots).position
        took_s = time.perf_counter() - at
        with open(path, "ab") as file:
            file.write(line)
        at = time.perf_counter()
        taken = read_lines(str(path), position, roots)
        took.append((took_s + time.perf_counter() - at) * 1000)
        assert taken.lines == [line[:-1]]
    path.unlink()
    return row("pickup", f"a transcript of {megabytes} MB, taken up at its end, and its next line", megabytes, *ends(took))


def hook_rows(run: Run, runs: int) -> list[dict[str, Any]]:
    """Return how long an agent waits for the hook command."""
    spool = run.folder / "hook-spool"
    for name in ("new", "tmp"):
        (spool / name).mkdir(parents=True)
    env = run.agent_environment() | {"VIGIL_SPOOL": str(spool), "VIGIL_LAUNCH": "bench-1", "VIGIL_SESSION": "bench"}
    rows = [row("hook-beat", "the hook command, a heartbeat", 0, *ends([call_hook(env, None) for _ in range(runs)]))]
    for words, size in SIZES.items():
        payload = json.dumps({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": "x" * size}).encode()
        rows.append(row("hook", f"the hook command, {words}", size, *ends([call_hook(env, payload) for _ in range(runs)])))
    assert len(list((spool / "new").iterdir())) == runs * (len(SIZES) + 1)
    return rows


def call_hook(env: dict[str, str], payload: bytes | None) -> float:
    """Call the hook as an agent does; return how long that took, in ms."""
    reads, writes = os.pipe()
    words = ["sh", str(HOOK), *(["heartbeat"] if payload is None else [])]
    actions = [(os.POSIX_SPAWN_DUP2, reads, 0), (os.POSIX_SPAWN_CLOSE, writes)]
    at = time.perf_counter()
    pid = os.posix_spawn("/bin/sh", words, env, file_actions=actions)
    os.close(reads)
    if payload is not None:
        os.write(writes, payload)
    os.close(writes)
    _, status = os.waitpid(pid, 0)
    took_ms = (time.perf_counter() - at) * 1000
    assert status == 0
    return took_ms


def ends(took_ms: list[float]) -> tuple[float, float]:
    """Return the median and the longest."""
    return percentile(took_ms, 0.5), max(took_ms)


def row(system: str, label: str, count: int, p50_ms: float, max_ms: float, per_s: float | None = None) -> dict[str, Any]:
    """Return one row of the table."""
    return {"system": system, "label": label, "count": count, "p50_ms": p50_ms, "max_ms": max_ms, "per_s": per_s}
