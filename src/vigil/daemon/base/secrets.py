"""Secrets: one redactor a session, made of its command and the environments of its launches, and one that knows them all.

A launch tells its environment when it begins; a new daemon reads it from the session's file and the launch's order, both
0600. What a session had before stays secret while this daemon runs: late words may hold it. In memory only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from vigil.core.model.launch import ProcessId
from vigil.core.model.session import Session
from vigil.daemon.base.environments import Environments
from vigil.home import Home
from vigil.kernel.durable import read_json
from vigil.kernel.process import read_start_ticks
from vigil.kernel.processes import read_environ
from vigil.redact import Redactor, secrets_of

KEPT = 4096  # sessions; the oldest is read anew when it is needed again
GONE_KEPT = 256  # of these, such as were removed


class Secrets:
    """`everything` knows the secrets of all sessions so far, for words of none in particular."""

    def __init__(
        self, home: Home, environments: Environments, find: Callable[[str], Session | None], everything: Redactor | None = None
    ) -> None:
        self._home = home
        self._environments = environments
        self._find = find
        self._known: dict[str, tuple[frozenset[str], Redactor]] = {}  # by session
        self._shared: dict[frozenset[str], Redactor] = {}  # replicas have the same secrets
        self._gone: dict[str, None] = {}  # sessions that were removed, the last ones
        self.everything = everything if everything is not None else Redactor()

    def redactor(self, session_id: str) -> Redactor:
        """Return the redactor of a session's secrets; of a gone one, as known last."""
        known = self._known.get(session_id)
        return known[1] if known is not None else self._learn(session_id, self._read(session_id))

    def learn(self, session: Session, env: Mapping[str, str]) -> None:
        """Learn the secrets that a launch begins with, besides those known of its session."""
        self.redactor(session.id)
        self._learn(session.id, secrets_of(session.spec.command, env))

    def read_all(self, sessions: Iterable[Session]) -> None:
        """Read the secrets of all sessions that the daemon before us knew."""
        for session in sessions:
            self.redactor(session.id)

    def forget(self, session_id: str) -> None:
        """Keep the secrets of a removed session only while it is among the last: late words may hold them."""
        self._gone[session_id] = None
        while len(self._gone) > GONE_KEPT:
            gone = next(iter(self._gone))
            del self._gone[gone]
            self._known.pop(gone, None)
            self._share_known()

    def _share_known(self) -> None:
        if len(self._shared) > len(self._known) + GONE_KEPT:
            self._shared = dict(self._known.values())

    def _learn(self, session_id: str, secrets: frozenset[str]) -> Redactor:
        known = self._known.get(session_id)
        secrets |= known[0] if known is not None else frozenset()
        redactor = self._shared.get(secrets) or Redactor(secrets)
        self._shared[secrets] = redactor
        self._known[session_id] = (secrets, redactor)
        self.everything.learn(secrets)
        if len(self._known) > KEPT:
            self._known.pop(next(iter(self._known)), None)
        self._share_known()
        return redactor

    def _read(self, session_id: str) -> frozenset[str]:
        session = self._find(session_id)
        try:
            env = self._environments.read(session) if session is not None else self._environments.read_lone(session_id)
        except (OSError, ValueError, RecursionError):
            env = {}
        found = secrets_of(session.spec.command if session else (), _texts(env))
        if session is None or session.launch is None:
            return found
        order = read_json(str(self._home.launch(session.launch.id) / "launch.json")) or {}
        return found | secrets_of((), _texts(order.get("env")))


def read_secrets(agent: ProcessId | None) -> dict[str, str]:
    """Read the secret variables of an agent started elsewhere, to hide them after it ends."""
    try:
        found = read_environ(agent.pid) if agent is not None else b""
        if agent is None or read_start_ticks(agent.pid) != agent.start_ticks:  # asked after: these are its own
            return {}
    except OSError:
        return {}
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in found.split(b"\0"))
    return {name: value for name, _, value in pairs if secrets_of((), {name: value})}


def _texts(env: Any) -> dict[str, str]:
    return {key: value for key, value in env.items() if isinstance(value, str)} if isinstance(env, dict) else {}
