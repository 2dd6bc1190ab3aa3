"""The transcript of Claude Code: what one line of a conversation's or a sub-agent's file says.

Claude Code writes a line when a piece is complete, so a file that does not grow says nothing.
An interrupt shows here, and in no hook."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vigil.agents.claude.stream import first_text, message_usage, retries, said_by_model, said_to_model
from vigil.agents.shapes import Json, flag, moment, number, table, text, word, words
from vigil.agents.voice import Reader, Voice
from vigil.agents.walls import wall
from vigil.core.model.speech import Said, Usage, What

LINE = Voice(at="timestamp", subagent="whose")
SIDECHAIN = "sidechain"  # a sub-agent that old versions wrote into the main file, without its id


def read_entry(entry: Json) -> Iterable[Said]:
    """Return what one line says."""
    whose = word(entry, "agentId") or (SIDECHAIN if flag(entry, "isSidechain") else "")
    return LINE.read({**entry, "whose": whose}, TYPES)


def _assistant(entry: Json) -> Iterable[Said]:
    at, subagent = moment(entry, "timestamp"), word(entry, LINE.subagent)
    if flag(entry, "isApiErrorMessage"):
        ended_by = wall(word(entry, "error"), number(entry, "apiErrorStatus"), first_text(entry), at, subagent)
        return (Said(What.TURN_ENDED, at, failed=True, subagent=subagent), ended_by)
    first, *rest = said_by_model(entry, at, subagent)
    return (replace(first, usage=_usage(entry)), *rest)


def _usage(entry: Json) -> Usage | None:
    """Return a message's usage once: every line repeats it, so only the one numbered 0 counts."""
    message = table(entry, "message")
    whole = number(entry, "apiBlockIndex") == 0 and text(message, "stop_reason")
    return message_usage(table(message, "usage")) if whole else None


def _user(entry: Json) -> Iterable[Said]:
    own = flag(entry, "isMeta") or flag(entry, "isCompactSummary")
    return said_to_model(entry, moment(entry, "timestamp"), word(entry, LINE.subagent), own)


def _cost_state(entry: Json) -> Iterable[Said]:
    """Return the total cost, written once at the end; each message reported its tokens."""
    return (Said(What.ALIVE, usage=Usage(cost_usd=number(entry, "totalCostUSD"), so_far=True)),)


def _system(entry: Json) -> Iterable[Said]:
    return LINE.read(entry, SUBTYPES, "subtype", within="system/")


def _compacted(entry: Json) -> Iterable[Said]:
    return (LINE.say(entry, What.COMPACTED, why=word(table(entry, "compactMetadata"), "trigger")),)


def _api_error(entry: Json) -> Iterable[Said]:
    error = table(entry, "error")
    why, subagent = words(text(error, "message")), word(entry, LINE.subagent)
    return (replace(retries(entry, "retryInMs", "retryAttempt", why, number(error, "status")), subagent=subagent),)


ASIDE_SUBTYPES = (
    "agents_killed away_summary file_snapshot informational instruction_size_warning local_command memory_saved"
    " microcompact_boundary model_consent_fallback model_fallback model_refusal_fallback model_refusal_no_fallback"
    " permission_retry scheduled_task_fire stop_hook_summary thinking"
)
SUBTYPES: dict[str, Reader] = dict.fromkeys(ASIDE_SUBTYPES.split(), LINE.says(What.ALIVE)) | {
    "turn_duration": LINE.says(What.TURN_ENDED),
    "compact_boundary": _compacted,
    "api_error": _api_error,
}
ASIDE_TYPES = (
    "agent-color agent-name agent-setting ai-title api-request api-request-blob api-request-shape artifact-autoreact-ledger"
    " artifact-comment-monitor atis-latch attachment attribution-snapshot bridge-session content-replacement continued-in"
    " custom-title data-flow-incomplete data-flow-records derived-from dev-mods ended-by-model file-history-delta"
    " file-history-snapshot fork-context-ref frame-link history-suppression isolation-latch last-prompt memory-mode mode"
    " observer-ref permission-mode pr-link progress queue-operation relocated resume-head-vouch session-owner summary tag"
    " tools-used worktree-state"
)
TYPES: dict[str, Reader] = dict.fromkeys(ASIDE_TYPES.split(), LINE.says(What.ALIVE)) | {
    "assistant": _assistant,
    "user": _user,
    "system": _system,
    "cost-state": _cost_state,
}
