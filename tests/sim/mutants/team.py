"""Mutants of teams: the steps of a plan, one charge for an event, and the phases of a shift."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.mutants.change import Mutant, _handled, _nothing, _set, _swap
from tests.sim.mutants.death import _scenario
from vigil.core.handlers import charge, hold, intent, shift, team
from vigil.core.model.death import Cause
from vigil.core.rules import heartbeat

TEAMS, SHIFTS, BEATS = _handled("admission", "hold", "charge"), _handled("shift"), _handled("heartbeat")


def _teams() -> Iterator[Mutant]:
    """DESIGN 4.3, 4.4: what a manifest asks for, one charge for an event, and when silence is no reason to end anybody."""
    for do in team.STEPS:
        yield Mutant("steps", f"{do} does nothing", _set(team.STEPS, do, _nothing), "teams", (*_handled("team"), *SHIFTS))
    for seconds in (0.0, 3.0):
        yield Mutant("charging", f"an event lasts {seconds:g} s", _swap(charge, "EVENT_S", seconds), "teams", TEAMS)
    for number, row in enumerate(heartbeat.KEEPS):
        left = heartbeat.KEEPS[:number] + heartbeat.KEEPS[number + 1 :]
        yield Mutant("keeps", f"{row.why} is dropped", _swap(heartbeat, "KEEPS", left), "signs", BEATS)
    for state in sorted(hold.WAITING):
        yield Mutant("waits", f"{state} waits for nothing", _swap(hold, "WAITING", hold.WAITING - {state}), "teams", TEAMS)


def _shifts() -> Iterator[Mutant]:
    """A shift: each of its phases, who keeps a slot, who is not disturbed, and whose intents spare people."""
    for phase in shift.PHASES:
        yield Mutant("phases", f"{phase} is for ever", _set(shift.PHASES, phase, _nothing), "shifts", SHIFTS)
    for state in sorted(shift.KEPT):
        yield Mutant("kept", f"{state} is replaced", _swap(shift, "KEPT", shift.KEPT - {state}), "shifts", SHIFTS)
    for activity_ in sorted(shift.QUIET):
        yield Mutant("quiet", f"{activity_} is disturbed", _swap(shift, "QUIET", shift.QUIET - {activity_}), "shifts", SHIFTS)
    for cause in sorted(intent.BY_POLICY):
        change = _swap(intent, "BY_POLICY", intent.BY_POLICY - {cause})
        if cause is Cause.STALLED:  # where agents hang nobody comes at the last moment
            yield Mutant("intents", f"{cause} spares nobody", change, tests=_handled("watchdog"))
        else:
            yield Mutant("intents", f"{cause} spares nobody", change, _scenario(cause), (*BEATS, *SHIFTS))
