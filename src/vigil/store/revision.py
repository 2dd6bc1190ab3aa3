"""The newest revision of the database's schema, alone: whoever only compares it need not import the tables."""

HEAD = "0004"  # the newest in migrations/versions
