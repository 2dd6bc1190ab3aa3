"""Sessions are put to sleep and woken by the machine: the mark belongs to one launch, and bad conversations are set aside."""

from __future__ import annotations

import dataclasses

import pytest

from tests.unit.builders import (
    ALWAYS,
    NEVER,
    Stage,
    kinds,
    make_exit,
    make_launched,
    make_observed,
    make_session,
    make_spec,
    running,
)
from tests.unit.stalls import evidence
from vigil.core.effects import Answer, Effect, TimerKind
from vigil.core.events import (
    Asked,
    Closed,
    Declared,
    Diagnosed,
    Ended,
    Exited,
    Heard,
    Interrupted,
    LaunchFailed,
    Observed,
    Resumed,
    Sighted,
    TimerFired,
    WatchdogsSet,
)
from vigil.core.handlers.conversation import life_of, quarantine, strike
from vigil.core.model.conversation import Kept, Transcript, Wake
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.evidence import Evidence
from vigil.core.model.incident import IncidentKind
from vigil.core.model.launch import Mode
from vigil.core.model.restart import Hold, HoldReason, RestartPolicy
from vigil.core.model.session import State, with_vitals
from vigil.core.model.sighting import Glimpse, ReapPolicy
from vigil.core.model.speech import Said, Usage, What
from vigil.core.model.stall import Watchdog, Watchdogs
from vigil.core.rules.wake import Life

CONVERSATION = "c-1"
TURN = (Said(What.PROMPT, conversation=CONVERSATION), Said(What.TURN_ENDED, usage=Usage(10, 5)))


def conversing(policy: RestartPolicy = NEVER) -> Stage:
    """A session that runs, and has had a turn of its conversation."""
    stage = running(policy)
    stage.tell(Heard("s1-1", TURN, "hook"))
    return stage


def there(kept: Kept = Kept.THERE, why: str = "") -> Transcript:
    return Transcript(CONVERSATION, kept, 1000.0, why)


def end(stage: Stage, kept: Kept = Kept.THERE) -> list[Effect]:
    """All that there was of the launch is gone, and what is left of its conversation was read."""
    return stage.tell(Ended(stage.launch().id, True, transcript=there(kept)))


def park_it(stage: Stage) -> Stage:
    stage.ask("hibernate")
    stage.exit(signal=15)
    end(stage)
    return stage


def wake(stage: Stage, mode: str = "", session_id: str = "s1", kept: Kept = Kept.THERE) -> Wake:
    """Ask for a wake, and return the answer."""
    effects = stage.tell(Asked(IntentVerb.WAKE, session_id, "alice", mode=mode, transcript=there(kept), ticket="t"))
    (answer,) = [effect.wake for effect in effects if isinstance(effect, Answer)]
    return answer


def come_up(stage: Stage, kept: Kept = Kept.THERE) -> None:
    """What was woken is launched, and lives."""
    end(stage, kept)
    stage.tell(make_launched(stage.launch().id, stage.now))


def mode_of(stage: Stage) -> tuple[str, str, str]:
    return stage.launch().mode.value, stage.launch().woken_for, stage.session().conversation


def test_what_was_put_to_sleep_wakes_in_its_conversation() -> None:
    stage = park_it(conversing(ALWAYS))
    assert stage.state() == "parked"
    assert [death.cause for death in stage.deaths] == [Cause.OPERATOR]
    assert "wakes in its conversation" in stage.session().why

    assert wake(stage) == Wake(Mode.RESUME, "parked")
    come_up(stage)

    assert stage.state() == "running"
    assert mode_of(stage) == ("resume", "parked", CONVERSATION)
    assert stage.launch().conversation == CONVERSATION


def test_the_decision_is_in_the_log_before_anything_is_done() -> None:
    stage = park_it(conversing())

    effects = stage.tell(Asked(IntentVerb.WAKE, "s1", "alice", transcript=there()))

    assert kinds(effects) == ["EndLaunch"]
    assert stage.log[-3:] == ["session.asked-wake", "session.wake", "session.state"]


def test_the_park_mark_dies_with_the_wake_so_a_crash_after_it_starts_fresh() -> None:
    stage = park_it(conversing(ALWAYS))
    wake(stage)
    come_up(stage)
    stage.tell(Heard(stage.launch().id, TURN, "hook"))

    stage.exit(exit_code=1)
    assert stage.state() == "crashed (backoff)"
    hold = stage.session().hold
    assert hold is not None and hold.until is not None
    refused = wake(stage)
    stage.now = hold.until
    stage.tell(TimerFired("s1", TimerKind.HOLD))
    come_up(stage)

    assert (refused.mode, refused.cause, refused.until) == (Mode.REFUSED, "crash-loop", hold.until)
    assert mode_of(stage) == ("fresh", "crashed", "")


def test_a_wake_that_never_came_to_life_is_tried_again_in_its_mode() -> None:
    stage = park_it(conversing())
    wake(stage)
    end(stage)
    stage.tell(LaunchFailed(stage.launch().id, stage.now, "no such file"))

    assert wake(stage) == Wake(Mode.RESUME, "parked")


def test_a_wake_that_the_death_of_the_daemon_interrupted_is_made_anew_in_its_mode() -> None:
    stage = park_it(conversing())
    wake(stage)
    end(stage)

    stage.tell(Interrupted(stage.launch().id))
    come_up(stage)

    assert mode_of(stage) == ("resume", "parked", CONVERSATION)


def test_what_an_operator_stopped_is_not_woken_and_start_goes_on_with_it() -> None:
    stage = conversing()
    stage.ask("stop")
    stage.exit(signal=15)
    end(stage)

    refused = wake(stage)
    stage.ask("start")
    come_up(stage)

    assert (refused.mode, refused.cause) == (Mode.REFUSED, "stopped")
    assert "vigil start alpha" in refused.why
    assert mode_of(stage) == ("resume", "operator", CONVERSATION)


def test_two_wakes_at_once_are_one_launch() -> None:
    stage = park_it(conversing())

    first, second = wake(stage), wake(stage)
    come_up(stage)

    assert (first.mode, second) == (Mode.RESUME, Wake(Mode.NOTHING, "already awake"))
    assert stage.session().launches == 2


def test_what_is_woken_while_it_is_put_to_sleep_comes_back_after_that() -> None:
    stage = conversing()
    stage.ask("hibernate")

    assert wake(stage) == Wake(Mode.RESUME, "parked")
    stage.exit(signal=15)
    come_up(stage)

    assert mode_of(stage) == ("resume", "parked", CONVERSATION)


@pytest.mark.parametrize("kept", [Kept.MISSING, Kept.EMPTY, Kept.UNABLE])
def test_a_conversation_of_which_nothing_is_left_is_not_resumed(kept: Kept) -> None:
    stage = park_it(conversing())

    asked = wake(stage, "resume", kept=kept)
    unset = wake(stage, kept=kept)
    come_up(stage, kept)

    assert (asked.mode, asked.cause) == (Mode.REFUSED, "nothing-to-resume")
    assert (unset.mode, unset.cause) == (Mode.FRESH, "nothing-to-resume")
    assert mode_of(stage) == ("fresh", "nothing-to-resume", "")


def test_a_transcript_that_goes_between_the_answer_and_the_launch_is_not_resumed_either() -> None:
    stage = park_it(conversing())

    wake(stage)
    come_up(stage, Kept.MISSING)

    assert mode_of(stage) == ("fresh", "nothing-to-resume", "")


def test_what_nobody_can_read_is_resumed_if_a_turn_of_it_was_seen() -> None:
    stage = park_it(conversing())

    assert wake(stage, kept=Kept.UNKNOWN).mode is Mode.RESUME


def test_what_policy_put_to_sleep_is_not_charged_and_says_who_did_it() -> None:
    stage = conversing(ALWAYS)
    stage.tell(make_observed("s1-1", stage.now, process="alive", runtime="alive", server="alive"))
    stage.now += 49 * 3600
    stage.tell(Sighted((Glimpse("s1-1", stage.now, cpu=0.0),), (), ReapPolicy(), "reaper"))
    stage.exit(signal=15)
    end(stage)

    assert stage.state() == "parked"
    assert stage.session().charges == 0
    assert stage.session().why == "put to sleep by reaper (idle: last work: hook event, 49 h ago); wakes in its conversation"


def resumed(policy: RestartPolicy = NEVER) -> Stage:
    stage = park_it(conversing(policy))
    wake(stage)
    come_up(stage)
    return stage


def test_a_resume_that_returns_nothing_is_quarantined_and_told_once() -> None:
    stage = resumed()

    stage.exit(exit_code=0)
    stage.tell(Closed(stage.launch().id, (), transcript=there()))
    end(stage)

    assert stage.session().quarantined == (CONVERSATION,)
    assert stage.log.count("session.quarantined") == 1
    assert [one.kind for one in stage.machine.incidents.values()] == [IncidentKind.TAINTED]
    assert wake(stage, "resume").cause == "quarantined"
    assert (wake(stage).mode, wake(stage).mode) == (Mode.FRESH, Mode.NOTHING)
    come_up(stage)
    assert mode_of(stage) == ("fresh", "quarantined", "")
    assert not stage.machine.incidents


@pytest.mark.parametrize(
    ("policy", "found", "cause", "quarantined"),
    [
        (NEVER, {"exit_code": 0}, "finished", True),
        (ALWAYS, {"exit_code": 0}, "early-exit", True),
        (NEVER, {"exit_code": 1}, "crash", True),
        (NEVER, {"signal": 9}, "killed-by-unknown", False),
        (NEVER, {"server_ended": True, "signal": 1}, "server-died", False),
    ],
)
def test_only_an_end_by_itself_speaks_against_a_conversation(
    policy: RestartPolicy, found: dict[str, int], cause: str, quarantined: bool
) -> None:
    stage = park_it(conversing(policy))
    stage.now += 60.0
    wake(stage)
    come_up(stage)

    stage.exit(**found)
    stage.tell(Closed(stage.launch().id, (), transcript=there()))

    assert stage.deaths[-1].cause == cause
    assert (stage.session().quarantined == (CONVERSATION,)) is quarantined


@pytest.mark.parametrize("reason", HoldReason)
def test_what_waits_for_its_turn_only_is_awake_for_whoever_would_wake_it(reason: HoldReason) -> None:
    session = make_session(State.PENDING, hold=Hold(reason, None))

    awake = reason in (HoldReason.PACE, HoldReason.MEMORY, HoldReason.KEEPER, HoldReason.SURVIVOR)
    assert life_of(session) is (Life.AWAKE if awake else Life.ASLEEP)


def test_a_resume_that_said_something_or_was_looked_at_is_not_quarantined() -> None:
    spoke, seen = resumed(), resumed()
    spoke.tell(Heard(spoke.launch().id, (Said(What.RESULT, usage=Usage(10, 7)),), "stream"))
    seen.tell(Observed(seen.launch().id, (), attached=1))

    for stage in (spoke, seen):
        stage.exit(exit_code=0)
        stage.tell(Closed(stage.launch().id, ()))

        assert stage.session().quarantined == ()


def test_a_reset_takes_a_quarantine_back() -> None:
    stage = resumed()
    stage.exit(exit_code=0)
    stage.tell(Closed(stage.launch().id, ()))

    stage.ask("reset")

    assert stage.session().quarantined == ()
    assert not stage.machine.incidents
    assert wake(stage, "resume").mode is Mode.RESUME


def test_the_second_stall_without_a_turn_in_between_quarantines() -> None:
    stage = conversing()
    book = stage.machine._book
    for _ in range(3):  # each launch had a turn
        assert strike(book, stage.session(), "stalled", stage.now).quarantined == ()
    session = book.keep(with_vitals(stage.session(), spent_before=stage.session().spent))

    assert strike(book, session, "stalled", stage.now).quarantined == (CONVERSATION,)
    assert quarantine(book, stage.session(), "again", stage.now) == stage.session()


AFTER_PROMPT = (Said(What.PROMPT, conversation=CONVERSATION),)
AFTER_TOOL = (*AFTER_PROMPT, Said(What.TOOL_STARTED, name="Bash", id="t1"), Said(What.TOOL_ENDED, id="t1"))
RETRYING = (*AFTER_PROMPT, Said(What.RETRIES))


def hang(stage: Stage, words: tuple[Said, ...] = AFTER_TOOL, read: Evidence | None = None) -> str:
    """It says this and then nothing more, until that is told; return what is found."""
    told = tuple(dataclasses.replace(word, at=stage.now) for word in words)
    stage.tell(Heard(stage.launch().id, told, "hook"))
    stage.now += 3600.0
    read = dataclasses.replace(read or evidence(), at=stage.now)
    stage.tell(TimerFired("s1", TimerKind.SILENCE), Diagnosed(stage.launch().id, read))
    stall = stage.session().vitals.stall
    assert stall is not None
    return stall.verdict


def test_a_stall_counts_for_its_conversation_also_if_a_person_ends_it() -> None:
    stage = conversing()
    assert hang(stage) == "wedged-after-tool"
    stage.ask("restart")
    stage.exit(signal=15)
    come_up(stage)
    assert mode_of(stage) == ("resume", "operator", CONVERSATION)

    assert hang(stage) == "resume-poisoned"

    assert stage.session().quarantined == (CONVERSATION,)
    assert {one.kind for one in stage.machine.incidents.values()} >= {IncidentKind.TAINTED}
    stage.ask("restart")
    stage.exit(signal=15)
    come_up(stage)
    assert mode_of(stage)[:2] == ("fresh", "quarantined")


def test_an_outage_that_it_tells_of_never_counts_against_its_conversation() -> None:
    stage = conversing()
    for _ in range(3):
        assert hang(stage, RETRYING) == "upstream-stall"
        stage.ask("restart")
        stage.exit(signal=15)
        come_up(stage)

        assert mode_of(stage) == ("resume", "operator", CONVERSATION)
        assert (stage.session().strikes, stage.session().quarantined) == (0, ())


def test_an_outage_is_no_second_stall() -> None:
    stage = conversing()
    assert hang(stage) == "wedged-after-tool"
    stage.ask("restart")
    stage.exit(signal=15)
    come_up(stage)

    assert hang(stage, RETRYING) == "upstream-stall"

    assert stage.session().quarantined == ()


@pytest.mark.parametrize(("words", "counts"), [(AFTER_TOOL, True), (AFTER_PROMPT, True), (RETRYING, False)])
def test_what_we_ended_for_a_stall_counts_unless_it_told_of_an_outage(words: tuple[Said, ...], counts: bool) -> None:
    stage = conversing(ALWAYS)
    stage.tell(WatchdogsSet(Watchdogs(Watchdog(stall_auto_kill=True))))
    for _ in range(2):
        hang(stage, words)
        while stage.session().state is State.RUNNING:
            stage.now += 3600.0
            look_again(stage)
        stage.exit(signal=15)
        end(stage)
        stage.now += 3600.0
        stage.tell(TimerFired("s1", TimerKind.HOLD))
        come_up(stage)

    assert (stage.session().quarantined == (CONVERSATION,)) is counts
    assert mode_of(stage)[0] == ("fresh" if counts else "resume")


def look_again(stage: Stage) -> None:
    read = dataclasses.replace(evidence(), at=stage.now)
    stage.tell(TimerFired("s1", TimerKind.SILENCE), Diagnosed(stage.launch().id, read))


def test_a_resume_that_ended_because_the_model_did_not_answer_is_not_quarantined() -> None:
    stage = resumed()
    stage.tell(Heard(stage.launch().id, (Said(What.RETRIES),), "stream"))

    stage.exit(exit_code=0)
    stage.tell(Closed(stage.launch().id, ()))

    assert stage.session().quarantined == ()


def two_sessions() -> Stage:
    """The first sleeps; the second lives, in the same conversation."""
    stage = park_it(conversing())
    stage.tell(Declared("s2", "beta", make_spec(), "alice"))
    stage.tell(make_launched("s2-1", stage.now))
    stage.tell(Heard("s2-1", TURN, "hook"))
    return stage


@pytest.mark.parametrize("mode", ["", "resume"])
def test_a_conversation_that_is_open_in_another_session_is_refused_and_its_owner_named(mode: str) -> None:
    stage = two_sessions()

    refused = wake(stage, mode)

    assert (refused.mode, refused.cause) == (Mode.REFUSED, "in-use")
    assert "is open in beta" in refused.why
    assert wake(stage, "fresh") == Wake(Mode.FRESH, "asked")


def test_a_conversation_is_free_again_when_its_other_session_has_died() -> None:
    stage = two_sessions()
    stage.tell(Exited(make_exit("s2-1", stage.now, exit_code=0)))

    assert wake(stage).mode is Mode.RESUME


def test_policy_never_makes_a_second_owner_either() -> None:
    stage = two_sessions()

    stage.ask("start")
    come_up(stage)

    assert mode_of(stage) == ("fresh", "in-use", "")


def test_a_parked_session_stays_parked_when_a_new_daemon_comes_also_after_a_boot() -> None:
    stage = park_it(conversing(ALWAYS))
    for booted in (False, True):
        again = Stage(stage.durable.values(), stage.now)
        again.tell(Resumed(booted))

        assert again.session().state is State.PARKED
        assert wake(again).mode is Mode.RESUME
