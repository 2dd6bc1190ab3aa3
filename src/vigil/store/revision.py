"""The newest revision of the database's schema, alone: comparing it needs no import of the tables."""

HEAD = "0004"  # the newest in migrations/versions
