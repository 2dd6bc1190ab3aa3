"""Retention in the store: which rows are over and too many or too old, and how free pages go back to the disk.

Readers find the rows, so that the writer only deletes a few by their keys: no commit waits for more than that."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from vigil.core.model.retention import Retention
from vigil.kernel.durable import read_json, record_json

BATCH = 100  # rows of each table: a few milliseconds
SPARE_PAGES = 256  # free ones that stay: what is written next needs them
PAGES = 64  # that one step gives back
LEFT_S = 3600.0  # a row without its session, so much older, was left by a crash
FILE = "retention.json"

_HAS_SESSION = "EXISTS (SELECT 1 FROM sessions WHERE sessions.id = t.session_id)"
_LAST_DEATH = f"({_HAS_SESSION} AND t.at = (SELECT max(at) FROM deaths WHERE session_id = t.session_id))"
_LAST_LAUNCH = f"({_HAS_SESSION} AND t.created_at = (SELECT max(created_at) FROM launches WHERE session_id = t.session_id))"
_LAST_MEANT = f"({_HAS_SESSION} AND t.at = (SELECT max(at) FROM intents WHERE session_id = t.session_id))"
_OVER = {  # a table: the column of its age, and which rows may go; the last of each session that exists stays
    "deaths": ("at", f"t.at < :cut AND NOT {_LAST_DEATH}"),
    "launches": (
        "created_at",
        f"(t.created_at < :cut OR (t.created_at < :left AND NOT {_HAS_SESSION})) AND NOT {_LAST_LAUNCH}",
    ),
    "intents": ("at", f"(t.at < :cut OR (t.at < :left AND NOT {_HAS_SESSION})) AND NOT {_LAST_MEANT}"),
    "incidents": ("opened_at", "t.opened_at < :cut AND t.resolved_at IS NOT NULL"),
}
_SHOWN = ("events", "deaths", "incidents")  # people are told since when these are kept


@dataclass(frozen=True, slots=True)
class OldRows:
    """Keys of rows to delete, by table, and the moment of the newest of each."""

    keys: dict[str, list[str | int]] = field(default_factory=dict)
    until: dict[str, float] = field(default_factory=dict)

    @property
    def are_many(self) -> bool:
        """Say whether there may be more of them."""
        return any(len(keys) >= BATCH for keys in self.keys.values())


def find_old(reader: sqlite3.Connection, retention: Retention, now: float) -> OldRows:
    """Read which rows go next: the oldest of each table that is too long or too old."""
    too_old = now - retention.age_s if retention.age_s else 0.0
    most = {"deaths": retention.deaths, "launches": retention.deaths, "intents": retention.deaths}
    most["incidents"] = retention.incidents
    found: dict[str, list[tuple[str | int, float]]] = {"events": _old_events(reader, retention.events, too_old)}
    for table, (at, over) in _OVER.items():
        row = reader.execute(f"SELECT {at} FROM {table} ORDER BY {at} DESC LIMIT 1 OFFSET ?", (most[table] - 1,)).fetchone()
        asked = {"cut": max(too_old, row[0] if row else 0.0), "left": now - LEFT_S, "batch": BATCH}
        query = f"SELECT t.id, t.{at} FROM {table} AS t WHERE {over} ORDER BY t.{at} LIMIT :batch"
        found[table] = reader.execute(query, asked).fetchall()
    there = {table: rows for table, rows in found.items() if rows}
    until = {table: max(at for _, at in rows) for table, rows in there.items() if table in _SHOWN}
    return OldRows({table: [key for key, _ in rows] for table, rows in there.items()}, until)


def _old_events(reader: sqlite3.Connection, most: int, too_old: float) -> list[tuple[str | int, float]]:
    newest = reader.execute("SELECT max(seq) FROM events").fetchone()[0] or 0
    oldest = reader.execute("SELECT seq, at FROM events ORDER BY seq LIMIT ?", (BATCH,)).fetchall()
    return [(seq, at) for seq, at in oldest if seq <= newest - most or at < too_old]


def delete_old(writer: sqlite3.Connection, old: OldRows) -> None:
    """Delete these rows in one transaction."""
    with writer:
        for table, keys in old.keys.items():
            column = "seq" if table == "events" else "id"
            writer.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(key,) for key in keys])


def give_back(writer: sqlite3.Connection) -> bool:
    """Give some free pages back to the disk; say whether there are more than are spared."""
    free = int(writer.execute("PRAGMA freelist_count").fetchone()[0])
    if free <= SPARE_PAGES or writer.execute("PRAGMA auto_vacuum").fetchone()[0] != 2:
        return False
    # As a script: `execute` takes one step of the statement, and each step is one page.
    writer.executescript(f"PRAGMA incremental_vacuum({min(PAGES, free - SPARE_PAGES)})")
    return free - PAGES > SPARE_PAGES


def read_kept(database: Path) -> dict[str, float]:
    """Read until when records were deleted, by their kind; nothing of a kind that is whole."""
    known = read_json(str(database.with_name(FILE))) or {}
    return {kind: float(at) for kind in _SHOWN if isinstance(at := known.get(kind), int | float)}


def record_kept(database: Path, kept: dict[str, float]) -> None:
    record_json(str(database.with_name(FILE).resolve()), kept)
