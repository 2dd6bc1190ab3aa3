"""Takeover: what a new daemon finds of the launches that its predecessor left alive (P10).

What lives keeps its launch id, uncharged; keeper, shim and kernel tell of a death meanwhile, or it is unobserved."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from vigil.core.events import Event, Exited, Interrupted
from vigil.core.model.death import Exit
from vigil.core.model.launch import Launch
from vigil.core.model.reading import Axis, AxisValue
from vigil.core.model.session import ALIVE, Session, State
from vigil.daemon.act import Custody, born_in, born_of, read_birth, with_processes
from vigil.daemon.base.agents import Kinds
from vigil.daemon.base.ground import Ground
from vigil.daemon.sense.process_ends import ProcessEnd, agent_role
from vigil.kernel import durable, process
from vigil.observe.process import ask_kernel

BIRTH_S = 5.0  # for a birth that the keeper had under way


@dataclass(eq=False, repr=False)
class Adopter:
    _ground: Ground
    _custody: Custody
    _kinds: Kinds
    _copied: bool  # nothing that lives is this home's
    _mark_again: Callable[[Launch], Awaitable[None]]

    async def adopt(self, session: Session) -> Event | None:
        """For a new daemon, take over a stored launch; return what to tell the machine."""
        launch = session.launch
        if launch is None:
            return None
        self._custody.knows(launch, session.spec.runtime)
        if session.state not in ALIVE or launch.ended_at is not None:
            return None
        folder = str(self._ground.home.launch(launch.id))
        if self._copied or (launch.process is not None and process.is_other_boot(launch.process.boot, self._ground.boot)):
            return Exited(Exit(launch.id, self._ground.now(), "start-up", rebooted=True))
        if launch.process is None:
            return await self._adopt_unborn(session, launch, folder)
        agent = launch.agent
        assert agent is not None
        fact = ask_kernel(Axis.PROCESS, agent, self._ground.boot, self._ground.now())
        if fact.value != AxisValue.DEAD:  # an unreadable process is watched too, and judged by the liveness table (P7)
            self._custody.follow(launch)
            self._custody.listening.follow(session, launch)
            if launch.host is not None:
                await self._mark_again(launch)
            return read_birth(launch, born_of(launch), self._ground, adopted=True)
        ends = self._custody.watch.recorded(launch)
        ends.setdefault(agent_role(launch), ProcessEnd(None, "", self._ground.now()))
        return Exited(self._custody.watch.describe(launch, ends, "start-up"))

    async def _adopt_unborn(self, session: Session, launch: Launch, folder: str) -> Event | None:
        """Take over a launch whose birth the last daemon left to the keeper to finish."""
        deadline = asyncio.get_running_loop().time() + BIRTH_S
        begun = durable.read_json(f"{folder}/launch.json") is not None
        while begun and asyncio.get_running_loop().time() < deadline:
            born = durable.read_json(f"{folder}/born.json")
            if born is not None and process.is_other_boot(str(born.get("boot", self._ground.boot)), self._ground.boot):
                return Exited(Exit(launch.id, self._ground.now(), "start-up", rebooted=True))
            processes = born_in(born, launch.id)
            if processes is not None:
                names = self._kinds.names_of(session.spec.agent)
                event = read_birth(launch, processes, self._ground, adopted=True, names=names)
                self._custody.follow(with_processes(launch, event))
                return event
            await asyncio.sleep(0.05)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{folder}/launch.json")  # a keeper that hangs finds no order when it goes on: nothing is born late (P1)
        return None if session.state is State.ENDING else Interrupted(launch.id)
