"""Samples: the host and every launch before anything died: a reading every 10 s, and a baseline at each birth.

A death is compared with these. It reads and remembers and never concludes. Standard library only."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from vigil.keeper.kills import Kills
from vigil.kernel import durable, process
from vigil.kernel.cgroups import Cgroups
from vigil.kernel.descent import read_mark
from vigil.kernel.host import HostFacts
from vigil.kernel.kernel_log import KernelLog
from vigil.kernel.processes import read_tree

EVERY_S = 10.0
HOST_SAMPLES = 30
AGENT_SAMPLES = 6
AGENTS_A_TIME = 50  # of more launches each waits for its turn
BUDGET_S = 0.002  # of processor time for them: some trees are large, and the watch must cost next to nothing
TREE = 32
AGENT_ROLES = ("inner", "agent")  # the first that is known is the agent itself
Sample = dict[str, Any]


class AgentSample(NamedTuple):
    """An agent at one moment. Rows, no dataclasses: those took 2 MB more for 500 launches, the module 1 MB."""

    at: float
    boot_s: float
    pid: int
    rss_kb: int
    cgroup: str | None


class Node(NamedTuple):
    """A process of a tree."""

    pid: int
    ppid: int
    name: str
    state: str
    rss_kb: int


class SampledTree(NamedTuple):
    """An agent and those below it at one moment, nearest first."""

    at: float
    boot_s: float
    processes: tuple[Node, ...]

    def as_json(self) -> Sample:
        return self._asdict() | {"processes": [node._asdict() for node in self.processes]}


class Track:
    """What is remembered of one launch, kept small (hundreds, for days); a holder keeps it after the launch is forgotten."""

    __slots__ = ("__weakref__", "_armed", "cgroup", "folder", "launch", "living", "mark", "processes", "samples", "tree")

    def __init__(self, launch: str, folder: str, processes: dict[str, tuple[int, int]] | None = None) -> None:
        self.launch = launch
        self.folder = folder
        self.processes = {} if processes is None else processes  # role: pid, start ticks
        self.living: tuple[str, ...] = ()
        self.cgroup: str | None = None
        self.mark: int | None = None  # that its processes inherited
        self.samples: tuple[AgentSample, ...] = ()  # the newest last
        self.tree: SampledTree | None = None
        self._armed: str | None = None

    @property
    def armed(self) -> Sample | None:
        """The reading at its birth."""
        found = None if self._armed is None else json.loads(self._armed)
        return found if isinstance(found, dict) else None

    @armed.setter
    def armed(self, sample: Sample) -> None:
        self._armed = json.dumps(sample)


class Samples:
    def __init__(
        self,
        host: HostFacts,
        cgroups: Cgroups,
        log: KernelLog,
        kills: Kills,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        self._host = host
        self._cgroups = cgroups
        self._log = log
        self._kills = kills
        self._clock = clock
        self._spent = spent
        self._tracks: dict[str, Track] = {}
        self._held: WeakValueDictionary[str, Track] = WeakValueDictionary()  # also those that a snapshot still needs
        self._next_at: float | None = None
        self.ring: deque[Sample] = deque(maxlen=HOST_SAMPLES)

    def arm(self, launch: str, folder: str, pid: int) -> Sample:
        """Take the baseline of a launch that is being born."""
        track = self._begin(launch, folder, pid)
        track.armed = armed = self._baseline(track)
        return armed

    def follow(self, launch: str, folder: str, role: str, pid: int, start_ticks: int) -> None:
        """Sample a process; a launch of another keeper has its baseline in its folder."""
        track = self._tracks.get(launch)
        if track is None and (track := self._held.get(launch)) is not None:
            self._tracks[launch] = track
        if track is None:
            track = self._begin(launch, folder, pid)
            recorded = (durable.read_json(f"{folder}/born.json") or {}).get("armed")
            track.armed = recorded if isinstance(recorded, dict) else self._baseline(track)
        track.processes[role] = (pid, start_ticks)
        track.living = (*(other for other in track.living if other != role), role)
        if self._next_at is None:
            self._next_at = self._clock() + EVERY_S

    def track(self, launch: str) -> Track | None:
        return self._tracks.get(launch)

    def ended(self, launch: str, role: str) -> None:
        """Stop sampling a process; forget a launch of which nothing lives."""
        track = self._tracks.get(launch)
        if track is not None:
            track.living = tuple(other for other in track.living if other != role)
            if not track.living:
                self.forget(launch)

    def forget(self, launch: str) -> None:
        self._tracks.pop(launch, None)
        if not self._tracks:
            self._next_at = None

    def wait_s(self) -> float | None:
        """Return the seconds until the next sample; None if nothing is watched."""
        return None if self._next_at is None else max(0.0, self._next_at - self._clock())

    def catch_up(self) -> None:
        """Take a sample if it is time."""
        now = self._clock()
        if self._next_at is None or now < self._next_at:
            return
        self._next_at = now + EVERY_S
        self.take()

    def take(self) -> None:
        """Sample the host, the cgroups in use and some of the launches."""
        facts = self._host.read()
        self.ring.append({**moment(), **facts})
        self._log.drain()
        self._kills.note_host(_whole(facts["oom_kills"]))
        until = self._spent() + BUDGET_S
        for launch in list(self._tracks)[:AGENTS_A_TIME]:
            track = self._tracks[launch] = self._tracks.pop(launch)  # to the end of the row
            self._sample(track)
            if self._spent() > until:
                break
        self._kills.sample(track.cgroup for track in self._tracks.values() if track.cgroup is not None)

    def _sample(self, track: Track) -> None:
        role = next((role for role in AGENT_ROLES if role in track.living), None)
        if role is None:
            return
        pid, start_ticks = track.processes[role]
        cgroup = self._cgroups.path_of(pid)
        tree = read_tree(pid, start_ticks, TREE)
        if not tree or tree[0][1].state in "ZX":  # its end is on its way to us: our last sample is of its life
            return
        at, boot_s = moment().values()
        track.cgroup = sys.intern(cgroup) if cgroup else track.cgroup
        sample = AgentSample(at, boot_s, pid, tree[0][1].rss_kb, track.cgroup)
        track.samples = (*track.samples, sample)[-AGENT_SAMPLES:]
        track.tree = SampledTree(at, boot_s, tuple(_node(pid, stat) for pid, stat in tree))

    def _begin(self, launch: str, folder: str, pid: int) -> Track:
        track = self._tracks[launch] = self._held[launch] = Track(launch, folder)
        self._note(track, pid)
        return track

    def _note(self, track: Track, pid: int) -> None:
        """Learn a process's cgroup, and the counters' values."""
        cgroup, mark = self._cgroups.path_of(pid), read_mark(pid)
        gone = process.has_left(pid)  # asked after: it was there when we read
        track.cgroup = cgroup = None if gone else cgroup
        track.mark = None if gone else mark
        self._kills.note_host(_whole(self._host.read()["oom_kills"]))
        if cgroup is not None:
            self._kills.note_cgroup(cgroup, self._cgroups.read_kills(cgroup))

    def _baseline(self, track: Track) -> Sample:
        return {**moment(), **self._host.read(), "cgroup": self._cgroups.read_counters(track.cgroup)}


def _node(pid: int, stat: process.Stat) -> Node:
    return Node(pid, stat.ppid, stat.name, sys.intern(stat.state), stat.rss_kb)


def moment() -> dict[str, float]:
    """Return now, on the wall clock and on the one that does not jump."""
    return {"at": round(time.time(), 3), "boot_s": round(time.clock_gettime(time.CLOCK_BOOTTIME), 3)}


def _whole(value: float | None) -> int | None:
    return value if isinstance(value, int) else None
