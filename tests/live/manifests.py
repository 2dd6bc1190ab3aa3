"""Manifests for live tests: short to write, and made so."""

from __future__ import annotations

from typing import Any

from tests.live.instance import Instance

Json = dict[str, Any]
ROLE = """
[[team.role]]
name = "{name}"
replicas = {replicas}
agent = "generic"
runtime = "{runtime}"
command = {command}
cwd = "/"
restart = "{restart}"
max_restarts = {max_restarts}
backoff = {{ base = "{base}", cap = "60s" }}
"""
SLEEP = '["sleep", "1000"]'


def role(
    name: str = "coder",
    replicas: int = 2,
    command: str = SLEEP,
    runtime: str = "tmux",
    restart: str = "always",
    max_restarts: int = 0,
    base: str = "1s",
    more: str = "",
) -> str:
    """Return one role."""
    return (
        ROLE.format(
            name=name,
            replicas=replicas,
            command=command,
            runtime=runtime,
            restart=restart,
            max_restarts=max_restarts,
            base=base,
        )
        + more
    )


def manifest(*roles: str, team: str = "backend", workspace: str = "shop") -> str:
    """Return a manifest of one team."""
    return f'workspace = "{workspace}"\n[[team]]\nname = "{team}"\n' + "".join(roles)


def up(vigil: Instance, text: str, *more: str) -> Json:
    """Apply a manifest."""
    path = vigil.path / "vigil.toml"
    path.write_text(text)
    found = vigil.json("up", "--yes", str(path), *more)
    assert isinstance(found, dict)
    return found


def wait_running(vigil: Instance, *names: str) -> list[Json]:
    """Wait until sessions run, and return them."""
    return [vigil.wait_state(name, "running") for name in names]


def slots(replicas: int, name: str = "coder", team: str = "backend") -> list[str]:
    """Return the names of the first slots of a role."""
    return [f"shop/{team}/{name}/{index}" for index in range(replicas)]


def shown(vigil: Instance) -> dict[str, str]:
    """Return the state of every session."""
    return {session["name"]: session["state"] for session in vigil.client.sessions(everything=True)}
