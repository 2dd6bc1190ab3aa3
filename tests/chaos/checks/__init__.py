"""Checks: each reads the history of a run and says how often a promise was looked at and where it broke."""

from __future__ import annotations

from tests.chaos.checks import answering, dying, living, removing, restarting, states, telling, touching
from tests.chaos.checks.base import Verdict, Violation
from tests.chaos.history import History

__all__ = ["CHECKS", "Verdict", "Violation", "judge"]

CHECKS = (
    living.check,
    touching.check,
    dying.check,
    restarting.check,
    states.check,
    removing.check,
    telling.check,
    answering.check_sockets,
    answering.check_commands,
    answering.check_words,
)


def judge(history: History) -> list[Verdict]:
    """Return the verdict on every promise."""
    return [check(history) for check in CHECKS]
