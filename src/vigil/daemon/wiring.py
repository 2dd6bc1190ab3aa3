"""Wiring: makes the parts of a daemon, each after those it needs, and connects them. It does nothing with them."""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vigil.config.loading import ConfigFile
from vigil.core.effects import Amend, Answer, Conclude, Diagnose, Examine, Judged, Look, React, ReapEnded, SetTimer, Tell
from vigil.core.events import KeeperHeard, Observed
from vigil.core.machine import Machine
from vigil.core.model.launch import Launch, RuntimeKind
from vigil.core.model.retention import Retention
from vigil.daemon.act import Actors, Carrier, Custody, watches_of
from vigil.daemon.act.adopted import AdoptedLaunches
from vigil.daemon.act.dispatch import Calls, Tasks
from vigil.daemon.act.end import Ending
from vigil.daemon.act.isolation import Isolation
from vigil.daemon.act.order import Orders
from vigil.daemon.act.postmortem import Coroner
from vigil.daemon.act.purge import Purging
from vigil.daemon.act.remedy import Remedies
from vigil.daemon.act.retention import Pruner
from vigil.daemon.act.spawn import Claims, Spawning
from vigil.daemon.act.strays import Strays
from vigil.daemon.act.timers import Timers
from vigil.daemon.base.agents import Kinds
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.door import Door
from vigil.daemon.base.environments import Environments
from vigil.daemon.base.feed import Feed
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.hook_key import HookKey
from vigil.daemon.base.inbox import Inbox
from vigil.daemon.base.keeper_link import KeeperLink
from vigil.daemon.base.lateness import Gaps
from vigil.daemon.base.log import REDACTOR
from vigil.daemon.base.recorder import RecordedMachine, Recorder
from vigil.daemon.base.secrets import Secrets
from vigil.daemon.base.shown import Shown
from vigil.daemon.base.sweeps import Sweeps
from vigil.daemon.commit import Commit
from vigil.daemon.sense.agent_files import Listening
from vigil.daemon.sense.agent_process import Finder
from vigil.daemon.sense.axes import Looker
from vigil.daemon.sense.census import Census
from vigil.daemon.sense.death import DeathWatch
from vigil.daemon.sense.death_facts import Witness
from vigil.daemon.sense.dialogs import Dialogs
from vigil.daemon.sense.evidence import Silences
from vigil.daemon.sense.hooks import HookReader, Hooks
from vigil.daemon.sense.memory import Admission
from vigil.daemon.sense.outputs import Outputs
from vigil.daemon.sense.processes import Diagnoser
from vigil.daemon.sense.sandbox_spools import SandboxSpools
from vigil.daemon.sense.screens import Screens
from vigil.daemon.sense.sweep import Sweep
from vigil.daemon.sense.transcripts import Conversations
from vigil.daemon.serve.adoption import Adopting
from vigil.daemon.serve.consent import Consents
from vigil.daemon.serve.explain import Explainer
from vigil.daemon.serve.mailbox import Delivery, Texts
from vigil.daemon.serve.prompts import Sending
from vigil.daemon.serve.reactions import Reactor
from vigil.daemon.serve.reaper import Reaper
from vigil.daemon.serve.sessions import Operations
from vigil.daemon.serve.teams import Teams
from vigil.daemon.start.stored import Past, estranged, is_copy, read_past
from vigil.daemon.start.takeover import Adopter
from vigil.daemon.start.unknown_launches import UnknownLaunches, roles_in
from vigil.daemon.supervisor import Supervisor
from vigil.daemon.tell.alarms import Alarms
from vigil.daemon.tell.courier import Details
from vigil.daemon.tell.host_incidents import KEEPER_IS_WELL, Troubles, keeper_trouble
from vigil.home import Home
from vigil.keeper.protocol import SnapshotWord, Watch, Word
from vigil.kernel import process
from vigil.kernel.durable import read_json
from vigil.kernel.inotify import WENT
from vigil.observe.inotify import FolderWatch
from vigil.runtimes import Tmux, make_runtimes
from vigil.store.store import Store

BOOT = "boot.json"
CLOCK = "clock.json"
SOCKET = ".tmux"
KEEPER_S = 1.0


@dataclass(frozen=True)
class Given:
    """What the daemon's process gives the wiring: open files, a keeper on its way."""

    home: Home
    store: Store
    config: ConfigFile
    nofile: int
    keeper: subprocess.Popen[bytes] | None = None
    recording: tuple[Path, int] | None = None


class DaemonParts:
    """Wires one daemon: makes its parts, each after all that it needs."""

    def __init__(self, given: Given) -> None:
        self.home = given.home
        self.store = given.store
        self.config = given.config
        self.pid = os.getpid()
        self._make_base(given)
        self._make_tellers()
        self._make_senses(given)
        self._make_actors()
        self._make_loops()
        self._make_supervisor()
        self._make_services()

    def _make_base(self, given: Given) -> None:
        """Wire the first parts: the clock, the inbox and what the daemon before us left."""
        home = self.home
        self.clock, self.boot, self.inbox = Clock(), process.read_boot(), Inbox()
        known = read_json(str(home.path / BOOT)) or read_json(str(home.path / CLOCK)) or {}
        self.is_copied = is_copy(known, home.path)
        self.has_booted = self.is_copied or known.get("boot") != self.boot
        self.clock.anchor(home.path / CLOCK, self.boot)
        self.started_at = self.clock.now()
        past = read_past(self.store, self.started_at)
        past = estranged(past) if self.is_copied else past
        self.machine = Machine(past.sessions, past.incidents, past.roles)
        self.environments = Environments(home)
        self.secrets = Secrets(home, self.environments, self.machine.sessions.get, REDACTOR)
        self.door = Door(self.machine, self.secrets)
        self.recorder = None if given.recording is None else self._make_recorder(*given.recording, past)
        self.shown = Shown(self.machine.sessions, self.machine.incidents)
        self.sweeps = Sweeps()
        self.feed = Feed(self.store)
        self.ground = Ground(home, self.clock, self.boot, self.inbox.feed)
        self.census = Census(self.boot, str(home.spool), self._read_keeper)
        self.gaps = Gaps(self.clock.now)
        self.kinds = Kinds(self.config)
        self.hook_key = HookKey(home.hook_key, self.clock.now())

    def _make_recorder(self, path: Path, fd: int, past: Past) -> Recorder:
        recorder = Recorder(path, fd, lambda ended: self.inbox.note_from_thread("recording.ended", ended))
        self.secrets.read_all(past.sessions)  # the first line shows them
        recorder.begin(self.started_at, past.sessions, past.incidents, past.roles)
        return recorder

    def _make_tellers(self) -> None:
        details = Details(self.home, self.secrets, self.machine.sessions.get)
        self.alarms = Alarms(self.clock, self.inbox, details.of)
        self.troubles = Troubles(self.home, self.store, self.alarms.host, self.inbox.note)

    def _make_senses(self, given: Given) -> None:
        """Wire the parts that read launches: runtimes, the keeper's link, outputs and deaths."""
        home, clock, kinds, feed, machine = self.home, self.clock, self.kinds, self.inbox.feed, self.machine
        read_env = self.environments.read
        self.noticed: asyncio.Queue[str] = asyncio.Queue()  # launches whose server changed
        self.sockets = FolderWatch(home.run, self._names_went, WENT)
        self.runtimes = make_runtimes(home, self.noticed.put_nowait, self.troubles.prober_changed)
        tmux = self.runtimes[RuntimeKind.TMUX]
        assert isinstance(tmux, Tmux)
        self.tmux = tmux
        self.witness = Witness(home, self.secrets, self._agent_of_launch, kinds.adapter_of)
        self.watch = DeathWatch(self.ground, self.witness)
        evidence = (machine.sessions.get, self._retention, self.troubles.bundle_changed)
        self.coroner = Coroner(home, self.store, clock, self.secrets, *evidence)
        self.outputs = Outputs(self.ground)
        self.keeper = KeeperLink(home, self._heard, self._keeper_changed, self._watches, given.nofile, given.keeper)
        self.listening = Listening(home, kinds.adapter_of, read_env, feed, clock.off_s)
        self.conversations = Conversations(clock, kinds.adapter_of, kinds.is_set_up, read_env)
        self.finder = Finder(self.ground, machine)
        reader = HookReader(machine, self.listening, self.hook_key)
        told = (reader.is_current, self.inbox.recorded, reader.read, reader.is_theirs)
        self.hooks = Hooks(home.spool, clock, feed, *told)
        self.spools = SandboxSpools(home)
        self.screens = Screens(home, tmux, self._printed)
        self.sweep = Sweep(machine, Looker(self.ground, self.runtimes, self.watch), self.screens, feed, self.noticed)

    def _make_actors(self) -> None:
        home, keeper, tmux, feed = self.home, self.keeper, self.tmux, self.inbox.feed
        self.texts = Texts(home.messages)
        heard = (self.watch, self.outputs, self.finder, self.listening, self.spools)
        custody = Custody(self.ground, self.runtimes, keeper, *heard)
        adopted = AdoptedLaunches(custody, tmux, self.census, self.boot)
        claims = Claims(self.machine.of_launch, self.machine.owner_of)
        self.isolation = Isolation(str(home.spool), self.boot, self._read_keeper, lambda: self.config.last_good.isolation)
        ends = (self.conversations, self.machine.of_launch, self.census, self.isolation)
        ending = Ending(self.ground, custody, adopted, *ends)
        self.orders = Orders(self.ground, self.census, ending.end_unborn)
        self.actors = Actors(
            custody,
            Spawning(
                self.ground,
                self.runtimes,
                keeper,
                custody,
                self.kinds,
                claims,
                self.secrets,
                self.environments,
                self.isolation,
                self.hook_key,
                self.orders,
                self.troubles.launch_changed,
            ),
            ending,
            adopted,
            Strays(tmux, feed),
            Remedies(self.ground, custody, keeper, self.sweep.look_at),
            Purging(home, custody, self.environments, self.coroner.purge, self.texts.purge, self._forget_session),
        )

    def _make_loops(self) -> None:
        clock, machine, feed = self.clock, self.machine, self.inbox.feed
        self.dialogs = Dialogs(self.ground, machine.sessions.values, self.tmux, self.kinds.adapter_of, self.secrets)
        self.admission = Admission(feed, lambda: self.config.last_good.launch.least_memory_bytes, self._read_keeper)
        self.diagnoser = Diagnoser(machine, clock, feed, self._read_keeper)
        seq, forget = (lambda: self.feed.last_seq), self.coroner.forget
        self.pruner = Pruner(self.store, self._retention, clock.now, seq, forget)
        self.silences = Silences(self.ground, machine, self.diagnoser, self.listening, self.door.clean)

    def _make_supervisor(self) -> None:
        clock, feed = self.clock, self.inbox.feed
        self.sending = Sending(self.inbox, self.shown, self.machine, clock, self.tmux, self.kinds.adapter_of)
        self.timers = Timers(self.ground)
        tasks: Tasks = {
            **self.actors.tasks(),
            Look: lambda effect: self.sweep.look_at(effect.launch.id),
            Diagnose: self.silences.diagnose,
            Examine: self.coroner.examine,
            React: Reactor(self.sending, feed).react,
        }
        calls: Calls = {
            SetTimer: self.timers.set,
            Conclude: lambda effect: self.watch.conclude(effect.launch),
            Amend: self.coroner.amend,
            Tell: self.alarms.tell,
            Answer: self.shown.answer,
            Judged: self.sweeps.judged,
            ReapEnded: self.sweeps.ended,
        }
        self.carrier = Carrier(tasks, calls, self.ground)
        asked = RecordedMachine(self.machine, clock, None if self.recorder is None else self.recorder.handled)
        told = (self.troubles.store_changed, self.troubles.store_refused)
        self.commit = Commit(asked, self.store, self.feed, self.shown, self.carrier.begin, *told)
        self.supervisor = Supervisor(self.inbox, asked, self.commit, self.shown, self.gaps.missed_s, self.door.clean)

    def _make_services(self) -> None:
        """Wire the parts that answer operators, and those that a start takes over with."""
        home, clock, supervisor, environments = self.home, self.clock, self.supervisor, self.environments
        adopted, names = self.actors.adopted, self.kinds.configured_names
        asked = (environments, supervisor, self.machine, self.runtimes, self.config)
        self.operations = Operations(*asked, self.secrets, self.conversations, self.actors, self.isolation)
        self.teams = Teams(*asked, self.isolation)
        self.consents = Consents(home)
        self.delivery = Delivery(self.texts, supervisor, self.sending, self.conversations)
        who = (self.operations, adopted, self.tmux, names, self._read_keeper, self.secrets)
        self.adopting = Adopting(home, clock, supervisor, *who)
        self.explainer = Explainer(supervisor, self.sweep, self.silences)
        marked = (self.is_copied, adopted.mark_again)
        self.adopter = Adopter(self.ground, self.actors.custody, self.kinds, *marked, self.keeper, self.orders)
        adopt, rewatch = self.adopter.adopt, self.keeper.rewatch
        self.unknown = UnknownLaunches(self.ground, self.machine, self.kinds, supervisor.done, adopt, rewatch)
        self.reaper = Reaper(
            self.ground,
            supervisor,
            self.sweeps,
            self.actors,
            self.census,
            self.runtimes,
            self.screens,
            self.config,
            lambda: self.store.created_at,
            self.unknown.recover,
            lambda: self.admission.shortage,
            self._read_keeper,
        )
        # Left by a manifest that never became durable; after a lost store, launches still know their roles.
        environments.forget_roles_but({*self.machine.roles, *roles_in(home, self.machine.sessions)})

    def _agent_of_launch(self, launch_id: str) -> str:
        session = self.machine.of_launch(launch_id)
        return "" if session is None else session.spec.agent

    def _forget_session(self, session_id: str) -> None:
        """Wire a removal to the parts that have something in memory of each session."""
        self.timers.forget(session_id)
        self.secrets.forget(session_id)
        self.reaper.forget(session_id)

    def _retention(self) -> Retention:
        return self.config.last_good.retention

    def _read_keeper(self) -> int | None:
        return self.keeper.living_pid()

    def _heard(self, word: Word) -> None:
        """Wire the keeper to its hearers: pass on an ended process, or a snapshot."""
        if isinstance(word, SnapshotWord):
            self.coroner.snapshot_taken(word.launch)
        else:
            self.troubles.heard_of_record(str(self.home.launch(word.launch)), word)
            self.watch.heard(word)

    def _keeper_changed(self, kind: str, data: dict[str, Any]) -> None:
        """Wire the keeper to people and to launches: both wait for one that answers."""
        self.troubles.keeper_changed(kind, data)
        if words := keeper_trouble(kind, data):
            self.inbox.feed(KeeperHeard(words))
        elif kind in KEEPER_IS_WELL:
            self.inbox.feed(KeeperHeard())

    def _watches(self) -> tuple[Watch, ...]:
        return tuple(watch for launch in self.watch.watching() for watch in watches_of(launch, self.home))

    def _printed(self, launch: Launch, ago_s: float) -> None:
        """Wire screens to the inbox: pass on that one changed, at least `ago_s` ago."""
        self.inbox.feed(Observed(launch.id, (), printed_at=self.clock.now() - ago_s))

    def _names_went(self, names: list[str]) -> None:
        """Wire a removed socket to the sweep, which looks at its session now; without names, at all."""
        gone = [name.removesuffix(SOCKET) for name in names if name.endswith(SOCKET)]
        for launch_id in gone if names else [launch.id for launch in self.watch.watching()]:
            self.noticed.put_nowait(launch_id)
