"""The carrier: which part carries out which effect, and how it tells a fault of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vigil.core.effects import (
    CloseInput,
    CloseLaunch,
    Effect,
    EndChild,
    EndLaunch,
    EndStray,
    Interrupt,
    Purge,
    React,
    Release,
    RepairSocket,
    Spawn,
)
from vigil.core.events import Ended, Event, LaunchFailed, ReactionEnded, Stepped, StrayEnded
from vigil.core.model.incident import ReactionOutcome
from vigil.core.model.sighting import ReapOutcome
from vigil.daemon.act.adopted import AdoptedLaunches
from vigil.daemon.act.end import Ending
from vigil.daemon.act.launches import Custody
from vigil.daemon.act.nudge import CLOSE_INPUT, END_CHILD, Remedies
from vigil.daemon.act.purge import Purging
from vigil.daemon.act.spawn import Spawning
from vigil.daemon.act.strays import Strays
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.log import log

FAULT = "internal error"
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
        """Return the method that carries out each effect."""
        return {
            Spawn: self.spawning.spawn,
            EndLaunch: self.ending.end,
            CloseLaunch: self.ending.close,
            Release: self.adopted.release,
            EndStray: self.strays.end,
            RepairSocket: self.remedies.repair,
            Interrupt: self.remedies.interrupt,
            EndChild: self.remedies.end_child,
            CloseInput: self.remedies.close_input,
            Purge: self.purging.purge,
        }


class Carrier:
    """Carries out effects: by a task where one takes time, else by a call."""

    def __init__(self, tasks: Tasks, calls: Calls, clock: Clock, feed: Callable[[Event], None]) -> None:
        assert not tasks.keys() & calls.keys()
        self._parts = tasks
        self._calls = calls
        self._clock = clock
        self._feed = feed
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, effect: Effect) -> None:
        """Begin what an effect asks for; returns at once."""
        kind = type(effect)
        if kind in self._calls:
            self._calls[kind](effect)
            return
        task = asyncio.create_task(self._carry_out(effect, fault_of(effect, self._clock.now())))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry_out(self, effect: Effect, otherwise: Event | None) -> None:
        """Carry it out; a fault of ours is an outcome too, never silence."""
        try:
            await self._parts[type(effect)](effect)
        except Exception:
            log.exception("an effect failed", outcome=str(otherwise))
            if otherwise is not None:
                self._feed(otherwise)


def fault_of(effect: Effect, now: float) -> Event | None:
    """Return what the machine hears when an effect fails by our fault; None if it waits for nothing."""
    match effect:
        case Spawn():
            return LaunchFailed(effect.launch.id, now, FAULT)
        case EndLaunch():
            return Ended(effect.launch.id, ok=False, why=FAULT)
        case EndStray():
            return StrayEnded(effect.stray, ReapOutcome.FAILED, why=FAULT, ticket=effect.ticket)
        case EndChild():
            return Stepped(effect.launch.id, END_CHILD, False, FAULT)
        case CloseInput():
            return Stepped(effect.launch.id, CLOSE_INPUT, False, FAULT)
        case React():
            return ReactionEnded(effect.incident.id, effect.number, ReactionOutcome.FAILED, FAULT)
        case _:
            return None
