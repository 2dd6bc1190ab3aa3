"""Between the order to launch and the birth: the keeper dies, or both."""

from __future__ import annotations

import os
import signal
import time

from tests.chaos.history import Part
from tests.chaos.stage import Stage

PAUSES_S = (0.0, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1)
WAIT_S = 3.0


def kill_keeper_at_birth(stage: Stage) -> str:
    return _kill_at_birth(stage, (Part.KEEPER,))


def kill_both_at_birth(stage: Stage) -> str:
    parts = [Part.KEEPER, Part.DAEMON]
    stage.rng.shuffle(parts)
    return _kill_at_birth(stage, tuple(parts))


def _kill_at_birth(stage: Stage, parts: tuple[Part, ...]) -> str:
    """Order a launch, wait for its folder, then strike within milliseconds."""
    name, pause_s = stage.rng.choice(sorted(stage.fleet.members)), stage.rng.choice(PAUSES_S)
    victims = [life for part in parts for life in stage.watch.alive(part)[-1:]]
    folder = stage.place.home / "launches"
    before = set(os.listdir(folder))
    stage.order("restart", name)

    def strike() -> None:
        deadline = time.monotonic() + WAIT_S
        while set(os.listdir(folder)) <= before and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(pause_s)
        for life in victims:
            stage.shoot(life, signal.SIGKILL)

    stage.later(strike)
    return f"restart {name}, then {' and '.join(parts)}: SIGKILL {pause_s * 1000:.0f} ms after the order"
