"""Diagnosis: what one launch's processes do now, from two looks at them a moment apart.

It concludes nothing. What could not be read is None and named in `unknown` with its reason (P7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vigil.core.model.launch import Launch, ProcessId
from vigil.kernel.descriptors import Pipe
from vigil.kernel.proc import PROC
from vigil.kernel.process import ENDED, TICKS_A_SECOND, Stat
from vigil.kernel.stats import read_living
from vigil.kernel.usage import Io, Turns
from vigil.observe.details import READING, Detail, read_detail, read_moved, read_own_network, read_turns_of
from vigil.observe.sockets import Socket, Sockets, read_sockets
from vigil.observe.trees import UNMEASURED, Cpu, ProcessTree, Tokens, cpu_between, scan_launch, tree_of
from vigil.words import few

MOST = 256  # processes that are looked at closely
NAMED = 5  # pids that a line of `unknown` names
UNREAD = Detail()
INPUTS = frozenset({"pipe", "terminal", "socket"})


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at a launch."""

    tree: ProcessTree
    details: dict[int, Detail] = field(default_factory=dict)
    io: dict[int, Io] = field(default_factory=dict)
    turns: dict[int, Turns] = field(default_factory=dict)
    sockets: Sockets | None = None
    network: str | None = None  # the sockets' namespace


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """One process of a launch; None is unknown."""

    process: ProcessId
    ppid: int
    pgrp: int
    name: str
    role: str  # agent, command, child or stray
    depth: int
    state: str  # R S D T t Z, as the kernel has it
    threads: int
    first_thread_ended: bool
    age_s: float
    rss_bytes: int
    used_cpu_s: float
    cpu: float | None  # cores; its own threads
    reaped_cpu: float | None  # cores; children of it that ended meanwhile
    waited: float | None  # share of the time in which its first thread was ready to run while others ran
    burst_s: float | None  # how long that computes at a time before it sleeps
    tty: bool
    foreground: bool | None  # its group has its terminal; None without one
    command: tuple[str, ...] | None = None
    wchan: str | None = None
    peak_rss_bytes: int | None = None
    traced_by: int | None = None
    io_read: int | None = None  # bytes between the two looks, through read and write
    io_written: int | None = None
    disk_read: int | None = None
    disk_written: int | None = None
    descriptors: int | None = None
    kinds: dict[str, int] | None = None
    pipes: tuple[Pipe, ...] = ()
    sockets: tuple[int, ...] | None = None  # inodes
    waits_for_input: bool | None = None  # it sleeps in a read, and its stdin is a pipe, a terminal or a socket
    holds_agents_pipe: bool | None = None  # it writes into a pipe or socket pair whose other end the agent has


@dataclass(frozen=True, slots=True)
class Owned:
    """A socket, and its owner."""

    pid: int
    socket: Socket


@dataclass(frozen=True, slots=True)
class Diagnosis:
    launch_id: str
    at_s: float
    processes: tuple[ProcessReading, ...]
    sockets: tuple[Owned, ...]
    cpu: Cpu
    unknown: tuple[str, ...]  # what could not be read, in words
    cut: int = 0  # processes beyond the limit of close looks
    sockets_unread: bool = False  # the kernel did not list its sockets

    @property
    def agent(self) -> ProcessReading | None:
        return next((reading for reading in self.processes if reading.role == "agent"), None)

    @property
    def window_s(self) -> float | None:
        return self.cpu.window_s


def take_sample(launch: Launch, tokens: Tokens, thorough: bool = True, proc: str = PROC) -> Sample:
    """Look at a launch; a look that is not thorough reads only what a later one is compared with."""
    tree = tree_of(launch, scan_launch(launch, tokens, proc), tokens)
    looked_at = tree.members[:MOST]
    if not thorough:
        io = {stat.pid: found for stat in looked_at if (found := read_moved(stat.pid, proc)) is not None}
        turns = {stat.pid: taken for stat in looked_at if (taken := read_turns_of(stat.pid, proc, stat.thread)) is not None}
        return Sample(tree, io=io, turns=turns)
    looks = [(stat, read_detail(stat.pid, proc, stat.thread)) for stat in looked_at if stat.state not in ENDED]
    details = {stat.pid: detail for stat, detail in looks if _is_there(stat, proc)}  # asked after: it is of this process
    io = {pid: detail.io for pid, detail in details.items() if detail.io is not None}
    turns = {pid: detail.turns for pid, detail in details.items() if detail.turns is not None}
    has_sockets = any(detail.open is not None and detail.open.sockets for detail in details.values())
    sockets = read_sockets(unix=True) if has_sockets else Sockets(tree.at_s)
    return Sample(tree, details, io, turns, sockets, read_own_network(proc))


def _is_there(stat: Stat, proc: str) -> bool:
    now = read_living(stat.pid, proc)
    return now is not None and now.key == stat.key


def diagnose(launch: Launch, before: Sample | None, after: Sample) -> Diagnosis:
    """Return what a launch's processes do, from two looks at them; rates are unknown without the first."""
    tree = after.tree
    cpu = UNMEASURED if before is None else cpu_between(before.tree, tree)
    agents_ends = _ends_of(tree.agent, after)
    processes = tuple(
        _reading(launch, stat, depth, cpu, before, after, agents_ends)
        for stat, depth in zip(tree.members, tree.depths, strict=True)
    )
    unknown = list(_unknown(after))
    if tree.members and cpu.window_s is None:
        unknown.append("cpu_rate: there is nothing to compare with")
    owned = tuple(_owned(processes, after))
    unread = after.sockets is not None and after.sockets.why != ""
    return Diagnosis(launch.id, tree.at_s, processes, owned, cpu, tuple(unknown), max(0, len(tree.members) - MOST), unread)


def _reading(
    launch: Launch,
    stat: Stat,
    depth: int,
    cpu: Cpu,
    before: Sample | None,
    after: Sample,
    agents_ends: tuple[frozenset[int], frozenset[int]],
) -> ProcessReading:
    detail = after.details.get(stat.pid, UNREAD)
    moved = _moved(stat, before, after)
    waited, burst_s = _turns(stat, before, after, cpu.window_s)
    opened = detail.open
    is_agent = after.tree.agent is not None and stat.pid == after.tree.agent.pid
    return ProcessReading(
        process=ProcessId(stat.pid, stat.start_ticks, launch.process.boot if launch.process is not None else ""),
        ppid=stat.ppid,
        pgrp=stat.pgrp,
        name=stat.name,
        role="agent" if is_agent else _role(stat, launch, after.tree),
        depth=depth,
        state=stat.state,
        threads=stat.threads,
        first_thread_ended=stat.thread != 0,
        age_s=max(0.0, after.tree.at_s - stat.start_ticks / TICKS_A_SECOND),
        rss_bytes=stat.rss_bytes,
        used_cpu_s=stat.all_ticks / TICKS_A_SECOND,
        cpu=cpu.by_pid.get(stat.pid),
        reaped_cpu=cpu.reaped_by_pid.get(stat.pid),
        waited=waited,
        burst_s=burst_s,
        tty=stat.tty != 0,
        foreground=stat.tpgid == stat.pgrp if stat.tty else None,
        command=detail.command,
        wchan=_where(detail.wchan, stat.state),
        peak_rss_bytes=detail.peak_rss_bytes,
        traced_by=detail.traced_by,
        io_read=None if moved is None else moved.read,
        io_written=None if moved is None else moved.written,
        disk_read=None if moved is None else moved.disk_read,
        disk_written=None if moved is None else moved.disk_written,
        descriptors=None if opened is None else opened.total,
        kinds=None if opened is None else opened.kinds,
        pipes=() if opened is None else opened.pipes,
        sockets=None if opened is None else opened.sockets,
        waits_for_input=_waits_for_input(detail, stat.state),
        holds_agents_pipe=None if is_agent or opened is None else _holds(detail, agents_ends),
    )


def _role(stat: Stat, launch: Launch, tree: ProcessTree) -> str:
    if stat.pid in tree.strays:
        return "stray"
    return "command" if launch.process is not None and stat.key == (launch.process.pid, launch.process.start_ticks) else "child"


def _moved(stat: Stat, before: Sample | None, after: Sample) -> Io | None:
    """Return what a process read and wrote between two looks; all of it if it began in between."""
    now = after.io.get(stat.pid)
    if before is None or now is None:
        return None
    was = before.io.get(stat.pid)
    same = any(one.key == stat.key for one in before.tree.members)
    if not same:
        return now if stat.start_ticks / TICKS_A_SECOND >= before.tree.at_s - 1.0 else None
    return None if was is None else Io(*(max(0, new - old) for new, old in zip(now, was, strict=True)))


def _turns(stat: Stat, before: Sample | None, after: Sample, window_s: float | None) -> tuple[float | None, float | None]:
    """Return the share of time a process waited for a CPU, and how long it computes before it sleeps."""
    now, was = after.turns.get(stat.pid), None if before is None else before.turns.get(stat.pid)
    if before is None or now is None or was is None or not window_s or all(one.key != stat.key for one in before.tree.members):
        return None, None
    slept = now.slept - was.slept
    return max(0.0, now.waited_s - was.waited_s) / window_s, (now.ran_s - was.ran_s) / slept if slept > 0 else window_s


def _where(wchan: str | None, state: str) -> str | None:
    """Return where a process sleeps; the kernel says 0 of one that runs, and where it does not tell."""
    if wchan in ("0", ""):
        return "" if state == "R" else None
    return wchan


def _waits_for_input(detail: Detail, state: str) -> bool | None:
    where = _where(detail.wchan, state)
    if detail.open is None or where is None:
        return None
    return state == "S" and where in READING and detail.open.stdin in INPUTS


def _ends_of(agent: Stat | None, sample: Sample) -> tuple[frozenset[int], frozenset[int]]:
    """Return the pipes that the agent reads, and the other ends of its socket pairs."""
    opened = None if agent is None else sample.details.get(agent.pid, UNREAD).open
    if opened is None:
        return frozenset(), frozenset()
    known = {} if sample.sockets is None else sample.sockets.by_inode
    pairs = (known.get(inode) for inode in opened.sockets)
    peers = frozenset(int(one.peer) for one in pairs if one is not None and one.family == "unix" and one.peer not in ("", "0"))
    return frozenset(pipe.inode for pipe in opened.pipes if pipe.reads), peers


def _holds(detail: Detail, agents_ends: tuple[frozenset[int], frozenset[int]]) -> bool:
    assert detail.open is not None
    read_by_agent, peers = agents_ends
    return any(pipe.writes and pipe.inode in read_by_agent for pipe in detail.open.pipes) or any(
        inode in peers for inode in detail.open.sockets
    )


def _owned(processes: Iterable[ProcessReading], sample: Sample) -> Iterable[Owned]:
    """Yield the processes' open sockets; a shared one once, under its first process."""
    known = {} if sample.sockets is None else sample.sockets.by_inode
    shown: set[int] = set()
    for reading in processes:
        detail = sample.details.get(reading.process.pid, UNREAD)
        if detail.network != sample.network and detail.network is not None:
            continue  # its sockets are of another namespace, with other inodes
        for inode in reading.sockets or ():
            if inode in known and inode not in shown:
                shown.add(inode)
                yield Owned(reading.process.pid, known[inode])


def _unknown(sample: Sample) -> Iterable[str]:
    """Yield what could not be read, and why; processes of one trouble share a line."""
    tree = sample.tree
    if tree.why:
        yield f"processes: {tree.why}"
    if sample.sockets is not None and sample.sockets.why:
        yield f"sockets: {sample.sockets.why}"
    if len(tree.members) > MOST:
        yield f"details: {len(tree.members) - MOST:,} of {len(tree.members):,} processes were not looked at closely"
    troubles: dict[tuple[str, str], list[int]] = {}
    for stat in tree.members[:MOST]:
        if stat.state in ENDED:
            troubles.setdefault(("details", "it is a zombie"), []).append(stat.pid)
            continue
        detail = sample.details.get(stat.pid, UNREAD)
        for what, why in detail.lacking.items():
            troubles.setdefault((what, why), []).append(stat.pid)
        if "wchan" not in detail.lacking and _where(detail.wchan, stat.state) is None:
            troubles.setdefault(("wchan", "the kernel does not tell"), []).append(stat.pid)
        if detail.network not in (None, sample.network):
            troubles.setdefault(("sockets", "it is in another network namespace"), []).append(stat.pid)
    for (what, why), pids in troubles.items():
        yield f"{what} of pid {few([str(pid) for pid in pids], NAMED)}: {why}"
