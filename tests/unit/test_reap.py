"""The reaper's table: every combination of what can be seen has one class, and nothing outranks a human, work or doubt (P2)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from vigil.core.activity import Activity
from vigil.core.reap import BUSY, BUSY_CPU, RULES, Action, Class, Sighting, classify, last_work, recent_s, span

GRACE_S, TTL_S = 60.0, 3600.0
ORDER = (Class.ATTACHED, Class.BUSY, Class.UNKNOWN, Class.ORPHAN, Class.ARCHIVED, Class.IDLE, Class.KEEP)


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


def expected(s: Sighting) -> tuple[Class, Action]:
    """Return what DESIGN 4.5 says, in other words than the table's."""
    busy = s.activity in BUSY or (s.cpu or 0.0) >= BUSY_CPU or s.quiet_s < GRACE_S
    if s.human_clients:
        return Class.ATTACHED, Action.KEEP
    if s.runs and busy:
        return Class.BUSY, Action.KEEP
    if s.unreadable:
        return Class.UNKNOWN, Action.KEEP
    if s.orphan:
        return Class.ORPHAN, Action.KILL if s.orphan_s >= GRACE_S and not s.kept else Action.KEEP
    if s.archived:
        return Class.ARCHIVED, Action.KILL if s.runs else Action.KEEP  # what is not quiet is busy
    if s.runs and not s.kept and 0 < s.idle_ttl_s <= s.quiet_s:
        return Class.IDLE, Action.PARK
    return Class.KEEP, Action.KEEP


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


@pytest.mark.parametrize("kind", [Class.ATTACHED, Class.BUSY, Class.UNKNOWN, Class.KEEP])
def test_what_these_classes_say_is_never_ended(kind: Class) -> None:
    assert {rule.action for rule in RULES if rule.kind is kind} == {Action.KEEP}


def test_whoever_waits_for_a_person_is_not_put_away_before_it_was_answered() -> None:
    found = classify("a", "s1-1", Sighting(activity=Activity.WAITING_HUMAN, quiet_s=1e6, idle_ttl_s=TTL_S))

    assert (found.kind, found.evidence[0]) == (Class.BUSY, "it waits for a person")


def test_a_ttl_shorter_than_the_grace_makes_nobody_busy_for_longer() -> None:
    assert recent_s(Sighting(idle_ttl_s=2.0, grace_s=60.0)) == 2.0
    assert recent_s(Sighting(idle_ttl_s=0.0, grace_s=60.0)) == 60.0


def test_the_newest_evidence_of_work_decides_and_is_named() -> None:
    quiet_s, words = last_work({"transcript": 900.0, "hook": 400.0, "wake": 0.0}, 1000.0)

    assert (quiet_s, words) == (100.0, "last work: transcript entry, 100 s ago")


@pytest.mark.parametrize(("seconds", "words"), [(59, "59 s"), (300, "5 min"), (71 * 3600, "71 h"), (5 * 86400, "5 d")])
def test_spans_are_said_so_that_a_person_can_compare_them(seconds: float, words: str) -> None:
    assert span(seconds) == words
