"""The stream of OpenCode: what one line of `run --format json` says (1.18).

It reports a tool when it is over, and has no last event: a step that calls no tool ends the turn.
Retries show only in the plugin."""

from __future__ import annotations

from collections.abc import Iterable

from vigil.agents.shapes import Json, count, moment, number, table, text, word, words
from vigil.agents.voice import Reader, Voice
from vigil.agents.walls import wall
from vigil.core.model.speech import Said, Usage, What

LINE = Voice(at="timestamp", conversation="sessionID")
GOES_ON = "tool-calls"  # the reason of a step that another one follows
ERRORS = {"ProviderAuthError": "authentication_failed"}


def read_stream(event: Json) -> Iterable[Said]:
    """Return what one line of `run --format json` says."""
    return LINE.read(event, STREAM)


def _step_finish(event: Json) -> Iterable[Said]:
    part = table(event, "part")
    what = What.ALIVE if text(part, "reason") == GOES_ON else What.TURN_ENDED
    return (LINE.say(event, what, usage=usage_of(part)),)


def usage_of(part: Json) -> Usage:
    """Return what one step used; OpenCode counts cached input and reasoning apart."""
    tokens = table(part, "tokens")
    cache = table(tokens, "cache")
    return Usage(
        count(tokens, "input") + count(cache, "read") + count(cache, "write"),
        count(tokens, "output") + count(tokens, "reasoning"),
        count(cache, "read"),
        number(part, "cost"),
    )


def _tool_use(event: Json) -> Iterable[Said]:
    """Return the start and the end of a tool, which OpenCode reports at once."""
    part, conversation = table(event, "part"), word(event, "sessionID")
    state = table(part, "state")
    name, id, times = word(part, "tool"), word(part, "callID"), table(state, "time")
    failed = text(state, "status") == "error"
    return (
        Said(What.TOOL_STARTED, moment(times, "start"), name=name, id=id, conversation=conversation),
        Said(What.TOOL_ENDED, moment(times, "end"), name=name, id=id, conversation=conversation, failed=failed),
    )


def wall_in(event: Json) -> Iterable[Said]:
    """Return an error as the wall it is, or as an error."""
    error = table(event, "error")
    data = table(error, "data") or error
    name = word(error, "name")
    met = wall(ERRORS.get(name, ""), number(data, "statusCode"), text(data, "message"), moment(event, "timestamp"))
    return (
        Said(met.what, met.at, name=name, text=met.text or words(name), until=met.until, conversation=word(event, "sessionID")),
    )


STREAM: dict[str, Reader] = {
    "step_start": LINE.says(What.THINKS),
    "step_finish": _step_finish,
    "text": LINE.says(What.ALIVE),
    "reasoning": LINE.says(What.ALIVE),
    "tool_use": _tool_use,
    "error": wall_in,
}
