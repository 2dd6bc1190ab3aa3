"""OpenCode: what its events say, what our plugin tells, how it is started, and how its terminal looks."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from vigil.agents.contract import Beginning, Place
from vigil.agents.opencode.adapter import ADAPTER, CONFIG, PLUGIN_FILE, begin
from vigil.core.model.progress import UNHEARD
from vigil.core.model.speech import Said, What
from vigil.core.rules.activity import activity_of, take_in

ID = "ses_e1beabe60ffeeSGWJMkQrwJGTe"
HOOK = ("sh", "/a folder/hook.sh")


def whats(said: Iterable[Said]) -> list[What]:
    return [one.what for one in said]


def started(*command: str, env: dict[str, str] | None = None, **more: Any) -> Any:
    known: dict[str, Any] = {"folder": "/the launch", "headless": False, "conversation": ID, "hook": HOOK}
    return begin(Beginning(command, Place("/work", env or {"HOME": "/home/me"}), **{**known, **more}))


# Reading


@pytest.mark.parametrize(
    ("error", "what"),
    [
        ({"name": "APIError", "data": {"statusCode": 401, "message": "no"}}, What.AUTH),
        ({"name": "APIError", "data": {"statusCode": 429, "message": "no"}}, What.LIMIT),
        ({"name": "APIError", "data": {"statusCode": 500, "message": "no"}}, What.ERROR),
        ({"name": "ProviderAuthError", "data": {"message": "no key"}}, What.AUTH),
        ({"name": "MessageAbortedError"}, What.ERROR),
    ],
)
def test_an_error_says_by_which_wall(error: dict[str, Any], what: What) -> None:
    assert whats(ADAPTER.read_stream({"type": "error", "error": error})) == [what]
    assert whats(ADAPTER.read_hook({"type": "session.error", "error": error})) == [what]


def test_only_the_last_step_ends_the_turn_and_each_is_counted() -> None:
    tokens = {"input": 10, "output": 3, "reasoning": 2, "cache": {"read": 100, "write": 7}}
    steps = [
        {"type": "step_finish", "part": {"reason": reason, "tokens": tokens, "cost": 0.5}} for reason in ("tool-calls", "stop")
    ]

    said = [one for step in steps for one in ADAPTER.read_stream(step)]

    assert whats(said) == [What.ALIVE, What.TURN_ENDED]
    for one in said:
        assert one.usage is not None
        assert (one.usage.input_tokens, one.usage.output_tokens, one.usage.cached_tokens) == (117, 5, 100)
        assert (one.usage.cost_usd, one.usage.so_far) == (0.5, False)


def test_the_words_of_a_sub_agent_are_not_its_parents() -> None:
    child = {"sessionID": "ses_child", "parentID": ID}
    said = [
        one
        for payload in (
            {"type": "session.created", **child},
            {"type": "session.status", "status": "busy", **child},
            {"type": "permission.asked", "id": "per_1", "permission": "bash", **child},
            {"type": "session.status", "status": "idle", **child},
        )
        for one in ADAPTER.read_hook(payload)
    ]

    assert whats(said) == [What.SUBAGENT_STARTED, What.TURN_STARTED, What.ASKED, What.SUBAGENT_ENDED]
    assert {one.subagent for one in said} == {"ses_child"}
    assert {one.conversation for one in said} == {""}
    assert said[0].id == said[3].id == "ses_child"


def test_a_session_is_throttled_while_it_tries_again() -> None:
    doing = UNHEARD
    shown = []
    for status in ({"status": "busy"}, {"status": "retry", "next": 1794828129177}, {"status": "busy"}, {"status": "idle"}):
        for said in ADAPTER.read_hook({"type": "session.status", "sessionID": ID, **status}):
            doing = take_in(doing, said, 0.0)
        shown.append((activity_of(doing)[0], doing.until))

    assert shown == [("working", None), ("throttled", 1794828129.177), ("working", None), ("idle", None)]


# Starting


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["opencode"], ["opencode", "--session", ID]),
        (["opencode", "/project"], ["opencode", "--session", ID, "/project"]),
        (["opencode", "run", "do it"], ["opencode", "run", "--session", ID, "do it"]),
        (["opencode", "run", "-s", "ses_other", "do it"], ["opencode", "run", "-s", "ses_other", "do it"]),
        (["opencode", "--continue"], ["opencode", "--continue"]),
        (["opencode", "serve"], ["opencode", "serve"]),
    ],
)
def test_it_resumes_by_the_id_where_the_command_does_not(command: list[str], expected: list[str]) -> None:
    start = started(*command, resume=True)

    assert list(start.command) == expected
    assert start.conversation == (ID if ID in expected else "")
    assert any("resume" in line for line in start.without) is (ID not in expected)
    assert list(started(*command).command) == command


def test_our_plugin_joins_those_of_the_user() -> None:
    theirs = {"model": "a/b", "plugin": ["their-plugin"]}

    start = started("opencode", env={"HOME": "/home/me", CONFIG: json.dumps(theirs)})

    assert json.loads(start.env[CONFIG]) == {**theirs, "plugin": ["their-plugin", f"file:///the%20launch/{PLUGIN_FILE}"]}
    assert json.loads(started("opencode").env[CONFIG]) == {"plugin": [f"file:///the%20launch/{PLUGIN_FILE}"]}


@pytest.mark.parametrize(
    ("command", "env", "why"),
    [
        (["opencode", "--pure"], {}, "without plugins"),
        (["opencode"], {"OPENCODE_PURE": "1"}, "without plugins"),
        (["opencode"], {CONFIG: "{} // a comment"}, "no plain JSON"),
        (["opencode"], {CONFIG: "[]"}, "no plain JSON"),
        (["opencode"], {CONFIG: '{"plugin": "one"}'}, "no plain JSON"),
    ],
)
def test_where_our_plugin_cannot_be_added_nothing_is_changed(command: list[str], env: dict[str, str], why: str) -> None:
    start = started(*command, env=env)

    assert (dict(start.env), dict(start.files)) == ({}, {})
    assert why in " ".join(start.without)


def test_a_stream_that_is_not_asked_for_is_said_to_be_missing() -> None:
    assert "stream: it is not asked for with run --format json" in started("opencode", "run", "x", headless=True).without
    assert started("opencode", "run", "--format", "json", "x", headless=True).without == ()


# The plugin


EVENTS = (
    {"type": "session.created", "properties": {"info": {"id": "ses_1", "title": "SECRET"}}},
    {"type": "session.created", "properties": {"info": {"id": "ses_2", "parentID": "ses_1"}}},
    {"type": "message.updated", "properties": {"info": {"id": "msg_1", "role": "user", "sessionID": "ses_1"}}},
    {"type": "message.updated", "properties": {"info": {"id": "msg_1", "role": "user", "sessionID": "ses_1"}}},
    {"type": "message.updated", "properties": {"info": {"id": "msg_2", "role": "assistant", "sessionID": "ses_1"}}},
    {"type": "session.status", "properties": {"sessionID": "ses_1", "status": {"type": "busy"}}},
    {"type": "session.status", "properties": {"sessionID": "ses_1", "status": {"type": "busy"}}},
    *(
        {
            "type": "message.part.updated",
            "properties": {
                "part": {
                    "type": "tool",
                    "tool": "bash",
                    "callID": "call_1",
                    "sessionID": "ses_2",
                    "state": {"status": status, "input": {"command": "SECRET"}, "output": "SECRET"},
                }
            },
        }
        for status in ("pending", "running", "running", "completed")
    ),
    {"type": "message.part.updated", "properties": {"part": {"type": "text", "text": "SECRET", "sessionID": "ses_1"}}},
    {
        "type": "permission.asked",
        "properties": {"id": "per_1", "sessionID": "ses_1", "permission": "bash", "patterns": ["SECRET"]},
    },
    {"type": "permission.replied", "properties": {"requestID": "per_1", "sessionID": "ses_1", "reply": "once"}},
    {"type": "session.idle", "properties": {"sessionID": "ses_1"}},
    {"type": "session.status", "properties": {"sessionID": "ses_1", "status": {"type": "idle"}}},
    {"type": "an.event.of.the.future", "properties": None},
    {"type": "session.error"},
    None,
)
RUN = """
import { Vigil } from "./plugin.mjs"
import { readFileSync } from "node:fs"
const plugin = await Vigil()
for (const event of JSON.parse(readFileSync("events.json", "utf8"))) await plugin.event({ event })
process.exit(0)
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_our_plugin_tells_each_thing_once_and_no_secret(tmp_path: Path) -> None:
    (tmp_path / "hook.sh").write_text(f'printf "%s\\n" "$1" >>{tmp_path}/told\n')
    (tmp_path / "plugin.mjs").write_text(started("opencode", hook=("sh", f"{tmp_path}/hook.sh")).files[PLUGIN_FILE])
    (tmp_path / "events.json").write_text(json.dumps(EVENTS))
    (tmp_path / "run.mjs").write_text(RUN)

    subprocess.run(["node", "run.mjs"], cwd=tmp_path, check=True, timeout=60)

    told = (tmp_path / "told").read_text()
    assert "SECRET" not in told
    said = [one for line in told.splitlines() for one in ADAPTER.read_hook(json.loads(line))]
    # The first may still be running when the rest is told at the end.
    assert sorted(whats(said)) == sorted(
        [
            What.STARTED,
            What.STARTED,
            What.SUBAGENT_STARTED,
            What.PROMPT,
            What.TURN_STARTED,
            What.TOOL_STARTED,
            What.TOOL_ENDED,
            What.ASKED,
            What.ANSWERED,
            What.TURN_ENDED,
            What.ERROR,
        ]
    )
    assert {one.subagent for one in said if one.what is What.TOOL_STARTED} == {"ses_2"}


# The terminal


HOME = '  ┃  Ask anything… "Fix a TODO in the codebase"\n  ┃  Build · M Fake\n          tab agents  ctrl+p commands\n'
SESSION = "     Done.\n     ▣  Build · M · 10.7s\n  ┃\n  ┃  Build · M Fake\n   /work                132  ctrl+p commands\n"
PERMISSION = "  ┃  △ Permission required\n  ┃    # Shell command\n  ┃   Allow once   Allow always   Reject   enter confirm\n"


@pytest.mark.parametrize(("screen", "dialog"), [(HOME, None), (SESSION, None), (PERMISSION, "permission")])
def test_a_composer_is_told_from_dialogs(screen: str, dialog: str | None) -> None:
    assert next((one.name for one in ADAPTER.dialogs if all(sign in screen for sign in one.signs)), None) == dialog
    assert any(re.search(pattern, screen, re.MULTILINE) for pattern in ADAPTER.composer) is (dialog is None)
