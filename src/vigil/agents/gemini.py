"""Gemini CLI: what its `stream-json`, its hooks and its chat files say, and how it is started (0.61).

It tries again without a word on its stream, and its exit code holds the status of the answer that ended it. Its tools have no id
in hooks: the end of one ends the newest. A chat file tells of a tool when it is over, so it never says that a turn ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from glob import escape
from shlex import join

from vigil.agents.adapter import Adapter, Beginning, Dialog, Place, Start
from vigil.agents.flags import BAD_ID, NO_HOOKS, NOT_RESUMED, Command, after_program, folder, given, is_id, is_own, wrapped
from vigil.agents.shapes import Json, count, declared, event_name, later, moment, rows, table, text, word, words
from vigil.agents.walls import wall
from vigil.core.said import Said, Usage, What

Reader = Callable[[Json], Iterable[Said]]

STATUS = re.compile(r"\"code\": ?(\d{3})\b|\bstatus:? (\d{3})\b")
QUOTA = re.compile(r"RESOURCE_EXHAUSTED|exhausted your (?:daily )?(?:quota|capacity)|[Qq]uota exceeded")
RESET = re.compile(r"reset after (?:(\d{1,3})h)?(?:(\d{1,3})m)?(?:(\d{1,3})s)?")


# The stream -------------------------------------------------------------------------------------------------------------------


def read_stream(event: Json) -> Iterable[Said]:
    """Return what one line of `-o stream-json` says."""
    return STREAM.get(text(event, "type"), _unknown)(event)


def _unknown(event: Json) -> Iterable[Said]:
    return (Said(What.UNKNOWN, moment(event, "timestamp"), name=word(event, "type")),)


def _init(event: Json) -> Iterable[Said]:
    at, conversation = moment(event, "timestamp"), word(event, "session_id")
    return (Said(What.STARTED, at, name=word(event, "model"), conversation=conversation),)


def _message(event: Json) -> Iterable[Said]:
    what = What.PROMPT if text(event, "role") == "user" else What.ALIVE
    return (Said(what, moment(event, "timestamp")),)


def _tool_use(event: Json) -> Iterable[Said]:
    at = moment(event, "timestamp")
    return (Said(What.TOOL_STARTED, at, name=word(event, "tool_name"), id=word(event, "tool_id")),)


def _tool_result(event: Json) -> Iterable[Said]:
    at, failed = moment(event, "timestamp"), text(event, "status") == "error"
    return (Said(What.TOOL_ENDED, at, id=word(event, "tool_id"), failed=failed),)


def _error(event: Json) -> Iterable[Said]:
    return (_met(text(event, "message"), moment(event, "timestamp")),)


def _result(event: Json) -> Iterable[Said]:
    at, stats = moment(event, "timestamp"), table(event, "stats")
    usage = Usage(count(stats, "input_tokens"), count(stats, "output_tokens"), count(stats, "cached"))
    if text(event, "status") != "error":
        return (Said(What.RESULT, at, usage=usage),)
    met = _met(text(table(event, "error"), "message"), at)
    result = Said(What.RESULT, at, text=met.text, usage=usage, failed=True)
    return (result,) if met.what is What.ERROR else (met, result)


def _met(said: str, at: float | None) -> Said:
    """Return the wall that an error is, or the error."""
    found = STATUS.search(said[:1000])
    status = float(found[1] or found[2]) if found else None
    met = wall("rate_limit" if QUOTA.search(said[:1000]) else "", status, said, at)
    return met if met.until is not None or met.what is not What.LIMIT else _until(met, said)


def _until(met: Said, said: str) -> Said:
    found = RESET.search(said[:1000])
    if found is None or not any(found.groups()):
        return met
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    until = later((hours * 3600 + minutes * 60 + seconds) * 1000.0, met.at)
    return Said(met.what, met.at, name=met.name, text=met.text, until=until)


STREAM: dict[str, Reader] = {
    "init": _init,
    "message": _message,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "error": _error,
    "result": _result,
}


# The hooks --------------------------------------------------------------------------------------------------------------------


def read_hook(payload: Json) -> Iterable[Said]:
    """Return what one payload says."""
    plainly = declared(payload)
    if plainly is not None:
        return (plainly,)
    name = event_name(payload)
    read = HOOKS.get(name)
    return (_say(payload, What.UNKNOWN, name),) if read is None else read(payload)


def _say(payload: Json, what: What, name: str = "", why: str = "", failed: bool = False) -> Said:
    at, conversation = moment(payload, "timestamp"), word(payload, "session_id")
    return Said(what, at, name=name, text=why, conversation=conversation, failed=failed)


def _session_start(payload: Json) -> Iterable[Said]:
    return (_say(payload, What.STARTED, why=word(payload, "source")),)


def _before_agent(payload: Json) -> Iterable[Said]:
    return (_say(payload, What.PROMPT),)


def _thinks(payload: Json) -> Iterable[Said]:
    return (_say(payload, What.THINKS, word(table(payload, "llm_request"), "model")),)


def _alive(payload: Json) -> Iterable[Said]:
    return (_say(payload, What.ALIVE),)


def _before_tool(payload: Json) -> Iterable[Said]:
    return (_say(payload, What.TOOL_STARTED, word(payload, "tool_name")),)


def _after_tool(payload: Json) -> Iterable[Said]:
    failed = bool(table(payload, "tool_response").get("error"))
    return (_say(payload, What.TOOL_ENDED, word(payload, "tool_name"), failed=failed),)


def _notification(payload: Json) -> Iterable[Said]:
    kind = word(payload, "notification_type")
    if kind != "ToolPermission":
        return (_say(payload, What.UNKNOWN, f"Notification/{kind}"),)
    details = table(payload, "details")
    return (_say(payload, What.ASKED, word(details, "title") or word(details, "type")),)


def _after_agent(payload: Json) -> Iterable[Said]:
    return (_say(payload, What.TURN_ENDED),)


def _session_end(payload: Json) -> Iterable[Said]:
    reason = word(payload, "reason")
    return (_say(payload, What.TURN_ENDED if reason == "clear" else What.ENDED, why=reason),)


HOOKS: dict[str, Reader] = {
    "SessionStart": _session_start,
    "BeforeAgent": _before_agent,
    "BeforeModel": _thinks,
    "BeforeToolSelection": _thinks,
    "AfterModel": _alive,  # one for each piece of an answer: never asked for
    "BeforeTool": _before_tool,
    "AfterTool": _after_tool,
    "Notification": _notification,
    "PreCompress": _alive,  # before each turn, whether anything is compressed or not
    "AfterAgent": _after_agent,
    "SessionEnd": _session_end,
}


# The chat files ---------------------------------------------------------------------------------------------------------------


def read_entry(entry: Json) -> Iterable[Said]:
    """Return what one line of a chat file says; a line without a type is of the file itself."""
    kind = text(entry, "type")
    read = ENTRIES.get(kind)
    if read is not None:
        return read(entry)
    if kind or not entry.keys() & {"sessionId", "$set", "$rewindTo"}:
        return (Said(What.UNKNOWN, moment(entry, "timestamp"), name=word(entry, "type")),)
    return _of_file(entry)


def _of_file(entry: Json) -> Iterable[Said]:
    conversation = word(entry, "sessionId")
    if not conversation:
        return (Said(What.ALIVE, moment(table(entry, "$set"), "lastUpdated")),)
    subagent = conversation if text(entry, "kind") == "subagent" else ""
    return (Said(What.STARTED, moment(entry, "startTime"), conversation=conversation, subagent=subagent),)


def _user(entry: Json) -> Iterable[Said]:
    own = any("functionResponse" in part for part in rows(entry, "content"))  # what a tool gave back
    return (Said(What.ALIVE if own else What.PROMPT, moment(entry, "timestamp")),)


def _gemini(entry: Json) -> Iterable[Said]:
    at, name = moment(entry, "timestamp"), word(entry, "model")
    calls = rows(entry, "toolCalls")
    if not calls:
        return (Said(What.ALIVE, at, name=name, usage=_tokens(table(entry, "tokens"))),)
    # The same message again, with what its tools gave back: what it cost was told the first time.
    return [said for call in calls for said in _call(call)]


def _call(call: Json) -> Iterable[Said]:
    at, name, id = moment(call, "timestamp"), word(call, "name"), word(call, "id")
    failed = text(call, "status") in ("error", "cancelled")
    return (Said(What.TOOL_STARTED, at, name=name, id=id), Said(What.TOOL_ENDED, at, name=name, id=id, failed=failed))


def _tokens(tokens: Json) -> Usage | None:
    if not tokens:
        return None
    return Usage(count(tokens, "input"), count(tokens, "output") + count(tokens, "thoughts"), count(tokens, "cached"))


def _notice(entry: Json) -> Iterable[Said]:
    return (Said(What.ALIVE, moment(entry, "timestamp")),)


def _failed(entry: Json) -> Iterable[Said]:
    said = text(entry, "content") or next((text(part, "text") for part in rows(entry, "content")), "")
    return (_met(said, moment(entry, "timestamp")),)


ENTRIES: dict[str, Reader] = {
    "user": _user,
    "gemini": _gemini,
    "info": _notice,
    "warning": _notice,
    "error": _failed,
}


def transcripts(place: Place, conversation: str) -> tuple[str, ...]:
    """Return where a conversation's chat files lie: its own, which has the beginning of its id, and its sub-agents'."""
    home = folder(place, "GEMINI_CLI_HOME", "")
    if not home or not is_id(conversation):
        return ()
    chats = f"{escape(home)}/.gemini/tmp/*/chats"
    return (f"{chats}/session-*-{conversation[:8]}.jsonl", f"{chats}/{conversation}/*.jsonl")


# The start --------------------------------------------------------------------------------------------------------------------

OTHER_WORK = frozenset("mcp extensions extension skills skill hooks hook gemma".split())
CONVERSATION = ("--resume", "-r", "--session-id", "--session-file", "--list-sessions", "--delete-session")
SETTINGS = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"  # below the user's settings and the system's: hooks of all of them run
SETTINGS_FILE = "gemini-hooks.json"
HOOK_EVENTS = ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "Notification", "AfterAgent", "SessionEnd")


def begin(beginning: Beginning) -> Start:
    """Return how it is started: with its events as JSON, hooks, and an id for its conversation."""
    command = beginning.command
    if not is_own(ADAPTER, command):
        return Start(command, without=(wrapped(ADAPTER, command),))
    if command[1:2] and command[1] in OTHER_WORK:
        return Start(command, without=(f"flags, hooks, resume: gemini {command[1]} is no session",))
    conversation, chosen = _conversation(beginning)
    output = ("-o", "stream-json") if beginning.headless and not given(command, "-o", "--output-format") else ()
    env, files, without = _hooks(beginning)
    return Start(
        after_program(beginning, (*conversation, *output)),
        env=env,
        files=files,
        conversation=beginning.conversation if conversation else "",
        without=without + chosen,
    )


def _conversation(beginning: Beginning) -> tuple[Command, tuple[str, ...]]:
    """Return the flag that names the conversation, or why there is none."""
    if given(beginning.command, *CONVERSATION):
        return (), (NOT_RESUMED,) if beginning.resume else ()
    if not is_id(beginning.conversation):
        return (), (BAD_ID,) if beginning.resume else ()
    return ("--resume" if beginning.resume else "--session-id", beginning.conversation), ()


def _hooks(beginning: Beginning) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Return what makes hooks run: a settings file of this launch, which the environment names."""
    env = beginning.place.env
    if not beginning.hook:
        return {}, {}, (NO_HOOKS,)
    if env.get(SETTINGS):
        return {}, {}, (f"hooks: {SETTINGS} is set already",)
    if env.get("HOME") != "/root":  # it reads such a file only where root owns it and all folders above, else it warns
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
    programs=("gemini",),
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
)
