"""What is written of each value: its row, the statement that saves it, and the trimming of too many."""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import Column, Delete, Insert, Table, bindparam, delete, insert, select
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.dialects.sqlite import insert as upsert

from vigil.codec import dump
from vigil.core.effects import LogEntry
from vigil.core.model.death import Death, Intent
from vigil.core.model.incident import Incident
from vigil.core.model.launch import Launch
from vigil.core.model.session import Session
from vigil.store.schema import deaths, events, incidents, intents, launches, roles, sessions

INCIDENTS_KEPT = 5_000
DEATHS_KEPT = 50_000
EVENTS_KEPT = 200_000  # the log is bounded: the oldest go first


def old_incidents() -> Delete:
    """Return the removal of incidents that are long over."""
    newest = select(incidents.c.id).order_by(incidents.c.opened_at.desc()).limit(INCIDENTS_KEPT)
    return delete(incidents).where(incidents.c.resolved_at.is_not(None), incidents.c.id.not_in(newest))


def old_deaths() -> Delete:
    """Return the removal of the oldest death records, when there are very many."""
    newest = select(deaths.c.id).order_by(deaths.c.at.desc()).limit(DEATHS_KEPT)
    return delete(deaths).where(deaths.c.id.not_in(newest))


def old_launches() -> Delete:
    """Return the removal of launches that ended long ago."""
    newest = select(launches.c.id).order_by(launches.c.created_at.desc()).limit(DEATHS_KEPT)
    return delete(launches).where(launches.c.ended_at.is_not(None), launches.c.id.not_in(newest))


class _Statement:
    """A statement of the hot path, compiled once and run by the driver: SQLAlchemy costs more than SQLite itself."""

    def __init__(self, statement: Insert | Delete) -> None:
        compiled = statement.compile(dialect=sqlite_dialect(paramstyle="qmark"))
        self._sql = str(compiled)
        self._order = compiled.positiontup or []

    def run(self, cursor: sqlite3.Cursor, row: dict[str, Any]) -> int:
        """Run it for a row; return the row's key."""
        cursor.execute(self._sql, [row[key] for key in self._order])
        return cursor.lastrowid or 0


def _saving(table: Table, *changing: str, by: str = "id") -> _Statement:
    """Return an insert that updates the changing columns of an existing row."""
    statement = upsert(table)
    columns = {name: statement.excluded[name] for name in changing}
    return _Statement(statement.on_conflict_do_update(index_elements=[by], set_=columns))


def _removing(column: Column[Any]) -> _Statement:
    """Return the removal of the rows of one value of a column."""
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


def session_row(session: Session) -> dict[str, Any]:
    return {"id": session.id, "name": session.name, "state": session.state.value, "body": dump(session)}


def launch_row(launch: Launch) -> dict[str, Any]:
    return {
        "id": launch.id,
        "session_id": launch.session_id,
        "created_at": launch.created_at,
        "ended_at": launch.ended_at,
        "body": dump(launch),
    }


def death_row(death: Death) -> dict[str, Any]:
    return {
        "id": death.id,
        "launch_id": death.launch_id,
        "session_id": death.session_id,
        "session": death.session,
        "at": death.at,
        "cause": death.cause.value,
        "body": dump(death),
    }


def intent_row(intent: Intent) -> dict[str, Any]:
    return {
        "id": intent.id,
        "launch_id": intent.launch_id,
        "session_id": intent.session_id,
        "at": intent.at,
        "body": dump(intent),
    }


def incident_row(incident: Incident) -> dict[str, Any]:
    return {
        "id": incident.id,
        "key": incident.key,
        "session_id": incident.session_id,
        "opened_at": incident.opened_at,
        "resolved_at": incident.resolved_at,
        "body": dump(incident),
    }


def event_row(entry: LogEntry) -> dict[str, Any]:
    return {
        "at": entry.at,
        "kind": entry.kind,
        "session_id": entry.session_id,
        "session": entry.session,
        "launch_id": entry.launch_id,
        "data": dump(entry.data),
    }
