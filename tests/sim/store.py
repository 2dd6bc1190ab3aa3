"""The simulated store: what is durable, through the same JSON as the real one; it can be slow, full, or fail.

One that fails tells of a write that it could not, and may have kept it all the same: a sync that failed after the rows."""

from __future__ import annotations

from vigil.codec import dump, load
from vigil.core.effects import Persist
from vigil.core.model.death import Death, Intent
from vigil.core.model.incident import Incident
from vigil.core.model.launch import Launch
from vigil.core.model.session import Session
from vigil.core.model.team import Role
from vigil.core.rules.escalation import is_settled
from vigil.core.rules.incident import REMEMBERED_S

UNTOLD_KEPT = 200


class Store:
    """What survives a daemon."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.roles: dict[str, Role] = {}
        self.launches: dict[str, Launch] = {}
        self.deaths: dict[str, Death] = {}  # by launch id
        self.intents: dict[str, list[Intent]] = {}  # by launch id
        self.incidents: dict[str, Incident] = {}
        self.full = False
        self.keeps = False  # while it is full: what it calls failed is there for the next daemon
        self.slow_s = 0.0
        self.late_s = 0.0  # one write only, the next

    @property
    def is_well(self) -> bool:
        """Say whether a write takes no time worth simulating."""
        return not self.full and not self.slow_s and not self.late_s

    def write(self, change: Persist) -> None:
        """Make a change durable, all of it."""
        for session_id in change.removed:  # in the store's order: what is removed and stored in one call is there again
            self.sessions.pop(session_id, None)
            self.launches = {key: launch for key, launch in self.launches.items() if launch.session_id != session_id}
            self.deaths = {key: death for key, death in self.deaths.items() if death.session_id != session_id}
            self.intents = {key: found for key, found in self.intents.items() if found[0].session_id != session_id}
        for key in change.removed_roles:
            self.roles.pop(key, None)
        for role in change.roles:
            self.roles[role.key] = role
        for session in change.sessions:
            self.sessions[session.id] = session
        for launch in change.launches:
            self.launches[launch.id] = launch
        for death in change.deaths:
            self.deaths[death.launch_id] = death
        for intent in change.intents:
            self.intents.setdefault(intent.launch_id, []).append(intent)
        for incident in change.incidents:
            self.incidents[incident.id] = incident

    def read_sessions(self) -> list[Session]:
        """Read every session as a new daemon does."""
        return [load(Session, dump(session)) for session in self.sessions.values()]

    def read_roles(self) -> list[Role]:
        """Read every role as a new daemon does."""
        return [load(Role, dump(role)) for role in self.roles.values()]

    def read_incidents(self, now: float) -> list[Incident]:
        """Read the incidents that are open, or over and perhaps not told so, or over only since a moment ago."""
        newest = list(self.incidents.values())
        over = [i for i in newest if i.resolved_at is not None][-UNTOLD_KEPT:]
        wanted = [i for i in newest if i.resolved_at is None]
        wanted += [i for i in over if not is_settled(i) or now - (i.resolved_at or 0.0) <= REMEMBERED_S]
        return [load(Incident, dump(incident)) for incident in wanted]
