"""The stream of Claude Code: what one line of `--output-format stream-json` says (2.1.112 to 2.1.325).

A question about a tool has the call's id: the end of the call ends it too. `subtype: success` says nothing of
success. A result's cost covers everything so far, so we take the usage since the last result where it is given."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from vigil.agents.shapes import Json, count, flag, later, moment, number, rows, table, text, texts, word, words
from vigil.agents.voice import Reader, Voice
from vigil.agents.walls import wall
from vigil.core.model.speech import Said, Usage, What

LINE = Voice(subagent="parent_tool_use_id")
OWN = Voice()  # these name no sub-agent
ALIVE = (Said(What.ALIVE),)
ASKING_TOOLS = frozenset({"AskUserQuestion", "ExitPlanMode"})  # they only ask a person
# They only wait: the field of their call that says how long, and its unit in milliseconds.
WAITING_TOOLS = {"Monitor": ("timeout_ms", 1.0), "ScheduleWakeup": ("delaySeconds", 1000.0), "TaskOutput": ("timeout", 1.0)}
INTERRUPTED = "[Request interrupted by user"
NOTICE = "<task-notification>"  # work of its own is done, and it goes on by itself
COMMANDS = ("<command-", "<local-command-", "<bash-")  # a user's commands to the program: no turn need follow
DIAGNOSTIC = "[ede_diagnostic]"
AGENT_TASKS = frozenset({"local_agent", "remote_agent", "in_process_teammate", "local_workflow"})
AGENT_TASK_IDS = tuple("artw")  # the end of a task tells only its id, whose first letter is its type
ASKING_REQUESTS = frozenset({"can_use_tool", "elicitation", "request_user_dialog"})
MODEL_INPUT = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
ENDED_TASKS = frozenset({"completed", "failed", "killed", "stopped"})


def read_stream(event: Json) -> Iterable[Said]:
    """Return what one line says."""
    return LINE.read(event, TYPES)


def _assistant(event: Json) -> Iterable[Said]:
    at, subagent = moment(event, "timestamp"), word(event, "parent_tool_use_id")
    if text(event, "error") or flag(event, "is_api_error_message"):
        status = number(event, "api_error_status")
        return (wall(word(event, "error"), status, first_text(event), at, subagent),)
    return said_by_model(event, at, subagent)


def first_text(event: Json) -> str:
    """Return the first text of a message; an error's words stand there."""
    return next((text(block, "text") for block in rows(table(event, "message"), "content") if "text" in block), "")


def said_by_model(event: Json, at: float | None, subagent: str) -> Iterable[Said]:
    """Return what a message of the model says: its tool calls, else that it speaks."""
    calls = [block for block in rows(table(event, "message"), "content") if block.get("type") == "tool_use"]
    if not calls:
        return (Said(What.SPEAKS, at, subagent=subagent),)
    return [
        said
        for call in calls
        for said in tool_started(word(call, "name"), word(call, "id"), table(call, "input"), at, subagent)
    ]


def tool_started(
    name: str, call: str, given: Json, at: float | None, subagent: str = "", conversation: str = ""
) -> Iterable[Said]:
    """Return what the start of a tool says; some tools are a question, some a wait."""
    said = partial(Said, at=at, name=name, id=call, subagent=subagent, conversation=conversation)
    if name in ASKING_TOOLS:
        return (said(What.TOOL_STARTED), said(What.ASKED))
    return (said(What.TOOL_STARTED, until=_waits_until(name, given, at)),)


def _waits_until(name: str, given: Json, at: float | None) -> float | None:
    """Return until when a waiting tool may wait, if its call says so."""
    key, ms = WAITING_TOOLS.get(name, ("", 0.0))
    delay = number(given, key)
    return None if delay is None or delay < 0 else later(delay * ms, at)


def _user(event: Json) -> Iterable[Said]:
    own = flag(event, "isSynthetic")
    return said_to_model(event, moment(event, "timestamp"), word(event, "parent_tool_use_id"), own)


def said_to_model(event: Json, at: float | None, subagent: str, own: bool) -> Iterable[Said]:
    """Return what a message to the model says: ended tools, or words, a prompt unless `own`."""
    message = table(event, "message")
    blocks = rows(message, "content")
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if results:
        return [
            Said(What.TOOL_ENDED, at, id=word(block, "tool_use_id"), failed=flag(block, "is_error"), subagent=subagent)
            for block in results
        ]
    said = text(message, "content") or next((text(block, "text") for block in blocks), "")
    if said.startswith(INTERRUPTED):
        return (Said(What.TURN_ENDED, at, text="interrupted", failed=True, subagent=subagent),)
    return (Said(What.ALIVE if own or subagent else prompt_kind(said), at, subagent=subagent),)


def prompt_kind(prompt: str) -> What:
    """Return a prompt's kind: a user's, the program's own, or a command without a turn."""
    if prompt.startswith(COMMANDS):
        return What.ALIVE
    return What.TURN_STARTED if prompt.startswith(NOTICE) else What.PROMPT


def _result(event: Json) -> Iterable[Said]:
    failed = flag(event, "is_error") or text(event, "subtype").startswith("error")
    why = _why(event) if failed else ""
    result = Said(
        What.RESULT,
        text=words(why),
        conversation=word(event, "session_id") if count(event, "num_turns") else "",  # else there may be none of this id
        usage=result_usage(event),
        failed=failed,
    )
    if not failed:
        return (result,)
    ended_by = wall(word(event, "error"), number(event, "api_error_status"), why, moment(event, "timestamp"))
    return (result, ended_by) if ended_by.what is not What.ERROR else (result,)


def result_usage(event: Json) -> Usage:
    """Return what a run used since its last result; where only a sum is given, that."""
    since = event.get("model_usage_since_last_result")
    if isinstance(since, dict):
        return model_usage(since, so_far=False)
    if table(event, "modelUsage"):
        return model_usage(table(event, "modelUsage"), so_far=True, cost=number(event, "total_cost_usd"))
    return message_usage(table(event, "usage"), number(event, "total_cost_usd"))


def model_usage(by_model: Json, so_far: bool, cost: float | None = None) -> Usage:
    """Return what all models together were used for."""
    models = [table(by_model, name) for name in by_model]
    costs = [number(model, "costUSD") or 0.0 for model in models]
    return Usage(
        input_tokens=sum(count(model, key) for model in models for key in MODEL_INPUT),
        output_tokens=sum(count(model, "outputTokens") for model in models),
        cached_tokens=sum(count(model, "cacheReadInputTokens") for model in models),
        cost_usd=sum(costs) if cost is None else cost,
        so_far=so_far,
    )


def message_usage(usage: Json, cost: float | None = None) -> Usage:
    """Return what one message used; tokens from a cache are counted apart from the input there, here they are of it."""
    cached = count(usage, "cache_read_input_tokens")
    given = count(usage, "input_tokens") + cached + count(usage, "cache_creation_input_tokens")
    return Usage(given, count(usage, "output_tokens"), cached, cost)


def _why(event: Json) -> str:
    """Return why a run failed; of a failed run, the result is not an answer."""
    errors = [error for error in texts(event, "errors") if not error.startswith(DIAGNOSTIC)]
    return next(filter(None, (text(event, "result"), *errors, text(event, "terminal_reason"), text(event, "subtype"))), "")


def _rate_limit(event: Json) -> Iterable[Said]:
    info = table(event, "rate_limit_info")
    if info.get("status") != "rejected" or flag(info, "isUsingOverage"):
        return ALIVE
    name = word(info, "rateLimitType")
    return (Said(What.LIMIT, name=name, text=f"limit reached: {name}", until=moment(info, "resetsAt")),)


def _control_request(event: Json) -> Iterable[Said]:
    request = table(event, "request")
    if text(request, "subtype") not in ASKING_REQUESTS:
        return ALIVE
    name = word(request, "tool_name") or word(request, "subtype")
    asked = word(request, "tool_use_id") or word(event, "request_id")
    taken_back = word(event, "request_id")
    return (Said(What.ASKED, name=name, id=asked, subagent=word(request, "agent_id"), request=taken_back),)


def _control_response(event: Json) -> Iterable[Said]:
    response = table(event, "response")
    answer = table(response, "response")
    if "behavior" not in answer and "action" not in answer:
        return ALIVE  # an answer to its host's question, not to its own
    answered = word(answer, "toolUseID") or word(response, "request_id")
    return (Said(What.ANSWERED, id=answered, text=word(answer, "behavior") or word(answer, "action")),)


def _control_cancelled(event: Json) -> Iterable[Said]:
    return (Said(What.ANSWERED, id=word(event, "request_id"), text="cancelled"),)


def _auth_status(event: Json) -> Iterable[Said]:
    failure = text(event, "error")
    return (Said(What.AUTH, text=words(failure)),) if failure else ALIVE


def _system(event: Json) -> Iterable[Said]:
    return OWN.read(event, SUBTYPES, "subtype", within="system/")


def _init(event: Json) -> Iterable[Said]:
    """Return a start and a turn: it comes with every turn."""
    conversation = word(event, "session_id")
    return (Said(What.STARTED, name=word(event, "model"), conversation=conversation), Said(What.TURN_STARTED))


def _api_retry(event: Json) -> Iterable[Said]:
    return (retries(event, "retry_delay_ms", "attempt", word(event, "error"), number(event, "error_status")),)


def _api_error(event: Json) -> Iterable[Said]:
    error = table(event, "error")
    return (retries(event, "retry_in_ms", "retry_attempt", words(text(error, "message")), number(error, "status")),)


def retries(event: Json, delay_ms: str, attempt: str, why: str, status: float | None) -> Said:
    """Return a retry with its reason; without a status the network failed."""
    at = moment(event, "timestamp")
    tries = f"attempt {count(event, attempt)} of {count(event, 'max_retries') or count(event, 'maxRetries')}"
    cause = f"status {status:.0f}" if status else "no answer"
    return Said(What.RETRIES, at, name=why, text=f"{cause}, {tries}", until=later(number(event, delay_ms), at))


def _denied(event: Json) -> Iterable[Said]:
    return (Said(What.ANSWERED, name=word(event, "tool_name"), id=word(event, "tool_use_id"), text="denied", failed=True),)


def _task_started(event: Json) -> Iterable[Said]:
    if text(event, "task_type") not in AGENT_TASKS:
        return ALIVE  # a long command, whose tool has started already
    return (Said(What.SUBAGENT_STARTED, name=word(event, "subagent_type"), id=word(event, "task_id")),)


def _task_updated(event: Json) -> Iterable[Said]:
    return _task_ended(event, word(table(event, "patch"), "status"))


def _task_told(event: Json) -> Iterable[Said]:
    return _task_ended(event, word(event, "status"))


def _task_ended(event: Json, status: str) -> Iterable[Said]:
    task = word(event, "task_id")
    if status not in ENDED_TASKS or not task.startswith(AGENT_TASK_IDS):
        return ALIVE
    return (Said(What.SUBAGENT_ENDED, id=task, text=status, failed=status != "completed"),)


def _state(event: Json) -> Iterable[Said]:
    return OWN.read(event, STATES, "state", within="session_state_changed/")


def _status(event: Json) -> Iterable[Said]:
    return (Said(What.THINKS),) if event.get("status") == "requesting" else ALIVE


def _compacted(event: Json) -> Iterable[Said]:
    return (Said(What.COMPACTED, text=word(table(event, "compact_metadata"), "trigger")),)


def _refused(event: Json) -> Iterable[Said]:
    return (Said(What.ERROR, name="refusal", text=words(text(event, "content"))),)


def _lost(event: Json) -> Iterable[Said]:
    return (Said(What.ERROR, name=word(event, "error_code"), text=f"not saved: {words(', '.join(texts(event, 'lost')))}"),)


STATES: dict[str, Reader] = {
    "running": OWN.says(What.TURN_STARTED, why="state"),
    "idle": OWN.says(What.TURN_ENDED, why="state"),
    "requires_action": OWN.says(What.ASKED, why="state"),
}
# Reports beside the work: they show only that it lives.
ASIDE_SUBTYPES = (
    "agents_killed away_summary background_tasks_changed bridge_state checkpoint_done cloud_session_delta"
    " cloud_session_status code_change_published commands_changed control_request_progress dev_intent feedback_draft_queued"
    " file_attachments_missing file_snapshot files_persisted hook_progress hook_response hook_started informational"
    " inherited_asks_settled instruction_size_warning local_command local_command_output memory_recall memory_saved"
    " mirror_error model_consent_fallback model_fallback model_refusal_fallback notification peer_message_hold"
    " per_turn_effort_changed permission_check_status permission_retry plugin_install post_turn_summary session_metadata"
    " session_title_changed stop_hook_summary task_progress task_summary thinking thinking_tokens turn_duration"
    " turn_handoff_available turn_preempted turn_starting ui_focus ui_invalidate ui_log ui_notify ui_notify_cancel ui_panes"
    " ui_placed ui_scroll ui_status ui_toast upgrade_relay_marker vcs_state_changed voice_call_talk worker_shutting_down"
)
SUBTYPES: dict[str, Reader] = dict.fromkeys(ASIDE_SUBTYPES.split(), LINE.says(What.ALIVE)) | {
    "init": _init,
    "api_retry": _api_retry,
    "api_error": _api_error,
    "permission_denied": _denied,
    "elicitation_complete": OWN.says(What.ANSWERED, id="elicitation_id"),
    "task_started": _task_started,
    "task_updated": _task_updated,
    "task_notification": _task_told,
    "session_state_changed": _state,
    "status": _status,
    "compact_boundary": _compacted,
    "scheduled_task_fire": OWN.says(What.TURN_STARTED),
    "model_refusal_no_fallback": _refused,
    "session_writes_lost": _lost,
}
ASIDE_TYPES = "tool_use_summary prompt_suggestion command_lifecycle transcript_mirror active_goal autocompact_state"
TYPES: dict[str, Reader] = dict.fromkeys(ASIDE_TYPES.split(), LINE.says(What.ALIVE)) | {
    "tool_progress": OWN.says(What.TICKS, name="tool_name"),  # every 30 s, alike from a working and a hanging tool
    "keep_alive": OWN.says(What.TICKS, name="tool_name"),
    "stream_event": LINE.says(What.SPEAKS),
    "assistant": _assistant,
    "user": _user,
    "result": _result,
    "system": _system,
    "rate_limit_event": _rate_limit,
    "control_request": _control_request,
    "control_response": _control_response,
    "control_cancel_request": _control_cancelled,
    "conversation_reset": Voice(conversation="new_conversation_id").says(What.STARTED, why="trigger"),
    "auth_status": _auth_status,
}
