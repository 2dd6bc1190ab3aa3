"""What people do to teams, and what befalls several replicas of a role at once."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.sim.faults.sizes import between, pick
from tests.sim.manifests import CHANGES, MOST, add_role, change_role, rename_team
from vigil.core.model.team import Role

if TYPE_CHECKING:
    from tests.sim.world import World


def changes_a_manifest(world: World, session_id: str, size: float) -> bool:
    """Something of it is another way, and it is applied; perhaps what runs is replaced at once."""
    role = world.role_of(session_id)
    if role is None:
        return False
    chances, people = Random(size), world.people
    what = pick(size, *CHANGES, "in", "renamed")
    if what == "in":
        people.manifest = add_role(chances, people.manifest)
    elif what == "renamed":
        people.manifest = rename_team(people.manifest)
    else:
        people.manifest = change_role(chances, people.manifest, role.key, what)
    people.apply(at_once=chances.random() < 0.5)
    return True


def applies_it_again(world: World, session_id: str, size: float) -> bool:
    world.people.apply(at_once=size > 0.5)
    return bool(world.people.manifest.roles)


def scales(world: World, session_id: str, size: float) -> bool:
    role = world.role_of(session_id)
    return role is not None and world.people.scale(role.key, int(size * 7919) % (MOST + 1))


def takes_a_team_down(world: World, session_id: str, size: float) -> bool:
    """And brings it back later: its roles are namesakes then."""
    role = world.role_of(session_id)
    if role is None:
        return False
    world.people.take_down(role.spec.team)
    world.engine.after(between(size, 0.2, 1800.0), world.people.apply)
    return True


def die_together(world: World, session_id: str, size: float) -> bool:
    """Replicas of one role end within a second, or a little more."""
    role = world.role_of(session_id)
    if role is None:
        return False
    end_replicas(world, role, size)
    return True


def end_replicas(world: World, role: Role, size: float) -> None:
    """End all replicas of a role but perhaps one, from the lowest slot up or down."""
    bodies = [world.living(session.id) for session in world.daemon.replicas(role.key)]
    found = [body for body in bodies if body is not None]
    if pick(size, True, False) and len(found) > 2:
        found = found[1:]
    if pick(size, 0, 0, 1):
        found.reverse()
    apart_s = pick(size, 0.0, 0.2, 0.45, 0.6, 1.5)
    for number, body in enumerate(found):
        assert body.agent is not None
        world.engine.after(number * apart_s, world.host.end, body, body.agent, pick(size, 1, 2, 0), None, "itself")


def memory_is_short(world: World, session_id: str, size: float) -> bool:
    """There is room for few launches or none; and just then somebody dies."""
    world.admission.change(pick(size, 0, 0, 0, 1, 2))
    world.engine.after(between(size, 5.0, 400.0), world.admission.change, None)
    body = world.living(session_id)
    if body is not None and body.agent is not None:
        world.host.end(body, body.agent, exit_code=1, why="itself")
    return True
