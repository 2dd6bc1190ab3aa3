"""What a new daemon finds stored: sessions, incidents and roles, and whether its home is a copy."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vigil.core.model.incident import Incident
from vigil.core.model.launch import Launch
from vigil.core.model.session import Session
from vigil.core.model.team import Role
from vigil.core.rules.incident import REMEMBERED_S
from vigil.store.store import Store

ELSEWHERE = "of another home"  # in place of a boot: no process of this one is meant


@dataclass(frozen=True, slots=True)
class Past:
    """What was stored, with which a new daemon's machine begins."""

    sessions: list[Session]
    incidents: list[Incident]  # open ones, and those that may yet come back or be told
    roles: list[Role]


def read_past(store: Store, now: float) -> Past:
    over = store.read_untold(now - REMEMBERED_S)
    return Past(store.read_sessions(), [*store.read_incidents(), *over], store.read_roles())


def place_of(home: Path) -> dict[str, Any]:
    """Return a home's place, stored to know copies by: its name, and its file's identity."""
    found = os.stat(home)
    return {"path": os.path.realpath(home), "file": [found.st_dev, found.st_ino]}


def is_copy(known: dict[str, Any], home: Path) -> bool:
    """Say whether a stored place is another home's, so this is a copy.

    A moved home keeps its file, a restored one its name, a lone database neither."""
    place, here = known.get("home"), place_of(home)
    if not isinstance(place, dict):
        return not known
    return bool(place.get("path") != here["path"] and place.get("file") != here["file"])


def estranged(past: Past) -> Past:
    """Return what a copied home stored: what lives by these pids is another instance's (P9)."""
    sessions = [s if s.launch is None else replace(s, launch=_of_another_boot(s.launch)) for s in past.sessions]
    return replace(past, sessions=sessions)


def _of_another_boot(launch: Launch) -> Launch:
    held = {name: getattr(launch, name) for name in ("process", "root", "server", "found")}
    gone = {name: replace(process, boot=ELSEWHERE) for name, process in held.items() if process is not None}
    return replace(launch, **gone)
