"""Moments, as the interface writes them: RFC 3339, in UTC, to the millisecond. Standard library only."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=8192)  # lists of sessions repeat the same moments
def rfc3339(at: float | None) -> str | None:
    """Return a moment as text; None stays None."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
