"""The carrier: which part carries out which effect, and as what a fault of ours is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
    Release,
    RepairSocket,
    Spawn,
)
from vigil.core.events import Ended, Event, LaunchFailed, Stepped, StrayEnded
from vigil.core.machine import Machine
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.session import Session
from vigil.core.model.sighting import ReapOutcome
from vigil.daemon.act.adopted import AdoptedLaunches
from vigil.daemon.act.end import Ending
from vigil.daemon.act.launches import Custody
from vigil.daemon.act.nudge import CLOSE_INPUT, END_CHILD, Remedies
from vigil.daemon.act.purge import Purging
from vigil.daemon.act.spawn import Claims, Spawning
from vigil.daemon.act.strays import Strays
from vigil.daemon.base.agents import Kinds
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.environments import Environments
from vigil.daemon.base.keeper_link import KeeperLink
from vigil.daemon.base.secrets import Secrets
from vigil.daemon.sense.census import Census
from vigil.daemon.sense.transcripts import Conversations
from vigil.home import Home
from vigil.kernel import process
from vigil.runtimes import Runtime, Tmux

FAULT = "internal error"


class Carrier:
    """Does to the world what the machine asked for."""

    def __init__(
        self,
        custody: Custody,
        spawning: Spawning,
        ending: Ending,
        adopted: AdoptedLaunches,
        strays: Strays,
        remedies: Remedies,
        purging: Purging,
    ) -> None:
        self.custody = custody
        self.ending = ending
        self.adopted = adopted
        self.purging = purging
        self._parts: dict[type[Effect], Callable[[Any], Awaitable[None]]] = {
            Spawn: spawning.spawn,
            EndLaunch: ending.end,
            CloseLaunch: ending.close,
            Release: adopted.release,
            EndStray: strays.end,
            RepairSocket: remedies.repair,
            Interrupt: remedies.interrupt,
            EndChild: remedies.end_child,
            CloseInput: remedies.close_input,
            Purge: purging.purge,
        }

    def carries(self, effect: Effect) -> bool:
        """Say whether an effect is one of ours."""
        return type(effect) in self._parts

    async def carry_out(self, effect: Effect) -> None:
        """Do what an effect asks for."""
        await self._parts[type(effect)](effect)


def fault_of(effect: Effect, now: float) -> Event | None:
    """Return what the machine is told where an effect failed by a fault of ours; None where it waits for nothing."""
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
        case _:
            return None


def make_carrier(
    home: Home,
    clock: Clock,
    machine: Machine,
    runtimes: dict[RuntimeKind, Runtime],
    keeper: KeeperLink,
    custody: Custody,
    kinds: Kinds,
    conversations: Conversations,
    secrets: Secrets,
    environments: Environments,
    purge_bundles: Callable[[Session], Awaitable[list[str]]],
    purge_messages: Callable[[Session], list[str]],
    feed: Callable[[Event], None],
) -> Carrier:
    """Return the carrier with all its parts."""
    boot = process.read_boot()
    census = Census(boot, str(home.spool))
    tmux = runtimes[RuntimeKind.TMUX]
    assert isinstance(tmux, Tmux)
    adopted = AdoptedLaunches(custody, tmux, census, boot)
    claims = Claims(machine.of_launch, machine.owner_of)
    return Carrier(
        custody,
        Spawning(home, clock, runtimes, keeper, custody, kinds, claims, secrets, environments, boot, feed),
        Ending(home, clock, custody, adopted, conversations, machine.of_launch, census, boot, feed),
        adopted,
        Strays(tmux, feed),
        Remedies(home, custody, keeper, boot, feed),
        Purging(home, custody, environments, purge_bundles, purge_messages),
    )
