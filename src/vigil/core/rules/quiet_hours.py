"""Quiet hours: when and of what people are not told. Pure: the caller gives the wall clock's distance from UTC."""

from __future__ import annotations

from vigil.core.model.identity import team_of
from vigil.core.model.incident import ALWAYS, Incident, Quiet

DAY_S = 86400.0
CHAINED = 8  # so many quiet hours in a row, then people are told all the same


def quiet_until(incident: Incident, rules: tuple[Quiet, ...], now: float) -> float | None:
    """Return when quiet hours let people hear of an incident; None for now."""
    own = [rule for rule in rules if rule.team is not None and is_of_team(incident, rule.team)]
    for_all = [rule for rule in rules if rule.team is None]
    holding = [rule for rule in own or for_all if incident.severity not in ALWAYS | rule.passes]
    until = now
    for _ in range(CHAINED):
        later = max((_end(rule, until) for rule in holding), default=until)
        if later <= until:
            break
        until = later
    return until if until > now else None


def is_of_team(incident: Incident, team: str) -> bool:
    """Say whether an incident is of the team that quiet hours or a ladder names."""
    found = team_of(incident.session or "")
    return found is not None and team in (found[1], "/".join(found))


def _end(rule: Quiet, at: float) -> float:
    """Return when the quiet hours at a moment end; that moment itself if none hold."""
    wall = at + rule.offset_s(at)
    clock_s = wall % DAY_S
    over_midnight = rule.to_s < rule.from_s
    if over_midnight and not (clock_s >= rule.from_s or clock_s < rule.to_s):
        return at
    if not over_midnight and not rule.from_s <= clock_s < rule.to_s:
        return at
    ends = wall - clock_s + rule.to_s + (DAY_S if over_midnight and clock_s >= rule.from_s else 0.0)
    # By the wall clock of that moment: the night of a clock change is shorter or longer.
    ends_at = ends - rule.offset_s(ends - rule.offset_s(at))
    return ends_at if ends_at > at else at
