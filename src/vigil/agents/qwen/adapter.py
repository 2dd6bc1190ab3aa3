"""Qwen Code: how it is started (0.15.10)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from shlex import join

from vigil.agents.claude.adapter import UUID
from vigil.agents.contract import Adapter, Beginning, Dialog, Place, Start
from vigil.agents.flags import NO_HOOKS, Command, after_program, folder, given, left_alone, named_by
from vigil.agents.qwen.hooks import read_hook
from vigil.agents.qwen.stream import read_stream
from vigil.agents.qwen.transcript import read_entry, transcripts

OTHER_WORK = "mcp extensions auth hooks hook channel review"
CONVERSATION = ("--resume", "-r", "--continue", "-c", "--session-id")
# Qwen's lowest settings file: the machine's and the user's stay as they are, and the hooks of all of them run.
DEFAULTS = "QWEN_CODE_SYSTEM_DEFAULTS_PATH"
SYSTEM = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
SYSTEM_SETTINGS = "/etc/qwen-code/settings.json"
SETTINGS_FILE = "qwen-settings.json"
HOOK_TIMEOUT_MS = 5000
HOOK_EVENTS = (
    "SessionStart SessionEnd UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure PermissionRequest Notification Stop"
    " StopFailure SubagentStart SubagentStop PreCompact PostCompact"
)


def begin(beginning: Beginning) -> Start:
    """Return the start with hooks, a conversation id and, when headless, events as JSON."""
    command = beginning.command
    if alone := left_alone("qwen", command, OTHER_WORK):
        return alone
    chosen, not_chosen = named_by("--resume" if beginning.resume else "--session-id", beginning, CONVERSATION, UUID)
    env, files, no_hooks = _hooks(beginning)
    return Start(
        after_program(beginning, (*chosen, *_stream(beginning))),
        env=env,
        files=files,
        conversation=beginning.conversation if chosen else "",
        without=(*not_chosen, *no_hooks),
        unresumed="".join(not_chosen),
    )


def _stream(beginning: Beginning) -> Command:
    command = beginning.command
    if not beginning.headless:
        return ()
    asked = given(command, "-o", "--output-format")
    streams = not asked or "stream-json" in command or any(word.endswith("=stream-json") for word in command)
    parts = ("--include-partial-messages",) if streams and not given(command, "--include-partial-messages") else ()
    return parts if asked else ("-o", "stream-json", *parts)


def _hooks(beginning: Beginning) -> tuple[Mapping[str, str], Mapping[str, str], Command]:
    """Return the environment and the file that make hooks run, and why they may not."""
    env = beginning.place.env
    theirs = env.get(DEFAULTS) or os.path.join(os.path.dirname(env.get(SYSTEM) or SYSTEM_SETTINGS), "system-defaults.json")
    if not beginning.hook:
        return {}, {}, (NO_HOOKS,)
    if given(beginning.command, "--bare"):
        return {}, {}, ("hooks: --bare turns them off",)
    if os.path.exists(theirs):  # Qwen reads only one such file
        return {}, {}, (f"hooks: this machine has defaults of its own in {theirs}",)
    handler = {"type": "command", "name": "vigil", "command": join(beginning.hook), "timeout": HOOK_TIMEOUT_MS}
    settings = {"hooks": {event: [{"hooks": [handler]}] for event in HOOK_EVENTS.split()}}
    files = {SETTINGS_FILE: json.dumps(settings, indent=1)}
    return {DEFAULTS: f"{beginning.folder}/{SETTINGS_FILE}"}, files, _unsure(beginning.place)


def _unsure(place: Place) -> Command:
    """Warn where Qwen may skip our hooks: it merges all settings unless user and project both have hooks."""
    both = (f"{folder(place, 'QWEN_HOME', '.qwen')}/settings.json", f"{place.cwd}/.qwen/settings.json")
    if all(os.path.exists(path) for path in both):
        return ("hooks: qwen runs them unless both the user's and the project's settings have some",)
    return ()


ADAPTER = Adapter(
    "qwen",
    command=("qwen",),
    processes=("qwen", "node"),
    packages=("@qwen-code/qwen-code",),
    begin=begin,
    read_hook=read_hook,
    read_stream=read_stream,
    read_entry=read_entry,
    transcripts=transcripts,
    dialogs=(
        Dialog("trust", ("Do you trust this folder?", "Trust folder")),
        Dialog("permission", ("Waiting for user confirmation...",)),
        Dialog("permission", ("Yes, allow once",)),
    ),
    composer=(r"(?m)^>\s+Type your message or @path/to/file",),
    submits=True,
    resumes=True,
    terminal=True,
    has_hooks=True,
    identity=("OPENAI_API_KEY", "OPENAI_BASE_URL", "DASHSCOPE_API_KEY", "QWEN_HOME"),
)
