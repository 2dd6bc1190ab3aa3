"""Building: a checked file becomes the frozen values that the rest of the program knows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from vigil.agents.kinds import ConfiguredAgents, agent_of, kind_of
from vigil.config.checking import watchdog_of
from vigil.core.model.limits import LaunchLimits
from vigil.core.model.restart import RestartPolicy
from vigil.core.model.sandbox import Sandbox
from vigil.core.model.session import Spec
from vigil.core.model.team import Health, Manifest, RoleSpec
from vigil.manifest.contradictions import REPORTING
from vigil.manifest.models import GRACE_S, HealthTable, ManifestFile, RoleTable
from vigil.manifest.values import DeclaredRole


def declared_by(
    file: ManifestFile, folder: str, agents: Mapping[str, ConfiguredAgents], defaults: RestartPolicy
) -> DeclaredRole:
    """Return what a file in `folder` declares; `defaults` is the configuration's restart policy."""
    roles = []
    env = {}
    for team in file.team:
        for role in team.role:
            spec = _spec(role, folder, agents, defaults)
            roles.append(_role(file.workspace, team.name, role, spec))
            env[roles[-1].key] = dict(role.env)
    return DeclaredRole(Manifest(file.workspace, tuple(roles)), env)


def _role(workspace: str, team: str, role: RoleTable, spec: Spec) -> RoleSpec:
    return RoleSpec(
        workspace,
        team,
        role.name,
        role.replicas,
        spec,
        autostart=role.autostart,
        after_crash=role.after_crash.value,
        retry_saturated_s=role.retry_saturated,
        idle_ttl_s=role.idle_ttl if "idle_ttl" in role.model_fields_set else None,
        health=_health(role.health),
        speaks=spec.agent in REPORTING,
        watchdog=watchdog_of(role.watchdog),
    )


def _spec(role: RoleTable, folder: str, agents: Mapping[str, ConfiguredAgents], defaults: RestartPolicy) -> Spec:
    agent = kind_of(tuple(role.command or ()), agents) if role.agent is None else role.agent
    return Spec(
        command=tuple(role.command or agent_of(agent, agents).command),
        cwd=_absolute(folder, role.cwd),
        agent=agent,
        runtime=role.runtime,
        restart=_policy(role, defaults),
        limits=LaunchLimits(role.memory_max, role.pids_max, role.cpu_weight),
        sandbox=_sandbox(role, folder),
    )


def _absolute(folder: str, path: str) -> str:
    return os.path.abspath(os.path.join(folder, os.path.expanduser(path)))


def _sandbox(role: RoleTable, folder: str) -> Sandbox | None:
    if role.sandbox is None:
        return None
    read, write = (tuple(_absolute(folder, path) for path in paths) for paths in (role.sandbox_read, role.sandbox_write))
    return Sandbox(role.sandbox, read, write, role.sandbox_network)


def _policy(role: RoleTable, defaults: RestartPolicy) -> RestartPolicy:
    given = {f"{key}_s": getattr(role.backoff, key) for key in role.backoff.model_fields_set}
    restarts = role.max_restarts if "max_restarts" in role.model_fields_set else defaults.max_restarts
    return replace(defaults, when=role.restart, max_restarts=restarts, **given)


def _health(table: HealthTable | None) -> Health | None:
    if table is None:
        return None
    return Health(table.heartbeat, table.failures, max(GRACE_S, table.heartbeat) if table.grace is None else table.grace)
