"""Details of an incident for routes that may tell them: evidence and last output, without known secrets.

Reads files, in a route's thread, never in the clock's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vigil.core.model.incident import Incident
from vigil.core.model.session import Session
from vigil.daemon.base.secrets import Secrets
from vigil.forensics import read_bundle
from vigil.forensics.tails import read_tail
from vigil.home import Home

LINES = 20


class Details:
    def __init__(self, home: Home, secrets: Secrets, find: Callable[[str], Session | None]) -> None:
        self._home = home
        self._secrets = secrets
        self._find = find

    def of(self, incident: Incident) -> dict[str, Any]:
        """Return what is known of an incident; what cannot be read is left out."""
        found: dict[str, Any] = {"evidence": [f"{one.text} ({one.source})" for one in incident.evidence]}
        session = self._find(incident.session_id or "")
        death_id = incident.deaths[-1] if incident.deaths else None
        if session is not None and session.launch is not None and session.launch.ended_at is None:
            found["screen"] = self._last_of(session, "screen")
        elif death_id is None and session is not None and session.last_death is not None:
            death_id = session.last_death.id
        bundle = read_bundle(self._home.deaths / death_id) if death_id is not None else None
        if bundle is not None:
            found |= {"stderr": bundle.stderr_tail[-LINES:], "screen": bundle.pane_tail[-LINES:]}
        elif session is not None and "screen" not in found:  # it died just now, and its record is still being made
            found |= {"stderr": self._last_of(session, "stderr.log"), "screen": self._last_of(session, "screen")}
        redact = self._secrets.redactor(incident.session_id or "").value
        return {name: redact(lines) for name, lines in found.items() if lines}

    def _last_of(self, session: Session, name: str) -> list[str]:
        if session.launch is None:
            return []
        try:
            tail = read_tail(self._home.launch(session.launch.id) / name, self._secrets.redactor(session.id).text)
        except OSError:
            return []
        return [line.rstrip() for line in tail.text.splitlines() if line.strip()][-LINES:]
