"""Routes about teams: planning and applying a manifest, scaling, shifting and taking down."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from vigil.api.access import Actor, TheDaemon
from vigil.api.views import restarts_of
from vigil.core.model.restart import HoldReason
from vigil.core.model.team import Role
from vigil.core.rules.plan import Plan
from vigil.daemon.serve.consent import RoleUse
from vigil.moments import rfc3339
from vigil.redact import redact_command
from vigil.threads import DECLARED, in_thread

router = APIRouter()


class ManifestRequest(BaseModel):
    """A manifest as its file holds it, and where that lies."""

    model_config = ConfigDict(extra="forbid")

    text: str
    path: str = "vigil.toml"
    folder: str
    env: dict[str, str] = Field(default_factory=dict)
    replace: bool = False
    umask: int | None = Field(None, ge=0, le=0o777)
    agreed: list[str] = Field(default_factory=list)  # digests of what a plan showed as new

    @property
    def place(self) -> str:
        """The manifest's own path."""
        return os.path.join(self.folder, os.path.basename(self.path))


@router.post("/v1/manifest:plan")
async def plan(daemon: TheDaemon, wanted: ManifestRequest) -> dict[str, Any]:
    """What applying a manifest would do; nothing is done."""
    declared = await in_thread(DECLARED, daemon.teams.read, wanted.text, wanted.path, wanted.folder, wanted.umask)
    found = daemon.teams.plan(declared.manifest, wanted.replace)
    missing = await in_thread(DECLARED, daemon.teams.missing, declared, found, wanted.env)
    new = await in_thread(DECLARED, daemon.consents.read_new, wanted.place, declared)
    return {**plan_view(declared.manifest.workspace, found), "missing": missing, "asks": [use_view(use) for use in new]}


@router.post("/v1/manifest:apply")
async def apply(daemon: TheDaemon, wanted: ManifestRequest, actor: Actor) -> dict[str, Any]:
    """Apply a manifest; returns when all of it is declared, and launching at its pace."""
    declared = await in_thread(DECLARED, daemon.teams.read, wanted.text, wanted.path, wanted.folder, wanted.umask)
    await in_thread(DECLARED, daemon.consents.require, wanted.place, declared, wanted.agreed)
    done = await daemon.teams.apply(declared, wanted.env, wanted.replace, actor)
    return plan_view(declared.manifest.workspace, done)


@router.post("/v1/roles/{name:whole}:scale")
async def scale(daemon: TheDaemon, name: str, replicas: int, actor: Actor) -> dict[str, Any]:
    """Change how many replicas a role has."""
    workspace = daemon.teams.find(name).spec.workspace
    return plan_view(workspace, await daemon.teams.scale(name, replicas, actor))


@router.post("/v1/teams:down")
async def down(daemon: TheDaemon, actor: Actor, team: str | None = None) -> dict[str, Any]:
    """Take down a team, or all of them."""
    return plan_view(None, await daemon.teams.down(team, actor))


@router.get("/v1/roles")
async def roles(daemon: TheDaemon) -> list[dict[str, Any]]:
    """Every role, with what was counted against it and how far its shift is."""
    return [role_view(role) for role in daemon.teams.roles()]


@router.post("/v1/teams/{team:whole}:shift")
async def shift(daemon: TheDaemon, team: str, actor: Actor, role: str | None = None, timeout: str = "10m") -> dict[str, Any]:
    """Begin to replace the replicas of a team, role after role."""
    return {"team": team, "roles": await daemon.teams.shift(team, role, timeout, actor)}


@router.post("/v1/teams/{team:whole}:abort")
async def abort(daemon: TheDaemon, team: str, actor: Actor, role: str | None = None) -> dict[str, Any]:
    """End the shift of a team, or of one of its roles, where it is."""
    return {"team": team, "roles": await daemon.teams.abort(team, role, actor)}


def plan_view(workspace: str | None, plan: Plan) -> dict[str, Any]:
    """Return a plan for the interface."""
    return {
        "workspace": workspace,
        "steps": [{"do": step.do.value, "role": step.role, "slot": step.slot, "why": step.why} for step in plan.steps],
        "held": [
            {"slot": held.slot, "reason": held.reason, "why": held.why, "until": rfc3339(held.until)} for held in plan.held
        ],
    }


def use_view(use: RoleUse) -> dict[str, Any]:
    """Return what a role uses, for a person who is asked; no value of a variable."""
    return {**asdict(use), "command": list(redact_command(use.command))}


def role_view(role: Role) -> dict[str, Any]:
    """Return a role for the interface: its declaration, its count of restarts, and its shift."""
    shift, shifted = role.shift, role.shifted
    return {
        "name": role.key,
        "replicas": role.spec.replicas,
        "slots": [role.spec.slot(index) for index in role.slots],
        "restarts": {
            "count": restarts_of(role.spec.spec.restart, role.charges),
            "max": role.spec.spec.restart.max_restarts or None,
            "saturated": role.hold is not None and role.hold.reason == HoldReason.SATURATED,
        },
        "deaths": list(role.deaths),
        "shift": shift
        and {
            "phase": shift.phase.value,
            "place": shift.place + 1,
            "of": shift.of,
            "until": rfc3339(shift.until),
            "old": [role.spec.slot(index) for index in shift.old],
            "new": [role.spec.slot(index) for index in shift.new],
        },
        "shifted": shifted and {"at": rfc3339(shifted.at), "done": shifted.done, "why": shifted.why},
    }
