"""What a new simulated daemon finds of one stored launch, as the real one does (daemon/start/takeover.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vigil.core.events import Event, Exited, Interrupted
from vigil.core.model.death import Exit
from vigil.core.model.session import ALIVE, Session, State

if TYPE_CHECKING:
    from tests.sim.world import World


def adopt(world: World, session: Session) -> Event | None:
    """Return what to tell the machine; None if there is nothing to tell."""
    launch = session.launch
    if launch is None:
        return None
    if session.state not in ALIVE or launch.ended_at is not None:
        return None
    births, body = world.carriers.births, world.host.bodies.get(launch.id)
    if launch.process is None and body is None and births.finish_order(launch.id):
        return None if session.state is State.ENDING else Interrupted(launch.id)
    body = world.host.bodies.get(launch.id)  # the keeper had it under way
    if body is None or body.agent is None:
        if session.state is State.ENDING:
            return None
        if body is None and launch.id in births.rebooted:
            return Interrupted(launch.id)  # of an earlier boot: nothing lives
        return births.look(session, "start-up")
    body.unseen = False  # what its predecessor did not hear of is no loss of a new daemon's
    if body.agent.id.boot != world.host.boot:  # whatever was recorded before: a new boot is never a crash
        return Exited(Exit(launch.id, world.daemon.clock(), "start-up", rebooted=True))
    if launch.process is None:
        event = births.look(session, "start-up")
        if not isinstance(event, Exited):
            world.senses.follow(body, session)
        return event
    agent = world.host.find(launch.agent)
    if agent is not None and agent.alive:
        world.senses.follow(body, session)
        return births.launched(body, session, adopted=True)
    body.kept.discard("kernel")  # what the last daemon read by a pidfd went with it
    return Exited(world.senses.describe(body, "start-up"))
