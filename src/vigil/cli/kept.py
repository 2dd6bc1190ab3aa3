"""What a list says of records that are deleted by now ([retention])."""

from __future__ import annotations

from datetime import datetime

import click


def say_kept(kind: str, removed_until: str, since: float | None = None) -> None:
    """Say, in a line, that a list does not reach as far back as it looks; nothing if it does."""
    if removed_until and (since is None or since <= datetime.fromisoformat(removed_until).timestamp()):
        click.echo(f"vigil: {kind} are kept from {removed_until} on; older ones were deleted ([retention])", err=True)
