"""A copy-editor changes every sentence, and no decision changes: words are for people."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

import vigil
from tests.replay.record import FOLDER
from tests.sim import daemon
from tests.sim.copy_editor import TwinMachine, edited, reword, wordless
from tests.sim.run import live_through
from tests.sim.scenarios import SCENARIOS, draw_plan
from tests.unit.builders import ALWAYS, make_exit, make_launched, make_observed
from vigil.core.events import Asked, Declared, Ended, Exited, Notified, Sighted
from vigil.core.handlers import conversation
from vigil.core.model.conversation import Kept, Transcript, Wake
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.launch import Mode
from vigil.core.model.session import Session, Spec
from vigil.core.model.sighting import Glimpse, Guard, ReapPolicy
from vigil.core.model.upgrade import upgraded_notice
from vigil.core.rules.wake import PARKED
from vigil.recording import open_recording
from vigil.recording.lines import EVENTS, read_tagged

STEPS = 4000
RECORDINGS = sorted(FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_bad_day_goes_the_same_whatever_the_words_are(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "Machine", TwinMachine)

    outcome = live_through(draw_plan(0, scenario), STEPS)

    assert not outcome.broken, outcome.words


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_what_real_daemons_met_is_answered_the_same_whatever_the_words_are(path: Path) -> None:
    recording = open_recording(path)
    machine = TwinMachine(recording.sessions, recording.incidents, recording.roles)

    for entry in recording.entries():
        event = read_tagged(EVENTS, entry.event, [])
        if isinstance(event, Notified):
            event = Notified(event.incident_id, upgraded_notice(event.notice))
        machine.handle(event, entry.now)


def put_to_sleep_and_woken() -> None:
    """Live through what the word `idle` once decided: an agent sleeps, and is woken."""
    machine = TwinMachine()
    machine.handle(Declared("s1", "alpha", Spec(("sleep", "60"), "/", restart=ALWAYS), "alice"), 1000.0)
    machine.handle(replace(make_launched("s1-1", 1001.0), conversation="c1"), 1001.0)
    machine.handle(make_observed("s1-1", 1002.0), 1002.0)
    glimpse = Glimpse("s1-1", 2000.0, guard=Guard("$0", 1999, "/"), cpu=0.0)
    machine.handle(Sighted((glimpse,), (), ReapPolicy(100.0, 10.0), "reaper"), 2000.0)
    machine.handle(Exited(make_exit("s1-1", 2001.0, signal=1)), 2001.0)
    machine.handle(Ended("s1-1", ok=True, transcript=Transcript("c1", Kept.THERE, 2002.0)), 2002.0)
    assert machine.sessions["s1"].state == "parked"
    machine.handle(Asked(IntentVerb.WAKE, "s1", "alice"), 2003.0)
    assert machine.sessions["s1"].waking == Wake(Mode.RESUME, PARKED)


def test_who_sleeps_wakes_the_same_whatever_the_words_are() -> None:
    put_to_sleep_and_woken()


def test_the_copy_editor_finds_a_decision_that_reads_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended_of(session: Session) -> str:  # as it was once
        death = session.last_death
        slept = death is not None and death.intent is not None and death.intent.reason.startswith("idle: ")
        return PARKED if slept else Cause.POLICY

    monkeypatch.setattr(conversation, "ended_of", ended_of)

    with pytest.raises(AssertionError, match="words decided"):
        put_to_sleep_and_woken()


def test_every_word_is_another_one_and_nothing_else() -> None:
    observed = make_observed("s1-1", 1002.0)
    exited = Exited(make_exit("s1-1"))

    assert (edited(observed), edited(exited)) == (observed, exited), "there are no words in these"
    ended = edited(Ended("s1-1", ok=False, why="it lives on"))
    assert (ended.launch_id, ended.ok, ended.why) == ("s1-1", False, reword("it lives on"))
    assert edited(ended) == ended
    assert wordless(ended) == wordless(Ended("s1-1", ok=False, why="it lives on")) != wordless(Ended("s1-1", ok=False))


SENTENCES = frozenset({"why", "reason", "resolution"})
TAKES_APART = frozenset({"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "find"})
SOURCE = Path(vigil.__file__).parent
LOADER = SOURCE / "core/model/upgrade.py"  # what an earlier version wrote is taken apart here, once


def taken_apart(path: Path) -> list[str]:
    """Return where a module takes a sentence apart, or looks for something in it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TAKES_APART:
            found += [node.func.value] if _is_sentence(node.func.value) else []
        elif isinstance(node, ast.Compare) and any(isinstance(one, ast.In | ast.NotIn) for one in node.ops):
            found += [one for one in node.comparators if _is_sentence(one)]
    return [f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}" for node in found]


def _is_sentence(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in SENTENCES


def test_no_module_takes_a_sentence_apart() -> None:
    assert [line for path in SOURCE.rglob("*.py") if path != LOADER for line in taken_apart(path)] == []
    assert taken_apart(LOADER) != [], "it looks where it should"
