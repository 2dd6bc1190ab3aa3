"""The database's place: whether the file there is this home's own, and how ours comes back; a foreign one is kept beside.

Database and home share a number: another instance's sessions live by their pids too, and taking them over ends them (P9)."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

from vigil.kernel.durable import read_json, record_json
from vigil.store.opening import DatabaseRefused, read_revision

MARK = "instance.json"
FOUND = "found"  # a foreign database becomes vigil.db.found-DATE
WITH_IT = ("-wal", "-shm")
File = tuple[int, int] | None


def file_of(path: str | Path) -> File:
    """Return which file lies at a path; None if none does, OSError if the disk does not say."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def files_of(path: Path) -> dict[str, File]:
    """Return the files of a database, by the ends of their names."""
    return {end: file_of(f"{path}{end}") for end in ("", *WITH_IT)}


def put_away_another(path: Path) -> Path | None:
    """Put another instance's database aside; return where it is now, None if there was none."""
    known, found = _mark_of(path), _number_in(path)
    return put_aside(path, {}) if known and found and known != found else None


def mark(path: Path, connection: sqlite3.Connection) -> None:
    """Give a database and its home their shared number, where one lacks it."""
    known = _mark_of(path)
    found = int(connection.execute("PRAGMA application_id").fetchone()[0])
    number = found or known or secrets.randbelow(2**31 - 1) + 1
    if not known:
        record_json(os.path.realpath(path.with_name(MARK)), {"number": number})
    if not found:
        connection.execute(f"PRAGMA application_id = {number}")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # a copy of the one file has it too


def _mark_of(path: Path) -> int:
    known = read_json(str(path.with_name(MARK)))
    number = known.get("number") if known is not None else None
    return number if isinstance(number, int) else 0


def _number_in(path: Path) -> int:
    """Read a database's number; 0 if it has none, or we cannot judge it."""
    if file_of(path) is None:
        return 0
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=5)) as connection:
            return int(connection.execute("PRAGMA application_id").fetchone()[0])
    except sqlite3.Error:
        return 0


def put_aside(path: Path, ours: dict[str, File]) -> Path | None:
    """Rename a foreign database with its files; remove our log, which opening it would apply. Return the new name."""
    aside = _free_name(path)
    there = file_of(path) is not None and os.stat(path).st_size > 0
    for end in ("", *WITH_IT):
        found = file_of(f"{path}{end}")
        if found is None:
            continue
        if not there or found == ours.get(end):
            os.unlink(f"{path}{end}")
        else:
            os.rename(f"{path}{end}", f"{aside}{end}")
    return aside if there else None


def _free_name(path: Path) -> Path:
    base = f"{path.name}.{FOUND}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
    names = [base, *(f"{base}-{number}" for number in range(2, 100))]
    return next(name for name in map(path.with_name, names) if not name.exists())


def copy_beside(path: Path, connection: sqlite3.Connection) -> Path:
    """Copy an open database, even after its file was removed; return the copy, which is whole."""
    beside = path.with_name(f"{path.name}.new")
    for end in ("", *WITH_IT, "-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{beside}{end}")
    os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with contextlib.closing(sqlite3.connect(beside)) as copy:
        connection.backup(copy)
        copy.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return beside


def is_whole(beside: Path) -> bool:
    """Say whether a copy can be used: its source may have been damaged before it was removed."""
    try:
        return read_revision(beside) is not None
    except DatabaseRefused:
        return False


def put_in_place(beside: Path, path: Path) -> None:
    os.rename(beside, path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
