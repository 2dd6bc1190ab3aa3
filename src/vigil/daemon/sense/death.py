"""The death watch: holds pidfds of every launch's agent, pane root and server; one event when an agent ended.

A closed pane hangs up its root first, so the server gets a moment to follow; the keeper's word fills in what we missed."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from vigil.core.events import Exited, Orphaned, RuntimeEnded
from vigil.core.model.death import Exit, Oom
from vigil.core.model.launch import Launch
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.log import log
from vigil.daemon.base.shown import Changes
from vigil.daemon.sense.death_facts import Witness
from vigil.daemon.sense.pidfds import Pidfds
from vigil.daemon.sense.process_ends import ProcessEnd, agent_role, end_of, ends_from_records, roles_of, runtime_role
from vigil.keeper import records
from vigil.keeper.protocol import ExitWord
from vigil.kernel import process as kernel
from vigil.kernel.shortage import RESERVE

SETTLE_S = 0.3  # a server that closes its panes is gone a few milliseconds after them
KEEPER_S = 1.0  # how long we wait for the keeper's word where the kernel told us nothing
ORPHAN_S = 1.0  # a hangup ends an agent at once or not at all
HANGUP_S = 2.0  # and one that answers it takes a moment
AGAIN_S = 1.0
AMBIGUOUS_OVER = 128


@dataclass(slots=True)
class Watched:
    """One launch under the death watch."""

    launch: Launch
    fds: dict[str, int] = field(default_factory=dict)
    ends: dict[str, ProcessEnd] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)
    gathering: bool = False
    reported: bool = False
    exec_seen: bool = True
    oom_kills: int | None = None  # how many processes the kernel killed for want of memory just before, if known


@dataclass(eq=False, repr=False)
class DeathWatch:
    _ground: Ground
    _witness: Witness
    _pidfds: Pidfds = field(default_factory=Pidfds, init=False)
    _watched: dict[str, Watched] = field(default_factory=dict, init=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _owed: dict[str, dict[str, ExitWord]] = field(default_factory=dict, init=False)  # by launch: ends on no disk yet

    def watch(self, launch: Launch, exec_seen: bool = True) -> None:
        """Watch a launch's processes for their death; report one gone already once we know how."""
        if launch.id in self._watched:
            return
        watched = self._watched[launch.id] = Watched(launch, exec_seen=exec_seen)
        for role in reversed(roles_of(launch)):  # the agent last: its end is judged by the others'
            self._watch_role(watched, role)

    def watch_rest(self, launch: Launch) -> None:
        """After an agent's death, watch the pane that it left open."""
        if launch.id not in self._watched and not launch.closed:
            self._watch_role(self._watched.setdefault(launch.id, Watched(launch, reported=True)), runtime_role(launch))

    def found(self, launch: Launch) -> None:
        """Watch the agent found below a launch's command; its death is now the launch's."""
        watched = self._watched.get(launch.id)
        if watched is not None and not watched.reported:
            watched.launch = launch
            if "inner" in roles_of(launch):
                self._watch_role(watched, "inner")

    def _watch_role(self, watched: Watched, role: str) -> None:
        process = roles_of(watched.launch)[role]
        try:
            pidfd = kernel.open_pidfd(process.pid, process.start_ticks)
            if pidfd is not None:
                self._pidfds.add(pidfd, partial(self._read_end, watched, role))
        except OSError as error:  # no descriptor is left, which says nothing of the process (P7); the keeper tells its end
            log.warning("no pidfd", launch=watched.launch.id, role=role, why=error.strerror, next_try_s=AGAIN_S)
            asyncio.get_running_loop().call_later(AGAIN_S, self._watch_again, watched, role)
            return
        if pidfd is None:  # gone already: the keeper may have told it before we listened
            self._ended_unseen(watched, role)
        else:
            watched.fds[role] = pidfd

    def _watch_again(self, watched: Watched, role: str) -> None:
        if self._watched.get(watched.launch.id) is watched and role not in watched.fds and role not in watched.ends:
            self._watch_role(watched, role)

    def forget(self, launch_id: str) -> None:
        self._owed.pop(launch_id, None)
        watched = self._watched.pop(launch_id, None)
        if watched is not None:
            for pidfd in watched.fds.values():
                self._pidfds.drop(pidfd)
            watched.fds.clear()

    def watching(self) -> list[Launch]:
        return [watched.launch for watched in self._watched.values() if not watched.reported]

    def has_ended(self, launch_id: str, role: str) -> bool | None:
        """Say whether the death watch saw a process end; None if it held no pidfd."""
        watched = self._watched.get(launch_id)
        if watched is None:
            return None
        if role in watched.fds:
            return kernel.has_ended(watched.fds[role])
        return True if role in watched.ends and watched.ends[role].source else None

    def conclude(self, launch: Launch) -> None:
        """Feed a death that the death watch missed, from what is left of the launch."""
        watched = self._watched.get(launch.id)
        if watched is None:
            self._ground.feed(Exited(self.describe(launch, self.recorded(launch), "daemon")))
            return
        role = agent_role(watched.launch)
        if role in watched.fds:
            if kernel.has_ended(watched.fds[role]):
                self._read_end(watched, role)
        elif role not in watched.ends:
            self._ended_unseen(watched, role)

    def _ended_unseen(self, watched: Watched, role: str) -> None:
        """Take a death that we missed from the keeper's records, if they have it."""
        self._ended(watched, role, self.recorded(watched.launch).get(role) or ProcessEnd(None, "", self._ground.now()))

    def recorded(self, launch: Launch) -> dict[str, ProcessEnd]:
        """Return a death as the keeper recorded it, or holds it while the disk takes no record."""
        owed = {role: end_of(word, self._ground.clock) for role, word in self._owed.get(launch.id, {}).items()}
        return owed | ends_from_records(self._folder(launch), self._ground.clock)

    def heard(self, word: ExitWord) -> None:
        if word.unrecorded:
            self._owed.setdefault(word.launch, {})[word.role] = word
        watched = self._watched.get(word.launch)
        process = None if watched is None else roles_of(watched.launch).get(word.role)
        if watched is None or process is None or (word.pid, word.start_ticks) != (process.pid, process.start_ticks):
            return
        known, told = watched.ends.get(word.role), end_of(word, self._ground.clock)
        if known is None or known.status is None:
            self._ended(watched, word.role, replace(told, at=known.at) if known and known.source else told)
        elif told.oom is not None:
            watched.ends[word.role] = replace(known, oom=told.oom)
            watched.changes.tell()

    async def reported(self, launch_id: str, within_s: float) -> bool:
        """Wait until the machine was told of an agent's death; say whether it was."""
        watched = self._watched.get(launch_id)
        if watched is None:
            return True
        return await watched.changes.until(lambda: watched.reported, within_s)

    async def settled(self, within_s: float) -> None:
        """Wait a bounded time until every death seen so far was told to the machine."""
        seen = [one for one in self._watched.values() if agent_role(one.launch) in one.ends and not one.reported]
        if seen:
            await asyncio.wait([asyncio.ensure_future(self.reported(one.launch.id, within_s)) for one in seen])

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for launch_id in list(self._watched):
            self.forget(launch_id)
        self._pidfds.close()

    def _read_end(self, watched: Watched, role: str) -> None:
        process = roles_of(watched.launch)[role]
        try:
            status, source = RESERVE.call(kernel.read_wait_status, watched.fds[role], process.pid, process.start_ticks)
        except OSError:
            status, source = None, ""  # the keeper knows it
        self._pidfds.drop(watched.fds.pop(role))
        self._ended(watched, role, ProcessEnd(status, source, self._ground.now()))

    def _ended(self, watched: Watched, role: str, end: ProcessEnd) -> None:
        watched.ends[role] = end
        watched.changes.tell()
        agent = agent_role(watched.launch)
        if watched.reported:
            if role == runtime_role(watched.launch):
                self._ground.feed(RuntimeEnded(watched.launch.id))
        elif agent not in watched.ends:
            if role != "agent":
                self._start(self._await_orphan(watched, role))
        elif role == agent and not watched.gathering:
            watched.gathering = True
            self._ask_memory(watched, end)
            if self._is_plain(watched):
                self._report(watched)
            else:
                self._start(self._gather(watched))

    def _ask_memory(self, watched: Watched, end: ProcessEnd) -> None:
        """At a death by SIGKILL, have the witness read memory kills; only zero settles that."""
        if end.killed and end.oom is None:
            watched.oom_kills = self._witness.oom_kills()
            if watched.oom_kills == 0:
                watched.ends[agent_role(watched.launch)] = replace(end, oom=Oom(host_kills=0))

    def _is_plain(self, watched: Watched) -> bool:
        """Say whether a death can be told at once: no hangup, and the server stands."""
        role = agent_role(watched.launch)
        status = watched.ends[role].status
        if status is None or "server" in watched.ends or _wants_memory(watched):
            return False
        hung_up = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGHUP
        if role == "inner":  # its shell lives on: nothing else is to end
            return not hung_up
        return watched.launch.root is None or (os.WIFSIGNALED(status) and not hung_up)

    async def _gather(self, watched: Watched) -> None:
        """Wait for what belongs to a death: the keeper's word, root's end, server's end.

        The kernel hangs up the agent before the root is a zombie. The root's own status then says whether the pane was closed
        or the agent ended by itself."""
        agent = agent_role(watched.launch)
        if watched.launch.root is not None:
            await watched.changes.until(lambda: "root" in watched.ends, SETTLE_S)
        if not _told(watched.ends[agent]):
            await watched.changes.until(lambda: _told(watched.ends[agent]), KEEPER_S)
        if _wants_memory(watched):
            await watched.changes.until(lambda: watched.ends[agent].oom is not None, KEEPER_S)
            if watched.ends[agent].oom is None:
                watched.ends[agent] = replace(watched.ends[agent], oom=Oom(host_kills=watched.oom_kills))
        root = watched.ends.get("root")
        exited = root is not None and root.status is not None and os.WIFEXITED(root.status)
        if watched.launch.server is not None and root is not None and not exited:
            await watched.changes.until(lambda: "server" in watched.ends, SETTLE_S)
        server = watched.ends.get("server")
        if server is not None and not _told(server):
            await watched.changes.until(lambda: _told(watched.ends["server"]), KEEPER_S)
        self._report(watched)

    def _report(self, watched: Watched) -> None:
        watched.reported = True
        watched.changes.tell()
        self._ground.feed(Exited(self.describe(watched.launch, watched.ends, "daemon", watched.exec_seen)))
        if "inner" in watched.ends and runtime_role(watched.launch) in watched.ends:
            self._ground.feed(RuntimeEnded(watched.launch.id))

    async def _await_orphan(self, watched: Watched, role: str) -> None:
        """Await the death of an agent without pane or server; else feed an orphan."""
        await watched.changes.until(lambda: agent_role(watched.launch) in watched.ends, ORPHAN_S)
        if agent_role(watched.launch) not in watched.ends and watched.launch.id in self._watched:
            what = "server" if "server" in watched.ends else "pane"
            end = watched.ends["server" if what == "server" else role]
            code, number = kernel.split_status(end.status)
            self._ground.feed(Orphaned(watched.launch.id, end.at, what, code, number))

    def describe(self, launch: Launch, ends: dict[str, ProcessEnd], observer: str, exec_seen: bool = True) -> Exit:
        """Return all that the death watch knows of how a launch ended."""
        role = agent_role(launch)
        agent = ends.get(role) or ProcessEnd(None, "", self._ground.now())
        status, source, at, observed_by, ambiguous = agent.status, agent.source, agent.at, observer, False
        code, number = kernel.split_status(status)
        if agent.by_keeper:
            observed_by = "keeper"
        if status is None and role == "agent":
            shim = records.read_shim_exit(self._folder(launch)) or _of_sandbox(launch, ends.get("root"))
            if shim is not None:
                (code, at), source, observed_by = shim, "shim", "shim"
                ambiguous = code > AMBIGUOUS_OVER
        server, root = ends.get("server"), ends.get("root")
        server_code, server_signal = kernel.split_status(server.status if server else None)
        root_signal = kernel.split_status(root.status)[1] if root and launch.root != launch.agent else None
        return Exit(
            launch_id=launch.id,
            at=at,
            observed_by=observed_by,
            exit_code=code,
            signal=number,
            ambiguous=ambiguous,
            status_source=source,
            server_ended=server is not None and server.at <= at + 2 * SETTLE_S and not _took_along(launch, agent, server),
            server_exit_code=server_code,
            server_signal=server_signal,
            root_signal=root_signal,
            pane_closed=root_signal is not None and root is not None and _follows(launch, agent, root),
            started=exec_seen or role == "inner" or code not in (126, 127),
            core=status is not None and os.WIFSIGNALED(status) and os.WCOREDUMP(status),
            oom=agent.oom,
            words=self._witness.words_of(launch, code) if code is not None else None,
            result=self._witness.result_of(launch) if code == 0 else None,
            full_disk=self._witness.full_disk() if code != 0 else "",
        )

    def _folder(self, launch: Launch) -> str:
        return str(self._ground.home.launch(launch.id))

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _of_sandbox(launch: Launch, root: ProcessEnd | None) -> tuple[int, float] | None:
    """Return a headless agent's exit code at its death, by the bwrap around it.

    That ends with the agent's code, or 128 and its signal."""
    if launch.server is not None or root is None or root.status is None or not os.WIFEXITED(root.status):
        return None
    return os.WEXITSTATUS(root.status), root.at


def _follows(launch: Launch, agent: ProcessEnd, root: ProcessEnd) -> bool:
    """Say whether an agent's end followed its pane's, by the hangup."""
    return launch.server is not None and root.at - SETTLE_S <= agent.at <= root.at + HANGUP_S


def _took_along(launch: Launch, agent: ProcessEnd, server: ProcessEnd) -> bool:
    """Say whether a foreign server ended because its last agent had: that one died of no hangup, and answered none."""
    if launch.host is None or agent.status is None:
        return False
    if os.WIFSIGNALED(agent.status):
        return os.WTERMSIG(agent.status) != signal.SIGHUP
    return server.at >= agent.at and server.status in (None, 0)


def _told(end: ProcessEnd) -> bool:
    """Say whether the death watch has a process's status, or the keeper lacks it too."""
    return end.status is not None or end.by_keeper


def _wants_memory(watched: Watched) -> bool:
    """Say whether the death watch still waits for word whether memory ran out."""
    end = watched.ends[agent_role(watched.launch)]
    return end.killed and end.oom is None
