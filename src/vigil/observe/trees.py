"""Trees: which processes are a launch's own, and how much CPU they used between two moments.

Its own are those below its command, and strays that outlived their parent, by the launch's token or terminal session."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vigil.core.model.launch import Launch, ProcessId
from vigil.kernel.proc import PROC
from vigil.kernel.process import ENDED, TICKS_A_SECOND, Stat, read_stat
from vigil.kernel.processes import TOKEN, read_children, read_environ, value_of
from vigil.kernel.stats import Scan, read_living, read_scan

SETTLED_S = 2.0  # a process this old has executed its program, and keeps its environment
MOST = 4096  # processes of one launch


@dataclass(frozen=True, slots=True)
class ProcessTree:
    """The processes of one launch in one moment."""

    launch_id: str
    at_s: float
    agent: Stat | None = None  # None: it is not there, or we may not see it
    members: tuple[Stat, ...] = ()  # its command first, parents before their children, strays last
    depths: tuple[int, ...] = ()
    strays: frozenset[int] = frozenset()  # pids that have another parent now; those below them are not here
    why: str = ""  # what could not be found out

    @property
    def rss_bytes(self) -> int:
        """Return their memory; what they share is counted more than once."""
        return sum(stat.rss_bytes for stat in self.members)


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU time by the time that passed: 1.0 is one core. None is unknown, without a moment to compare."""

    window_s: float | None = None
    agent: float | None = None  # its own threads
    tree: float | None = None  # all of them, also children that ended meanwhile
    by_pid: dict[int, float] = field(default_factory=dict)
    reaped_by_pid: dict[int, float] = field(default_factory=dict)  # by children that ended meanwhile, under their waiter


UNMEASURED = Cpu()


class Tokens:
    """Which launch a process names; each is asked once in its life, or until it has settled."""

    def __init__(self, proc: str = PROC, reapers: Iterable[int] = ()) -> None:
        self._proc = proc
        self.reapers = frozenset({1, *reapers})  # beside those above a launch: they inherit orphans
        self._known: dict[tuple[int, int], str | None] = {}

    def of(self, stat: Stat, age_s: float) -> str | None:
        """Return the launch id in a process's environment; None if there is none, or we may not look."""
        if stat.key in self._known:
            return self._known[stat.key]
        found = self._read(stat)
        if found is not None or age_s > SETTLED_S:
            self._known[stat.key] = found
        return found

    def forget_ended(self, scan: Scan) -> None:
        known = list(self._known)  # at once: another thread may learn of more meanwhile
        gone = [key for key in known if (stat := scan.stats.get(key[0])) is None or stat.start_ticks != key[1]]
        for key in gone:
            self._known.pop(key, None)

    def _read(self, stat: Stat) -> str | None:
        try:
            token = value_of(TOKEN, read_environ(stat.pid, self._proc, stat.thread))
        except OSError:
            return None
        return None if token is None else token.decode("ascii", "replace")


def scan_launch(launch: Launch, tokens: Tokens, proc: str = PROC) -> Scan:
    """Read only what may be one launch's, a hundredth of a busy host; all, where the kernel does not tell children."""
    at_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    found: dict[int, Stat] = {}
    children: dict[int, list[int]] = {}
    scan = Scan(at_s, found, children)
    try:
        known = [process for process in (launch.process, launch.root, launch.server) if process is not None]
        for process in known:
            _read_upwards(process.pid, found, proc)
        for pid in {stat.ppid for stat in found.values()} | tokens.reapers:
            _read_children(pid, found, children, proc)
        leader = launch.root or launch.process
        sid = -1 if leader is None else leader.pid
        mine = [stat for stat in found.values() if stat.sid == sid or tokens.of(stat, scan.age_s(stat)) == launch.id]
        below = [*(process.pid for process in known), *(stat.pid for stat in mine)]
        while below and len(found) < MOST:
            below += _read_children(below.pop(), found, children, proc)
    except OSError:
        return read_scan(proc)
    return scan if found or read_living(os.getpid(), proc) is not None else read_scan(proc)


def _read_upwards(pid: int, found: dict[int, Stat], proc: str) -> None:
    while pid > 0 and pid not in found:
        stat = read_living(pid, proc)
        if stat is None:
            return
        found[pid] = stat
        pid = stat.ppid


def _read_children(pid: int, found: dict[int, Stat], children: dict[int, list[int]], proc: str) -> list[int]:
    """Read the children of all threads of a process; OSError where the kernel does not tell."""
    if pid in children:
        return []
    own = found.get(pid)
    if own is None and (own := read_living(pid, proc)) is None:
        return []
    pids = read_children(pid, own.threads, proc)
    for child in pids:
        if child not in found and (stat := read_living(child, proc)) is not None:
            found[child] = stat
    children[pid] = [child for child in pids if child in found]
    return children[pid]


def tree_of(launch: Launch, scan: Scan, tokens: Tokens) -> ProcessTree:
    return trees_of([launch], scan, tokens)[launch.id]


def trees_of(launches: Iterable[Launch], scan: Scan, tokens: Tokens) -> dict[str, ProcessTree]:
    """Return the processes of many launches; looks for orphans once for all of them."""
    launches = list(launches)
    if scan.why:
        return {launch.id: ProcessTree(launch.id, scan.at_s, why=scan.why) for launch in launches}
    above = {launch.id: _ancestors(launch, scan) for launch in launches}
    by_token, by_sid = _left_behind({pid for pids in above.values() for pid in pids} | tokens.reapers, scan, tokens)
    return {launch.id: _tree(launch, scan, above[launch.id], by_token, by_sid) for launch in launches}


def _ancestors(launch: Launch, scan: Scan) -> list[int]:
    """Return the processes above a launch: one of them inherits its orphans."""
    found: list[int] = []
    for process in (launch.process, launch.root, launch.server):
        stat = _of(process, scan)
        while stat is not None and stat.ppid not in found:
            found.append(stat.ppid)
            stat = scan.stats.get(stat.ppid)
    return found


def _left_behind(above: set[int], scan: Scan, tokens: Tokens) -> tuple[dict[str, list[Stat]], dict[int, list[Stat]]]:
    """Return the children of those above, by the launch they name; those that name none by their session."""
    by_token: dict[str, list[Stat]] = {}
    by_sid: dict[int, list[Stat]] = {}
    for pid in above:
        for child in scan.children.get(pid, ()):
            stat = scan.stats[child]
            token = tokens.of(stat, scan.age_s(stat))
            if token is not None:
                by_token.setdefault(token, []).append(stat)
            else:
                by_sid.setdefault(stat.sid, []).append(stat)
    return by_token, by_sid


def _tree(
    launch: Launch, scan: Scan, above: list[int], by_token: dict[str, list[Stat]], by_sid: dict[int, list[Stat]]
) -> ProcessTree:
    members: dict[int, tuple[Stat, int]] = {}
    command = _of(launch.process, scan)
    if command is not None:
        _walk(command, scan, members)
    spared = {(process.pid, process.start_ticks) for process in (launch.server, launch.root) if process is not None}
    leader = launch.root or launch.process
    same_session = by_sid.get(leader.pid, ()) if leader is not None and _of(leader, scan) is not None else ()
    strays = []
    for stat in (*by_token.get(launch.id, ()), *same_session):
        if stat.key not in spared and stat.pid not in above and stat.pid not in members and stat.state not in ENDED:
            strays.append(stat.pid)
            _walk(stat, scan, members)
    agent = _of(launch.agent, scan)
    kept = list(members.values())
    why = "" if agent is not None else "the agent is not there"
    return ProcessTree(
        launch.id,
        scan.at_s,
        agent,
        tuple(stat for stat, _ in kept),
        tuple(depth for _, depth in kept),
        frozenset(strays),
        f"only {MOST:,} of its processes were read" if len(kept) >= MOST else why,
    )


def _of(process: ProcessId | None, scan: Scan) -> Stat | None:
    stat = None if process is None else scan.stats.get(process.pid)
    return stat if stat is not None and process is not None and stat.start_ticks == process.start_ticks else None


def _walk(top: Stat, scan: Scan, members: dict[int, tuple[Stat, int]]) -> None:
    """Add a process and all below it, each before its children, older children first."""
    below = [(top, 0)]
    while below and len(members) < MOST:
        stat, depth = below.pop()
        if stat.pid in members:
            continue
        members[stat.pid] = stat, depth
        found = [scan.stats[pid] for pid in scan.children.get(stat.pid, ())]
        if len(found) > 1:
            found.sort(key=lambda child: (child.start_ticks, child.pid), reverse=True)
        below += [(child, depth + 1) for child in found]


def cpu_between(before: ProcessTree, after: ProcessTree) -> Cpu:
    """Return how much CPU a tree used between two moments, by the time that passed.

    A parent that waits gets its child's time, so what was seen of the child before is taken off again. A child without a waiter
    takes its unseen time along: a tree may have used more than this, never less."""
    window_s = after.at_s - before.at_s
    if window_s <= 0 or before.launch_id != after.launch_id or not before.members or not after.members:
        return UNMEASURED
    a_core = window_s * TICKS_A_SECOND
    earlier = {stat.key: stat for stat in before.members}
    seen_of_ended = _seen_of_ended(before, {stat.key for stat in after.members})
    own: dict[int, float] = {}
    reaped: dict[int, float] = {}
    total = 0
    for stat in after.members:
        was = earlier.get(stat.key)
        if was is None:
            if stat.start_ticks / TICKS_A_SECOND < before.at_s - 1.0:
                continue  # it was there and not known as ours: its earlier use is no rate of ours
            own_ticks, reaped_ticks = stat.own_ticks, stat.reaped_ticks
        else:
            own_ticks = max(0, stat.own_ticks - was.own_ticks)  # the kernel's figures may step back a tick
            reaped_ticks = max(0, stat.reaped_ticks - was.reaped_ticks - seen_of_ended.get(stat.pid, 0))
        own[stat.pid], reaped[stat.pid] = own_ticks / a_core, reaped_ticks / a_core
        total += own_ticks + reaped_ticks
    agent = own.get(after.agent.pid) if after.agent is not None else None
    return Cpu(window_s, agent, total / a_core, own, reaped)


def _seen_of_ended(before: ProcessTree, still_there: set[tuple[int, int]]) -> dict[int, int]:
    """Return the seen ticks of processes that ended, under their nearest ancestor that is still there."""
    by_pid = {stat.pid: stat for stat in before.members}
    seen: dict[int, int] = {}
    for stat in before.members:
        if stat.key not in still_there:
            for above in _upwards(stat, by_pid):
                if above.key in still_there:
                    seen[above.pid] = seen.get(above.pid, 0) + stat.all_ticks
                    break
    return seen


def _upwards(stat: Stat, by_pid: dict[int, Stat]) -> Iterator[Stat]:
    passed = {stat.pid}
    above = by_pid.get(stat.ppid)
    while above is not None and above.pid not in passed:
        yield above
        passed.add(above.pid)
        above = by_pid.get(above.ppid)


def read_used_s(processes: Iterable[ProcessId]) -> dict[ProcessId, float]:
    """Read the seconds of processor time of each; leaves out what is gone or may not be read."""
    return {process: used for process in processes if (used := _read_one(process)) is not None}


def cores(before: dict[ProcessId, float], after: dict[ProcessId, float], window_s: float) -> float | None:
    """Return the cores used between two readings, None if incomparable; what ended in between is in its waiter's time."""
    if window_s <= 0 or not after:
        return None
    used_s = sum(used - before.get(process, 0.0) for process, used in after.items())
    return max(0.0, used_s) / window_s


def _read_one(process: ProcessId) -> float | None:
    try:
        stat = read_stat(process.pid)
    except OSError:
        return None
    if stat is None or stat.start_ticks != process.start_ticks:
        return None
    return stat.all_ticks / TICKS_A_SECOND
