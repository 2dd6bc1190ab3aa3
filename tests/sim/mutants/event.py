"""Mutants of the machine: every event, every verb and every timer has an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.sim.mutants.change import Mutant, _handled, _nothing, _rules, _set, _swap
from vigil.core import machine
from vigil.core.effects import TimerKind
from vigil.core.events import (
    Adopted,
    Applied,
    Attended,
    Closed,
    Condition,
    Configured,
    Diagnosed,
    Heard,
    Interrupted,
    KeeperHeard,
    Measured,
    MemoryRead,
    MessageQueued,
    MessageSent,
    MessageTyped,
    Noted,
    Reached,
    ReactionEnded,
    Recovered,
    RuntimeEnded,
    ShiftAborted,
    ShiftAsked,
    Sighted,
    Stepped,
    Unordered,
    WatchdogsSet,
    Weighed,
    Withdrawn,
)
from vigil.core.handlers import operator
from vigil.core.model.death import IntentVerb

FLEET = ("sim/test_silences.py::test_nobody_who_gets_on_is_disturbed_in_eight_hours_and_whoever_hangs_is_dealt_with[0]",)
# No world has these: lines for the log, transcripts, messages, what people configure and try, stores that are lost, adoption.
TOLD_IN_TESTS = {
    Noted: _handled("observation"),
    Heard: FLEET,
    MessageQueued: _handled("message"),
    MessageTyped: _handled("message"),
    MessageSent: _handled("message"),
    Weighed: _handled("summary"),
    Reached: _handled("notice"),
    Configured: _handled("reaction"),
    ReactionEnded: _handled("reaction"),
    Recovered: _handled("reap"),
    Adopted: _handled("adoption"),
    WatchdogsSet: FLEET,
    Measured: _handled("watchdog"),
    Diagnosed: FLEET,
    Stepped: _handled("watchdog"),
}
RARE = {  # tests of rows that worlds meet rarely, where the handler's own do not ask for them
    Interrupted: _handled("hold", "conversation"),
    Attended: _handled("watchdog", "shift"),
    Closed: _handled("found_agent", "conversation"),
    RuntimeEnded: _handled("found_agent", "observation"),
    Condition: _rules("incident"),
}
TESTED_WITH = {
    "machine": "hold",
    "orphan": "observation",
    "remedy": "watchdog",
    "session_incident": "host_incident",
}
RESETS = _handled("operator", "hold")
ASKED_IN_TESTS = {IntentVerb.ARCHIVE: _handled("operator"), IntentVerb.RELEASE: _handled("adoption")}
HEARD_IN = {
    Condition: "killed",
    Interrupted: "killed",
    KeeperHeard: "killed",
    Unordered: "killed",
    RuntimeEnded: "tmux",
    Withdrawn: "disk",
    Applied: "teams",
    MemoryRead: "teams",
    ShiftAsked: "shifts",
    ShiftAborted: "shifts",
    Sighted: "people",
}


def _handlers() -> Iterator[Mutant]:
    """Every event, every verb and every timer has an answer."""
    for event, handler in machine.HANDLERS.items():
        row, change = f"{event.__name__} is not heard", _set(machine.HANDLERS, event, _nothing)
        if event in TOLD_IN_TESTS:
            yield Mutant("events", row, change, tests=TOLD_IN_TESTS[event])
        else:
            yield Mutant("events", row, change, HEARD_IN.get(event, "everything"), RARE.get(event) or _tests_of(handler))
    for verb in operator.VERBS:
        row, change = f"{verb} does nothing", _set(operator.VERBS, verb, _nothing)
        if verb in ASKED_IN_TESTS:
            yield Mutant("verbs", row, change, tests=ASKED_IN_TESTS[verb])
        else:
            yield Mutant("verbs", row, change, "people", _handled("operator", "conversation"))
    for reason in sorted(operator.ENDED_BY_RESET):
        left = operator.ENDED_BY_RESET - {reason}
        scenario = {"backoff": "people", "saturated": "people", "cold-start": "teams"}.get(reason, "walls")
        yield Mutant(
            "reset", f"{reason} goes on", _swap(operator, "ENDED_BY_RESET", left), scenario, _handled("operator", "hold")
        )
    for kind, timed in machine.TIMERS.items():
        change = _set(machine.TIMERS, kind, _nothing)
        if kind is TimerKind.SILENCE:
            yield Mutant("timers", f"{kind} does nothing", change, tests=FLEET)
            continue
        scenario = {"incidents": "tmux", "pulse": "signs", "memory": "teams", "drain": "shifts"}.get(kind, "everything")
        yield Mutant("timers", f"{kind} does nothing", change, scenario, _tests_of(timed))
    for kind, of_role in machine.ROLE_TIMERS.items():
        scenario, change = "shifts" if kind == "shift" else "teams", _set(machine.ROLE_TIMERS, kind, _nothing)
        yield Mutant("timers", f"{kind} of a role does nothing", change, scenario, _tests_of(of_role))


def _tests_of(handler: Callable[..., object]) -> tuple[str, ...]:
    """Return the unit tests of a handler: those of its module, or of where it is tested."""
    module = handler.__module__.rpartition(".")[2]
    return _handled(TESTED_WITH.get(module, module))
