"""`vigil up` on a terminal: how far it is, and nothing is called up that is not."""

from __future__ import annotations

from typing import Any

from vigil.cli.up import progress


def session(state: str, hold: str | None = None) -> dict[str, Any]:
    return {"state": state, "hold": hold and {"reason": hold, "until": None}}


def test_all_that_run_are_up() -> None:
    assert progress([session("running"), session("running")], 2) == "2 of 2 up"


def test_what_waits_or_died_is_not_up_and_says_what_it_is() -> None:
    found = [session("running"), session("pending", "memory"), session("pending", "memory"), session("crashed", "backoff")]

    assert progress(found, 4) == "1 of 4 up, 2 waiting (memory), 1 crashed"


def test_what_is_gone_again_is_not_up() -> None:
    assert progress([session("starting")], 2) == "0 of 2 up, 1 starting"
