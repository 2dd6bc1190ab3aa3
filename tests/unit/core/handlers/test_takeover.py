"""A new daemon takes up what was stored: what waits for nothing in particular goes on at once, all else waits on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.builders import kinds, running
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import State

R = HoldReason


@pytest.mark.parametrize("reason", [None, *HoldReason])
def test_what_waits_for_no_moment_and_no_person_is_taken_up_at_once(reason: HoldReason | None) -> None:
    stage = running()
    ended = replace(stage.launch(), ended_at=1050.0)
    hold = None if reason is None else Hold(reason, None)
    stage.durable["s1"] = replace(stage.session(), state=State.PENDING, hold=hold, launch=ended)

    asked = stage.restart()

    at_once = reason in (None, R.PACE, R.MEMORY, R.KEEPER, R.SURVIVOR)
    assert ("EndLaunch" in kinds(asked)) is at_once, "what its last launch left goes first"
    assert stage.state() == ("pending (survivor)" if at_once else f"pending ({reason})")
