"""Mutants of incidents and notices: what opens, how urgent it is, and who is told when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.sim.mutants.change import Mutant, _both, _set, _swap
from vigil.core.model.incident import IncidentKind, NoticeState, Severity
from vigil.core.rules import escalation, notice, quiet_hours, storm
from vigil.core.rules import incident as incident_rules
from vigil.core.rules.stall import schedule

QUIET_KINDS = {
    IncidentKind.TAINTED,
    IncidentKind.UNHEALTHY_PROBER,
    IncidentKind.UNDELIVERED,
    IncidentKind.STORE_LOST,  # nobody loses the store there
}


def _incidents() -> Iterator[Mutant]:
    for number, rule in enumerate(incident_rules.RULES):
        if rule.kind in QUIET_KINDS:
            continue
        rest = incident_rules.RULES[:number] + incident_rules.RULES[number + 1 :]
        scenario = "walls" if rule.kind in (IncidentKind.LIMIT, IncidentKind.AUTH) else "tmux"
        yield Mutant("incidents", f"{rule.kind} is dropped", _swap(incident_rules, "RULES", rest), scenario)
    for kind, severity in escalation.SEVERITY.items():
        if kind not in QUIET_KINDS:
            instead = Severity.WARNING if severity is not Severity.WARNING else Severity.URGENT
            by_kind = {"late-daemon": "disk", "mass-death": "many", "limit": "walls", "auth": "walls", "low-memory": "teams"}
            scenario = by_kind.get(kind, "tmux")
            yield Mutant("severity", f"{kind} is {instead}", _set(escalation.SEVERITY, kind, instead), scenario)


def _notices() -> Iterator[Mutant]:
    """P12: what was delivered is over, pauses grow, and what comes back is the same one only for a while."""
    yield Mutant("fates", "sent is tried again", _swap(notice, "FATES", notice.FATES[1:]), "disk")
    at_once = (*notice.FATES[:-1], notice.FateRow(NoticeState.FAILED, lambda _: True))
    yield Mutant("fates", "what failed is given up at once", _swap(notice, "FATES", at_once), "disk")
    yield Mutant("pauses", "pauses shrink", _swap(notice, "FACTOR", 0.5), "disk")
    for_days = _both(_swap(incident_rules, "SAME_S", 1e5), _swap(incident_rules, "LONGEST_SAME_S", 1e5))
    yield Mutant("flaps", "what comes back after hours is the same", for_days, "people")
    yield from _telling()


def _telling() -> Iterator[Mutant]:
    """Who is told when: by the ladder, not in quiet hours, not who knows of it, and of a storm in one piece."""
    never = _swap(escalation, "_repeat_at", lambda step, base, now: 0 if now >= base + step.after_s else -1)
    yield Mutant("ladder", "nobody is reminded", never, "tmux")
    early = _swap(escalation, "_moment", lambda step, base, number: base + number * (step.repeat_s or 0.0))
    yield Mutant("ladder", "every step is at once", early, "people")
    yield Mutant("ladder", "nobody hears that it is over", _swap(escalation, "_all_clears", lambda _incident, _now: []), "tmux")
    yield Mutant("reminders", "a question is told again too often", _swap(schedule, "REMINDERS", 1.0), "people")
    yield Mutant("quiet", "nothing is urgent", _swap(quiet_hours, "ALWAYS", frozenset()), "tmux")
    yield Mutant("quiet", "everything passes", _swap(quiet_hours, "ALWAYS", frozenset(Severity)), "tmux")
    yield Mutant("quiet", "it never ends", _swap(quiet_hours, "_end", lambda _rule, at: at + 3600.0), "people")
    yield Mutant("folding", "a storm is a hundred notices", _swap(storm, "STORM", 1000), "many")
    yield Mutant("folding", "a storm never calms", _both(*_calms_never()), "many")
    yield Mutant("folding", "a route gathers for a minute", _swap(storm, "GATHER_S", 60.0), "tmux")


def _calms_never() -> tuple[Callable[[], Any], Callable[[], Any]]:
    return _swap(storm, "STORM_S", 600.0), _swap(storm, "STORM_QUIET_S", 600.0)
