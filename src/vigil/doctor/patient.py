"""The patient: what several checks need of an instance, read once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vigil.doctor.database import Database, read_database
from vigil.doctor.processes import NoAnswer, ask_daemon
from vigil.home import Home
from vigil.keeper import wire
from vigil.keeper.protocol import Born, Process
from vigil.kernel import durable, process


@dataclass(frozen=True)
class LaunchFolder:
    """One folder in `launches`, and its living processes."""

    id: str
    session: str
    living: tuple[int, ...]
    confined: bool = False  # in a sandbox, which has a spool of its own


class Patient:
    """One instance as it is now; after a mend, make a new one."""

    def __init__(self, home: Home) -> None:
        self.home = home

    @cached_property
    def database(self) -> Database:
        """Its database."""
        return read_database(self.home.database)

    @cached_property
    def status(self) -> dict[str, Any] | NoAnswer | None:
        """Its daemon's status; None if no daemon listens."""
        try:
            return ask_daemon(self.home)
        except NoAnswer as silence:
            return silence

    @cached_property
    def launches(self) -> list[LaunchFolder]:
        """Its launches, by their folders."""
        try:
            folders = sorted(self.home.launches.iterdir())
        except OSError:
            return []
        found = []
        for folder in folders:
            order = durable.read_json(str(folder / "launch.json")) or {}
            living = tuple(one[0] for one in _processes_in(str(folder / "born.json")) if process.is_alive(*one))
            found.append(LaunchFolder(folder.name, str(order.get("session", "?")), living, (folder / "spool").is_dir()))
        return found

    @property
    def living(self) -> list[LaunchFolder]:
        """The launches with a living process."""
        return [launch for launch in self.launches if launch.living]


def _processes_in(path: str) -> list[Process]:
    """Read who was born with a launch."""
    try:
        born = wire.read(Born, durable.read_json(path) or {})
    except wire.Malformed:
        return []
    return [one for one in (born.agent, born.root, born.server) if one is not None]
