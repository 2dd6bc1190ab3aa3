"""What the reaper saw becomes intents and effects: meant first, compared by the server, spared where anything changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.builders import (
    ALWAYS,
    Stage,
    kinds,
    make_exit,
    make_launch,
    make_launched,
    make_observed,
    make_process,
    make_session,
    running,
)
from vigil.core.effects import Effect, EndLaunch, EndStray, Judged, ReapEnded
from vigil.core.events import Ended, Event, Exited, Heard, Hooked, Observed, Recovered, Resumed, Sighted, Spared, StrayEnded
from vigil.core.handlers.end import is_cleared
from vigil.core.model.death import Cause
from vigil.core.model.incident import IncidentKind
from vigil.core.model.restart import After, RestartPolicy
from vigil.core.model.session import State
from vigil.core.model.sighting import Glimpse, Guard, ReapAction, ReapClass, ReapOutcome, ReapPolicy, Stray
from vigil.core.model.speech import Hook, Said, What
from vigil.core.rules.reap import judge

TTL_S = 100.0
POLICY = ReapPolicy(idle_ttl_s=TTL_S, grace_s=10.0)
GUARD = Guard("$0", 1099, "/")
LATER = 2000.0


def seen(stage: Stage, policy: ReapPolicy = POLICY, strays: tuple[Stray, ...] = (), **changes: object) -> Sighted:
    glimpse = Glimpse("s1-1", stage.now, guard=GUARD, cpu=0.0)
    return Sighted((replace(glimpse, **changes),), strays, policy, "reaper")  # type: ignore[arg-type]


def idle(policy: RestartPolicy = ALWAYS) -> Stage:
    """Return a stage on which an agent has done nothing since its launch, long ago."""
    stage = running(policy)
    stage.tell(make_observed("s1-1", stage.now, process="alive", runtime="alive", server="alive"))
    stage.now = LATER
    return stage


def make_stray(**changes: object) -> Stray:
    return replace(Stray("s9-1", "gone", (make_process(900),), age_s=1e5), **changes)  # type: ignore[arg-type]


def test_what_is_idle_is_put_to_sleep_with_its_class_in_the_log_before_anything_is_done() -> None:
    stage = idle()

    (effect,) = stage.tell(seen(stage))

    assert isinstance(effect, EndLaunch)
    assert (effect.reap, effect.guard, stage.session().after) == (True, GUARD, After.PARK)
    (intent,) = stage.intents
    assert (intent.verb, intent.cause, intent.actor) == ("reap", Cause.POLICY, "reaper")
    told = next(entry for entry in stage.entries if entry.kind == "session.reaping")
    assert (told.data["class"], told.data["action"]) == ("idle", "park")

    stage.tell(Exited(make_exit(signal=1, at=stage.now)), Ended("s1-1", ok=True))
    assert stage.state() == "parked"
    assert [death.cause for death in stage.deaths] == [Cause.POLICY]
    assert [entry.data["class"] for entry in stage.entries if entry.kind == "session.reaped"] == ["idle"]


def test_a_person_whom_the_reaper_saw_is_known_to_be_there_until_a_look_says_that_they_left() -> None:
    stage = idle()

    stage.tell(seen(stage, clients=2))
    assert stage.session().vitals.attached == 2

    stage.tell(seen(stage, clients=None))
    assert stage.session().vitals.attached == 2


def test_what_its_server_spares_lives_on_uncharged_and_unparked() -> None:
    stage = idle()
    stage.tell(seen(stage))

    asked = stage.tell(Spared("s1-1", "a person attached in the moment of the kill"))

    assert (stage.state(), stage.session().after, kinds(asked)) == ("running", None, [])
    assert "a person attached" in stage.session().why
    stage.now += 3600
    stage.tell(Exited(make_exit(exit_code=1, at=stage.now)))
    assert stage.deaths[-1].cause is Cause.CRASH, "what was given up long ago explains nothing"


def test_what_died_while_it_was_spared_is_ended_and_sleeps() -> None:
    stage = idle()
    stage.tell(seen(stage))
    stage.tell(Exited(make_exit(signal=1, at=stage.now)))

    (effect,) = stage.tell(Spared("s1-1", "unknown: its tmux server gave no answer"))
    stage.tell(Ended("s1-1", ok=True))

    assert isinstance(effect, EndLaunch)
    assert stage.state() == "parked"


def test_a_kill_that_a_dead_daemon_had_begun_is_not_done_without_comparing_again() -> None:
    stage = idle()
    stage.tell(seen(stage))

    effects = [effect for effect in stage.tell(Resumed()) if isinstance(effect, EndLaunch)]

    assert [(effect.reap, effect.guard) for effect in effects] == [(True, None)]


def test_hooks_transcripts_sub_agents_output_and_deliveries_are_work_and_heartbeats_are_not() -> None:
    stage = idle()
    at = LATER - 5.0
    entry = Said(What.ALIVE, at)

    def last() -> float:
        return max(stage.session().worked.values(), default=0.0)

    stage.tell(Hooked("s1-1", (Hook("s1-1", "heartbeat", LATER),)))
    assert last() == 0.0
    words: tuple[Event, ...] = (
        Heard("s1-1", (replace(entry, at=at),), "transcript"),
        Heard("s1-1", (replace(entry, at=at + 1, subagent="x"),), "transcript"),
        Hooked("s1-1", (Hook("s1-1", "Stop", at + 2, (Said(What.TURN_ENDED),)),)),
        Observed("s1-1", (), printed_at=at + 3),
        Observed("s1-1", (), delivered_at=at + 4),
    )
    for number, event in enumerate(words):
        stage.tell(event)
        assert last() == at + number
    assert set(stage.session().worked) == {"transcript", "sub-agent", "hook", "screen", "delivery"}
    assert kinds(stage.tell(seen(stage))) == []


def test_work_is_durable_also_behind_a_heartbeat_that_just_was() -> None:
    """Else a daemon that is killed forgets it, and the next one puts to sleep what has just worked."""
    stage = idle()
    stage.tell(Hooked("s1-1", (Hook("s1-1", "heartbeat", LATER),)))
    stage.now = LATER + 8.0

    stage.tell(Hooked("s1-1", (Hook("s1-1", "Notification", stage.now),)))

    assert stage.durable["s1"].worked == {"hook": stage.now}


def test_a_screen_that_only_spins_is_no_work_if_the_agent_says_that_it_is_idle() -> None:
    stage = idle()

    def spinning() -> Sighted:
        return seen(stage, printed_at=LATER - 1, spins=True)

    assert kinds(stage.tell(spinning())) == [], "who says nothing may well work"

    stage.tell(Hooked("s1-1", (Hook("s1-1", "Stop", 1500.0, (Said(What.TURN_ENDED),)),)))
    assert kinds(stage.tell(spinning())) == ["EndLaunch"]


def test_what_cannot_be_read_or_is_in_doubt_is_kept() -> None:
    stage = idle()
    assert kinds(stage.tell(seen(stage, clients=None))) == []
    assert kinds(stage.tell(seen(stage, unreadable="its tmux server gave no whole answer"))) == []
    assert kinds(stage.tell(Sighted((), (), POLICY, "reaper"))) == []


def test_a_session_whose_folder_is_gone_is_stopped_and_stays_so() -> None:
    stage = idle()

    stage.tell(seen(stage, folder_gone_s=11.0))
    stage.tell(Exited(make_exit(signal=1, at=stage.now)), Ended("s1-1", ok=True))

    assert stage.state() == "stopped"
    assert "/work is gone" in stage.session().why


def test_an_orphan_is_ended_when_its_grace_is_over() -> None:
    stage = idle()
    stage.tell(Hooked("s1-1", (Hook("s1-1", "Stop", LATER, (Said(What.TURN_ENDED),)),)))

    assert kinds(stage.tell(seen(stage, strays=(make_stray(age_s=9.0),)))) == []
    (effect,) = stage.tell(seen(stage, strays=(make_stray(),)))

    assert isinstance(effect, EndStray)
    assert [entry.data["class"] for entry in stage.entries if entry.kind == "orphan.reaping"] == ["orphan"]


def test_orphans_older_than_the_store_or_over_half_of_all_are_kept_and_one_incident() -> None:
    for strays in (
        (make_stray(older_than_store=True),),
        (make_stray(), make_stray(launch_id="s8-1")),
    ):
        stage = idle()
        stage.tell(Hooked("s1-1", (Hook("s1-1", "Stop", LATER, (Said(What.TURN_ENDED),)),)))
        for _ in range(3):
            assert [effect for effect in stage.tell(seen(stage, strays=strays)) if isinstance(effect, EndStray)] == []
        assert [incident.kind for incident in stage.incidents.values()] == [IncidentKind.STORE_LOST]


def test_when_memory_is_short_the_longest_idle_sleeps_first_and_alone() -> None:
    stage = Stage(now=1000.0)
    for number in (1, 2, 3):
        stage.declare(ALWAYS, f"s{number}", f"n{number}")
    for number in (1, 2, 3):
        stage.tell(make_launched(f"s{number}-1", 1000.0 + number))
        stage.tell(make_observed(f"s{number}-1", 1010.0, process="alive", runtime="alive", server="alive"))
    stage.now = 1050.0
    glimpses = tuple(Glimpse(f"s{number}-1", stage.now, guard=GUARD, cpu=0.0) for number in (1, 2, 3))
    short = ReapPolicy(TTL_S, 10.0, "12 MiB are available")

    effects = [effect for effect in stage.tell(Sighted(glimpses, (), short, "reaper")) if isinstance(effect, EndLaunch)]

    assert [effect.launch.id for effect in effects] == ["s1-1"]
    assert "memory is short" in stage.intents[-1].reason


def test_what_lives_and_is_unknown_to_the_store_is_taken_over_with_one_incident() -> None:
    stage = Stage(now=LATER)
    found = [make_session(State.STARTING, id=f"s{n}", name=f"n{n}", launch=make_launch(f"s{n}"), launches=1) for n in (1, 2)]

    stage.tell(Recovered(tuple(found), "the store did not know what lives"))

    assert [stage.state(session.id) for session in found] == ["running", "running"]
    assert len(stage.incidents) == 1
    assert kinds(stage.tell(seen(stage))) == [], "nobody knows since when it is idle"


def test_what_a_dead_launch_left_is_cleared_but_not_after_it_finished() -> None:
    for exit_code, expected in ((3, ["EndLaunch"]), (0, [])):
        stage = running()
        stage.tell(Exited(make_exit(exit_code=exit_code, at=stage.now + 50)))
        stage.now = LATER
        left = (make_process(901),)
        assert kinds(stage.tell(seen(stage, survivors=left))) == expected


def test_what_could_not_be_cleared_is_said_and_tried_again() -> None:
    stage = running()
    stage.tell(Exited(make_exit(exit_code=3, at=stage.now + 50)))
    stage.now = LATER
    left = (make_process(901),)
    stage.tell(seen(stage, survivors=left))
    assert is_cleared(stage.session())

    stage.tell(Ended("s1-1", ok=False, why="1 of its processes live on after KILL (pid 901)"))

    assert (stage.session().vitals.intent, "could not be ended" in stage.session().why) == (None, True)
    assert [entry.kind for entry in stage.entries][-1] == "session.spared"
    assert kinds(stage.tell(seen(stage, survivors=left))) == ["EndLaunch"]
    stage.tell(Ended("s1-1", ok=True))
    assert [entry.data["class"] for entry in stage.entries if entry.kind == "session.reaped"] == ["orphan"]


# What was judged, and what became of it, for who swept


def swept(stage: Stage, **changes: object) -> list[Effect]:
    return stage.tell(replace(seen(stage, **changes), ticket="t"))  # type: ignore[arg-type]


def outcomes(effects: list[Effect]) -> list[tuple[str, str, str]]:
    found = [effect for effect in effects if isinstance(effect, ReapEnded)]
    assert {effect.ticket for effect in found} <= {"t"}
    return [(effect.launch_id, effect.outcome.value, effect.why) for effect in found]


def test_who_swept_gets_the_judgement_by_which_is_killed() -> None:
    stage = idle()
    stage.tell(Hooked("s1-1", (Hook("s1-1", "Stop", LATER, (Said(What.TURN_ENDED),)),)))

    effects = swept(stage, strays=(make_stray(),))

    judged, killed = effects
    assert isinstance(judged, Judged) and isinstance(killed, EndStray)
    assert [(one.launch_id, one.kind, one.action) for one in judged.verdicts] == [
        ("s1-1", ReapClass.BUSY, ReapAction.KEEP),
        ("s9-1", ReapClass.ORPHAN, ReapAction.KILL),
    ]
    assert killed.ticket == "t"


@pytest.mark.parametrize("outcome", [ReapOutcome.ENDED, ReapOutcome.SPARED, ReapOutcome.UNKNOWN, ReapOutcome.FAILED])
def test_what_became_of_a_stray_is_logged_and_told(outcome: ReapOutcome) -> None:
    stage = idle()

    effects = stage.tell(StrayEnded(make_stray(), outcome, 1, 0, "so it is", "t"))

    assert outcomes(effects) == [("s9-1", outcome.value, "so it is")]
    reaped = outcome in (ReapOutcome.ENDED, ReapOutcome.FAILED)
    assert (stage.entries[-1].kind, stage.entries[-1].session) == ("orphan.reaped" if reaped else "orphan.spared", "gone")


def test_what_was_put_to_sleep_or_could_not_be_ended_is_told_once() -> None:
    for ok, outcome in ((True, "parked"), (False, "failed")):
        stage = idle()
        swept(stage)
        stage.tell(Exited(make_exit(signal=1, at=stage.now)))

        effects = stage.tell(Ended("s1-1", ok=ok, why="" if ok else "it lives on"))

        assert outcomes(effects) == [("s1-1", outcome, stage.session().why)]
        assert outcomes(stage.tell(Ended("s1-1", ok=ok))) == []


def test_what_was_spared_is_told_and_whether_that_is_sure() -> None:
    for unsure, outcome in ((False, "spared"), (True, "unknown")):
        stage = idle()
        swept(stage)

        effects = stage.tell(Spared("s1-1", "any words", unsure))

        assert outcomes(effects) == [("s1-1", outcome, "not reaped: any words")]


def test_what_was_left_behind_is_told_of_also_if_it_could_not_be_ended() -> None:
    for ok, outcome in ((True, "ended"), (False, "failed")):
        stage = running()
        stage.tell(Exited(make_exit(exit_code=3, at=stage.now + 50)))
        stage.now = LATER
        swept(stage, survivors=(make_process(901),))

        ((launch_id, found, why),) = outcomes(stage.tell(Ended("s1-1", ok=ok, why="1 of them lives on")))

        assert (launch_id, found) == ("s1-1", outcome)
        assert ("lives on (pid 901)" if ok else "1 of them lives on") in why


def test_who_swept_is_told_also_where_a_person_went_on_with_what_was_begun() -> None:
    for verb, outcome in (("stop", "stopped"), ("rm", "removed"), ("restart", "ended")):
        stage = idle()
        swept(stage)
        stage.ask(verb)

        assert [found for _, found, _ in outcomes(stage.tell(Ended("s1-1", ok=True)))] == [outcome]


def test_a_sweep_that_nobody_waits_for_tells_nobody() -> None:
    stage = idle()
    told = [*stage.tell(seen(stage)), *stage.tell(Ended("s1-1", ok=True))]

    assert [effect for effect in told if isinstance(effect, Judged | ReapEnded)] == []


def test_an_archived_session_that_still_runs_is_ended() -> None:
    stage = idle()
    stage.machine.sessions["s1"] = replace(stage.session(), archived_at=1500.0)

    stage.tell(seen(stage))
    stage.tell(Exited(make_exit(signal=1, at=stage.now)), Ended("s1-1", ok=True))

    assert stage.state() == "stopped"
    assert stage.session().archived_at == 1500.0
    assert stage.session().why.startswith("archived by")
    assert stage.ask("wake") == []
    stage.ask("start")
    assert stage.session().archived_at is None


def test_what_an_agent_left_and_no_launch_is_proven_of_is_listed_and_kept() -> None:
    stage = idle()
    left = make_stray(launch_id="unknown-launch", name="", unproven=True)

    verdicts, ((verdict, _),), why_kept = judge(stage.machine.sessions.values(), {}, (), (left,), ReapPolicy(), stage.now)

    assert (verdict.kind, verdict.action) == (ReapClass.UNKNOWN, ReapAction.KEEP)
    assert verdict.evidence[0] == "an agent left it to the keeper (pid 900), and which one cannot be told"
    assert why_kept == ""
    assert verdicts
