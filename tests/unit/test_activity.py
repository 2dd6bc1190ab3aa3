"""An agent's own events say what it is doing, and nothing they hold can hurt (DESIGN 4.1)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.core.activity import BY_DETAIL, DETAILS, HOOKS, NAMES, WHY_CHARS, Activity, read_payload

# DESIGN 4.1, row "activity", word for word.
VALUES = ["starting", "working", "thinking", "tool", "waiting-human", "waiting-timer", "throttled", "idle", "unknown"]

# What each agent said while it did one thing after the other, and what it was doing then ("" is only a sign of life).
CLAUDE_TURN = [
    ({"hook_event_name": "SessionStart", "source": "startup"}, "idle"),
    ({"hook_event_name": "UserPromptSubmit", "prompt": "do the thing"}, "working"),
    ({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}, "tool"),
    ({"hook_event_name": "PermissionRequest", "tool_name": "Bash"}, "waiting-human"),
    ({"hook_event_name": "Notification", "notification_type": "permission_prompt"}, "waiting-human"),
    ({"hook_event_name": "PostToolUse", "tool_name": "Bash", "duration_ms": 12}, "working"),
    ({"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "error": "exit 3"}, "working"),
    ({"hook_event_name": "PostToolBatch", "tool_calls": []}, "working"),
    ({"hook_event_name": "Stop", "stop_hook_active": False}, "idle"),
    ({"hook_event_name": "MessageDisplay", "final": True}, ""),
    ({"hook_event_name": "Notification", "notification_type": "idle_prompt"}, "idle"),
    ({"hook_event_name": "SessionEnd", "reason": "other"}, "idle"),
]
CLAUDE_REST = [
    ({"hook_event_name": "Setup"}, "starting"),
    ({"hook_event_name": "StopFailure", "error": "rate_limit"}, "idle"),
    ({"hook_event_name": "StopFailure", "error": "unknown", "agent_id": "a1"}, ""),
    ({"hook_event_name": "PreCompact", "trigger": "auto"}, "working"),
    ({"hook_event_name": "PostCompact", "trigger": "auto"}, "working"),
    ({"hook_event_name": "SessionStart", "source": "compact"}, ""),
    ({"hook_event_name": "PostCompact", "trigger": "manual"}, "idle"),
    ({"hook_event_name": "Notification", "notification_type": "agent_needs_input"}, "waiting-human"),
    ({"hook_event_name": "Notification", "notification_type": "elicitation_dialog"}, "waiting-human"),
    ({"hook_event_name": "Notification", "notification_type": "agent_completed"}, "idle"),
    ({"hook_event_name": "Notification", "notification_type": "auth_success"}, ""),
    ({"hook_event_name": "Notification", "message": "of an old version"}, ""),
    ({"hook_event_name": "PreToolUse", "tool_name": "AskUserQuestion"}, "waiting-human"),
    ({"hook_event_name": "CwdChanged"}, ""),
]
CODEX = [
    ({"hook_event_name": "PermissionRequest", "turn_id": "t", "model": "m", "tool_name": "Bash"}, "waiting-human"),
    ({"type": "agent-turn-complete", "thread-id": "t"}, "idle"),
]
GEMINI = [
    ({"hook_event_name": "BeforeAgent", "prompt": "do it"}, "working"),
    ({"hook_event_name": "PreCompress", "trigger": "auto"}, "working"),
    ({"hook_event_name": "BeforeModel", "llm_request": {}}, "thinking"),
    ({"hook_event_name": "BeforeToolSelection"}, "thinking"),
    ({"hook_event_name": "AfterModel"}, "thinking"),
    ({"hook_event_name": "BeforeTool", "tool_name": "run_shell_command"}, "tool"),
    ({"hook_event_name": "Notification", "notification_type": "ToolPermission"}, "waiting-human"),
    ({"hook_event_name": "AfterTool", "tool_name": "run_shell_command"}, "working"),
    ({"hook_event_name": "AfterAgent"}, "idle"),
]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([*HOOKS, *Activity])
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
KEYS = st.sampled_from([*NAMES, *sorted(set(DETAILS.values())), "activity", "agent_id"]) | st.text()


def test_the_activities_are_the_designs() -> None:
    assert list(Activity) == VALUES


def test_every_row_of_the_tables_names_an_activity_or_none() -> None:
    assert {*HOOKS.values(), *BY_DETAIL.values()} <= {*Activity, ""}
    assert set(DETAILS) <= set(HOOKS)
    assert {name for name, _ in BY_DETAIL} <= set(DETAILS)


@pytest.mark.parametrize(("payload", "activity"), [*CLAUDE_TURN, *CLAUDE_REST, *CODEX, *GEMINI])
def test_what_an_agent_reports_names_what_it_is_doing(payload: dict[str, Any], activity: str) -> None:
    assert read_payload(payload)[1] == activity


@pytest.mark.parametrize("activity", VALUES)
def test_a_plain_payload_names_its_activity_itself(activity: str) -> None:
    assert read_payload({"activity": activity}) == ("", activity, activity)
    assert read_payload({"type": "Stop", "activity": activity}) == ("Stop", activity, "Stop")


def test_an_activity_that_does_not_exist_names_none() -> None:
    assert read_payload({"activity": "dancing"}) == ("", "", "")
    assert read_payload({"activity": "dancing", "type": "Stop"}) == ("Stop", "idle", "Stop")


def test_an_unknown_event_is_a_sign_of_life_and_no_more() -> None:
    assert read_payload({"hook_event_name": "Invented"}) == ("Invented", "", "Invented")
    assert read_payload({}) == ("", "", "")


@pytest.mark.parametrize("key", ["hook_event_name", "type", "event", "kind"])
def test_an_events_name_may_stand_in_several_places(key: str) -> None:
    assert read_payload({key: "Stop"}) == ("Stop", "idle", "Stop")


def test_the_agents_own_key_comes_before_the_others_and_only_text_counts() -> None:
    assert read_payload({"kind": "Stop", "event": {}, "type": 7, "hook_event_name": "PreCompact"})[0] == "PreCompact"
    assert read_payload({"hook_event_name": ["Stop"], "type": None, "event": "", "kind": "Stop"})[0] == "Stop"


@pytest.mark.parametrize("name", sorted(HOOKS))
def test_whatever_a_sub_agent_does_its_parent_does_what_it_did_before(name: str) -> None:
    assert read_payload({"hook_event_name": name, "agent_id": "aad6f92b2036d7110", "agent_type": "general-purpose"})[1] == ""


def test_a_sub_agent_that_comes_or_goes_changes_nothing_even_without_an_id() -> None:
    assert read_payload({"hook_event_name": "SubagentStart"})[1] == ""
    assert read_payload({"hook_event_name": "SubagentStop"})[1] == ""


def test_the_words_for_people_name_the_event_and_its_detail() -> None:
    tool = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "echo $SECRET"}}

    assert read_payload(tool)[2] == "PreToolUse Bash"
    assert read_payload({"hook_event_name": "StopFailure", "error": "rate_limit"})[2] == "StopFailure rate_limit"
    assert read_payload({"hook_event_name": "UserPromptSubmit", "prompt": "my secret"})[2] == "UserPromptSubmit"


def test_the_words_for_people_hold_nothing_a_terminal_or_an_encoding_stumbles_over() -> None:
    tool = "\x1b[31mred\x07\n\u202e\u2028\ud800 " + "x" * 500

    name, _, why = read_payload({"hook_event_name": "PreToolUse", "tool_name": tool})

    assert name == "PreToolUse"
    assert why.startswith("PreToolUse [31mred xxx")
    assert len(why) <= WHY_CHARS


@given(st.dictionaries(KEYS, JSON))
def test_whatever_a_payload_holds_it_is_read(payload: dict[str, Any]) -> None:
    name, activity, why = read_payload(payload)

    assert activity in {*Activity, ""}
    for text in (name, why):
        assert len(text) <= WHY_CHARS
        assert text.isprintable()
        assert text.encode().decode() == text
