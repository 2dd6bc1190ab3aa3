"""The store: what is durable. SQLite in WAL mode; a state change and its event are one transaction."""
