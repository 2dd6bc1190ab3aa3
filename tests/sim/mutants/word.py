"""Mutants of words: what agents say means what DESIGN 4.1 says."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.mutants.change import Mutant, _handled, _rules, _set, _swap
from vigil.core.model.progress import IDLE
from vigil.core.model.speech import What
from vigil.core.rules import activity

# No simulated agent says these: streams and transcripts do; what a sub-agent does is a sign of life before the table is asked.
IN_STREAMS = {What.ERROR, What.RESULT, What.WAITS, What.RETRIES, What.SUBAGENT_STARTED, What.SUBAGENT_ENDED}
PLAINLY_SAID = {"waiting-timer", "throttled", "idle"}  # worlds tell the others apart by what is open
TESTS = (*_rules("activity"), *_handled("speech", "wall"))


def _words() -> Iterator[Mutant]:
    """DESIGN 4.1: what agents' words mean."""
    for what, rule in activity.RULES.items():
        instead = activity._ends if rule is activity._signs else activity._signs
        row = f"{what} {'ends a turn' if rule is activity._signs else 'is a sign of life'}"
        scenario = None if what in IN_STREAMS else "people"
        yield Mutant("words", row, _set(activity.RULES, what, instead), scenario, TESTS)
    for said_plainly, meant in activity.PLAIN.items():
        change = _set(activity.PLAIN, said_plainly, IDLE if meant != IDLE else activity.PLAIN["working"])
        scenario = "people" if said_plainly in PLAINLY_SAID else None
        yield Mutant("plain words", f"{said_plainly} is another", change, scenario, TESTS)
    for what in sorted(activity.OF_SUBAGENTS):
        change = _swap(activity, "OF_SUBAGENTS", activity.OF_SUBAGENTS - {what})
        # There its answers come with the end of a tool, and that answers too.
        yield Mutant("sub-agents", f"{what} is theirs", change, "people" if what is What.ASKED else None, TESTS)
