"""What the API shows of a session, a death, an event (INTERFACE.md): fields are added, never renamed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from vigil.agents.adapters import ADAPTERS
from vigil.core.handlers.conversation import look_at_conversation
from vigil.core.model.conversation import NOTHING_SPENT, Spent
from vigil.core.model.death import Death
from vigil.core.model.incident import Incident
from vigil.core.model.progress import Doing, Recent
from vigil.core.model.reading import Axis, Doubt, Reading
from vigil.core.model.restart import HoldReason, RestartPolicy, RestartWhen
from vigil.core.model.session import ALIVE, Session
from vigil.core.model.speech import What
from vigil.core.model.stall import Stall
from vigil.core.model.team import Role
from vigil.core.rules.explain import Explanation, why_of
from vigil.core.rules.health import health_of
from vigil.core.rules.wake import Resumability
from vigil.moments import rfc3339
from vigil.notify.message import fields_of
from vigil.redact import Redactor, redact_command
from vigil.store.store import Store, StoredEvent


def session_view(session: Session, incidents: Iterable[Incident] = (), role: Role | None = None) -> dict[str, Any]:
    """Return one session with the ids of its open incidents; a replica's restarts are its role's."""
    launch, hold, policy = session.launch, session.hold, session.spec.restart
    up = session.state in ALIVE and launch is not None and launch.ended_at is None
    backoff_until = hold.until if hold is not None and hold.reason == HoldReason.BACKOFF else None
    return {
        "name": session.name,
        "id": session.id,
        "state": session.state.value,
        "hold": None if hold is None else {"reason": hold.reason, "until": rfc3339(hold.until)},
        "health": health_of(session),
        "why": why_of(session),
        "agent": session.spec.agent,
        "runtime": session.spec.runtime.value,
        "sandbox": session.spec.sandbox.kind.value if session.spec.sandbox else None,
        "cwd": session.spec.cwd,
        "launch": None if launch is None else launch.id,
        "pid": launch.agent.pid if up and launch and launch.agent else None,
        "server_pid": launch.server.pid if up and launch and launch.server else None,
        "created_at": rfc3339(session.created_at),
        "state_since": rfc3339(session.state_since),
        "last_activity_at": rfc3339(session.last_activity_at),
        "axes": {axis.value: _reading_view(session.vitals.axes.get(axis)) for axis in Axis},
        "restarts": {
            "count": restarts_of(policy, session.charges if role is None else role.charges),
            "max": policy.max_restarts,
            "policy": policy.when.value,
            "backoff_until": rfc3339(backoff_until),
            "next_attempt_at": rfc3339(hold.until if hold is not None else None),
            "saturated": hold is not None and hold.reason == HoldReason.SATURATED,
        },
        "last_death": None if session.last_death is None else _last_death_view(session.last_death),
        "conversation": conversation_view(session),
        "usage": usage_view(session),
        "attached": session.vitals.attached,
        "archived_at": rfc3339(session.archived_at),
        "incidents": [incident.id for incident in incidents],
    }


def restarts_of(policy: RestartPolicy, charges: int) -> int:
    """Return how many restarts were charged, with a pending or refused one; none with `never`."""
    return 0 if policy.when is RestartWhen.NEVER else charges


def conversation_view(session: Session) -> dict[str, Any] | None:
    """Return a session's conversation, and whether it can be resumed, by its last reading."""
    if not session.conversation:
        return None
    adapter = ADAPTERS.get(session.spec.agent)
    found, why = look_at_conversation(session)
    resumable = adapter is not None and adapter.resumes and found is Resumability.RESUMABLE
    return {"id": session.conversation, "resumable": resumable, "why": why}


def wall_view(session: Session) -> dict[str, Any] | None:
    """Return the wall that a session met and no session of its account has passed yet."""
    wall = session.wall
    if wall is None:
        return None
    return {
        "cause": wall.cause.value,
        "text": wall.text,
        "at": rfc3339(wall.at),
        "until": rfc3339(wall.until),
        "tries": wall.tries,
        "note": wall.note,
        "over": wall.over,
    }


def usage_view(session: Session) -> dict[str, Any] | None:
    """Return what a session and its launch have used, if the agent reports it."""
    total, before = session.spent, session.vitals.spent_before
    if total == NOTHING_SPENT:
        return None
    return _spent(total) | {
        "launch": {
            "input_tokens": total.input_tokens - before.input_tokens,
            "output_tokens": total.output_tokens - before.output_tokens,
            "cost_usd": round(total.cost_usd - before.cost_usd, 6),
            "turns": total.turns - before.turns,
        }
    }


def _spent(spent: Spent) -> dict[str, Any]:
    return {
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cached_tokens": spent.cached_tokens,
        "cost_usd": round(spent.cost_usd, 6),
        "turns": spent.turns,
    }


def session_detail(
    session: Session, redactor: Redactor, incidents: Iterable[Incident] = (), role: Role | None = None
) -> dict[str, Any]:
    """Return all there is about one session."""
    launch, vitals = session.launch, session.vitals
    return session_view(session, incidents, role) | {
        "role": session.role,
        "adopted": None if launch is None or launch.host is None else asdict(launch.host),
        "worked": {kind: rfc3339(at) for kind, at in session.worked.items()},
        "axes": {
            axis.value: None if reading is None else {**(_reading_view(reading) or {}), "why": reading.why}
            for axis in Axis
            for reading in [vitals.axes.get(axis)]
        },
        "heartbeat": None
        if vitals.pulse is None
        else {"state": vitals.pulse.state.value, "since": rfc3339(vitals.pulse.due_from)},
        "open": open_view(vitals.doing),
        "account": session.account or None,
        "wall": wall_view(session),
        "recent": [recent_view(one) for one in vitals.recent],
        "command": [redactor.known(word) for word in redact_command(session.spec.command)],
        "limits": asdict(session.spec.limits),
        "cgroup": (launch.cgroup if launch else "") or None,
        "umask": None if session.spec.umask is None else f"{session.spec.umask:03o}",
        "launches": session.launches,
        "mode": None if launch is None else {"mode": launch.mode.value, "cause": launch.woken_for},
        "queue": [
            {"id": one.id, "at": rfc3339(one.at), "characters": one.characters, "typed_at": rfc3339(one.typed_at)}
            for one in session.queue
        ],
        "started_at": rfc3339(launch.started_at) if launch else None,
        "pane": launch.pane if launch else None,
        "doubt": None if vitals.doubt is None else doubt_view(vitals.doubt),
        "stall": None if vitals.stall is None else stall_view(vitals.stall),
        "intent": None
        if vitals.intent is None
        else {"verb": vitals.intent.verb, "actor": vitals.intent.actor, "at": rfc3339(vitals.intent.at)},
    }


def open_view(doing: Doing) -> dict[str, Any]:
    """Return what is open of an agent's work."""
    return {
        "turn": doing.turn,
        "tools": [
            {"id": one.id, "name": one.name, "since": rfc3339(one.since), "until": rfc3339(one.until)} for one in doing.tools
        ],
        "asked": [{"id": one.id, "name": one.name, "since": rfc3339(one.since)} for one in doing.asked],
        "waits": wait_view(doing),
    }


def doubt_view(doubt: Doubt) -> dict[str, Any]:
    """Return a doubt about a session, with its evidence."""
    return {
        "kind": doubt.kind.value,
        "axis": doubt.axis.value,
        "since": rfc3339(doubt.since),
        "attempts": doubt.attempts,
        "evidence": doubt.evidence,
    }


def stall_view(stall: Stall) -> dict[str, Any]:
    """Return what the watchdog found of a silent session, and what it did."""
    return {
        "verdict": stall.verdict,
        "confidence": stall.confidence.value,
        "since": rfc3339(stall.since),
        "warnings": stall.warnings,
        "warned_at": rfc3339(stall.warned_at),
        "remedy": stall.step or None,
    }


def wait_view(doing: Doing) -> dict[str, Any] | None:
    """Return what an agent says it waits for, and until when."""
    if not (doing.waits or doing.retries):
        return None
    return {"for": "the model" if doing.retries else "a moment it named", "until": rfc3339(doing.until)}


def recent_view(one: Recent) -> dict[str, Any]:
    """Return one of an agent's last words."""
    of_tool = one.what in (What.TOOL_STARTED, What.TOOL_ENDED)
    return {
        "at": rfc3339(one.at),
        "what": one.what.value,
        "tool": one.name if of_tool else None,
        "text": one.text or (None if of_tool else one.name or None),
        "id": one.id or None,
        "failed": one.failed,
        "subagent": one.subagent or None,
        "source": one.source,
        "times": one.times,
    }


def incident_view(incident: Incident) -> dict[str, Any]:
    """Return one incident: the fields of a notice, and its notices."""
    return fields_of(incident) | {
        "notices": [
            {
                "id": notice.id,
                "route": notice.route,
                "event": notice.event,
                "state": notice.state,
                "at": rfc3339(notice.at),
                "why": notice.why,
                "attempts": notice.attempts,
                "retry_at": rfc3339(notice.retry_at),
            }
            for notice in incident.notices
        ],
    }


def event_view(stored: StoredEvent) -> dict[str, Any]:
    """Return one line of the event log."""
    entry = stored.entry
    return {
        "seq": stored.seq,
        "at": rfc3339(entry.at),
        "kind": entry.kind,
        "session": entry.session,
        "launch": entry.launch_id,
        "data": {key: rfc3339(value) if key == "until" else value for key, value in entry.data.items()},
    }


def why_view(name: str, explanation: Explanation, now: float) -> dict[str, Any]:
    """Return an explanation."""
    return {
        "name": name,
        "verdict": explanation.verdict,
        "confidence": explanation.confidence,
        "reasons": list(explanation.reasons),
        "evidence": [
            {
                "fact": proof.fact,
                "value": proof.value,
                "source": proof.source,
                "age_s": None if proof.at is None else round(max(0.0, now - proof.at), 3),
            }
            for proof in explanation.evidence
        ],
        "ruled_out": list(explanation.ruled_out),
        "next": [{"what": step.what, "at": rfc3339(step.at)} for step in explanation.next],
    }


def _reading_view(reading: Reading | None) -> dict[str, Any] | None:
    if reading is None:
        return None
    return {
        "value": reading.value,
        "source": reading.source,
        "conclusive": reading.conclusive,
        "observed_at": rfc3339(reading.observed_at),
        "since": rfc3339(reading.since),
    }


def _last_death_view(death: Death) -> dict[str, Any]:
    return {
        "id": death.id,
        "cause": death.cause.value,
        "exit_code": death.exit_code,
        "signal": death.signal,
        "at": rfc3339(death.at),
    }


def kept_headers(store: Store, kind: str) -> dict[str, str]:
    """Return the header that says up to which moment records of a kind may be deleted; none if all are there."""
    until = rfc3339(store.removed_until.get(kind))
    return {} if until is None else {"x-vigil-removed-until": until}
