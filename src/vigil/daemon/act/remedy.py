"""Remedies: act on a launch that is to live on: its socket, its turn, a child, its input."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

from vigil.core.effects import CloseInput, EndChild, Interrupt, RepairSocket
from vigil.core.events import Attended, Stepped
from vigil.daemon.act.end import why_attended
from vigil.daemon.act.launches import Custody
from vigil.daemon.act.signals import end_processes, is_alive, send
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.keeper_link import KeeperLink, KeeperRefused, KeeperSilent
from vigil.keeper.protocol import CloseInputRequest

END_CHILD, CLOSE_INPUT = "end-child", "close-stdin"  # the verbs of outcomes
REPAIR_S = 0.1  # a server makes its socket at once
CLOSE_INPUT_S = 2.0


class Remedies:
    def __init__(self, ground: Ground, custody: Custody, keeper: KeeperLink, look_at: Callable[[str], Awaitable[None]]) -> None:
        self._home = ground.home
        self._custody = custody
        self._keeper = keeper
        self._look_at = look_at
        self._boot = ground.boot
        self._feed = ground.feed

    async def repair(self, effect: RepairSocket) -> None:
        """Remedy a lost socket: SIGUSR1 makes exactly the recorded tmux server open it anew (P9)."""
        server = effect.launch.server
        if server is not None and effect.launch.host is None and is_alive(server, self._boot):
            send(server, signal.SIGUSR1)
            await asyncio.sleep(REPAIR_S)
        await self._look_at(effect.launch.id)

    async def interrupt(self, effect: Interrupt) -> None:
        """As a remedy, ask an agent to drop its turn, like Ctrl-C; durably intended (P8)."""
        launch, agent = effect.launch, effect.launch.agent
        async with self._custody.lock(launch.id):
            if why := why_attended(launch, self._home):
                self._feed(Attended(launch.id, why))
            elif agent is not None and is_alive(agent, self._boot):
                send(agent, signal.SIGINT)

    async def end_child(self, effect: EndChild) -> None:
        """As a remedy, end one process below an agent, verified; durably intended (P8)."""
        launch = effect.launch
        async with self._custody.lock(launch.id):
            if why := why_attended(launch, self._home):
                self._feed(Stepped(launch.id, END_CHILD, False, why))
                return
            left = await end_processes([effect.process], effect.grace_s)
        words = f"pid {effect.process.pid} {'lives on after KILL' if left else 'is gone'}"
        self._feed(Stepped(launch.id, END_CHILD, not left, words))

    async def close_input(self, effect: CloseInput) -> None:
        """As a remedy, have the keeper close a headless agent's input, which it holds."""
        try:
            await self._keeper.ask(CloseInputRequest(effect.launch.id), timeout_s=CLOSE_INPUT_S)
        except (KeeperSilent, KeeperRefused) as error:
            self._feed(Stepped(effect.launch.id, CLOSE_INPUT, False, str(error)))
        else:
            self._feed(Stepped(effect.launch.id, CLOSE_INPUT, True))
