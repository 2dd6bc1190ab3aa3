"""What every runtime can do: say what it needs, prepare a launch, ask for its server, show its output, be attached to.

A runtime starts nothing itself: it writes the launch's folder, and the keeper launches what lies there. Nothing secret and no
prompt goes into any argv but the agent's own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from vigil.core.model.launch import Launch
from vigil.core.model.reading import Fact
from vigil.core.model.session import Session
from vigil.core.model.sighting import Guard
from vigil.runtimes.tmux.guard import Use
from vigil.runtimes.tmux.keyboard import Call


@dataclass(frozen=True)
class Order:
    """A launch to be prepared."""

    session: Session
    launch: Launch
    env: Mapping[str, str]
    command: tuple[str, ...]  # what was declared, with what its adapter added
    files: Mapping[str, str] = field(default_factory=dict)  # names below the launch's folder, and what they hold
    converses: bool = False  # the agent reads its input: headless gives it a pipe that stays open


@dataclass(frozen=True)
class RuntimeAnswer:
    """What is known of a server: nothing where a runtime has none."""

    fact: Fact | None
    socket_lost: bool = False  # it lives, and nobody can reach it


class Runtime(Protocol):
    """One kind of place for sessions to live in."""

    def why_unusable(self) -> str | None:
        """Return what is missing on this machine, with the way out, or None."""

    def prepare(self, order: Order) -> None:
        """Write the launch's folder; OSError if the disk does not let us."""

    def ask_server(self, launch: Launch) -> None:
        """Ask the server whether it answers, unless it owes an answer already; returns at once."""

    def read_server(self, launch: Launch, now: float) -> RuntimeAnswer | None:
        """Read what the server answered; None while there is hope for it."""

    def probes(self) -> tuple[int, int]:
        """Return how many probes are under way, and how many were given up so far."""

    def forget(self, launch: Launch) -> None:
        """Ask for a launch's server no more."""

    async def read_output(self, launch: Launch, lines: int) -> bytes:
        """Read the last lines the agent printed, as they are."""

    def follow_output(self, launch: Launch, lines: int) -> AsyncIterator[bytes]:
        """Read the last lines, then whatever comes, until the launch is over."""

    async def read_screen(self, launch: Launch) -> bytes | None:
        """Read what the terminal shows now, with the lines above it; None where there is none, or it cannot be had."""

    def needs_command(self, launch: Launch) -> bool:
        """Say whether reading a launch's screen starts a process."""

    async def keep_screen(self, launch: Launch) -> None:
        """Put the last screen into the launch's folder before its server goes."""

    def commands_to(self, launch: Launch) -> Call | None:
        """Return what runs commands on the terminal's own server; None where there is no terminal."""

    async def read_use(self, launch: Launch) -> Use | None:
        """Read who is attached, and when anything was printed last; None where there is no server, or it cannot be told."""

    def read_printed(self, launch: Launch) -> tuple[int, float] | None:
        """Read how many bytes were printed so far, and when the last, by the wall; None where a server knows that better."""

    async def reap(self, launch: Launch, guard: Guard) -> tuple[str, str]:
        """Compare once more, and kill if all is as it was: `killed`, `spared` or `unknown`, and why."""

    def attach_argv(self, launch: Launch) -> list[str] | None:
        """Return the command that shows a person the terminal; None where there is none."""


def make_folder(order: Order, folder: Path) -> None:
    """Make the launch's folder, with the files its agent is started with."""
    folder.mkdir(mode=0o700)
    for name, text in order.files.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_text(text, "utf-8")


def declared_of(session: Session) -> dict[str, Any]:
    """Return what a launch's folder says of its session: enough to know it again without the store."""
    return {
        "spec": asdict(session.spec),
        "created_at": session.created_at,
        "role": session.role,
        "index": session.index,
        "conversation": session.conversation,
    }


def agent_env(order: Order, spool: str, folder: str) -> dict[str, str]:
    """Return the environment an agent gets: what was declared, and who it is."""
    return {
        **order.env,
        "VIGIL_SESSION": order.session.name,
        "VIGIL_LAUNCH": order.launch.id,
        "VIGIL_SPOOL": spool,
        "TMUX_TMPDIR": folder,  # an agent's own `tmux kill-server` meets neither us nor the user's server
    }
