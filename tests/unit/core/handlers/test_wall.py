"""Walls: a limit or a failed login is met once by a fleet, waited for no longer than it stands, and charged to nobody."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.unit.builders import ALWAYS, NEVER, ON_FAILURE, Stage, kinds, make_exit, make_launched, make_spec, running
from vigil.core.effects import SetTimer, Tell, TimerKind
from vigil.core.events import Declared, Ended, Exited, Heard, TimerFired
from vigil.core.handlers.account import ASIDE_S, TRIAL_S
from vigil.core.model.death import Cause, Words
from vigil.core.model.incident import IncidentKind
from vigil.core.model.reading import Axis
from vigil.core.model.restart import Hold, HoldReason, RestartPolicy
from vigil.core.model.session import State
from vigil.core.model.speech import Said, What
from vigil.core.rules.restart import LIMIT_S
from vigil.core.rules.wall import LIMIT_CAP_S, LONGEST_S, PASSED_S, bounded, read_wall, stands

AT = 1000.0
LIMIT, AUTH = Cause.LIMIT, Cause.AUTH


def limit(until: float | None = None, **more: Any) -> Said:
    return Said(What.LIMIT, text="limit reached", until=until, **more)


LOCKED_OUT = Said(What.AUTH, text="Please run /login")
TOOL, PROMPT, STOP = Said(What.TOOL_STARTED, id="1"), Said(What.PROMPT), Said(What.TURN_ENDED)


def fleet(count: int, policy: RestartPolicy = ALWAYS, account: str = "claude-1") -> Stage:
    """Return a stage on which so many sessions of one account run: s1, s2, …"""
    stage = Stage()
    for number in range(1, count + 1):
        stage.tell(Declared(f"s{number}", f"n{number}", make_spec(policy), "alice", account))
        stage.tell(make_launched(f"s{number}-1", stage.now))
    stage.now = 1100.0
    return stage


def say(stage: Stage, session_id: str, *said: Said, source: str = "hook") -> list[Any]:
    return stage.tell(Heard(stage.launch(session_id).id, said, source))


def die(stage: Stage, session_id: str, **found: Any) -> list[Any]:
    """The agent of a session ends, and its pane with it."""
    return stage.tell(Exited(make_exit(stage.launch(session_id).id, stage.now, **({"exit_code": 1} | found))))


def come_back(stage: Stage, session_id: str) -> None:
    """What a session waits for is over, and what its last launch left is gone."""
    stage.tell(TimerFired(session_id, TimerKind.HOLD))
    if stage.state(session_id).endswith("(survivor)"):
        stage.tell(Ended(stage.launch(session_id).id, True))


def told(stage: Stage) -> list[str]:
    return sorted(stage.machine.incidents)


# How long


@pytest.mark.parametrize(
    ("until", "tries", "expected"),
    [
        (AT + 60.0, 1, AT + 60.0),
        (AT + LONGEST_S, 5, AT + LONGEST_S),
        (AT + 30 * 86400.0, 1, AT + LIMIT_S),  # nonsense
        (AT + 30 * 86400.0, 2, AT + 2 * LIMIT_S),
        (None, 1, AT + LIMIT_S),
        (None, 2, AT + 2 * LIMIT_S),
        (None, 99, AT + LIMIT_CAP_S),
        (AT - 5.0, 1, AT + PASSED_S),
        (AT - 1e9, 2, AT + 2 * PASSED_S),
        (AT, 99, AT + LIMIT_S),
    ],
)
def test_a_limit_is_waited_for_as_long_as_it_says_within_reason(until: float | None, tries: int, expected: float) -> None:
    found, note = bounded(LIMIT, until, AT, tries)

    assert found == expected
    assert bool(note) == (found != until)


def test_whatever_is_said_the_wait_is_longer_than_nothing_and_no_longer_than_a_week() -> None:
    moments = (None, -1e300, 0.0, AT - 1, AT, AT + 1e-9, AT + LONGEST_S, AT + LONGEST_S + 3601, 1e300)
    for until, tries in product(moments, (1, 2, 3, 10, 10**6)):
        found, _ = bounded(LIMIT, until, AT, tries)
        assert found is not None
        assert AT < found <= AT + LONGEST_S + 3600.0
        assert bounded(AUTH, until, AT, tries) == (None, "")


def test_many_words_about_one_wall_are_one_try_and_the_one_that_names_a_moment_counts() -> None:
    first = read_wall(None, "s1-1", LIMIT, "429", None, AT)
    named = read_wall(first, "s1-1", LIMIT, "resets 3pm", AT + 50.0, AT + 1)
    again = read_wall(named, "s1-1", LIMIT, "429", None, AT + 2)

    assert (first.until, named.until, again.until) == (AT + LIMIT_S, AT + 50.0, AT + 50.0)
    assert [wall.tries for wall in (first, named, again)] == [1, 1, 1]
    assert read_wall(again, "s1-1", LIMIT, "429", None, AT + 51).tries == 2  # it was over
    assert read_wall(again, "s1-2", LIMIT, "429", None, AT + 3).tries == 2  # another launch met it
    assert read_wall(again, "s1-2", AUTH, "401", None, AT + 3).tries == 1


# One session, in a terminal


def test_an_agent_in_a_terminal_that_meets_its_limit_is_throttled_until_then_and_a_human_is_told_once() -> None:
    stage = running(ALWAYS)
    say(stage, "s1", PROMPT)

    effects = say(stage, "s1", Said(What.TURN_ENDED, failed=True), limit(5000.0))

    session = stage.session()
    assert (session.vitals.axes[Axis.ACTIVITY].value, session.vitals.doing.until, session.state) == (
        "throttled",
        5000.0,
        State.RUNNING,
    )
    assert SetTimer("s1", TimerKind.WALL, 5000.0) in effects
    assert told(stage) == ["s1/limit"]
    assert [effect for effect in say(stage, "s1", limit(5000.0)) if isinstance(effect, Tell)] == []
    assert stage.log.count("session.limit") == 1


def test_when_the_moment_has_come_nobody_is_told_any_more() -> None:
    stage = running(ALWAYS)
    say(stage, "s1", limit(5000.0))
    stage.now = 4999.0
    assert stage.tell(TimerFired("s1", TimerKind.WALL)) == [SetTimer("s1", TimerKind.WALL, 5000.0)]

    stage.now = 5000.0
    stage.tell(TimerFired("s1", TimerKind.WALL))

    assert stage.session().vitals.axes[Axis.ACTIVITY].value == "idle"
    assert told(stage) == []


@pytest.mark.parametrize(("said", "cause", "until"), [(limit(5000.0), LIMIT, 5000.0), (LOCKED_OUT, AUTH, None)])
def test_one_that_ends_at_a_wall_waits_for_it_uncharged(said: Said, cause: Cause, until: float | None) -> None:
    stage = running(ON_FAILURE)
    say(stage, "s1", said)

    stage.exit(exit_code=1)

    (death,) = stage.deaths
    assert (death.cause, death.charged) == (cause, False)
    assert stage.session().hold == Hold(HoldReason(cause.value), until)
    assert told(stage) == [f"s1/{cause}"]


def test_one_that_a_person_leaves_at_its_limit_has_finished_and_comes_back_after_it() -> None:
    stage = running(ALWAYS)
    say(stage, "s1", limit(5000.0))

    stage.exit(exit_code=0)
    assert (stage.deaths[0].cause, stage.state()) == (Cause.FINISHED, "pending (backoff)")
    stage.now += 10.0
    come_back(stage, "s1")

    assert stage.session().hold == Hold(HoldReason.LIMIT, 5000.0)


def test_a_kill_is_charged_also_at_a_limit_and_its_replacement_waits_for_the_limit() -> None:
    stage = running(ALWAYS)
    say(stage, "s1", limit(5000.0))

    stage.exit(signal=9)
    assert (stage.deaths[0].cause, stage.state()) == (Cause.KILLED_BY_UNKNOWN, "crashed (backoff)")
    stage.now += 10.0
    come_back(stage, "s1")

    assert stage.session().hold == Hold(HoldReason.LIMIT, 5000.0)


def test_who_is_still_limited_after_the_wait_waits_longer_and_is_never_charged() -> None:
    stage = running(RestartPolicy(when=ALWAYS.when, max_restarts=1))
    waits = []
    for _ in range(5):
        stage.exit(exit_code=1, words=Words(LIMIT, "429"))
        hold = stage.session().hold
        assert hold is not None and hold.until is not None
        waits.append(hold.until - stage.now)
        stage.now = hold.until
        come_back(stage, "s1")
        assert stage.state() == "starting"
        stage.tell(make_launched(stage.launch().id, stage.now))

    assert waits == [LIMIT_S, 2 * LIMIT_S, 4 * LIMIT_S, LIMIT_CAP_S, LIMIT_CAP_S]
    assert stage.session().charges == 0


def test_a_turn_that_ends_well_after_a_limit_proves_that_it_is_gone_and_one_that_was_limited_does_not() -> None:
    stage = running(ALWAYS)
    say(stage, "s1", PROMPT, Said(What.TURN_ENDED, failed=True), limit(5000.0))
    stage.now += 60.0
    say(stage, "s1", STOP)  # only that nobody has typed for a while
    assert stage.session().wall is not None

    stage.now += 1.0
    say(stage, "s1", PROMPT)
    stage.now += 1.0
    say(stage, "s1", STOP)

    assert stage.session().wall is None
    assert told(stage) == []


@pytest.mark.parametrize("source", ["hook", "stream", "transcript"])
def test_a_limit_counts_from_whatever_source_also_where_hooks_know_better_what_it_does(source: str) -> None:
    stage = running(ALWAYS)
    say(stage, "s1", PROMPT, Said(What.TURN_ENDED))

    say(stage, "s1", limit(5000.0, at=stage.now - 0.1), source=source)

    assert stage.session().vitals.axes[Axis.ACTIVITY].value == "throttled"
    assert stage.session().wall is not None


def test_a_sub_agents_limit_is_not_its_parents() -> None:
    stage = running(ALWAYS)

    say(stage, "s1", limit(5000.0, subagent="a1"))

    assert stage.session().wall is None


# A fleet


def test_a_fleet_meets_a_limit_once() -> None:
    stage = fleet(3)
    say(stage, "s1", limit(5000.0))
    for session_id in ("s1", "s2"):
        die(stage, session_id)
    stage.now += 10.0
    come_back(stage, "s2")
    stage.tell(Declared("s9", "new", make_spec(NEVER), "alice", "claude-1"))

    assert [stage.session(one).hold for one in ("s1", "s2", "s9")] == [Hold(HoldReason.LIMIT, 5000.0)] * 3
    assert "met by n1" in stage.session("s9").why
    assert stage.session("s3").state is State.RUNNING
    assert told(stage) == ["claude-1/limit"]


def test_other_accounts_and_those_without_one_do_not_wait() -> None:
    stage = fleet(1)
    say(stage, "s1", limit(5000.0))

    for number, account in ((2, "claude-2"), (3, "")):
        stage.tell(Declared(f"s{number}", f"n{number}", make_spec(), "alice", account))

    assert [stage.state(one) for one in ("s2", "s3")] == ["starting", "starting"]


def test_when_a_limit_should_be_over_one_is_tried_and_the_others_follow_when_it_works() -> None:
    stage = held_fleet(3)
    stage.now = 5000.0
    for session_id in ("s1", "s2", "s3"):
        come_back(stage, session_id)
    assert [stage.state(one) for one in ("s1", "s2", "s3")] == ["starting", "pending (limit)", "pending (limit)"]
    assert stage.session("s2").hold == Hold(HoldReason.LIMIT, 5000.0 + TRIAL_S)

    stage.tell(make_launched(stage.launch("s1").id, stage.now))
    stage.now += 5.0
    say(stage, "s1", TOOL)
    for session_id in ("s2", "s3"):
        stage.tell(Ended(stage.launch(session_id).id, True))

    assert [stage.state(one) for one in ("s1", "s2", "s3")] == ["running", "starting", "starting"]
    assert told(stage) == []
    assert all(session.wall is None for session in stage.machine.sessions.values())


def test_if_the_one_that_is_tried_is_limited_still_all_wait_on() -> None:
    stage = held_fleet(3)
    stage.now = 5000.0
    for session_id in ("s1", "s2", "s3"):
        come_back(stage, session_id)
    stage.tell(make_launched(stage.launch("s1").id, stage.now))
    stage.now += 5.0
    say(stage, "s1", limit(9000.0))
    die(stage, "s1")

    stage.now = 5000.0 + TRIAL_S
    for session_id in ("s2", "s3"):
        come_back(stage, session_id)

    assert [stage.session(one).hold for one in ("s1", "s2", "s3")] == [Hold(HoldReason.LIMIT, 9000.0)] * 3
    assert not any(death.charged for death in stage.deaths if death.session_id == "s1")


def test_one_that_is_tried_and_says_nothing_is_not_waited_for_long() -> None:
    stage = held_fleet(2)
    stage.now = 5000.0
    for session_id in ("s1", "s2"):
        come_back(stage, session_id)
    stage.now += TRIAL_S

    come_back(stage, "s2")

    assert stage.state("s2") == "starting"


def test_one_that_was_tried_and_has_finished_before_its_words_were_read_proves_it_too() -> None:
    stage = held_fleet(2)
    stage.now = 5000.0
    come_back(stage, "s1")
    stage.tell(make_launched(stage.launch("s1").id, stage.now))
    stage.now += 5.0
    die(stage, "s1", exit_code=0)

    say(stage, "s1", Said(What.RESULT), source="stream")
    stage.tell(Ended(stage.launch("s2").id, True))

    assert stage.state("s2") == "starting"
    assert stage.session("s1").wall is None


def test_whoever_works_all_along_says_nothing_of_a_limit() -> None:
    """It may be of one model only: then one that uses another would launch the limited one again and again."""
    stage = fleet(2)
    say(stage, "s1", limit(5000.0))
    die(stage, "s1")

    stage.now += 1.0
    say(stage, "s2", PROMPT, TOOL, STOP)

    assert stage.session("s1").hold == Hold(HoldReason.LIMIT, 5000.0)


def test_a_wall_that_another_one_works_on_beside_holds_only_who_met_it() -> None:
    stage = fleet(3)
    say(stage, "s1", LOCKED_OUT)
    for session_id in ("s1", "s3"):
        die(stage, session_id)
    stage.now += 10.0
    come_back(stage, "s3")
    assert [stage.state(one) for one in ("s1", "s3")] == ["pending (auth)", "pending (auth)"]

    stage.now += ASIDE_S + 1.0
    say(stage, "s2", TOOL)
    stage.tell(Ended(stage.launch("s3").id, True))

    assert [stage.state(one) for one in ("s1", "s3")] == ["pending (auth)", "starting"]
    assert told(stage) == ["claude-1/auth"]
    stage.tell(Declared("s9", "new", make_spec(NEVER), "alice", "claude-1"))
    assert stage.state("s9") == "starting"


def test_nobody_gets_in_until_one_whom_a_person_let_in_works() -> None:
    stage = fleet(3)
    say(stage, "s1", LOCKED_OUT)
    for session_id in ("s1", "s2", "s3"):
        die(stage, session_id)
    stage.now += 10.0
    for session_id in ("s2", "s3"):
        come_back(stage, session_id)
    assert [stage.session(one).hold for one in ("s1", "s2", "s3")] == [Hold(HoldReason.AUTH, None)] * 3
    assert told(stage) == ["claude-1/auth"]

    stage.ask("reset", "s2")
    stage.tell(Ended(stage.launch("s2").id, True))
    assert [stage.state(one) for one in ("s1", "s2", "s3")] == ["pending (auth)", "starting", "pending (auth)"]
    stage.tell(make_launched(stage.launch("s2").id, stage.now))
    stage.now += 5.0
    say(stage, "s2", PROMPT)
    say(stage, "s2", STOP)
    for session_id in ("s1", "s3"):
        stage.tell(Ended(stage.launch(session_id).id, True))

    assert [stage.state(one) for one in ("s1", "s2", "s3")] == ["starting", "running", "starting"]
    assert told(stage) == []


@pytest.mark.parametrize("verb", ["start", "restart", "reset"])
def test_a_persons_word_does_not_wait(verb: str) -> None:
    stage = held_fleet(1)

    stage.ask(verb, "s1")
    stage.tell(Ended(stage.launch("s1").id, True))

    assert stage.state("s1") == "starting"
    assert told(stage) == []


def test_a_fleet_whose_limited_one_is_removed_does_not_wait_for_it() -> None:
    stage = fleet(2)
    say(stage, "s1", LOCKED_OUT)
    for session_id in ("s1", "s2"):
        die(stage, session_id)
    stage.now += 10.0
    come_back(stage, "s2")
    assert stage.state("s2") == "pending (auth)"

    stage.ask("rm", "s1")
    stage.tell(Ended("s1-1", True))
    come_back(stage, "s2")

    assert stage.state("s2") == "starting"
    assert told(stage) == []


def test_a_new_daemon_waits_for_the_same_walls() -> None:
    stage = held_fleet(2)
    stage.now += 1.0

    effects = stage.restart()

    assert SetTimer("s1", TimerKind.WALL, 5000.0) in effects
    assert [stage.session(one).hold for one in ("s1", "s2")] == [Hold(HoldReason.LIMIT, 5000.0)] * 2
    stage.tell(Declared("s9", "new", make_spec(NEVER), "alice", "claude-1"))
    assert stage.session("s9").hold == Hold(HoldReason.LIMIT, 5000.0)
    assert told(stage) == ["claude-1/limit"]


def test_a_clock_that_was_set_back_makes_nobody_wait_for_more_than_a_week() -> None:
    stage = held_fleet(1)
    stage.now -= 60 * 86400.0

    stage.restart()

    hold = stage.session("s1").hold
    assert hold is not None and hold.until is not None
    assert hold.until <= stage.now + LONGEST_S
    stage.now += 1.0
    stage.ask("reset", "s1")
    stage.tell(Ended(stage.launch("s1").id, True))
    assert stage.state("s1") == "starting", "what was met lies in the past, whatever the clock says"


def test_those_that_wait_their_turn_wait_for_a_limit_that_is_met_meanwhile() -> None:
    stage = Stage()
    for number in range(1, 7):
        stage.tell(Declared(f"s{number}", f"n{number}", make_spec(ALWAYS), "alice", "claude-1"))
    assert stage.state("s5") == "pending (pace)"

    say(stage, "s1", limit(5000.0))
    effects = stage.tell(make_launched("s1-1", stage.now), make_launched("s2-1", stage.now))

    assert "Spawn" not in kinds(effects)
    assert [stage.state(one) for one in ("s5", "s6")] == ["pending (limit)", "pending (limit)"]


def test_the_incident_of_an_account_says_what_was_said() -> None:
    stage = fleet(2)
    say(stage, "s1", limit(AT + 90 * 86400.0))

    (incident,) = stage.machine.incidents.values()

    assert incident.kind is IncidentKind.LIMIT
    assert incident.why == "limit: limit reached (what it says of its end is too far away)"


def held_fleet(count: int) -> Stage:
    """Return a fleet of which the first met a limit until 5000, and all of which wait for it."""
    stage = fleet(count)
    say(stage, "s1", limit(5000.0))
    for number in range(1, count + 1):
        die(stage, f"s{number}")
    stage.now += 10.0
    for number in range(2, count + 1):
        come_back(stage, f"s{number}")
    wall = stage.session("s1").wall
    assert wall is not None and stands(wall, stage.now)
    return stage


def test_a_reset_of_one_that_lives_at_a_wall_lets_it_try_and_nobody_is_told_of_that_wall_any_more() -> None:
    stage = fleet(1)
    say(stage, "s1", limit(50000.0))
    assert told(stage) == ["claude-1/limit"]
    stage.now += 5.0

    stage.ask("reset")

    assert (stage.state("s1"), told(stage)) == ("running", [])
