"""Moments as a person types and reads them: in local time, `8h` ago, at `22:00`, `yesterday`."""

from __future__ import annotations

import re
import time
from datetime import date, datetime, timedelta

import click

from vigil.cli.options import seconds_of

CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
FORMS = "say how long ago (90s, 10m, 8h, 7d), a time (22:00), today, yesterday, a date (2026-11-17), or RFC 3339"


def moment(text: str, now: float | None = None) -> float:
    """Return the moment a user means; a time of day is the last one that was."""
    now = time.time() if now is None else now
    today = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
    words = text.strip().lower()
    if words in ("now", "today", "yesterday"):
        return {"now": now, "today": today.timestamp(), "yesterday": (today - timedelta(days=1)).timestamp()}[words]
    if clock := CLOCK.fullmatch(words):
        at = today.replace(hour=int(clock[1]), minute=int(clock[2]), second=int(clock[3] or 0))
        return (at if at.timestamp() <= now else at - timedelta(days=1)).timestamp()
    try:
        return datetime.fromisoformat(text.strip()).timestamp()  # without an offset it is local
    except ValueError:
        pass
    try:
        ago_s = seconds_of(words)
    except click.BadParameter:
        raise click.BadParameter(f"{text!r} is no moment: {FORMS}") from None
    if ago_s < 0:
        raise click.BadParameter(f"{text!r} is still to come: {FORMS}")
    return now - ago_s


def local(moment_: str) -> datetime:
    """Return a moment of the interface in local time."""
    return datetime.fromisoformat(moment_).astimezone()


def day(on: date) -> str:
    """Return a day for a heading."""
    return on.strftime("%a %d %b %Y")
