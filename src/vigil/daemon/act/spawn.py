"""Spawning: makes launches; a conversation is open in one launch at a time, as two would mix their words."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from vigil.agents.accounts import account_of
from vigil.agents.contract import Beginning, Place, Start
from vigil.core.effects import Spawn
from vigil.core.events import Launched, LaunchFailed
from vigil.core.model.launch import Launch, Mode, RuntimeKind
from vigil.core.model.session import Session, with_vitals
from vigil.daemon.act.birth import read_birth, with_processes
from vigil.daemon.act.launches import Custody
from vigil.daemon.base.agents import Kinds
from vigil.daemon.base.environments import Environments
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.keeper_link import KeeperLink, KeeperRefused, KeeperSilent
from vigil.daemon.base.secrets import Secrets
from vigil.keeper.protocol import SpawnRequest
from vigil.kernel.processes import read_command
from vigil.runtimes import Order, Runtime


class Claims:
    """Which launch last opened which conversation."""

    def __init__(
        self, session_of: Callable[[str], Session | None], owner_of: Callable[[str, str, str], Session | None]
    ) -> None:
        self._session_of = session_of
        self._owner_of = owner_of
        self._claims: dict[tuple[str, str], str] = {}

    def claim(self, session: Session, launch: Launch, conversation: str) -> None:
        """Raise ValueError if another live launch has this conversation: the first to claim it keeps it."""
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


HOOK = Path(__file__).parents[2] / "agents" / "hook.sh"
SPAWN_S = 15.0
EXEC_S = 0.5
LAUNCHES_KEPT = 10  # folders of launches per session: a crash loop does not fill the disk


class Spawning:
    def __init__(
        self,
        ground: Ground,
        runtimes: dict[RuntimeKind, Runtime],
        keeper: KeeperLink,
        custody: Custody,
        kinds: Kinds,
        claims: Claims,
        secrets: Secrets,
        environments: Environments,
    ) -> None:
        self._home = ground.home
        self._clock = ground.clock
        self._runtimes = runtimes
        self._keeper = keeper
        self._custody = custody
        self._kinds = kinds
        self._claims = claims
        self._secrets = secrets
        self._environments = environments
        self._boot = ground.boot
        self._feed = ground.feed

    async def spawn(self, effect: Spawn) -> None:
        """Bring a launch to life, and watch it from then on."""
        session, launch = effect.session, effect.launch
        self._custody.knows(launch, session.spec.runtime)
        try:
            await self._custody.remove(f"{session.id}-{launch.number - LAUNCHES_KEPT}")
            env = await asyncio.to_thread(self._environments.read, session)
            agent = self._kinds.agent_of(session.spec.agent)
            folder = str(self._home.launch(launch.id))
            start = await self._prepare(session, launch, env, folder)
            born = await self._keeper.ask(SpawnRequest(launch.id, folder), timeout_s=SPAWN_S)
        except (OSError, ValueError, KeeperRefused, KeeperSilent) as error:
            self._give_up(session, launch, error)
            return
        event = read_birth(launch, born, self._clock, self._boot, names=agent.process)
        event = self._with_start(event, session, start, env)
        exec_seen = session.spec.runtime is not RuntimeKind.TMUX or await _exec_seen(event.process.pid)
        self._feed(event)
        launch = with_processes(launch, event)
        self._custody.follow(launch, exec_seen, newborn=True)
        born_session = with_vitals(replace(session, launch=launch, conversation=event.conversation), read_to={})
        self._custody.listening.follow(born_session, launch)

    async def _prepare(self, session: Session, launch: Launch, env: Mapping[str, str], folder: str) -> Start:
        """Write a launch's order; return how it starts."""
        start = await asyncio.to_thread(self._begin, session, launch, env, folder)
        self._claims.claim(session, launch, start.conversation)
        talks = replace(session, conversation=start.conversation or session.conversation)
        order = Order(talks, launch, {**env, **start.env}, start.command, start.files, start.converses)
        await asyncio.to_thread(self._runtimes[session.spec.runtime].prepare, order)
        return start

    def _begin(self, session: Session, launch: Launch, env: Mapping[str, str], folder: str) -> Start:
        """Return how a launch starts: by its adapter, unless the configuration leaves it alone."""
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
            os.unlink(self._home.launch(launch.id) / "launch.json")
        why = self._secrets.redactor(session.id).text(_in_words(error))
        self._feed(LaunchFailed(launch.id, self._clock.now(), why))

    def _with_start(self, event: Launched, session: Session, start: Start, env: Mapping[str, str]) -> Launched:
        """Return a birth with what follows from its start."""
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
    """Wait for the shim to become the agent; say whether we saw it."""
    deadline = asyncio.get_running_loop().time() + EXEC_S
    while asyncio.get_running_loop().time() < deadline:
        try:
            words = read_command(pid)
        except OSError:
            return False
        if not words:
            return False  # a zombie has none
        if len(words) < 3 or not words[1].endswith(b"/keeper/shim.sh") or words[2] != b"agent":
            return True
        await asyncio.sleep(0.002)
    return False
