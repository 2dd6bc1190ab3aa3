"""Vitals: what is known of a launch stands in one place of its session's body."""

import json

import sqlalchemy as sa
from alembic import op

from vigil.core.model.upgrade import nested

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Nest the fields of every stored session; a body that is no JSON stays, and its reader says so."""
    sessions, connection = sa.table("sessions", sa.column("id"), sa.column("body")), op.get_bind()
    for key, body in connection.execute(sa.select(sessions.c.id, sessions.c.body)).all():
        try:
            moved = json.dumps(nested(json.loads(body)), separators=(",", ":"))
        except (ValueError, RecursionError):
            continue
        connection.execute(sa.update(sessions).where(sessions.c.id == key).values(body=moved))
