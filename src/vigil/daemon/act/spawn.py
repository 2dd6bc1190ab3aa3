"""Spawning: makes launches; a conversation is open in one launch at a time, as two would mix their words."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from vigil.agents.accounts import account_of
from vigil.agents.contract import Beginning, Place, Start
from vigil.core.effects import Spawn
from vigil.core.events import Launched, LaunchFailed
from vigil.core.model.launch import Launch, Mode, RuntimeKind
from vigil.core.model.session import Session, with_vitals
from vigil.daemon.act.birth import read_birth, with_processes
from vigil.daemon.act.isolation import Isolation
from vigil.daemon.act.launches import Custody
from vigil.daemon.base.agents import Kinds
from vigil.daemon.base.environments import Environments
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.hook_key import HookKey
from vigil.daemon.base.keeper_link import KeeperLink, KeeperRefused, KeeperSilent
from vigil.daemon.base.secrets import Secrets
from vigil.keeper.protocol import SpawnRequest
from vigil.kernel.processes import read_command
from vigil.kernel.shortage import is_shortage
from vigil.runtimes import Order, Runtime
from vigil.runtimes.sandbox import GATE_NAME


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
SPAWN_S = 15.0
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
    _on_shortage: Callable[[str | None], None]  # the host could not make a launch, and why; None: it can

    async def spawn(self, effect: Spawn) -> None:
        """Spawn a launch, and watch it from then on."""
        session, launch = effect.session, effect.launch
        self._custody.knows(launch, session.spec.runtime)
        try:
            await self._custody.remove(f"{session.id}-{launch.number - LAUNCHES_KEPT}")
            env = await asyncio.to_thread(self._read_env, session)
            agent = self._kinds.agent_of(session.spec.agent)
            folder = str(self._ground.home.launch(launch.id))
            cgroup, limited = await asyncio.to_thread(self._isolation.begin, launch.id, session.spec.limits)
            launch = replace(launch, cgroup=cgroup)
            start = await self._prepare(session, launch, env, os.path.realpath(folder), limited)
            born = await self._keeper.ask(SpawnRequest(launch.id, folder), timeout_s=SPAWN_S)
        except (OSError, ValueError, RuntimeError, KeeperRefused, KeeperSilent) as error:
            if isinstance(error, RuntimeError) and not is_shortage(error):
                raise
            self._give_up(session, launch, error)
            return
        self._on_shortage(None)
        event = read_birth(launch, born, self._ground, names=agent.process)
        event = replace(self._with_start(event, session, start, env), cgroup=launch.cgroup)
        shimmed = session.spec.runtime is RuntimeKind.TMUX or session.spec.sandbox is not None
        exec_seen = not shimmed or await _exec_seen(event.process.pid)
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
        start = await asyncio.to_thread(self._begin, session, launch, env, folder)
        self._claims.claim(session, launch, start.conversation)
        talks = replace(session, conversation=start.conversation or session.conversation)
        own = {**env, **start.env, TOKEN: self._hook_key.token_of(launch.id)}
        order = Order(talks, launch, own, start.command, start.files, start.converses, launch.cgroup, limited)
        await asyncio.to_thread(self._runtimes[session.spec.runtime].prepare, order)
        return start

    def _begin(self, session: Session, launch: Launch, env: Mapping[str, str], folder: str) -> Start:
        """Return how a launch to spawn starts: by its adapter, unless the configuration forbids that."""
        spec = session.spec
        if not self._kinds.is_set_up(spec.agent):
            return Start(spec.command)
        place = Place(os.path.realpath(spec.cwd), env)
        headless, resumes = spec.runtime is RuntimeKind.HEADLESS, launch.mode is Mode.RESUME
        conversation = launch.conversation if resumes else str(uuid.uuid4())
        start = self._kinds.adapter_of(spec.agent).begin(
            Beginning(spec.command, place, folder, headless, conversation, resumes, hook=("/bin/sh", str(HOOK)))
        )
        if resumes and start.conversation != launch.conversation:
            raise ValueError(f"it cannot go on with conversation {launch.conversation}: {'; '.join(start.without)}")
        return start

    def _give_up(self, session: Session, launch: Launch, error: Exception) -> None:
        # A slow keeper then finds no order: a launch that we gave up is never born late (P1).
        with contextlib.suppress(OSError):
            os.unlink(self._ground.home.launch(launch.id) / "launch.json")
        self._isolation.tidy(self._isolation.folder_of(launch))
        why = self._secrets.redactor(session.id).text(_in_words(error))
        short = is_shortage(error) or (isinstance(error, KeeperRefused) and error.short)
        self._on_shortage(why if short else None)
        self._ground.feed(LaunchFailed(launch.id, self._ground.now(), why, short))

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


async def _exec_seen(pid: int) -> bool:
    """Wait for a spawned shim to become the agent; say whether we saw it."""
    deadline = asyncio.get_running_loop().time() + EXEC_S
    while asyncio.get_running_loop().time() < deadline:
        try:
            words = read_command(pid)
        except OSError:
            return False
        if not words:
            return False  # a zombie has none
        if words[3:4] != [GATE_NAME.encode()] and (words[2:3] != [b"agent"] or not words[1].endswith(b"/keeper/shim.sh")):
            return True
        await asyncio.sleep(0.002)
    return False
