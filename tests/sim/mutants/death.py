"""Mutants of deaths: what each is called, how sure that is, what it costs, and who comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.sim import host
from tests.sim.mutants.change import Mutant, _both, _handled, _rules, _set, _swap
from vigil.core import book
from vigil.core.handlers import account, orphan
from vigil.core.model.death import Cause
from vigil.core.model.restart import RestartWhen
from vigil.core.rules import death, restart, wall

CAUSES = _rules("death")
CHARGES = (*_rules("restart"), *_handled("charge", "hold", "launch"))
WALLS = _handled("wall")


def _deaths() -> Iterator[Mutant]:
    """DESIGN 4.4: each rule of what a death is called."""
    for number, rule in enumerate(death.RULES):
        rest = death.RULES[:number] + death.RULES[number + 1 :]
        yield Mutant(
            "causes", f"{rule.cause} ({number}) is dropped", _swap(death, "RULES", rest), _scenario(rule.cause), CAUSES
        )
    for number, memory in enumerate(death.MEMORY[:-1]):
        so = death.MEMORY[:number] + death.MEMORY[number + 1 :]
        yield Mutant("memory", f"{memory.so} ({number}) is dropped", _swap(death, "MEMORY", so), "walls", CAUSES)
    yield Mutant("orphans", "a pane is a server", _set(orphan.CAUSES, "pane", Cause.SERVER_DIED), "tmux")
    yield Mutant("removal", "its rows come back", _swap(book, "outlasting", lambda rows, _removed: tuple(rows)), "people")
    yield Mutant("processes", "a thread is one", _swap(host, "is_process", lambda _found: True), "crashes")
    for number, reserve in enumerate(death.RESERVES):
        left = death.RESERVES[:number] + death.RESERVES[number + 1 :]
        scenario = "walls" if number in (2, 3) else "killed"
        yield Mutant(
            "how sure", f"{reserve.confidence} ({number}) is dropped", _swap(death, "RESERVES", left), scenario, CAUSES
        )


def _charges() -> Iterator[Mutant]:
    """DESIGN 4.4: what each death costs, and after which a session comes back."""
    for cause in Cause:
        for instead in ("FREE", "COUNTED"):
            if cause in getattr(restart, instead):
                continue
            words = f"{cause} is {'charged' if instead == 'COUNTED' else 'free'}"
            yield Mutant("charges", words, _moved(cause, instead), _scenario(cause), CHARGES)
        for when in RestartWhen:
            back = restart.COMES_BACK[when]
            row = f"{when} after {cause} is {'no' if cause in back else 'yes'}"
            yield Mutant("comes back", row, _set(restart.COMES_BACK, when, back ^ {cause}), _scenario(cause), CHARGES)
    for name, value in (("LIMIT_CAP_S", 3600.0), ("PASSED_S", 5.0), ("LONGEST_S", 60.0)):
        yield Mutant("walls", f"{name} is {value:g}", _swap(wall, name, value), "walls", WALLS)
    yield Mutant(
        "walls", "nobody waits for others'", _swap(account, "_of_account", lambda _book, session: [session]), "walls", WALLS
    )


def _charge_of(cause: Cause) -> str:
    return next(name for name in ("FREE", "COUNTED", "HELD") if cause in getattr(restart, name))


def _moved(cause: Cause, instead: str) -> Callable[[], Any]:
    """Return a context in which a death costs something else."""
    before = _charge_of(cause)
    less, more = getattr(restart, before) - {cause}, getattr(restart, instead) | {cause}
    return _both(_swap(restart, before, less), _swap(restart, instead, more))


def _scenario(cause: Cause) -> str:
    """Return the kind of bad day on which there are many such deaths."""
    if cause in (Cause.OOM, Cause.LIMIT, Cause.AUTH):
        return "walls"
    by_cause = {
        Cause.HOST_REBOOTED: "host",
        Cause.SERVER_DIED: "tmux",
        Cause.PANE_CLOSED: "tmux",
        Cause.POLICY: "shifts",
        Cause.UNHEALTHY: "signs",
    }
    return by_cause.get(cause, "crashes")
