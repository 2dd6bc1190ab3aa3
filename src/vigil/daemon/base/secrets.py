"""Secrets: what must not be shown of a session, read anew from its command and environment; nothing is kept."""

from __future__ import annotations

from collections.abc import Callable

from vigil.core.model.session import Session
from vigil.daemon.base.environments import Environments
from vigil.redact import Redactor, secrets_of


class Secrets:
    def __init__(self, environments: Environments, find: Callable[[str], Session | None]) -> None:
        self._environments = environments
        self._find = find

    def redactor(self, session_id: str) -> Redactor:
        """Return a session's redactor; for one that is gone, one that hides what looks like a secret."""
        session = self._find(session_id)
        try:
            env = self._environments.read(session) if session is not None else self._environments.read_lone(session_id)
        except (OSError, ValueError, RecursionError):
            env = {}
        env = {key: value for key, value in env.items() if isinstance(value, str)}
        return Redactor(secrets_of(session.spec.command if session else (), env))
