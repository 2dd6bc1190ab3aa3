"""The book: all the core remembers, and what one event changed in it, the durable part first (DESIGN 3)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Container, Iterable
from typing import Any, NamedTuple, TypeVar

from vigil.core.effects import Effect, EndLaunch, LogEntry, Persist
from vigil.core.model.death import Death, Intent, IntentVerb
from vigil.core.model.incident import Incident, Reaction
from vigil.core.model.launch import Launch
from vigil.core.model.reading import AxisValue, DoubtKind, Fact, Reading
from vigil.core.model.replace import replace
from vigil.core.model.session import Session, State, with_changes
from vigil.core.model.stall import Watchdogs
from vigil.core.model.team import Role

GRACE_S = 10.0  # between TERM and KILL
DOUBTED = frozenset({State.STARTING, State.RUNNING, State.SUSPECT, State.STUCK})  # other states carry no doubt
DOUBTFUL = frozenset({State.SUSPECT, State.STUCK})
DEATHS_TOGETHER = 100
SAME_S = 1.0
Row = TypeVar("Row", Launch, Intent)
RESOLVED_KEPT = 1000  # resolved incidents, for their last notices and in case they reopen


class Idle(NamedTuple):
    """What the book has learned of the CPU that a kind of idle agent uses."""

    cpu: float  # cores
    samples: int


class Book:
    """The book: all that the core remembers of one host; it holds no policy."""

    def __init__(
        self, sessions: Iterable[Session] = (), open_incidents: Iterable[Incident] = (), roles: Iterable[Role] = ()
    ) -> None:
        self.sessions: dict[str, Session] = {}
        self.roles: dict[str, Role] = {}
        self.incidents: dict[str, Incident] = {}  # those that are open, by key
        self.resolved: dict[str, Incident] = {}  # those that are over, by id, the newest last
        self.wedged: set[str] = set()  # sessions whose server has not answered for a while
        self.deaths_at: list[float] = []  # the last charged ones, in order
        self.last_deaths: list[tuple[float, str]] = []  # when, and whose, in order
        self.activity_stored: dict[str, float] = {}  # when each session was active last, as far as that is durable
        self.walled: set[str] = set()  # sessions at a wall that no agent has got past yet
        self.work_stored: dict[str, float] = {}  # and worked last
        self.booted = False  # the host was booted anew since these sessions were stored
        self.void_before = 0.0  # earlier readings are void, unless conclusive
        self.by_name: dict[str, str] = {}
        self.by_launch: dict[str, str] = {}
        self.by_role: dict[str, set[str]] = {}  # the ids of its sessions, also of those that leave
        self.touched: set[str] = set()  # roles with a changed session
        self.vacated: list[tuple[str, int]] = []  # slots whose session was removed
        self.spawning: set[str] = set()
        self.left: set[str] = set()  # launches that a daemon before us ordered; what became of them is not told yet
        self.waiting: deque[str] = deque()
        self.keeper = ""  # why no keeper can be had that launches; empty: one answers
        self.unordered: dict[str, Session] = {}  # by launch that begins: its session as it was before
        self.room: int | None = None  # how many more launches have memory; None is plenty
        self.memory = ""  # and how much there is, in words
        self.routes: tuple[str, ...] | None = None  # the ways to reach people; None: not configured yet
        self.reactions: tuple[Reaction, ...] = ()
        self.watchdogs = Watchdogs()  # the configured thresholds of silence
        self.checked_at: dict[str, float] = {}  # when the silence of a session is looked at next
        self.idle_cpu: dict[str, Idle] = {}  # by kind of agent, while it waits for input
        self.change = Change()
        for role in roles:  # one stored without its slots has the first ones
            self.roles[role.key] = role if role.slots else replace(role, slots=tuple(range(role.spec.replicas)))
        for incident in open_incidents:
            self.keep_incident(incident)
        for session in sessions:
            self.keep(session, durable=False)
            self.activity_stored[session.id] = session.last_activity_at or 0.0
            self.work_stored[session.id] = max(session.worked.values(), default=0.0)
            doubt = session.vitals.doubt
            if doubt is not None and doubt.kind is DoubtKind.WEDGED and session.state in DOUBTFUL:
                self.wedged.add(session.id)
        self.touched.clear()  # nothing happened yet

    def of_launch(self, launch_id: str) -> Session | None:
        """Find the session of a launch in the book; an old launch finds none (fencing)."""
        session = self.sessions.get(self.by_launch.get(launch_id, ""))
        return session if session and session.launch and session.launch.id == launch_id else None

    def living(self, launch_id: str) -> Session | None:
        """Find the session of a launch in the book, if that launch has not ended."""
        session = self.of_launch(launch_id)
        return session if session and session.launch and session.launch.ended_at is None else None

    def read_axes(self, session: Session, facts: tuple[Fact, ...], **changes: Any) -> Session:
        """Return a session with new axis readings and other changes, not yet in the book."""
        axes = dict(session.vitals.axes)
        for fact in facts:
            before = axes.get(fact.axis)
            if before is not None and before.value == AxisValue.DEAD and before.conclusive and fact.value != AxisValue.DEAD:
                continue  # what the kernel saw end does not come back by a late reading
            since = before.since if before is not None and before.value == fact.value else fact.observed_at
            axes[fact.axis] = Reading(fact.value, fact.source, fact.conclusive, fact.observed_at, since, fact.why)
        return with_changes(session, axes=axes, **changes)

    def role_of(self, session: Session) -> Role | None:
        """Look up a session's role in the book; a lone session has none."""
        return self.roles.get(session.role) if session.role is not None else None

    def replicas(self, key: str) -> list[Session]:
        """List the sessions that the book has for a role, by slot, leaving ones too."""
        found = [self.sessions[session_id] for session_id in self.by_role.get(key, ())]
        return sorted(found, key=lambda session: (session.index, session.id))

    def keep_role(self, role: Role) -> Role:
        self.roles[role.key] = self.change.roles[role.key] = role
        return role

    def forget_role(self, key: str) -> None:
        self.roles.pop(key, None)
        self.change.roles.pop(key, None)
        if not self.by_role.get(key):
            self.by_role.pop(key, None)
        self.change.removed_roles.append(key)

    def died_with(self, session: Session, at: float) -> tuple[str, ...]:
        """Note a death in the book; return the sessions that died within the same second."""
        near = self.last_deaths[bisect_left(self.last_deaths, (at - SAME_S,)) : bisect_left(self.last_deaths, (at + SAME_S,))]
        insort(self.last_deaths, (at, session.name))
        del self.last_deaths[:-DEATHS_TOGETHER]
        return tuple(name for _, name in near if name != session.name)

    def keep(self, session: Session, durable: bool = True) -> Session:
        """Write a session into the book; without `durable` it is only shown."""
        self.change.before.setdefault(session.id, self.sessions.get(session.id))
        self.sessions[session.id] = self.change.shown[session.id] = session
        self.by_name[session.name] = session.id
        if session.role is not None:
            self.by_role.setdefault(session.role, set()).add(session.id)
            self.touched.add(session.role)
        if session.launch is not None:
            self.by_launch[session.launch.id] = session.id
        if session.wall is None:
            self.walled.discard(session.id)
        else:
            self.walled.add(session.id)
        if durable:
            self.change.sessions[session.id] = session
            self.activity_stored[session.id] = session.last_activity_at or 0.0
            self.work_stored[session.id] = max(session.worked.values(), default=0.0)
        return session

    def keep_incident(self, incident: Incident) -> None:
        """Write an incident into the book: by key while open, then by id."""
        if incident.resolved_at is None:
            self.incidents[incident.key] = incident
            self.resolved.pop(incident.id, None)  # it came back
        else:
            before = self.incidents.get(incident.key)
            if before is not None and before.id == incident.id:  # another one of the same key may be open by now
                del self.incidents[incident.key]
            self.resolved[incident.id] = incident
            while len(self.resolved) > RESOLVED_KEPT:
                del self.resolved[next(iter(self.resolved))]
        self.change.incidents[incident.id] = incident

    def find_incident(self, incident_id: str) -> Incident | None:
        """Find an incident in the book, open or recently resolved."""
        return self.change.incidents.get(incident_id) or next(
            (incident for incident in self.incidents.values() if incident.id == incident_id), self.resolved.get(incident_id)
        )

    def last_over(self, key: str) -> Incident | None:
        over = [incident for incident in self.resolved.values() if incident.key == key]
        return max(over, key=lambda incident: incident.resolved_at or 0.0, default=None)

    def is_behind(self, session: Session, by_s: float) -> bool:
        """Say whether a session's stored activity or work lags behind the book by `by_s`."""
        # Work too: a killed daemon forgot it behind a heartbeat; the next one parked its session.
        active_at, worked_at = session.last_activity_at or 0.0, max(session.worked.values(), default=0.0)
        known_at, known_work_at = (known.get(session.id, 0.0) for known in (self.activity_stored, self.work_stored))
        return active_at - known_at > by_s or worked_at - known_work_at > by_s

    def close(self, session: Session) -> Session:
        """Return a session with its launch closed, and note that launch among the book's changes."""
        if session.launch is None or session.launch.closed:
            return session
        launch = replace(session.launch, closed=True)
        self.change.launches.append(launch)
        return replace(session, launch=launch)

    def forget(self, session: Session) -> None:
        """Remove a session, and all that is keyed by it, from the book."""
        del self.sessions[session.id], self.by_name[session.name]
        self.change.shown[session.id] = None
        if session.role is not None:
            self.by_role[session.role].discard(session.id)
            if not self.by_role[session.role] and session.role not in self.roles:
                del self.by_role[session.role]
            self.touched.add(session.role)
            self.vacated.append((session.role, session.index))
        self.walled.discard(session.id)
        self.activity_stored.pop(session.id, None)
        self.work_stored.pop(session.id, None)
        self.checked_at.pop(session.id, None)
        for launch_id in [key for key, owner in self.by_launch.items() if owner == session.id]:
            del self.by_launch[launch_id]
            self.spawning.discard(launch_id)
            self.unordered.pop(launch_id, None)

    def reconsider(self, sessions: Iterable[Session]) -> None:
        """Mark in the book that sessions' incidents may change though the sessions did not."""
        self.change.reconsidered += [session.id for session in sessions]

    def log(self, at: float, session: Session | None, kind: str, **data: Any) -> None:
        """Add a line to the book's event log, about a session or about none."""
        if session is None:
            self.change.log.append(LogEntry(at, kind, data=data))
            return
        launch_id = session.launch.id if session.launch else None
        self.change.log.append(LogEntry(at, kind, session.id, session.name, launch_id, data))

    def do(self, effect: Effect) -> None:
        self.change.todo.append(effect)

    def end_all(self, launch: Launch | None, unless_attended: bool = False) -> None:
        """Put into the book the effect that ends a launch, or only an unattended one."""
        assert launch is not None
        session = self.of_launch(launch.id)
        intent = session.vitals.intent if session is not None else None
        reap = unless_attended and intent is not None and intent.verb is IntentVerb.REAP
        self.do(EndLaunch(launch, GRACE_S, unless_attended, reap))


class Change:
    """What one event changed in the book, collected by its handlers and returned as effects."""

    def __init__(self) -> None:
        self.shown: dict[str, Session | None] = {}  # every session that changed; None if it was removed
        self.before: dict[str, Session | None] = {}  # and as it was before the event; None: it is new
        self.reconsidered: list[str] = []  # sessions whose incidents may change though they did not
        self.anew: dict[str, str] = {}  # new words of open incidents, by key
        self.sessions: dict[str, Session] = {}  # those that are to be durable
        self.launches: list[Launch] = []
        self.removed: dict[str, Session] = {}  # as they were last
        self.deaths: list[Death] = []
        self.intents: list[Intent] = []
        self.incidents: dict[str, Incident] = {}
        self.log: list[LogEntry] = []
        self.roles: dict[str, Role] = {}
        self.removed_roles: list[str] = []
        self.todo: list[Effect] = []

    def effects(self) -> list[Effect]:
        changed = (self.sessions, self.removed, self.log, self.intents, self.incidents, self.roles, self.removed_roles)
        if not any(changed):
            return self.todo
        persist = Persist(
            tuple(self.sessions.values()),
            outlasting(self.launches, self.removed),
            tuple(self.removed),
            tuple(self.deaths),
            outlasting(self.intents, self.removed),
            tuple(self.incidents.values()),
            tuple(self.log),
            tuple(self.roles.values()),
            tuple(self.removed_roles),
        )
        return [persist, *self.todo]


def outlasting(rows: Iterable[Row], removed: Container[str]) -> tuple[Row, ...]:
    """Return the rows of one change that its removals leave; stored after them, the others would come back (P11)."""
    return tuple(row for row in rows if row.session_id not in removed)
