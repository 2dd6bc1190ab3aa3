"""Mutants of our own failures: they are charged to nobody, and launches wait for a keeper that answers (P15)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.mutants.change import Mutant, _handled, _swap
from vigil.core.handlers import admission, takeover
from vigil.core.model.death import Cause
from vigil.core.rules import restart

KEEPER = _handled("keeper")


def _keepers() -> Iterator[Mutant]:
    """P15: our own failures are charged to nobody, and who waits for a keeper gets one."""
    charged = _swap(restart, "is_ours", lambda _death: False)
    yield Mutant("ours", "what Vigil lost follows its policy", charged, "killed", KEEPER)
    again = _swap(restart, "is_ours", lambda death: death is not None and death.cause is Cause.LAUNCH_FAILED)
    yield Mutant("ours", "what failed by itself is launched again for nothing", again, "killed", KEEPER)
    unheld = _swap(admission, "wait_for_keeper", admission.begin_launch)
    yield Mutant("keeper", "launches do not wait for one", unheld, "killed", KEEPER)
    left = tuple(reason for reason in takeover.AT_ONCE if reason != "keeper")
    yield Mutant("keeper", "a new daemon lets them wait", _swap(takeover, "AT_ONCE", left), "killed", KEEPER)
