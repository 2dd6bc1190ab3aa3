"""The tables. A `body` holds the whole frozen value as JSON; the other columns are for looking up."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, MetaData, String, Table, Text

from vigil.store.revision import HEAD as HEAD

metadata = MetaData()

sessions = Table(
    "sessions",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("state", String, nullable=False),
    Column("body", Text, nullable=False),
)

launches = Table(
    "launches",
    metadata,
    Column("id", String, primary_key=True),
    Column("session_id", String, nullable=False, index=True),
    Column("created_at", Float, nullable=False),
    Column("ended_at", Float),  # written with its summary; its death has a row of its own
    Column("body", Text, nullable=False),
)

deaths = Table(
    "deaths",
    metadata,
    Column("id", String, primary_key=True),
    Column("launch_id", String, nullable=False, unique=True),  # one launch, one death (P3)
    Column("session_id", String, nullable=False),
    Column("session", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("cause", String, nullable=False),
    Column("body", Text, nullable=False),
    Index("deaths_by_session", "session_id", "at"),
    Index("deaths_by_time", "at"),
)

intents = Table(
    "intents",
    metadata,
    Column("id", String, primary_key=True),
    Column("launch_id", String, nullable=False, index=True),
    Column("session_id", String, nullable=False, index=True),
    Column("at", Float, nullable=False),
    Column("body", Text, nullable=False),
)

incidents = Table(
    "incidents",
    metadata,
    Column("id", String, primary_key=True),
    Column("key", String, nullable=False),
    Column("session_id", String),
    Column("opened_at", Float, nullable=False),
    Column("resolved_at", Float),
    Column("body", Text, nullable=False),
    Index("incidents_by_time", "opened_at"),
)

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("kind", String, nullable=False),
    Column("session_id", String),
    Column("session", String),
    Column("launch_id", String),
    Column("data", Text, nullable=False),
    Index("events_by_session", "session_id", "seq"),
    sqlite_autoincrement=True,  # a sequence number is never given twice, not even after a purge
)

roles = Table(
    "roles",
    metadata,
    Column("key", String, primary_key=True),
    Column("body", Text, nullable=False),
)
