"""Takeover: what a new daemon finds of the launches that its predecessor left alive (P10).

What lives keeps its launch id, uncharged; keeper, shim and kernel tell of a death meanwhile, or it is unobserved."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from vigil.core.events import Event, Exited, Interrupted, LaunchFailed
from vigil.core.model.death import Exit
from vigil.core.model.launch import Launch
from vigil.core.model.reading import Axis, AxisValue
from vigil.core.model.session import ALIVE, Session, State
from vigil.daemon.act import Custody, born_of, read_birth, with_processes
from vigil.daemon.act.order import LostOrder, Orders
from vigil.daemon.base.agents import Kinds
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.keeper_link import KeeperLink
from vigil.daemon.sense.process_ends import ProcessEnd, agent_role
from vigil.hands import Hangs
from vigil.kernel import process
from vigil.kernel.theirs import remove_tree
from vigil.observe.process import ask_kernel
from vigil.threads import FOLDERS, in_thread

BIRTH_S = 5.0  # for a birth that the keeper had under way
NEVER_BEGAN = "the daemon or the keeper ended before it began"


@dataclass(eq=False, repr=False)
class Adopter:
    _ground: Ground
    _custody: Custody
    _kinds: Kinds
    _copied: bool  # nothing that lives is this home's
    _mark_again: Callable[[Launch], Awaitable[None]]
    _keeper: KeeperLink
    _orders: Orders
    _marking: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    def awaits_birth(self, session: Session) -> bool:
        """Say whether taking over a launch may take a while: its birth is under way."""
        launch = session.launch
        return launch is not None and session.state in ALIVE and launch.ended_at is None and launch.process is None

    async def adopt(self, session: Session) -> Event | None:
        """For a new daemon, take over a stored launch; return what to tell the machine."""
        launch = session.launch
        if launch is None:
            return None
        self._custody.knows(launch, session.spec.runtime)
        if session.state not in ALIVE or launch.ended_at is not None:
            return None
        if self._copied or (launch.process is not None and process.is_other_boot(launch.process.boot, self._ground.boot)):
            return Exited(Exit(launch.id, self._ground.now(), "start-up", rebooted=True))
        if launch.process is None:
            return await self._adopt_unborn(session, launch)
        agent = launch.agent
        assert agent is not None
        fact = ask_kernel(Axis.PROCESS, agent, self._ground.boot, self._ground.now())
        if fact.value != AxisValue.DEAD:  # an unreadable process is watched too, and judged by the liveness table (P7)
            self._custody.follow(launch)
            self._custody.listening.follow(session, launch)
            if launch.host is not None:
                self._mark_later(launch)
            return read_birth(launch, born_of(launch), self._ground, adopted=True)
        ends = self._custody.watch.recorded(launch)
        ends.setdefault(agent_role(launch), ProcessEnd(None, "", self._ground.now()))
        return Exited(self._custody.watch.describe(launch, ends, "start-up"))

    def _mark_later(self, launch: Launch) -> None:
        """Mark an adopted session again, beside a start that must not wait for its server."""
        task = asyncio.ensure_future(self._mark_again(launch))
        self._marking.add(task)
        task.add_done_callback(self._marking.discard)

    async def _adopt_unborn(self, session: Session, launch: Launch) -> Event | None:
        """Take over a launch whose birth the last daemon was not told of: one truth comes of its order (P1, P3)."""
        orders, answers, ending = self._orders, not self._keeper.wedged, session.state is State.ENDING
        if orders.is_of_other_boot(launch):
            if orders.has_begun(launch):
                return Exited(Exit(launch.id, self._ground.now(), "start-up", rebooted=True))
            return await self._order_again(launch, ending)
        if not orders.was_given(launch) or (answers and await orders.is_untouched(launch)):
            return await self._order_again(launch, ending)
        comes = answers and orders.may_come(launch, self._keeper.pid)
        found = await orders.settle(launch, BIRTH_S if comes else 0.0)
        if not isinstance(found, LostOrder):
            names = self._kinds.names_of(session.spec.agent)
            event = read_birth(launch, found, self._ground, adopted=True, names=names)
            self._custody.follow(with_processes(launch, event))
            return event
        if ending:
            return None
        if found.lived:
            return Exited(Exit(launch.id, self._ground.now(), "start-up"))
        return LaunchFailed(launch.id, self._ground.now(), NEVER_BEGAN, ours=True)

    async def _order_again(self, launch: Launch, ending: bool) -> Event | None:
        """Have a launch ordered that no keeper has taken up; what was written for it goes."""
        folder = self._ground.home.launch(launch.id)
        with contextlib.suppress(Hangs):  # a launch of its own number comes next: this folder is nobody's then
            await in_thread(FOLDERS, remove_tree, folder, about=str(folder))
        return None if ending else Interrupted(launch.id)
