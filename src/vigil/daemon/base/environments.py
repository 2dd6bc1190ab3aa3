"""Environments: the variables that sessions are launched with, one file for each session or role, 0600, never shown.

A role's file keeps the caller's part and the manifest's apart: a key taken out of the manifest is gone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from vigil.core.model.session import Session
from vigil.home import Home, environment_of_role
from vigil.kernel.durable import RECORD_BYTES, record_json
from vigil.kernel.theirs import read_object

Env = dict[str, str]


class Environments:
    def __init__(self, home: Home) -> None:
        self._folder = home.environments

    def record(self, session_id: str, env: Mapping[str, str]) -> None:
        record_json(str(self._path(session_id)), dict(env))

    def record_role(self, key: str, caller: Mapping[str, str], declared: Mapping[str, str]) -> None:
        """Record a role's environment for its next launches, once: 200 replicas would sync 200 files."""
        record_json(str(self._path(environment_of_role(key))), {"caller": dict(caller), "declared": dict(declared)})

    def declare_role(self, key: str, caller: Mapping[str, str], declared: Mapping[str, str]) -> None:
        """Update a role's environment from its manifest; keep the caller's part unless it was lost."""
        path = self._path(environment_of_role(key))
        try:
            caller, before = self._parts(path)
        except (FileNotFoundError, ValueError):
            before = None
        except OSError:
            return
        if before != declared:
            self.record_role(key, caller, declared)

    def read(self, session: Session) -> Env:
        """Read a session's environment; OSError or ValueError if it cannot be read."""
        return self.read_lone(session.id) if session.role is None else self.read_role(session.role)

    def read_lone(self, session_id: str) -> Env:
        """Read a lone session's environment, also after it left the store."""
        return self._load(self._path(session_id))

    def read_role(self, key: str) -> Env:
        try:
            caller, declared = self._parts(self._path(environment_of_role(key)))
        except FileNotFoundError:
            raise ValueError("what it was declared with is not in this home; vigil up declares it anew") from None
        return {**caller, **declared}

    def forget(self, session_id: str) -> bool:
        """Remove a lone session's environment; say whether there was one."""
        try:
            self._path(session_id).unlink()
        except FileNotFoundError:
            return False
        return True

    def forget_roles_but(self, keys: Collection[str]) -> None:
        kept = {f"{environment_of_role(key)}.json" for key in keys}
        for path in self._folder.glob("role-*.json"):
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _parts(self, path: Path) -> tuple[Env, Env]:
        found: dict[str, Any] = {**self._load(path)}
        caller, declared = found.get("caller"), found.get("declared")
        if isinstance(caller, dict) and isinstance(declared, dict):
            return caller, declared
        return found, {}  # from before the two parts were kept apart

    @staticmethod
    def _load(path: Path) -> Env:
        try:
            return read_object(path, RECORD_BYTES)
        except ValueError as problem:
            raise ValueError(f"{path.name} holds no environment: {problem}") from None
