"""Gemini CLI: what its events say, how it is started, and how its terminal looks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import pytest

from tests.samples.golden import sample_files, samples
from vigil.agents.contract import Beginning, Place
from vigil.agents.gemini.adapter import ADAPTER, HOOK_EVENTS, SETTINGS, SETTINGS_FILE, begin
from vigil.core.model.progress import UNHEARD
from vigil.core.model.speech import Said, What
from vigil.core.rules.activity import activity_of, take_in

ID = "11111111-2222-4333-8444-555555555555"
HOOK = ("sh", "/a folder/hook.sh")
AT = "2026-11-16T12:00:00.000Z"
FILES = sample_files("gemini")


def whats(said: Iterable[Said]) -> list[What]:
    return [one.what for one in said]


def started(*command: str, env: dict[str, str] | None = None, **more: Any) -> Any:
    known: dict[str, Any] = {"folder": "/launch", "headless": False, "conversation": ID, "hook": HOOK}
    return begin(Beginning(command, Place("/work", env or {"HOME": "/root"}), **{**known, **more}))


# Reading


@pytest.mark.parametrize(
    ("message", "what", "after_s"),
    [
        ('[API Error: {"error":{"code":401,"message":"no key"}}]', What.AUTH, None),
        ('[API Error: {"error":{"code":403,"message":"no"}}]', What.AUTH, None),
        ('[API Error: {"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]', What.LIMIT, None),
        ("[API Error: You have exhausted your daily quota on this model.]", What.LIMIT, None),
        ("You have exhausted your capacity on this model. Your quota will reset after 4h30m5s.", What.LIMIT, 16205.0),
        ("You have exhausted your capacity on this model. Your quota will reset after 59s.", What.LIMIT, 59.0),
        ('[API Error: {"error":{"code":500,"message":"oops"}}]', None, None),
    ],
)
def test_a_result_that_failed_says_by_which_wall(message: str, what: What | None, after_s: float | None) -> None:
    said = list(ADAPTER.read_stream({"type": "result", "timestamp": AT, "status": "error", "error": {"message": message}}))

    assert whats(said) == ([What.RESULT] if what is None else [What.RESULT, what])
    assert said[0].failed
    until, at = said[-1].until, said[-1].at
    assert (until is None or at is None or until - at) == (True if after_s is None else after_s)


def test_a_permission_is_answered_when_its_tool_ends() -> None:
    doing = UNHEARD
    shown = []
    for payload in (
        {"hook_event_name": "BeforeAgent", "prompt": "do it"},
        {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command"},
        {"hook_event_name": "Notification", "notification_type": "ToolPermission", "details": {"type": "exec"}},
        {"hook_event_name": "AfterTool", "tool_name": "run_shell_command"},
        {"hook_event_name": "AfterAgent"},
    ):
        for said in ADAPTER.read_hook(payload):
            doing = take_in(doing, said, 0.0)
        shown.append(activity_of(doing)[0])

    assert shown == ["working", "tool", "waiting-human", "working", "idle"]


def test_a_message_that_comes_again_with_its_tools_is_counted_once() -> None:
    entries = [event for scenario, event in samples(FILES[-1]) if scenario == "tool"]

    spent = [said.usage for entry in entries for said in ADAPTER.read_entry(entry) if said.usage is not None]

    assert sum(usage.input_tokens for usage in spent) == 240  # two requests, of which one line is told twice


def test_a_cleared_conversation_is_not_the_end_of_the_agent() -> None:
    assert whats(ADAPTER.read_hook({"hook_event_name": "SessionEnd", "reason": "clear"})) == [What.TURN_ENDED]
    assert whats(ADAPTER.read_hook({"hook_event_name": "SessionEnd", "reason": "exit"})) == [What.ENDED]


def test_an_answer_in_words_ends_a_turn_and_a_tool_after_it_opens_it_again() -> None:
    answer = {"type": "gemini", "timestamp": "2026-11-17T03:00:00Z", "content": "Let me look.", "model": "m"}
    call = {"id": "1", "name": "read_file", "status": "success", "timestamp": "2026-11-17T03:00:01Z"}

    doing = UNHEARD
    seen = []
    for entry in (
        {"type": "user", "content": [{"text": "hi"}]},
        {**answer, "content": ""},
        answer,
        {**answer, "toolCalls": [call]},
    ):
        for said in ADAPTER.read_entry(entry):
            doing = take_in(doing, said, 0.0)
        seen.append(activity_of(doing)[0])

    assert seen == ["working", "working", "idle", "working"]


def test_chats_lie_where_the_environment_says() -> None:
    assert ADAPTER.transcripts(Place("/work", {"HOME": "/h", "GEMINI_CLI_HOME": "/g"}), ID) == (
        "/g/.gemini/tmp/*/chats/session-*-11111111.jsonl",
        f"/g/.gemini/tmp/*/chats/{ID}/*.jsonl",
    )


# Starting


@pytest.mark.parametrize(
    ("command", "resume", "expected"),
    [
        (["gemini"], False, ["gemini", "--session-id", ID]),
        (["gemini", "-p", "do it"], False, ["gemini", "--session-id", ID, "-p", "do it"]),
        (["/opt/gemini", "-y"], True, ["/opt/gemini", "--resume", ID, "-y"]),
        (["gemini", "--resume", "latest"], False, ["gemini", "--resume", "latest"]),
        (["gemini", "-r"], True, ["gemini", "-r"]),
        (["gemini", "--session-file=a.json"], False, ["gemini", "--session-file=a.json"]),
        (["gemini", "--", "--resume"], False, ["gemini", "--session-id", ID, "--", "--resume"]),
        (["gemini", "mcp", "list"], True, ["gemini", "mcp", "list"]),
    ],
)
def test_its_conversation_is_named_where_the_command_does_not(command: list[str], resume: bool, expected: list[str]) -> None:
    start = started(*command, resume=resume)

    assert list(start.command) == expected
    assert start.conversation == (ID if ID in expected else "")
    assert any("resume" in line for line in start.without) is (resume and ID not in expected)


def test_hooks_come_in_a_settings_file_of_the_launch() -> None:
    start = started("gemini")
    settings = json.loads(start.files[SETTINGS_FILE])

    assert start.env == {SETTINGS: f"/launch/{SETTINGS_FILE}"}
    assert set(settings["hooks"]) == set(HOOK_EVENTS)
    assert "AfterModel" not in settings["hooks"]  # it would run a process for each piece of an answer
    ((hook,),) = [group["hooks"] for group in settings["hooks"]["BeforeTool"]]
    assert hook == {"name": "vigil", "type": "command", "command": "sh '/a folder/hook.sh'"}


@pytest.mark.parametrize(
    ("env", "why"), [({"HOME": "/home/me"}, "files that root owns"), ({"HOME": "/root", SETTINGS: "/etc/x.json"}, SETTINGS)]
)
def test_hooks_that_would_not_run_are_left_out(env: dict[str, str], why: str) -> None:
    start = started("gemini", env=env)

    assert (dict(start.env), dict(start.files)) == ({}, {})
    assert why in " ".join(start.without)


def test_a_stream_that_is_not_asked_for_is_said_to_be_missing() -> None:
    missing = "stream: it is not asked for with --output-format stream-json"

    assert missing in started("gemini", "-p", "do it", headless=True).without
    assert missing not in started("gemini", "-o", "stream-json", "-p", "do it", headless=True).without


# The terminal


COMPOSER = " Shift+Tab to accept edits\n >   Type your message or @path/to/file\n workspace (/directory)    sandbox\n"
TRUST = " │ Do you trust the files in this folder?  │\n │ ● 1. Trust folder (work)  │\n │   3. Don't trust  │\n"
PERMISSION = "│ Allow execution of [Shell]?\n│ ● 1. Allow once\n│   3. No, suggest changes (esc)\n"


@pytest.mark.parametrize(("screen", "dialog"), [(COMPOSER, None), (TRUST, "trust"), (PERMISSION, "permission")])
def test_a_composer_is_told_from_dialogs(screen: str, dialog: str | None) -> None:
    assert next((one.name for one in ADAPTER.dialogs if all(sign in screen for sign in one.signs)), None) == dialog
    assert any(re.search(pattern, screen, re.MULTILINE) for pattern in ADAPTER.composer) is (dialog is None)
