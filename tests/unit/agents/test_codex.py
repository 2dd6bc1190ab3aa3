"""Codex: what its events say, how it is started, and how its terminal looks."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest

from vigil.agents.codex.adapter import ADAPTER, FLAGS_FILE, HOOK_EVENTS, begin
from vigil.agents.contract import Beginning, Place
from vigil.core.model.progress import UNHEARD
from vigil.core.model.speech import Said, What
from vigil.core.rules.activity import activity_of, take_in

ID = "01a1e0ab-48d3-70e3-9230-bc60ef372520"
HOOK = ("sh", "/a folder/hook.sh")


def whats(said: Iterable[Said]) -> list[What]:
    return [one.what for one in said]


def started(*command: str, env: dict[str, str] | None = None, **more: Any) -> Any:
    known: dict[str, Any] = {"folder": "/launch", "headless": True, "conversation": ID, "hook": ()}
    return begin(Beginning(command, Place("/work", env or {"HOME": "/home/me"}), **{**known, **more}))


# Reading


def test_a_kind_of_item_of_the_future_is_unknown() -> None:
    (said,) = ADAPTER.read_stream({"type": "item.started", "item": {"type": "dream", "id": "1"}})

    assert (said.what, said.name) == (What.UNKNOWN, "item/dream")


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ("Reconnecting... 2/5 (unexpected status 429 Too Many Requests)", What.RETRIES),
        ("unexpected status 403 Forbidden: no", What.AUTH),
        ("You've hit your usage limit. Try again at 3:05 PM.", What.LIMIT),
        ("stream disconnected before completion", What.ERROR),
        ("", What.ERROR),
    ],
)
def test_an_error_is_a_retry_a_wall_or_an_error(message: str, what: What) -> None:
    assert whats(ADAPTER.read_stream({"type": "error", "message": message})) == [what]


def test_a_wall_is_still_known_after_the_turn_that_met_it() -> None:
    doing = UNHEARD
    for event in (
        {"type": "turn.started"},
        {"type": "turn.failed", "error": {"message": "exceeded retry limit, last status: 429 Too Many Requests"}},
    ):
        for said in ADAPTER.read_stream(event):
            doing = take_in(doing, said, 0.0)

    assert activity_of(doing)[0] == "throttled"


def test_a_permission_is_answered_when_its_tool_ends() -> None:
    doing = UNHEARD
    tool = {"session_id": ID, "tool_name": "Bash", "tool_use_id": "call_1"}
    shown = []
    for payload in (
        {"hook_event_name": "UserPromptSubmit", "prompt": "do it"},
        {"hook_event_name": "PreToolUse", **tool, "tool_input": {"command": "x"}},
        {"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "x", "description": "y"}},
        {"hook_event_name": "PostToolUse", **tool, "tool_input": {"command": "x"}},
        {"hook_event_name": "Stop"},
    ):
        for said in ADAPTER.read_hook(payload):
            doing = take_in(doing, said, 0.0)
        shown.append(activity_of(doing)[0])

    assert shown == ["working", "tool", "waiting-human", "working", "idle"]


def test_a_rollout_says_when_its_limit_ends() -> None:
    windows = {
        "primary": {"used_percent": 100.0, "resets_at": 1794900000},
        "secondary": {"used_percent": 40.0, "resets_at": 1795900000},
    }
    payload = {"type": "token_count", "info": None, "rate_limits": {**windows, "rate_limit_reached_type": "primary"}}

    said = list(ADAPTER.read_entry({"type": "event_msg", "payload": payload}))

    assert whats(said) == [What.ALIVE, What.LIMIT]
    assert said[1].until == 1794900000.0


@pytest.mark.parametrize(
    ("info", "what"), [("usage_limit_exceeded", What.LIMIT), ("unauthorized", What.AUTH), ("other", None), (None, None)]
)
def test_a_turn_that_failed_says_by_which_wall(info: Any, what: What | None) -> None:
    payload = {"type": "task_complete", "error": {"message": "no", "codex_error_info": info}}

    said = whats(ADAPTER.read_entry({"type": "event_msg", "payload": payload}))

    assert said == ([What.TURN_ENDED] if what is None else [What.TURN_ENDED, what])


def test_an_interrupted_turn_ends() -> None:
    (said,) = ADAPTER.read_entry({"type": "event_msg", "payload": {"type": "turn_aborted", "reason": "interrupted"}})

    assert (said.what, said.text, said.failed) == (What.TURN_ENDED, "interrupted", True)


def test_the_rollout_of_a_sub_agent_is_not_the_agents_own() -> None:
    (said,) = ADAPTER.read_entry({"type": "session_meta", "payload": {"id": ID, "source": {"subagent": {}}}})

    assert said.subagent == ID


def test_rollouts_lie_where_the_environment_says() -> None:
    assert ADAPTER.transcripts(Place("/work", {"HOME": "/h", "CODEX_HOME": "/c [1]"}), ID) == (
        f"/c [[]1]/sessions/*/*/*/rollout-*-{ID}.jsonl",
    )


# Starting


@pytest.mark.parametrize(
    ("command", "resumed"),
    [
        (["codex", "exec", "--json", "do it"], ["codex", "exec", "--json", "resume", ID, "do it"]),
        (["codex", "-m", "o3", "e", "--json"], ["codex", "-m", "o3", "e", "--json", "resume", ID]),
        (
            ["codex", "exec", "-s", "read-only", "--json", "--", "-x"],
            ["codex", "exec", "-s", "read-only", "--json", "resume", ID, "--", "-x"],
        ),
        (["codex", "exec", "--json", "-"], ["codex", "exec", "--json", "resume", ID, "-"]),
        (["/usr/bin/codex", "--json", "do it"], ["/usr/bin/codex", "--json", "resume", ID, "do it"]),
    ],
)
def test_it_resumes_before_its_prompt(command: list[str], resumed: list[str]) -> None:
    start = started(*command, resume=True)

    assert (list(start.command), start.conversation) == (resumed, ID)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["codex", "exec", "--json", "resume", "--last"], "names a conversation itself"),
        (["codex", "fork", "--json"], "names a conversation itself"),
        (["codex", "exec", "--json", "-i", "a.png", "do it"], "--image"),
        (["codex", "login"], "codex login is no session"),
        (["codex", "-m", "o3", "mcp", "list"], "codex mcp is no session"),
    ],
)
def test_what_it_cannot_resume_it_says(command: list[str], why: str) -> None:
    start = started(*command, resume=True)

    assert list(start.command) == command
    assert start.conversation == ""
    assert why in " ".join(start.without)


def test_a_stream_that_is_not_asked_for_is_said_to_be_missing() -> None:
    assert started("codex", "exec", "do it", hook=HOOK).without == ("stream: it is not asked for with exec --json",)
    assert started("codex", "do it", hook=HOOK, headless=False).without == ()


def test_no_daemon_holds_an_agent_that_has_a_terminal() -> None:
    assert started("codex", "hi", headless=False).command == ("codex", "-c", "features.daemon_auto_start=false", "hi")
    assert started("codex", "--enable", "daemon_auto_start", headless=False).command == (
        "codex",
        "--enable",
        "daemon_auto_start",
    )


def config_of(command: tuple[str, ...]) -> dict[str, Any]:
    """Return what the flags of a command configure, read as Codex does: each value is TOML."""
    found: dict[str, Any] = {}
    for flag, value in pairwise(command):
        if flag == "-c":
            key, _, toml = value.partition("=")
            found[key] = tomllib.loads(f"value = {toml}")["value"]
    return found


def test_hooks_are_given_by_flags_and_only_these_are_trusted() -> None:
    start = started("codex", "exec", "--json", "do it", hook=("sh", '/ä "folder"/🙂/hook.sh'))
    config = config_of(start.command)

    for event in HOOK_EVENTS:
        ((handler,),) = [group["hooks"] for group in config[f"hooks.{event}"]]
        assert handler == {"type": "command", "command": "sh '/ä \"folder\"/🙂/hook.sh'", "timeout": 3}
    assert set(config["hooks.state"]) == {f"{FLAGS_FILE}:{label}:0:0" for label in HOOK_EVENTS.values()}
    assert (dict(start.env), dict(start.files)) == ({}, {})


def test_the_trusted_hash_is_the_one_that_codex_computes() -> None:
    start = started("codex", "exec", "--json", hook=("sh", "/launch/hook.sh"))
    trusted = config_of(start.command)["hooks.state"][f"{FLAGS_FILE}:stop:0:0"]["trusted_hash"]

    # Of hooks/list of 0.166, for these very flags.
    assert trusted == CODEX_SAYS


CODEX_SAYS = "sha256:7d32887aacc21fa0ce4d09af3986be8d5971eab9fb3102231df1cf1139aea8b8"


def test_hooks_of_the_command_itself_stay_the_only_ones() -> None:
    for flags in (["-c", "hooks.Stop=[]"], ["--config=hooks={}"], ["-chooks.Stop=[]"]):
        start = started("codex", *flags, "exec", "--json", hook=HOOK)

        assert list(start.command) == ["codex", *flags, "exec", "--json"]
        assert start.without == ("hooks: the command gives its own",)


def test_a_hook_that_toml_cannot_hold_is_left_out() -> None:
    for path in ("/a\x7f/hook.sh", "/a\udc80/hook.sh"):
        start = started("codex", "exec", "--json", hook=("sh", path))

        assert start.command == ("codex", "exec", "--json")
        assert "does not take" in " ".join(start.without)


# The terminal


COMPOSER = "› hello\n\n• Ran echo hi\n\n› Ask Codex to do anything\n\n  gpt-5.1-codex default · /work\n  ? for shortcuts\n"
PICKER = "› hello\n\n• Done.\n\n  Select Model\n\n› 1. gpt-5.1-codex\n  2. gpt-5.1\n\n  Press enter to confirm\n"
TRUST = "  Trust this folder? ...\n› 1. Trust and continue\n  2. Quit\n"
APPROVAL = (
    "  Would you like to run the following command?\n  $ touch /etc/zz_fake\n› 1. Yes, proceed (y)\n"
    "  3. No, and tell Codex what to do differently (esc)\n"
)


@pytest.mark.parametrize(("screen", "shown"), [(COMPOSER, True), (PICKER, False), (TRUST, False), (APPROVAL, False)])
def test_a_composer_is_told_from_older_prompts_and_choices(screen: str, shown: bool) -> None:
    assert any(re.search(pattern, screen, re.MULTILINE) for pattern in ADAPTER.composer) is shown


@pytest.mark.parametrize(("screen", "dialog"), [(COMPOSER, None), (TRUST, "trust"), (APPROVAL, "permission")])
def test_dialogs_are_known_by_their_signs(screen: str, dialog: str | None) -> None:
    assert next((one.name for one in ADAPTER.dialogs if all(sign in screen for sign in one.signs)), None) == dialog


def test_what_is_kept_of_an_error_is_json_that_can_be_stored() -> None:
    (said,) = ADAPTER.read_stream({"type": "error", "message": "a\x1b[31mb\n" + "x" * 10**6})

    assert len(said.text) <= 200
    assert json.dumps(said.text)
