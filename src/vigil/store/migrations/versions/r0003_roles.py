"""Roles: what manifests declare, and what is counted against it."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table("roles", sa.Column("key", sa.String, primary_key=True), sa.Column("body", sa.Text, nullable=False))
