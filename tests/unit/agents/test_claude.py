"""Claude Code: what its events say, how it is started, and where its transcripts lie."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.samples.golden import sample_files, samples
from vigil.agents.claude.adapter import ADAPTER, HOOK_EVENTS, SETTINGS_FILE, begin, transcripts
from vigil.agents.claude.hooks import EVENTS, read_hook
from vigil.agents.claude.stream import read_stream
from vigil.agents.claude.transcript import read_entry
from vigil.agents.contract import Beginning, Place
from vigil.agents.walls import resets_at
from vigil.core.model.progress import Doing
from vigil.core.model.speech import Said, What
from vigil.core.rules.activity import take_in

FILES = sample_files("claude")
EVENTS_SEEN = [event for path in FILES for _, event in samples(path)]
READERS = (read_hook, read_stream, read_entry)
AT = datetime.fromisoformat("2026-11-16T12:00:00+00:00").timestamp()
ID = "11111111-2222-4333-8444-555555555555"
OTHER_ID = "99999999-2222-4333-8444-555555555555"
HOOK = ("sh", "/a folder/hook.sh")
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
json_values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


def whats(said: Any) -> list[What]:
    return [one.what for one in said]


# Samples


@given(event=st.dictionaries(st.text(), json_values, max_size=5))
def test_readers_take_any_json(event: dict[str, Any]) -> None:
    for read in READERS:
        assert all(isinstance(one, Said) for one in read(event))


@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_readers_take_samples_in_which_anything_was_replaced(data: st.DataObject) -> None:
    event = json.loads(json.dumps(data.draw(st.sampled_from(EVENTS_SEEN))))
    table = event
    for _ in range(data.draw(st.integers(0, 3))):
        inner = [value for value in table.values() if isinstance(value, dict) and value]
        table = data.draw(st.sampled_from(inner)) if inner else table
    table[data.draw(st.sampled_from(sorted(table)))] = data.draw(json_values)

    for read in READERS:
        for one in read(event):
            json.dumps([one.name, one.id, one.text, one.conversation, one.subagent]).encode()
            "".join([one.name, one.id, one.text, one.conversation, one.subagent]).encode("utf-8")
            assert max(map(len, (one.name, one.id, one.text, one.conversation, one.subagent))) <= 300


def test_the_clock_of_a_tool_only_ticks_and_is_no_sub_agents_word() -> None:
    beat = {"type": "tool_progress", "tool_use_id": "t1-heartbeat-0", "tool_name": "Bash", "parent_tool_use_id": "t1"}

    assert list(read_stream(beat | {"elapsed_time_seconds": 30, "heartbeat": True})) == [Said(What.TICKS, name="Bash")]
    assert whats(read_stream({"type": "keep_alive"})) == [What.TICKS]


def test_an_event_of_the_future_is_unknown_and_has_its_name() -> None:
    assert list(read_stream({"type": "dream"})) == [Said(What.UNKNOWN, name="dream")]
    assert list(read_stream({"type": "system", "subtype": "dream"})) == [Said(What.UNKNOWN, name="system/dream")]
    assert list(read_hook({"hook_event_name": "Dream"})) == [Said(What.UNKNOWN, name="Dream")]
    assert list(read_entry({"type": "dream"})) == [Said(What.UNKNOWN, name="dream")]
    assert whats(read_hook({"hook_event_name": "Notification", "notification_type": "dream"})) == [What.UNKNOWN]


# Stream


def result(**more: Any) -> dict[str, Any]:
    return {"subtype": "success", "session_id": ID, "num_turns": 1, **more, "type": "result"}


def test_an_answer_is_never_told() -> None:
    (said,) = read_stream(result(is_error=False, result="usage limit reached|1794900000"))

    assert (said.what, said.text, said.failed) == (What.RESULT, "", False)


def test_a_limit_that_names_its_end_is_waited_for() -> None:
    said = list(read_stream(result(is_error=True, result="Claude AI usage limit reached|1794900000")))

    assert whats(said) == [What.RESULT, What.LIMIT]
    assert said[1].until == 1794900000.0


def test_a_rejected_request_is_a_limit_unless_the_account_pays_for_more() -> None:
    info = {"status": "rejected", "resetsAt": 1794900000, "rateLimitType": "five_hour"}
    (said,) = read_stream({"type": "rate_limit_event", "rate_limit_info": info})

    assert (said.what, said.until, said.name) == (What.LIMIT, 1794900000.0, "five_hour")
    assert whats(read_stream({"type": "rate_limit_event", "rate_limit_info": {**info, "isUsingOverage": True}})) == [What.ALIVE]
    assert whats(read_stream({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning"}})) == [What.ALIVE]


@pytest.mark.parametrize(
    ("words", "moment"),
    [
        ("You've hit your session limit · resets 3pm (UTC)", "2026-11-16T15:00:00+00:00"),
        ("You've hit your session limit · resets 11:30am (UTC)", "2026-11-17T11:30:00+00:00"),
        ("You've hit your limit · resets 1am (Asia/Tokyo)", "2026-11-17T01:00:00+09:00"),
        ("You've hit your weekly limit · resets Nov 20, 9am (Europe/Berlin)", "2026-11-20T09:00:00+01:00"),
        ("You've hit your weekly limit · resets Jan 2, 12am (UTC)", "2027-01-02T00:00:00+00:00"),
        ("You've hit your weekly limit · resets Jan 2, 2028, 12:05pm (UTC)", "2028-01-02T12:05:00+00:00"),
        ("You've hit your limit · resets 3pm (No/Where)", None),
        ("You've hit your limit · resets Feb 30, 3pm (UTC)", None),
        ("You've hit your limit · resets soon", None),
    ],
)
def test_the_words_of_a_limit_say_when_it_ends(words: str, moment: str | None) -> None:
    assert resets_at(words, AT) == (datetime.fromisoformat(moment).timestamp() if moment else None)


def test_a_retry_says_when_it_tries_again() -> None:
    retry = {"type": "system", "subtype": "api_retry", "attempt": 3, "max_retries": 10, "retry_delay_ms": 38000}
    (said,) = read_stream({**retry, "error_status": 529, "error": "overloaded"})

    assert (said.what, said.name, said.text) == (What.RETRIES, "overloaded", "status 529, attempt 3 of 10")
    assert said.until is not None
    assert abs(said.until - time.time() - 38) < 5


def test_usage_is_of_the_piece_where_that_is_told_and_else_so_far() -> None:
    model = {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 100, "costUSD": 0.5}
    (piece,) = read_stream(result(model_usage_since_last_result={"a": model, "b": model}, total_cost_usd=9.0))
    (whole,) = read_stream(result(modelUsage={"a": model}, total_cost_usd=9.0))

    assert piece.usage is not None
    assert whole.usage is not None
    assert (piece.usage.input_tokens, piece.usage.cached_tokens, piece.usage.cost_usd, piece.usage.so_far) == (
        220,
        200,
        1.0,
        False,
    )
    assert (whole.usage.output_tokens, whole.usage.cost_usd, whole.usage.so_far) == (5, 9.0, True)


def test_a_question_about_a_tool_has_the_id_that_ends_the_tool() -> None:
    ask = {"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t1"}
    tool = {"type": "tool_result", "tool_use_id": "t1", "is_error": False}
    (asked,) = read_stream({"type": "control_request", "request_id": "r1", "request": ask})
    (ended,) = read_stream({"type": "user", "message": {"content": [tool]}})

    assert (asked.what, ended.what) == (What.ASKED, What.TOOL_ENDED)
    assert asked.id == ended.id == "t1"


@pytest.mark.parametrize(("kind", "what"), [("assistant", What.SPEAKS), ("user", What.ALIVE), ("stream_event", What.SPEAKS)])
def test_the_words_of_a_subagent_are_marked(kind: str, what: What) -> None:
    content = [{"type": "text", "text": "hello"}]
    (said,) = read_stream({"type": kind, "message": {"content": content}, "parent_tool_use_id": "toolu_9"})

    assert (said.what, said.subagent) == (what, "toolu_9")


def test_tools_that_only_ask_are_questions() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "AskUserQuestion"}

    assert whats(read_stream({"type": "assistant", "message": {"content": [call]}})) == [What.TOOL_STARTED, What.ASKED]


# Hooks


@pytest.mark.parametrize(
    ("tool", "given", "seconds"),
    [
        ("Monitor", {"timeout_ms": 1_800_000}, 1800.0),
        ("ScheduleWakeup", {"delaySeconds": 1200}, 1200.0),
        ("TaskOutput", {"task_id": "b1", "timeout": 600_000}, 600.0),
        ("Monitor", {}, None),
        ("Monitor", {"timeout_ms": "soon"}, None),
        ("Bash", {"timeout_ms": 5000}, None),
    ],
)
def test_a_tool_whose_work_is_to_wait_says_until_when(tool: str, given: dict[str, Any], seconds: float | None) -> None:
    at = "2026-07-01T12:00:00Z"
    block = {"type": "tool_use", "id": "t1", "name": tool, "input": given}
    hooked = hook("PreToolUse", tool_name=tool, tool_use_id="t1", tool_input=given, timestamp=at)
    streamed = read_stream({"type": "assistant", "timestamp": at, "message": {"content": [block]}})

    for (said,) in (hooked, list(streamed)):
        assert said.what is What.TOOL_STARTED and said.at is not None
        assert said.until == (None if seconds is None else said.at + seconds)


def test_a_question_that_is_taken_back_is_over() -> None:
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t1"}
    asked = read_stream({"type": "control_request", "request_id": "r1", "request": request})
    cancelled = read_stream({"type": "control_cancel_request", "request_id": "r1"})
    doing = Doing()
    for said in asked:
        doing = take_in(doing, said, 1.0)
    assert doing.asked
    for said in cancelled:
        doing = take_in(doing, said, 2.0)

    assert doing.asked == ()


def hook(name: str, **more: Any) -> list[Said]:
    return list(read_hook({"hook_event_name": name, "session_id": ID, **more}))


def test_all_events_of_the_newest_version_are_known() -> None:
    assert len(EVENTS) == 33


@pytest.mark.parametrize("ending", ["PostToolUse", "PostToolUseFailure", "PermissionDenied"])
def test_what_ends_a_tool_call_answers_the_question_about_it(ending: str) -> None:
    call = {"tool_name": "Bash", "tool_input": {"command": "make", "description": "d"}}
    (asked,) = hook("PermissionRequest", **call)
    answered, ended = hook(ending, **call, tool_use_id="t1")

    assert (asked.what, answered.what, ended.what) == (What.ASKED, What.ANSWERED, What.TOOL_ENDED)
    assert asked.id == answered.id
    assert ended.id == "t1"


def test_a_permission_of_which_no_tool_is_named_is_shown_in_words_and_not_by_its_id() -> None:
    (asked,) = hook("PermissionRequest")

    assert (asked.what, asked.name) == (What.ASKED, "a permission")


def test_a_batch_of_calls_that_is_over_ends_each_of_them() -> None:
    call = {"tool_name": "Bash", "tool_input": {"command": "make"}}
    (asked,) = hook("PermissionRequest", **call)
    answered, ended = hook("PostToolBatch", tool_calls=[{**call, "tool_use_id": "t1"}])

    assert (answered.what, answered.id) == (What.ANSWERED, asked.id)
    assert (ended.what, ended.id, ended.conversation) == (What.TOOL_ENDED, "t1", ID)


def test_a_session_that_is_cleared_has_another_conversation() -> None:
    (ended,) = hook("SessionEnd", reason="clear")
    (started,) = read_hook({"hook_event_name": "SessionStart", "source": "clear", "session_id": OTHER_ID})

    assert (ended.what, started.what, started.conversation) == (What.TURN_ENDED, What.STARTED, OTHER_ID)


@pytest.mark.parametrize(
    ("error", "what"),
    [
        ("rate_limit", What.LIMIT),
        ("authentication_failed", What.AUTH),
        ("oauth_org_not_allowed", What.AUTH),
        ("account_on_hold", What.AUTH),
        ("billing_error", What.AUTH),
        ("overloaded", What.ERROR),
        ("unknown", What.ERROR),
        ("dream", What.ERROR),
    ],
)
def test_a_turn_that_failed_says_by_which_wall(error: str, what: What) -> None:
    assert whats(hook("StopFailure", error=error)) == [What.TURN_ENDED, what]


def test_a_subagent_that_failed_is_marked_in_all_it_says() -> None:
    assert {said.subagent for said in hook("StopFailure", error="rate_limit", agent_id="a1")} == {"a1"}


def test_prompts_that_nobody_gave_only_start_a_turn() -> None:
    assert whats(hook("UserPromptSubmit", prompt="do it")) == [What.PROMPT]
    assert whats(hook("UserPromptSubmit", prompt="<task-notification> done")) == [What.TURN_STARTED]
    assert whats(hook("UserPromptSubmit", prompt="again", source="schedule_wakeup")) == [What.TURN_STARTED]


def test_a_turn_that_ends_with_a_wakeup_waits_for_it() -> None:
    soon = datetime.fromtimestamp(time.time() + 7200).replace(second=0, microsecond=0)
    once = {"schedule": f"{soon.minute} {soon.hour} {soon.day} {soon.month} *", "recurring": False}
    ended, waits = hook("Stop", session_crons=[{"schedule": "0 9 * * 1-5", "recurring": True}, once, {"schedule": "no"}])

    assert (ended.what, waits.what, waits.until) == (What.TURN_ENDED, What.WAITS, soon.timestamp())


def test_a_payload_may_say_plainly_what_goes_on() -> None:
    assert list(read_hook({"event": "heartbeat"})) == [Said(What.ALIVE, name="heartbeat")]
    (said,) = read_hook({"activity": "waiting-timer", "until": 1794900000})

    assert (said.what, said.name, said.until) == (What.DOES, "waiting-timer", 1794900000.0)


# Transcripts


def test_a_message_is_counted_once_though_each_piece_repeats_its_usage() -> None:
    message = {"stop_reason": "tool_use", "usage": {"input_tokens": 2, "output_tokens": 3}, "content": [{"type": "text"}]}
    rows = [{"type": "assistant", "apiBlockIndex": index, "message": message} for index in (0, 1)]

    assert [said.usage is not None for row in rows for said in read_entry(row)] == [True, False]


def test_a_person_s_commands_to_the_program_are_no_prompt() -> None:
    for words in ("<command-name>/model</command-name>", "<local-command-stdout>ok", "<bash-input>ls"):
        assert whats(read_entry({"type": "user", "message": {"content": words}})) == [What.ALIVE]


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("/work/project", "-work-project"),
        ("/work/my.project_x/", "-work-my-project-x"),
        ("/work/a folder", "-work-a-folder"),
        ("/work/wörk 🎉", "-work-w-rk---"),
        ("/" + "a" * 300, "-" + "a" * 199 + "-*"),
    ],
)
def test_a_folder_s_name_is_what_claude_makes_of_it(cwd: str, name: str) -> None:
    own, subagents = transcripts(Place(cwd, {"HOME": "/home/u"}), ID)

    assert own == f"/home/u/.claude/projects/{name}/{ID}.jsonl"
    assert subagents == f"/home/u/.claude/projects/{name}/{ID}/subagents/agent-*.jsonl"


def test_the_configuration_folder_is_honoured_and_never_a_pattern() -> None:
    own, _ = transcripts(Place("/w", {"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c[1]"}), ID)

    assert own == f"/c[[]1]/projects/-w/{ID}.jsonl"
    assert transcripts(Place("/w", {}), ID) == ()
    assert transcripts(Place("/w", {"HOME": "/h"}), "../../etc/*") == ()


# Beginning


def start(*command: str, resume: bool = False, cwd: str = "/w", env: dict[str, str] | None = None, **more: Any) -> Beginning:
    place = Place(cwd, {"HOME": "/h", **(env or {})})
    return Beginning(command, place, "/launch", more.pop("headless", False), ID, resume, more.pop("hook", HOOK))


SETTINGS = ("--settings", f"/launch/{SETTINGS_FILE}")
CHOSEN = ("--session-id", ID)


@pytest.mark.parametrize(
    ("beginning", "command", "conversation", "without"),
    [
        (start("claude"), ("claude", *CHOSEN, *SETTINGS), ID, []),
        (start("/opt/bin/claude", "go"), ("/opt/bin/claude", *CHOSEN, *SETTINGS, "go"), ID, []),
        (start("claude", resume=True), ("claude", "--resume", ID, *SETTINGS), ID, []),
        (start("claude", "--session-id", OTHER_ID), ("claude", *SETTINGS, "--session-id", OTHER_ID), OTHER_ID, []),
        (start("claude", "-r", OTHER_ID), ("claude", *SETTINGS, "-r", OTHER_ID), OTHER_ID, []),
        (start("claude", f"--resume={OTHER_ID}"), ("claude", *SETTINGS, f"--resume={OTHER_ID}"), OTHER_ID, []),
        (
            start("claude", "-r", OTHER_ID, "--fork-session"),
            ("claude", *SETTINGS, "-r", OTHER_ID, "--fork-session"),
            "",
            [],
        ),
        (start("claude", "--continue", resume=True), ("claude", *SETTINGS, "--continue"), "", ["resume"]),
        (start("claude", "--", "--resume"), ("claude", *CHOSEN, *SETTINGS, "--", "--resume"), ID, []),
        (start("sh", "-c", "claude"), ("sh", "-c", "claude"), "", ["flags, hooks, resume"]),
        (start("claude", "mcp", "list"), ("claude", "mcp", "list"), "", ["flags, hooks, resume"]),
        (start("claude", hook=()), ("claude", *CHOSEN), ID, ["hooks"]),
        (start("claude", "--bare"), ("claude", *CHOSEN, "--bare"), ID, ["hooks"]),
        (start("claude", env={"CLAUDE_CODE_SIMPLE": "1"}), ("claude", *CHOSEN), ID, ["hooks"]),
        (start("claude", "--settings", "/no/file"), ("claude", *CHOSEN, "--settings", "/no/file"), ID, ["hooks"]),
        (start("claude", "-p", "go"), ("claude", *CHOSEN, *SETTINGS, "-p", "go"), ID, ["stream"]),
        (
            start("claude", "-p", "go", "--output-format=stream-json", headless=True),
            (
                "claude",
                *CHOSEN,
                "--verbose",
                "--include-partial-messages",
                *SETTINGS,
                "-p",
                "go",
                "--output-format=stream-json",
            ),
            ID,
            [],
        ),
        (
            start("claude", "-p", "--output-format", "stream-json", "--verbose", headless=True),
            ("claude", *CHOSEN, "--include-partial-messages", *SETTINGS, "-p", "--output-format", "stream-json", "--verbose"),
            ID,
            [],
        ),
    ],
    ids=lambda value: " ".join(value.command[:4]) if isinstance(value, Beginning) else "",
)
def test_only_what_the_user_has_not_given_is_added(
    beginning: Beginning, command: tuple[str, ...], conversation: str, without: list[str]
) -> None:
    made = begin(beginning)

    assert made.command == command
    assert made.conversation == conversation
    assert [line.partition(":")[0] for line in made.without] == without


def test_one_that_reads_prompts_keeps_its_input() -> None:
    reads = "claude", "-p", "--input-format", "stream-json"

    assert begin(start(*reads, headless=True)).converses
    assert not begin(start(*reads)).converses, "in a terminal its input is the terminal"
    assert not begin(start("claude", "-p", "go", headless=True)).converses


def test_hooks_are_safe_for_the_oldest_version_and_their_command_is_quoted() -> None:
    hooks = json.loads(begin(start("claude")).files[SETTINGS_FILE])["hooks"]

    assert sorted(hooks) == sorted(HOOK_EVENTS.split())
    assert "MessageDisplay" not in hooks
    assert hooks["Stop"] == [{"hooks": [{"type": "command", "command": "sh '/a folder/hook.sh'", "timeout": 5}]}]


def test_where_nobody_can_answer_nobody_is_asked() -> None:
    asked = ("claude", "-p", "go"), ("claude", "-p", "--permission-prompt-tool", "stdio"), ("claude",)

    assert ["PermissionRequest" in begin(start(*command)).files[SETTINGS_FILE] for command in asked] == [False, True, True]


@pytest.mark.parametrize("inline", [True, False])
def test_settings_that_the_user_named_are_kept_in_a_copy_with_our_hooks(tmp_path: Path, inline: bool) -> None:
    theirs = {"model": "opus", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    (tmp_path / "my.json").write_text(json.dumps(theirs))
    named = json.dumps(theirs) if inline else "my.json"

    made = begin(start("claude", "--settings", named, "go", cwd=str(tmp_path)))
    merged = json.loads(made.files[SETTINGS_FILE])

    assert made.command == ("claude", *CHOSEN, *SETTINGS, "go")
    assert merged["model"] == "opus"
    assert [entry["hooks"][0]["command"] for entry in merged["hooks"]["Stop"]] == ["true", "sh '/a folder/hook.sh'"]
    assert json.loads((tmp_path / "my.json").read_text()) == theirs


# The screen


COMPOSER = "─" * 40 + "\n❯ \n" + "─" * 40 + "\n  ? for shortcuts"
PERMISSION = (
    "❯ do it\n" + "─" * 40 + "\n Bash command\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n Esc to cancel · Tab to amend"
)
OTHER_CHOICE = PERMISSION.replace("❯ 1.", "  1.").replace("  2.", "❯ 2.")
TRUST = "─" * 40 + "\n Accessing workspace:\n /w\n ❯ No, exit\n   Yes, I trust this folder\n Enter to confirm · Esc to cancel"


@pytest.mark.parametrize(
    ("screen", "dialog"),
    [(COMPOSER, None), (PERMISSION, "permission"), (OTHER_CHOICE, "permission"), (TRUST, "trust")],
)
def test_a_dialog_is_no_composer(screen: str, dialog: str | None) -> None:
    shown = [one.name for one in ADAPTER.dialogs if all(sign in screen for sign in one.signs)]

    assert shown == ([dialog] if dialog else [])
    assert bool(re.search(ADAPTER.composer[0], screen)) == (dialog is None)
