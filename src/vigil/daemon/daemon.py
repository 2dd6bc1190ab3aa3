"""The daemon's life, from start to stop. `wiring` makes its parts."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from vigil import __version__
from vigil.config.loading import ConfigRefused
from vigil.core.effects import Tell
from vigil.core.events import Event, Exited, Gap, Launched, Noted, Recovered, Resumed, WatchdogsSet
from vigil.core.model.incident import IncidentKind
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.session import Session
from vigil.daemon.base.lateness import Lateness
from vigil.daemon.base.log import log
from vigil.daemon.start.stored import place_of
from vigil.daemon.start.unknown_launches import UNKNOWN
from vigil.daemon.tell.clock import BLOCKED_S
from vigil.daemon.wiring import BOOT, DaemonParts, Given
from vigil.errors import VigilError
from vigil.hands import Hangs
from vigil.keeper.protocol import QuitRequest
from vigil.kernel.durable import record_json
from vigil.kernel.shortage import RESERVE, is_shortage
from vigil.threads import UPKEEP, in_thread

AGAIN_S = 1.0
TOLD_S = 2.0  # a store or a keeper that hangs does not keep callers waiting any longer
DRAIN_S = 2.0
CONFIG_BEATS = 5  # seconds until a changed configuration is taken in; `run` takes it in at once


class Daemon(DaemonParts):
    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.lateness = Lateness(self._beat)
        self._stopping = asyncio.Event()
        self._with_keeper = False
        self._tasks: list[asyncio.Task[None]] = []
        self._config_problem: str | None = None
        self._watchdogs = self.machine.watchdogs
        self._beats = 0
        self._mend_socket: Callable[[], bool] = lambda: False

    def look_after(self, mend_socket: Callable[[], bool]) -> None:
        """Have the daemon's process mend its socket at each beat: it says whether it made one anew."""
        self._mend_socket = mend_socket

    async def start(self) -> None:
        """Start the daemon: take over what lives, then run the loops."""
        self.feed.load()
        self.use_config()
        for incident in self.machine.incidents.values():  # first: what we meet now must not open them again
            self.alarms.tell(Tell(incident))
        self.alarms.heartbeat.start()
        await self.keeper.connect()
        self.admission.look()  # before the first launch
        unknown = self._take_up_unknown()
        self.inbox.feed(Resumed(self.has_booted))
        stored = list(({**self.machine.sessions, **unknown}).values())
        await self._take_over(stored)
        self.troubles.begin_anew(keeper_hangs=self.keeper.wedged)
        if not self.keeper.wedged:  # one that hangs is told when it answers
            await self.keeper.rewatch()
        started: dict[str, str | int | float | None] = {"pid": self.pid, "version": __version__, "sessions": len(stored)}
        self.gaps.beat()
        self.delivery.start()
        self._catching_up = asyncio.create_task(self.coroner.catch_up())
        self._reading = asyncio.create_task(_give_time(self.secrets.read_all, stored))  # logs hide them too
        self._run_loops()
        await self.watch.settled(TOLD_S)
        self._remembering = asyncio.create_task(self._remember_boot(Noted("daemon.started", tuple(started.items()))))
        await asyncio.wait((self._remembering,), timeout=TOLD_S)  # the first caller sees all that was found, also the dead

    def _take_up_unknown(self) -> dict[str, Session]:
        """At the daemon's start, tell the machine of live launches that the store lacks.

        Where another instance's store lay there, tell a person where that is now."""
        unknown, aside = self.unknown.find(), self.store.aside
        why = UNKNOWN if aside is None else f"the store was another instance's, and is {aside} now"
        if unknown:
            self.inbox.feed(Recovered(tuple(unknown.values()), why))
        elif aside is not None:
            self.alarms.host.report(IncidentKind.STORE_LOST, why)
        return unknown

    async def _take_over(self, stored: list[Session]) -> None:
        """At the daemon's start, find what became of its predecessor's launches, watch what lives (P10)."""
        born = [session for session in stored if not self.adopter.awaits_birth(session)]
        for session, event in zip(born, await asyncio.gather(*map(self.adopter.adopt, born)), strict=True):
            self._taken_over(session, event)
        for session in stored:  # beside the loops: what is due of others does not wait for a birth
            if self.adopter.awaits_birth(session):
                self._tasks.append(asyncio.create_task(self._guard(partial(self._await_birth, session))))

    async def _await_birth(self, session: Session) -> None:
        self._taken_over(session, await self.adopter.adopt(session))
        if not self.keeper.wedged:
            await self.keeper.rewatch()

    def _taken_over(self, session: Session, event: Event | None) -> None:
        launch = session.launch
        if isinstance(event, Exited) and launch is not None:
            self.listening.follow(session, launch)  # its last words are read when its launch is closed
        if event is not None:
            self.inbox.feed(event)
        if launch is not None and launch.found is not None and not isinstance(event, Launched):
            self.watch.watch_rest(launch)  # after the death was told: it may have left its pane open

    def _run_loops(self) -> None:
        loops = (
            self.supervisor,
            self.keeper,
            self.sweep,
            self.lateness,
            self.hooks,
            self.witness,
            self.admission,
            self.listening,
            self.dialogs,
            self.diagnoser,
            self.reaper,
            self.silences,
            self.pruner,
        )
        for part in loops:
            self._tasks.append(asyncio.create_task(self._guard(part.run)))

    async def _guard(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """End the daemon loudly if a loop fails: the next command starts it anew (P10).

        What the host has no more of comes back: the loop waits for it."""
        while True:
            try:
                return await run()
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                log.exception("a loop failed")
                if is_shortage(error):
                    await asyncio.sleep(AGAIN_S)
                    continue
                if self.recorder is not None:
                    self.recorder.close("the daemon failed")
                os._exit(70)

    async def _remember_boot(self, started: Noted) -> None:
        """Record this boot once the daemon's start is durable: one killed before asks again."""
        log.warning(started.kind, **dict(started.data))
        with contextlib.suppress(VigilError, OSError):
            await self.supervisor.done(started)
            mark = {"boot": self.boot, "home": place_of(self.home.path)}
            await in_thread(UPKEEP, record_json, os.path.realpath(self.home.path / BOOT), mark)

    def stop(self, with_keeper: bool = False) -> None:
        """Ask the daemon to stop; sessions live on, and the keeper while there are any."""
        self._with_keeper = with_keeper
        self._stopping.set()

    async def stopped(self) -> None:
        """Wait until the daemon is to stop, and leave everything in order."""
        await self._stopping.wait()
        await _give_time(self.alarms.close)  # first: what is told now is written down
        await self.supervisor.drained(DRAIN_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.pruner.close()
        await self.delivery.close()
        self.finder.close()
        self.sockets.close()
        self.hooks.close()
        self.spools.close()
        self.listening.close()
        self.timers.close()
        await self.carrier.close()
        await self.commit.close()
        await self.watch.close()
        self.outputs.close()
        await _give_time(self.isolation.close)
        if self._with_keeper:
            self.keeper.tell(QuitRequest())
        await self.keeper.close()
        await self.coroner.close()
        self.store.close()
        if self.recorder is not None:
            await _give_time(self.recorder.close)

    def use_config(self) -> None:
        """Have the daemon take in a changed configuration; a typo at night changes nothing."""
        try:
            config = self.config.read()
            self.alarms.use(config)
            if config.watchdogs != self._watchdogs:
                self._watchdogs = config.watchdogs
                self.inbox.feed(WatchdogsSet(config.watchdogs))
            self._config_problem = None
        except ConfigRefused as error:
            if str(error) != self._config_problem:
                self._config_problem = str(error)
                self.inbox.note("config.refused", {"why": str(error)})

    def recording(self) -> dict[str, str | int | None] | None:
        return None if self.recorder is None else self.recorder.status()

    def probes(self) -> dict[str, int]:
        """Return how many probes the daemon has under way, and how many it gave up."""
        pinger = self.runtimes[RuntimeKind.TMUX].probes()
        return {"in_flight": pinger[0], "abandoned": pinger[1]}

    def _beat(self, late_s: float) -> None:
        """At each beat of the daemon, tell first what the loop missed, then its parts."""
        if late_s > BLOCKED_S:
            self.alarms.host.stood_still(late_s)
        if (missed_s := self.gaps.missed_s()) > 0:
            self.inbox.feed(Gap(missed_s))
        self.gaps.beat()
        self.alarms.heartbeat.beat()
        if self.recorder is not None:
            self.recorder.check()
        self._beats += 1
        self._look_at_socket()
        self.troubles.check_store()
        self.troubles.check_records()
        RESERVE.refill()
        if self._beats % CONFIG_BEATS == 0:
            self.use_config()
            self.coroner.write_again()

    def _look_at_socket(self) -> None:
        """Tell that the daemon's socket was lost and made anew; its folder may be another now (P15)."""
        if self._mend_socket():
            self.inbox.note("daemon.socket-lost", {"socket": str(self.home.api_socket)})
            with contextlib.suppress(OSError):
                self.sockets.renew()
            self._names_went([])  # a tmux server that was asked for its own while there was no folder is asked again


async def _give_time(work: Callable[..., None], *args: Any) -> None:
    """Do a daemon's work in a thread; go on without it where it hangs."""
    try:
        await in_thread(UPKEEP, work, *args)
    except Hangs as error:
        log.error("given up", work=getattr(work, "__qualname__", repr(work)), why=str(error))
