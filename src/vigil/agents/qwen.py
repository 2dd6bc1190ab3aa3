"""Qwen Code: what its stream, its hooks and its transcripts say, and how it is started (0.15.10).

Its stream and its hooks are those of Claude Code but for what stands here. It calls errors results, and success: an error is
known by its words at the end. While it tries again, its stream says nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from glob import escape
from shlex import join

from vigil.agents import claude_hooks, claude_stream
from vigil.agents.claude import UUID, project_of
from vigil.agents.claude_stream import ALIVE, Reader
from vigil.agents.contract import Adapter, Beginning, Dialog, Place, Start
from vigil.agents.flags import BAD_ID, NO_HOOKS, NOT_RESUMED, Command, after_program, folder, given, is_id, is_own, wrapped
from vigil.agents.shapes import Json, count, event_name, flag, moment, number, rows, table, text, word, words
from vigil.agents.walls import wall
from vigil.core.model.speech import Said, Usage, What

ERROR = "[API Error: "
STATUS = re.compile(r"\d{3}\b")
OTHER_WORK = frozenset({"mcp", "extensions", "auth", "hooks", "hook", "channel", "review"})
CONVERSATION = ("--resume", "-r", "--continue", "-c", "--session-id")
# The lowest of its settings: the machine's and the user's stay what they are, and the hooks of all of them run.
DEFAULTS = "QWEN_CODE_SYSTEM_DEFAULTS_PATH"
SYSTEM = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
SYSTEM_SETTINGS = "/etc/qwen-code/settings.json"
SETTINGS_FILE = "qwen-settings.json"
HOOK_TIMEOUT_MS = 5000
HOOK_EVENTS = (
    "SessionStart SessionEnd UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure PermissionRequest Notification Stop"
    " StopFailure SubagentStart SubagentStop PreCompact PostCompact"
)


def read_hook(payload: Json) -> Iterable[Said]:
    """Return what one payload says; after each tool it submits a prompt without words, which nobody gave it."""
    if event_name(payload) == "UserPromptSubmit" and not text(payload, "prompt"):
        payload = {**payload, "source": "system"}
    return claude_hooks.read_hook(payload)


def read_stream(event: Json) -> Iterable[Said]:
    """Return what one line says."""
    return STREAM.get(text(event, "type"), claude_stream.read_stream)(event)


def _result(event: Json) -> Iterable[Said]:
    said = text(event, "result") or text(table(event, "error"), "message")
    error = _error_in(said)
    failed = bool(error) or flag(event, "is_error")
    why = words(error or said) if failed else ""
    conversation, usage = word(event, "session_id"), _usage(table(event, "usage"))
    result = Said(What.RESULT, text=why, conversation=conversation, usage=usage, failed=failed)
    ended_by = wall("", _status(error), error, moment(event, "timestamp"))
    return (result, ended_by) if ended_by.what is not What.ERROR else (result,)


def _error_in(said: str) -> str:
    """Return the error that an answer ends with; an agent may well write about errors elsewhere in it."""
    return said[said.rfind(ERROR) :].strip() if ERROR in said and said.rstrip().endswith("]") else ""


def _status(error: str) -> float | None:
    found = STATUS.match(error, len(ERROR))
    return float(found[0]) if found else None


def _usage(usage: Json) -> Usage:
    cached = count(usage, "cache_read_input_tokens")  # of the input, as others than Claude count
    return Usage(count(usage, "input_tokens"), count(usage, "output_tokens"), cached)


def _system(event: Json) -> Iterable[Said]:
    return SUBTYPES.get(text(event, "subtype"), claude_stream.read_stream)(event)


def _task_started(event: Json) -> Iterable[Said]:
    data = table(event, "data")
    kind = word(data, "subagent_type")
    return (Said(What.SUBAGENT_STARTED, name=kind, id=word(data, "task_id")),) if kind else ALIVE


def _task_told(event: Json) -> Iterable[Said]:
    data = table(event, "data")
    status = word(data, "status")
    if status not in claude_stream.ENDED_TASKS | {"cancelled"}:
        return ALIVE
    return (Said(What.SUBAGENT_ENDED, id=word(data, "task_id"), text=status, failed=status != "completed"),)


def _session_start(event: Json) -> Iterable[Said]:
    return (Said(What.STARTED, conversation=word(event, "session_id")),)


def _session_end(event: Json) -> Iterable[Said]:
    return (Said(What.ENDED, conversation=word(event, "session_id")),)


SUBTYPES: dict[str, Reader] = {
    "task_started": _task_started,
    "task_notification": _task_told,
    "session_start": _session_start,
    "session_end": _session_end,
}
STREAM: dict[str, Reader] = {"result": _result, "system": _system}


def read_entry(entry: Json) -> Iterable[Said]:
    """Return what one line of a transcript says."""
    at, subagent = moment(entry, "timestamp"), word(entry, "agentId")
    said = ENTRIES.get(text(entry, "type"), _unknown_entry)(entry)
    return [replace(one, at=at, subagent=subagent) for one in said]


def _unknown_entry(entry: Json) -> Iterable[Said]:
    return (Said(What.UNKNOWN, name=word(entry, "type")),)


def _prompt(_entry: Json) -> Iterable[Said]:
    return (Said(What.PROMPT),)


def _answer(entry: Json) -> Iterable[Said]:
    """A message is written whole; one that calls no tool ends the turn."""
    usage = table(entry, "usageMetadata")
    used = Usage(
        count(usage, "promptTokenCount"),
        count(usage, "candidatesTokenCount") + count(usage, "thoughtsTokenCount"),
        count(usage, "cachedContentTokenCount"),
    )
    calls = [table(part, "functionCall") for part in rows(table(entry, "message"), "parts") if "functionCall" in part]
    started = [Said(What.TOOL_STARTED, name=word(call, "name"), id=word(call, "id")) for call in calls]
    first, *rest = started or [Said(What.TURN_ENDED)]
    return (replace(first, usage=used), *rest)


def _tool_result(entry: Json) -> Iterable[Said]:
    result = table(entry, "toolCallResult")
    answers = [table(part, "functionResponse") for part in rows(table(entry, "message"), "parts")]
    name = next((word(answer, "name") for answer in answers), "")
    return (Said(What.TOOL_ENDED, name=name, id=word(result, "callId"), failed=result.get("status") != "success"),)


def _entry_system(entry: Json) -> Iterable[Said]:
    subtype = text(entry, "subtype")
    if subtype == "ui_telemetry":
        return _telemetry(table(table(entry, "systemPayload"), "uiEvent"))
    what = ENTRY_SUBTYPES.get(subtype, What.UNKNOWN)
    return (Said(what, name=f"system/{word(entry, 'subtype')}" if what is What.UNKNOWN else ""),)


def _telemetry(told: Json) -> Iterable[Said]:
    """Only here it shows that the model did not answer."""
    if told.get("event.name") != "qwen-code.api_error":
        return ALIVE
    status = number(told, "status_code")
    why = f"status {status:.0f}" if status else "no answer"
    return (Said(What.RETRIES, name=word(told, "error_type"), text=why),)


ENTRY_SUBTYPES: dict[str, What] = {
    "chat_compression": What.COMPACTED,
    "at_command": What.ALIVE,
    "attribution_snapshot": What.ALIVE,
    "custom_title": What.ALIVE,
    "rewind": What.ALIVE,
    "slash_command": What.ALIVE,
}
ENTRIES: dict[str, Reader] = {"user": _prompt, "assistant": _answer, "tool_result": _tool_result, "system": _entry_system}


def transcripts(place: Place, conversation: str) -> tuple[str, ...]:
    """Return where the files of a conversation lie: its own, then those of its sub-agents."""
    home = folder(place, "QWEN_RUNTIME_DIR", "") if place.env.get("QWEN_RUNTIME_DIR") else folder(place, "QWEN_HOME", ".qwen")
    if not home or not is_id(conversation):
        return ()
    project = f"{escape(home)}/projects/{project_of(place.cwd)}"
    return (f"{project}/chats/{conversation}.jsonl", f"{project}/subagents/{conversation}/agent-*.jsonl")


def begin(beginning: Beginning) -> Start:
    """Return how it is started: with hooks, with an id for its conversation, and headless with its events as JSON."""
    command = beginning.command
    if not is_own(ADAPTER, command):
        return Start(command, without=(wrapped(ADAPTER, command),))
    if command[1:2] and command[1] in OTHER_WORK:
        return Start(command, without=(f"flags, hooks, resume: qwen {command[1]} is no session",))
    chosen, not_chosen = _conversation(beginning)
    env, files, no_hooks = _hooks(beginning)
    return Start(
        after_program(beginning, (*chosen, *_stream(beginning))),
        env=env,
        files=files,
        conversation=beginning.conversation if chosen else "",
        without=(*not_chosen, *no_hooks),
    )


def _conversation(beginning: Beginning) -> tuple[Command, Command]:
    """Return the flags that name the conversation, or what is missing."""
    if given(beginning.command, *CONVERSATION):
        return (), (NOT_RESUMED,) if beginning.resume else ()
    if not UUID.fullmatch(beginning.conversation):
        return (), (BAD_ID,) if beginning.resume else ()
    return ("--resume" if beginning.resume else "--session-id", beginning.conversation), ()


def _stream(beginning: Beginning) -> Command:
    command = beginning.command
    if not beginning.headless:
        return ()
    asked = given(command, "-o", "--output-format")
    streams = not asked or "stream-json" in command or any(word.endswith("=stream-json") for word in command)
    parts = ("--include-partial-messages",) if streams and not given(command, "--include-partial-messages") else ()
    return parts if asked else ("-o", "stream-json", *parts)


def _hooks(beginning: Beginning) -> tuple[Mapping[str, str], Mapping[str, str], Command]:
    """Return the environment and the file that make hooks run, and why there are none."""
    env = beginning.place.env
    theirs = env.get(DEFAULTS) or os.path.join(os.path.dirname(env.get(SYSTEM) or SYSTEM_SETTINGS), "system-defaults.json")
    if not beginning.hook:
        return {}, {}, (NO_HOOKS,)
    if given(beginning.command, "--bare"):
        return {}, {}, ("hooks: --bare turns them off",)
    if os.path.exists(theirs):  # only one such file is read
        return {}, {}, (f"hooks: this machine has defaults of its own in {theirs}",)
    handler = {"type": "command", "name": "vigil", "command": join(beginning.hook), "timeout": HOOK_TIMEOUT_MS}
    settings = {"hooks": {event: [{"hooks": [handler]}] for event in HOOK_EVENTS.split()}}
    files = {SETTINGS_FILE: json.dumps(settings, indent=1)}
    return {DEFAULTS: f"{beginning.folder}/{SETTINGS_FILE}"}, files, _unsure(beginning.place)


def _unsure(place: Place) -> Command:
    """It takes hooks either from what the user and the project have, or from all together: one of the two must have none."""
    both = (f"{folder(place, 'QWEN_HOME', '.qwen')}/settings.json", f"{place.cwd}/.qwen/settings.json")
    if all(os.path.exists(path) for path in both):
        return ("hooks: qwen runs them unless both the user's and the project's settings have some",)
    return ()


ADAPTER = Adapter(
    "qwen",
    command=("qwen",),
    processes=("qwen", "node"),
    programs=("qwen",),
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
    identity=(
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "DASHSCOPE_API_KEY",
        "QWEN_HOME",
    ),
)
