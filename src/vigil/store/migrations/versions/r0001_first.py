"""The first tables: sessions, launches, deaths, intents, events."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False, unique=True),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "launches",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("session_id", sa.String, nullable=False, index=True),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "deaths",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("launch_id", sa.String, nullable=False, unique=True),
        sa.Column("session_id", sa.String, nullable=False),
        sa.Column("session", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("cause", sa.String, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("deaths_by_session", "deaths", ["session_id", "at"])
    op.create_index("deaths_by_time", "deaths", ["at"])
    op.create_table(
        "intents",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("launch_id", sa.String, nullable=False, index=True),
        sa.Column("session_id", sa.String, nullable=False, index=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("session_id", sa.String),
        sa.Column("session", sa.String),
        sa.Column("launch_id", sa.String),
        sa.Column("data", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("events_by_session", "events", ["session_id", "seq"])
