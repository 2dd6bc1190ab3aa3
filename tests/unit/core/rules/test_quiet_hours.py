"""Nobody is woken for what can wait until the morning; what is urgent passes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from vigil.config.hours import Zone
from vigil.core.model.incident import Incident, IncidentKind, Ladder, LadderStep, Quiet, Severity, Telling
from vigil.core.rules.escalation import due_notices, next_at, steps_of
from vigil.core.rules.quiet_hours import quiet_until

BERLIN = Zone("Europe/Berlin")
NIGHT = Quiet(22 * 3600.0, 7 * 3600.0, offset_s=BERLIN)
NOON = Quiet(12 * 3600.0, 13 * 3600.0, offset_s=BERLIN)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("Europe/Berlin")).timestamp()


def make_incident(severity: Severity = Severity.ACTION, session: str = "shop/backend/coder/0") -> Incident:
    opened_at = at("2026-07-01 21:00")
    return Incident("i1", "k", IncidentKind.NEEDS_INPUT, severity, "s1", session, opened_at, "it asks")


@pytest.mark.parametrize(
    ("now", "until"),
    [
        ("2026-07-01 21:59", None),
        ("2026-07-01 22:00", "2026-07-02 07:00"),
        ("2026-07-02 03:00", "2026-07-02 07:00"),
        ("2026-07-02 07:00", None),
        ("2026-03-28 23:00", "2026-03-29 07:00"),  # clocks are set forward in this night, and back in the next
        ("2026-10-24 23:00", "2026-10-25 07:00"),
        ("2026-07-02 12:30", "2026-07-02 13:00"),
    ],
)
def test_quiet_hours_are_hours_of_the_wall(now: str, until: str | None) -> None:
    found = quiet_until(make_incident(), (NIGHT, NOON), at(now))

    assert found == (None if until is None else at(until))


def test_what_is_urgent_passes_always_and_more_where_a_rule_says_so() -> None:
    night = at("2026-07-02 03:00")

    assert quiet_until(make_incident(Severity.URGENT), (replace(NIGHT, passes=frozenset()),), night) is None
    assert quiet_until(make_incident(Severity.ACTION), (replace(NIGHT, passes=frozenset({Severity.ACTION})),), night) is None
    assert quiet_until(make_incident(Severity.WARNING), (NIGHT,), night) is not None


def test_hours_that_follow_each_other_are_one_and_hours_without_end_are_none() -> None:
    morning = Quiet(7 * 3600.0, 9 * 3600.0, offset_s=BERLIN)
    never = Quiet(5 * 3600.0, 5 * 3600.0, offset_s=BERLIN)

    assert quiet_until(make_incident(), (NIGHT, morning), at("2026-07-02 03:00")) == at("2026-07-02 09:00")
    assert quiet_until(make_incident(), (never,), at("2026-07-02 05:00")) is None


def test_a_team_has_its_own_hours_instead_of_everybodys() -> None:
    own = replace(NOON, team="backend")

    assert quiet_until(make_incident(), (NIGHT, own), at("2026-07-02 03:00")) is None
    assert quiet_until(make_incident(), (NIGHT, own), at("2026-07-02 12:30")) == at("2026-07-02 13:00")
    assert quiet_until(make_incident(session="shop/frontend/coder/0"), (NIGHT, own), at("2026-07-02 12:30")) is None


def test_what_was_due_at_night_is_told_in_the_morning_once() -> None:
    telling = Telling((Ladder((LadderStep("ops", 7200.0, 1800.0),)),), (NIGHT,))
    incident = make_incident()

    assert next_at(incident, telling, incident.opened_at) == at("2026-07-02 07:00")
    assert due_notices(incident, telling, at("2026-07-02 06:59")) == []
    (due,) = due_notices(incident, telling, at("2026-07-02 07:00"))
    assert due.event == "opened"


@pytest.mark.parametrize("team", ["backend", "shop/backend"])
def test_a_teams_own_ladder_goes_before_all_others(team: str) -> None:
    kind = Ladder((LadderStep("kind"),), kind=IncidentKind.NEEDS_INPUT)
    own = Ladder((LadderStep("own"),), team=team)
    telling = Telling((kind, own))

    assert [step.route for step in steps_of(make_incident(), telling)] == ["own"]
    for other in ("shop/frontend/coder/0", "backend", "other"):
        assert [step.route for step in steps_of(make_incident(session=other), telling)] == ["kind"]


def test_the_hosts_own_zone_is_asked_where_none_is_named() -> None:
    now = at("2026-07-02 03:00")
    local = datetime.fromtimestamp(now).astimezone().utcoffset()

    assert local is not None and Zone()(now) == local.total_seconds()
