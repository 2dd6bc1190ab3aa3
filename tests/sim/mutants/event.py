"""Mutants of the machine: every event, every verb and every timer has an answer."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.mutants.change import Mutant, _handled, _nothing, _set, _swap
from vigil.core import machine
from vigil.core.effects import TimerKind
from vigil.core.events import (
    Adopted,
    Applied,
    Condition,
    Configured,
    Diagnosed,
    Heard,
    Interrupted,
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
RESETS = _handled("operator", "hold")
ASKED_IN_TESTS = {IntentVerb.ARCHIVE: _handled("operator"), IntentVerb.RELEASE: _handled("adoption")}
HEARD_IN = {
    Condition: "killed",
    Interrupted: "killed",
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
    for event in machine.HANDLERS:
        row, tests = f"{event.__name__} is not heard", TOLD_IN_TESTS.get(event, ())
        yield Mutant("events", row, _set(machine.HANDLERS, event, _nothing), HEARD_IN.get(event), tests)
    for verb in operator.VERBS:
        tests = ASKED_IN_TESTS.get(verb, ())
        yield Mutant("verbs", f"{verb} does nothing", _set(operator.VERBS, verb, _nothing), None if tests else "people", tests)
    for reason in sorted(operator.ENDED_BY_RESET):
        left = operator.ENDED_BY_RESET - {reason}
        scenario = {"backoff": "people", "saturated": "people", "cold-start": "teams"}.get(reason, "walls")
        yield Mutant(
            "reset", f"{reason} goes on", _swap(operator, "ENDED_BY_RESET", left), scenario, _handled("operator", "hold")
        )
    for kind in machine.TIMERS:
        change = _set(machine.TIMERS, kind, _nothing)
        if kind is TimerKind.SILENCE:
            yield Mutant("timers", f"{kind} does nothing", change, tests=FLEET)
            continue
        scenario = {"incidents": "tmux", "pulse": "signs", "memory": "teams", "drain": "shifts"}.get(kind, "everything")
        yield Mutant("timers", f"{kind} does nothing", change, scenario)
    for kind in machine.ROLE_TIMERS:
        scenario = "shifts" if kind == "shift" else "teams"
        yield Mutant("timers", f"{kind} of a role does nothing", _set(machine.ROLE_TIMERS, kind, _nothing), scenario)
