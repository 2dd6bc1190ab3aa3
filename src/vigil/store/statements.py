"""What is written of each value: the statement that saves it."""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import Column, Delete, Insert, Table, bindparam, delete, insert
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.dialects.sqlite import insert as upsert

from vigil.codec import dump
from vigil.store.schema import deaths, events, incidents, intents, launches, roles, sessions

GONE = "gone"  # a parameter: the key of what is removed


class _Statement:
    """A statement of the hot path, compiled once and run by the driver: SQLAlchemy costs more than SQLite itself."""

    def __init__(self, statement: Insert | Delete) -> None:
        compiled = statement.compile(dialect=sqlite_dialect(paramstyle="qmark"))
        self._sql = str(compiled)
        self._order = compiled.positiontup or []

    def run(self, cursor: sqlite3.Cursor, value: Any) -> int:
        """Run it for a value, its columns named as its fields; return the row's key."""
        cursor.execute(self._sql, [_in_column(value, name) for name in self._order])
        return cursor.lastrowid or 0


def _in_column(value: Any, name: str) -> Any:
    if name == GONE:
        return value
    if name == "body":
        return dump(value)
    return dump(value.data) if name == "data" else getattr(value, name)


def _saving(table: Table, *changing: str, by: str = "id") -> _Statement:
    """Return an insert that updates the changing columns of an existing row."""
    statement = upsert(table)
    columns = {name: statement.excluded[name] for name in changing}
    return _Statement(statement.on_conflict_do_update(index_elements=[by], set_=columns))


def _removing(column: Column[Any]) -> _Statement:
    return _Statement(delete(column.table).where(column == bindparam(GONE)))


REMOVED = {  # a part of a change, and what goes with each key in it
    "removed": tuple(map(_removing, (sessions.c.id, launches.c.session_id, intents.c.session_id))),
    "removed_roles": (_removing(roles.c.key),),
}
SAVED = {  # a part of a change, and how each value in it is kept
    "roles": _saving(roles, "body", by="key"),
    "sessions": _saving(sessions, "state", "body"),
    "launches": _saving(launches, "ended_at", "body"),
    "deaths": _Statement(insert(deaths)),
    "intents": _Statement(upsert(intents).on_conflict_do_nothing()),
    "incidents": _saving(incidents, "resolved_at", "body"),
}
ADD_EVENT = _Statement(insert(events).values({c.name: None for c in events.c if c.name != "seq"}))
