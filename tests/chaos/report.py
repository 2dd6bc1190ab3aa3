"""Report: figures for each promise, totals, and the first violations with what shows them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checks import Verdict
from tests.chaos.checks.base import excuses
from tests.chaos.history import History, Part, Shot, unexcused_s
from tests.chaos.storm import faults_by_kind
from tests.chaos.story import clock

SHOWN = 12  # of each promise


def lines(history: History, verdicts: list[Verdict]) -> Iterator[str]:
    """Yield the whole report."""
    yield from _totals(history)
    yield ""
    width = max(len(verdict.promise) for verdict in verdicts)
    yield f"{'promise':{width}}  checked  violations"
    for verdict in verdicts:
        yield f"{verdict.promise:{width}}  {verdict.checked:7}  {len(verdict.violations):10}"
    for verdict in verdicts:
        yield from _violations(history, verdict)


def _totals(history: History) -> Iterator[str]:
    agents = list(history.agents())
    minutes = (history.ended_at - history.began_at) / 60
    yield (
        f"seed {history.seed}: {minutes:.1f} minutes, {len(agents)} births, {sum(1 for one in agents if one.ended_at)} deaths, "
        f"{_kills(history.shots, Part.DAEMON)} kills of the daemon, {_kills(history.shots, Part.KEEPER)} of the keeper, "
        f"{len(history.commands)} commands, {history.samples} samples, ourselves late by {history.lateness_s:.2f} s at most"
    )
    took = sorted(command.took_s for command in history.commands)
    if took:
        yield f"commands: half took {took[len(took) // 2]:.2f} s, the slowest {took[-1]:.1f} s"
    length_s = history.ended_at - history.began_at
    strict = unexcused_s(history.began_at, history.ended_at, excuses(history)) / length_s if length_s > 0 else 0.0
    yield f"lateness was judged in {strict:.0%} of the time; the rest is excused by our faults or a late host"
    kinds = faults_by_kind(history)
    yield "faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))


def _kills(shots: list[Shot], part: Part) -> int:
    return sum(1 for shot in shots if shot.part is part and shot.number == 9)


def _violations(history: History, verdict: Verdict) -> Iterator[str]:
    if verdict.violations:
        yield f"\n{verdict.promise}: {len(verdict.violations)}"
    for violation in sorted(verdict.violations, key=lambda one: one.at)[:SHOWN]:
        yield f"  {clock(violation.at)} (+{violation.at - history.began_at:.1f} s) {violation.text}"
    if len(verdict.violations) > SHOWN:
        yield f"  … and {len(verdict.violations) - SHOWN} more"
