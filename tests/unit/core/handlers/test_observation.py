"""What readings and gaps make of a session, told to the machine as the daemon tells them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.builders import SITUATIONS, fleet, kinds, make_fact, make_hook, make_launched, make_observed, running, starting
from tests.unit.doubts import AGENT, concluded, in_doubt, timers, told
from vigil.core.effects import Effect, EndLaunch, Look, RepairSocket, SetTimer, Tell, TimerKind
from vigil.core.events import (
    Closed,
    Event,
    Exited,
    Found,
    Gap,
    Hooked,
    Noted,
    Observed,
    Orphaned,
    RuntimeEnded,
    Swept,
    TimerFired,
)
from vigil.core.model.death import Exit
from vigil.core.model.reading import Axis
from vigil.core.model.session import with_vitals
from vigil.core.rules.liveness import EPISODE_S, SAMPLE_S

# A server that hangs


def test_a_wedged_server_makes_its_session_suspect_then_stuck_and_its_answer_ends_that() -> None:
    stage = running()
    states = list(in_doubt(stage, 70.0, server="wedged"))

    assert list(dict.fromkeys(states)) == ["running", "suspect", "stuck"]

    asked = stage.see()

    assert stage.state() == "running"
    assert stage.session().vitals.doubt is None
    assert told(asked) == ["s1/stuck is over"]


def test_what_is_stuck_is_told_once_however_often_it_is_read_again() -> None:
    stage = running()
    seen: list[Effect] = []
    for _ in range(200):
        seen += stage.see(server="wedged")
        stage.now += 10.0

    assert stage.state() == "stuck"
    assert stage.log.count("incident.opened") == 1
    assert told(seen) == ["s1/stuck"]

    seen = [effect for _ in range(10) for effect in stage.see()]

    assert stage.log.count("incident.resolved") == 1
    assert told(seen) == ["s1/stuck is over"]
    assert stage.machine.incidents == {}


def test_what_stays_stuck_costs_no_write() -> None:
    stage = running()
    list(in_doubt(stage, 70.0, server="wedged"))
    before = stage.durable["s1"], len(stage.entries)

    for _ in range(20):
        stage.see(server="wedged")
        stage.now += 10.0

    assert (stage.durable["s1"], len(stage.entries)) == before


@pytest.mark.parametrize("verb", ["stop", "restart", "rm"])
def test_what_is_being_ended_is_in_no_doubt(verb: str) -> None:
    stage = running()
    list(in_doubt(stage, 70.0, server="wedged"))

    stage.ask(verb)

    assert (stage.state(), stage.session().vitals.doubt) == ("ending", None)
    assert stage.see(server="wedged") == []


def test_an_agent_that_dies_while_its_server_is_wedged_is_dead_at_once() -> None:
    stage = running()
    list(in_doubt(stage, 70.0, server="wedged"))

    asked = stage.see(server="wedged", process="ended")

    assert concluded(asked) == ["s1-1"]


def test_a_doubt_says_in_the_log_what_it_rests_on_and_not_for_ever() -> None:
    stage = running()

    list(in_doubt(stage, 290.0, process="failed", runtime="failed"))

    assert 0 < stage.log.count("session.doubted") <= 5
    entry = next(entry for entry in stage.entries if entry.kind == "session.doubted")
    assert entry.data == {
        "doubt": "unreadable",
        "axis": "process",
        "attempts": 1,
        "evidence": "server alive, runtime failed, process failed",
    }


# Nobody in doubt is forgotten (P5)


DOUBTS: list[dict[str, str]] = [
    {"server": "wedged"},
    {"server": "unknown"},
    {"runtime": "unknown"},
    {"process": "failed"},
    {"runtime": "unknown", "process": "unknown"},
    {"runtime": "dead", "process": "unknown"},
    {"runtime": "dead"},
    {"process": "dead"},
]


@pytest.mark.parametrize("axes", DOUBTS, ids=lambda axes: ", ".join(f"{axis} {value}" for axis, value in axes.items()))
def test_who_is_in_doubt_is_looked_at_again_and_again(axes: dict[str, str]) -> None:
    stage = running()

    looks = list(in_doubt(stage, EPISODE_S + 60.0, **axes))

    assert len(looks) > EPISODE_S / 10.0


def test_a_look_that_nobody_answers_is_asked_for_again() -> None:
    stage = running()
    stage.see(process="dead")

    for _ in range(5):
        stage.now += SAMPLE_S
        look, timer = stage.tell(TimerFired("s1", TimerKind.LOOK))
        assert look == Look(stage.launch())
        assert isinstance(timer, SetTimer) and timer.at > stage.now


def test_who_is_in_no_doubt_is_not_looked_at_when_an_old_timer_fires() -> None:
    stage = running()
    stage.see(process="dead")
    stage.see()

    assert stage.tell(TimerFired("s1", TimerKind.LOOK)) == []


def test_what_is_well_costs_no_timer_and_no_write() -> None:
    stage = running()
    before = len(stage.entries), dict(stage.durable)

    assert stage.see() == []
    assert (len(stage.entries), stage.durable) == before


# What a suspect remembers


def test_the_memory_of_a_suspect_survives_a_restart() -> None:
    stage = running()
    for _ in range(2):
        stage.see(runtime="failed", process="failed")
        stage.now += 30.0
    before = stage.session().vitals.doubt
    assert before is not None and before.attempts == 2

    asked = stage.restart()

    doubt = stage.session().vitals.doubt
    assert doubt == replace(before, since=before.since + 25.0, sampled_at=stage.now - 5.0), "while it was down it grew no older"
    assert timers(asked) == [SetTimer("s1", TimerKind.LOOK, stage.now)]

    stage.see(runtime="failed", process="failed")
    doubt = stage.session().vitals.doubt
    assert doubt is not None and doubt.attempts == 3, "the third attempt, not the first"
    stage.now += 30.0
    stage.see(runtime="failed", process="failed")
    assert stage.state() == "stuck"


def test_what_was_stuck_before_a_restart_is_told_to_the_clock_again_and_not_opened_again() -> None:
    stage = running()
    list(in_doubt(stage, 70.0, server="wedged"))
    (incident,) = stage.machine.incidents.values()

    asked = stage.restart()
    stage.tell(make_launched("s1-1", 1001.0, adopted=True))
    for _ in range(3):
        stage.now += 10.0
        asked += stage.see(server="wedged")

    assert stage.state() == "stuck"
    assert [effect.incident for effect in asked if isinstance(effect, Tell)] == [incident]
    assert stage.log.count("incident.opened") == 1

    stage.see()

    assert stage.incidents[incident.id].resolved_at == stage.now


# Fencing


OLD: list[Event] = [
    make_observed("s1-1", 1200.0, process="ended"),
    make_observed("s1-1", 1200.0, server="wedged"),
    Hooked("s1-1", (make_hook("waiting-human", 1200.0),)),
    Found("s1-1", AGENT, make_fact(Axis.PROCESS, "alive", 1200.0)),
    RuntimeEnded("s1-1"),
    Closed("s1-1", (make_fact(Axis.SERVER, "ended", 1200.0),)),
    Orphaned("s1-1", 1200.0, "pane"),
    Exited(Exit("s1-1", 1200.0, "daemon")),
]


@pytest.mark.parametrize("event", OLD, ids=lambda event: type(event).__name__)
def test_what_is_told_of_an_old_launch_changes_nothing(event: Event) -> None:
    stage = running()
    stage.ask("restart")
    stage.exit(signal=15)
    stage.end()
    stage.tell(make_launched("s1-2", stage.now))
    before = stage.session()

    assert stage.tell(event) == []
    assert stage.session() == before


@pytest.mark.parametrize("situation", ["crashed", "failed", "stopped", "succeeded", "saturated"])
def test_what_is_read_of_a_launch_that_is_dead_changes_nothing(situation: str) -> None:
    stage = SITUATIONS[situation]()
    before = stage.session()

    assert stage.see(server="wedged") == []
    assert stage.hear("waiting-human") == []
    after = stage.session()
    after = with_vitals(
        after, recent=before.vitals.recent, tally=before.vitals.tally, trail=before.vitals.trail
    )  # its last words are remembered
    assert after == before


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_reading_never_concludes_in_any_situation(situation: str) -> None:
    for word in ("dead", "ended"):
        stage = SITUATIONS[situation]()
        launch = stage.session().launch
        deaths = len(stage.deaths)
        if launch is not None:
            asked = stage.see(process=word)
            assert not any(isinstance(effect, EndLaunch) for effect in asked)
        assert len(stage.deaths) == deaths


# Gaps


def test_what_was_read_before_a_gap_says_nothing() -> None:
    stage = running()
    stage.tell(Gap(60.0))

    asked = stage.tell(make_observed("s1-1", stage.now - 1.0, process="dead"))

    assert asked == []
    assert (stage.state(), stage.session().vitals.doubt) == ("running", None)
    assert "daemon.gap" in stage.log


def test_what_the_kernel_said_before_a_gap_counts() -> None:
    stage = running()
    stage.tell(Gap(60.0))

    asked = stage.tell(make_observed("s1-1", stage.now - 1.0, process="ended"))

    assert concluded(asked) == ["s1-1"]


def test_what_is_read_after_a_gap_counts() -> None:
    stage = running()
    stage.tell(Gap(60.0))

    stage.see(process="dead")

    assert stage.state() == "suspect"


def test_no_doubt_grows_older_by_a_gap() -> None:
    stage = running()
    for _ in range(5):
        stage.see(server="wedged")
        stage.now += 10.0
    before = stage.session().vitals.doubt
    assert before is not None

    stage.now += 1000.0
    stage.tell(Gap(1000.0))
    stage.see(server="wedged")

    after = stage.session().vitals.doubt
    assert after is not None
    assert (stage.state(), after.since, after.attempts) == ("suspect", before.since + 1000.0, before.attempts + 1)
    assert stage.durable["s1"].vitals.doubt == after

    stage.now += 10.0
    stage.see(server="wedged")

    assert stage.state() == "stuck"


def test_a_pass_from_before_a_gap_is_no_mass_death() -> None:
    stage, sessions = fleet(5)
    before = stage.now
    stage.now += 60.0
    stage.tell(Gap(60.0))

    seen = tuple(make_observed(f"{session_id}-1", before, process="dead") for session_id in sessions)
    stage.tell(Swept(seen, 5))

    assert {stage.state(session_id) for session_id in sessions} == {"running"}
    assert stage.machine.incidents == {}


# Many at once


@pytest.mark.parametrize(("gone", "looked_at"), [(5, 5), (5, 9), (6, 11), (51, 101)])
def test_five_and_over_half_that_look_dead_in_one_pass_are_one_incident_of_the_host(gone: int, looked_at: int) -> None:
    stage, sessions = fleet(looked_at)

    asked = stage.sweep(sessions[:gone], looked_at, process="dead")

    assert told(asked) == ["host/mass-death"]
    assert {stage.state(session_id) for session_id in sessions[:gone]} == {"suspect"}


@pytest.mark.parametrize(("gone", "looked_at"), [(1, 1), (4, 4), (5, 10), (50, 100)])
def test_fewer_than_five_or_half_are_no_incident_and_are_concluded_by_their_second_sample(gone: int, looked_at: int) -> None:
    stage, sessions = fleet(looked_at)
    dead = sessions[:gone]

    asked = stage.sweep(dead, looked_at, process="dead")
    assert (told(asked), concluded(asked)) == ([], [])
    stage.now += 10.0
    asked = stage.sweep(dead, looked_at, process="dead")

    assert told(asked) == []
    assert concluded(asked) == [f"{session_id}-1" for session_id in dead]


def test_while_the_breaker_holds_nothing_dies_and_afterwards_it_is_concluded() -> None:
    stage, sessions = fleet(6)
    opened_at = stage.now
    gone, asked = 5, []

    while stage.now < opened_at + 60.0:
        asked += stage.sweep(sessions[:gone], 6, process="dead")
        stage.now += 10.0
        gone = 6  # that more of them look dead makes the incident no younger

    assert concluded(asked) == []
    assert stage.deaths == []
    assert told(asked) == ["host/mass-death"]

    asked = stage.sweep(sessions, 6, process="dead")

    assert concluded(asked) == [f"{session_id}-1" for session_id in sessions]
    assert stage.log.count("incident.opened") == 1


def test_the_breaker_holds_nobody_whom_the_kernel_saw_end() -> None:
    stage, sessions = fleet(6)
    stage.sweep(sessions[:5], 6, process="dead")

    asked = stage.see("s1", process="ended")

    assert concluded(asked) == ["s1-1"]


def test_a_mass_death_that_was_none_is_over_when_all_are_well_again() -> None:
    stage, sessions = fleet(6)
    stage.sweep(sessions, 6, process="dead")
    stage.now += 10.0

    asked = [effect for session_id in sessions for effect in stage.see(session_id)]

    assert told(asked) == ["host/mass-death is over"]
    assert {stage.state(session_id) for session_id in sessions} == {"running"}
    assert stage.deaths == []


# A socket that is gone


def test_a_server_that_nobody_can_reach_is_asked_to_make_its_socket_anew() -> None:
    stage = running()

    def lost() -> list[Effect]:
        return stage.tell(replace(make_observed("s1-1", stage.now, server="unknown"), socket_lost=True))

    asked = lost()

    assert RepairSocket(stage.launch()) in asked
    assert stage.log[-1] == "server.socket-lost"
    assert stage.state() == "running"
    stage.now += 0.2
    assert "RepairSocket" not in kinds(lost()), "it was asked already"
    stage.now += 5.0
    assert "RepairSocket" in kinds(lost()), "and is asked again with the next sample"
    assert stage.log.count("server.socket-lost") == 1


def test_who_is_attached_and_when_it_was_active_are_taken_in() -> None:
    stage = running()

    stage.tell(Observed("s1-1", (), attached=2, active_at=1090.0))
    stage.tell(Observed("s1-1", (), active_at=1050.0))

    assert (stage.session().vitals.attached, stage.session().last_activity_at) == (2, 1090.0)


def test_an_entry_for_the_log_is_durable_and_changes_nothing() -> None:
    stage = running()
    before = stage.session()

    asked = stage.tell(Noted("server.upgraded", (("from", "3.3a"), ("to", "3.5")), "s1", "alpha", "s1-1"))

    assert (asked, stage.session()) == ([], before)
    (entry,) = (entry for entry in stage.entries if entry.kind == "server.upgraded")
    assert (entry.session_id, entry.session, entry.launch_id) == ("s1", "alpha", "s1-1")
    assert entry.data == {"from": "3.3a", "to": "3.5"}


def test_a_pane_that_closes_while_its_agent_starts_leaves_it_in_doubt() -> None:
    stage = starting()

    stage.tell(Orphaned("s1-1", stage.now, "pane"))

    assert stage.state() == "suspect"
