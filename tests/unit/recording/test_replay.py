"""Replay: the same policy answers the same; another one is shown where it first answers otherwise; nothing is a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.builders import ALWAYS, Stage, make_exit, make_launch, make_launched, make_session
from vigil.core.effects import Effect, TimerKind
from vigil.core.events import Asked, Ended, Event, Exited, Resumed, TimerFired
from vigil.core.machine import HANDLERS, Machine
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.restart import RestartWhen
from vigil.core.rules.restart import COMES_BACK
from vigil.recording import BadRecording, Recording, Replay, ReplayStep, begin_line, end_line, entry_line, open_recording
from vigil.recording.differences import compare


class Scene:
    """A machine whose events are recorded into a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stage = Stage()
        self.lines = [begin_line("0.1.0", 1000.0, [], [])]
        ask = self.stage.machine.handle

        def handle(event: Event, now: float) -> list[Effect]:
            effects = ask(event, now)
            self.lines.append(entry_line(now, event, effects))
            return effects

        self.stage.machine.handle = handle  # type: ignore[method-assign]

    def crash_twice(self) -> None:
        self.stage.declare(ALWAYS)
        for number in (1, 2):
            self.stage.now += 1.0
            self.stage.tell(make_launched(f"s1-{number}", self.stage.now))
            self.stage.now += 1.0
            self.stage.tell(Exited(make_exit(f"s1-{number}", self.stage.now, exit_code=3)))
            self.stage.now += 100.0
            self.stage.tell(TimerFired("s1", TimerKind.HOLD), Ended(f"s1-{number}", ok=True))

    def recording(self, *more: str) -> Recording:
        self.path.write_text("\n".join([*self.lines, *more]) + "\n")
        return open_recording(self.path)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path / "it.jsonl")
    scene.crash_twice()
    return scene


def differing(recording: Recording) -> tuple[Replay, list[ReplayStep]]:
    replay = Replay(recording)
    return replay, [step for step in replay.steps() if step.differs]


def test_the_same_policy_answers_the_same(scene: Scene) -> None:
    recording = scene.recording(end_line("the daemon stopped"))

    replay, found = differing(recording)

    assert found == []
    assert (replay.events, replay.deaths, replay.names) == (9, 2, {"s1": "alpha"})
    assert (recording.ended, recording.torn) == ("the daemon stopped", False)


def test_another_policy_is_shown_where_it_first_answers_otherwise(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMES_BACK, RestartWhen.ALWAYS, frozenset(Cause) - {Cause.CRASH})

    replay, found = differing(scene.recording())

    assert (replay.first, found[0].number) == (3, 3)
    assert (found[0].session, found[0].what) == ("alpha", "its agent ended: exit 3 (seen by daemon)")
    state = found[0].differences[0]
    assert (state.of, state.id, state.field, state.then, state.now) == ("session", "s1", "state", "crashed", "failed")
    assert [step.number for step in found if step.cause] == [3]
    assert replay.differ == len(found) > 1


def test_a_core_that_fails_today_is_a_difference_and_the_replay_goes_on(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("s1")

    monkeypatch.setitem(HANDLERS, Exited, broken)

    replay, found = differing(scene.recording())

    assert (found[0].differences[0].then, found[0].differences[0].now) == ("answered", "raised KeyError: 's1'")
    assert replay.events == 9


def test_a_fault_that_was_recorded_and_still_is_one_is_the_same(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("s1")

    scene.lines.append(entry_line(2000.0, Resumed(), "KeyError: 's1'"))
    recording = scene.recording()
    assert differing(recording)[1][0].differences[0].then == "raised KeyError: 's1'"

    monkeypatch.setitem(HANDLERS, Resumed, broken)
    assert differing(recording)[1] == []


def test_an_event_that_today_does_not_know_is_said_and_the_rest_is_replayed(scene: Scene) -> None:
    scene.lines.insert(2, json.dumps({"now": 1000.0, "event": {"Vanished": {"colour": 1}}, "effects": []}))

    replay, found = differing(scene.recording())

    assert [(step.number, step.problem) for step in found] == [(2, "today's core does not know Vanished")]
    assert replay.events == 10


def test_a_field_that_today_does_not_know_is_said_and_is_no_difference(scene: Scene) -> None:
    scene.lines[1] = scene.lines[1].replace('"actor"', '"colour":"red","actor"', 1)

    steps = list(Replay(scene.recording()).steps())

    assert [step.unknown for step in steps if step.unknown] == [("Declared.colour",)]
    assert not any(step.differs for step in steps)


def test_a_field_that_came_after_the_recording_is_no_difference() -> None:
    then = [{"Persist": {"sessions": [{"id": "s1", "state": "running"}]}}]
    now = [{"Persist": {"sessions": [{"id": "s1", "state": "running", "mood": "good"}], "moods": []}}]

    assert compare(then, now) == []


def test_a_key_that_came_into_a_table_is_one() -> None:
    then: list[Any] = [{"Persist": {"log": [{"kind": "x", "data": {}}]}}]
    now: list[Any] = [{"Persist": {"log": [{"kind": "x", "data": {"why": "so"}}]}}]

    assert [(d.of, d.field, d.then, d.now) for d in compare(then, now)] == [("log", "data.why", None, "so")]


def test_effects_in_another_order_are_a_difference() -> None:
    first, second = {"Look": {"launch": {"id": "s1-1"}}}, {"Conclude": {"launch": {"id": "s1-1"}}}

    assert [d.of for d in compare([first, second], [second, first])] == ["order"]
    assert [(d.of, d.then) for d in compare([first, first], [first])] == [("Look", first["Look"])]


def test_a_torn_last_line_ends_the_replay_and_is_said(scene: Scene) -> None:
    scene.recording()
    scene.path.write_bytes(scene.path.read_bytes()[:-40])
    recording = open_recording(scene.path)

    replay, found = differing(recording)

    assert (found, replay.events, recording.torn, recording.ended) == ([], 8, True, None)


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"now": 1}', '{"now": "x", "event": {}, "effects": []}', "\x00"])
def test_a_line_in_the_middle_that_is_damaged_is_refused(scene: Scene, line: str) -> None:
    scene.lines.insert(4, line)

    with pytest.raises(BadRecording, match="line 5 is damaged"):
        differing(scene.recording())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("hello\n", "is no recording"),
        ("[1]\n", "is no recording"),
        ('{"a": 1}\n', "is no recording"),
        ('{"vigil-recording": 99, "version": "7.0"}\n', r"newer format \(99\).*recorded by vigil 7.0"),
        ('{"vigil-recording": 1}\n', "line 1 is damaged"),
        ('{"vigil-recording": 1, "at": 1, "sessions": [{}], "incidents": []}\n', r"sessions\[0\].id is needed"),
    ],
)
def test_what_is_no_recording_is_refused_with_the_reason(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "it"
    path.write_text(text)

    with pytest.raises(BadRecording, match=words) as refused:
        open_recording(path)
    assert refused.value.exit_code == 2


def test_a_replay_begins_with_what_the_machine_was_given(tmp_path: Path) -> None:
    session, event = make_session(launch=make_launch()), Asked(IntentVerb.STOP, "s1", "alice")
    effects = Machine([session]).handle(event, 2000.0)
    path = tmp_path / "it"
    path.write_text(f"{begin_line('0.1.0', 1.0, [session], [])}\n{entry_line(2000.0, event, effects)}\n")

    replay, found = differing(open_recording(path))

    assert (found, replay.names) == ([], {"s1": "alpha"})
