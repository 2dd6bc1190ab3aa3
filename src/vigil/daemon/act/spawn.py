"""Spawning: makes launches; a conversation is open in one launch at a time, as two would mix their words."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from vigil.agents.accounts import account_of
from vigil.agents.contract import Beginning, Place, Start
from vigil.core.effects import Spawn
from vigil.core.events import Exited, Launched, LaunchFailed, Unordered
from vigil.core.model.death import Exit
from vigil.core.model.launch import Launch, Mode, ProcessId, RuntimeKind
from vigil.core.model.session import Session, with_vitals
from vigil.daemon.act.birth import read_birth, with_processes
from vigil.daemon.act.isolation import Isolation
from vigil.daemon.act.launches import Custody
from vigil.daemon.act.order import LostOrder, Orders, is_at_gate
from vigil.daemon.base.agents import Kinds
from vigil.daemon.base.environments import Environments
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.hook_key import HookKey
from vigil.daemon.base.keeper_link import KeeperLink, KeeperRefused, KeeperSilent
from vigil.daemon.base.log import log
from vigil.daemon.base.secrets import Secrets
from vigil.keeper.protocol import Born, SpawnRequest
from vigil.kernel.process import read_start_ticks
from vigil.kernel.processes import read_command
from vigil.kernel.shortage import is_shortage
from vigil.runtimes import Order, Runtime
from vigil.threads import LAUNCHES, in_thread


@dataclass(eq=False, repr=False)
class Claims:
    """Which spawned launch last opened which conversation."""

    _session_of: Callable[[str], Session | None]
    _owner_of: Callable[[str, str, str], Session | None]
    _claims: dict[tuple[str, str], str] = field(default_factory=dict, init=False)

    def claim(self, session: Session, launch: Launch, conversation: str) -> None:
        """Claim a conversation for a launch to spawn; ValueError if another live one has it."""
        if not conversation:
            return
        key = (session.spec.agent, conversation)
        other = self._session_of(self._claims.get(key, ""))
        lives = other is not None and other.launch is not None and other.launch.ended_at is None and other.id != session.id
        owner = other if lives else self._owner_of(session.spec.agent, conversation, session.id)
        if owner is not None:
            raise ValueError(f"conversation {conversation} is open in {owner.name}: two agents in one would mix it up")
        self._claims = {known: who for known, who in self._claims.items() if self._session_of(who) is not None}
        self._claims[key] = launch.id


TOKEN = "VIGIL_TOKEN"
HOOK = Path(__file__).parents[2] / "agents" / "hook.sh"
AGAIN_S = 1.0
SPAWN_S = 15.0
KEEPER_S = 2.0  # without an answer in this time, no order is given
EXEC_S = 0.5
LAUNCHES_KEPT = 10  # folders of launches per session: a crash loop does not fill the disk


@dataclass(eq=False, repr=False)
class Spawning:
    _ground: Ground
    _runtimes: dict[RuntimeKind, Runtime]
    _keeper: KeeperLink
    _custody: Custody
    _kinds: Kinds
    _claims: Claims
    _secrets: Secrets
    _environments: Environments
    _isolation: Isolation
    _hook_key: HookKey
    _orders: Orders
    _on_shortage: Callable[[str | None], None]  # the host could not make a launch, and why; None: it can

    async def spawn(self, effect: Spawn) -> None:
        """Spawn a launch, and watch it from then on; then remove the oldest one's files."""
        await self._spawn(effect)
        await self._custody.remove(f"{effect.session.id}-{effect.launch.number - LAUNCHES_KEPT}")

    async def _spawn(self, effect: Spawn) -> None:
        """Order a launch and watch it; without a keeper that answers, order nothing."""
        session, launch = effect.session, effect.launch
        if why := await self._keeper.why_silent(KEEPER_S):
            self._ground.feed(Unordered(launch.id, why))
            return
        self._custody.knows(launch, session.spec.runtime)
        try:
            env = await in_thread(LAUNCHES, self._read_env, session, about=session.id)
            folder = str(self._ground.home.launch(launch.id))
            cgroup, limited = await in_thread(LAUNCHES, self._isolation.begin, launch.id, session.spec.limits, about=session.id)
            launch = replace(launch, cgroup=cgroup)
            start = await self._prepare(session, launch, env, os.path.realpath(folder), limited)
        except (OSError, ValueError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not is_shortage(error):
                raise
            self._give_up(session, launch, _in_words(error), short=is_shortage(error))
            return
        born = await self._order(session, launch, folder)
        if born is not None:
            await self._follow(session, launch, born, start, env)

    async def _order(self, session: Session, launch: Launch, folder: str) -> Born | None:
        """Order a launch to be spawned; without an answer, find out what became of it (P1, P3)."""
        short = False
        try:
            return await self._keeper.ask(SpawnRequest(launch.id, folder), timeout_s=SPAWN_S)
        except KeeperRefused as error:
            why, ours, short = str(error), False, error.short
        except KeeperSilent as error:  # one that answers had the time: then the launch itself hangs
            why, ours = str(error), bool(await self._keeper.why_silent(KEEPER_S)) or not error.timed_out
        found = await self._settle(launch)
        if not isinstance(found, LostOrder):
            return found
        if found.lived:
            self._isolation.tidy(self._isolation.folder_of(launch))
            self._ground.feed(Exited(Exit(launch.id, self._ground.now(), "daemon")))
        else:
            self._give_up(session, launch, why, ours, short)
        return None

    async def _settle(self, launch: Launch) -> Born | LostOrder:
        """Find out what became of a spawned launch's order; a disk that refuses is waited for."""
        while True:
            try:
                return await self._orders.settle(launch)
            except (OSError, RuntimeError) as error:
                if not is_shortage(error):
                    raise
                log.error("an order is not settled", launch=launch.id, why=str(error), next_try_s=AGAIN_S)
            await asyncio.sleep(AGAIN_S)

    async def _follow(self, session: Session, launch: Launch, born: Born, start: Start, env: Mapping[str, str]) -> None:
        """Tell of a spawned launch, and watch it."""
        self._on_shortage(None)
        event = read_birth(launch, born, self._ground, names=self._kinds.agent_of(session.spec.agent).process)
        event = replace(self._with_start(event, session, start, env), cgroup=launch.cgroup)
        shimmed = session.spec.runtime is RuntimeKind.TMUX or session.spec.sandbox is not None
        exec_seen = not shimmed or await _exec_seen(event.process)
        self._ground.feed(event)
        launch = with_processes(launch, event)
        self._custody.follow(launch, exec_seen, newborn=True)
        born_session = with_vitals(replace(session, launch=launch, conversation=event.conversation), read_to={})
        self._custody.listening.follow(born_session, launch)

    def _read_env(self, session: Session) -> dict[str, str]:
        env = self._environments.read(session)
        self._secrets.learn(session, env)
        return env

    async def _prepare(self, session: Session, launch: Launch, env: Mapping[str, str], folder: str, limited: bool) -> Start:
        """Write the order by which a launch is spawned; return how it starts."""
        start = await in_thread(LAUNCHES, self._begin, session, launch, env, folder, about=session.id)
        self._claims.claim(session, launch, start.conversation)
        talks = replace(session, conversation=start.conversation or session.conversation)
        own = {**env, **start.env, TOKEN: self._hook_key.token_of(launch.id)}
        order = Order(talks, launch, own, start.command, start.files, start.converses, launch.cgroup, limited)
        await in_thread(LAUNCHES, self._runtimes[session.spec.runtime].prepare, order, about=session.id)
        return start

    def _begin(self, session: Session, launch: Launch, env: Mapping[str, str], folder: str) -> Start:
        """Return how a launch to spawn starts: by its adapter, unless the configuration forbids that."""
        spec = session.spec
        if not self._kinds.is_set_up(spec.agent):
            return Start(spec.command)
        place = Place(os.path.realpath(spec.cwd), env)
        headless, resumes = spec.runtime is RuntimeKind.HEADLESS, launch.mode is Mode.RESUME
        conversation = launch.conversation if resumes else str(uuid.uuid4())
        start = self._kinds.adapter_of(spec.agent).start(
            Beginning(spec.command, place, folder, headless, conversation, resumes, hook=("/bin/sh", str(HOOK)))
        )
        if resumes and start.conversation != launch.conversation:
            raise ValueError(f"it cannot go on with conversation {launch.conversation}: {'; '.join(start.without)}")
        return start

    def _give_up(self, session: Session, launch: Launch, why: str, ours: bool = False, short: bool = False) -> None:
        self._isolation.tidy(self._isolation.folder_of(launch))
        why = self._secrets.redactor(session.id).text(why)
        self._on_shortage(why if short else None)
        self._ground.feed(LaunchFailed(launch.id, self._ground.now(), why, ours or short))

    def _with_start(self, event: Launched, session: Session, start: Start, env: Mapping[str, str]) -> Launched:
        """Return the birth of a spawned launch with what follows from its start."""
        adapter = self._kinds.adapter_of(session.spec.agent)
        headless = session.spec.runtime is RuntimeKind.HEADLESS
        return replace(
            event,
            conversation=start.conversation,
            without=start.without,
            account=account_of(adapter, env),
            speaks=self._kinds.is_set_up(session.spec.agent) and not start.without and adapter.speaks(headless),
            reads_input=headless and start.converses,
        )


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}{': ' + str(error.filename) if error.filename else ''}"
    return str(error)


async def _exec_seen(agent: ProcessId) -> bool:
    """Wait for a spawned shim to become the agent; say whether we saw it."""
    deadline = asyncio.get_running_loop().time() + EXEC_S
    while asyncio.get_running_loop().time() < deadline:
        try:
            words = read_command(agent.pid)
            gone = read_start_ticks(agent.pid) != agent.start_ticks  # asked after: then these words are another's
        except OSError:
            return False
        if not words or gone:
            return False  # a zombie has none
        if not is_at_gate(agent.pid):
            return True
        await asyncio.sleep(0.002)
    return False
