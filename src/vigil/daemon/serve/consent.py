"""Consent: what a manifest runs, and what of that its user has consented to before; kept by the manifest's path.

A digest holds the values of variables too, which are never shown: another value is asked for again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import asdict, dataclass

from vigil.errors import Refused
from vigil.home import Home
from vigil.kernel import durable
from vigil.manifest.values import DeclaredRole


@dataclass(frozen=True, slots=True)
class RoleUse:
    """What a user consents to for one role: its command, folder, variables and sandbox."""

    role: str
    command: tuple[str, ...]
    cwd: str
    variables: tuple[str, ...]
    sandbox: str
    digest: str


class Consents:
    def __init__(self, home: Home) -> None:
        self._path = str(home.path / "agreed.json")

    def read_new(self, path: str, declared: DeclaredRole) -> list[RoleUse]:
        """Return what of a manifest still needs its user's consent."""
        known = (durable.read_json(self._path) or {}).get(path)
        known = known if isinstance(known, dict) else {}
        return [use for use in uses_of(declared) if known.get(use.role) != use.digest]

    def require(self, path: str, declared: DeclaredRole, agreed: Collection[str]) -> None:
        """Remember what the user consents to now; Refused if something is left."""
        new = self.read_new(path, declared)
        left = [use.role for use in new if use.digest not in agreed]
        if left:
            raise Refused(f"{path} runs what you have not agreed to: {', '.join(left)}. Read it, then vigil up --yes")
        if new:
            found = durable.read_json(self._path) or {}
            found[path] = {use.role: use.digest for use in uses_of(declared)}
            durable.record_json(self._path, found)


def uses_of(declared: DeclaredRole) -> list[RoleUse]:
    """Return what each role of a manifest needs consent for."""
    found = []
    for role in declared.manifest.roles:
        spec, env = role.spec, declared.env.get(role.key, {})
        sandbox = None if spec.sandbox is None else asdict(spec.sandbox)
        text = json.dumps([spec.command, spec.cwd, spec.agent, spec.runtime, sorted(env.items()), sandbox])
        digest = hashlib.sha256(text.encode()).hexdigest()
        confined = "" if spec.sandbox is None else spec.sandbox.kind.value
        found.append(RoleUse(role.key, spec.command, spec.cwd, tuple(sorted(env)), confined, digest))
    return found
