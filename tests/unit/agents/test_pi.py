"""Pi: what its events say, what our extension tells, how it is started, and how its terminal looks."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from vigil.agents.contract import Beginning, Place
from vigil.agents.pi.adapter import ADAPTER, EXTENSION_FILE, begin
from vigil.core.model.progress import UNHEARD
from vigil.core.model.speech import Said, What
from vigil.core.rules.activity import activity_of, take_in

ID = "01a1e0ba-7a7a-772c-b698-c8e8c2d00884"
HOOK = ("sh", "/a folder/hook.sh")
EXTENSION = ["--extension", f"/launch/{EXTENSION_FILE}"]


def whats(said: Iterable[Said]) -> list[What]:
    return [one.what for one in said]


def started(*command: str, **more: Any) -> Any:
    known: dict[str, Any] = {"folder": "/launch", "headless": False, "conversation": ID, "hook": HOOK}
    return begin(Beginning(command, Place("/work", {"HOME": "/home/me"}), **{**known, **more}))


# Reading


def ended(reason: str, error: str = "") -> dict[str, Any]:
    return {
        "type": "agent_end",
        "messages": [{"role": "user"}, {"role": "assistant", "stopReason": reason, "errorMessage": error}],
    }


def test_a_run_that_failed_is_throttled_until_it_is_tried_again() -> None:
    doing = UNHEARD
    shown = []
    for event in (
        {"type": "agent_start"},
        ended("error", "429 no"),
        {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2000, "errorMessage": "429 no"},
        {"type": "agent_start"},
        ended("stop"),
        {"type": "auto_retry_end", "success": True, "attempt": 1},
    ):
        for said in ADAPTER.read_stream(event):
            doing = take_in(doing, said, 0.0)
        shown.append(activity_of(doing)[0])

    assert shown == ["working", "idle", "throttled", "working", "idle", "idle"]


def test_a_retry_says_when_it_tries_again() -> None:
    (said,) = ADAPTER.read_stream({"type": "auto_retry_start", "delayMs": 8000, "errorMessage": "429 no"})

    assert said.until is not None
    assert abs(said.until - time.time() - 8) < 5


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (ended("stop"), [What.RESULT]),
        (ended("aborted"), [What.RESULT]),
        (ended("error", "401 no"), [What.RESULT, What.AUTH]),
        (ended("error", "529 overloaded"), [What.RESULT]),
        ({"type": "auto_retry_end", "success": False, "finalError": "429 no"}, [What.LIMIT]),
        ({"type": "auto_retry_end", "success": False, "finalError": "terminated"}, [What.ERROR]),
        ({"type": "agent_end"}, [What.RESULT]),
    ],
)
def test_the_end_of_a_run_says_by_which_wall(event: dict[str, Any], expected: list[What]) -> None:
    assert whats(ADAPTER.read_stream(event)) == expected


def test_a_run_that_failed_is_told_from_one_that_did_not_whatever_it_exits_with() -> None:
    assert [next(iter(ADAPTER.read_stream(ended(reason)))).failed for reason in ("stop", "error", "aborted")] == [
        False,
        True,
        True,
    ]


def test_input_is_counted_with_what_was_cached() -> None:
    usage = {"input": 10, "output": 3, "cacheRead": 100, "cacheWrite": 7, "cost": {"total": 0.5}}
    (said,) = ADAPTER.read_stream({"type": "message_end", "message": {"role": "assistant", "usage": usage}})

    assert said.usage is not None
    assert (said.usage.input_tokens, said.usage.output_tokens, said.usage.cached_tokens, said.usage.cost_usd) == (
        117,
        3,
        100,
        0.5,
    )


def test_another_conversation_in_the_same_process_is_not_its_end() -> None:
    assert whats(ADAPTER.read_hook({"type": "session_shutdown", "reason": "new"})) == [What.TURN_ENDED]
    assert whats(ADAPTER.read_hook({"type": "session_shutdown", "reason": "quit"})) == [What.ENDED]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"HOME": "/h"}, f"/h/.pi/agent/sessions/*/*_{ID}.jsonl"),
        ({"HOME": "/h", "PI_CODING_AGENT_DIR": "~/p"}, f"/h/p/sessions/*/*_{ID}.jsonl"),
        ({"HOME": "/h", "PI_CODING_AGENT_SESSION_DIR": "/s/"}, f"/s/*_{ID}.jsonl"),
    ],
)
def test_session_files_lie_where_the_environment_says(env: dict[str, str], expected: str) -> None:
    assert ADAPTER.transcripts(Place("/work", env), ID) == (expected,)


# Starting


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["pi"], ["pi", "--session", ID, *EXTENSION]),
        (["/opt/pi", "-p", "do it"], ["/opt/pi", "--session", ID, *EXTENSION, "-p", "do it"]),
        (["pi", "--continue"], ["pi", *EXTENSION, "--continue"]),
        (["pi", "--no-session", "-e", "mine.ts"], ["pi", *EXTENSION, "--no-session", "-e", "mine.ts"]),
        (["pi", "update"], ["pi", "update"]),
    ],
)
def test_it_resumes_by_the_id_where_the_command_does_not(command: list[str], expected: list[str]) -> None:
    start = started(*command, resume=True)

    assert list(start.command) == expected
    assert start.conversation == (ID if ID in expected else "")
    assert any("resume" in line for line in start.without) is (ID not in expected)


def test_without_anybody_who_takes_hooks_there_is_no_extension() -> None:
    start = started("pi", hook=())

    assert (start.command, dict(start.files), start.without) == (("pi",), {}, ("hooks: nothing takes them",))


def test_a_stream_that_is_not_asked_for_is_said_to_be_missing() -> None:
    assert "stream: it is not asked for with --mode json" in started("pi", "-p", "x", headless=True).without
    assert started("pi", "--mode", "json", "x", headless=True).without == ()


# The extension


RUN = """
import extension from "./extension.mjs"
const handlers = {}
extension({ on: (type, handler) => (handlers[type] = handler) })
const ctx = { sessionManager: { getSessionId: () => "01a1" } }
const messages = [{ role: "assistant", stopReason: "error", errorMessage: "401 no", content: "SECRET" }]
handlers.session_start({ reason: "startup" }, ctx)
handlers.input({ text: "SECRET", source: "interactive" }, ctx)
handlers.agent_start({}, ctx)
handlers.tool_execution_start({ toolName: "bash", toolCallId: "1", args: { command: "SECRET" } }, ctx)
handlers.tool_execution_end({ toolName: "bash", toolCallId: "1", result: "SECRET", isError: true }, ctx)
handlers.agent_end({ messages }, ctx)
handlers.agent_end({}, undefined)
handlers.session_shutdown({ reason: "quit" }, ctx)
process.exit(0)
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_our_extension_tells_each_thing_once_and_no_secret(tmp_path: Path) -> None:
    (tmp_path / "hook.sh").write_text(f'printf "%s\\n" "$1" >>{tmp_path}/told\n')
    (tmp_path / "extension.mjs").write_text(started("pi", hook=("sh", f"{tmp_path}/hook.sh")).files[EXTENSION_FILE])
    (tmp_path / "run.mjs").write_text(RUN)

    subprocess.run(["node", "run.mjs"], cwd=tmp_path, check=True, timeout=60)

    told = (tmp_path / "told").read_text()
    assert "SECRET" not in told
    said = [one for line in told.splitlines() for one in ADAPTER.read_hook(json.loads(line))]
    # The first may still be running when the rest is told at the end.
    assert sorted(whats(said)) == sorted(
        [
            What.STARTED,
            What.PROMPT,
            What.TURN_STARTED,
            What.TOOL_STARTED,
            What.TOOL_ENDED,
            What.TURN_ENDED,
            What.AUTH,
            What.TURN_ENDED,
            What.ENDED,
        ]
    )


# The terminal


LINE = "─" * 40


@pytest.mark.parametrize(
    ("screen", "shown"),
    [
        (f" Done.\n\n{LINE}\n\n{LINE}\n/work\n0.1%/100k (auto)    m\n", True),
        (f" Done.\n\n{LINE}\n hello\n{LINE}\n/work\n0.1%/100k (auto)    m\n", False),
        (f"{LINE}\n\n Select a model\n → m [fake]\n\n{LINE}\n/work\n0.1%/100k (auto)    m\n", False),
    ],
)
def test_a_composer_has_nothing_between_its_lines(screen: str, shown: bool) -> None:
    assert any(re.search(pattern, screen, re.MULTILINE) for pattern in ADAPTER.composer) is shown
