"""A role may promise signs of life: who gives none is ended for that, charged like any death, but not while it must not be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.builders import Stage, kinds, make_exit, make_launched, make_observed, make_reading, make_session, make_spec
from vigil.core.effects import EndLaunch, SetTimer, TimerKind
from vigil.core.events import Applied, Attended, Ended, Exited, Gap, Heard, Observed, TimerFired
from vigil.core.model.death import Cause
from vigil.core.model.reading import Axis
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.session import PulseState, State, with_vitals
from vigil.core.model.speech import Said, What
from vigil.core.model.team import Health, Manifest, RoleSpec
from vigil.core.rules import heartbeat as rules
from vigil.core.rules.health import health_of
from vigil.core.rules.heartbeat import KEEPS

POLICY = RestartPolicy(RestartWhen.ALWAYS, max_restarts=5, base_s=10.0, jitter=0.0)
HEALTH = Health(heartbeat_s=60.0, failures=3, grace_s=30.0)
NAME = "shop/backend/coder/0"
STARTED = 1000.0


def beating(policy: RestartPolicy = POLICY, health: Health | None = HEALTH) -> Stage:
    """Return a stage on which a replica runs whose role promises signs of life."""
    stage = Stage(now=STARTED)
    role = RoleSpec("shop", "backend", "coder", 1, make_spec(policy), health=health)
    stage.tell(Applied(Manifest("shop", (role,)), "alice"))
    stage.tell(make_launched(f"{sid(stage)}-1", STARTED))
    return stage


def sid(stage: Stage) -> str:
    return stage.machine.by_name[NAME]


def check(stage: Stage, at: float) -> list[str]:
    stage.now = at
    return kinds(stage.tell(TimerFired(sid(stage), TimerKind.PULSE)))


def beat(stage: Stage, at: float) -> None:
    stage.now = at
    stage.hear("", sid(stage))


def state(stage: Stage) -> str:
    pulse = stage.session(sid(stage)).vitals.pulse
    return "none" if pulse is None else pulse.state.value


def told(stage: Stage) -> list[str]:
    return [entry.data["to"] for entry in stage.entries if entry.kind == "session.health"]


def test_who_promises_nothing_is_not_waited_for() -> None:
    stage = beating(health=None)

    assert state(stage) == "none"
    assert check(stage, 1e6) == []


def test_the_first_sign_makes_it_healthy_and_later_ones_are_no_events() -> None:
    stage = beating()

    for at in (1010.0, 1020.0, 1070.0):
        beat(stage, at)

    assert (state(stage), told(stage)) == ("healthy", ["healthy"])
    assert health_of(stage.session(sid(stage))) == "ok"


def test_the_tick_of_its_clock_is_a_sign_of_life() -> None:
    stage = beating()
    stage.now = 1070.0

    stage.tell(Heard(f"{sid(stage)}-1", (Said(What.TICKS),), "stream"))

    assert (state(stage), stage.session(sid(stage)).last_activity_at) == ("healthy", None)


def test_the_first_sign_has_its_grace() -> None:
    stage = beating()

    assert check(stage, STARTED + 89.0) == ["SetTimer"]
    assert state(stage) == "unknown"
    check(stage, STARTED + 90.0)

    assert (state(stage), health_of(stage.session(sid(stage)))) == ("late", "suspect")


def test_so_many_missed_in_a_row_and_it_is_ended_for_that_and_charged() -> None:
    stage = beating()
    beat(stage, 1010.0)

    assert check(stage, 1070.0) == ["SetTimer"]
    assert check(stage, 1130.0) == ["SetTimer"]
    assert check(stage, 1190.0) == ["EndLaunch"]
    assert stage.state(sid(stage)) == "ending"
    assert stage.intents[-1].cause is Cause.UNHEALTHY
    stage.tell(Exited(make_exit(f"{sid(stage)}-1", 1191.0, signal=15)))

    assert (stage.deaths[-1].cause, stage.deaths[-1].charged) == (Cause.UNHEALTHY, True)
    assert stage.state(sid(stage)) == "crashed (backoff)"
    assert told(stage) == ["healthy", "late", "unhealthy"]


def test_two_that_fall_silent_together_are_one_charge_and_both_come_back() -> None:
    stage = Stage(now=STARTED)
    role = RoleSpec("shop", "backend", "coder", 2, make_spec(POLICY), health=HEALTH)
    stage.tell(Applied(Manifest("shop", (role,)), "alice"))
    both = [stage.machine.by_name[role.slot(index)] for index in range(2)]
    for one in both:
        stage.tell(make_launched(f"{one}-1", STARTED))
    stage.now = STARTED + 210.0

    for one in both:
        stage.tell(TimerFired(one, TimerKind.PULSE))
        stage.tell(Exited(make_exit(f"{one}-1", stage.now, signal=15)))
        stage.tell(Ended(f"{one}-1", True))

    assert stage.machine.roles[role.key].charges == 1
    assert [stage.state(one) for one in both] == ["crashed (backoff)", "pending (backoff)"]
    assert [death.cause for death in stage.deaths] == [Cause.UNHEALTHY] * 2
    stage.now += POLICY.base_s
    for one in both:
        stage.tell(TimerFired(one, TimerKind.HOLD))
        stage.tell(Ended(f"{one}-1", True))
    assert [stage.session(one).state for one in both] == [State.STARTING] * 2


def test_a_sign_after_a_missed_one_begins_anew_and_is_told_once() -> None:
    stage = beating()
    beat(stage, 1010.0)
    check(stage, 1130.0)
    beat(stage, 1140.0)
    beat(stage, 1141.0)

    check(stage, 1190.0)

    assert (state(stage), told(stage)) == ("healthy", ["healthy", "late", "healthy"])


def test_each_timer_is_set_for_the_next_sign_that_is_due() -> None:
    stage = beating()
    beat(stage, 1010.0)
    beat(stage, 1050.0)

    stage.now = 1070.0
    (timer,) = stage.tell(TimerFired(sid(stage), TimerKind.PULSE))

    assert timer == SetTimer(sid(stage), TimerKind.PULSE, 1110.0)


def test_under_never_the_slot_stays_empty() -> None:
    stage = beating(RestartPolicy(RestartWhen.NEVER))
    check(stage, STARTED + 300.0)

    stage.tell(Exited(make_exit(f"{sid(stage)}-1", stage.now, signal=15)))

    assert stage.state(sid(stage)) == "failed"


def unhealthy_but(stage: Stage) -> str:
    check(stage, STARTED + 300.0)
    return stage.session(sid(stage)).why


def test_every_reason_to_keep_it_is_tried() -> None:
    found = set()
    stage = beating()
    stage.tell(Observed(f"{sid(stage)}-1", (), attached=1))
    found.add(unhealthy_but(stage))
    stage = beating()
    stage.now = 1290.0
    stage.tell(Observed(f"{sid(stage)}-1", (), active_at=1290.0))
    found.add(unhealthy_but(stage))
    stage = beating()
    stage.tell(make_observed(f"{sid(stage)}-1", 1000.5, server="wedged"))
    found.add(unhealthy_but(stage))
    stage = beating()
    stage.machine.sessions[sid(stage)] = with_vitals(stage.session(sid(stage)), axes={})
    found.add(unhealthy_but(stage))

    kept = {words.rpartition("not ended: ")[2] for words in found}
    assert kept <= {row.why for row in KEEPS}
    assert len(kept) == 4
    assert all(words.startswith("unhealthy: no sign of life for 270 s") for words in found)


def test_one_in_doubt_is_kept() -> None:
    stage = beating()
    session = stage.session(sid(stage))
    stage.machine.sessions[session.id] = replace(session, state=State.SUSPECT)

    check(stage, STARTED + 300.0)

    assert stage.state(sid(stage)) == "suspect"
    assert not stage.intents


def test_an_unhealthy_one_that_is_kept_is_shown_so_and_ended_when_nothing_keeps_it() -> None:
    stage = beating()
    stage.tell(Observed(f"{sid(stage)}-1", (), attached=1))
    assert check(stage, STARTED + 300.0) == ["SetTimer"]
    assert health_of(stage.session(sid(stage))) == "unhealthy"

    stage.tell(Observed(f"{sid(stage)}-1", (), attached=0))

    assert check(stage, STARTED + 360.0) == ["EndLaunch"]
    assert told(stage) == ["unhealthy"]


def test_somebody_who_came_just_before_the_end_keeps_it_and_it_is_asked_again() -> None:
    stage = beating()
    check(stage, STARTED + 300.0)

    effects = stage.tell(Attended(f"{sid(stage)}-1", "a person is attached to its pane"))

    assert stage.state(sid(stage)) == "running"
    assert stage.session(sid(stage)).vitals.intent is None
    assert kinds(effects) == ["SetTimer"]
    assert check(stage, STARTED + 320.0) == ["SetTimer"], "that person is still there, as far as anybody knows"


def test_it_is_ended_only_if_nobody_is_there() -> None:
    stage = beating()
    stage.now = STARTED + 300.0

    effects = stage.tell(TimerFired(sid(stage), TimerKind.PULSE))

    assert [effect.unless_attended for effect in effects if isinstance(effect, EndLaunch)] == [True]


def test_time_in_which_nobody_listened_is_nobodys_silence() -> None:
    stage = beating()
    beat(stage, 1010.0)
    stage.now = 5000.0
    stage.tell(Gap(3990.0))
    assert check(stage, 5001.0) == ["SetTimer"]
    assert state(stage) == "healthy"

    stage.now = 9000.0
    stage.restart()
    check(stage, 9059.0)

    assert state(stage) == "healthy"


def test_the_next_launch_begins_with_a_new_grace() -> None:
    stage = beating()
    beat(stage, 1010.0)
    stage.now = 1100.0
    stage.tell(Exited(make_exit(f"{sid(stage)}-1", 1100.0, exit_code=1)))
    stage.now = 1110.0
    stage.tell(TimerFired(sid(stage), TimerKind.HOLD))
    stage.end_launch(sid(stage))
    stage.tell(make_launched(f"{sid(stage)}-2", 1111.0))

    pulse = stage.session(sid(stage)).vitals.pulse

    assert pulse is not None
    assert (pulse.state, pulse.due_from) == (PulseState.UNKNOWN, 1141.0)


def test_a_promise_that_is_made_later_holds_for_what_runs() -> None:
    stage = beating(health=None)
    stage.now = 5000.0
    role = RoleSpec("shop", "backend", "coder", 1, make_spec(POLICY), health=HEALTH)

    stage.tell(Applied(Manifest("shop", (role,)), "alice"))
    assert state(stage) == "unknown"
    check(stage, 5089.0)

    assert state(stage) == "unknown"
    stage.tell(Applied(Manifest("shop", (replace(role, health=None),)), "alice"))
    assert state(stage) == "none"


@pytest.mark.parametrize("late_s", [0.0, 0.4, 59.0])
def test_a_timer_that_is_late_counts_what_was_missed_and_no_more(late_s: float) -> None:
    stage = beating()
    beat(stage, 1010.0)

    check(stage, 1130.0 + late_s)

    assert state(stage) == "late"


@pytest.mark.parametrize(
    ("axis", "value", "why"),
    [
        (Axis.SERVER, "wedged", "its tmux server does not answer"),
        (Axis.SERVER, "unknown", "its tmux server does not answer"),
        (Axis.PROCESS, "unknown", "its process cannot be read"),
        (Axis.PROCESS, "failed", "its process cannot be read"),
        (Axis.PROCESS, "stopped", None),
    ],
)
def test_what_cannot_be_read_is_kept_before_its_doubt_is_shown(axis: Axis, value: str, why: str | None) -> None:
    axes = {Axis.SERVER: make_reading(), Axis.PROCESS: make_reading(), axis: make_reading(value)}

    assert next((row.why for row in rules.KEEPS if row.holds(make_session(axes=axes), HEALTH, 1e6)), None) == why
