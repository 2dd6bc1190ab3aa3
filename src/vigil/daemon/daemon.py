"""The daemon: its parts, put together, from start to stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any

from vigil import __version__
from vigil.config.loading import ConfigFile, ConfigRefused
from vigil.core.effects import Persist
from vigil.core.events import Exited, Gap, Launched, Noted, Observed, Recovered, Resumed, WatchdogsSet
from vigil.core.machine import Machine
from vigil.core.model.incident import IncidentKind
from vigil.core.model.launch import Launch, RuntimeKind
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.speech import Said
from vigil.core.rules.stall.case import is_watched
from vigil.core.rules.stall.course import with_finding
from vigil.daemon.act import Custody, make_carrier, watches_of
from vigil.daemon.act.postmortem import Coroner
from vigil.daemon.base.agents import Kinds
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.environments import Environments
from vigil.daemon.base.feed import Feed
from vigil.daemon.base.keeper_link import KeeperLink, KeeperRefused, KeeperSilent
from vigil.daemon.base.lateness import Gaps, Lateness
from vigil.daemon.base.log import log
from vigil.daemon.base.recorder import Recorder, shown
from vigil.daemon.base.secrets import Secrets
from vigil.daemon.sense.agent_files import Listening
from vigil.daemon.sense.agent_process import Finder
from vigil.daemon.sense.axes import Looker
from vigil.daemon.sense.death import DeathWatch
from vigil.daemon.sense.death_facts import Witness
from vigil.daemon.sense.dialogs import Dialogs
from vigil.daemon.sense.evidence import Silences
from vigil.daemon.sense.hooks import Hooks
from vigil.daemon.sense.memory import Admission
from vigil.daemon.sense.outputs import Outputs
from vigil.daemon.sense.processes import Diagnoser
from vigil.daemon.sense.screens import Screens
from vigil.daemon.sense.sweep import Sweep
from vigil.daemon.sense.transcripts import Conversations
from vigil.daemon.serve.adoption import Adopting
from vigil.daemon.serve.mailbox import Delivery, Texts
from vigil.daemon.serve.prompts import Sending
from vigil.daemon.serve.reactions import Reactor
from vigil.daemon.serve.reaper import Reaper
from vigil.daemon.serve.sessions import Operations
from vigil.daemon.serve.teams import Teams
from vigil.daemon.start.stored import Past, estranged, is_copy, place_of, read_past
from vigil.daemon.start.takeover import Adopter
from vigil.daemon.start.unknown_launches import find_unknown, roles_in
from vigil.daemon.supervisor import Supervisor
from vigil.daemon.tell.alarms import Alarms
from vigil.daemon.tell.clock import BLOCKED_S
from vigil.daemon.tell.details import Details
from vigil.daemon.tell.host_incidents import Troubles
from vigil.errors import VigilError
from vigil.home import Home
from vigil.keeper.protocol import QuitRequest, SnapshotWord, WatchRequest, Word
from vigil.kernel import process
from vigil.kernel.durable import read_json, record_json
from vigil.observe.folder import WENT, FolderWatch
from vigil.runtimes import Tmux, make_runtimes
from vigil.store.store import Store

BOOT = "boot.json"
READ_S = 1.5
JUDGE_S = 0.5  # whoever asks why waits so long
OVER = frozenset({State.STOPPED, State.SUCCEEDED})
OLD_S = 86400.0
DRAIN_S = 2.0
UNKNOWN = "the store did not know what lives"
CONFIG_BEATS = 5  # seconds until a changed configuration is taken in; `run` takes it in at once


class Daemon:
    """One daemon of one home."""

    def __init__(self, home: Home, store: Store, nofile: int, config: ConfigFile, recorder: Recorder | None = None) -> None:
        self.home = home
        self.store = store
        self.config = config
        self.recorder = recorder
        self.kinds = Kinds(config)
        self.pid = os.getpid()
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._with_keeper = False
        self._tasks: list[asyncio.Task[None]] = []
        self._looks: set[asyncio.Task[None]] = set()
        self._config_problem: str | None = None
        self._beats = 0
        self._begin_clock()
        past = read_past(store, self.started_at)
        if self._copied:
            past = estranged(past)
        self.machine = Machine(past.sessions, past.incidents, past.roles)
        self._watchdogs = self.machine.watchdogs
        self.feed = Feed(store)
        self.supervisor = Supervisor(self.machine, store, self.feed, self.clock)
        self._gaps = Gaps(self.clock.now)
        self._environments = Environments(home)
        self.secrets = Secrets(self._environments, self.machine.sessions.get)
        self._make_alarms()
        self._make_senses(nofile)
        self._make_carrier()
        self._make_services()
        self._make_loops()
        self._connect()
        if recorder is not None:
            self._begin_recording(recorder, past)

    def _begin_clock(self) -> None:
        """Go on with the clock of the daemon before us, unless the host booted since."""
        self.clock = Clock()
        self._boot = process.read_boot()
        known = read_json(str(self.home.path / BOOT)) or read_json(str(self.home.path / "clock.json")) or {}
        self._copied = is_copy(known, self.home.path)
        self._booted = self._copied or known.get("boot") != self._boot
        self.clock.anchor(self.home.path / "clock.json", self._boot)
        self.started_at = self.clock.now()

    def _make_alarms(self) -> None:
        """Make what tells humans."""
        details = Details(self.home, self.secrets, self.machine.sessions.get)
        self.alarms = Alarms(self.clock, self.supervisor.feed, self.supervisor.done, details.of)
        self.troubles = Troubles(self.home, self.store, self.alarms, self.supervisor.note)

    def _make_senses(self, nofile: int) -> None:
        """Make what says how launches are: where they live, who keeps them, what they print and how they end."""
        home, clock, kinds, feed = self.home, self.clock, self.kinds, self.supervisor.feed
        read_env = self._environments.read
        self.runtimes = make_runtimes(home, self._look_at, self.troubles.prober_changed)
        tmux = self.runtimes[RuntimeKind.TMUX]
        assert isinstance(tmux, Tmux)
        self._tmux = tmux
        self.witness = Witness(home, self.secrets, self._agent_of_launch, kinds.adapter_of)
        self.watch = DeathWatch(home, clock, self.supervisor.at_once, self.witness)
        self.coroner = Coroner(home, self.store, clock, self.secrets, self.machine.sessions.get)
        self.outputs = Outputs(home, clock, feed)
        self.keeper = KeeperLink(home, self._heard, self.troubles.keeper_changed, self._rewatch, nofile)
        self.listening = Listening(home, kinds.adapter_of, read_env, feed, clock.off_s)
        self.conversations = Conversations(clock, kinds.adapter_of, kinds.is_set_up, read_env)
        self.finder = Finder(clock, self.machine, feed)

    def _make_carrier(self) -> None:
        """Make what acts."""
        feed = self.supervisor.feed
        self.texts = Texts(self.home.messages)
        self.custody = Custody(
            self.home, self.runtimes, self.keeper, self.watch, self.outputs, self.finder, self.listening, feed
        )
        self.supervisor.carrier = make_carrier(
            self.home,
            self.clock,
            self.machine,
            self.runtimes,
            self.keeper,
            self.custody,
            self.kinds,
            self.conversations,
            self.secrets,
            self._environments,
            self.coroner.purge,
            self.texts.purge,
            feed,
        )

    def _make_services(self) -> None:
        """Make what answers operators."""
        supervisor, environments = self.supervisor, self._environments
        self.operations = Operations(environments, supervisor, self.runtimes, self.config, self.secrets, self.conversations)
        self.teams = Teams(environments, supervisor, self.runtimes, self.config)
        self.sending = Sending(supervisor, self._tmux, self.kinds.adapter_of)
        self.delivery = Delivery(self.texts, supervisor, self.sending, self.conversations)
        names = self.kinds.configured_names
        self.adopting = Adopting(self.home, self.clock, supervisor, self.operations, self._tmux, names)
        mark_again = supervisor.carrier.adopted.mark_again
        self.adopter = Adopter(self.home, self.clock, self.custody, self.kinds, self._copied, mark_again)
        # Of a manifest that never became durable; where the store was lost its launches still know their roles.
        environments.forget_roles_but({*self.machine.roles, *roles_in(self.home, self.machine.sessions)})

    def _make_loops(self) -> None:
        """Make what looks again and again."""
        home, clock, machine, supervisor = self.home, self.clock, self.machine, self.supervisor
        feed, read_keeper = supervisor.feed, lambda: self.keeper.pid
        self.dialogs = Dialogs(machine.sessions.values, self._tmux, self.kinds.adapter_of, self.secrets, clock.now, feed)
        self.admission = Admission(feed, lambda: self.config.last_good.launch.least_memory_bytes, read_keeper)
        screens = Screens(home, self._tmux, self._printed)
        self.sweep = Sweep(machine, Looker(home, clock, self.runtimes, self.watch), screens, feed)
        self.reaper = Reaper(
            home,
            clock,
            supervisor,
            self.runtimes,
            screens,
            self.config,
            lambda: self.store.created_at,
            self._recover,
            lambda: self.admission.shortage,
        )
        self.diagnoser = Diagnoser(machine, clock, feed, read_keeper)
        self.silences = Silences(machine, self.diagnoser, self.listening, home, clock, feed)
        self.hooks = Hooks(home.spool, clock, feed, self._is_current, supervisor.recorded, self._read_hook)
        self.lateness = Lateness(self._beat)
        self._sockets = FolderWatch(home.run, self._names_went, WENT)

    def _connect(self) -> None:
        """Give the supervisor, which was made first, those who do what it asks for."""
        self.supervisor.look = self.sweep.look
        self.supervisor.tell = self.alarms.tell
        self.supervisor.examine = self.coroner.examine
        self.supervisor.amend = self.coroner.amend
        self.supervisor.react = Reactor(self.sending, self.supervisor.feed).react
        self.supervisor.diagnose = self.silences.diagnose
        self.supervisor.on_slow_store = self.troubles.store_changed
        self.supervisor.missed_s = self._gaps.missed_s
        self.store.whole = self._whole

    def _begin_recording(self, recorder: Recorder, past: Past) -> None:
        recorder.on_ended = self._recording_ended
        recorder.begin(self.started_at, past.sessions, past.incidents, past.roles)
        self.supervisor.on_handled = recorder.handled

    async def start(self) -> None:
        """Take over what lives, then run the loops."""
        self.feed.load()
        self.use_config()
        for incident in self.machine.incidents.values():  # first: what is open is not opened again by what we meet now
            self.alarms.tell(incident)
        self.alarms.start()
        await self.keeper.connect()
        self.admission.look()  # before anybody is launched
        unknown = self._find_unknown()
        why = UNKNOWN if self.store.aside is None else f"the store was another instance's, and is {self.store.aside} now"
        if unknown:
            self.supervisor.feed(Recovered(tuple(unknown.values()), why))
        elif self.store.aside is not None:
            self.alarms.report(IncidentKind.STORE_LOST, why)
        stored = list(({**self.machine.sessions, **unknown}).values())
        self.supervisor.feed(Resumed(self._booted))
        for session, event in zip(stored, await asyncio.gather(*map(self.adopter.adopt, stored)), strict=True):
            if isinstance(event, Exited) and session.launch is not None:
                self.listening.follow(session, session.launch)  # what it wrote last is read when its launch is closed
            if event is not None:
                self.supervisor.feed(event)
            if session.launch is not None and session.launch.found is not None and not isinstance(event, Launched):
                self.watch.watch_rest(session.launch)  # after the death was told: it may have left its pane open
        self.troubles.begin_anew(keeper_hangs=self.keeper.wedged)
        await self._rewatch()
        started: dict[str, str | int | float | None] = {"pid": self.pid, "version": __version__, "sessions": len(stored)}
        self._remembering = asyncio.create_task(self._remember_boot(Noted("daemon.started", tuple(started.items()))))
        self._gaps.beat()
        self.delivery.start()
        self._catching_up = asyncio.create_task(self.coroner.catch_up())
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
        )
        for work in [part.run() for part in loops]:
            self._tasks.append(asyncio.create_task(self._guard(work)))
        if unknown:  # whoever asks first is to see them
            await self.supervisor.until(lambda: unknown.keys() <= self.supervisor.shown.keys(), READ_S)

    async def _remember_boot(self, started: Noted) -> None:
        """Write down on which boot we are once all that follows from it is durable: who is killed before asks again."""
        log.warning(started.kind, **dict(started.data))
        with contextlib.suppress(VigilError, OSError):
            await self.supervisor.done(started)
            mark = {"boot": self._boot, "home": place_of(self.home.path)}
            await asyncio.to_thread(record_json, str(self.home.path / BOOT), mark)

    def stop(self, with_keeper: bool = False) -> None:
        """Ask for the end; sessions live on, and the keeper with them unless there are none left."""
        self._with_keeper = with_keeper
        self._stopping.set()

    async def stopped(self) -> None:
        """Wait for the end and leave everything in order."""
        await self._stopping.wait()
        await asyncio.to_thread(self.alarms.close)  # first: what is told now is written down
        await self.supervisor.drained(DRAIN_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.delivery.close()
        self.finder.close()
        self._sockets.close()
        self.hooks.close()
        self.listening.close()
        await self.supervisor.close()
        await self.watch.close()
        self.outputs.close()
        if self._with_keeper:
            self.keeper.tell(QuitRequest())
        await self.keeper.close()
        await asyncio.to_thread(self.coroner.close)
        self.store.close()
        if self.recorder is not None:
            await asyncio.to_thread(self.recorder.close)

    def is_old(self, session: Session) -> bool:
        """Say whether a session has been over for so long that a list without `--all` leaves it out."""
        if session.archived_at is not None and session.state in OVER:
            return True
        return session.state in OVER and self.clock.now() - session.state_since > OLD_S

    async def look(self, session: Session) -> None:
        """Read one session's axes now; a server that does not answer costs its deadline and nothing else."""
        if session.state in ALIVE and session.launch is not None:
            await self.sweep.look(session)
            await self.supervisor.until(lambda: self.supervisor.shown.get(session.id) is not session, READ_S)

    async def judged(self, session: Session) -> Session:
        """Return a session with what is found of its silence now; nothing is kept of it."""
        launch = session.launch
        if launch is None or not is_watched(session):
            return session
        evidence = await self.silences.read(session, launch, JUDGE_S)
        found = self.machine.judge(launch.id, evidence, self.clock.now())
        now = self.machine.of_launch(launch.id) or session
        return now if found is None else replace(now, stall=with_finding(now.stall, found, evidence.at))

    def _read_hook(self, launch_id: str, payload: Mapping[str, Any]) -> tuple[Said, ...]:
        """Return what a hook says, by the adapter of its agent; the conversation it names is followed from now on."""
        session = self.machine.of_launch(launch_id)
        if session is None or session.launch is None:
            return ()
        said = self.listening.read_hook(session.spec.agent, payload)
        named = next((one.conversation for one in reversed(said) if one.conversation and not one.subagent), "")
        if named:
            self._loop.call_soon_threadsafe(self.listening.converses, session, session.launch, named)
        return said

    def use_config(self) -> None:
        """Take in the configuration if it changed; one that is not valid changes nothing, and is said once."""
        try:
            config = self.config.read()
            self.alarms.use(config)
            if config.watchdogs != self._watchdogs:
                self._watchdogs = config.watchdogs
                self.supervisor.feed(WatchdogsSet(config.watchdogs))
            self._config_problem = None
        except ConfigRefused as error:
            if str(error) != self._config_problem:
                self._config_problem = str(error)
                self.supervisor.note("config.refused", {"why": str(error)})

    def recording(self) -> dict[str, str | int | None] | None:
        """Return where events are recorded, how much so far, and why it ended if it did; None where nobody asked for it."""
        recorder = self.recorder
        if recorder is None:
            return None
        return {
            "file": shown(recorder.path),
            "events": recorder.events,
            "bytes": recorder.bytes,
            "ended": recorder.ended,
        }

    def probes(self) -> dict[str, int]:
        """Return how many probes are under way, and how many were given up so far."""
        pinger = self.runtimes[RuntimeKind.TMUX].probes()
        return {"in_flight": pinger[0], "abandoned": pinger[1]}

    def _find_unknown(self) -> dict[str, Session]:
        """Return sessions that live and that the store does not know, by their ids; a name is one session's."""
        names = self.machine.by_name
        found = find_unknown(self.home, self.machine.sessions, self.kinds.names_of, self.clock.now())
        return {session.id: session for session in found if names.get(session.name, session.id) == session.id}

    async def _recover(self) -> None:
        """Take over what lives and is not known, in case its record went missing under us."""
        unknown = self._find_unknown()
        if unknown:
            await self.supervisor.done(Recovered(tuple(unknown.values()), UNKNOWN))
            for session in unknown.values():
                if (event := await self.adopter.adopt(replace(session, state=State.RUNNING))) is not None:
                    self.supervisor.feed(event)
            await self._rewatch()

    def _printed(self, launch: Launch, ago_s: float) -> None:
        """What a terminal shows changed, at least so long ago."""
        self.supervisor.feed(Observed(launch.id, (), printed_at=self.clock.now() - ago_s))

    def _whole(self) -> Persist:
        """Return all there is, for a database that was put in the place of ours."""
        machine = self.machine
        sessions = tuple(machine.sessions.values())
        launches = tuple(session.launch for session in sessions if session.launch is not None)
        return Persist(sessions, launches, incidents=tuple(machine.incidents.values()), roles=tuple(machine.roles.values()))

    def _beat(self, late_s: float) -> None:
        """The loop runs: what it missed is said first, then the clock apart is told."""
        if late_s > BLOCKED_S:
            self.alarms.stood_still(late_s)
        if (missed_s := self._gaps.missed_s()) > 0:
            self.supervisor.feed(Gap(missed_s))
        self._gaps.beat()
        self.alarms.heartbeat.beat()
        if self.recorder is not None:
            self.recorder.check()
        self._beats += 1
        self.troubles.check_store()
        if self._beats % CONFIG_BEATS == 0:
            self.use_config()

    def _heard(self, word: Word) -> None:
        """The keeper says something unasked: who ended, or that it has written down what it saw then."""
        if isinstance(word, SnapshotWord):
            self.coroner.snapshot_taken(word.launch)
        else:
            self.watch.heard(word)

    def _agent_of_launch(self, launch_id: str) -> str:
        session = self.machine.of_launch(launch_id)
        return "" if session is None else session.spec.agent

    def _is_current(self, launch_id: str) -> bool:
        return self.machine.of_launch(launch_id) is not None

    def _names_went(self, names: list[str]) -> None:
        """A socket was removed: its session is looked at now."""
        for name in names:
            if name.endswith(".tmux"):
                self._look_at(name.removesuffix(".tmux"))

    def _look_at(self, launch_id: str) -> None:
        """Look at a launch soon, because something about its server changed."""
        session = self.machine.of_launch(launch_id)
        if session is not None:
            task = asyncio.create_task(self.sweep.look(session))
            self._looks.add(task)
            task.add_done_callback(self._looks.discard)

    def _recording_ended(self, why: str) -> None:
        """Say once that the recording is over and the daemon is not; the recorder's own thread may say so."""
        assert self.recorder is not None
        data = {"file": shown(self.recorder.path), "events": self.recorder.events, "why": why}
        with contextlib.suppress(RuntimeError):  # the loop is closed: so is the daemon
            self._loop.call_soon_threadsafe(self.supervisor.note, "recording.ended", data)

    async def _rewatch(self) -> None:
        """Tell a keeper what lives here: one that is new watches what it did not spawn."""
        watches = tuple(watch for launch in self.watch.watching() for watch in watches_of(launch, self.home))
        if watches:
            try:
                await self.keeper.ask(WatchRequest(watches), timeout_s=10.0)
            except KeeperSilent as error:
                log.error("keeper not told", why=str(error))
            except KeeperRefused as error:
                self.keeper.note_refusal(str(error))

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """A loop that fails ends the daemon, loudly: the next command starts it anew and nothing is lost (P10)."""
        try:
            await work
        except asyncio.CancelledError:
            raise
        except BaseException:
            log.exception("a loop failed")
            if self.recorder is not None:
                self.recorder.close("the daemon failed")
            os._exit(70)
