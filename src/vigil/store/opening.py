"""Opening the database: created when new, migrated when old, refused when damaged or newer; never overwritten."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import NullPool, StaticPool

from vigil.errors import VigilError
from vigil.store.revision import HEAD
from vigil.store.schema import metadata

BIRTHS_FROM = 1577836800  # 2020: seconds from here fit SQLite's `user_version` for longer than we do
CHECKED_BYTES = 256 << 20  # a larger database is not read whole at every start
VACUUMED_BYTES = 64 << 20  # half a second
INCREMENTAL = 2


class DatabaseRefused(VigilError):
    """The database cannot be used as it is; it was not changed."""


def open_database(path: Path) -> Engine:
    revision = read_revision(path)
    if revision is not None and revision > HEAD:
        raise DatabaseRefused(
            f"{path} was written by a newer Vigil (schema {revision}, this one knows {HEAD}): "
            "upgrade Vigil, or set VIGIL_HOME to another folder"
        )
    old_mask = os.umask(0o077)
    try:
        engine = make_engine(path)
        if revision is None:
            _create(engine)
        elif revision != HEAD:
            migrate(engine)
        make_shrinkable(path, engine)
        with engine.begin() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM events WHERE seq < 0")
            _remember_birth(connection)
    except Exception as error:
        raise DatabaseRefused(f"{path} cannot be opened: {_reason(error)}") from error
    finally:
        os.umask(old_mask)
    return engine


def _remember_birth(connection: Connection) -> None:
    """Record once when a database was made; an older one is as old as its oldest event."""
    if connection.exec_driver_sql("PRAGMA user_version").scalar():
        return
    oldest = connection.exec_driver_sql("SELECT min(at) FROM events").scalar()
    born_at = time.time() if oldest is None else float(oldest)
    # Rounded down: a home's first session starts in the second that made its database, and must not be older.
    connection.exec_driver_sql(f"PRAGMA user_version = {max(1, math.floor(born_at - BIRTHS_FROM))}")


def read_birth(engine: Engine) -> float:
    with engine.connect() as connection:
        return BIRTHS_FROM + float(connection.exec_driver_sql("PRAGMA user_version").scalar() or 0)


DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)  # other errors are the disk's or a lock's: the file may be well


def read_revision(path: Path) -> str | None:
    """Read a database's schema; None if there is none yet, DatabaseRefused if it is damaged."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    way_out = f"Move it away to start anew (mv {path} {path}.damaged), or restore a copy"
    try:
        connection = sqlite3.connect(path, timeout=5)
        try:
            if path.stat().st_size <= CHECKED_BYTES:
                found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if found != "ok":
                    raise DatabaseRefused(f"{path} is damaged ({str(found).splitlines()[0]}). {way_out}")
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not tables:
                return None
            if "alembic_version" not in tables:
                raise DatabaseRefused(f"{path} is a database, but not Vigil's. {way_out}")
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            return row[0] if row else None
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF not in DAMAGED:
            raise DatabaseRefused(f"{path} cannot be read ({error}). Nothing was changed; mend that, and ask again") from error
        raise DatabaseRefused(f"{path} is damaged ({error}). {way_out}") from error


LOG_BYTES = 1000 * 4152  # SQLite moves so many pages, with their headers, into the database
CACHE_BYTES = 2000 << 10
PLENTY_BYTES = 256 << 20
LONGEST_LOG_BYTES = 8 << 20  # what a burst made longer is cut to this once it is in the database
SHRINKS = "auto_vacuum=INCREMENTAL"  # first, and only for a database that is made now: it is a write
PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "secure_delete=ON",
    f"cache_size=-{CACHE_BYTES >> 10}",
    f"journal_size_limit={LONGEST_LOG_BYTES}",
)


def make_engine(path: Path, read_only: bool = False) -> Engine:
    """Return an engine: one writer connection for the daemon's life, or readers as they come."""

    def connect() -> sqlite3.Connection:
        # Quoted, and opened here: in a URL a home called `a?b` would be another file.
        uri = f"file:{quote(str(path))}{'?mode=ro' if read_only else ''}"
        is_new = not path.exists() or path.stat().st_size == 0
        connection = sqlite3.connect(uri, uri=True, timeout=5, check_same_thread=False)
        for pragma in () if read_only else (SHRINKS, *PRAGMAS) if is_new else PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    return create_engine(
        "sqlite://",
        creator=connect,
        hide_parameters=True,  # an error would show the row, and with it the command
        poolclass=NullPool if read_only else StaticPool,
    )


def lengthen_log(path: Path, connection: sqlite3.Connection) -> None:
    """Make the write-ahead log at once as long as SQLite lets it grow, where there is room.

    A commit into a growing file waits for the file system's journal, and so for other writers: for the keeper's record of the
    same death. What is too large for the cache goes into the log, even if rolled back."""
    disk = os.statvfs(path.parent)
    if disk.f_bavail * disk.f_frsize < PLENTY_BYTES:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE padding (bytes BLOB)")
        connection.execute(f"INSERT INTO padding VALUES (zeroblob({LOG_BYTES + CACHE_BYTES}))")
        connection.rollback()
        with open(f"{path}-wal", "rb") as log:
            os.fsync(log.fileno())
    except (sqlite3.Error, OSError):  # a quota, or a disk that fails now: without it a commit only takes longer
        connection.rollback()


def make_shrinkable(path: Path, engine: Engine) -> None:
    """Let a small database of a version before give free pages back; a large or a busy one stays as it is.

    SQLite writes it anew in one transaction: a crash leaves it as it was."""
    size, disk = path.stat().st_size, os.statvfs(path.parent)
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        if driver.execute("PRAGMA auto_vacuum").fetchone()[0] == INCREMENTAL:
            return
        if size > VACUUMED_BYTES or disk.f_bavail * disk.f_frsize < 3 * size + PLENTY_BYTES:
            return
        with contextlib.suppress(sqlite3.OperationalError):  # somebody reads it: next time
            driver.execute(f"PRAGMA {SHRINKS}")
            driver.execute("VACUUM")
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _create(engine: Engine) -> None:
    """Make a new database at once, as tested against the migrations: migrating nothing took a quarter of a second."""
    with engine.begin() as connection:
        # First: a killed start leaves a database that is known to be unfinished.
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        metadata.create_all(connection)
        connection.exec_driver_sql("INSERT INTO alembic_version (version_num) VALUES (?)", (HEAD,))


def migrate(engine: Engine) -> None:
    from alembic import command  # only here: it costs as much as all the rest of a start
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _reason(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]
