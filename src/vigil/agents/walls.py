"""Walls: what an error of the model's API means for an agent of Claude's kind, and until when.

A limit ends by itself. What nobody but a person can change is `auth`: a login, an account on hold, a bill. The rest is `error`.
"""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from vigil.agents.shapes import words
from vigil.core.said import Said, What

BY_STATUS: dict[int, What] = {401: What.AUTH, 403: What.AUTH, 429: What.LIMIT}
BY_KIND: dict[str, What] = {  # as Claude Code and Qwen Code name them; their other kinds are errors
    "rate_limit": What.LIMIT,
    "authentication_failed": What.AUTH,
    "oauth_org_not_allowed": What.AUTH,
    "account_on_hold": What.AUTH,
    "verification_required": What.AUTH,
    "billing_error": What.AUTH,
    "cloud_credential_error": What.AUTH,
}
BY_WORDS: tuple[tuple[re.Pattern[str], What], ...] = (  # where neither is said; looked for in errors only, never in answers
    (re.compile(r"limit reached|hit your [\w' -]{0,60}limit\b"), What.LIMIT),
    (re.compile(r"Invalid API key|Please run /login|OAuth token (?:has )?(?:expired|revoked)"), What.AUTH),
)

EPOCH = re.compile(r"limit reached\|(\d{10})\b")
# "resets 3pm (Europe/Berlin)", "resets Nov 17, 3:30pm (UTC)", "resets Jan 2, 2027, 3pm (UTC)"
RESETS = re.compile(
    r"resets (?:(?P<day>[A-Z][a-z]{2} \d{1,2})(?:, (?P<year>\d{4}))?(?:,| at) )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?P<half>[ap]m) \((?P<zone>[\w/+-]{1,64})\)"
)


def wall(kind: str, status: float | None, said: str, at: float | None, subagent: str = "") -> Said:
    """Return what an error that ended a turn says."""
    said = said[:1000]
    what = BY_STATUS.get(int(status or 0)) or BY_KIND.get(kind) or _by_words(said)
    until = resets_at(said, at) if what is What.LIMIT else None
    return Said(what, at, name=kind, text=words(said) or kind, until=until, subagent=subagent)


def _by_words(said: str) -> What:
    return next((what for pattern, what in BY_WORDS if pattern.search(said)), What.ERROR)


def resets_at(said: str, at: float | None) -> float | None:
    """Return the moment when a limit ends, if the words say it; a time of day is the next one after they were said."""
    if found := EPOCH.search(said):
        return float(found[1])
    found = RESETS.search(said)
    if not found:
        return None
    try:
        return _next(found, time.time() if at is None else at)
    except (KeyError, ValueError, OSError, OverflowError):  # no such day, no such zone
        return None


def _next(found: re.Match[str], at: float) -> float:
    now = datetime.fromtimestamp(at, ZoneInfo(found["zone"]))
    hour = int(found["hour"]) % 12 + (12 if found["half"] == "pm" else 0)
    moment = now.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
    if not found["day"]:
        return (moment if moment > now else moment + timedelta(days=1)).timestamp()
    day = datetime.strptime(f"{found['day']} {found['year'] or now.year}", "%b %d %Y")
    moment = moment.replace(year=day.year, month=day.month, day=day.day)
    passed = not found["year"] and moment < now - timedelta(days=1)
    return (moment.replace(year=day.year + 1) if passed else moment).timestamp()
