"""Walls: what an error of the model's API means for an agent, and until when.

A limit ends by itself. `auth` needs a person: a login, an account on hold, a bill. The rest is `error`."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from vigil.agents.shapes import words
from vigil.core.model.speech import Said, What

BY_STATUS: dict[int, What] = {401: What.AUTH, 403: What.AUTH, 429: What.LIMIT}
BY_KIND: dict[str, What] = {  # Claude Code's and Qwen Code's names; their other kinds are errors
    "rate_limit": What.LIMIT,
    "authentication_failed": What.AUTH,
    "oauth_org_not_allowed": What.AUTH,
    "account_on_hold": What.AUTH,
    "verification_required": What.AUTH,
    "billing_error": What.AUTH,
    "cloud_credential_error": What.AUTH,
}
BY_WORDS: tuple[tuple[re.Pattern[str], What], ...] = (  # without a status and a kind; for errors only, never for answers
    (re.compile(r"limit reached|hit your [\w' -]{0,60}limit\b"), What.LIMIT),
    (re.compile(r"Invalid API key|Please run /login|OAuth token (?:has )?(?:expired|revoked)"), What.AUTH),
)
EPOCH = re.compile(r"limit reached\|(\d{10})\b")
WHEN = r"(?:resets?|reset at|try again at|available at)"
# "2026-11-17T15:00:00Z", with its offset
EXACT = re.compile(WHEN + r"(?: at)? (\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d))", re.IGNORECASE)
# "resets 3pm (Europe/Berlin)", "resets Nov 17, 3:30pm (UTC)", "try again at Nov 17th, 2026 3:45 PM", "try again at 15:45"
CLOCK = re.compile(
    WHEN + r"(?: at)? (?:(?P<day>[A-Z][a-z]{2} \d{1,2})(?:st|nd|rd|th)?(?:,? (?P<year>\d{4}))?(?:,| at)? )?"
    r"(?:(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))? ?(?P<half>[aApP][mM])|(?P<hour24>\d{1,2}):(?P<minute24>\d{2}))\b"
    r"(?: \((?P<zone>[\w/+-]{1,64})\))?",
    re.IGNORECASE,
)
# "try again in 3 days 4 hours 5 minutes", "reset after 18h23m9s", "Please try again in 6m0s", "retry after 30 seconds"
RELATIVE = re.compile(
    r"(?:try again|retry|resets?|available)(?: again)? (?:in|after):? (?P<parts>(?:\d{1,6}(?:\.\d+)? ?[a-z]+[, ]*(?:and )?)+)",
    re.IGNORECASE,
)
PART = re.compile(r"(\d{1,6}(?:\.\d+)?) ?([a-z]+)")
UNITS_S = {"ms": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hr": 3600.0}
UNITS_S |= {"hour": 3600.0, "d": 86400.0, "day": 86400.0, "week": 7 * 86400.0}
JUST_PASSED_S = 300.0  # a time of day that passed this recently is today's, not tomorrow's


def wall(kind: str, status: float | None, said: str, at: float | None, subagent: str = "") -> Said:
    """Return the wall that ended a turn, or the error."""
    said = said[:1000]
    what = BY_STATUS.get(int(status or 0)) or BY_KIND.get(kind) or _by_words(said)
    until = resets_at(said, at) if what is What.LIMIT else None
    return Said(what, at, name=kind, text=words(said) or kind, until=until, subagent=subagent)


def _by_words(said: str) -> What:
    return next((what for pattern, what in BY_WORDS if pattern.search(said)), What.ERROR)


def resets_at(said: str, at: float | None) -> float | None:
    """Return when a limit ends, if the words say so; `at` is when the agent said them.

    A time of day is the next one, in the host's zone if it names none, as agents show it."""
    at = time.time() if at is None else at
    if found := EPOCH.search(said):
        return float(found[1])
    try:
        if found := EXACT.search(said):
            return datetime.fromisoformat(found[1]).timestamp()
        if found := CLOCK.search(said):
            return _next(found, at)
        if found := RELATIVE.search(said):
            return _later(found["parts"], at)
    except (KeyError, ValueError, OSError, OverflowError):  # no such day, no such zone
        return None
    return None


def _later(parts: str, at: float) -> float | None:
    found = [(float(many), unit if unit in UNITS_S else unit.rstrip("s")) for many, unit in PART.findall(parts)]
    known = [many * UNITS_S[unit] for many, unit in found if unit in UNITS_S]
    return at + sum(known) if known else None


def _next(found: re.Match[str], at: float) -> float:
    now = datetime.fromtimestamp(at, ZoneInfo(found["zone"])) if found["zone"] else datetime.fromtimestamp(at).astimezone()
    hour = int(found["hour24"] or found["hour"]) % (24 if found["hour24"] else 12)
    hour += 12 if (found["half"] or "").lower() == "pm" else 0
    minute = int(found["minute24"] or found["minute"] or 0)
    moment = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if not found["day"]:
        passed_s = (now - moment).total_seconds()
        return (moment if passed_s < JUST_PASSED_S else moment + timedelta(days=1)).timestamp()
    day = datetime.strptime(f"{found['day']} {found['year'] or now.year}", "%b %d %Y")
    moment = moment.replace(year=day.year, month=day.month, day=day.day)
    passed = not found["year"] and moment < now - timedelta(days=1)
    return (moment.replace(year=day.year + 1) if passed else moment).timestamp()
