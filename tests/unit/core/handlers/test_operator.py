"""What operators want of a session, verb by verb and situation by situation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.builders import (
    SITUATIONS,
    being_removed,
    kinds,
    make_process,
    only_spawn,
    running,
    saturated,
    situations,
    stopped,
)
from vigil.core.book import GRACE_S
from vigil.core.effects import EndLaunch, Persist, Purge
from vigil.core.events import Asked, Ended
from vigil.core.handlers.intent import INTENT_LASTS_S
from vigil.core.handlers.operator import VERBS
from vigil.core.machine import Machine
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.restart import After, Hold, HoldReason
from vigil.core.model.session import ALIVE, State

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


def test_the_table_of_verbs_knows_every_verb_and_every_situation() -> None:
    assert set(VERBS) == set(ORDER)
    assert set(VERB_TABLE) == set(SITUATIONS)


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
    assert stage.session().vitals.intent == intent
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
    assert Machine().handle(Asked(IntentVerb.STOP, "nobody", "alice"), 1000.0) == []


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
    assert (spawn.session.charges, spawn.session.last_death, spawn.session.vitals.intent) == (0, None, None)


def test_nothing_of_a_dead_session_is_purged_before_its_survivors_are_verified_gone() -> None:
    stage = stopped()

    assert kinds(stage.ask("rm")) == ["EndLaunch"]
    assert kinds(stage.end(ok=False)) == []
    assert stage.state() == "stuck"
    assert kinds(stage.ask("rm")) == ["EndLaunch"]
    assert kinds(stage.end()) == ["Purge"]


@pytest.mark.parametrize("reason", HoldReason)
def test_a_reset_ends_every_wait_but_those_for_room_and_for_what_is_left(reason: HoldReason) -> None:
    stage = running()
    stage.machine.sessions["s1"] = replace(stage.session(), state=State.PENDING, hold=Hold(reason, None))

    asked = stage.ask("reset")

    stays = reason in (HoldReason.PACE, HoldReason.MEMORY, HoldReason.KEEPER, HoldReason.SURVIVOR)
    assert kinds(asked) == ([] if stays else ["EndLaunch"])
