"""The page of one incident: what it is, on what evidence, and its whole story, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vigil.text import one_line

Json = Mapping[str, Any]

LABEL = 12


def page(incident: Json) -> Iterator[str]:
    """Yield the lines of the page."""
    whose = incident["session"] or "the host"
    yield one_line(f"{incident['kind']} ({incident['severity']}) of {whose}: {incident['why']}")
    yield _row("id", incident["id"])
    yield _row("state", _state(incident))
    if incident["count"] > 1:
        yield _row("count", f"{incident['count']} times")
    for death in incident["deaths"][-1:]:
        yield _row("last death", f"vigil death {death} tells it")
    if incident["evidence"]:
        yield ""
        yield "evidence when it opened"
        for line in incident["evidence"]:
            yield _indent(f"{line['text']} ({line['source']})")
    yield ""
    yield "what happened"
    for line in incident["timeline"]:
        tell = LINES.get(line["what"])
        words = tell(line["data"]) if tell is not None else f"{line['what']} {line['data']}"
        yield _indent(f"{line['at']} {words}")
    waiting = [notice for notice in incident["notices"] if notice["state"] in ("sending", "retrying")]
    for notice in waiting:
        when = f"tried again at {notice['retry_at']}" if notice["retry_at"] else "being sent"
        yield _indent(f"{notice['event']} to {notice['route']} is {when}")
    if incident["resolved_at"] is None and incident["acked_at"] is None:
        yield ""
        yield f"vigil ack {incident['id']} ends its reminders"


def _row(label: str, words: str) -> str:
    return f"  {label:<{LABEL}}{one_line(words)}"


def _indent(words: str) -> str:
    return f"  {one_line(words)}"


def _state(incident: Json) -> str:
    if incident["resolved_at"] is not None:
        return f"over since {incident['resolved_at']}: {incident['resolution']}"
    words = f"open since {incident['opened_at']}"
    if incident["escalated_at"]:
        words += f", escalated at {incident['escalated_at']}"
    if incident["acked_at"]:
        words += f", acknowledged by {incident['acked_by']} at {incident['acked_at']}"
    return words


def _opened(data: Json) -> str:
    count = data.get("count", 1)
    return f"{'opened' if count == 1 else f'came back, the {count}. time'}: {data.get('why', '')}"


def _notified(data: Json) -> str:
    attempts = data.get("attempts", 1)
    words = f"{data.get('event', 'notice')} to {data['route']}: {data['state']}"
    if attempts > 1 or data["state"] in ("retrying", "failed"):
        words += f" (attempt {attempts})"
    if data.get("retry_at"):
        words += f", again at {data['retry_at']}"
    return f"{words}: {data['why']}" if data.get("why") else words


def _reaction(data: Json) -> str:
    words = f"reaction {data['number'] + 1}, {data['do']}: {data['outcome']}"
    return f"{words}: {data['why']}" if data.get("why") else words


LINES: dict[str, Callable[[Json], str]] = {
    "opened": _opened,
    "notified": _notified,
    "reaction": _reaction,
    "acked": lambda data: f"acknowledged by {data['actor']}",
    "escalated": lambda data: f"escalated: {data['why']}",
    "resolved": lambda data: f"over: {data['resolution']}",
}
