"""What a notice says: its incident as one line of JSON; many at once as one summary.

Agents' own words (questions, output, errors) leave the host only by routes whose configuration allows it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from vigil.core.model.incident import Incident, IncidentKind, Severity
from vigil.core.rules.escalation import Due
from vigil.moments import rfc3339

SHOWN = 20  # how many a summary names
# Our words for kinds whose own may be an agent's; all other kinds have only our words.
PLAIN = {
    IncidentKind.NEEDS_INPUT: "it waits for a human",
    IncidentKind.STALLED: "it does not get on",
    IncidentKind.TAINTED: "its conversation is not taken up again",
    IncidentKind.SATURATED: "it crashed too often and is not restarted any more",
    IncidentKind.LIMIT: "it met a limit, and waits until that ends",
    IncidentKind.AUTH: "it is not let in, and waits for a person",
}
EVENTS = {"opened": "", "reminder": "still: ", "again": "again: ", "escalated": "escalated: ", "resolved": "over: "}
OVER_ALREADY = "over already: "  # of what is first heard of when it has ended


def message_of(due: Due, details: Mapping[str, Any] | None = None) -> bytes:
    """Return the incident with the fields of `vigil incidents`, and which notice this is; None: no details."""
    said = {"notice": due.notice_id, "event": due.event, "route": due.route, **fields_of(due.incident, details is not None)}
    if details is not None:
        said["details"] = dict(details)
    return _json(said)


def summary_of(dues: Sequence[Due], details: bool = False) -> bytes:
    """Return many notices as one: counts by kind, the first incidents, and all ids."""
    ids = [due.notice_id for due in dues]
    kinds = Counter(f"{_mark_of(due.event, due.incident.resolved_at)}{due.incident.kind}" for due in dues)
    worst = min((due.incident.severity for due in dues), key=list(Severity).index)
    return _json(
        {
            # The same notices make the same id, at any time.
            "notice": f"summary/{hashlib.sha256(chr(10).join(sorted(ids)).encode()).hexdigest()[:32]}",
            "event": "summary",
            "route": dues[0].route,
            "severity": worst.value,
            "count": len(dues),
            "kinds": dict(kinds.most_common()),
            "why": f"{len(dues)} notices at once: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()),
            "incidents": [{"event": due.event, **fields_of(due.incident, details)} for due in dues[:SHOWN]],
            "notices": ids,
        }
    )


def trial_of(route: str, now: float) -> bytes:
    """Return what `vigil notify test` sends."""
    said = {"notice": f"test/{int(now * 1000)}", "event": "test", "route": route, "severity": "warning"}
    return _json(said | {"kind": "test", "session": None, "count": 1, "why": "a test: this route works"})


def reaction_of(incident: Incident, number: int) -> bytes:
    """Return what a reacting command is given: it runs here, so nothing is left out."""
    said = {"notice": f"{incident.id}/reaction/{number}", "event": "reaction", **fields_of(incident, True)}
    return _json(said | {"details": {"evidence": [f"{one.text} ({one.source})" for one in incident.evidence]}})


def title_of(said: Mapping[str, Any]) -> str:
    """Return a notice in a few words."""
    if said["event"] == "summary":
        return f"[vigil] {said['severity']}: {said['count']} notices at once"
    whose = said["session"] or "the host"
    mark = _mark_of(said["event"], said.get("resolved_at"))
    return f"[vigil] {mark}{said['severity']}: {said['kind']}: {whose}"


def text_of(said: Mapping[str, Any]) -> str:
    """Return a notice as a text for people."""
    if said["event"] == "summary":
        lines = [f"{one['severity']} {one['kind']} {one['session'] or 'the host'}: {_words(one)}" for one in said["incidents"]]
        more = [f"and {said['count'] - len(lines)} more"] if said["count"] > len(lines) else []
        return "\n".join([said["why"], "", *lines, *more, "", "vigil incidents shows all of them"])
    lines = [_words(said)]
    if said["event"] == "test":
        return lines[0]
    lines += [f"{key} {said[field]}" for key, field in (("opened", "opened_at"), ("over", "resolved_at")) if said[field]]
    if said["count"] > 1:
        lines.append(f"it happened {said['count']} times")
    for name, value in said.get("details", {}).items():
        lines += ["", f"{name}:", *([str(value)] if isinstance(value, str) else map(str, value))]
    todo = f"vigil incidents {said['id']} tells all of it"
    return "\n".join([*lines, "", todo if said["resolved_at"] else f"{todo}; vigil ack {said['id']} ends the reminders"])


def _words(said: Mapping[str, Any]) -> str:
    if not said.get("resolution"):
        return str(said["why"])
    over = f"over: {said['resolution']}"
    return over if said["event"] == "resolved" else f"{said['why']}; {over}"


def _mark_of(event: str, resolved_at: object) -> str:
    """Return the word before a notice: what became of its incident since the last one."""
    return OVER_ALREADY if resolved_at is not None and event != "resolved" else EVENTS.get(event, "")


def fields_of(incident: Incident, details: bool = True) -> dict[str, Any]:
    """Return the fields of an incident for every notice and page; without details, in our words only."""
    return {
        "id": incident.id,
        "key": incident.key,
        "kind": incident.kind.value,
        "severity": incident.severity.value,
        "session": incident.session,
        "opened_at": rfc3339(incident.opened_at),
        "count": incident.count,
        "acked_at": rfc3339(incident.acked_at),
        "resolved_at": rfc3339(incident.resolved_at),
        "why": incident.why if details else PLAIN.get(incident.kind, incident.why),
        "resolution": incident.resolution,
        "deaths": list(incident.deaths),
    }


def _json(said: Mapping[str, Any]) -> bytes:
    return json.dumps(said).encode("ascii")
