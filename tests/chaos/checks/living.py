"""P1: at most one live agent for each identity, and nothing of the last launch beside the next."""

from __future__ import annotations

from tests.chaos.checks.base import Verdict
from tests.chaos.history import History


def check(history: History) -> Verdict:
    verdict = Verdict("P1 one live agent", history.samples)
    for double in history.doubles:
        first, second = double.launches
        verdict.expect(False, double.at, f"{double.session}: {first} and {second} live at once, pids {double.pids}")
    for left in history.leftovers:
        verdict.expect(
            False,
            left.at,
            f"{left.session}: {left.launches[1]} (pid {left.pids[1]}) runs while a survivor of {left.launches[0]} lives "
            f"(pid {left.pids[0]})",
        )
    return verdict
