"""Real agents under Vigil, offline: `make test-real`, never part of `make test` (docs/real-clients.md)."""
