"""Secrets: what must not be shown of a session, read anew from its command and environment each time; nothing is kept."""

from __future__ import annotations

import json
from collections.abc import Callable

from vigil.core.model import Session
from vigil.home import Home, environment_of_role
from vigil.redact import Redactor, secrets_of


class Secrets:
    """The secrets of every session of one home."""

    def __init__(self, home: Home, find: Callable[[str], Session | None]) -> None:
        self._home = home
        self._find = find

    def redactor(self, session_id: str) -> Redactor:
        """Return what takes a session's secrets out of a text; of one that is gone, what looks like a secret."""
        session = self._find(session_id)
        try:
            name = environment_of_role(session.role) if session is not None and session.role else session_id
            env = json.loads((self._home.environments / f"{name}.json").read_text("utf-8", "surrogateescape"))
        except (OSError, ValueError, RecursionError):
            env = {}
        env = {k: v for k, v in env.items() if isinstance(v, str)} if isinstance(env, dict) else {}
        return Redactor(secrets_of(session.spec.command if session else (), env))
