"""The scripted model itself: each dialect, each way to break off, and that it notices who hangs up."""

from __future__ import annotations

import json
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.live.instance import wait_for
from tests.real.model_api import ModelApi
from tests.real.model_api.dialect import Json
from tests.real.model_api.running import ROOT
from tests.real.model_api.script import SCENARIOS, WORDS

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
FUNCTIONS = [{"functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": SCHEMA}]}]
ASKED: dict[str, tuple[str, Json]] = {  # each dialect: where a turn is asked for, and how
    "anthropic": ("/v1/messages", {"tools": [{"name": "Bash", "input_schema": SCHEMA}]}),
    "responses": ("/v1/responses", {"tools": [{"type": "function", "name": "shell", "parameters": SCHEMA}]}),
    "chat": ("/v1/chat/completions", {"tools": [{"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}]}),
    "gemini": ("/v1beta/models/m:generateContent", {"tools": FUNCTIONS}),
    "gemini-stream": ("/v1beta/models/m:streamGenerateContent?alt=sse", {"tools": FUNCTIONS}),
}


@pytest.fixture
def name(tmp_path: Path) -> str:
    """A client of this test's own."""
    return tmp_path.name


def ask(url: str, dialect: str, more: Json, timeout_s: float = 10) -> tuple[int, str]:
    """Ask for a turn, and return its status and its body."""
    address = urlsplit(url)
    path, body = ASKED[dialect]
    connection = HTTPConnection(address.netloc, timeout=timeout_s)
    try:
        connection.request("POST", address.path + path, json.dumps(body | more))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("dialect", ASKED)
@pytest.mark.parametrize("stream", [False, True])
def test_every_dialect_calls_the_shell_and_then_answers(api: ModelApi, name: str, dialect: str, stream: bool) -> None:
    url = api.url("tool", name)

    calls, answers = ask(url, dialect, {"stream": stream}), ask(url, dialect, {"stream": stream})

    assert calls[0] == answers[0] == 200
    assert "touch made-by-a-tool" in calls[1]
    assert all(word in answers[1] for word in WORDS.split())
    assert [(request.number, request.did) for request in api.requests(name)] == [(1, "use"), (2, "say")]


@pytest.mark.parametrize("dialect", ASKED)
def test_a_request_without_tools_is_answered_off_the_script(api: ModelApi, name: str, dialect: str) -> None:
    status, _ = ask(api.url("limit", name), dialect, {"tools": []})

    assert status == 200
    assert api.scripted(name) == []


def test_a_limit_may_last_for_ever_or_end_after_two(api: ModelApi, name: str) -> None:
    for_ever = [ask(api.url("limit", f"{name}-a"), "chat", {})[0] for _ in range(4)]
    twice = [ask(api.url("limit-twice", f"{name}-b"), "chat", {})[0] for _ in range(4)]

    assert (for_ever, twice) == ([429] * 4, [429, 429, 200, 200])


@pytest.mark.parametrize("scenario", ["stall", "hang"])
@pytest.mark.parametrize("stream", [False, True])
def test_who_hangs_up_on_a_silence_is_written_down(api: ModelApi, name: str, scenario: str, stream: bool) -> None:
    with pytest.raises(TimeoutError):
        ask(api.url(scenario, name), "anthropic", {"stream": stream}, timeout_s=0.5)

    wait_for(lambda: [request.ended for request in api.requests(name)] == ["hung up"], 10, "that to be written down")


@pytest.mark.parametrize("scenario", ["reset", "reset-mid-stream"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_connection_is_reset(api: ModelApi, name: str, scenario: str, stream: bool) -> None:
    with pytest.raises(ConnectionResetError):
        ask(api.url(scenario, name), "anthropic", {"stream": stream})


def test_whoever_is_meant_for_somebody_else_is_refused_and_written_down(api: ModelApi) -> None:
    address = urlsplit(api.address)
    connection = HTTPConnection(address.netloc, timeout=10)
    connection.set_tunnel("somewhere.invalid", 443)

    with pytest.raises(OSError, match="403"):
        connection.request("GET", "/")

    assert "somewhere.invalid:443" in [request.path for request in api.requests("outside")]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_is_served_to_who_asks_first(api: ModelApi, name: str, scenario: str) -> None:
    try:
        ask(api.url(scenario, name), "chat", {}, timeout_s=0.2)
    except (TimeoutError, ConnectionResetError):
        pass

    wait_for(lambda: [bool(request.ended) for request in api.scripted(name)] == [True], 10, "it to be over")


def test_it_ends_with_its_parent_whoever_still_listens(tmp_path: Path) -> None:
    served = subprocess.Popen(
        [sys.executable, "-m", "tests.real.model_api", str(tmp_path / "log")],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert served.stdin is not None
    assert served.stdout is not None
    address = urlsplit(served.stdout.readline().decode().strip())
    listener = HTTPConnection(address.netloc, timeout=10)
    listener.request("POST", "/s/hang/any/v1/messages", json.dumps(ASKED["anthropic"][1]))

    served.stdin.close()  # as the kernel does for a parent that died

    assert served.wait(timeout=10) == 0
    served.stdout.close()
    listener.close()
