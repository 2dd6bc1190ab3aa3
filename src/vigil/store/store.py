"""The store: reads and writes sessions, launches, deaths, intents, incidents and events.

Only `write` writes: all that one decision changed, with its events, in one durable transaction."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import DBAPIError

from vigil.codec import NotUnderstood, load
from vigil.core.effects import LogEntry, Persist
from vigil.core.model.death import Death
from vigil.core.model.incident import Incident
from vigil.core.model.retention import Retention
from vigil.core.model.session import Session
from vigil.core.model.team import Role
from vigil.core.model.upgrade import upgraded_incident, upgraded_session
from vigil.core.rules.escalation import is_settled
from vigil.errors import VigilError
from vigil.store.opening import DatabaseRefused, lengthen_log, make_engine, open_database, read_birth
from vigil.store.placing import copy_beside, file_of, files_of, is_whole, mark, put_aside, put_away_another, put_in_place
from vigil.store.retention import OldRows, delete_old, find_old, give_back, read_kept, record_kept
from vigil.store.schema import deaths, events, incidents, roles, sessions
from vigil.store.statements import ADD_EVENT, REMOVED, SAVED

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredEvent:
    seq: int
    entry: LogEntry


class Store:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = threading.Lock()  # a write or a deletion, one at a time
        self.aside = put_away_another(path)  # where the last foreign database is that lay in our place
        self._readers: Engine = make_engine(path, read_only=True)
        self._open()
        self._again: tuple[Persist, ...] = ()  # to be written before anything else
        self.begun_anew = 0  # how often another file was found in our place
        self.removed_until = read_kept(path)  # by kind of record: older ones may have been deleted

    def _open(self) -> None:
        self._engine: Engine = open_database(self._path)
        self._writer = _driver_of(self._engine)
        try:
            mark(self._path, self._writer)
        except sqlite3.Error as error:
            raise DatabaseRefused(f"{self._path} cannot be written ({error}): free some space, or mend the disk") from error
        lengthen_log(self._path, self._writer)
        self._files = files_of(self._path)
        self.created_at = read_birth(self._engine)

    def close(self) -> None:
        """Close the database; what was written is on disk already."""
        self._engine.dispose()
        self._readers.dispose()

    def write(self, changes: Sequence[Persist], whole: Callable[[], Persist] | None = None) -> list[StoredEvent]:
        """Make decisions durable, all or none, and return their events; `whole` gives the state for a file that is lost."""
        stored: list[StoredEvent] = []
        with self._writing:
            if whole is not None and self.is_lost():
                self._begin_anew(whole)
            with self._writer:  # one transaction
                cursor = self._writer.cursor()
                for change in (*self._again, *changes):
                    _write_one(cursor, change, stored)
            self._again = ()
        return stored

    def prune(self, retention: Retention, now: float) -> OldRows:
        """Delete a few of the rows that are beyond the retention; return them."""
        with closing(self._readers.raw_connection()) as reader:
            driver = reader.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            old = find_old(driver, retention, now)
        if old.keys and not self.is_lost():
            until = {kind: max(at, self.removed_until.get(kind, 0.0)) for kind, at in old.until.items()}
            if until.items() - self.removed_until.items():  # first: a list must not look whole that is not
                self.removed_until = self.removed_until | until
                record_kept(self._path, self.removed_until)
            with self._writing:
                delete_old(self._writer, old)
        return old

    def give_back(self) -> bool:
        """Give a few free pages back to the disk; say whether there are more."""
        with self._writing:
            return not self.is_lost() and give_back(self._writer)

    def is_lost(self) -> bool:
        """Say whether our file is no longer in its place: it was removed or replaced."""
        try:
            return file_of(self._path) != self._files[""]
        except OSError:  # the disk does not say: that is no loss (P7)
            return False

    def _begin_anew(self, everything: Callable[[], Persist]) -> None:
        """Put our database back and a foreign one aside; an open file is readable after removal, else write `everything`."""
        before = self._engine
        beside = copy_beside(self._path, self._writer)
        whole = is_whole(beside)
        self.aside = put_aside(self._path, self._files)
        if whole:
            put_in_place(beside, self._path)
        else:
            beside.unlink()
            self._again = (everything(),)
        self._open()
        before.dispose()
        self.begun_anew += 1

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Hold a connection to read by; VigilError if the disk, or a want of descriptors, forbids it."""
        try:
            with self._readers.connect() as connection:
                yield connection
        except DBAPIError as error:
            raise VigilError(f"the store cannot be read ({error.orig}): vigil doctor says more") from error

    def read_sessions(self) -> list[Session]:
        with self._engine.connect() as connection:
            return [upgraded_session(_read(Session, body)) for (body,) in connection.execute(select(sessions.c.body))]

    def read_roles(self) -> list[Role]:
        with self._engine.connect() as connection:
            return [_read(Role, body) for (body,) in connection.execute(select(roles.c.body))]

    def read_incidents(self, everything: bool = False, limit: int = 1000) -> list[Incident]:
        """Read incidents, newest first: the open ones, or all."""
        query = select(incidents.c.body).order_by(incidents.c.opened_at.desc()).limit(limit)
        if not everything:
            query = query.where(incidents.c.resolved_at.is_(None))
        with self._reading() as connection:
            return [upgraded_incident(_read(Incident, body)) for (body,) in connection.execute(query)]

    def read_untold(self, since: float, limit: int = 1000) -> list[Incident]:
        """Read resolved incidents whose end may be untold, and those resolved since a moment."""
        over = [incident for incident in self.read_incidents(everything=True, limit=limit) if incident.resolved_at is not None]
        return [incident for incident in over if not is_settled(incident) or (incident.resolved_at or 0.0) >= since]

    def read_incident(self, incident_id: str) -> Incident | None:
        with self._reading() as connection:
            body = connection.execute(select(incidents.c.body).where(incidents.c.id == incident_id)).scalar()
        return None if body is None else upgraded_incident(_read(Incident, body))

    def read_incident_events(self, incident: Incident, limit: int = 1000) -> list[StoredEvent]:
        """Read what the event log says of an incident, in order."""
        named = events.c.data.contains(json.dumps(incident.id), autoescape=True)
        query = select(events).where(events.c.kind.startswith("incident."), named, events.c.at >= incident.opened_at - 1.0)
        with self._reading() as connection:
            return [_event(row) for row in connection.execute(query.order_by(events.c.seq).limit(limit)).all()]

    def read_deaths(self, session_id: str | None = None, limit: int = 1000) -> list[Death]:
        """Read death records, newest first."""
        query = select(deaths.c.body).order_by(deaths.c.at.desc()).limit(limit)
        if session_id is not None:
            query = query.where(deaths.c.session_id == session_id)
        with self._reading() as connection:
            return [_read(Death, body) for (body,) in connection.execute(query)]

    def read_deaths_of_removed(self, name: str, limit: int = 1000) -> list[Death]:
        """Read the death records of removed sessions of a name, newest first."""
        gone = deaths.c.session_id.not_in(select(sessions.c.id))
        query = select(deaths.c.body).where(deaths.c.session == name, gone).order_by(deaths.c.at.desc()).limit(limit)
        with self._reading() as connection:
            return [_read(Death, body) for (body,) in connection.execute(query)]

    def read_died_with(self, death: Death, within_s: float) -> list[str]:
        """Read the names of the other sessions that died at about the same moment."""
        near = deaths.c.at.between(death.at - within_s, death.at + within_s)
        query = select(deaths.c.session).where(near, deaths.c.session_id != death.session_id).order_by(deaths.c.at)
        with self._reading() as connection:
            return list(dict.fromkeys(name for (name,) in connection.execute(query)))

    def read_death(self, death_id: str) -> Death | None:
        with self._reading() as connection:
            body = connection.execute(select(deaths.c.body).where(deaths.c.id == death_id)).scalar()
        return None if body is None else _read(Death, body)

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
        with self._reading() as connection:
            rows = connection.execute(query).all()
        found = [_event(row) for row in rows]
        return found[::-1] if newest else found


def _driver_of(engine: Engine) -> sqlite3.Connection:
    """Return the engine's one writing connection: the hot path needs no more."""
    driver = engine.raw_connection().driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _write_one(cursor: sqlite3.Cursor, change: Persist, stored: list[StoredEvent]) -> None:
    for part, statements in REMOVED.items():
        for key, statement in product(getattr(change, part), statements):
            statement.run(cursor, key)
    for part, saving in SAVED.items():
        for value in getattr(change, part):
            saving.run(cursor, value)
    for entry in change.log:
        stored.append(StoredEvent(ADD_EVENT.run(cursor, entry), entry))


def _read(kind: type[T], body: str) -> T:
    """Return a stored value; an error names the field without its value, which may be a secret."""
    try:
        return load(kind, body)
    except NotUnderstood as problem:
        raise VigilError(f"a stored record cannot be read: {problem.hidden}; vigil doctor says more") from None


def _event(row: Any) -> StoredEvent:
    entry = LogEntry(row.at, row.kind, row.session_id, row.session, row.launch_id, json.loads(row.data))
    return StoredEvent(row.seq, entry)
