"""Which agent a command starts: by its program, behind launchers, shells and scripts; and where our flags go then."""

from __future__ import annotations

from pathlib import Path

import pytest

from vigil.agents import kind_of
from vigil.agents.adapters import ADAPTERS
from vigil.agents.contract import Beginning, Place

CONVERSATION = "0b0f1c1e-3f4a-4c57-9b2e-6a7d8e9f0a1b"


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("claude", "claude"),
        ("/opt/bin/claude -p hi", "claude"),
        ("./codex exec hi", "codex"),
        ("env A=1 B=2 codex", "codex"),
        ("env -u HOME -i PATH=/bin gemini", "gemini"),
        ("nice -n 5 nohup opencode", "opencode"),
        ("timeout -k 5 1h qwen", "qwen"),
        ("npx @anthropic-ai/claude-code", "claude"),
        ("npx -y @openai/codex@0.166.0 exec hi", "codex"),
        ("npx --package=@google/gemini-cli gemini", "gemini"),
        ("npx -p @google/gemini-cli gemini", "gemini"),
        ("npm exec -- @qwen-code/qwen-code", "qwen"),
        ("pnpm dlx opencode-ai", "opencode"),
        ("bunx @mariozechner/pi-coding-agent", "pi"),
        ("node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js", "claude"),
        ("uvx --from claude-tools claude", "claude"),
        ("sh -c exec\\ claude\\ -p\\ hi", "claude"),
        ("bash -lc codex", "codex"),
        ("mine --fast", "mine"),
        ("sh -c claude;\\ sleep\\ 5", "generic"),
        ("sh -c true", "generic"),
        ("sleep 300", "generic"),
        ("python3 claude.py", "generic"),
        ("claude-notes", "generic"),
        ("echo claude", "generic"),
        ("env", "generic"),
        ("npx", "generic"),
    ],
)
def test_the_agent_is_known_by_its_program(command: str, kind: str, tmp_path: Path) -> None:
    import shlex

    assert kind_of(tuple(shlex.split(command)), {"mine": Configured()}, Place(str(tmp_path), {"PATH": ""})) == kind


class Configured:
    command = ("mine",)
    process = ()


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ('#!/bin/sh\nexport A=1\nexec claude --model opus "$@"\n', "claude"),
        ("#!/usr/bin/env bash\nset -eu\nexec env B=2 \\\n  codex\n", "codex"),
        ("#!/bin/sh\nexec >log\nclaude\n", "generic"),
        ("#!/usr/bin/python3\nexec claude\n", "generic"),
        ("#!/bin/sh\nexec ./itself\n", "generic"),
        ('#!/bin/sh\nexec "unclosed\n', "generic"),
    ],
)
def test_a_script_is_the_agent_that_it_becomes(script: str, kind: str, tmp_path: Path) -> None:
    wrapper = tmp_path / "itself"
    wrapper.write_text(script)
    wrapper.chmod(0o755)

    assert kind_of(("./itself",), {}, Place(str(tmp_path), {"PATH": ""})) == kind
    assert kind_of(("itself",), {}, Place(str(tmp_path), {"PATH": str(tmp_path)})) == kind


def start(command: tuple[str, ...], cwd: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    beginning = Beginning(command, Place(str(cwd), {"PATH": ""}), "/launch", False, CONVERSATION, hook=("hook",))
    begun = ADAPTERS["claude"].start(beginning)
    return begun.command, begun.without


FLAGS = ("--session-id", CONVERSATION, "--settings", "/launch/claude-settings.json")


@pytest.mark.parametrize(
    "head",
    [("claude",), ("env", "A=1", "claude"), ("npx", "-y", "@anthropic-ai/claude-code"), ("npm", "exec", "claude", "--")],
)
def test_our_flags_stand_right_behind_the_agents_program(head: tuple[str, ...], tmp_path: Path) -> None:
    assert start((*head, "hi"), tmp_path) == ((*head, *FLAGS, "hi"), ())


def test_a_script_that_hands_its_arguments_on_hands_on_ours(tmp_path: Path) -> None:
    wrapper = tmp_path / "mine"
    wrapper.write_text('#!/bin/sh\nexec claude "$@"\n')
    wrapper.chmod(0o755)

    assert start(("./mine", "hi"), tmp_path) == (("./mine", *FLAGS, "hi"), ())


@pytest.mark.parametrize("command", [("npm", "exec", "claude"), ("sh", "-c", "claude"), ("./mine",)])
def test_where_nothing_can_be_added_the_start_says_so(command: tuple[str, ...], tmp_path: Path) -> None:
    wrapper = tmp_path / "mine"
    wrapper.write_text('#!/bin/sh\nexec claude --verbose "$@" </dev/null\n')
    wrapper.chmod(0o755)

    begun, without = start(command, tmp_path)

    assert begun == command
    assert without and without[0].startswith("flags, hooks, resume:")
