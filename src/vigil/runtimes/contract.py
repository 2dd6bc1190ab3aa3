"""What every runtime can do: say what it needs, prepare a launch, answer for it, show its output, be attached to.

A runtime starts nothing itself: it writes the launch's folder, and the keeper launches what lies there. Nothing secret and no
prompt goes into any argv but the agent's own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from vigil.core.model import Fact, Launch, Session


@dataclass(frozen=True)
class Order:
    """A launch to be prepared."""

    session: Session
    launch: Launch
    env: Mapping[str, str]
    converses: bool = False  # the agent reads its input: headless gives it a pipe that stays open


class Runtime(Protocol):
    """One kind of place for sessions to live in."""

    def why_unusable(self) -> str | None:
        """Return what is missing on this machine, with the way out, or None."""

    def prepare(self, order: Order) -> None:
        """Write the launch's folder; OSError if the disk does not let us."""

    async def read_server(self, launch: Launch, now: float) -> Fact | None:
        """Ask the server whether it answers, within its deadline; None where there is no server."""

    async def read_output(self, launch: Launch, lines: int) -> bytes:
        """Read the last lines the agent printed, as they are."""

    def follow_output(self, launch: Launch, lines: int) -> AsyncIterator[bytes]:
        """Read the last lines, then whatever comes, until the launch is over."""

    async def keep_screen(self, launch: Launch) -> None:
        """Put the last screen into the launch's folder before its server goes."""

    def attach_argv(self, launch: Launch) -> list[str] | None:
        """Return the command that shows a person the terminal; None where there is none."""


def agent_env(order: Order, spool: str, folder: str) -> dict[str, str]:
    """Return the environment an agent gets: what was declared, and who it is."""
    return {
        **order.env,
        "VIGIL_SESSION": order.session.name,
        "VIGIL_LAUNCH": order.launch.id,
        "VIGIL_SPOOL": spool,
        "TMUX_TMPDIR": folder,  # an agent's own `tmux kill-server` meets neither us nor the user's server
    }
