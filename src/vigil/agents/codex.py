"""Codex: what its `exec --json`, its hooks and its rollout files say, and how it is started (0.166).

What it costs is told for the whole conversation, also after a resume. An `item` that is an `error` is a mere warning; an `error`
that says "Reconnecting" is a retry. Hooks are given on its command line, where they join the user's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import partial
from glob import escape
from hashlib import sha256
from shlex import join

from vigil.agents import claude_hooks
from vigil.agents.adapter import Adapter, Beginning, Dialog, Place, Start
from vigil.agents.flags import BAD_ID, NOT_RESUMED, Command, after_program, folder, given, is_id, is_own, wrapped
from vigil.agents.shapes import Json, count, declared, event_name, flag, moment, number, rows, table, text, word, words
from vigil.agents.walls import wall
from vigil.core.said import Said, Usage, What

Reader = Callable[[Json], Iterable[Said]]

ALIVE = (Said(What.ALIVE),)
RETRIES = re.compile(r"Reconnecting\.\.\.|Reconnecting…")
STATUS = re.compile(r"\bstatus:? (\d{3})\b")
FAILED = frozenset({"failed", "declined", "errored"})


# The stream -------------------------------------------------------------------------------------------------------------------


def read_stream(event: Json) -> Iterable[Said]:
    """Return what one line of `exec --json` says."""
    return STREAM.get(text(event, "type"), _unknown)(event)


def _unknown(event: Json) -> Iterable[Said]:
    return (Said(What.UNKNOWN, name=word(event, "type")),)


def _alive(_event: Json) -> Iterable[Said]:
    return ALIVE


def _thread_started(event: Json) -> Iterable[Said]:
    return (Said(What.STARTED, conversation=word(event, "thread_id")),)


def _turn_started(_event: Json) -> Iterable[Said]:
    return (Said(What.TURN_STARTED),)


def _turn_completed(event: Json) -> Iterable[Said]:
    return (Said(What.RESULT, usage=_usage(table(event, "usage"))),)


def _usage(tokens: Json) -> Usage:
    return Usage(
        count(tokens, "input_tokens"), count(tokens, "output_tokens"), count(tokens, "cached_input_tokens"), so_far=True
    )


def _turn_failed(event: Json) -> Iterable[Said]:
    said = text(table(event, "error"), "message")
    return (*_walls(said, None), Said(What.RESULT, text=words(said), failed=True))


def _error(event: Json) -> Iterable[Said]:
    said = text(event, "message")
    if RETRIES.match(said):
        return (Said(What.RETRIES, text=words(said)),)
    return _walls(said, None) or (Said(What.ERROR, text=words(said)),)


def _walls(said: str, at: float | None, status: float | None = None, kind: str = "") -> tuple[Said, ...]:
    """Return the wall that an error is; none if it is a mere error."""
    found = STATUS.search(said[:1000])
    met = wall(kind, status or (float(found[1]) if found else None), said, at)
    return () if met.what is What.ERROR else (met,)


def _item_started(event: Json) -> Iterable[Said]:
    item = table(event, "item")
    return ITEMS.get(text(item, "type"), _unknown_item)(item, What.TOOL_STARTED)


def _item_completed(event: Json) -> Iterable[Said]:
    item = table(event, "item")
    return ITEMS.get(text(item, "type"), _unknown_item)(item, What.TOOL_ENDED)


def _unknown_item(item: Json, _what: What) -> Iterable[Said]:
    return (Said(What.UNKNOWN, name=f"item/{word(item, 'type')}"),)


def _tool(item: Json, what: What) -> Iterable[Said]:
    name = word(item, "tool") or word(item, "type")
    return (Said(what, name=name, id=word(item, "id"), failed=text(item, "status") in FAILED),)


def _no_tool(_item: Json, _what: What) -> Iterable[Said]:
    return ALIVE


def _warning(item: Json, _what: What) -> Iterable[Said]:
    return (Said(What.ALIVE, name="warning", text=words(text(item, "message"))),)


ITEMS: dict[str, Callable[[Json, What], Iterable[Said]]] = {
    "command_execution": _tool,
    "file_change": _tool,
    "mcp_tool_call": _tool,
    "web_search": _tool,
    "collab_tool_call": _tool,
    "agent_message": _no_tool,
    "reasoning": _no_tool,
    "todo_list": _no_tool,
    "error": _warning,
}
STREAM: dict[str, Reader] = {
    "thread.started": _thread_started,
    "turn.started": _turn_started,
    "turn.completed": _turn_completed,
    "turn.failed": _turn_failed,
    "item.started": _item_started,
    "item.updated": _alive,
    "item.completed": _item_completed,
    "error": _error,
}


# The hooks --------------------------------------------------------------------------------------------------------------------


def read_hook(payload: Json) -> Iterable[Said]:
    """Return what one payload says: of a hook, whose names are Claude Code's, or of `notify`."""
    return HOOKS.get(event_name(payload), claude_hooks.read_hook)(payload) if declared(payload) is None else _plainly(payload)


def _plainly(payload: Json) -> Iterable[Said]:
    return claude_hooks.read_hook(payload)


def _permission(payload: Json) -> Iterable[Said]:
    return (_of_hook(payload, What.ASKED, _question(payload)),)


def _post_tool(payload: Json) -> Iterable[Said]:
    answered = _of_hook(payload, What.ANSWERED, _question(payload))
    return (answered, _of_hook(payload, What.TOOL_ENDED, word(payload, "tool_use_id")))


def _of_hook(payload: Json, what: What, id: str) -> Said:
    subagent = word(payload, "agent_id")
    return Said(what, name=word(payload, "tool_name"), id=id, conversation=word(payload, "session_id"), subagent=subagent)


def _question(payload: Json) -> str:
    """Return a name for what is asked: a permission has no id, and its input is not the tool's."""
    return f"permission:{word(payload, 'tool_name')}"


def _notify(payload: Json) -> Iterable[Said]:
    return (Said(What.TURN_ENDED, conversation=word(payload, "thread-id")),)


HOOKS: dict[str, Reader] = {
    "PermissionRequest": _permission,
    "PostToolUse": _post_tool,
    "agent-turn-complete": _notify,
}


# The rollout files ------------------------------------------------------------------------------------------------------------


def read_entry(entry: Json) -> Iterable[Said]:
    """Return what one line of a rollout file says."""
    at, payload = moment(entry, "timestamp"), table(entry, "payload")
    read = ENTRIES.get(text(entry, "type"))
    if read is None:
        return (Said(What.UNKNOWN, at, name=word(entry, "type")),)
    return read(payload, at)


def _meta(payload: Json, at: float | None) -> Iterable[Said]:
    subagent = word(payload, "id") if isinstance(payload.get("source"), dict) else ""  # a thread of another thread
    return (Said(What.STARTED, at, conversation=word(payload, "id"), subagent=subagent),)


def _aside(_payload: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.ALIVE, at),)


def _model(payload: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.ALIVE, at, name=word(payload, "model")),)


def _compacted(_payload: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.COMPACTED, at),)


def _response_item(payload: Json, at: float | None) -> Iterable[Said]:
    what = CALLS.get(text(payload, "type"))
    if what is None:
        return (Said(What.UNKNOWN, at, name=f"response_item/{word(payload, 'type')}"),)
    if what is What.ALIVE:
        return (Said(What.ALIVE, at),)
    return (Said(what, at, name=word(payload, "name"), id=word(payload, "call_id")),)


def _event(payload: Json, at: float | None) -> Iterable[Said]:
    read = EVENTS.get(text(payload, "type"))
    if read is None:
        return (Said(What.UNKNOWN, at, name=f"event_msg/{word(payload, 'type')}"),)
    return read(payload, at)


def _task_started(_payload: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.TURN_STARTED, at),)


def _task_complete(payload: Json, at: float | None) -> Iterable[Said]:
    error = table(payload, "error")
    if not error:
        return (Said(What.TURN_ENDED, at),)
    said = text(error, "message")
    return (*_walls(said, at, _status(error), _kind(error)), Said(What.TURN_ENDED, at, text=words(said), failed=True))


def _turn_aborted(payload: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.TURN_ENDED, at, text=word(payload, "reason"), failed=True),)


def _failed(payload: Json, at: float | None) -> Iterable[Said]:
    said = text(payload, "message")
    met = _walls(said, at, _status(payload), _kind(payload))
    return met or (Said(What.ERROR, at, text=words(said)),)


def _status(error: Json) -> float | None:
    """Return the status of the answer: it stands in an object that is named after what happened."""
    info = table(error, "codex_error_info")
    return next((number(table(info, key), "http_status_code") for key in info), None)


def _kind(error: Json) -> str:
    return KINDS.get(text(error, "codex_error_info"), "")


def _retries(payload: Json, at: float | None) -> Iterable[Said]:
    return (Said(What.RETRIES, at, text=words(text(payload, "message"))),)


def _item(payload: Json, at: float | None) -> Iterable[Said]:
    what = What.PROMPT if text(table(payload, "item"), "type") == "UserMessage" else What.ALIVE
    return (Said(what, at, conversation=word(payload, "thread_id")),)


def _tokens(payload: Json, at: float | None) -> Iterable[Said]:
    total = table(table(payload, "info"), "total_token_usage")
    spent = Said(What.ALIVE, at, usage=_usage(total) if total else None)
    limits = table(payload, "rate_limits")
    reached = word(limits, "rate_limit_reached_type")
    return (spent, Said(What.LIMIT, at, text=reached, until=_resets_at(limits))) if reached else (spent,)


def _resets_at(limits: Json) -> float | None:
    """Return when the last of the limits that are used up ends."""
    used_up = [window for name in ("primary", "secondary") if (window := table(limits, name)) and _is_used_up(window)]
    return max((at for window in used_up if (at := moment(window, "resets_at")) is not None), default=None)


def _is_used_up(window: Json) -> bool:
    return (number(window, "used_percent") or 0.0) >= 100.0


KINDS = {"usage_limit_exceeded": "rate_limit", "unauthorized": "authentication_failed"}
CALLS: dict[str, What] = {
    "function_call": What.TOOL_STARTED,
    "custom_tool_call": What.TOOL_STARTED,
    "local_shell_call": What.TOOL_STARTED,
    "function_call_output": What.TOOL_ENDED,
    "custom_tool_call_output": What.TOOL_ENDED,
    "local_shell_call_output": What.TOOL_ENDED,
    "message": What.ALIVE,
    "reasoning": What.ALIVE,
    "web_search_call": What.ALIVE,
    "ghost_snapshot": What.ALIVE,
    "compaction": What.ALIVE,
}
EVENTS: dict[str, Callable[[Json, float | None], Iterable[Said]]] = {
    "task_started": _task_started,
    "task_complete": _task_complete,
    "turn_started": _task_started,
    "turn_complete": _task_complete,
    "turn_aborted": _turn_aborted,
    "error": _failed,
    "stream_error": _retries,
    "item_completed": _item,
    "token_count": _tokens,
    "context_compacted": _compacted,
} | dict.fromkeys(
    "user_message agent_message agent_reasoning thread_settings_applied thread_rolled_back entered_review_mode"
    " exited_review_mode warning thread_goal_updated exec_command_end patch_apply_end mcp_tool_call_end web_search_end".split(),
    _aside,
)
ENTRIES: dict[str, Callable[[Json, float | None], Iterable[Said]]] = {
    "session_meta": _meta,
    "turn_context": _model,
    "response_item": _response_item,
    "event_msg": _event,
    "compacted": _compacted,
    "token_usage_record": _aside,  # the same again, for its own accounts
    "world_state": _aside,
}


def transcripts(place: Place, conversation: str) -> tuple[str, ...]:
    """Return where a conversation's rollout files lie: one for each time it was resumed elsewhere."""
    home = folder(place, "CODEX_HOME", ".codex")
    if not home or not is_id(conversation):
        return ()
    return (f"{escape(home)}/sessions/*/*/*/rollout-*-{conversation}.jsonl",)


# The start --------------------------------------------------------------------------------------------------------------------

EXEC = frozenset({"exec", "e"})
OTHER_WORK = frozenset(
    "agents review login logout mcp plugin app-server remote-control completion update doctor sandbox debug apply a queue archive"
    " delete migrate-rollouts migrate-nfs-db unarchive cloud exec-server features help".split()
)
OWN_CHOICE = frozenset({"resume", "fork", "review"})
TAKES_VALUE = frozenset(
    "-c --config --enable --disable --remote --remote-auth-token-env -m --model --local-provider -p --profile -s --sandbox -C --cd"
    " --add-dir -a --ask-for-approval --thread-source --cyber-access-program --output-schema --color -o"
    " --output-last-message".split()
)
TAKES_MANY = ("-i", "--image")  # it takes all that follows, also a word that we would add

# In Codex's own words for them. A hook that nobody reviewed is left out without a word, so exactly these are marked as reviewed,
# by the hash that Codex itself computes; no other hook is, as it would be with --dangerously-bypass-hook-trust.
HOOK_EVENTS = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "user_prompt_submit",
    "PreToolUse": "pre_tool_use",
    "PermissionRequest": "permission_request",
    "PostToolUse": "post_tool_use",
    "Stop": "stop",
    "SessionEnd": "session_end",
}
HOOK_TIMEOUT_S = 600  # what Codex takes when nothing is said; it is part of the hash
FLAGS_FILE = "/<session-flags>/config.toml"
DAEMON = "features.daemon_auto_start"


def begin(beginning: Beginning) -> Start:
    """Return how it is started: with its events as JSON, hooks, and a conversation to go on with."""
    command = beginning.command
    if not is_own(ADAPTER, command):
        return Start(command, without=(wrapped(ADAPTER, command),))
    at = _first_word(command, 1)
    first = command[at] if at < len(command) else ""
    if first in OTHER_WORK:
        return Start(command, without=(f"flags, hooks, resume: codex {first} is no session",))
    config, without = _config(beginning)
    words_of, resumed = _resumed(beginning, at, first in EXEC)
    added = _with_json(words_of, at, beginning.headless and first in EXEC)
    if beginning.headless and first not in EXEC:
        without += ("events: only codex exec works without a terminal",)
    conversation = beginning.conversation if beginning.resume and not resumed else ""
    return Start((*added[:1], *config, *added[1:]), conversation=conversation, without=without + resumed)


def _with_json(command: Command, at: int, wanted: bool) -> Command:
    if not wanted or given(command[at:], "--json", "--experimental-json"):
        return command
    return (*command[: at + 1], "--json", *command[at + 1 :])


def _resumed(beginning: Beginning, at: int, is_exec: bool) -> tuple[Command, tuple[str, ...]]:
    """Return the command that goes on with a conversation, or why it does not."""
    command = beginning.command
    if not beginning.resume:
        return command, ()
    if not is_id(beginning.conversation):
        return command, (BAD_ID,)
    if given(command, *TAKES_MANY):
        return command, ("resume: what follows --image would be taken for one",)
    prompt_at = _first_word(command, at + 1) if is_exec else at
    if prompt_at < len(command) and command[prompt_at] in OWN_CHOICE:
        return command, (NOT_RESUMED,)
    return (*command[:prompt_at], "resume", beginning.conversation, *command[prompt_at:]), ()


def _first_word(command: Command, start: int) -> int:
    """Return where the first word stands that is neither a flag nor its value: a command, or a prompt."""
    at = start
    while at < len(command) and command[at].startswith("-") and command[at] not in ("-", "--"):
        at += 2 if command[at] in TAKES_VALUE | set(TAKES_MANY) else 1
    return min(at, len(command))


def _config(beginning: Beginning) -> tuple[Command, tuple[str, ...]]:
    """Return what is set for this launch alone: no daemon that would outlive it, and hooks."""
    keys = _keys(beginning.command)
    daemon = () if beginning.headless or DAEMON in keys or _names_daemon(beginning.command) else ("-c", f"{DAEMON}=false")
    if not beginning.hook:
        return daemon, ("hooks: nothing takes them",)
    if any(key == "hooks" or key.startswith("hooks.") for key in keys):
        return daemon, ("hooks: the command gives its own",)
    return (*daemon, *_hooks(join(beginning.hook))), ()


def _keys(command: Command) -> set[str]:
    """Return what the command configures itself."""
    values = [command[i + 1] for i, said in enumerate(command[:-1]) if said in ("-c", "--config")]
    values += [said.partition("=")[2] for said in command if said.startswith("--config=")]
    values += [said[2:].lstrip("=") for said in command if said.startswith("-c") and len(said) > 2]
    return {value.partition("=")[0].strip() for value in values}


def _names_daemon(command: Command) -> bool:
    return any("daemon_auto_start" in said for said in command)


def _hooks(hook: str) -> Command:
    group = f'[{{hooks=[{{type="command",command={json.dumps(hook)},timeout={HOOK_TIMEOUT_S}}}]}}]'
    flags = [said for event in HOOK_EVENTS for said in ("-c", f"hooks.{event}={group}")]
    trusted = (f'"{FLAGS_FILE}:{label}:0:0"={{trusted_hash="{_hash(label, hook)}"}}' for label in HOOK_EVENTS.values())
    return (*flags, "-c", f"hooks.state={{{','.join(trusted)}}}")


def _hash(label: str, hook: str) -> str:
    handler = {"async": False, "command": hook, "timeout": HOOK_TIMEOUT_S, "type": "command"}
    known = json.dumps({"event_name": label, "hooks": [handler]}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(known.encode()).hexdigest()}"


ADAPTER = Adapter(
    "codex",
    command=("codex",),
    processes=("codex",),
    programs=("codex",),
    begin=begin,
    read_hook=read_hook,
    read_stream=read_stream,
    read_entry=read_entry,
    transcripts=transcripts,
    dialogs=(
        Dialog("trust", ("Trust and continue", "2. Quit")),
        Dialog("trust", ("Do you trust the contents of this directory?",)),
        Dialog("hooks", ("Hooks need review",)),
        Dialog("permission", ("Would you like to", "No, and tell Codex what to do differently")),
        Dialog("login", ("Sign in with ChatGPT",)),
        Dialog("update", ("Update now", "Skip until next version")),
    ),
    composer=(r"^› (?!\d+\. ).*\n(?:\s*\n)* {2}\S.*(?: · |\? for shortcuts|context left)",),  # older prompts look alike
    submits=True,
    resumes=True,
    terminal=True,
    has_hooks=True,
)
