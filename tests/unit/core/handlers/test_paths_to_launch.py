"""Every path from a death to the next launch waits (P4): a table of deaths, and of all that may be told right after one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.builders import Stage, make_exit, make_launched, make_spec
from vigil.core.effects import Effect, EndLaunch, Spawn, TimerKind
from vigil.core.events import (
    Attended,
    Closed,
    Configured,
    Declared,
    Ended,
    Exited,
    Gap,
    Interrupted,
    LaunchFailed,
    MemoryRead,
    RuntimeEnded,
    TimerFired,
)
from vigil.core.model.death import Cause, Words
from vigil.core.model.incident import RESTART, IncidentKind, Reaction
from vigil.core.model.restart import RestartPolicy, RestartWhen

BASE_S = 0.3
MOMENT_S = 0.013
ALWAYS = RestartPolicy(RestartWhen.ALWAYS, max_restarts=0, base_s=BASE_S)
ONCE = RestartPolicy(RestartWhen.ALWAYS, max_restarts=1, base_s=BASE_S)
OF_OTHERS = (TimerKind.REACT, TimerKind.SHIFT, TimerKind.STEADY)  # of incidents and of roles
LIMIT = Words(Cause.LIMIT, "limit reached", None)


def born(policy: RestartPolicy = ALWAYS) -> Stage:
    stage = Stage()
    stage.tell(Declared("s1", "alpha", make_spec(policy), "alice", "account"))
    stage.tell(make_launched("s1-1", stage.now))
    stage.now += 60.0
    return stage


def dies(**found: Any) -> Callable[[], Stage]:
    def die() -> Stage:
        stage = born()
        stage.exit(**found)
        return stage

    return die


def dies_while_it_starts() -> Stage:
    stage = Stage()
    stage.tell(Declared("s1", "alpha", make_spec(ALWAYS), "alice", "account"))
    stage.now += 0.01
    stage.exit(exit_code=0)
    return stage


def never_starts() -> Stage:
    stage = Stage()
    stage.tell(Declared("s1", "alpha", make_spec(ALWAYS), "alice", "account"))
    stage.tell(LaunchFailed("s1-1", stage.now, "no"))
    return stage


def is_stopped_and_dies() -> Stage:
    stage = born()
    stage.ask("stop")
    stage.exit(signal=15)
    return stage


def is_ended_for_its_health() -> Stage:
    """Its end was meant by policy, and it died of that."""
    stage = born()
    stage.tell(Configured((), (Reaction(IncidentKind.SATURATED, RESTART, budget=9, every_s=0.0),)))
    stage.exit(signal=15)
    return stage


def is_given_up() -> Stage:
    stage = born(ONCE)
    stage.tell(Configured((), (Reaction(IncidentKind.SATURATED, RESTART, budget=9, every_s=0.0),)))
    stage.exit(exit_code=1)
    stage.now += 60.0
    drive(stage, stage.tell(TimerFired("s1", TimerKind.HOLD)))
    stage.tell(make_launched("s1-2", stage.now))
    stage.exit(exit_code=1)
    return stage


DEATHS: dict[str, Callable[[], Stage]] = {
    "crash": dies(exit_code=3),
    "finished": dies(exit_code=0),
    "killed": dies(signal=9),
    "limit": dies(exit_code=1, words=LIMIT),
    "rebooted": dies(rebooted=True),
    "while it starts": dies_while_it_starts,
    "launch failed": never_starts,
    "stopped": is_stopped_and_dies,
    "with reactions": is_ended_for_its_health,
    "given up": is_given_up,
}


def timer(kind: TimerKind) -> Callable[[Stage], list[Effect]]:
    return lambda stage: stage.tell(TimerFired("s1", kind))


def lift_the_wall(stage: Stage) -> list[Effect]:
    """Another session of the account is removed, or works: what this one waits for is gone."""
    effects = (
        [] if "s2" in stage.machine.sessions else stage.tell(Declared("s2", "beta", make_spec(ALWAYS), "alice", "account"))
    )
    return [*effects, *stage.tell(TimerFired("s1", TimerKind.WALL)), *stage.tell(TimerFired("s1", TimerKind.HOLD))]


PUSHES: dict[str, Callable[[Stage], list[Effect]]] = {
    **{f"timer {kind}": timer(kind) for kind in TimerKind if kind not in OF_OTHERS},
    "a reaction": lambda stage: stage.tell(TimerFired("s1/saturated", TimerKind.REACT)),
    "a new daemon": lambda stage: stage.restart(),
    "a new daemon, twice": lambda stage: [*stage.restart(), *stage.restart()],
    "ended": lambda stage: stage.end(),
    "ended twice": lambda stage: [*stage.end(), *stage.end()],
    "interrupted": lambda stage: stage.tell(Interrupted(stage.launch().id)),
    "launched late": lambda stage: stage.tell(make_launched(stage.launch().id, stage.now)),
    "launch failed late": lambda stage: stage.tell(LaunchFailed(stage.launch().id, stage.now, "no")),
    "told again": lambda stage: stage.tell(Exited(make_exit(stage.launch().id, stage.now, exit_code=0))),
    "closed": lambda stage: stage.tell(Closed(stage.launch().id, (), True, None)),
    "its runtime ended": lambda stage: stage.tell(RuntimeEnded(stage.launch().id)),
    "attended": lambda stage: stage.tell(Attended(stage.launch().id, "a person")),
    "memory": lambda stage: stage.tell(MemoryRead(None, "")),
    "a gap": lambda stage: stage.tell(Gap(5.0)),
    "a wall that goes": lift_the_wall,
    "stop": lambda stage: stage.ask("stop"),
    "hibernate": lambda stage: stage.ask("hibernate"),
}
BY_A_PERSON = ("start", "restart", "reset", "wake")


def drive(stage: Stage, effects: list[Effect]) -> list[str]:
    """Carry out every end that was asked for; return the launches of the session that were begun."""
    begun = []
    while effects:
        effect = effects.pop(0)
        if isinstance(effect, EndLaunch):
            effects += stage.tell(Ended(effect.launch.id, ok=True))
        elif isinstance(effect, Spawn) and effect.session.id == "s1":
            begun.append(effect.launch.id)
    return begun


@pytest.mark.parametrize("push", PUSHES)
@pytest.mark.parametrize("death", DEATHS)
def test_nothing_but_a_person_brings_a_session_back_right_after_its_death(death: str, push: str) -> None:
    stage = DEATHS[death]()
    stage.now += MOMENT_S

    assert drive(stage, PUSHES[push](stage)) == []


@pytest.mark.parametrize("again", PUSHES)
@pytest.mark.parametrize("push", PUSHES)
def test_nor_do_two_things_one_after_the_other(push: str, again: str) -> None:
    for make in DEATHS.values():
        stage = make()
        stage.now += MOMENT_S
        begun = drive(stage, PUSHES[push](stage))
        stage.now += MOMENT_S

        assert [*begun, *drive(stage, PUSHES[again](stage))] == []


@pytest.mark.parametrize("verb", BY_A_PERSON)
@pytest.mark.parametrize("death", ["crash", "finished", "killed", "launch failed", "given up", "stopped"])
def test_a_person_does_not_wait(death: str, verb: str) -> None:
    stage = DEATHS[death]()
    if death == "stopped":
        stage.end()
    stage.now += MOMENT_S
    refused = verb == "wake" or (verb == "reset" and death == "stopped")  # in backoff, or nothing to end

    begun = drive(stage, stage.ask(verb))

    assert len(begun) == (0 if refused else 1)


def test_after_its_base_each_comes_back() -> None:
    for name, make in DEATHS.items():
        stage = make()
        hold = stage.session().hold
        if name in ("stopped", "given up", "limit") or hold is None:
            continue
        assert hold.until is not None and hold.until >= stage.now + BASE_S * 0.9 - 1e-6, name
        stage.now = hold.until

        assert len(drive(stage, stage.tell(TimerFired("s1", TimerKind.HOLD)))) == 1, name
