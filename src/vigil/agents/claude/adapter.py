"""Claude Code: how it starts with hooks and a known conversation, and where its files lie (2.1.112 to 2.1.325).

Hooks come in a settings file of the launch, which Claude Code merges with the user's own: we touch no file of theirs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from glob import escape
from shlex import join
from typing import Any

from vigil.agents.claude.hooks import read_hook
from vigil.agents.claude.stream import read_stream
from vigil.agents.claude.transcript import read_entry
from vigil.agents.contract import Adapter, Beginning, Dialog, Place, Start
from vigil.agents.flags import BAD_ID, NO_HOOKS, NOT_RESUMED, Command, before_end, folder, given, is_id, left_alone
from vigil.kernel.theirs import read_text

UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
OTHER_WORK = (
    "agents attach auth auto-mode daemon doctor gateway help import install kill logs mcp plugin plugins purge respawn rm"
    " setup-token stop ultrareview update upgrade"
)
CONVERSATION = ("--resume", "-r", "--continue", "-c", "--session-id", "--from-pr", "--teleport", "--cloud")
HOOKS_OFF = ("--bare", "--safe-mode")
HOOKS_OFF_ENV = ("CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE")
SETTINGS = "--settings"
SETTINGS_FILE = "claude-settings.json"
SETTINGS_BYTES = 1 << 20
HOOK_TIMEOUT_S = 5
# Only names that 2.1.112 knows: in a terminal it stops with a dialog at an unknown one.
HOOK_EVENTS = (
    "SessionStart SessionEnd UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure PermissionRequest PermissionDenied"
    " Notification Elicitation ElicitationResult Stop StopFailure SubagentStart SubagentStop PreCompact PostCompact"
)
PERMISSION = "PermissionRequest"
ANSWERS = ("--permission-prompt-tool",)  # without one, a headless run denies instead of asking
PROJECT_CHARS = 200  # Claude Code cuts a longer name here, and adds a hash of the folder
OTHER = re.compile(r"[^a-zA-Z0-9]")


def begin(beginning: Beginning) -> Start:
    """Return the start with hooks, a conversation id and a stream that shows signs of life."""
    command = beginning.command
    if alone := left_alone("claude", command, OTHER_WORK):
        return alone
    chosen, conversation, not_chosen = _conversation(beginning)
    command, files, no_hooks = _with_hooks(beginning)
    streams, no_stream = _stream(beginning)
    return Start(
        # Right behind the program: at the end, a flag that takes many values could swallow ours.
        (command[0], *chosen, *streams, *command[1:]),
        files=files,
        conversation=conversation,
        converses=beginning.headless and _value(beginning.command, "--input-format") == "stream-json",
        without=(*not_chosen, *no_hooks, *no_stream),
        unresumed="".join(not_chosen),
    )


def _conversation(beginning: Beginning) -> tuple[Command, str, Command]:
    """Return the flags that name the conversation, its id if known, and what is missing."""
    if given(beginning.command, *CONVERSATION):
        return (), _named(beginning.command), (NOT_RESUMED,) if beginning.resume else ()
    if not UUID.fullmatch(beginning.conversation):
        return (), "", (BAD_ID,) if beginning.resume else ()
    flag = "--resume" if beginning.resume else "--session-id"
    return (flag, beginning.conversation), beginning.conversation, ()


def _named(command: Command) -> str:
    """Return the id that a command names itself, if the conversation goes on under it."""
    value = _value(command, "--session-id") or _value(command, "--resume") or _value(command, "-r")
    return value if UUID.fullmatch(value) and not given(command, "--fork-session") else ""


def _value(command: Command, flag: str) -> str:
    """Return the value of a flag; empty if it is absent, or has none."""
    words = before_end(command)
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == flag:
            return following
        if word.startswith(f"{flag}="):
            return word.removeprefix(f"{flag}=")
    return ""


def _with_hooks(beginning: Beginning) -> tuple[Command, Mapping[str, str], Command]:
    """Return the command with hooks, their file, and why there are none."""
    command, env = beginning.command, beginning.place.env
    if not beginning.hook:
        return command, {}, (NO_HOOKS,)
    off = next((flag for flag in HOOKS_OFF if given(command, flag)), "")
    off = off or next((name for name in HOOKS_OFF_ENV if env.get(name, "0") not in ("", "0", "false")), "")
    if off:
        return command, {}, (f"hooks: {off} turns them off",)
    path = f"{beginning.folder}/{SETTINGS_FILE}"
    if not given(command, SETTINGS):
        return (command[0], SETTINGS, path, *command[1:]), _files({"hooks": _hooks(beginning)}), ()
    theirs = _their_settings(beginning)
    if theirs is None:
        return command, {}, ("hooks: the settings that the command names could not be read",)
    return _replaced(command, path), _files(_merged(theirs, _hooks(beginning))), ()


def _hooks(beginning: Beginning) -> dict[str, Any]:
    handler = {"type": "command", "command": join(beginning.hook), "timeout": HOOK_TIMEOUT_S}
    printing = given(beginning.command, "-p", "--print") and not given(beginning.command, *ANSWERS)
    return {event: [{"hooks": [handler]}] for event in HOOK_EVENTS.split() if not (printing and event == PERMISSION)}


def _files(settings: dict[str, Any]) -> dict[str, str]:
    return {SETTINGS_FILE: json.dumps(settings, indent=1)}


def _their_settings(beginning: Beginning) -> dict[str, Any] | None:
    """Return the settings that the command names, inline or by file: our copy must hold both."""
    named = _value(beginning.command, SETTINGS)
    try:
        inline = named.lstrip().startswith("{")
        settings = json.loads(named if inline else _read(os.path.join(beginning.place.cwd, named)))
    except (OSError, ValueError, RecursionError):
        return None
    once = sum(word.split("=")[0] == SETTINGS for word in beginning.command) == 1
    return settings if once and isinstance(settings, dict) and isinstance(settings.get("hooks", {}), dict) else None


def _read(path: str) -> str:
    """Read a settings file, the only file this adapter reads; a too long one reads as broken."""
    return read_text(path, SETTINGS_BYTES)


def _merged(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    hooks = dict(theirs.get("hooks", {}))
    for event, added in ours.items():
        hooks[event] = [*(hooks[event] if isinstance(hooks.get(event), list) else []), *added]
    return {**theirs, "hooks": hooks}


def _replaced(command: Command, path: str) -> Command:
    """Return the command with its settings replaced by our copy."""
    at = next(number for number, word in enumerate(command) if word.split("=")[0] == SETTINGS)
    kept = 1 if "=" in command[at] else 2
    return (*command[:at], SETTINGS, path, *command[at + kept :])


def _stream(beginning: Beginning) -> tuple[Command, Command]:
    """Return the flags a stream still needs: while a message comes, only its parts show life."""
    command = beginning.command
    if not beginning.headless and not given(command, "-p", "--print"):
        return (), ()
    if _value(command, "--output-format") != "stream-json":
        return (), ("stream: it is not asked for with -p --output-format stream-json",)
    wanted = ("--verbose", "--include-partial-messages")
    return tuple(flag for flag in wanted if not given(command, flag)), ()


def transcripts(place: Place, conversation: str) -> tuple[str, ...]:
    """Return where a conversation's files lie: its own, then its sub-agents'."""
    home = folder(place, "CLAUDE_CONFIG_DIR", ".claude")
    if not home or not is_id(conversation):
        return ()
    name = project_of(place.cwd)
    name = name if len(name) <= PROJECT_CHARS else f"{name[:PROJECT_CHARS]}-*"
    project = f"{escape(home)}/projects/{name}"
    return (f"{project}/{conversation}.jsonl", f"{project}/{conversation}/subagents/agent-*.jsonl")


def project_of(cwd: str) -> str:
    """Return the name of a folder's project: its path, with - for all but letters and digits."""
    # Claude Code counts in UTF-16, where a character beyond the first plane takes two.
    return OTHER.sub(lambda found: "--" if found[0] > "\uffff" else "-", cwd.rstrip("/") or cwd)


ADAPTER = Adapter(
    "claude",
    command=("claude",),
    processes=("claude", "claude.exe"),
    packages=("@anthropic-ai/claude-code",),
    begin=begin,
    read_hook=read_hook,
    read_stream=read_stream,
    read_entry=read_entry,
    transcripts=transcripts,
    dialogs=(
        Dialog("trust", ("Accessing workspace:", "Yes, I trust this folder")),
        Dialog("onboarding", ("Choose the text style that looks best with your terminal",)),
        Dialog("login", ("Select login method:",)),
        Dialog("api-key", ("Detected a custom API key in your environment",)),
        Dialog("auto-mode", ("Make auto mode your default permission mode?",)),
        Dialog("bypass-permissions", ("WARNING: Claude Code running in Bypass Permissions mode", "Yes, I accept")),
        Dialog("mcp-server", ("New MCP server found in this project:",)),
        Dialog("settings-error", ("Settings Error", "Enter to confirm")),
        Dialog("permission", ("Do you want to", " 1. Yes", "Esc to cancel")),  # with any choice marked
    ),
    composer=(r"(?m)^─{10,}\s*\n❯",),  # earlier prompts, and a dialog's choices, do not stand below a line
    draft=(r"^─{10,}\s*\n❯[ \xa0]+\S", 2),
    submits=True,
    resumes=True,
    terminal=True,
    has_hooks=True,
    identity=(
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CONFIG_DIR",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "AWS_PROFILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_REGION",
        "ANTHROPIC_VERTEX_PROJECT_ID",
    ),
)
