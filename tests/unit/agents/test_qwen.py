"""Qwen Code: what is different of it from Claude Code, how it is started, and where its transcripts lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples.golden import sample_files, samples
from vigil.agents.contract import Beginning, Place
from vigil.agents.qwen.adapter import DEFAULTS, HOOK_EVENTS, SETTINGS_FILE, SYSTEM, begin
from vigil.agents.qwen.hooks import read_hook
from vigil.agents.qwen.stream import read_stream
from vigil.agents.qwen.transcript import read_entry, transcripts
from vigil.core.model.speech import Said, What

FILES = sample_files("qwen")
EVENTS_SEEN = [event for path in FILES for _, event in samples(path)]
READERS = (read_hook, read_stream, read_entry)
ID = "11111111-2222-4333-8444-555555555555"
HOOK = ("sh", "/a folder/hook.sh")
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
json_values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


def whats(said: Any) -> list[What]:
    return [one.what for one in said]


@given(event=st.sampled_from(EVENTS_SEEN), changed=st.dictionaries(st.text(), json_values, max_size=3), data=st.data())
def test_readers_take_any_json(event: dict[str, Any], changed: dict[str, Any], data: st.DataObject) -> None:
    replaced = {key: data.draw(json_values) for key in data.draw(st.sets(st.sampled_from(sorted(event)), max_size=3))}

    for read in READERS:
        assert all(isinstance(one, Said) for one in (*read({**event, **replaced}), *read(changed)))


@pytest.mark.parametrize(
    ("result", "what"),
    [
        ("[API Error: 401 invalid key]", What.AUTH),
        ("half an answer[API Error: 429 slow down]\n", What.LIMIT),
        ("[API Error: terminated]", None),
    ],
)
def test_an_answer_that_ends_with_an_error_failed(result: str, what: What | None) -> None:
    said = list(read_stream({"type": "result", "is_error": False, "result": result}))

    assert said[0].failed
    assert whats(said) == [What.RESULT, what] if what else [What.RESULT]


@pytest.mark.parametrize("result", ["I looked at the 401 of your API.", "It prints [API Error: 401] and goes on."])
def test_an_answer_about_errors_did_not_fail(result: str) -> None:
    (said,) = read_stream({"type": "result", "is_error": False, "result": result})

    assert (said.failed, said.text) == (False, "")


def test_a_prompt_without_words_is_nobody_s() -> None:
    assert whats(read_hook({"hook_event_name": "UserPromptSubmit", "prompt": "do it"})) == [What.PROMPT]
    assert whats(read_hook({"hook_event_name": "UserPromptSubmit", "prompt": ""})) == [What.TURN_STARTED]


def test_a_message_that_calls_no_tool_ends_the_turn() -> None:
    message = {"type": "assistant", "message": {"parts": [{"text": "done"}]}, "usageMetadata": {"promptTokenCount": 7}}
    (said,) = read_entry(message)

    assert said.what is What.TURN_ENDED
    assert said.usage is not None
    assert said.usage.input_tokens == 7


def test_what_its_stream_hides_its_transcript_tells() -> None:
    told = {"event.name": "qwen-code.api_error", "status_code": 503}
    (said,) = read_entry({"type": "system", "subtype": "ui_telemetry", "systemPayload": {"uiEvent": told}})

    assert (said.what, said.text) == (What.RETRIES, "status 503")


@pytest.mark.parametrize(
    ("env", "home"),
    [
        ({"HOME": "/h"}, "/h/.qwen"),
        ({"HOME": "/h", "QWEN_HOME": "/q"}, "/q"),
        ({"HOME": "/h", "QWEN_HOME": "/q", "QWEN_RUNTIME_DIR": "~/r"}, "/h/r"),
    ],
)
def test_transcripts_lie_where_its_environment_says(env: dict[str, str], home: str) -> None:
    own, subagents = transcripts(Place("/w/a.b c", env), ID)

    assert own == f"{home}/projects/-w-a-b-c/chats/{ID}.jsonl"
    assert subagents == f"{home}/projects/-w-a-b-c/subagents/{ID}/agent-*.jsonl"


def start(*command: str, env: dict[str, str] | None = None, **more: Any) -> Beginning:
    place = Place(more.pop("cwd", "/w"), {"HOME": "/h", **(env or {})})
    return Beginning(command, place, "/launch", more.pop("headless", False), ID, more.pop("resume", False), HOOK)


CHOSEN = ("--session-id", ID)
PARTS = "--include-partial-messages"


@pytest.mark.parametrize(
    ("beginning", "command", "without"),
    [
        (start("qwen"), ("qwen", *CHOSEN), []),
        (start("/opt/qwen", resume=True), ("/opt/qwen", "--resume", ID), []),
        (start("qwen", "-c", resume=True), ("qwen", "-c"), ["resume"]),
        (start("qwen", "go", headless=True), ("qwen", *CHOSEN, "-o", "stream-json", PARTS, "go"), []),
        (
            start("qwen", "-p", "go", "-o", "stream-json", headless=True),
            ("qwen", *CHOSEN, PARTS, "-p", "go", "-o", "stream-json"),
            [],
        ),
        (start("qwen", "-o", "text", headless=True), ("qwen", *CHOSEN, "-o", "text"), []),
        (start("qwen", "--bare"), ("qwen", *CHOSEN, "--bare"), ["hooks"]),
        (start("npx", "qwen"), ("npx", "qwen"), ["flags, hooks, resume"]),
        (start("qwen", "mcp"), ("qwen", "mcp"), ["flags, hooks, resume"]),
    ],
    ids=lambda value: " ".join(value.command[:4]) if isinstance(value, Beginning) else "",
)
def test_only_what_the_user_has_not_given_is_added(beginning: Beginning, command: tuple[str, ...], without: list[str]) -> None:
    made = begin(beginning)

    assert made.command == command
    assert [line.partition(":")[0] for line in made.without] == without


def test_hooks_come_in_a_file_of_defaults() -> None:
    made = begin(start("qwen"))
    hooks = json.loads(made.files[SETTINGS_FILE])["hooks"]

    assert made.env == {DEFAULTS: f"/launch/{SETTINGS_FILE}"}
    assert sorted(hooks) == sorted(HOOK_EVENTS.split())
    assert hooks["Stop"][0]["hooks"][0]["command"] == "sh '/a folder/hook.sh'"


def test_defaults_that_are_there_already_stay(tmp_path: Path) -> None:
    (tmp_path / "system-defaults.json").write_text("{}")
    for env in ({DEFAULTS: str(tmp_path / "system-defaults.json")}, {SYSTEM: str(tmp_path / "settings.json")}):
        made = begin(start("qwen", env=env))

        assert (made.env, made.files) == ({}, {})
        assert made.without[0].startswith("hooks: this machine has defaults")


def test_where_user_and_project_both_have_settings_hooks_are_unsure(tmp_path: Path) -> None:
    (tmp_path / ".qwen").mkdir()
    (tmp_path / ".qwen" / "settings.json").write_text("{}")

    made = begin(start("qwen", cwd=str(tmp_path), env={"HOME": str(tmp_path)}))

    assert made.files
    assert made.without == ("hooks: qwen runs them unless both the user's and the project's settings have some",)
