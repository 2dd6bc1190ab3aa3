"""Mutants of tables that tests hold: words, messages, configuration, silence; a line for each table, a mutant for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from tests.sim.mutants.change import Mutant, _drop, _handled, _nothing, _rules, _set, _swap

NAMES = ("cause", "verdict", "kind", "state", "mode", "confidence")  # what a row may be called by


class Tested(NamedTuple):
    """A table of the core, and the tests that hold it."""

    table: str
    tests: tuple[str, ...]


STALLS = (
    "unit/core/rules/stall/test_case.py",
    "unit/core/rules/stall/test_course.py",
    "unit/core/rules/stall/test_remedy.py",
    "unit/core/rules/stall/test_rows.py",
    "unit/core/rules/stall/test_verdict.py",
    *_handled("watchdog"),
)
TESTED = (
    Tested("rules.activity.ALIVE_ONLY", (*_rules("activity"), *_handled("watchdog", "speech"))),
    Tested("rules.activity.NEW_WORK", (*_rules("activity"), *_handled("watchdog", "speech"))),
    Tested("rules.activity.ARMED", (*_rules("activity"), *_handled("speech"))),
    Tested("rules.activity.UNSAID", (*_rules("last_words", "activity"), *_handled("speech"))),
    Tested("rules.death.CRASH_SIGNALS", _rules("death")),
    Tested("rules.death.SIGNAL_EXITS", _rules("death")),
    Tested("rules.death.OF_ITS_RUNTIME", _rules("death")),
    Tested("rules.death.FOR_A_REASON", (*_rules("death"), *_handled("watchdog", "heartbeat"))),
    Tested("rules.escalation.USUAL_S", _rules("escalation")),
    Tested("rules.health.HEALTH", _rules("health")),
    Tested("rules.health.STALLED_IN", _rules("health")),
    Tested("rules.health.PULSES", _rules("health")),
    Tested("rules.health.ACTIVITIES", _rules("health")),
    Tested("rules.incident.EVENTS", (*_rules("incident"), *_handled("host_incident", "incident"))),
    Tested("rules.incident.DOWN", (*_rules("incident"), *_handled("session_incident", "host_incident", "incident"))),
    Tested("rules.incident.OF_AGENTS", (*_rules("incident"), *_handled("session_incident", "watchdog"))),
    Tested("rules.incident.GIVEN_UP", (*_rules("incident"), *_handled("session_incident", "message"))),
    Tested("rules.limits.FILES", _rules("limits")),
    Tested("rules.liveness.SIGNS", ("unit/core/rules/test_liveness.py::test_each_reading_has_its_sign",)),
    Tested("rules.notice.OPEN", (*_rules("notice", "escalation"), *_handled("notice"))),
    Tested("rules.notice.TOLD", (*_rules("notice", "escalation"), *_handled("notice"))),
    Tested("rules.notice.GIVEN_UP", (*_rules("notice", "escalation"), *_handled("notice"))),
    Tested("rules.notice.FIRST", _rules("owed", "escalation", "notice")),
    Tested("rules.plan.RESTING", _rules("plan")),
    Tested("rules.prompt.REFUSALS", _rules("prompt")),
    Tested("rules.reaction.ENDS", _handled("reaction")),
    Tested("rules.reaction.BUSY", _handled("reaction")),
    Tested("rules.reaction.LEFT_ALONE", _handled("reaction")),
    Tested("rules.reaction.FOR", _handled("reaction")),
    Tested("rules.reaction.REFUSALS", _handled("reaction")),
    Tested("rules.restart.WALLS", (*_rules("restart"), *_handled("wall"))),
    Tested("rules.wall.REASONS", _handled("reaction", "wall")),
    Tested("rules.wake.UNBORN", (*_rules("wake"), *_handled("conversation"))),
    Tested("rules.wake.CRASH_LOOP", (*_rules("wake"), *_handled("conversation"))),
    Tested("rules.wake.WALLS", (*_rules("wake"), *_handled("conversation"))),
    Tested("rules.stall.case.GONE", STALLS),
    Tested("rules.stall.case.MCP", STALLS),
    Tested("rules.stall.case.SUBAGENT_TOOLS", STALLS),
    Tested("rules.stall.case.WATCHED", STALLS),
    Tested("rules.stall.facts.KERNEL", STALLS),
    Tested("rules.stall.remedy.REMEDIES", STALLS),
    Tested("rules.stall.remedy.KEEPS", STALLS),
    Tested("rules.stall.tool.WAITS_FOR_CHILD", STALLS),
    Tested("rules.stall.verdict.WELL", STALLS),
    Tested("rules.stall.verdict.VOID", STALLS),
    Tested("rules.stall.verdict.SICK", STALLS),
    Tested("rules.stall.verdict.SAMPLES", STALLS),
    Tested("handlers.account.WAITS_FOR_WALL", _handled("wall")),
    Tested("handlers.conversation.ON_ITS_WAY", _handled("conversation")),
    Tested("handlers.conversation.BY_ITSELF", _handled("conversation")),
    Tested("handlers.end.OUTCOMES", _handled("reap", "end")),
    Tested("handlers.end.FOLLOWS", _handled("end", "operator", "reap", "shift")),
    Tested("handlers.hold.UNDECIDED", _handled("admission")),
    Tested("handlers.message.ASLEEP", _handled("message")),
    Tested("handlers.message.COMING", _handled("message")),
    Tested("handlers.operator.TRIES", _handled("operator", "wall")),
    Tested("handlers.reap.AFTER", _handled("reap")),
    Tested("handlers.takeover.AT_ONCE", _handled("takeover")),
    Tested("handlers.remedy.TREATED", _handled("watchdog")),
    Tested("handlers.remedy.VERBS", _handled("watchdog")),
    Tested("handlers.remedy.STEPS", _handled("watchdog")),
    Tested("handlers.shift.PLAIN", _handled("shift")),
    Tested("handlers.speech.SOURCES", _handled("speech", "speech_properties")),
    Tested("handlers.speech.MISSED", _handled("speech", "speech_properties")),
    Tested("handlers.speech.CLOSING", _handled("speech", "speech_properties")),
    Tested("handlers.speech.UNHOOKED", _handled("speech", "wall")),
    Tested("handlers.speech.SIGNS", _handled("speech", "heartbeat")),
    Tested("handlers.wall.WALLS", _handled("wall")),
    Tested("handlers.wall.TRIES", _handled("wall", "speech")),
    Tested("book.DOUBTED", _handled("doubt", "observation")),
    Tested("book.DOUBTFUL", _handled("doubt", "observation")),
    Tested("model.session.ALIVE", ("unit/core/model/test_session.py", *_handled("operator", "death"))),
)


def _tables() -> Iterator[Mutant]:
    """Every row of every table that tests hold: dropped, or as another row of its table."""
    for table, tests in TESTED:
        module, _, name = table.rpartition(".")
        for row, change in _changed(import_module(f"vigil.core.{module}"), name):
            yield Mutant(table, row, change, tests=tests)


def _changed(module: ModuleType, name: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    rows = getattr(module, name)
    if isinstance(rows, Mapping):
        for key in rows:
            yield _as_another(rows, key)
    elif isinstance(rows, frozenset):
        for member in sorted(rows):
            yield f"{member} is dropped", _swap(module, name, rows - {member})
    else:
        for number, row in enumerate(rows):
            yield f"{_called(row, number)} is dropped", _swap(module, name, rows[:number] + rows[number + 1 :])


def _as_another(rows: Any, key: Any) -> tuple[str, Callable[[], Any]]:
    """Return a row that says what another row says, or does nothing; words for people say nothing, and are dropped."""
    value = rows[key]
    if callable(value):
        return f"{key} does nothing", _set(rows, key, _nothing)
    if isinstance(value, str) and " " in value:
        return f"{key} is dropped", _drop(rows, key)
    other = next((found for found in rows if rows[found] != value), None)
    assert other is not None, "a table whose rows are all the same decides nothing"
    return f"{key} is as {other}", _set(rows, key, rows[other])


def _called(row: Any, number: int) -> str:
    found = next((getattr(row, name) for name in NAMES if hasattr(row, name)), getattr(row, "why", row))
    return f"{number}" if callable(found) else f"{found} ({number})"
