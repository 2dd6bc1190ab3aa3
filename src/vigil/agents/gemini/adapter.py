"""Gemini CLI: how it starts with hooks and a known conversation, and how its terminal looks (0.61)."""

from __future__ import annotations

import json
from shlex import join

from vigil.agents.contract import Adapter, Beginning, Dialog, Start
from vigil.agents.flags import NO_HOOKS, after_program, left_alone, named_by, unheard
from vigil.agents.gemini.hooks import read_hook
from vigil.agents.gemini.stream import read_stream
from vigil.agents.gemini.transcript import read_entry, transcripts

OTHER_WORK = "mcp extensions extension skills skill hooks hook gemma"
CONVERSATION = ("--resume", "-r", "--session-id", "--session-file", "--list-sessions", "--delete-session")
SETTINGS = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"  # below the user's and the system's settings: hooks of all of them run
SETTINGS_FILE = "gemini-hooks.json"
HOOK_EVENTS = ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "Notification", "AfterAgent", "SessionEnd")


def begin(beginning: Beginning) -> Start:
    """Return the start with hooks and a conversation id."""
    command = beginning.command
    if alone := left_alone("gemini", command, OTHER_WORK):
        return alone
    conversation, chosen = named_by("--resume" if beginning.resume else "--session-id", beginning, CONVERSATION)
    streams = any(said.endswith("stream-json") for said in command)
    env, files, without = _hooks(beginning)
    return Start(
        after_program(beginning, conversation),
        env=env,
        files=files,
        conversation=beginning.conversation if conversation else "",
        without=(*chosen, *without, *unheard(beginning, streams, "--output-format stream-json")),
        unresumed="".join(chosen),
    )


def _hooks(beginning: Beginning) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Return what makes hooks run: a settings file of this launch, which the environment names."""
    env = beginning.place.env
    if not beginning.hook:
        return {}, {}, (NO_HOOKS,)
    if env.get(SETTINGS):
        return {}, {}, (f"hooks: {SETTINGS} is set already",)
    if env.get("HOME") != "/root":  # Gemini takes the file only if root owns it and all folders above, else it warns
        return {}, {}, ("hooks: gemini takes them only from files that root owns",)
    handler = {"name": "vigil", "type": "command", "command": join(beginning.hook)}
    settings = {"hooks": {event: [{"hooks": [handler]}] for event in HOOK_EVENTS}}
    files = {SETTINGS_FILE: json.dumps(settings, indent=1)}
    unsure = "hooks: gemini runs them only in a folder it trusts"
    return {SETTINGS: f"{beginning.folder}/{SETTINGS_FILE}"}, files, (unsure,)


ADAPTER = Adapter(
    "gemini",
    command=("gemini",),
    processes=("gemini", "node"),
    packages=("@google/gemini-cli",),
    begin=begin,
    read_hook=read_hook,
    read_stream=read_stream,
    read_entry=read_entry,
    transcripts=transcripts,
    dialogs=(
        Dialog("trust", ("Do you trust the files in this folder?",)),
        Dialog("permission", ("Allow once", "No, suggest changes")),
        Dialog("login", ("How would you like to authenticate for this project?",)),
    ),
    composer=(r"Type your message or @path/to/file",),
    submits=True,
    resumes=True,
    terminal=True,
    has_hooks=True,
    identity=(
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_GEMINI_BASE_URL",
        "GEMINI_CLI_HOME",
        "GOOGLE_GENAI_USE_VERTEXAI",
    ),
)
