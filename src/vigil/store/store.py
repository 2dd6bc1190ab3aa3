"""Reading and writing sessions, launches, deaths, intents, incidents and events.

All writing is one function, `write`: whatever one decision changed, and the events that say so, in one durable transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Column, Delete, Engine, Insert, Table, bindparam, delete, func, insert, select
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.dialects.sqlite import insert as upsert

from vigil.core.effects import LogEntry, Persist
from vigil.core.model.death import Death, Intent
from vigil.core.model.incident import Incident
from vigil.core.model.launch import Launch
from vigil.core.model.session import Session
from vigil.core.model.team import Role
from vigil.core.model.upgrade import upgraded_incident, upgraded_session
from vigil.core.rules.escalation import is_settled
from vigil.errors import VigilError
from vigil.store.opening import lengthen_log, make_engine, open_database, read_birth
from vigil.store.placing import copy_beside, file_of, files_of, is_whole, mark, put_aside, put_away_another, put_in_place
from vigil.store.schema import deaths, events, incidents, intents, launches, roles, sessions

T = TypeVar("T")
SESSION = TypeAdapter(Session)
LAUNCH = TypeAdapter(Launch)
DEATH = TypeAdapter(Death)
INTENT = TypeAdapter(Intent)
INCIDENT = TypeAdapter(Incident)
ROLE = TypeAdapter(Role)
DATA = TypeAdapter(dict[str, Any])
INCIDENTS_KEPT = 5_000
DEATHS_KEPT = 50_000
EVENTS_KEPT = 200_000  # the log is bounded: the oldest go first
TRIMMED_EVERY = 1000  # events


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A line of the event log with its sequence number."""

    seq: int
    entry: LogEntry
    data: str  # of the entry, as it is written


class Store:
    """One open database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_long = False  # the log may have grown over its bounds
        self.aside = put_away_another(path)  # where the last one is that lay in our place: another instance's, at a start
        self._readers: Engine = make_engine(path, read_only=True)
        self._open()
        self._again: tuple[Persist, ...] = ()  # what must be written before anything else
        self.begun_anew = 0  # so often another file was found in our place
        self.whole: Callable[[], Persist] | None = None  # all there is, if what we wrote cannot be read any more

    def _open(self) -> None:
        self._engine: Engine = open_database(self._path)
        self._writer = _driver_of(self._engine)
        mark(self._path, self._writer)
        lengthen_log(self._path, self._writer)
        self._files = files_of(self._path)
        self.created_at = read_birth(self._engine)

    def close(self) -> None:
        """Close the database; what was written is on disk already."""
        self._engine.dispose()
        self._readers.dispose()

    def write(self, changes: Sequence[Persist]) -> list[StoredEvent]:
        """Make decisions durable, all or none, and return their events with their numbers."""
        stored: list[StoredEvent] = []
        if self.is_lost():
            self._begin_anew()
        if self._is_long:
            self._trim()
        with self._writer:  # one transaction
            cursor = self._writer.cursor()
            for change in (*self._again, *changes):
                _write_one(cursor, change, stored)
        self._again = ()
        if stored and stored[-1].seq % TRIMMED_EVERY < len(stored):
            self._is_long = True
        return stored

    def _trim(self) -> None:
        """Remove what is older than anybody asks for; before a write, because what is durable must not fail afterwards."""
        newest = select(func.max(events.c.seq)).scalar_subquery()
        with self._engine.begin() as connection:
            connection.execute(delete(events).where(events.c.seq <= newest - EVENTS_KEPT))
            connection.execute(_old_incidents())
            connection.execute(_old_deaths())
            connection.execute(_old_launches())
        self._is_long = False

    def is_lost(self) -> bool:
        """Say whether the file we write is not the one in its place any more: it was removed, or another was put there."""
        return self.whole is not None and file_of(self._path) != self._files[""]

    def _begin_anew(self) -> None:
        """Put our own database back in its place, and what was put there aside.

        What is open can still be read, also if its file was removed: nothing is lost. Of one that is damaged, what is known is.
        """
        assert self.whole is not None
        before = self._engine
        beside = copy_beside(self._path, self._writer)
        whole = is_whole(beside)
        self.aside = put_aside(self._path, self._files)
        if whole:
            put_in_place(beside, self._path)
        else:
            beside.unlink()
            self._again = (self.whole(),)
        self._open()
        before.dispose()
        self.begun_anew += 1

    def read_sessions(self) -> list[Session]:
        """Read every session."""
        with self._engine.connect() as connection:
            return [upgraded_session(_read(SESSION, body)) for (body,) in connection.execute(select(sessions.c.body))]

    def read_roles(self) -> list[Role]:
        """Read every role."""
        with self._engine.connect() as connection:
            return [_read(ROLE, body) for (body,) in connection.execute(select(roles.c.body))]

    def read_incidents(self, everything: bool = False, limit: int = 1000) -> list[Incident]:
        """Read incidents, newest first: those that are open, or also those that are over."""
        query = select(incidents.c.body).order_by(incidents.c.opened_at.desc()).limit(limit)
        if not everything:
            query = query.where(incidents.c.resolved_at.is_(None))
        with self._readers.connect() as connection:
            return [upgraded_incident(_read(INCIDENT, body)) for (body,) in connection.execute(query)]

    def read_untold(self, since: float, limit: int = 1000) -> list[Incident]:
        """Read incidents that are over while somebody may not have been told that; and those that are only since then."""
        over = [incident for incident in self.read_incidents(everything=True, limit=limit) if incident.resolved_at is not None]
        return [incident for incident in over if not is_settled(incident) or (incident.resolved_at or 0.0) >= since]

    def read_incident(self, incident_id: str) -> Incident | None:
        """Read one incident."""
        with self._readers.connect() as connection:
            body = connection.execute(select(incidents.c.body).where(incidents.c.id == incident_id)).scalar()
        return None if body is None else upgraded_incident(_read(INCIDENT, body))

    def read_incident_events(self, incident: Incident, limit: int = 1000) -> list[StoredEvent]:
        """Read what the event log says of an incident, in order."""
        named = events.c.data.contains(json.dumps(incident.id), autoescape=True)
        query = select(events).where(events.c.kind.startswith("incident."), named, events.c.at >= incident.opened_at - 1.0)
        with self._readers.connect() as connection:
            return [_event(row) for row in connection.execute(query.order_by(events.c.seq).limit(limit)).all()]

    def read_deaths(self, session_id: str | None = None, limit: int = 1000) -> list[Death]:
        """Read death records, newest first."""
        query = select(deaths.c.body).order_by(deaths.c.at.desc()).limit(limit)
        if session_id is not None:
            query = query.where(deaths.c.session_id == session_id)
        with self._readers.connect() as connection:
            return [_read(DEATH, body) for (body,) in connection.execute(query)]

    def read_deaths_of_removed(self, name: str, limit: int = 1000) -> list[Death]:
        """Read the death records of sessions of a name that are no more, newest first."""
        gone = deaths.c.session_id.not_in(select(sessions.c.id))
        query = select(deaths.c.body).where(deaths.c.session == name, gone).order_by(deaths.c.at.desc()).limit(limit)
        with self._readers.connect() as connection:
            return [_read(DEATH, body) for (body,) in connection.execute(query)]

    def read_died_with(self, death: Death, within_s: float) -> list[str]:
        """Read the names of the other sessions that died at about the same moment."""
        near = deaths.c.at.between(death.at - within_s, death.at + within_s)
        query = select(deaths.c.session).where(near, deaths.c.session_id != death.session_id).order_by(deaths.c.at)
        with self._readers.connect() as connection:
            return list(dict.fromkeys(name for (name,) in connection.execute(query)))

    def read_death(self, death_id: str) -> Death | None:
        """Read one death record."""
        with self._readers.connect() as connection:
            body = connection.execute(select(deaths.c.body).where(deaths.c.id == death_id)).scalar()
        return None if body is None else _read(DEATH, body)

    def read_events(
        self,
        after_seq: int = 0,
        session_id: str | None = None,
        since: float | None = None,
        limit: int = 1000,
        newest: bool = False,
        until: float | None = None,
    ) -> list[StoredEvent]:
        """Read the event log in order; with `newest` the last ones, still in order."""
        query = select(events).where(events.c.seq > after_seq).limit(limit)
        if session_id is not None:
            query = query.where(events.c.session_id == session_id)
        if since is not None:
            query = query.where(events.c.at >= since)
        if until is not None:
            query = query.where(events.c.at <= until)
        query = query.order_by(events.c.seq.desc() if newest else events.c.seq)
        with self._readers.connect() as connection:
            rows = connection.execute(query).all()
        found = [_event(row) for row in rows]
        return found[::-1] if newest else found


def _driver_of(engine: Engine) -> sqlite3.Connection:
    """Return the one connection that an engine writes with: the hot path needs no more than it."""
    driver = engine.raw_connection().driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _write_one(cursor: sqlite3.Cursor, change: Persist, stored: list[StoredEvent]) -> None:
    for session_id in change.removed:
        for statement in REMOVE_SESSION:
            statement.run(cursor, {"gone": session_id})
    for key in change.removed_roles:
        REMOVE_ROLE.run(cursor, {"gone": key})
    for role in change.roles:
        SAVE_ROLE.run(cursor, {"key": role.key, "body": _json(ROLE, role)})
    for session in change.sessions:
        SAVE_SESSION.run(cursor, _session_row(session))
    for launch in change.launches:
        SAVE_LAUNCH.run(cursor, _launch_row(launch))
    for death in change.deaths:
        ADD_DEATH.run(cursor, _death_row(death))
    for intent in change.intents:
        ADD_INTENT.run(cursor, _intent_row(intent))
    for incident in change.incidents:
        SAVE_INCIDENT.run(cursor, _incident_row(incident))
    for entry in change.log:
        row = _event_row(entry)
        stored.append(StoredEvent(ADD_EVENT.run(cursor, row), entry, row["data"]))


def _read(adapter: TypeAdapter[T], body: str) -> T:
    """Return a stored value; an error names the field and not what is in it, which may be a secret."""
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise VigilError(f"a stored record cannot be read: {where}: {first['msg']}; vigil doctor says more") from None


def _event(row: Any) -> StoredEvent:
    entry = LogEntry(row.at, row.kind, row.session_id, row.session, row.launch_id, json.loads(row.data))
    return StoredEvent(row.seq, entry, row.data)


def _old_incidents() -> Delete:
    """Return what removes the incidents that have long been over."""
    newest = select(incidents.c.id).order_by(incidents.c.opened_at.desc()).limit(INCIDENTS_KEPT)
    return delete(incidents).where(incidents.c.resolved_at.is_not(None), incidents.c.id.not_in(newest))


def _old_deaths() -> Delete:
    """Return what removes the oldest death records, when there are very many."""
    newest = select(deaths.c.id).order_by(deaths.c.at.desc()).limit(DEATHS_KEPT)
    return delete(deaths).where(deaths.c.id.not_in(newest))


def _old_launches() -> Delete:
    """Return what removes the launches that ended long ago."""
    newest = select(launches.c.id).order_by(launches.c.created_at.desc()).limit(DEATHS_KEPT)
    return delete(launches).where(launches.c.ended_at.is_not(None), launches.c.id.not_in(newest))


class _Statement:
    """A statement of the hot path, compiled once and run by the driver: what lies between costs more than SQLite itself."""

    def __init__(self, statement: Insert | Delete) -> None:
        compiled = statement.compile(dialect=sqlite_dialect(paramstyle="qmark"))
        self._sql = str(compiled)
        self._order = compiled.positiontup or []

    def run(self, cursor: sqlite3.Cursor, row: dict[str, Any]) -> int:
        """Run it for a row and return the key that the row got."""
        cursor.execute(self._sql, [row[key] for key in self._order])
        return cursor.lastrowid or 0


def _saving(table: Table, *changing: str, by: str = "id") -> _Statement:
    """Return an insert that replaces the columns that change when the row is there already."""
    statement = upsert(table)
    columns = {name: statement.excluded[name] for name in changing}
    return _Statement(statement.on_conflict_do_update(index_elements=[by], set_=columns))


def _removing(column: Column[Any]) -> _Statement:
    """Return what removes the rows of one value of a column."""
    return _Statement(delete(column.table).where(column == bindparam("gone")))


REMOVE_SESSION = tuple(map(_removing, (sessions.c.id, launches.c.session_id, intents.c.session_id)))
REMOVE_ROLE = _removing(roles.c.key)
SAVE_SESSION = _saving(sessions, "state", "body")
SAVE_LAUNCH = _saving(launches, "ended_at", "body")
SAVE_INCIDENT = _saving(incidents, "resolved_at", "body")
SAVE_ROLE = _saving(roles, "body", by="key")
ADD_DEATH = _Statement(insert(deaths))
ADD_INTENT = _Statement(upsert(intents).on_conflict_do_nothing())
ADD_EVENT = _Statement(insert(events).values({c.name: None for c in events.c if c.name != "seq"}))


def _session_row(session: Session) -> dict[str, Any]:
    return {"id": session.id, "name": session.name, "state": session.state.value, "body": _json(SESSION, session)}


def _launch_row(launch: Launch) -> dict[str, Any]:
    return {
        "id": launch.id,
        "session_id": launch.session_id,
        "created_at": launch.created_at,
        "ended_at": launch.ended_at,
        "body": _json(LAUNCH, launch),
    }


def _death_row(death: Death) -> dict[str, Any]:
    return {
        "id": death.id,
        "launch_id": death.launch_id,
        "session_id": death.session_id,
        "session": death.session,
        "at": death.at,
        "cause": death.cause.value,
        "body": _json(DEATH, death),
    }


def _intent_row(intent: Intent) -> dict[str, Any]:
    return {
        "id": intent.id,
        "launch_id": intent.launch_id,
        "session_id": intent.session_id,
        "at": intent.at,
        "body": _json(INTENT, intent),
    }


def _incident_row(incident: Incident) -> dict[str, Any]:
    return {
        "id": incident.id,
        "key": incident.key,
        "session_id": incident.session_id,
        "opened_at": incident.opened_at,
        "resolved_at": incident.resolved_at,
        "body": _json(INCIDENT, incident),
    }


def _event_row(entry: LogEntry) -> dict[str, Any]:
    return {
        "at": entry.at,
        "kind": entry.kind,
        "session_id": entry.session_id,
        "session": entry.session,
        "launch_id": entry.launch_id,
        "data": _data_json(entry.data),
    }


def _data_json(data: Mapping[str, Any]) -> str:
    """Return what an event says; names of files may hold what is no character, and only the slower way can write that."""
    try:
        return _json(DATA, data)
    except ValueError:
        return json.dumps(data)


def _json(adapter: TypeAdapter[Any], value: object) -> str:
    return adapter.dump_json(value).decode()
