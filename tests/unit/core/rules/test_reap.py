"""The reaper's table: every combination of what can be seen has one class, and nothing outranks a human, work or doubt (P2)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from vigil.core.model.sighting import ReapAction, ReapClass, Sighting
from vigil.core.model.speech import Activity
from vigil.core.rules.reap import BUSY, BUSY_CPU, RULES, classify, recent_s
from vigil.core.rules.sighting import last_work

GRACE_S, TTL_S = 60.0, 3600.0
ORDER = (
    ReapClass.ATTACHED,
    ReapClass.BUSY,
    ReapClass.UNKNOWN,
    ReapClass.ORPHAN,
    ReapClass.ARCHIVED,
    ReapClass.IDLE,
    ReapClass.KEEP,
)


def sightings() -> Iterator[Sighting]:
    """Return every combination of values on either side of each line."""
    for clients, activity, cpu, unreadable in product((0, 1), Activity, (None, 0.0, BUSY_CPU), ("", "no answer")):
        for orphan_s, archived, quiet_s, ttl_s, kept, runs in product(
            (None, 0.0, GRACE_S), (False, True), (0.0, GRACE_S, TTL_S), (0.0, TTL_S), ("", "adopted"), (True, False)
        ):
            yield Sighting(
                runs=runs,
                human_clients=clients,
                activity=activity,
                cpu=cpu,
                unreadable=unreadable,
                orphan="" if orphan_s is None else "its folder is gone",
                orphan_s=orphan_s or 0.0,
                archived=archived,
                quiet_s=quiet_s,
                last_work=f"last work: hook event, {quiet_s:g} s ago",
                idle_ttl_s=ttl_s,
                grace_s=GRACE_S,
                kept=kept,
            )


def expected(s: Sighting) -> tuple[ReapClass, ReapAction]:
    """Return what DESIGN 4.5 says, in other words than the table's."""
    busy = s.activity in BUSY or (s.cpu or 0.0) >= BUSY_CPU or s.quiet_s < GRACE_S
    if s.human_clients:
        return ReapClass.ATTACHED, ReapAction.KEEP
    if s.runs and busy:
        return ReapClass.BUSY, ReapAction.KEEP
    if s.unreadable:
        return ReapClass.UNKNOWN, ReapAction.KEEP
    if s.orphan:
        return ReapClass.ORPHAN, ReapAction.KILL if s.orphan_s >= GRACE_S and not s.kept else ReapAction.KEEP
    if s.archived:
        return ReapClass.ARCHIVED, ReapAction.KILL if s.runs else ReapAction.KEEP  # what is not quiet is busy
    if s.runs and not s.kept and 0 < s.idle_ttl_s <= s.quiet_s:
        return ReapClass.IDLE, ReapAction.PARK
    return ReapClass.KEEP, ReapAction.KEEP


def test_every_combination_is_classified_as_the_design_says() -> None:
    count = 0
    for sighting in sightings():
        verdict = classify("a", "s1-1", sighting)
        assert (verdict.kind, verdict.action) == expected(sighting), sighting
        assert all(verdict.evidence), "each class says what decided"
        count += 1
    assert count > 10_000


def test_rows_stand_in_the_order_of_the_design() -> None:
    assert tuple(dict.fromkeys(rule.kind for rule in RULES)) == ORDER


@pytest.mark.parametrize("kind", [ReapClass.ATTACHED, ReapClass.BUSY, ReapClass.UNKNOWN, ReapClass.KEEP])
def test_what_these_classes_say_is_never_ended(kind: ReapClass) -> None:
    assert {rule.action for rule in RULES if rule.kind is kind} == {ReapAction.KEEP}


def test_whoever_waits_for_a_person_is_not_put_away_before_it_was_answered() -> None:
    found = classify("a", "s1-1", Sighting(activity=Activity.WAITING_HUMAN, quiet_s=1e6, idle_ttl_s=TTL_S))

    assert (found.kind, found.evidence[0]) == (ReapClass.BUSY, "it waits for a person")


def test_a_ttl_shorter_than_the_grace_makes_nobody_busy_for_longer() -> None:
    assert recent_s(Sighting(idle_ttl_s=2.0, grace_s=60.0)) == 2.0
    assert recent_s(Sighting(idle_ttl_s=0.0, grace_s=60.0)) == 60.0


def test_the_newest_evidence_of_work_decides_and_is_named() -> None:
    quiet_s, words = last_work({"transcript": 900.0, "hook": 400.0, "wake": 0.0}, 1000.0)

    assert (quiet_s, words) == (100.0, "last work: transcript entry, 100 s ago")
