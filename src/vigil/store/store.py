"""Reading and writing sessions, launches, deaths, intents and events.

All writing is one function, `write`: whatever one decision changed, and the events that say so, in one durable transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Engine, delete, insert, select
from sqlalchemy.dialects.sqlite import insert as upsert

from vigil.core.effects import LogEntry, Persist
from vigil.core.model import Death, Intent, Launch, Session
from vigil.store.opening import make_engine, open_database
from vigil.store.schema import deaths, events, intents, launches, sessions

SESSION = TypeAdapter(Session)
LAUNCH = TypeAdapter(Launch)
DEATH = TypeAdapter(Death)
INTENT = TypeAdapter(Intent)

EVENTS_KEPT = 200_000  # the log is bounded: the oldest go first


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A line of the event log with its sequence number."""

    seq: int
    entry: LogEntry


class Store:
    """One open database."""

    def __init__(self, path: Path) -> None:
        self._engine: Engine = open_database(path)
        self._readers: Engine = make_engine(path, read_only=True)

    def close(self) -> None:
        """Close the database; what was written is on disk already."""
        self._engine.dispose()
        self._readers.dispose()

    def write(self, changes: Sequence[Persist]) -> list[StoredEvent]:
        """Make decisions durable, all or none, and return their events with their numbers."""
        stored: list[StoredEvent] = []
        with self._engine.begin() as connection:
            for change in changes:
                _write_one(connection, change, stored)
            if stored and stored[-1].seq % 1000 < len(stored):
                connection.execute(delete(events).where(events.c.seq <= stored[-1].seq - EVENTS_KEPT))
        return stored

    def read_sessions(self) -> list[Session]:
        """Read every session."""
        with self._engine.connect() as connection:
            return [SESSION.validate_json(body) for (body,) in connection.execute(select(sessions.c.body))]

    def read_deaths(self, session_id: str | None = None, limit: int = 1000) -> list[Death]:
        """Read death records, newest first."""
        query = select(deaths.c.body).order_by(deaths.c.at.desc()).limit(limit)
        if session_id is not None:
            query = query.where(deaths.c.session_id == session_id)
        with self._readers.connect() as connection:
            return [DEATH.validate_json(body) for (body,) in connection.execute(query)]

    def read_death(self, death_id: str) -> Death | None:
        """Read one death record."""
        with self._readers.connect() as connection:
            body = connection.execute(select(deaths.c.body).where(deaths.c.id == death_id)).scalar()
        return None if body is None else DEATH.validate_json(body)

    def read_events(
        self,
        after_seq: int = 0,
        session_id: str | None = None,
        since: float | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> list[StoredEvent]:
        """Read the event log in order; with `newest` the last ones, still in order."""
        query = select(events).where(events.c.seq > after_seq).limit(limit)
        if session_id is not None:
            query = query.where(events.c.session_id == session_id)
        if since is not None:
            query = query.where(events.c.at >= since)
        query = query.order_by(events.c.seq.desc() if newest else events.c.seq)
        with self._readers.connect() as connection:
            rows = connection.execute(query).all()
        found = [
            StoredEvent(row.seq, LogEntry(row.at, row.kind, row.session_id, row.session, row.launch_id, json.loads(row.data)))
            for row in rows
        ]
        return found[::-1] if newest else found


def _write_one(connection: Connection, change: Persist, stored: list[StoredEvent]) -> None:
    for session_id in change.removed:
        connection.execute(delete(sessions).where(sessions.c.id == session_id))
        connection.execute(delete(launches).where(launches.c.session_id == session_id))
        connection.execute(delete(intents).where(intents.c.session_id == session_id))
    if change.sessions:
        rows: list[dict[str, Any]] = [
            {"id": session.id, "name": session.name, "state": session.state.value, "body": _json(SESSION, session)}
            for session in change.sessions
        ]
        statement = upsert(sessions)
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=["id"], set_={"state": statement.excluded.state, "body": statement.excluded.body}
            ),
            rows,
        )
    if change.launches:
        rows = [
            {
                "id": launch.id,
                "session_id": launch.session_id,
                "created_at": launch.created_at,
                "ended_at": launch.ended_at,
                "body": _json(LAUNCH, launch),
            }
            for launch in change.launches
        ]
        statement = upsert(launches)
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=["id"], set_={"ended_at": statement.excluded.ended_at, "body": statement.excluded.body}
            ),
            rows,
        )
    for death in change.deaths:
        connection.execute(
            insert(deaths),
            {
                "id": death.id,
                "launch_id": death.launch_id,
                "session_id": death.session_id,
                "session": death.session,
                "at": death.at,
                "cause": death.cause.value,
                "body": _json(DEATH, death),
            },
        )
    for intent in change.intents:
        row = {
            "id": intent.id,
            "launch_id": intent.launch_id,
            "session_id": intent.session_id,
            "at": intent.at,
            "body": _json(INTENT, intent),
        }
        connection.execute(upsert(intents).on_conflict_do_nothing(), row)
    for entry in change.log:
        row = {
            "at": entry.at,
            "kind": entry.kind,
            "session_id": entry.session_id,
            "session": entry.session,
            "launch_id": entry.launch_id,
            "data": json.dumps(entry.data),
        }
        result = connection.execute(insert(events), row)
        assert result.inserted_primary_key is not None
        stored.append(StoredEvent(result.inserted_primary_key[0], entry))


def _json(adapter: TypeAdapter[Any], value: object) -> str:
    return adapter.dump_json(value).decode()
