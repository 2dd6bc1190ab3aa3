"""Mutated files: golden samples, each broken in a way of its own by a seed, and put through what reads them.

python -m tests.live.mutations SEED COUNT prints as JSON how many files were read, the slowest and the memory at most."""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.samples.golden import READINGS, agents, sample_files
from tests.unit.builders import make_death, make_launch
from vigil.agents.adapters import adapter_of
from vigil.agents.last_words import has_result, read_last_words, said_last
from vigil.config.loading import ConfigFile, ConfigRefused
from vigil.core.model.session import Session
from vigil.daemon.base.clock import Clock
from vigil.daemon.sense.process_ends import ends_from_records
from vigil.daemon.start.unknown_launches import find_unknown
from vigil.forensics.bundle import assemble
from vigil.home import home_at
from vigil.kernel.process import read_boot, read_peak_kb, read_start_ticks
from vigil.kernel.theirs import read_text
from vigil.manifest.reading import ManifestRefused, read_manifest
from vigil.observe.lines import read_lines, resolve
from vigil.observe.transcripts import read_transcript
from vigil.recording import Replay, open_recording
from vigil.recording.reading import BadRecording
from vigil.text import decode

RECORDINGS = Path(__file__).parents[1] / "replay" / "recordings"
MOST_EVENTS = 40  # of a recording: a mutant of the whole would take a second
DOCS = Path(__file__).parents[2] / "docs"
MANIFEST, CONFIG = (
    (DOCS / name).read_text().split("```toml\n")[1].split("```")[0] for name in ("manifest.md", "configuration.md")
)
ME = [os.getpid(), read_start_ticks(os.getpid())]  # bears no launch's mark: no daemon may take it for an agent
BORN: dict[str, Any] = {
    "ok": True,
    "agent": ME,
    "root": ME,
    "server": ME,
    "pane": "%0",
    "boot": read_boot(),
    "armed": {"at": 1.0},
}
EXIT: dict[str, Any] = {
    "launch": "s1-1",
    "role": "agent",
    "pid": 1,
    "start_ticks": 7,
    "status": 768,
    "source": "wait",
    "at": 1.0,
    "boot_s": 1.0,
}
EXIT |= {"core": False, "oom": {"named": True, "cgroup": "/x", "cgroup_kills": 1, "host_kills": 1}, "unrecorded": None}
ORDER: dict[str, Any] = {
    "runtime": "tmux",
    "argv": ["tmux"],
    "env": {"A": "1"},
    "cwd": "/",
    "stdin": None,
    "launch": "s1-1",
    "session": "a",
}
ORDER |= {
    "session_id": "s1",
    "created_at": 1.0,
    "declared": {"spec": {"command": ["a"], "cwd": "/"}, "role": "t/r", "index": 1},
}
SNAPSHOT: dict[str, Any] = {
    "launch": "s1-1",
    "of": "agent",
    "at": 1.0,
    "boot_s": 1.0,
    "host": {"mem_total_kb": 1, "load1": 1.0},
}
SNAPSHOT |= {"armed": {"at": 1.0}, "samples": [{"at": 1.0, "mem_available_kb": 5}], "agent_samples": [{"at": 1.0, "rss_kb": 5}]}
SNAPSHOT |= {"tree": {"processes": [{"pid": 1, "name": "a"}]}, "survivors": [{"pid": 1}], "top": [{"pid": 1, "rss_kb": 4}]}
SNAPSHOT |= {"kernel": {"readable": True, "lines": ["oom"]}, "cgroup": {"oom_kills": 1}, "unknown": []}
RECORDS = {
    "born.json": BORN,
    "exit.json": EXIT,
    "inner-exit.json": {**EXIT, "role": "inner"},
    "root-exit.json": {**EXIT, "role": "root"},
    "server-exit.json": {**EXIT, "role": "server"},
    "launch.json": ORDER,
    "snapshot.json": SNAPSHOT,
}
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1 << 31,
    1 << 64,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "\ud800",
    "\0\x1b[31m",
)
ODD += (
    "\ud800",
    "\0\x1b[31m",
    [],
    {},
    [[]],
    {"": {}},
    "x" * 10_000,
    [0] * 1000,
    "9" * 5000,
    -(1 << 63),
    "../../etc/passwd",
    ["a", 1],
    1e-320,
)
BITS: tuple[bytes, ...] = (
    b"\0",
    b"\xff",
    b'"',
    b"{",
    b"[",
    b"}",
    b"]",
    b"\n",
    b"\\u",
    b"NaN",
    b"1e999",
    b"9" * 5000,
    b"[" * 5000,
    b"'",
    b"=",
    b"\x1b]",
)


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Return a sample that was changed in some place: a value of it, or its bytes."""
    if rng.random() < 0.5:
        try:
            value = json.loads(data)
            for _ in range(rng.choice((1, 1, 1, 3, 10))):
                value = _with_odd_value(rng, value)
            return json.dumps(value).encode("utf-8", "surrogateescape")
        except ValueError:
            pass
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((0, 1, 4, 64, 1000)))
        what = rng.random()
        data = data[:at] + (rng.choice(BITS) if what < 0.6 else data[at:end] * 3 if what < 0.8 else b"") + data[end:]
    return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.1 else data


def _with_odd_value(rng: random.Random, value: Any) -> Any:
    if not value or not isinstance(value, dict | list) or rng.random() < 0.1:
        return rng.choice(ODD)
    if isinstance(value, dict):
        key = rng.choice(sorted(value))
        if rng.random() < 0.1:
            return {other: one for other, one in value.items() if other != key}
        return {**value, key: _with_odd_value(rng, value[key])}
    at = rng.randrange(len(value))
    return [*value[:at], _with_odd_value(rng, value[at]), *value[at + 1 :]]


def lines_of(rng: random.Random, path: Path) -> bytes:
    """Return a few lines of a sample, some of them mutated."""
    lines = path.read_bytes().splitlines()
    chosen = rng.sample(lines, min(len(lines), 6))
    return b"\n".join(mutated(rng, line) if rng.random() < 0.5 else line for line in chosen) + rng.choice((b"\n", b""))


def read_speech(rng: random.Random, folder: Path, reading: str) -> None:
    """Read a transcript or a stream as the daemon does."""
    paths = [path for agent in agents() for path in sample_files(agent) if READINGS[path.stem.split("-")[0]] == reading]
    sample, path = rng.choice(paths), folder / "c.jsonl"
    path.write_bytes(lines_of(rng, sample))
    adapter = adapter_of(sample.parent.name)
    taken = read_lines(str(path), None, resolve([str(folder)]))
    read: Callable[[Any], Any] = getattr(adapter, reading)
    for line in taken.lines:
        try:
            event = json.loads(decode(line))
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            list(read({"timestamp": 1.0, **event}))
    read_transcript(str(folder / "*.jsonl"), "c", read)
    words = [decode(line) for line in taken.lines]
    read_last_words(adapter.name, words, 1, 1.0)
    said_last(adapter, words, 1.0)
    has_result(adapter, words)


def read_a_manifest(rng: random.Random, folder: Path) -> None:
    path = folder / "vigil.toml"
    path.write_bytes(mutated(rng, MANIFEST.encode()))
    try:
        read_manifest(read_text(path, 1 << 20), "vigil.toml", str(folder), {})
    except (ManifestRefused, UnicodeDecodeError):
        pass


def read_a_config(rng: random.Random, folder: Path) -> None:
    path = folder / "config.toml"
    path.write_bytes(mutated(rng, CONFIG.encode()))
    try:
        ConfigFile(path).read()
    except ConfigRefused:
        pass


def read_a_recording(rng: random.Random, folder: Path) -> None:
    lines = rng.choice(sorted(RECORDINGS.glob("*.jsonl"))).read_bytes().splitlines()[:MOST_EVENTS]
    for at in {0 if rng.random() < 0.2 else rng.randrange(len(lines)) for _ in range(2)}:
        lines[at] = mutated(rng, lines[at])
    path = folder / "recording.jsonl"
    path.write_bytes(b"\n".join(lines) + rng.choice((b"\n", b"")))
    try:
        for _ in Replay(open_recording(path)).steps():
            pass
    except BadRecording:
        pass


def read_records(rng: random.Random, folder: Path) -> None:
    """Read a launch's records as a new daemon does, and at a death."""
    home = home_at(folder / "home")
    launch = home.launch("s1-1")
    launch.mkdir(parents=True, exist_ok=True)
    for name, value in RECORDS.items():
        data = json.dumps(value).encode()
        (launch / name).write_bytes(mutated(rng, data) if rng.random() < 0.5 else data)
    (launch / "shim-exit").write_bytes(mutated(rng, b"3\n"))
    known: dict[str, Session] = {}
    find_unknown(home, known, lambda _agent: (), 5.0)
    ends_from_records(str(launch), Clock())
    death = replace(make_death(), id="d-s1-1", launch_id=make_launch().id)
    assemble(folder / "deaths", launch, death, (), None, (), lambda text: text, 5.0)


READERS: dict[str, Callable[[random.Random, Path], None]] = {
    "transcript": lambda rng, folder: read_speech(rng, folder, "read_entry"),
    "stream": lambda rng, folder: read_speech(rng, folder, "read_stream"),
    "manifest": read_a_manifest,
    "configuration": read_a_config,
    "recording": read_a_recording,
    "records": read_records,
}
SHARES = {"transcript": 24, "stream": 20, "manifest": 12, "configuration": 12, "recording": 6, "records": 6}


def mutants(seed: int, count: int) -> Iterator[str]:
    """Yield which reader reads the next file."""
    rng = random.Random(seed)
    for _ in range(count):
        yield rng.choices(list(SHARES), list(SHARES.values()))[0]


def main(seed: int, count: int) -> dict[str, Any]:
    read: Counter[str] = Counter()
    worst_ms = dict.fromkeys(READERS, 0.0)
    raised: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(mutants(seed, count)):
            rng = random.Random(f"{seed}-{number}")
            began = time.thread_time()
            try:
                READERS[name](rng, Path(folder))
            except Exception:  # whatever: that is what is looked for
                raised.append(f"{name} {seed}-{number}: {traceback.format_exc()[-600:]}")
            worst_ms[name] = max(worst_ms[name], (time.thread_time() - began) * 1000)
            read[name] += 1
    peak_kb = read_peak_kb(os.getpid())  # of this program alone: ru_maxrss counts what its parent had at the fork
    return {"read": dict(read), "worst_ms": worst_ms, "peak_kb": peak_kb, "raised": len(raised), "first": raised[:5]}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
