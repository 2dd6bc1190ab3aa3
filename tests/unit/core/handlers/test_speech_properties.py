"""What an agent's own words make of a session."""

from __future__ import annotations

import pytest

from tests.unit.builders import SITUATIONS, make_hook, running
from tests.unit.doubts import concluded, in_doubt, told
from vigil.core.events import Hooked
from vigil.core.model.reading import Axis, DoubtKind
from vigil.core.model.session import State
from vigil.core.rules.liveness import SAMPLE_S


def test_what_an_agent_says_of_itself_is_taken_in_and_its_newest_word_counts() -> None:
    stage = running()
    hooks = (make_hook("tool", 1090.0), make_hook("idle", 1095.0), make_hook("", 1099.0))

    stage.tell(Hooked("s1-1", hooks))

    activity = stage.session().vitals.axes[Axis.ACTIVITY]
    assert (activity.value, activity.source, activity.observed_at, activity.why) == ("idle", "hook", 1095.0, "no turn is open")
    assert stage.session().last_activity_at == 1099.0
    assert stage.durable["s1"] == stage.session()


def test_a_word_that_comes_late_does_not_replace_a_newer_one() -> None:
    stage = running()
    stage.tell(Hooked("s1-1", (make_hook("idle", 1095.0), make_hook("tool", 1090.0))))
    assert stage.session().vitals.axes[Axis.ACTIVITY].value == "idle"

    stage.tell(Hooked("s1-1", (make_hook("waiting-human", 1094.0),)))

    assert stage.session().vitals.axes[Axis.ACTIVITY].value == "idle"


def test_a_word_that_says_nothing_more_is_a_sign_of_life() -> None:
    stage = running()
    stage.hear("tool")
    stage.now += 5.0

    assert stage.hear("") == []

    assert stage.session().vitals.axes[Axis.ACTIVITY].value == "tool"
    assert stage.session().last_activity_at == stage.now


def test_the_same_word_again_is_not_worth_a_write_until_it_is_old() -> None:
    stage = running()
    stage.hear("tool")
    first = stage.durable["s1"]

    stage.now += 30.0
    stage.hear("tool")
    assert stage.durable["s1"] is first
    stage.now += 31.0
    stage.hear("tool")

    assert stage.durable["s1"].last_activity_at == stage.now
    assert stage.session().vitals.axes[Axis.ACTIVITY].since == 1100.0


def test_who_waits_for_a_human_is_an_incident_until_it_goes_on() -> None:
    stage = running()
    stage.hear("working")

    assert told(stage.hear("waiting-human")) == ["s1/needs-input"]
    stage.now += 1.0
    assert told(stage.hear("waiting-human") + stage.hear("")) == []
    assert told(stage.hear("tool")) == ["s1/needs-input is over"]
    assert stage.machine.incidents == {}


def test_who_died_waits_for_no_human() -> None:
    stage = running()
    stage.hear("waiting-human")

    assert told(stage.exit(exit_code=1)) == ["s1/needs-input is over"]


def test_an_agent_that_waits_for_a_human_is_not_active_by_that() -> None:
    stage = running()
    stage.hear("waiting-human")
    stage.now += 60.0

    stage.see(process="dead")
    stage.now += SAMPLE_S

    assert concluded(stage.see(process="dead")) == ["s1-1"]


def test_an_agent_that_was_just_heard_is_not_called_dead_by_its_looks() -> None:
    stage = running()
    asked = stage.see(process="dead")
    for _ in range(5):
        stage.hear("working")
        stage.now += 10.0
        asked += stage.see(process="dead")

    assert concluded(asked) == []
    assert stage.state() == "suspect"


@pytest.mark.parametrize(
    ("axes", "kind", "seconds"),
    [
        ({"runtime": "unknown", "process": "unknown"}, DoubtKind.UNREADABLE, 70.0),
        ({"runtime": "dead", "process": "failed"}, DoubtKind.ORACLE, 70.0),
        ({"runtime": "unknown"}, DoubtKind.BLIND, 310.0),
    ],
)
def test_a_word_of_the_agent_ends_what_was_stuck_because_it_could_not_be_read(
    axes: dict[str, str], kind: DoubtKind, seconds: float
) -> None:
    stage = running()
    list(in_doubt(stage, seconds, **axes))
    assert stage.session().state is State.STUCK
    doubt = stage.session().vitals.doubt
    assert doubt is not None and doubt.kind is kind

    asked = stage.hear("working")

    assert (stage.state(), stage.session().vitals.doubt) == ("running", None)
    assert told(asked) == ["s1/stuck is over"]


def test_a_word_of_the_agent_does_not_end_what_is_stuck_because_its_server_hangs() -> None:
    stage = running()
    list(in_doubt(stage, 70.0, server="wedged"))

    asked = stage.hear("working")

    assert stage.state() == "stuck"
    assert told(asked) == []


def test_a_word_of_the_agent_does_not_bring_back_its_pane() -> None:
    stage = running()
    list(in_doubt(stage, 400.0, server="ended", runtime="ended"))
    assert (stage.state(), stage.session().why.split(":")[0]) == ("stuck", "orphaned")

    asked = stage.hear("working")

    assert stage.state() == "stuck"
    assert told(asked) == []


def test_a_word_of_the_agent_does_not_end_what_could_not_be_ended() -> None:
    stage = SITUATIONS["stuck"]()

    stage.hear("working")

    assert stage.state() == "stuck"


def test_no_reading_but_its_death_ends_what_could_not_be_ended() -> None:
    stage = SITUATIONS["stuck"]()

    stage.see()
    assert stage.state() == "stuck"
    stage.exit(signal=9)

    assert stage.state() == "ending"


def test_what_hung_and_then_died_is_no_longer_waited_for() -> None:
    stage = running()
    list(in_doubt(stage, 70.0, server="wedged"))
    assert stage.session().why.startswith("wedged")

    stage.see(server="ended", runtime="ended")

    assert (stage.state(), stage.session().why.split(":")[0]) == ("stuck", "orphaned")
    assert stage.log.count("server.died") == 1
