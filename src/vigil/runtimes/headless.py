"""Headless: the agent is the keeper's own child, and prints into files that outlive the daemon."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from vigil.core.model.launch import Launch
from vigil.core.model.sighting import Guard
from vigil.home import Home
from vigil.keeper.protocol import LaunchOrder
from vigil.keeper.wire import as_json
from vigil.kernel import process
from vigil.kernel.durable import record_json, write_whole
from vigil.kernel.theirs import theirs
from vigil.runtimes.contract import Order, RuntimeAnswer, agent_command, agent_env, declared_of, inherited, make_folder
from vigil.runtimes.sandbox import SHIM, script_of
from vigil.runtimes.tail import read_last_lines
from vigil.runtimes.tmux.guard import KILLED, SPARED, Use
from vigil.threads import SHOWN, in_thread

FOLLOW_S = 0.2
CHUNK_BYTES = 1 << 18
NO_SERVER = RuntimeAnswer(None)
PRINTED = ("stdout.jsonl", "stderr.log")


class Headless:
    """Agents without a terminal."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def why_unusable(self) -> str | None:
        """Return None: it needs only the kernel."""
        return None

    def prepare(self, order: Order) -> None:
        """Write what the keeper launches."""
        folder = self._home.launch(order.launch.id)
        make_folder(order, folder)
        env = agent_env(order, self._home)
        argv, spec = agent_command(order, self._home, folder, env), order.session.spec
        if spec.sandbox is not None:
            write_whole(str(folder / "agent.sh"), script_of(spec.cwd, argv))
            argv = ("/bin/sh", str(SHIM), "sandboxed", str(folder))
        stdin, given = "fifo" if order.converses else "null", inherited(order, str(self._home.spool))
        confined = spec.sandbox is not None
        launch = {
            **as_json(LaunchOrder("headless", tuple(argv), env, spec.cwd, stdin, **given, sandboxed=confined)),
            "launch": order.launch.id,
            "session_id": order.session.id,
            "session": order.session.name,
            "created_at": order.launch.created_at,
            "boot": process.read_boot(),
            "declared": declared_of(order.session),
        }
        record_json(str(folder / "launch.json"), launch)

    def ask_server(self, launch: Launch) -> None:
        """Do nothing: there is no server."""

    def read_server(self, launch: Launch, now: float) -> RuntimeAnswer | None:  # noqa: ARG002
        """Return no fact: there is no server."""
        return NO_SERVER

    def probes(self) -> tuple[int, int]:
        """Return zeros: it asks nothing."""
        return 0, 0

    def forget(self, launch: Launch) -> None:
        """Do nothing: it remembers nothing."""

    async def read_output(self, launch: Launch, lines: int) -> bytes:
        """Return the last lines of stdout, then those of stderr."""
        folder = self._home.launch(launch.id)
        stderr = await in_thread(SHOWN, read_last_lines, folder / "stderr.log", lines, about=launch.id)
        stdout = await in_thread(SHOWN, read_last_lines, folder / "stdout.jsonl", lines, about=launch.id)
        return stdout + (b"\n" if stdout and stderr and not stdout.endswith(b"\n") else b"") + stderr

    async def follow_output(self, launch: Launch, lines: int) -> AsyncIterator[bytes]:
        """Yield both files from their last lines on, for ever; the caller stops when the launch is over."""
        folder = self._home.launch(launch.id)
        paths = (folder / "stdout.jsonl", folder / "stderr.log")
        offsets = {path: _size(path) for path in paths}
        yield await self.read_output(launch, lines)
        while True:
            data = b""
            for path in paths:
                part = await in_thread(SHOWN, _read_from, path, offsets[path], about=launch.id)
                offsets[path] += len(part)
                data += part
            yield data
            if not data:
                await asyncio.sleep(FOLLOW_S)

    async def read_screen(self, launch: Launch) -> bytes | None:  # noqa: ARG002
        """Return None: there is no terminal."""
        return None

    def needs_command(self, launch: Launch) -> bool:  # noqa: ARG002
        """Return False: there is no screen to read."""
        return False

    async def keep_screen(self, launch: Launch) -> None:
        """Do nothing: the files stay."""

    def commands_to(self, launch: Launch) -> None:
        """Return None: there is no terminal."""

    async def read_use(self, launch: Launch) -> Use | None:  # noqa: ARG002
        """Return None: there is no server."""
        return None

    def read_printed(self, launch: Launch) -> tuple[int, float] | None:
        """Return the size of the agent's output files, and when one grew last; only the agent writes there."""
        folder = self._home.launch(launch.id)
        try:
            found = [(folder / name).lstat() for name in PRINTED]
        except OSError:
            return None
        return sum(one.st_size for one in found), max(one.st_mtime for one in found)

    async def reap(self, launch: Launch, guard: Guard) -> tuple[str, str]:
        """Spare it if it printed meanwhile; no user can be attached. The caller ends it on `killed`."""
        printed = self.read_printed(launch)
        if printed is None or guard.printed is None:
            return "unknown", "what it printed cannot be read"
        return (KILLED, "") if printed[0] == guard.printed else (SPARED, "it printed in the moment of the kill")


def _size(path: Path) -> int:
    return path.lstat().st_size if os.path.lexists(path) else 0


def _read_from(path: Path, offset: int) -> bytes:
    try:
        with theirs(path) as (fd, _):
            return os.pread(fd, CHUNK_BYTES, offset)
    except OSError:
        return b""
