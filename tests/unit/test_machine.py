"""Every event of a session's life, and what the machine asks for in return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.builders import (
    ALWAYS,
    NEVER,
    ON_FAILURE,
    SITUATIONS,
    Stage,
    being_removed,
    being_replaced,
    being_restarted,
    being_stopped,
    being_stopped_while_it_starts,
    crashed,
    crashed_and_coming_back,
    failed,
    kinds,
    launch_failed,
    make_exit,
    make_launch,
    make_launched,
    make_process,
    make_session,
    make_spec,
    only_spawn,
    only_timer,
    running,
    saturated,
    starting,
    stopped,
    stuck,
    suspect,
    waiting_for_its_turn,
)
from vigil.core.asked import VERBS
from vigil.core.effects import CloseLaunch, EndLaunch, Persist, Purge, SetTimer, Spawn
from vigil.core.events import (
    Asked,
    Closed,
    Declared,
    Ended,
    Event,
    Exited,
    Interrupted,
    LaunchFailed,
    Noted,
    Observed,
    Orphaned,
    Resumed,
    TimerFired,
    Withdrawn,
)
from vigil.core.intents import INTENT_LASTS_S
from vigil.core.launching import PACE
from vigil.core.machine import GRACE_S, HANDLERS, Machine
from vigil.core.model import ALIVE, After, Axis, Cause, Fact, Hold, RestartPolicy, RestartWhen, State
from vigil.core.restart import delay_s, jitter_of

END = "ending EndLaunch"
BACK = "pending (survivor) EndLaunch"
AGAIN = "crashed (survivor) EndLaunch"
# What a verb makes of a session in each situation, and what is asked for; "-": it stays as it is and nothing is done.
VERB_TABLE = {
    #                                 stop       start     restart   rm               reset  hibernate  wake     archive rel.
    "starting":                      ("ending",  "-",      "ending", "ending",        "-",   "ending",  "-",     "ending", "-"),
    "waiting_for_its_turn":          ("stopped", "-",      "-",      "removed Purge", "-",   "-",       "-",     "stopped","-"),
    "running":                       (END,       "-",      END,      END,             "-",   END,       "-",     END,      "-"),
    "suspect":                       (END,       "-",      END,      END,             "-",   END,       "-",     END,      "-"),
    "stuck":                         (END,       END,      END,      END,             "-",   END,       "-",     END,      "-"),
    "being_stopped":                 ("ending",  "ending", "ending", "ending",        "-",   "-",       "-",     "ending", "-"),
    "being_stopped_while_it_starts": ("ending",  "ending", "ending", "ending",        "-",   "-",       "-",     "ending", "-"),
    "being_restarted":               ("ending",  "ending", "ending", "ending",        "-",   "ending",  "-",     "ending", "-"),
    "being_parked":                  ("ending",  "ending", "ending", "ending",        "-",   "ending",  "ending","ending", "-"),
    "being_removed":                 ("ending",  "ending", "ending", "ending",        "-",   "-",       "-",     "ending", "-"),
    "being_replaced":                ("ending",  "ending", "ending", "ending",        "-",   "ending",  "-",     "ending", "-"),
    "finished_and_coming_back":      (END,       BACK,     BACK,     END,             BACK,  "-",       "-",     END,      "-"),
    "coming_back":                   (END,       BACK,     BACK,     END,             "-",   "-",       "-",     END,      "-"),
    "crashed":                       (END,       AGAIN,    AGAIN,    END,             AGAIN, "-",       "-",     END,      "-"),
    "crashed_and_coming_back":       (END,       AGAIN,    AGAIN,    END,             "-",   "-",       "-",     END,      "-"),
    "parked":                        (END,       BACK,     BACK,     END,             "-",   "-",       BACK,    END,      "-"),
    "stopped":                       ("-",       BACK,     BACK,     END,             "-",   "-",       "-",     END,      "-"),
    "failed":                        (END,       BACK,     BACK,     END,             BACK,  "-",       BACK,    END,      "-"),
    "launch_failed":                 (END,       BACK,     BACK,     END,             BACK,  "-",       BACK,    END,      "-"),
    "saturated":                     (END,       BACK,     BACK,     END,             BACK,  "-",       "-",     END,      "-"),
    "succeeded":                     (END,       BACK,     BACK,     END,             "-",   "-",       BACK,    END,      "-"),
}  # fmt: skip
ORDER = ("stop", "start", "restart", "rm", "reset", "hibernate", "wake", "archive", "release")
AFTER = {"stop": After.STOP, "start": After.RELAUNCH, "restart": After.RELAUNCH, "rm": After.REMOVE}


def situations(*states: State) -> list[str]:
    return [name for name, build in SITUATIONS.items() if not states or build().session().state in states]


# Tables are whole


def test_every_kind_of_event_has_a_handler() -> None:
    assert set(HANDLERS) == set(Event.__args__)


def test_the_table_of_verbs_knows_every_verb_and_every_situation() -> None:
    assert set(VERBS) == set(ORDER)
    assert set(VERB_TABLE) == set(SITUATIONS)


def test_the_situations_are_in_every_state_there_is() -> None:
    assert {build().session().state for build in SITUATIONS.values()} == set(State)


# Operators


@pytest.mark.parametrize("verb", ORDER)
@pytest.mark.parametrize("situation", VERB_TABLE)
def test_a_verb_does_what_the_table_says(situation: str, verb: str) -> None:
    stage = SITUATIONS[situation]()
    before = stage.state()
    expected = VERB_TABLE[situation][ORDER.index(verb)]

    asked = stage.ask(verb)

    found = " ".join([stage.state(), *kinds(asked)])
    assert found == (before if expected == "-" else expected)


@pytest.mark.parametrize("verb", ORDER)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_an_operator_asked_is_in_the_log_also_when_it_changes_nothing(situation: str, verb: str) -> None:
    stage = SITUATIONS[situation]()

    stage.ask(verb)

    assert f"session.asked-{verb}" in stage.log


@pytest.mark.parametrize("verb", ["stop", "restart", "rm"])
@pytest.mark.parametrize("situation", situations(*ALIVE))
def test_what_ends_a_living_session_records_its_intent_in_the_same_call(situation: str, verb: str) -> None:
    stage = SITUATIONS[situation]()
    known = len(stage.intents)

    stage.ask(verb)

    (intent,) = stage.intents[known:]
    assert (intent.verb, intent.cause, intent.actor) == (verb, Cause.OPERATOR, "alice")
    assert intent.launch_id == stage.launch().id
    assert intent.target == stage.launch().process
    assert intent.until == intent.at + INTENT_LASTS_S
    assert stage.session().intent == intent
    assert stage.session().after is AFTER[verb]


@pytest.mark.parametrize("verb", ["stop", "restart", "rm", "start"])
@pytest.mark.parametrize("situation", situations(State.ENDING))
def test_the_last_word_decides_what_follows_an_ending(situation: str, verb: str) -> None:
    stage = SITUATIONS[situation]()

    stage.ask(verb)

    assert stage.session().after is AFTER[verb]
    assert stage.session().hold is None


def test_a_living_launch_is_ended_with_the_documented_grace() -> None:
    stage = running()

    (effect,) = stage.ask("stop")

    assert effect == EndLaunch(stage.launch(), GRACE_S)
    assert stage.launch().process == make_process()


def test_a_verb_for_a_session_that_is_gone_does_nothing() -> None:
    assert Machine().handle(Asked("stop", "nobody", "alice"), 1000.0) == []


def test_start_forgives_what_was_charged_and_restart_does_not() -> None:
    for verb, charges in (("start", 0), ("restart", 2), ("reset", 0)):
        stage = saturated()
        assert stage.session().charges == 2
        stage.ask(verb)
        assert stage.session().charges == charges, verb


@pytest.mark.parametrize("situation", SITUATIONS)
def test_reset_forgives_in_every_state(situation: str) -> None:
    stage = SITUATIONS[situation]()
    stage.machine.sessions["s1"] = replace(stage.session(), charges=3)

    stage.ask("reset")

    assert stage.session().charges == 0


def test_a_removed_session_is_forgotten_with_its_name() -> None:
    stage = being_removed()
    stage.exit(signal=15)

    effects = stage.machine.handle(Ended("s1-1", ok=True), stage.now)

    assert isinstance(effects[0], Persist)
    assert effects[0].removed == ("s1",)
    assert effects[0].sessions == ()
    assert isinstance(effects[1], Purge)
    assert effects[1].session.id == "s1"
    assert stage.machine.find("alpha") is None
    assert stage.machine.of_launch("s1-1") is None


def test_a_namesake_of_a_removed_session_is_born_clean() -> None:
    stage = being_removed()
    stage.exit(signal=15)
    stage.end()

    spawn = only_spawn(stage.declare(session_id="s2"))

    assert spawn.launch.id == "s2-1"
    assert (spawn.session.charges, spawn.session.last_death, spawn.session.intent) == (0, None, None)


def test_nothing_of_a_dead_session_is_purged_before_its_survivors_are_verified_gone() -> None:
    stage = stopped()

    assert kinds(stage.ask("rm")) == ["EndLaunch"]
    assert kinds(stage.end(ok=False)) == []
    assert stage.state() == "stuck"
    assert kinds(stage.ask("rm")) == ["EndLaunch"]
    assert kinds(stage.end()) == ["Purge"]


# Declarations and their pace


def test_a_declared_session_is_launched_at_once() -> None:
    stage = Stage()

    effects = stage.machine.handle(Declared("s1", "alpha", make_spec(), "alice"), 1000.0)

    assert kinds(effects) == ["Persist", "Spawn"]
    assert stage.state() == "starting"
    assert only_spawn(effects).launch == make_launch(created_at=1000.0, woken_for="first")
    assert isinstance(effects[0], Persist)
    assert [entry.kind for entry in effects[0].log] == ["session.declared", "session.wake", "session.state"]
    assert effects[0].launches == (only_spawn(effects).launch,)
    assert stage.machine.find("alpha") == stage.session()


def test_a_declaration_that_never_became_durable_is_as_if_it_never_was() -> None:
    stage = starting()

    assert stage.machine.handle(Withdrawn("s1"), 1000.0) == []
    assert stage.machine.find("alpha") is None
    assert len([stage.declare(session_id=f"n{i}", name=f"n{i}") for i in range(PACE)]) == PACE
    assert all(stage.state(f"n{i}") == "starting" for i in range(PACE)), "it still took a launch's place"


def test_at_most_four_launches_start_at_once() -> None:
    stage = Stage()

    asked = [kinds(stage.declare(session_id=f"s{i}", name=f"n{i}")) for i in range(7)]

    assert asked == [["Spawn"]] * 4 + [[]] * 3
    assert [stage.state(f"s{i}") for i in range(7)] == ["starting"] * 4 + ["pending (pace)"] * 3


@pytest.mark.parametrize("outcome", ["launched", "failed"])
def test_the_next_in_line_is_launched_when_a_launch_is_over(outcome: str) -> None:
    stage = Stage()
    for i in range(6):
        stage.declare(session_id=f"s{i}", name=f"n{i}")

    event = make_launched("s2-1") if outcome == "launched" else LaunchFailed("s2-1", 1001.0, "no")
    spawn = only_spawn(stage.tell(event))

    assert spawn.session.id == "s4"
    assert stage.state("s5") == "pending (pace)"


def test_an_outcome_told_twice_lets_only_one_in() -> None:
    stage = Stage()
    for i in range(7):
        stage.declare(session_id=f"s{i}", name=f"n{i}")

    spawns = [kinds(stage.tell(make_launched("s2-1"))).count("Spawn") for _ in range(3)]

    assert spawns == [1, 0, 0]


@pytest.mark.parametrize("verb", ["stop", "rm"])
def test_who_left_the_line_is_not_launched(verb: str) -> None:
    stage = waiting_for_its_turn()
    stage.ask(verb)

    assert kinds(stage.tell(make_launched("other0-1"))) == []


def test_who_left_the_line_and_came_back_is_launched_once() -> None:
    stage = waiting_for_its_turn()
    stage.ask("stop")
    stage.ask("start")

    spawns = [kinds(stage.tell(make_launched(f"other{i}-1"))).count("Spawn") for i in range(PACE)]

    assert spawns == [1, 0, 0, 0]


@pytest.mark.parametrize("situation", ["crashed_and_coming_back", "coming_back", "being_restarted"])
def test_a_session_that_comes_back_waits_its_turn_too(situation: str) -> None:
    stage = SITUATIONS[situation]()
    for i in range(PACE):
        stage.declare(session_id=f"s{i + 2}", name=f"n{i}")
    if stage.session().state is State.ENDING:
        stage.exit(signal=15)

    assert kinds(stage.end()) == []
    assert stage.state() == "pending (pace)"
    assert only_spawn(stage.tell(make_launched("s2-1"))).launch.id == "s1-2"


# Launches


def test_a_launch_that_came_to_life_is_running() -> None:
    stage = starting()

    asked = stage.tell(make_launched(at=1001.5))

    assert kinds(asked) == []
    assert stage.state() == "running"
    launch = stage.launch()
    assert (launch.started_at, launch.process, launch.root, launch.server, launch.pane) == (
        1001.5,
        make_process(100),
        make_process(101),
        make_process(102),
        "%0",
    )
    assert stage.session().axes[Axis.PROCESS].value == "alive"
    assert stage.session().why == "up as pid 100"


def test_a_launch_of_a_session_with_charges_asks_to_be_told_when_it_is_stable() -> None:
    stage = crashed_and_coming_back()
    stage.end()

    timer = only_timer(stage.tell(make_launched("s1-2", at=2000.0)))

    assert (timer.kind, timer.at) == ("stable", 2000.0 + ALWAYS.reset_after_s)


def test_a_launch_that_failed_is_charged_and_whatever_came_of_it_is_ended() -> None:
    stage = starting(ALWAYS)

    asked = stage.tell(LaunchFailed("s1-1", 1002.0, "tmux is not installed"))

    assert kinds(asked) == ["SetTimer", "EndLaunch"]
    assert stage.state() == "crashed (backoff)"
    (death,) = stage.deaths
    assert (death.cause, death.charged, death.at) == (Cause.LAUNCH_FAILED, True, 1002.0)
    assert death.evidence[0].text == "tmux is not installed"
    assert stage.session().charges == 1


def test_a_launch_that_failed_stays_failed_where_nothing_comes_back() -> None:
    stage = launch_failed()

    assert stage.state() == "failed"
    assert "tmux" not in stage.session().why
    assert "no such file" in stage.session().why


def test_a_stop_while_a_launch_is_under_way_ends_what_came_to_life() -> None:
    stage = being_stopped_while_it_starts()

    (effect,) = stage.tell(make_launched())

    assert isinstance(effect, EndLaunch)
    assert effect.launch.process == make_process(), "its processes are known now"
    assert stage.state() == "ending"
    assert stage.intents[0].launch_id == "s1-1"
    stage.exit(signal=15)
    stage.end()
    assert stage.state() == "stopped"
    assert [death.cause for death in stage.deaths] == [Cause.OPERATOR]


def test_a_stop_while_a_launch_is_under_way_that_fails_is_a_stop() -> None:
    stage = being_stopped_while_it_starts(ALWAYS)

    assert kinds(stage.tell(LaunchFailed("s1-1", 1002.0, "no"))) == ["EndLaunch"]
    stage.end()

    assert stage.state() == "stopped"
    assert len(stage.deaths) == 1


@pytest.mark.parametrize(("verb", "state"), [("rm", "removed"), ("restart", "starting"), ("start", "starting")])
def test_what_was_asked_last_while_a_launch_was_under_way_is_done(verb: str, state: str) -> None:
    stage = being_stopped_while_it_starts()
    stage.ask(verb)
    stage.tell(make_launched())
    stage.exit(signal=15)

    stage.end()

    assert stage.state() == state


def test_an_exit_that_is_told_before_its_launch_counts_once() -> None:
    stage = starting(ALWAYS)
    stage.exit(exit_code=1)

    assert stage.tell(make_launched()) == []
    assert stage.state() == "crashed (backoff)"
    assert len(stage.deaths) == 1


def test_the_place_of_a_launch_whose_exit_came_first_is_free_once_it_is_told() -> None:
    stage = waiting_for_its_turn()
    stage.tell(Exited(make_exit("other0-1", exit_code=1)))

    assert only_spawn(stage.tell(make_launched("other0-1"))).session.id == "s1"


# Deaths


@pytest.mark.parametrize(
    ("policy", "found", "state", "cause"),
    [
        (NEVER, {"exit_code": 0}, "succeeded", Cause.FINISHED),
        (NEVER, {"exit_code": 1}, "failed", Cause.CRASH),
        (NEVER, {"signal": 9}, "failed", Cause.KILLED_BY_UNKNOWN),
        (NEVER, {}, "failed", Cause.UNOBSERVED),
        (NEVER, {"rebooted": True}, "failed", Cause.HOST_REBOOTED),
        (ON_FAILURE, {"exit_code": 0}, "succeeded", Cause.FINISHED),
        (ON_FAILURE, {"exit_code": 1}, "crashed (backoff)", Cause.CRASH),
        (ON_FAILURE, {"signal": 15}, "crashed (backoff)", Cause.KILLED_BY_UNKNOWN),
        (ON_FAILURE, {}, "crashed (backoff)", Cause.UNOBSERVED),
        (ON_FAILURE, {"server_ended": True, "server_signal": 9}, "crashed (backoff)", Cause.SERVER_DIED),
        (ON_FAILURE, {"rebooted": True}, "pending (backoff)", Cause.HOST_REBOOTED),
        (ALWAYS, {"exit_code": 0}, "pending (backoff)", Cause.FINISHED),
        (ALWAYS, {"exit_code": 1}, "crashed (backoff)", Cause.CRASH),
        (ALWAYS, {"started": False, "exit_code": 127}, "crashed (backoff)", Cause.LAUNCH_FAILED),
    ],
)
def test_a_policy_decides_what_a_death_leaves(policy: RestartPolicy, found: dict[str, Any], state: str, cause: Cause) -> None:
    stage = running(policy)

    asked = stage.exit(**found)

    assert (stage.state(), stage.deaths[0].cause) == (state, cause)
    assert ("SetTimer" in kinds(asked)) == ("backoff" in state)
    assert kinds(asked)[-1] == ("EndLaunch" if cause is Cause.LAUNCH_FAILED else "CloseLaunch")


def test_exit_0_within_ten_seconds_is_early_under_always() -> None:
    stage = starting(ALWAYS)
    stage.tell(make_launched(at=1001.0))
    stage.now = 1005.0

    stage.exit(exit_code=0)

    assert (stage.deaths[0].cause, stage.deaths[0].uptime_s, stage.state()) == (Cause.EARLY_EXIT, 4.0, "crashed (backoff)")


@pytest.mark.parametrize("situation", situations(State.STARTING, State.RUNNING, State.SUSPECT))
def test_an_exit_in_a_state_that_nobody_ends_is_charged(situation: str) -> None:
    stage = SITUATIONS[situation]()

    stage.exit(exit_code=1)

    assert (stage.state(), stage.deaths[-1].cause) == ("failed", Cause.CRASH)


@pytest.mark.parametrize("situation", ["being_stopped", "being_restarted", "being_removed"])
def test_an_exit_of_what_an_operator_ends_waits_for_the_verification(situation: str) -> None:
    stage = SITUATIONS[situation](ALWAYS)

    assert kinds(stage.exit(signal=9)) == []

    assert stage.state() == "ending"
    assert (stage.deaths[0].cause, stage.deaths[0].charged) == (Cause.OPERATOR, False)
    assert stage.session().charges == 0


@pytest.mark.parametrize("situation", [name for name in situations() if SITUATIONS[name]().deaths])
def test_an_exit_of_what_is_dead_already_changes_nothing(situation: str) -> None:
    stage = SITUATIONS[situation]()
    known, state = list(stage.deaths), stage.state()

    assert stage.exit(exit_code=3) == []
    assert (stage.deaths, stage.state()) == (known, state)


@pytest.mark.parametrize("situation", situations(*ALIVE))
def test_a_death_is_recorded_once_however_often_the_exit_is_told(situation: str) -> None:
    stage = SITUATIONS[situation]()

    for number in range(3):
        stage.exit(exit_code=number)
        stage.tell(LaunchFailed("s1-1", stage.now, "late"))

    assert len(stage.deaths) == 1
    assert stage.log.count("session.died") == 1
    assert stage.deaths[0].id == "d-s1-1"


@pytest.mark.parametrize("situation", situations())
def test_a_dead_launch_shows_a_dead_process(situation: str) -> None:
    stage = SITUATIONS[situation]()
    if situation in ("waiting_for_its_turn", "parked"):
        return
    stage.exit(exit_code=1)

    reading = stage.session().axes[Axis.PROCESS]

    assert (reading.value, reading.conclusive) == ("dead", True)
    assert stage.launch().ended_at is not None


def test_a_death_carries_what_is_known_of_it() -> None:
    stage = running(ON_FAILURE)

    stage.exit(signal=11, observed_by="keeper", status_source="keeper (wait)")

    (death,) = stage.deaths
    assert (death.session_id, death.session, death.launch_id, death.at) == ("s1", "alpha", "s1-1", 1100.0)
    assert (death.observed_by, death.exit_code, death.signal, death.intent) == ("keeper", None, 11, None)
    assert death.uptime_s == 99.0
    assert stage.session().last_death == death


def test_the_status_of_a_server_that_died_is_the_servers() -> None:
    stage = running(ON_FAILURE)

    stage.exit(signal=1, server_ended=True, server_exit_code=None, server_signal=9)

    assert (stage.deaths[0].cause, stage.deaths[0].exit_code, stage.deaths[0].signal) == (Cause.SERVER_DIED, None, 9)


def test_a_clock_that_went_back_gives_no_negative_uptime() -> None:
    stage = running()

    stage.tell(Exited(make_exit(at=900.0, exit_code=1)))

    assert stage.deaths[0].uptime_s == 0.0


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_the_real_delay_is_the_documented_one(count: int) -> None:
    stage = running(ALWAYS)
    for number in range(1, count + 1):
        died_at = stage.now
        timer = only_timer(stage.exit(exit_code=1))
        assert timer.at == stage.session().hold.until  # type: ignore[union-attr]
        assert timer.at == died_at + delay_s(number, ALWAYS, jitter_of(f"s1-{number}"))
        stage.now = timer.at
        assert kinds(stage.tell(TimerFired("s1", "hold"))) == ["EndLaunch"]
        assert kinds(stage.end()) == ["Spawn"]
        stage.tell(make_launched(f"s1-{number + 1}", stage.now))

    assert stage.session().charges == count


def test_a_crash_is_shown_until_its_replacement_starts() -> None:
    stage = crashed()
    since = stage.session().state_since
    stage.now = 1200.0
    stage.tell(TimerFired("s1", "hold"))

    assert (stage.state(), stage.session().state_since) == ("crashed (survivor)", since)
    stage.end()
    assert stage.state() == "starting"


def test_a_death_that_was_seen_late_waits_from_when_it_happened() -> None:
    stage = running(ALWAYS)
    stage.now = 9000.0

    timer = only_timer(stage.tell(Exited(make_exit(at=1100.0, exit_code=1))))

    assert timer.at < 1107.0


@pytest.mark.parametrize("allowed", [1, 3])
def test_restarts_never_exceed_the_policy(allowed: int) -> None:
    stage = running(RestartPolicy(RestartWhen.ON_FAILURE, max_restarts=allowed))
    launches = 1
    while "backoff" in (stage.exit(exit_code=1) and stage.state()):
        stage.now += 1000.0
        stage.tell(TimerFired("s1", "hold"))
        stage.end()
        launches += 1
        stage.tell(make_launched(f"s1-{launches}", stage.now))

    assert launches == 1 + allowed
    assert stage.state() == "failed (saturated)"
    assert stage.session().hold == Hold("saturated", None)
    assert f"again after {allowed} restarts" in stage.session().why


def test_a_launch_that_was_stable_is_forgiven_when_it_dies() -> None:
    stage = crashed_and_coming_back()
    stage.end()
    stage.tell(make_launched("s1-2", stage.now))
    stage.now += ALWAYS.reset_after_s

    stage.exit(exit_code=1)

    assert stage.session().charges == 1


# Orphans


@pytest.mark.parametrize("what", ["pane", "server"])
def test_an_orphan_that_nothing_replaces_is_shown_and_left_alone(what: str) -> None:
    stage = running(NEVER)

    asked = stage.tell(Orphaned("s1-1", 1100.0, what))

    assert kinds(asked) == ["SetTimer"]  # it is looked at again
    assert stage.state() == "suspect"
    assert "vigil stop alpha ends it" in stage.session().why
    assert stage.session().axes[Axis.RUNTIME].value == "dead"
    assert stage.session().axes[Axis.SERVER].value == ("dead" if what == "server" else "alive")
    assert stage.intents == []


@pytest.mark.parametrize("policy", [ALWAYS, ON_FAILURE])
def test_an_orphan_that_is_to_be_replaced_is_ended_first_by_a_recorded_intent(policy: RestartPolicy) -> None:
    stage = running(policy)

    (effect,) = stage.tell(Orphaned("s1-1", 1100.0, "server"))

    assert isinstance(effect, EndLaunch)
    assert stage.state() == "ending"
    assert [(intent.verb, intent.cause, intent.actor) for intent in stage.intents] == [("replace", Cause.SERVER_DIED, "policy")]
    assert "CloseLaunch" in kinds(stage.exit(signal=9))
    assert (stage.state(), stage.deaths[0].cause, stage.session().charges) == ("crashed (backoff)", Cause.SERVER_DIED, 1)
    assert stage.end() == []
    assert stage.state() == "crashed (backoff)"


def test_an_orphan_told_twice_is_told_once() -> None:
    stage = suspect()
    stage.tell(Orphaned("s1-1", 1101.0, "pane"))

    assert stage.log.count("session.orphaned") == 1


@pytest.mark.parametrize("situation", sorted(set(situations()) - {"starting", "running", "suspect"}))
def test_an_orphan_in_any_other_state_changes_nothing(situation: str) -> None:
    stage = SITUATIONS[situation]()
    before = stage.machine.sessions["s1"]
    launch_id = before.launch.id if before.launch else "s1-1"

    assert stage.tell(Orphaned(launch_id, 1200.0, "pane")) == []
    assert stage.session() == before


def test_an_operators_stop_of_an_orphan_stops_it() -> None:
    stage = being_replaced()
    stage.ask("stop")
    stage.exit(signal=15)

    stage.end()

    assert stage.state() == "stopped"


# What came of ending


@pytest.mark.parametrize(
    ("situation", "state", "asked"),
    [
        ("being_stopped", "stopped", []),
        ("being_restarted", "starting", ["Spawn"]),
        ("being_removed", "removed", ["Purge"]),
        ("coming_back", "starting", ["Spawn"]),
        ("crashed_and_coming_back", "starting", ["Spawn"]),
    ],
)
def test_what_was_waited_for_follows_once_everything_is_verified_gone(situation: str, state: str, asked: list[str]) -> None:
    stage = SITUATIONS[situation]()
    stage.exit(signal=15)

    assert kinds(stage.end()) == asked
    assert stage.state() == state


@pytest.mark.parametrize("situation", [*situations(State.ENDING), "coming_back", "crashed_and_coming_back"])
def test_what_cannot_be_ended_is_stuck_and_says_why(situation: str) -> None:
    stage = SITUATIONS[situation]()

    assert kinds(stage.end(ok=False)) == []

    assert stage.state() == "stuck"
    assert "pid 100 lives on after KILL" in stage.session().why


@pytest.mark.parametrize("ok", [True, False])
@pytest.mark.parametrize(
    "situation",
    sorted(
        set(situations()) - set(situations(State.ENDING)) - {"coming_back", "crashed_and_coming_back", "waiting_for_its_turn"}
    ),
)
def test_an_end_that_nobody_waits_for_changes_nothing(situation: str, ok: bool) -> None:
    stage = SITUATIONS[situation]()
    before = stage.session()
    over = before.launch is not None and before.launch.ended_at is not None

    assert set(kinds(stage.end(ok))) <= {"Persist"}
    after = stage.session()
    assert replace(after, launch=before.launch) == before
    if after.launch is not None:
        assert after.launch.closed == ((before.launch is not None and before.launch.closed) or (ok and over))


@pytest.mark.parametrize(("verb", "state"), [("stop", "stopped"), ("restart", "starting"), ("rm", "removed")])
def test_an_operator_gets_a_stuck_session_out(verb: str, state: str) -> None:
    stage = stuck()

    assert kinds(stage.ask(verb)) == ["EndLaunch"]
    stage.exit(signal=9)
    stage.end()

    assert stage.state() == state


def test_a_restart_is_a_new_launch_with_its_own_number() -> None:
    stage = being_restarted()
    stage.exit(signal=15)

    spawn = only_spawn(stage.end())

    assert (spawn.launch.id, spawn.launch.number) == ("s1-2", 2)
    assert (spawn.session.intent, spawn.session.after, spawn.session.hold) == (None, None, None)
    assert set(spawn.session.axes) == {Axis.ACTIVITY}, "nothing was read of it yet"
    assert spawn.session.last_death is not None


def test_an_intent_of_one_launch_does_not_speak_for_the_next() -> None:
    stage = being_restarted(ON_FAILURE)
    stage.exit(signal=15)
    stage.end()
    stage.tell(make_launched("s1-2", stage.now))

    stage.exit(signal=15)

    assert [death.cause for death in stage.deaths] == [Cause.OPERATOR, Cause.KILLED_BY_UNKNOWN]


# Fencing: what an old launch says is not heard

OF_A_LAUNCH: dict[str, Callable[[str], Event]] = {
    "exited": lambda launch: Exited(make_exit(launch, exit_code=1)),
    "orphaned": lambda launch: Orphaned(launch, 1300.0, "server"),
    "ended": lambda launch: Ended(launch, ok=True),
    "not-ended": lambda launch: Ended(launch, ok=False, why="no"),
    "launched": lambda launch: make_launched(launch, 1300.0),
    "adopted": lambda launch: make_launched(launch, 1300.0, adopted=True),
    "launch-failed": lambda launch: LaunchFailed(launch, 1300.0, "no"),
    "interrupted": Interrupted,
    "observed": lambda launch: Observed(launch, (Fact(Axis.PROCESS, "dead", "procfs", 1300.0),), attached=3, active_at=1300.0),
    "closed": lambda launch: Closed(launch, (Fact(Axis.SERVER, "dead", "procfs", 1300.0),)),
}


@pytest.mark.parametrize("event", OF_A_LAUNCH)
@pytest.mark.parametrize("situation", situations())
@pytest.mark.parametrize("launch_id", ["s1-0", "s1-99", "s1", "other-1", ""])
def test_what_another_launch_says_changes_nothing(situation: str, event: str, launch_id: str) -> None:
    stage = SITUATIONS[situation]()
    before = dict(stage.machine.sessions)

    assert stage.machine.handle(OF_A_LAUNCH[event](launch_id), 1300.0) == []
    assert stage.machine.sessions == before


@pytest.mark.parametrize("event", OF_A_LAUNCH)
def test_what_the_last_launch_says_of_itself_is_not_said_of_the_next(event: str) -> None:
    stage = being_restarted()
    stage.exit(signal=15)
    stage.end()
    stage.tell(make_launched("s1-2", stage.now))
    before = stage.session()

    assert stage.machine.handle(OF_A_LAUNCH[event]("s1-1"), 1300.0) == []
    assert stage.session() == before


# Time


@pytest.mark.parametrize("situation", ["crashed", "finished_and_coming_back"])
def test_a_hold_that_is_told_early_is_waited_for_again(situation: str) -> None:
    stage = SITUATIONS[situation]()
    hold = stage.session().hold
    assert hold is not None
    assert hold.until is not None
    stage.now = hold.until - 0.001

    assert stage.tell(TimerFired("s1", "hold")) == [SetTimer("s1", "hold", hold.until)]
    stage.now = hold.until
    assert kinds(stage.tell(TimerFired("s1", "hold"))) == ["EndLaunch"]


@pytest.mark.parametrize("situation", sorted(set(situations()) - {"crashed", "finished_and_coming_back"}))
def test_a_hold_that_is_told_late_to_another_state_changes_nothing(situation: str) -> None:
    stage = SITUATIONS[situation]()
    before = stage.session()
    stage.now = 1e9

    assert stage.tell(TimerFired("s1", "hold")) == []
    assert stage.session() == before


def test_a_timer_of_a_session_that_is_gone_does_nothing() -> None:
    for kind in ("hold", "stable"):
        assert Machine().handle(TimerFired("nobody", kind), 1000.0) == []


def test_a_launch_that_has_been_up_long_enough_is_forgiven() -> None:
    stage = crashed_and_coming_back()
    stage.end()
    timer = only_timer(stage.tell(make_launched("s1-2", stage.now)))
    stage.now = timer.at

    stage.tell(TimerFired("s1", "stable"))

    assert stage.session().charges == 0
    assert stage.durable["s1"].charges == 0


def test_a_stable_timer_that_is_told_early_is_waited_for_again() -> None:
    stage = crashed_and_coming_back()
    stage.end()
    timer = only_timer(stage.tell(make_launched("s1-2", stage.now)))
    stage.now = timer.at - 0.001

    asked = stage.tell(TimerFired("s1", "stable"))

    assert stage.session().charges == 1
    assert asked == [timer]


def test_a_stable_timer_of_the_launch_before_forgives_nothing() -> None:
    stage = crashed_and_coming_back()
    stage.end()
    stage.tell(make_launched("s1-2", stage.now))
    stage.exit(exit_code=1)
    stage.now += 590.0
    stage.tell(TimerFired("s1", "hold"))
    stage.end()
    stage.tell(make_launched("s1-3", stage.now))
    stage.now += 20.0

    stage.tell(TimerFired("s1", "stable"))

    assert stage.session().charges == 2


# Readings


def test_a_reading_says_since_when_it_shows_what_it_shows() -> None:
    stage = running()

    def see(value: str, at: float) -> None:
        stage.tell(Observed("s1-1", (Fact(Axis.SERVER, value, "ping", at),)))

    see("alive", 1101.0)
    see("wedged", 1102.0)
    see("wedged", 1103.0)

    reading = stage.session().axes[Axis.SERVER]
    assert (reading.value, reading.since, reading.observed_at, reading.source) == ("wedged", 1102.0, 1103.0, "ping")


@pytest.mark.parametrize("conclusive", [False, True])
def test_what_is_conclusively_dead_is_not_brought_back_by_any_later_word(conclusive: bool) -> None:
    stage = running()

    stage.tell(
        Observed("s1-1", (Fact(Axis.SERVER, "dead", "pidfd", 1101.0, conclusive=True),)),
        Observed("s1-1", (Fact(Axis.SERVER, "alive", "ping", 1102.0, conclusive),)),
    )

    assert stage.session().axes[Axis.SERVER].value == "dead"


@pytest.mark.parametrize("situation", ["running", "suspect", "being_stopped"])
def test_a_reading_never_concludes_and_never_writes(situation: str) -> None:
    facts = tuple(Fact(axis, "dead", "procfs", 1200.0, conclusive=True) for axis in Axis)
    stage = SITUATIONS[situation]()
    before = stage.session()

    asked = stage.machine.handle(Observed("s1-1", facts), 1200.0)

    assert kinds(asked) == ([] if situation == "being_stopped" else ["Conclude"])  # how it ended is to be found out
    assert (stage.session().state, stage.session().last_death) == (before.state, before.last_death)


def test_a_reading_tells_who_is_attached_and_when_it_was_active_last() -> None:
    stage = running()

    stage.tell(Observed("s1-1", (), attached=2, active_at=1150.0), Observed("s1-1", (), attached=None, active_at=1120.0))

    assert (stage.session().attached, stage.session().last_activity_at) == (2, 1150.0)


def test_a_dead_launch_is_not_read_any_more() -> None:
    stage = crashed()
    before = stage.session()

    stage.tell(Observed("s1-1", (Fact(Axis.PROCESS, "alive", "procfs", 1200.0),), attached=1))

    assert stage.session() == before


def test_what_is_left_of_a_closed_runtime_is_kept_and_durable() -> None:
    stage = failed()

    stage.tell(Closed("s1-1", (Fact(Axis.SERVER, "dead", "procfs", 1200.0, conclusive=True),)))

    assert stage.durable["s1"].axes[Axis.SERVER].value == "dead"
    assert stage.state() == "failed"


def test_a_note_goes_into_the_log_of_no_session() -> None:
    (effect,) = Machine().handle(Noted("keeper.died", (("pid", 7),)), 1000.0)

    assert isinstance(effect, Persist)
    assert [(entry.kind, entry.session_id, dict(entry.data)) for entry in effect.log] == [("keeper.died", None, {"pid": 7})]


# A new daemon

RESUMED = {
    "starting": ("starting", []),
    "waiting_for_its_turn": ("pending (pace)", []),
    "running": ("running", []),
    "suspect": ("suspect", ["SetTimer"]),
    "stuck": ("stuck", []),
    "being_stopped": ("ending", ["EndLaunch"]),
    "being_stopped_while_it_starts": ("ending", ["EndLaunch"]),
    "being_restarted": ("ending", ["EndLaunch"]),
    "being_parked": ("ending", ["EndLaunch"]),
    "being_removed": ("ending", ["EndLaunch"]),
    "being_replaced": ("ending", ["EndLaunch"]),
    "finished_and_coming_back": ("pending (backoff)", ["CloseLaunch", "SetTimer"]),
    "coming_back": ("pending (survivor)", ["EndLaunch"]),
    "crashed": ("crashed (backoff)", ["CloseLaunch", "SetTimer"]),
    "crashed_and_coming_back": ("crashed (survivor)", ["EndLaunch"]),
    "parked": ("parked", []),
    "stopped": ("stopped", []),
    "failed": ("failed", ["CloseLaunch"]),
    "launch_failed": ("failed", ["CloseLaunch"]),
    "saturated": ("failed (saturated)", ["CloseLaunch"]),
    "succeeded": ("succeeded", ["CloseLaunch"]),
}


def resumed(stage: Stage) -> Stage:
    """A new daemon over what the last one made durable."""
    stored = {**stage.durable, "s1": stage.session()}
    return Stage(stored.values(), stage.now)


@pytest.mark.parametrize("situation", RESUMED)
def test_a_new_daemon_takes_up_what_was_under_way(situation: str) -> None:
    stage = resumed(SITUATIONS[situation]())
    state, asked = RESUMED[situation]

    effects = stage.tell(Resumed())

    assert set(RESUMED) == set(SITUATIONS)
    assert (stage.state(), kinds(effects)) == (state, asked)
    assert stage.deaths == []


def test_a_wait_is_no_longer_than_its_policy_though_the_clock_was_set_back() -> None:
    stage = resumed(crashed())
    stage.now -= 86400.0

    timer = only_timer(stage.tell(Resumed()))

    longest_s = ALWAYS.cap_s * (1 + ALWAYS.jitter)
    assert timer.at == stage.now + longest_s
    hold = stage.session().hold
    assert hold is not None and hold.until == timer.at


def test_who_asks_again_goes_on_with_what_was_begun() -> None:
    stage = running()
    stage.ask("restart")
    stage.now += 30.0
    stage.ask("stop")

    assert [(intent.verb, intent.at) for intent in stage.intents] == [("restart", stage.now - 30.0), ("stop", stage.now - 30.0)]


def test_a_start_of_what_could_not_be_stopped_is_obeyed_when_it_is_gone() -> None:
    stage = SITUATIONS["stuck"]()

    stage.ask("start")
    stage.exit(signal=9)

    assert kinds(stage.end()) == ["Spawn"]


def test_a_start_changes_nothing_of_a_session_that_is_stuck_and_alive() -> None:
    stage = running()
    for _ in range(10):
        stage.see(server="wedged")
        stage.now += 10.0
    assert stage.state() == "stuck"

    assert stage.ask("start") == []

    assert stage.state() == "stuck"


def test_a_crash_that_somebody_was_about_to_end_is_charged_all_the_same() -> None:
    stage = running(ALWAYS)
    ended_at = stage.now
    stage.now += 0.2
    stage.ask("restart")

    stage.tell(Exited(make_exit("s1-1", ended_at, exit_code=3)))

    assert stage.deaths[-1].cause is Cause.CRASH
    assert stage.session().charges == 1


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_new_daemon_charges_nobody_and_spawns_nothing_that_lives(situation: str) -> None:
    before = SITUATIONS[situation]()
    stage = resumed(before)

    effects = stage.tell(Resumed())

    assert stage.session().charges == before.session().charges
    if before.session().state in ALIVE:
        assert "Spawn" not in kinds(effects)


def test_a_launch_that_the_daemons_own_end_interrupted_is_launched_anew_and_charges_nobody() -> None:
    stage = resumed(starting())
    stage.tell(Resumed())

    assert kinds(stage.tell(Interrupted("s1-1"))) == ["EndLaunch"]

    assert (stage.state(), stage.session().charges, stage.deaths) == ("pending (survivor)", 0, [])
    assert only_spawn(stage.end()).launch.id == "s1-2"
    assert stage.deaths == []


@pytest.mark.parametrize("situation", sorted({*SITUATIONS} - {"starting", "waiting_for_its_turn"}))
def test_only_a_launch_under_way_can_be_interrupted(situation: str) -> None:
    stage = SITUATIONS[situation]()
    before = stage.session()

    assert stage.tell(Interrupted(stage.launch().id)) == []
    assert stage.session() == before


def test_the_place_of_an_interrupted_launch_is_free() -> None:
    stage = waiting_for_its_turn()

    assert only_spawn(stage.tell(Interrupted("other0-1"))).session.id == "s1"


def test_what_is_adopted_has_been_up_since_it_was_launched() -> None:
    stage = resumed(running())
    stage.tell(Resumed())

    stage.tell(make_launched(at=5000.0, adopted=True))

    assert stage.launch().started_at == 1001.0


@pytest.mark.parametrize("situation", ["running", "suspect", "starting"])
def test_a_new_daemon_adopts_what_lives_under_the_same_launch(situation: str) -> None:
    stage = resumed(SITUATIONS[situation]())
    stage.tell(Resumed())

    assert stage.tell(make_launched(at=1001.0, adopted=True)) == []

    assert stage.state() == ("suspect" if situation == "suspect" else "running")
    assert (stage.launch().id, stage.launch().started_at, stage.deaths) == ("s1-1", 1001.0, [])


def test_a_new_daemon_that_adopts_a_session_with_charges_waits_until_it_is_stable() -> None:
    before = crashed_and_coming_back()
    before.end()
    before.tell(make_launched("s1-2", 2000.0))
    stage = resumed(before)
    stage.tell(Resumed())

    timer = only_timer(stage.tell(make_launched("s1-2", 2000.0, adopted=True)))

    assert timer.at == 2000.0 + ALWAYS.reset_after_s


def test_what_was_being_stopped_when_the_daemon_died_is_ended_if_it_was_born_meanwhile() -> None:
    stage = resumed(being_stopped_while_it_starts())
    stage.tell(Resumed())

    assert kinds(stage.tell(make_launched(adopted=True))) == ["EndLaunch"]


def test_a_hold_that_ended_while_no_daemon_ran_ends_at_once() -> None:
    stage = resumed(crashed())
    hold = stage.session().hold
    assert hold is not None
    stage.now = 9000.0

    assert stage.tell(Resumed())[1:] == [SetTimer("s1", "hold", hold.until or 0.0)]
    assert kinds(stage.tell(TimerFired("s1", "hold"))) == ["EndLaunch"]


def test_a_session_that_was_declared_and_never_launched_is_launched_by_the_next_daemon() -> None:
    stage = Stage([make_session(State.PENDING)])

    assert kinds(stage.tell(Resumed())) == ["Spawn"]


def test_a_launch_under_way_takes_its_place_also_after_a_restart_of_the_daemon() -> None:
    """Whatever order the store returns them in."""
    launching = [make_session(State.STARTING, id=f"a{i}", name=f"a{i}", launch=make_launch(f"a{i}")) for i in range(PACE)]
    waiting = [make_session(State.PENDING, id=f"b{i}", name=f"b{i}", hold=Hold("pace", None)) for i in range(PACE)]
    for order in (launching + waiting, waiting + launching):
        effects = Stage(order).tell(Resumed())

        assert kinds(effects) == [], "more than four launches at once"


# What is durable comes first


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_must_be_durable_comes_first_and_once(situation: str) -> None:
    stage = SITUATIONS[situation]()
    launch_id = stage.session().launch.id if stage.session().launch else "s1-1"  # type: ignore[union-attr]
    events: list[Event] = [Asked(verb, "s1", "alice") for verb in ORDER]
    events += [make(launch_id) for make in OF_A_LAUNCH.values()]
    events += [TimerFired("s1", "hold"), TimerFired("s1", "stable"), Resumed(), Noted("a.note")]
    for event in events:
        machine = Machine(stage.machine.sessions.values())
        effects = machine.handle(event, 1e6)
        assert [number for number, effect in enumerate(effects) if isinstance(effect, Persist)] in ([], [0]), event


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_the_machine_remembers_is_what_is_durable(situation: str) -> None:
    stage = SITUATIONS[situation]()
    if situation == "parked":
        return

    assert {key: value for key, value in stage.durable.items() if key == "s1"} == {"s1": stage.session()}


def test_effects_name_the_launch_they_are_for() -> None:
    stage = running(ALWAYS)

    effects = stage.exit(exit_code=1)

    closes = [effect for effect in effects if isinstance(effect, CloseLaunch)]
    assert [effect.launch for effect in closes] == [stage.launch()]
    assert closes[0].launch.ended_at == 1100.0


def test_a_spawn_carries_the_session_as_it_is_durable() -> None:
    stage = crashed_and_coming_back()

    spawn = only_spawn(stage.end())

    assert isinstance(spawn, Spawn)
    assert spawn.session == stage.durable["s1"]


# Ends that are verified before the exit is told, and exits of what could not be ended

WHENS = pytest.mark.parametrize("policy", [ALWAYS, ON_FAILURE, NEVER], ids=lambda policy: policy.when)


@WHENS
def test_a_stopped_session_stays_stopped_when_its_exit_is_told_late(policy: RestartPolicy) -> None:
    stage = being_stopped(policy)
    stage.end()

    stage.exit(signal=15)

    assert stage.state() == "stopped"
    assert [death.cause for death in stage.deaths] == [Cause.OPERATOR]


@WHENS
def test_a_restarted_launch_leaves_its_death_also_when_its_exit_is_told_late(policy: RestartPolicy) -> None:
    stage = being_restarted(policy)
    stage.end()

    stage.tell(Exited(make_exit("s1-1", exit_code=0)))

    assert stage.state() == "starting"
    assert [death.launch_id for death in stage.deaths] == ["s1-1"]


def test_a_removed_session_leaves_its_death_and_nothing_else_when_its_exit_is_told_late() -> None:
    stage = being_removed()

    (persist, _examine, purge) = stage.machine.handle(Ended("s1-1", ok=True), stage.now)

    assert isinstance(persist, Persist)
    assert isinstance(purge, Purge)
    assert (persist.sessions, persist.removed) == ((), ("s1",)), "it would be stored again"
    assert [death.cause for death in persist.deaths] == [Cause.OPERATOR]


def test_an_orphan_whose_exit_nobody_told_is_charged_once_it_is_verified_gone() -> None:
    stage = being_replaced()

    stage.end()

    assert (stage.state(), stage.session().charges) == ("crashed (backoff)", 1)
    assert [death.cause for death in stage.deaths] == [Cause.SERVER_DIED]
    assert stage.deaths[0].evidence


def test_a_stop_after_the_end_was_verified_and_before_the_exit_was_told_is_not_waited_for_for_ever() -> None:
    stage = being_replaced()
    stage.end()

    stage.ask("stop")
    stage.exit(signal=9)
    stage.end()

    assert stage.state() == "stopped"
    assert len(stage.deaths) == 1


@WHENS
@pytest.mark.parametrize(("verb", "state"), [("stop", "stopped"), ("restart", "starting"), ("rm", "removed")])
def test_what_could_not_be_ended_and_dies_at_last_becomes_what_was_asked(policy: RestartPolicy, verb: str, state: str) -> None:
    stage = running(policy)
    stage.ask(verb)
    stage.end(ok=False)

    asked = stage.exit(signal=9)

    assert (stage.state(), kinds(asked)) == ("ending", ["EndLaunch"])
    stage.end()
    assert stage.state() == state
    assert [(death.cause, death.charged) for death in stage.deaths] == [(Cause.OPERATOR, False)]


def test_a_hold_that_waits_for_a_person_is_not_ended_by_a_new_daemon() -> None:
    held = make_session(State.PENDING, hold=Hold("limit", None), launch=make_launch(ended_at=1100.0, closed=True), launches=1)

    assert kinds(Stage([held]).tell(Resumed())) == []


def test_what_died_before_its_birth_was_told_is_ended_when_it_is_asked_for_again() -> None:
    stage = starting()
    stage.ask("stop")
    stage.exit(signal=9)  # told before the birth
    stage.end(ok=False)

    assert kinds(stage.ask("stop")) == ["EndLaunch"]
    stage.tell(make_launched())
    stage.end()

    assert stage.state() == "stopped"
