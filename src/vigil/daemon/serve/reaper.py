"""The reaper: looks at everything each cycle, has the core judge it, and returns the outcomes (DESIGN 4.5).

The table keeps what could not be read. A server that hangs costs only its deadline. `[reaper] enabled = false` stops it."""

from __future__ import annotations

import asyncio
import math
import os
import secrets as tokens
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from vigil.config.loading import ConfigFile
from vigil.core.events import Sighted
from vigil.core.model.launch import ProcessId, RuntimeKind
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.sighting import Glimpse, Guard, ReapAction, ReapClass, ReapPolicy, ReapVerdict, Stray
from vigil.core.rules.reap import judge
from vigil.core.rules.sighting import says_idle
from vigil.daemon.act import Actors, launch_of
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.log import log
from vigil.daemon.base.sweeps import Reaped, Sweeps
from vigil.daemon.sense.census import Census
from vigil.daemon.sense.screens import Screens
from vigil.daemon.serve.stop_all import LEFT
from vigil.daemon.supervisor import Supervisor
from vigil.kernel.processes import read_tree
from vigil.kernel.trust import runs_program
from vigil.observe import strays
from vigil.observe.survivors import SeenProcess
from vigil.observe.trees import cores, read_used_s
from vigil.runtimes import Runtime
from vigil.runtimes.tmux.guard import Use
from vigil.threads import SWEEPS, in_thread

FIRST_S = 5.0  # after a start: words from while no daemon listened are read first
LOOK_S = 5.0  # how soon it sees a changed configuration, and that memory is short
LEAST_S = 0.2
CPU_S = 1.0
FOLDER_S = 2.0
OUTCOME_S = 60.0
PRESSURE_S = 15.0  # between two sessions put to sleep for want of memory: the gain shows later
MOST_BELOW = 4096


@dataclass(eq=False, repr=False)
class Reaper:
    _ground: Ground
    _supervisor: Supervisor
    _reports: Sweeps
    _actors: Actors
    _census: Census
    _runtimes: dict[RuntimeKind, Runtime]
    _screens: Screens
    _config: ConfigFile
    _store_created_at: Callable[[], float]
    _recover: Callable[[], Awaitable[None]]
    _pressure: Callable[[], str]
    _keeper: Callable[[], int | None]
    _sweeping: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _folders_gone: dict[str, float] = field(default_factory=dict, init=False)  # since when a session's folder is gone
    _again_at: float | None = field(default=None, init=False)  # when the next grace is over

    async def run(self) -> None:
        """Have the reaper sweep soon after the start, then as often as configured; disabled, wait."""
        loop = asyncio.get_running_loop()
        swept_at, relieved_at = loop.time() - self._config.last_good.reaper.interval_s + FIRST_S, -PRESSURE_S
        while True:
            due_s = min(swept_at + self._config.last_good.reaper.interval_s, self._again_at or math.inf) - loop.time()
            await asyncio.sleep(min(max(due_s, LEAST_S), LOOK_S))
            wanted, now = self._config.last_good.reaper, loop.time()
            if not wanted.enabled:
                continue
            due = now >= swept_at + wanted.interval_s or (self._again_at is not None and now >= self._again_at)
            pressure = self._pressure() if wanted.park_on_pressure and now - relieved_at >= PRESSURE_S else ""
            if due or pressure:
                swept_at = now if due else swept_at
                relieved_at = now if pressure else relieved_at
                try:
                    await self.sweep("reaper", pressure=pressure)
                except Exception:  # a sensor that fails does not stop the watch
                    log.exception("a reaper's sweep failed", next_sweep_s=wanted.interval_s)

    async def sweep(self, actor: str, dry_run: bool = False, pressure: str = "") -> list[Reaped]:
        """Sweep as the reaper: look, have the core act, return outcomes; dry runs only judge."""
        async with self._sweeping:
            await self._recover()  # first: a launch whose folder is known is no orphan
            seen = await self.look(actor, pressure)
            if dry_run:
                return [Reaped(verdict) for verdict in self._judge(seen)]
            event = replace(seen, ticket=tokens.token_hex(8))
            with self._reports.follow(event.ticket) as report:
                await self._supervisor.done(event)
                self._schedule(report.verdicts)
                return await report.outcomes(OUTCOME_S)

    def _judge(self, seen: Sighted) -> list[ReapVerdict]:
        """Return how the reaper would judge; the machine does not hear of it."""
        machine = self._supervisor.machine
        roles, now = machine.roles, self._ground.now()
        verdicts, of_strays, _ = judge(machine.sessions.values(), roles, seen.glimpses, seen.strays, seen.policy, now)
        return [*verdicts, *(verdict for verdict, _ in of_strays)]

    async def look(self, actor: str, pressure: str = "") -> Sighted:
        wanted = self._config.last_good.reaper
        sessions = list(self._supervisor.shown.values())
        before = await self._census.take()
        marked, servers = await in_thread(SWEEPS, self._find_strays, before, sessions)
        groups = {s.launch.id: self._processes_of(s, before) for s in sessions if s.launch is not None}
        for launch_id, processes in marked.items():
            groups[launch_id] = [one.process for one in processes]
        used, begun = {key: read_used_s(group) for key, group in groups.items()}, time.monotonic()
        await asyncio.sleep(CPU_S)
        after, window_s = await self._census.take(), time.monotonic() - begun
        later = {s.launch.id: self._processes_of(s, after) for s in sessions if s.launch is not None}
        rates = {key: cores(used[key], read_used_s(later.get(key, groups[key])), window_s) for key in groups}
        glimpses, of_strays = await asyncio.gather(
            asyncio.gather(*(self._glimpse(session) for session in sessions if session.launch is not None)),
            asyncio.gather(*(self._glimpse_stray(key, servers.get(key)) for key in {**marked, **servers})),
        )
        rated = tuple(replace(glimpse, cpu=rates.get(glimpse.launch_id)) for glimpse in glimpses)
        found = tuple(
            self._stray(glimpse, marked.get(glimpse.launch_id, []), servers.get(glimpse.launch_id), rates)
            for glimpse in of_strays
        )
        found += self._left_to_keeper(after)
        return Sighted(rated, found, ReapPolicy(wanted.idle_ttl_s, wanted.grace_s, pressure), actor)

    def _find_strays(
        self, seen: list[SeenProcess], sessions: list[Session]
    ) -> tuple[dict[str, list[strays.Marked]], dict[str, ProcessId]]:
        """Find the reaper's strays: they bear our mark, and no session's launch knows them."""
        now = self._supervisor.machine.sessions.values()
        known = {session.launch.id for session in (*sessions, *list(now)) if session.launch is not None}
        marked = strays.read_marked(seen, known, str(self._ground.home.spool))
        return marked, strays.read_servers(self._ground.home.run, known, self._ground.boot)

    def _left_to_keeper(self, seen: list[SeenProcess]) -> tuple[Stray, ...]:
        """Return what agents left unmarked to the keeper: the reaper lists it, never ends it."""
        launches = [session.launch for session in self._supervisor.machine.sessions.values() if session.launch is not None]
        left = strays.left_to(self._keeper(), seen, launches)
        return (Stray(LEFT, "", tuple(left), unproven=True),) if left else ()

    def _processes_of(self, session: Session, seen: list[SeenProcess]) -> list[ProcessId]:
        launch = session.launch
        if launch is None or session.state not in ALIVE:
            return []
        if launch.host is not None and launch.root is not None:
            below = read_tree(launch.root.pid, launch.root.start_ticks, MOST_BELOW)
            return [ProcessId(pid, stat.start_ticks, self._ground.boot) for pid, stat in below]
        return [one.process for one in seen if one.launch_id == launch.id and one.process != launch.server]

    async def _glimpse(self, session: Session) -> Glimpse:
        launch = session.launch
        assert launch is not None
        now = self._ground.now()
        glimpse = Glimpse(launch.id, now)
        if session.state not in ALIVE or launch.ended_at is not None:
            left = () if session.state is State.ENDING else tuple(await self._actors.ending.survivors(launch))
            return replace(glimpse, survivors=left)
        glimpse = await self._read_folder(session, glimpse)
        runtime = self._runtimes[session.spec.runtime]
        if session.spec.runtime is RuntimeKind.HEADLESS:
            return self._with_printed(glimpse, runtime.read_printed(launch))
        if self._screens.spins(launch.id):
            await self._screens.refresh(launch)
        spins = self._screens.spins(launch.id)
        read_at = time.time()
        use = await runtime.read_use(launch)
        if use is None or use.tag != launch.id:
            words = "its tmux server gave no whole answer" if use is None else "its tmux session bears another mark"
            return replace(glimpse, clients=None, unreadable=glimpse.unreadable or words)
        return self._with_use(replace(glimpse, spins=spins), use, read_at, spins and says_idle(session))

    def _with_printed(self, glimpse: Glimpse, printed: tuple[int, float] | None) -> Glimpse:
        """Add to the reaper's glimpse what a headless agent printed, also before this daemon."""
        if printed is None:
            return replace(glimpse, unreadable=glimpse.unreadable or "what it prints cannot be read")
        guard = Guard("", int(time.time()) - 1, printed=printed[0])
        return replace(glimpse, printed_at=self._moment(printed[1]), guard=guard)

    def _moment(self, wall: float) -> float:
        """Return a wall-clock moment that the reaper read, on our own clock."""
        return self._ground.now() - max(0.0, time.time() - wall)

    def _with_use(self, glimpse: Glimpse, use: Use, read_at: float, spins: bool) -> Glimpse:
        """Add to the reaper's glimpse a session's use; each client is a person's, none ours."""
        guard = Guard(use.target, int(read_at) - 1, use.attached, history=use.history if spins else None)
        return replace(glimpse, clients=len(use.clients), printed_at=self._moment(use.printed), guard=guard)

    def forget(self, session_id: str) -> None:
        """Forget since when the reaper misses the folder of a session that is removed."""
        self._folders_gone.pop(session_id, None)

    async def _read_folder(self, session: Session, glimpse: Glimpse) -> Glimpse:
        """Read for the reaper whether a session's working folder is there; unknown if it hangs."""
        try:
            async with asyncio.timeout(FOLDER_S):
                gone_s = await in_thread(SWEEPS, read_gone_s, session.spec.cwd, about=session.spec.cwd)
        except (OSError, TimeoutError) as error:
            words = error.strerror if isinstance(error, OSError) and error.strerror else "no answer"
            return replace(glimpse, unreadable=f"its working folder cannot be read: {words}")
        if gone_s is None:
            self._folders_gone.pop(session.id, None)
            return glimpse
        since = self._folders_gone.setdefault(session.id, glimpse.at)
        return replace(glimpse, folder_gone_s=max(gone_s, glimpse.at - since))

    async def _glimpse_stray(self, launch_id: str, server: ProcessId | None) -> Glimpse:
        glimpse = Glimpse(launch_id, self._ground.now())
        if server is None:
            return glimpse
        read_at = time.time()
        if not runs_program(server.pid, shutil.which("tmux") or ""):  # its client would execute what it says
            return replace(glimpse, clients=None, unreadable="what listens on its socket is not the tmux that Vigil runs")
        launch = launch_of(Stray(launch_id, "", (), server))
        use = await self._runtimes[RuntimeKind.TMUX].read_use(launch)
        if use is None or use.tag != launch_id:
            return replace(glimpse, clients=None, unreadable="its tmux server gave no whole answer")
        return self._with_use(glimpse, use, read_at, spins=False)

    def _stray(
        self, glimpse: Glimpse, marked: list[strays.Marked], server: ProcessId | None, rates: dict[str, float | None]
    ) -> Stray:
        processes = tuple(one.process for one in marked if one.process != server)
        ages = [strays.age_s(process) for process in (*processes, *((server,) if server is not None else ()))]
        oldest_s = max(ages, default=0.0)
        return Stray(
            glimpse.launch_id,
            next((one.session for one in marked if one.session), ""),
            processes,
            server,
            self._ground.home.server_path(glimpse.launch_id) if server is not None else "",
            age_s=oldest_s,
            older_than_store=time.time() - oldest_s < self._store_created_at(),
            glimpse=replace(glimpse, cpu=rates.get(glimpse.launch_id)),
        )

    def _schedule(self, verdicts: tuple[ReapVerdict, ...]) -> None:
        waits = any(one.kind in (ReapClass.ORPHAN, ReapClass.ARCHIVED) and one.action is ReapAction.KEEP for one in verdicts)
        later = asyncio.get_running_loop().time() + self._config.last_good.reaper.grace_s
        self._again_at = later if waits else None


def read_gone_s(path: str) -> float | None:
    """Read for the reaper how long a folder is gone at least; None if there.

    Its nearest parent's change tells. OSError: unknown."""
    try:
        if os.path.isdir(path) or os.stat(path):
            return None
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        pass
    above = Path(path).parent
    while True:
        try:
            return max(0.0, time.time() - above.stat().st_mtime)
        except (FileNotFoundError, NotADirectoryError):
            if above == above.parent:
                return 0.0
            above = above.parent
