"""Mutants of incidents and notices: what opens, how urgent it is, and who is told when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.sim.mutants.change import Mutant, _both, _handled, _rules, _set, _swap
from vigil.core.model.incident import IncidentKind, NoticeState, Severity
from vigil.core.rules import escalation, notice, quiet_hours, storm
from vigil.core.rules import incident as incident_rules
from vigil.core.rules.stall import schedule

# No world has these: conversations that did nothing, messages for who is gone, a route that fails, a store that is lost.
QUIET = {
    IncidentKind.TAINTED: _rules("incident"),
    IncidentKind.UNHEALTHY_PROBER: _rules("incident"),
    IncidentKind.UNDELIVERED: (*_rules("incident"), *_handled("message")),
    IncidentKind.STORE_LOST: _rules("incident"),
}
TESTS = (*_rules("incident", "escalation"), *_handled("incident", "session_incident"))
NOTICES = (*_rules("owed", "notice", "escalation", "quiet_hours"), *_handled("notice"))


def _incidents() -> Iterator[Mutant]:
    for number, rule in enumerate(incident_rules.RULES):
        rest = incident_rules.RULES[:number] + incident_rules.RULES[number + 1 :]
        scenario = "walls" if rule.kind in (IncidentKind.LIMIT, IncidentKind.AUTH) else "tmux"
        yield _seen(rule.kind, "incidents", f"{rule.kind} is dropped", _swap(incident_rules, "RULES", rest), scenario)
    for kind, severity in escalation.SEVERITY.items():
        instead = Severity.WARNING if severity is not Severity.WARNING else Severity.URGENT
        by_kind = {"late-daemon": "disk", "mass-death": "many", "limit": "walls", "auth": "walls", "low-memory": "teams"}
        scenario = by_kind.get(kind, "tmux")
        yield _seen(kind, "severity", f"{kind} is {instead}", _set(escalation.SEVERITY, kind, instead), scenario)


def _seen(kind: IncidentKind, table: str, row: str, change: Callable[[], Any], scenario: str) -> Mutant:
    """Return a mutant of what worlds have, or of what only tests have."""
    return Mutant(table, row, change, None if kind in QUIET else scenario, QUIET.get(kind, TESTS))


def _notices() -> Iterator[Mutant]:
    """P12: what was delivered is over, pauses grow, and what comes back is the same one only for a while."""
    for number, fate in enumerate(notice.FATES):
        left = notice.FATES[:number] + notice.FATES[number + 1 :]
        yield Mutant("fates", f"{fate.state} ({number}) is dropped", _swap(notice, "FATES", left), "disk", NOTICES)
    at_once = (*notice.FATES[:-1], notice.FateRow(NoticeState.FAILED, lambda _: True))
    yield Mutant("fates", "what failed is given up at once", _swap(notice, "FATES", at_once), "disk", NOTICES)
    yield Mutant("pauses", "pauses shrink", _swap(notice, "FACTOR", 0.5), "disk", NOTICES)
    for_days = _both(_swap(incident_rules, "SAME_S", 1e5), _swap(incident_rules, "LONGEST_SAME_S", 1e5))
    yield Mutant("flaps", "what comes back after hours is the same", for_days, "people", NOTICES)
    believe = _swap(escalation, "_believe_it_lasts", notice.told_routes)
    yield Mutant("owed", "what is over is not told", _swap(notice, "is_owed", lambda *_: False), "tmux", NOTICES)
    yield Mutant("owed", "what is over is told by none", _swap(escalation, "_owed", lambda *_: []), "tmux", NOTICES)
    yield Mutant("owed", "who heard both hears the end too", believe, "tmux", NOTICES)
    yield from _telling()


def _telling() -> Iterator[Mutant]:
    """Who is told when: by the ladder, not in quiet hours, not who knows of it, and of a storm in one piece."""
    never = _swap(escalation, "_repeat_at", lambda step, base, now: 0 if now >= base + step.after_s else -1)
    yield Mutant("ladder", "nobody is reminded", never, "tmux", NOTICES)
    early = _swap(escalation, "_moment", lambda step, base, number: base + number * (step.repeat_s or 0.0))
    yield Mutant("ladder", "every step is at once", early, "people", NOTICES)
    yield Mutant(
        "ladder", "nobody hears that it is over", _swap(escalation, "_all_clears", lambda _incident, _now: []), "tmux", NOTICES
    )
    yield Mutant(
        "reminders", "a question is told again too often", _swap(schedule, "REMINDERS", 1.0), "people", _handled("watchdog")
    )
    yield Mutant("quiet", "nothing is urgent", _swap(quiet_hours, "ALWAYS", frozenset()), "tmux", NOTICES)
    yield Mutant("quiet", "everything passes", _swap(quiet_hours, "ALWAYS", frozenset(Severity)), "tmux", NOTICES)
    yield Mutant("quiet", "it never ends", _swap(quiet_hours, "_end", lambda _rule, at: at + 3600.0), "people", NOTICES)
    yield Mutant("folding", "a storm is a hundred notices", _swap(storm, "STORM", 1000), "many", NOTICES)
    yield Mutant("folding", "a storm never calms", _both(*_calms_never()), "many", NOTICES)
    yield Mutant("folding", "a route gathers for a minute", _swap(storm, "GATHER_S", 60.0), "tmux", NOTICES)


def _calms_never() -> tuple[Callable[[], Any], Callable[[], Any]]:
    return _swap(storm, "STORM_S", 600.0), _swap(storm, "STORM_QUIET_S", 600.0)
