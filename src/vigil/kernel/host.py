"""Host-wide facts: memory, swap, pressure, load and the kernel's kills for want of memory.

Reads only. What cannot be read is None and never an error: a container hides half of it. Standard library only."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from vigil.kernel.proc import PROC, read_file

Facts = dict[str, int | float | None]
SHARED_S = 1.0  # one reading serves all who ask within a second
MEMORY = {  # our name: the kernel's in /proc/meminfo
    "mem_total_kb": b"MemTotal:",
    "mem_available_kb": b"MemAvailable:",
    "swap_total_kb": b"SwapTotal:",
    "swap_free_kb": b"SwapFree:",
}
LOADS = ("load1", "load5", "load15")
PRESSURES = ("memory", "io", "cpu")
KINDS = ("some", "full")
VMSTAT_BYTES = 16384  # it has about four thousand


class HostFacts:
    """The host's facts, read at most once a second."""

    def __init__(self, proc: str = PROC, clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._facts: Facts | None = None
        self._read_at = 0.0

    def read(self, since: float = 0.0) -> Facts:
        """Return the facts of this second, or none from before a moment in it."""
        now = self._clock()
        if self._facts is None or now - self._read_at >= SHARED_S or self._read_at < since:
            self._facts, self._read_at = read_host(self._proc), now
        return dict(self._facts)


def read_host(proc: str = PROC) -> Facts:
    """Read every fact; each has its key, readable or not."""
    facts = _read_memory(f"{proc}/meminfo")
    facts["oom_kills"] = read_oom_kills(proc)
    facts |= _read_load(f"{proc}/loadavg")
    for what in PRESSURES:
        facts |= _read_pressure(f"{proc}/pressure/{what}", what)
    return facts


def read_available_kb(proc: str = PROC) -> int | None:
    """Read how much memory the host could still give away; None if it does not say."""
    return read_named(f"{proc}/meminfo", MEMORY["mem_available_kb"])


def read_oom_kills(proc: str = PROC) -> int | None:
    """Read the kernel's kills for want of memory since boot, in cgroups and on the whole host."""
    return _oom_kills_in(read_bytes(f"{proc}/vmstat"))


class OomKills:
    """The same counter, held open for callers in a hurry: opening costs nearly as much as reading."""

    def __init__(self, proc: str = PROC) -> None:
        try:
            self._fd = os.open(f"{proc}/vmstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = -1

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def read(self) -> int | None:
        """Read the counter; None if it cannot."""
        try:
            return _oom_kills_in(os.pread(self._fd, VMSTAT_BYTES, 0))
        except OSError:
            return None


def _oom_kills_in(text: bytes) -> int | None:
    at = text.find(b"\noom_kill ")
    return None if at < 0 else number(text[at + 10 :].partition(b"\n")[0])


def read_bytes(path: str, most: int = 65536) -> bytes:
    """Read a small kernel file; nothing if it cannot."""
    try:
        return read_file(path, most)
    except OSError:
        return b""


def number(text: bytes) -> int | None:
    """Return a whole number, None for other text."""
    text = text.strip()
    return int(text) if text.isdigit() else None


def read_named(path: str, name: bytes) -> int | None:
    """Read the number behind a name in a kernel list."""
    for line in read_bytes(path).splitlines():
        if line.startswith(name + b" "):
            return number(b"".join(line.split()[1:2]))  # its unit may follow
    return None


def _read_memory(path: str) -> Facts:
    words = {line.partition(b" ")[0]: line for line in read_bytes(path).splitlines()}
    facts: Facts = {}
    for ours, theirs in MEMORY.items():
        fields = words.get(theirs, b"").split()
        facts[ours] = number(fields[1]) if len(fields) > 1 else None
    return facts


def _read_load(path: str) -> Facts:
    fields = [*read_bytes(path).split()[:3], b"", b"", b""]
    return {name: _decimal(field) for name, field in zip(LOADS, fields, strict=False)}


def _read_pressure(path: str, what: str) -> Facts:
    """Read in how many percent of the last ten seconds some or all waited, and all waiting since boot."""
    facts: Facts = {f"psi_{what}_{kind}_{unit}": None for kind in KINDS for unit in ("avg10", "total_us")}
    for line in read_bytes(path).decode("ascii", "replace").splitlines():
        kind, *pairs = line.split() or [""]
        values = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        if kind in KINDS:
            facts[f"psi_{what}_{kind}_avg10"] = _decimal(values.get("avg10", "").encode())
            facts[f"psi_{what}_{kind}_total_us"] = number(values.get("total", "").encode())
    return facts


def _decimal(text: bytes) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
