"""Alembic's revisions of the schema."""
