"""Reading the database without the daemon: its schema, its state, its sessions. Never writes."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from vigil.store.revision import HEAD

CHECKED_BYTES = 256 << 20  # a larger one is not checked whole: that would take minutes
READ_S = 5.0


@dataclass(frozen=True)
class Database:
    """What we know of a database: `state` is absent, empty, current, older, newer, foreign, damaged or unreadable."""

    state: str
    why: str = ""
    size_bytes: int = 0
    session_ids: frozenset[str] | None = None  # None: they could not be read


def read_database(path: Path) -> Database:
    """Return what a database is."""
    try:
        size = path.stat().st_size
        wal = path.with_name(path.name + "-wal")
        beside = wal.stat().st_size if wal.exists() else 0
    except FileNotFoundError:
        return Database("absent")
    except OSError as error:
        return Database("unreadable", error.strerror or str(error))
    if size + beside == 0:
        return Database("empty", session_ids=frozenset())
    try:
        connection = sqlite3.connect(_uri(path, wal), uri=True, timeout=READ_S)
        try:
            return _read(connection, size + beside)
        finally:
            connection.close()
    except sqlite3.OperationalError as error:  # not opened, or locked: that says nothing of its content
        return Database("unreadable", str(error), size)
    except sqlite3.DatabaseError as error:
        return Database("damaged", str(error), size)


def _uri(path: Path, wal: Path) -> str:
    # A reader of a database in WAL mode creates missing files beside it. If they are missing they hold nothing, and no process
    # writes: so we read the database as it lies.
    return f"file:{quote(str(path))}?mode=ro{'' if wal.exists() else '&immutable=1'}"


def _read(connection: sqlite3.Connection, size: int) -> Database:
    if size <= CHECKED_BYTES:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            return Database("damaged", str(found).splitlines()[0], size)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return Database("empty", size_bytes=size, session_ids=frozenset())
    if "alembic_version" not in tables:
        return Database("foreign", "it has no schema version", size)
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    revision = str(row[0]) if row else ""
    ids = {str(id_) for (id_,) in connection.execute("SELECT id FROM sessions")} if "sessions" in tables else set()
    state = "newer" if revision > HEAD else "older" if revision < HEAD else "current"
    return Database(state, f"schema {revision or 'none'}, this Vigil knows {HEAD}", size, frozenset(ids))
