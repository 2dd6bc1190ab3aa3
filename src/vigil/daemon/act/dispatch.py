"""Dispatch: which part carries out which effect, and what the machine hears of a fault of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vigil.core import effects
from vigil.core.effects import Effect
from vigil.core.events import Ended, Event, LaunchFailed, ReactionEnded, Stepped, StrayEnded
from vigil.core.model.incident import ReactionOutcome
from vigil.core.model.sighting import ReapOutcome
from vigil.daemon.act.adopted import AdoptedLaunches
from vigil.daemon.act.end import Ending
from vigil.daemon.act.launches import Custody
from vigil.daemon.act.purge import Purging
from vigil.daemon.act.remedy import CLOSE_INPUT, END_CHILD, Remedies
from vigil.daemon.act.spawn import Spawning
from vigil.daemon.act.strays import Strays
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.log import log
from vigil.kernel.shortage import is_shortage

FAULT = "internal error"
AGAIN_S = 1.0
Tasks = Mapping[type[Effect], Callable[[Any], Awaitable[None]]]
Calls = Mapping[type[Effect], Callable[[Any], None]]


@dataclass(frozen=True)
class Actors:
    custody: Custody
    spawning: Spawning
    ending: Ending
    adopted: AdoptedLaunches
    strays: Strays
    remedies: Remedies
    purging: Purging

    def tasks(self) -> Tasks:
        return {
            effects.Spawn: self.spawning.spawn,
            effects.EndLaunch: self.ending.end,
            effects.CloseLaunch: self.ending.close,
            effects.Release: self.adopted.release,
            effects.EndStray: self.strays.end,
            effects.RepairSocket: self.remedies.repair,
            effects.Interrupt: self.remedies.interrupt,
            effects.EndChild: self.remedies.end_child,
            effects.CloseInput: self.remedies.close_input,
            effects.Purge: self.purging.purge,
        }


class Carrier:
    """Dispatches effects: to a task where one takes time, else to a call."""

    def __init__(self, tasks: Tasks, calls: Calls, ground: Ground) -> None:
        assert not tasks.keys() & calls.keys()
        self._parts = tasks
        self._calls = calls
        self._ground = ground
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, effect: Effect) -> None:
        """Dispatch an effect to the part that carries it out; returns at once."""
        kind = type(effect)
        if kind in self._calls:
            self._calls[kind](effect)
            return
        task = asyncio.create_task(self._carry_out(effect, fault_of(effect, self._ground.now())))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry_out(self, effect: Effect, otherwise: Event | None) -> None:
        """Carry out a dispatched effect; a fault of ours is an outcome too, never silence.

        For what the host has no more of it waits and tries again; only a launch is not tried twice."""
        while True:
            try:
                await self._parts[type(effect)](effect)
                return
            except Exception as error:
                log.exception("an effect failed", outcome=str(otherwise))
                if not is_shortage(error) or isinstance(effect, effects.Spawn):
                    break
            await asyncio.sleep(AGAIN_S)
        if otherwise is not None:
            self._ground.feed(otherwise)


def fault_of(effect: Effect, now: float) -> Event | None:
    """Return what the machine hears when a dispatched effect fails; None if it expects nothing."""
    match effect:
        case effects.Spawn():
            return LaunchFailed(effect.launch.id, now, FAULT, ours=True)
        case effects.EndLaunch():
            return Ended(effect.launch.id, ok=False, why=FAULT)
        case effects.EndStray():
            return StrayEnded(effect.stray, ReapOutcome.FAILED, why=FAULT, ticket=effect.ticket)
        case effects.EndChild():
            return Stepped(effect.launch.id, END_CHILD, False, FAULT)
        case effects.CloseInput():
            return Stepped(effect.launch.id, CLOSE_INPUT, False, FAULT)
        case effects.React():
            return ReactionEnded(effect.incident.id, effect.number, ReactionOutcome.FAILED, FAULT)
        case _:
            return None
