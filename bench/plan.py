"""Plan: what it costs to compare a manifest of 1,000 replicas in 200 roles with what there is. Nothing is started."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.harness import Run, percentile
from vigil.core.model.session import Session, State
from vigil.core.model.team import Manifest, Role
from vigil.core.rules.plan import make_plan
from vigil.manifest.reading import read_manifest

TEAMS = 10
ROLES = 20  # of a team
REPLICAS = 5  # of a role
COUNT = TEAMS * ROLES * REPLICAS
RUNS = 100
QUICK_RUNS = 20


@dataclass(frozen=True)
class Case:
    """A manifest, what there is of it already, and how many steps that needs."""

    label: str
    manifest: Manifest
    roles: dict[str, Role]
    sessions: list[Session]
    steps: int


def measure(_run: Run, quick: bool) -> list[dict[str, Any]]:
    """Plan again and again."""
    return [measure_case(case, QUICK_RUNS if quick else RUNS) for case in make_cases()]


def measure_case(case: Case, runs: int) -> dict[str, Any]:
    """Return how long one plan takes."""
    took_ms = []
    for _ in range(runs):
        at = time.perf_counter()
        plan = make_plan(case.manifest, case.roles, case.sessions, at_once=True)
        took_ms.append((time.perf_counter() - at) * 1000)
        assert len(plan.steps) == case.steps, f"{case.label}: {len(plan.steps)} steps"
    return {
        "system": case.label,
        "label": case.label,
        "count": COUNT,
        "runs": runs,
        "p50_ms": percentile(took_ms, 0.5),
        "max_ms": max(took_ms),
    }


def make_cases() -> Iterator[Case]:
    """Yield what may be asked of a plan; each reading is of its own objects, as the store's are."""
    roles = {role.key: Role(role, 0.0) for role in read("60").roles}
    sessions = [
        Session(f"{key}-{index}", role.spec.slot(index), role.spec.spec, 0.0, State.RUNNING, 0.0, "", role=key, index=index)
        for key, role in roles.items()
        for index in range(REPLICAS)
    ]
    yield Case("all new", read("60"), {}, [], TEAMS * ROLES + COUNT)
    yield Case("nothing to do", read("60"), roles, sessions, 0)
    yield Case("all changed", read("61"), roles, sessions, TEAMS * ROLES + COUNT)
    yield Case("all taken out", Manifest("bench", ()), roles, sessions, TEAMS * ROLES + COUNT)


def read(argument: str) -> Manifest:
    """Return a manifest whose roles run `sleep` with this argument."""
    text = ['workspace = "bench"']
    for team in range(TEAMS):
        text.append(f'[[team]]\nname = "team-{team}"')
        for role in range(ROLES):
            text.append(f'[[team.role]]\nname = "role-{role}"\nreplicas = {REPLICAS}\ncommand = ["sleep", "{argument}"]')
    return read_manifest("\n".join(text), "vigil.toml", "/", {})
