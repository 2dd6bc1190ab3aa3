"""Snapshots: the host and a launch's processes half a second after its first end; program names, no arguments.

One reading of /proc serves all deaths of a second, in small steps, so that the keeper sees the next death meanwhile."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from vigil.keeper.protocol import SnapshotWord
from vigil.keeper.samples import Samples, Track, moment
from vigil.kernel import durable
from vigil.kernel.cgroups import Cgroups
from vigil.kernel.host import HostFacts
from vigil.kernel.kernel_log import KernelLog
from vigil.kernel.process import TICKS_A_SECOND, read_swap_kb
from vigil.kernel.processes import ScannedProcess, read_oom_score, scan_processes

FILE = "snapshot.json"
AFTER_S = 0.5  # by then children go or stay, and the kernel's lines are written
LEAST_S = 0.2  # a reading for others takes along an end this young
READING_EVERY_S = 1.0
STEP_S = 0.01
BYTES = 64 << 10
TOP = 25
SURVIVORS = 100
KERNEL_LINES = 50
NESTED = {"kernel": "lines", "tree": "processes"}  # lists within an object of the snapshot
Json = dict[str, Any]


class Pending(NamedTuple):
    """A launch that still needs its snapshot."""

    track: Track
    ended_at: float
    ended_ticks: float
    of: str = "agent"  # whose end


class SnapshotReading:
    """One reading of /proc, under way while it has a `rest`."""

    def __init__(
        self, began_at: float, rest: Iterator[ScannedProcess | None] | None, seen: Iterable[ScannedProcess] = ()
    ) -> None:
        self.began_at = began_at
        self.rest = rest
        self.seen = list(seen)
        self.by_pid: dict[int, ScannedProcess] = {}
        self.by_launch: dict[str, list[ScannedProcess]] = defaultdict(list)
        self.by_sid: dict[int, list[ScannedProcess]] = defaultdict(list)
        self.by_mark: dict[int, list[ScannedProcess]] = defaultdict(list)
        self.top: list[Json] = []


class Snapshots:
    def __init__(
        self,
        samples: Samples,
        host: HostFacts,
        cgroups: Cgroups,
        log: KernelLog,
        tell: Callable[[SnapshotWord], None],
        clock: Callable[[], float] = time.monotonic,
        scan: Callable[[], Iterator[ScannedProcess | None]] = scan_processes,
    ) -> None:
        self._samples = samples
        self._host = host
        self._cgroups = cgroups
        self._log = log
        self._tell = tell
        self._clock = clock
        self._scan = scan
        self._pending: dict[str, Pending] = {}
        self._ready: deque[Pending] = deque()
        self._reading: SnapshotReading | None = None
        self._last_at = -READING_EVERY_S

    def __len__(self) -> int:
        return len(self._pending) + len(self._ready)

    def ask(self, track: Track, boot_s: float, of: str = "agent") -> None:
        """Take a launch's snapshot after an end, unless done: one for its server, one for its agent."""
        if (pending := self._pending.get(track.launch)) is not None:
            self._pending[track.launch] = pending._replace(of=of) if pending.of == "server" else pending
            return
        if any(one.track.launch == track.launch for one in self._ready):
            return
        path = os.path.join(track.folder, FILE)
        if os.path.exists(path) and (of == "server" or (durable.read_json(path) or {}).get("of") != "server"):
            return
        self._pending[track.launch] = Pending(track, self._clock(), (boot_s + 0.01) * TICKS_A_SECOND, of)

    def cancel(self, launch: str) -> None:
        """Write nothing into a folder that is about to be removed."""
        self._pending.pop(launch, None)
        self._ready = deque(one for one in self._ready if one.track.launch != launch)

    def wait_s(self) -> float | None:
        """Return the seconds until there is something to do; None if nothing is."""
        if self._reading is not None or self._ready:
            return 0.0
        if not self._pending:
            return None
        return max(0.0, self._due_at() - self._clock())

    def catch_up(self) -> None:
        """Do a step of what is due."""
        until = time.monotonic() + STEP_S
        if self._reading is None and not self._ready and self._pending and self._clock() >= self._due_at():
            self._begin()
        while time.monotonic() < until and self._step():
            pass

    def finish(self) -> None:
        """Take every snapshot now: the keeper ends."""
        while self._reading is not None or self._ready or self._pending:
            if self._reading is None and not self._ready:
                self._begin()
            self._step(least_s=0.0)

    def _due_at(self) -> float:
        first_at = min(one.ended_at for one in self._pending.values())
        return max(first_at + AFTER_S, self._last_at + READING_EVERY_S)

    def _begin(self) -> None:
        self._last_at = self._clock()
        self._reading = SnapshotReading(self._last_at, self._scan())

    def _step(self, least_s: float = LEAST_S) -> bool:
        """Read one process more, or write one snapshot; say whether there is more to do."""
        if self._reading is not None and self._reading.rest is not None:
            self._read_on(self._reading)
            return True
        if self._reading is not None and not self._ready:
            self._choose(self._reading, least_s)
        if self._ready:
            self._take(self._ready.popleft())
        if not self._ready:
            self._reading = None
        return self._reading is not None

    def _read_on(self, reading: SnapshotReading) -> None:
        assert reading.rest is not None
        try:
            seen = next(reading.rest)
        except (StopIteration, OSError):
            reading.rest = None
            self._log.drain()
            largest = sorted(reading.seen, key=lambda seen: seen.stat.rss_kb, reverse=True)[:TOP]
            reading.top = [_describe_top(seen) for seen in largest]
            return
        if seen is not None:
            reading.seen.append(seen)
            reading.by_pid[seen.pid] = seen
            if seen.launch is not None:
                reading.by_launch[seen.launch].append(seen)
            elif seen.mine:
                reading.by_sid[seen.stat.sid].append(seen)
                if seen.mark is not None:
                    reading.by_mark[seen.mark].append(seen)

    def _choose(self, reading: SnapshotReading, least_s: float) -> None:
        """Choose the launches of this reading: they ended well before it began."""
        for launch, pending in list(self._pending.items()):
            if pending.ended_at <= reading.began_at - least_s:
                self._ready.append(self._pending.pop(launch))

    def _take(self, pending: Pending) -> None:
        assert self._reading is not None
        track = pending.track
        data = fit(self._describe(pending, self._reading))
        try:
            durable.write_whole(os.path.join(track.folder, FILE), data)
        except OSError:
            return  # its folder was removed, or the disk is full: no snapshot, and no word of one
        self._tell(SnapshotWord(track.launch))

    def _describe(self, pending: Pending, reading: SnapshotReading) -> Json:
        track = pending.track
        host = self._host.read(since=pending.ended_at)
        cgroup = self._cgroups.read_counters(track.cgroup)
        missing = {
            "armed": track.armed is None,
            "cgroup": cgroup is None,
            "kernel": not self._log.readable,
            "processes": not reading.seen,
        }
        return {
            "launch": track.launch,
            "of": pending.of,
            **moment(),
            "host": host,
            "armed": track.armed,
            "samples": list(self._samples.ring),
            "agent_samples": [sample._asdict() for sample in track.samples],
            "tree": None if track.tree is None else track.tree.as_json(),
            "survivors": [_describe_survivor(seen) for seen in survivors_of(pending, reading)[:SURVIVORS]],
            "top": reading.top,
            "kernel": {"readable": self._log.readable, "lines": self._lines(track)},
            "cgroup": cgroup,
            "unknown": [name for name, value in host.items() if value is None] + [name for name in missing if missing[name]],
        }

    def _lines(self, track: Track) -> list[str]:
        """Return the kernel's lines on the launch's processes, also those last seen below the agent."""
        since_s = min((ticks for _, ticks in track.processes.values()), default=0) / TICKS_A_SECOND
        pids = [pid for pid, _ in track.processes.values()]
        pids += [process.pid for process in track.tree.processes] if track.tree is not None else []
        found = [line for pid in dict.fromkeys(pids) for line in self._log.lines_about(pid, since_s=since_s)]
        return list(dict.fromkeys(found))[-KERNEL_LINES:]


def survivors_of(pending: Pending, reading: SnapshotReading) -> list[ScannedProcess]:
    """Return a launch's living processes: by token or mark, or by terminal session if they began before the end."""
    known = pending.track.processes
    spared = {known[role] for role in ("server", "root") if role in known}
    found = list(reading.by_launch.get(pending.track.launch, ()))
    found += reading.by_mark.get(pending.track.mark or -1, ())
    leader = known.get("root") or known.get("agent")
    if leader is not None:
        now = reading.by_pid.get(leader[0])
        if now is None or now.stat.start_ticks == leader[1]:  # else another session has the number since
            same = reading.by_sid.get(leader[0], ())
            found += [seen for seen in same if seen.stat.start_ticks <= pending.ended_ticks]
    once = {seen.pid: seen for seen in found}.values()
    return [seen for seen in once if (seen.pid, seen.stat.start_ticks) not in spared]


def fit(body: Json) -> bytes:
    """Return a snapshot's bytes; one too long loses the older half of its longest list, again and again."""
    while len(data := json.dumps(body).encode() + b"\n") > BYTES:
        lists = {key: value for key, value in body.items() if isinstance(value, list)}
        lists |= {key: body[key][within] for key, within in NESTED.items() if body[key] is not None}
        longest = max(lists, key=lambda key: len(json.dumps(lists[key])))
        if not lists[longest]:
            break
        kept = lists[longest]
        half = kept[(len(kept) + 1) // 2 :] if longest in ("samples", "agent_samples", "kernel") else kept[: len(kept) // 2]
        body = body | {longest: body[longest] | {NESTED[longest]: half} if longest in NESTED else half}
        body["cut"] = sorted({*body.get("cut", ()), longest})
    return data


def _describe_survivor(seen: ScannedProcess) -> Json:
    stat = seen.stat
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - stat.start_ticks / TICKS_A_SECOND
    return {
        "pid": seen.pid,
        "start_ticks": stat.start_ticks,
        "ppid": stat.ppid,
        "name": stat.name,
        "state": stat.state,
        "rss_kb": stat.rss_kb,
        "age_s": round(max(0.0, age_s), 2),
    }


def _describe_top(seen: ScannedProcess) -> Json:
    return {
        "pid": seen.pid,
        "name": seen.stat.name,
        "rss_kb": seen.stat.rss_kb,
        "swap_kb": read_swap_kb(seen.pid),
        "oom_score": read_oom_score(seen.pid),
        "launch": seen.launch,
    }
