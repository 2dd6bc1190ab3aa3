"""Identity: a plain name or `workspace/team/role/index`, checked at the door; keys are exact, never a prefix (DESIGN 4)."""

from __future__ import annotations

import re

PART = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
RULE = "use lower-case letters, digits, - and _, starting with a letter or digit, at most 64"


def why_not_a_name(name: str) -> str | None:
    """Return why a plain name cannot be an identity; None if it can."""
    if not name:
        return f"a name must not be empty: {RULE}"
    # fullmatch, not `$`: that would let a trailing newline through.
    if PART.fullmatch(name) is None:
        return f"{name[:80]!r} is not a name: {RULE}"
    return None


def why_not_an_identity(identity: str) -> str | None:
    """Return why a name of any form cannot be an identity; None if it can."""
    parts = identity.split("/")
    if len(parts) not in (1, 4):
        return f"{identity[:80]!r} is not a name and not workspace/team/role/index"
    return next(filter(None, map(why_not_a_name, parts)), None)


def team_of(identity: str) -> tuple[str, str] | None:
    """Return the workspace and team that an identity names; None for a plain name."""
    parts = identity.split("/")
    return (parts[0], parts[1]) if len(parts) == 4 else None


def stem_of(command: str) -> str:
    """Return a plain identity made from a command; the caller makes it unique."""
    base = command.rstrip("/").rpartition("/")[2].lower()
    cleaned = re.sub(r"[^a-z0-9_-]+", "-", base).strip("-_")
    return cleaned[:40] or "session"
