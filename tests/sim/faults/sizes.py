"""How bad a fault is: from its size, between 0 and 1, which was drawn with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tests.sim.world import World

Strike = Callable[["World", str, float], bool]  # at a session, with a size; says whether there was anything to strike
T = TypeVar("T")


def pick(size: float, *choices: T) -> T:
    """Return one of some choices, by a fault's size."""
    return choices[int(size * 7919) % len(choices)]


def between(size: float, least_s: float, most_s: float) -> float:
    """Return how long a fault lasts: short ones are as likely as long ones."""
    return float(least_s * (most_s / least_s) ** size)
