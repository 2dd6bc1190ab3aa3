"""Doubts under a bad star: readings that read nothing, restarts, gaps and many at once change no verdict they should not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tests.unit.builders import (
    ALWAYS,
    SITUATIONS,
    Stage,
    crashed_and_coming_back,
    fleet,
    kinds,
    make_exit,
    make_launched,
    make_observed,
    only_timer,
    running,
)
from vigil.core.effects import Effect, TimerKind
from vigil.core.events import Exited, Gap, Notified, Observed, TimerFired
from vigil.core.model.incident import Notice, NoticeState


def see_often(stage: Stage, times: int, sessions: Iterable[str] = ("s1",), step_s: float = 10.0, **axes: str) -> list[Effect]:
    """Read the same again and again."""
    asked: list[Effect] = []
    for _ in range(times):
        for session_id in sessions:
            asked += stage.see(session_id, **axes)
        stage.now += step_s
    return asked


def die_with_servers(stage: Stage, ids: Iterable[str], apart_s: float = 0.05) -> None:
    for session_id in ids:
        stage.now += apart_s
        stage.tell(Exited(make_exit(f"{session_id}-1", stage.now, server_ended=True, server_signal=9)))


def test_a_reading_that_read_nothing_is_no_second_sample() -> None:
    stage = running()
    stage.see(process="dead")
    stage.now += 6.0

    assert "Conclude" not in kinds(stage.tell(Observed("s1-1", (), attached=0)))


def test_what_an_agent_prints_is_no_failed_ping() -> None:
    stage = running()
    stage.see(server="wedged")

    for _ in range(12):
        stage.now += 6.0
        stage.tell(Observed("s1-1", (), active_at=stage.now))

    doubt = stage.session().vitals.doubt
    assert doubt is not None and doubt.attempts == 1


def test_a_reading_from_before_a_gap_is_no_second_sample() -> None:
    stage = running()
    stage.see(process="dead")
    stage.now += 100.0
    stage.tell(Gap(100.0))
    stage.now += 6.0

    assert "Conclude" not in kinds(stage.tell(make_observed("s1-1", stage.now - 50.0, process="dead")))


def test_stuck_by_a_wedged_server_is_ended_by_the_servers_answer_alone() -> None:
    stage = running()
    see_often(stage, 8, server="wedged")
    assert stage.state() == "stuck"

    stage.see(server="wedged", runtime="unknown", process="unknown")
    stage.see(server="wedged", runtime="unknown")
    stage.see(server="failed")
    stage.hear("working")
    assert stage.state() == "stuck"

    stage.see()
    assert stage.state() == "running"


def test_what_an_agent_prints_ends_what_is_stuck_because_nobody_could_read_it() -> None:
    stage = running()
    see_often(stage, 8, runtime="unknown", process="failed")
    assert stage.state() == "stuck"

    stage.tell(Observed("s1-1", (), active_at=stage.now))

    assert stage.state() == "running"


def test_a_pane_that_looks_gone_is_stuck_after_five_minutes() -> None:
    stage = running()

    see_often(stage, 40, runtime="dead")

    assert stage.state() == "stuck"


def test_the_hosts_stuck_incident_resolves_also_after_a_restart() -> None:
    stage, ids = fleet(6)
    see_often(stage, 8, ids[:5], server="wedged")
    assert list(stage.machine.incidents) == ["host/stuck"]

    stage.restart()
    for session_id in ids:
        stage.see(session_id)

    assert stage.machine.incidents == {}


def test_a_late_notice_of_an_old_incident_does_not_lose_the_new_one() -> None:
    stage = running()
    stage.hear("waiting-human")
    (old,) = stage.machine.incidents.values()
    stage.now += 1
    stage.hear("working")
    stage.now += 60
    stage.hear("waiting-human")
    before = dict(stage.machine.incidents)

    stage.tell(Notified(old.id, Notice("n", "desk", NoticeState.SENT, stage.now)))

    assert stage.machine.incidents == before


def test_an_incident_that_opens_again_in_the_same_moment_is_the_same_one() -> None:
    stage = running()
    stage.hear("waiting-human")
    (old,) = stage.machine.incidents.values()

    stage.hear("working")
    stage.hear("waiting-human")

    (new,) = stage.machine.incidents.values()
    assert (new.id, new.count) == (old.id, 2)


def test_servers_that_die_together_are_one_incident() -> None:
    stage, ids = fleet(6)

    die_with_servers(stage, ids)

    assert list(stage.machine.incidents) == ["host/mass-death"]


def test_server_deaths_that_confirm_an_inferred_mass_death_are_part_of_it() -> None:
    stage, ids = fleet(6)
    stage.sweep(ids, 6, process="dead")
    stage.now += 5

    die_with_servers(stage, ids, apart_s=0.0)

    assert list(stage.machine.incidents) == ["host/mass-death"]


def test_a_second_mass_inference_has_a_breaker_of_its_own_although_the_first_incident_is_open() -> None:
    stage, ids = fleet(12)
    for session_id in ids[:7]:
        stage.tell(Exited(make_exit(f"{session_id}-1", stage.now, exit_code=1)))
    stage.now += 1000
    stage.sweep(ids[7:], 5, process="dead")
    stage.now += 10

    assert "Conclude" not in kinds(stage.sweep(ids[7:], 5, process="dead"))


def test_deaths_hours_apart_are_no_mass_death_in_whatever_order_they_are_told() -> None:
    stage, ids = fleet(7)
    stage.now = 20000.0

    for number, session_id in enumerate(ids[:6]):
        stage.tell(Exited(make_exit(f"{session_id}-1", 20000.0 - 1000 * number, exit_code=1)))

    assert stage.machine.incidents == {}


def test_sessions_that_the_kernel_saw_end_are_not_dead_by_inference() -> None:
    stage, ids = fleet(6)

    stage.sweep(ids[:5], 6, runtime="dead", process="ended")

    assert stage.machine.incidents == {}


def test_the_stored_time_of_the_last_activity_is_never_much_older_than_the_true_one() -> None:
    stage = running()

    for _ in range(30):
        stage.hear("tool")
        stage.now += 10.0

    stored_at = stage.durable["s1"].last_activity_at
    assert stored_at is not None and stage.now - stored_at <= 45.0


def test_a_server_that_the_kernel_saw_end_makes_its_agent_an_orphan_that_is_replaced() -> None:
    stage = running(ALWAYS)

    see_often(stage, 2, step_s=5.0, server="ended")

    assert stage.state() == "ending"


def test_who_waits_for_a_human_says_for_what() -> None:
    stage = running()

    stage.hear("waiting-human")

    (incident,) = stage.machine.incidents.values()
    assert incident.why.startswith("waits for a human: ")


def test_what_samples_call_dead_and_the_kernel_does_not_needs_a_human_after_five_minutes() -> None:
    stage = running()

    asked = see_often(stage, 29, process="dead")
    assert "Conclude" in kinds(asked)
    assert stage.state() == "suspect"
    see_often(stage, 2, process="dead")

    assert stage.state() == "stuck"


def test_what_is_called_dead_by_samples_is_a_doubt_that_the_next_daemon_takes_up() -> None:
    stage = running()
    see_often(stage, 20, process="dead")
    stage.restart()

    see_often(stage, 12, process="dead")

    assert stage.state() == "stuck"


def test_a_socket_that_is_lost_while_its_server_hangs_is_made_anew_when_it_goes_on() -> None:
    stage = running()
    see_often(stage, 10, server="wedged")
    assert stage.state() == "stuck"

    lost = replace(make_observed("s1-1", stage.now, server="unknown"), socket_lost=True)

    assert "RepairSocket" in kinds(stage.tell(lost))
    assert "RepairSocket" not in kinds(stage.tell(lost)), "once for each sample"


def test_an_end_that_only_a_look_can_tell_ends_what_could_not_be_ended() -> None:
    stage = SITUATIONS["stuck"]()

    asked = stage.see(process="ended")

    assert "Conclude" in kinds(asked)
    assert stage.state() == "stuck", "its death is told first"


def test_charges_are_forgiven_when_the_doubt_about_a_long_life_is_over() -> None:
    stage = crashed_and_back()
    stage.now += 595.0
    see_often(stage, 2, server="wedged", step_s=12.0)
    assert stage.state() == "suspect"

    timer = only_timer(stage.tell(TimerFired("s1", TimerKind.STABLE)))
    assert stage.session().charges == 1
    stage.see()
    stage.now = timer.at
    stage.tell(TimerFired("s1", TimerKind.STABLE))

    assert stage.session().charges == 0


def crashed_and_back() -> Stage:
    stage = crashed_and_coming_back()
    stage.end()
    stage.tell(make_launched(stage.launch().id, stage.now))
    assert (stage.state(), stage.session().charges) == ("running", 1)
    return stage
