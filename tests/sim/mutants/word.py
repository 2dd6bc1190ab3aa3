"""Mutants of words: what agents say means what DESIGN 4.1 says."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.mutants.change import Mutant, _set, _swap
from vigil.core.model.progress import IDLE
from vigil.core.model.speech import What
from vigil.core.rules import activity

# No simulated agent says these: streams and transcripts do; what a sub-agent does is a sign of life before the table is asked.
UNSAID = {What.ERROR, What.RESULT, What.WAITS, What.RETRIES, What.SUBAGENT_STARTED, What.SUBAGENT_ENDED}
PLAINLY_SAID = {"waiting-timer", "throttled", "idle"}  # the others are told apart by what is open


def _words() -> Iterator[Mutant]:
    """DESIGN 4.1: what agents' words mean."""
    for what, rule in activity.RULES.items():
        if what not in UNSAID:
            instead = activity._ends if rule is activity._signs else activity._signs
            row = f"{what} {'ends a turn' if rule is activity._signs else 'is a sign of life'}"
            yield Mutant("words", row, _set(activity.RULES, what, instead), "people")
    for said_plainly, meant in activity.PLAIN.items():
        instead_of = IDLE if meant != IDLE else activity.PLAIN["working"]
        if said_plainly in PLAINLY_SAID:
            yield Mutant("plain words", f"{said_plainly} is another", _set(activity.PLAIN, said_plainly, instead_of), "people")
    for what in sorted(
        activity.OF_SUBAGENTS & {What.ASKED}
    ):  # there its answers come with the end of a tool, and that answers too
        yield Mutant(
            "sub-agents", f"{what} is theirs", _swap(activity, "OF_SUBAGENTS", activity.OF_SUBAGENTS - {what}), "people"
        )
