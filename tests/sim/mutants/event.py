"""Mutants of the machine: every event, every verb and every timer has an answer."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.mutants.change import Mutant, _nothing, _set, _swap
from vigil.core import machine
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

# A line in the log, for people; transcripts, which no simulated agent writes yet; messages, which nobody sends there; a
# configuration without reactions, what people type to try a route, and memory; nobody loses the store there,
# or adopts anything. Who hangs is simulated in test_silences: see `of_silence`.
UNTOLD = {Noted, Heard, MessageQueued, MessageTyped, MessageSent, Weighed, Reached, Configured, ReactionEnded}
UNTOLD |= {Recovered, Adopted}
UNTOLD |= {WatchdogsSet, Measured, Diagnosed, Stepped}
UNASKED = ("archive", "release")
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
        if event not in UNTOLD:
            yield Mutant(
                "events", f"{event.__name__} is not heard", _set(machine.HANDLERS, event, _nothing), HEARD_IN.get(event)
            )
    for verb in (verb for verb in operator.VERBS if verb not in UNASKED):
        yield Mutant("verbs", f"{verb} does nothing", _set(operator.VERBS, verb, _nothing), "people")
    for reason in operator.ENDED_BY_RESET:
        left = tuple(other for other in operator.ENDED_BY_RESET if other != reason)
        scenario = {"backoff": "people", "saturated": "people", "cold-start": "teams"}.get(reason, "walls")
        yield Mutant("reset", f"{reason} goes on", _swap(operator, "ENDED_BY_RESET", left), scenario)
    for kind in machine.TIMERS.keys() - {"silence"}:  # see `of_silence`
        scenario = {"incidents": "tmux", "pulse": "signs", "memory": "teams", "drain": "shifts"}.get(kind, "everything")
        yield Mutant("timers", f"{kind} does nothing", _set(machine.TIMERS, kind, _nothing), scenario)
    for kind in machine.ROLE_TIMERS:
        scenario = "shifts" if kind == "shift" else "teams"
        yield Mutant("timers", f"{kind} of a role does nothing", _set(machine.ROLE_TIMERS, kind, _nothing), scenario)


def of_silence() -> Iterator[Mutant]:
    """Yield what only a fleet of silent agents notices: see test_silences."""
    for event in (Heard, WatchdogsSet, Diagnosed):
        yield Mutant("events", f"{event.__name__} is not heard", _set(machine.HANDLERS, event, _nothing))
    yield Mutant("timers", "silence does nothing", _set(machine.TIMERS, "silence", _nothing))
