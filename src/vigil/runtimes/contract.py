"""What every runtime can do: say what it needs, prepare a launch, ask for its server, show its output, be attached to.

A runtime starts no agent itself: it writes the launch's folder, and the keeper launches what lies there.
It puts no secret and no prompt into any argv but the agent's own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from vigil.core.model.launch import Launch
from vigil.core.model.reading import Fact
from vigil.core.model.session import Session
from vigil.core.model.sighting import Guard
from vigil.home import Home
from vigil.kernel.descent import mark_of
from vigil.runtimes.sandbox import confine, view_of
from vigil.runtimes.tmux.guard import Use
from vigil.runtimes.tmux.keyboard import Call

PLAIN_UMASK = 0o022


@dataclass(frozen=True)
class Order:
    """A launch to prepare."""

    session: Session
    launch: Launch
    env: Mapping[str, str]
    command: tuple[str, ...]  # the declared command, with what its adapter added
    files: Mapping[str, str] = field(default_factory=dict)  # names below the launch's folder, with their content
    converses: bool = False  # the agent reads its input: headless gives it a pipe that stays open
    cgroup: str = ""  # the folder that it is born in
    limited: bool = False  # and not elsewhere: it keeps limits


@dataclass(frozen=True)
class RuntimeAnswer:
    """What a server answered; no fact where a runtime has no server."""

    fact: Fact | None
    socket_lost: bool = False  # the server lives, but its socket is gone


class Runtime(Protocol):
    """One kind of place for sessions."""

    def why_unusable(self) -> str | None:
        """Return what is missing on this machine, with the way out, or None."""

    def prepare(self, order: Order) -> None:
        """Write the launch's folder; OSError if the disk does not let us."""

    def ask_server(self, launch: Launch) -> None:
        """Ask whether the server answers, unless a question is still open; returns at once."""

    def read_server(self, launch: Launch, now: float) -> RuntimeAnswer | None:
        """Return what the server answered; None while an answer may still come."""

    def probes(self) -> tuple[int, int]:
        """Return how many probes are under way, and how many were given up so far."""

    def forget(self, launch: Launch) -> None:
        """Stop asking for a launch's server."""

    async def read_output(self, launch: Launch, lines: int) -> bytes:
        """Return the last lines the agent printed, unchanged."""

    def follow_output(self, launch: Launch, lines: int) -> AsyncIterator[bytes]:
        """Yield the last lines, then new output; the caller stops when the launch is over."""

    async def read_screen(self, launch: Launch) -> bytes | None:
        """Return the terminal's screen with some lines above it; None without a terminal, or if it is unreadable."""

    def needs_command(self, launch: Launch) -> bool:
        """Say whether reading a launch's screen starts a process."""

    async def keep_screen(self, launch: Launch) -> None:
        """Save the last screen into the launch's folder before its server goes."""

    def commands_to(self, launch: Launch) -> Call | None:
        """Return a function that runs commands on the terminal's server; None without a terminal."""

    async def read_use(self, launch: Launch) -> Use | None:
        """Return who is attached, and when the session printed last; None if that is unknown."""

    def read_printed(self, launch: Launch) -> tuple[int, float] | None:
        """Return how many bytes the agent printed and when last (wall clock); None where its server knows better."""

    async def reap(self, launch: Launch, guard: Guard) -> tuple[str, str]:
        """Compare once more, and kill if all is as it was; return `killed`, `spared` or `unknown`, and why."""


def make_folder(order: Order, folder: Path) -> None:
    """Make the launch's folder, with the files that its agent needs."""
    folder.mkdir(mode=0o700)
    for name, text in order.files.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_text(text, "utf-8")


def declared_of(session: Session) -> dict[str, Any]:
    """Return what a launch's folder says of its session: enough to recognise it without the store."""
    return {
        "spec": asdict(session.spec),
        "created_at": session.created_at,
        "role": session.role,
        "index": session.index,
        "conversation": session.conversation,
    }


def inherited(order: Order, spool: str) -> dict[str, Any]:
    """Return what all processes of a launch inherit, as the keeper's order names it."""
    umask = order.session.spec.umask
    return {
        "umask": PLAIN_UMASK if umask is None else umask,
        "mark": mark_of(spool, order.launch.id),
        "cgroup": order.cgroup,
        "limited": order.limited,
    }


def agent_env(order: Order, home: Home) -> dict[str, str]:
    """Return an agent's environment: what was declared, and who it is."""
    confined = order.session.spec.sandbox is not None
    return {
        **order.env,
        "VIGIL_SESSION": order.session.name,
        "VIGIL_LAUNCH": order.launch.id,
        "VIGIL_SPOOL": os.path.realpath(home.spool) if confined else str(home.spool),
        # An agent's own `tmux kill-server` meets neither us nor the user's server.
        "TMUX_TMPDIR": "/tmp" if confined else str(home.launch(order.launch.id)),
    }


def agent_command(order: Order, home: Home, folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a launch executes: the agent's command, inside its sandbox if it has one."""
    spec = order.session.spec
    if spec.sandbox is None:
        return order.command
    for path in (folder / "spool", folder / "spool" / "new", folder / "spool" / "tmp"):
        path.mkdir(mode=0o700)
    return confine(view_of(spec.sandbox, spec.cwd, home, folder, order.files, env), order.command, env)
