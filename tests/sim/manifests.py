"""Simulated manifests: teams as people write them down, and what they change in them later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from vigil.core.model.launch import RuntimeKind
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.session import Spec
from vigil.core.model.team import Health, Manifest, RoleSpec

WORKSPACE = "shop"
TEAMS = ("backend", "frontend")
ROLES = ("coder", "tester", "writer")
MOST = 4  # replicas


def draw_manifest(chances: Random, roles: int) -> Manifest:
    """Draw one team of so many roles."""
    return Manifest(WORKSPACE, tuple(draw_role(chances, TEAMS[0], ROLES[number]) for number in range(roles)))


def draw_role(chances: Random, team: str, name: str) -> RoleSpec:
    """Draw a role: any policy, any number of replicas."""
    agent = "claude" if chances.random() < 0.25 else "generic"
    runtime = chances.choice((RuntimeKind.TMUX, RuntimeKind.TMUX, RuntimeKind.HEADLESS))
    role = RoleSpec(
        WORKSPACE,
        team,
        name,
        chances.randint(1, MOST),
        Spec(("agent",), "/work", agent, runtime),
        speaks=agent == "claude" or chances.random() < 0.2,
    )
    return draw_health(chances, draw_policy(chances, role))


def draw_policy(chances: Random, role: RoleSpec) -> RoleSpec:
    """Draw how a role comes back."""
    when = chances.choice((RestartWhen.ALWAYS,) * 4 + (RestartWhen.ON_FAILURE,) * 2 + (RestartWhen.NEVER,))
    most = 0 if when is RestartWhen.NEVER else chances.choice((0, 2, 3))
    retry_s = chances.choice((0.0, 0.0, 300.0, 3600.0, 10800.0)) if most else 0.0
    spec = replace(role.spec, restart=RestartPolicy(when, max_restarts=most))
    return replace(role, spec=spec, retry_saturated_s=retry_s, autostart=chances.random() < 0.5)


def draw_health(chances: Random, role: RoleSpec) -> RoleSpec:
    """Draw which signs of life a role promises; most promise none."""
    heartbeat_s, failures = chances.choice((180.0, 300.0, 400.0)), chances.randint(1, 3)
    grace_s = chances.choice((10.0, heartbeat_s))
    promises = chances.random() < 0.5
    return replace(role, health=Health(heartbeat_s, failures, grace_s) if promises else None)


Change = Callable[[Random, RoleSpec], "RoleSpec | None"]


def _command(chances: Random, role: RoleSpec) -> RoleSpec:
    return replace(role, spec=replace(role.spec, command=("agent", f"v{chances.randrange(10**6)}")))


def _runtime(chances: Random, role: RoleSpec) -> RoleSpec:
    role = _command(chances, role)
    return replace(role, spec=replace(role.spec, runtime=chances.choice(tuple(RuntimeKind))))


def _replicas(chances: Random, role: RoleSpec) -> RoleSpec:
    return replace(role, replicas=chances.choice([n for n in range(MOST + 1) if n != role.replicas]))


def _out(_chances: Random, _role: RoleSpec) -> None:
    return None


CHANGES: dict[str, Change] = {
    "command": _command,
    "runtime": _runtime,
    "policy": draw_policy,
    "health": draw_health,
    "replicas": _replicas,
    "out": _out,
}


def change_role(chances: Random, manifest: Manifest, key: str, what: str) -> Manifest:
    """Change one role of a manifest, or take it out; what is left has one role at least."""
    roles = []
    for role in manifest.roles:
        changed = CHANGES[what](chances, role) if role.key == key else role
        if changed is not None:
            roles.append(changed)
    return replace(manifest, roles=tuple(roles)) if roles else manifest


def change_commands(chances: Random, manifest: Manifest) -> Manifest:
    """Change what every role runs."""
    return replace(manifest, roles=tuple(_command(chances, role) for role in manifest.roles))


def add_role(chances: Random, manifest: Manifest) -> Manifest:
    """Add a role, perhaps one of a name that was there before."""
    team = manifest.roles[0].team
    free = [name for name in ROLES if name not in {role.name for role in manifest.roles}]
    return replace(manifest, roles=(*manifest.roles, draw_role(chances, team, free[0]))) if free else manifest


def rename_team(manifest: Manifest) -> Manifest:
    """Give the team another name: the same roles under other keys."""
    other = TEAMS[(TEAMS.index(manifest.roles[0].team) + 1) % len(TEAMS)]
    return replace(manifest, roles=tuple(replace(role, team=other) for role in manifest.roles))
