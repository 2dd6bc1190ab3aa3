"""Teams: the roles that a manifest declares, a slot for each replica, and the charges of all their deaths (DESIGN 4)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from vigil.core.model.restart import Hold
from vigil.core.model.session import Spec
from vigil.core.model.stall import UNSAID, Watchdog


@dataclass(frozen=True, slots=True)
class Health:
    """Which signs of life a declared role promises: how often, and how many may fail."""

    heartbeat_s: float
    failures: int = 3
    grace_s: float = 30.0


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """A declared role of a team. Its environment lies apart, 0600, and is never shown."""

    workspace: str
    team: str
    name: str
    replicas: int
    spec: Spec  # of every replica
    autostart: bool = False  # comes back by itself after a reboot
    after_crash: str = "fresh"  # or resume
    retry_saturated_s: float = 0.0  # a half-open trial after this long; 0 waits for a person
    idle_ttl_s: float | None = None  # 0 is never, None as the configuration says
    health: Health | None = None
    watchdog: Watchdog = UNSAID
    speaks: bool = False  # this kind of agent reports: a silent one is not ready

    @property
    def key(self) -> str:
        return f"{self.workspace}/{self.team}/{self.name}"

    def slot(self, index: int) -> str:
        return f"{self.key}/{index}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The teams and roles of one workspace, declared as a whole."""

    workspace: str
    roles: tuple[RoleSpec, ...]


class Phase(StrEnum):
    WAITING = "waiting"  # for the roles of its team that come before it
    LAUNCHING = "launching"  # the new replicas, beside the old ones
    DRAINING = "draining"  # the old ones


@dataclass(frozen=True, slots=True)
class Shift:
    """A team's shift of a role: new replicas are ready before old ones drain."""

    place: int  # in the order of its team
    of: int  # so many roles
    actor: str
    timeout_s: float
    phase: Phase = Phase.WAITING
    until: float | None = None  # when this phase is given up
    old: tuple[int, ...] = ()  # slots that are replaced
    new: tuple[int, ...] = ()  # and those that replace them


@dataclass(frozen=True, slots=True)
class Shifted:
    at: float
    done: bool
    why: str


@dataclass(frozen=True, slots=True)
class Role:
    """A declared role of a team, with the charges for its replicas' deaths."""

    spec: RoleSpec
    declared_at: float
    charges: int = 0
    event_at: float | None = None  # the first death of the newest event that was charged
    taken: tuple[str, ...] = ()  # launches that died in that event
    hold: Hold | None = None  # what that event's replacements wait for
    slots: tuple[int, ...] = ()  # its indexes; a shift replaces them by others
    born: int = 0  # how many sessions it has made
    deaths: tuple[str, ...] = ()  # the last ones that were charged, the newest last
    account: str = ""  # whose limits its agents meet
    trial: str | None = None  # the session on trial since the role was given up
    shift: Shift | None = None
    shifted: Shifted | None = None

    @property
    def key(self) -> str:
        return self.spec.key

    @property
    def wanted(self) -> tuple[int, ...]:
        """The slots of a role that need a session, those of its shift too."""
        return self.slots if self.shift is None else tuple(dict.fromkeys(self.slots + self.shift.new))

    def session_id(self) -> str:
        """Return the id of a role's next session, which no session or namesake ever had."""
        # From key, moment and count: the core has no randomness.
        digest = hashlib.sha256(f"{self.key} {self.declared_at!r}".encode()).hexdigest()[:10]
        return f"r{digest}x{self.born}"
