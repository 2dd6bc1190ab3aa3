"""The demo's five agents: what each does, how it runs, and what the story must show of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DemoAgent:
    """One scripted agent; it goes through `states` in order, and its death has this `cause`."""

    name: str
    plan: str
    script: tuple[str, ...]
    states: tuple[str, ...]
    cause: str | None = None
    restart: str = "never"
    max_restarts: int = 0
    backoff_base_s: float = 5.0
    server_killed_after_s: float | None = None

    def order(self, cwd: str, env: Mapping[str, str]) -> dict[str, Any]:
        """Return the request to the daemon."""
        return {
            "name": self.name,
            "command": [sys.executable, "-m", "vigil.fake_agent", *self.script],
            "cwd": cwd,
            "env": dict(env),
            "restart": self.restart,
            "max_restarts": self.max_restarts,
            "backoff_base_s": self.backoff_base_s,
        }


FLEET = (
    DemoAgent(
        name="works",
        plan="works, and goes on working",
        script=("works", "--set", "every=1"),
        states=("running",),
    ),
    DemoAgent(
        name="finishes",
        plan="works for 3 s and ends with exit 0; is left in peace",
        script=("finishes",),
        states=("running", "succeeded"),
        cause="finished",
        restart="on-failure",
    ),
    DemoAgent(
        name="crashes",
        plan="fails after 3 s with exit 3; comes back after a growing wait",
        script=("crashes",),
        states=("running", "crashed", "running"),
        cause="crash",
        restart="on-failure",
        backoff_base_s=3.0,
    ),
    DemoAgent(
        name="exits-at-birth",
        plan="ends as soon as it starts; is given up after 2 restarts",
        script=("exits-at-birth",),
        states=("crashed", "crashed", "failed"),
        cause="crash",
        restart="on-failure",
        max_restarts=2,
        backoff_base_s=1.0,
    ),
    DemoAgent(
        name="loses-tmux",
        plan="works until the demo kills its tmux server; comes back",
        script=("works", "--set", "every=1"),
        states=("running", "crashed", "running"),
        cause="server-died",
        restart="on-failure",
        backoff_base_s=4.0,
        server_killed_after_s=6.0,
    ),
)
