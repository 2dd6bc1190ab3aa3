"""Incidents: what a person should know, open or over."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "incidents",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("session_id", sa.String),
        sa.Column("opened_at", sa.Float, nullable=False),
        sa.Column("resolved_at", sa.Float),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("incidents_by_time", "incidents", ["opened_at"])
