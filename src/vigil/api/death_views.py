"""What the API shows of a death (INTERFACE.md): its record, its bundle, and what became of the session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vigil.core.handlers.summary import KIND
from vigil.core.model.death import Death
from vigil.forensics import Bundle
from vigil.moments import rfc3339
from vigil.store.store import StoredEvent

NEXT = ("session.state", "session.launched", "session.reset", "session.removed")  # what Vigil did next


def death_view(death: Death) -> dict[str, Any]:
    """Return one death record."""
    return {
        "id": death.id,
        "session": death.session,
        "launch": death.launch_id,
        "at": rfc3339(death.at),
        "observed_by": death.observed_by,
        "cause": death.cause.value,
        "confidence": death.confidence.value,
        "pid": death.pid,
        "server_pid": death.server_pid,
        "exit_code": death.exit_code,
        "signal": death.signal,
        "charged": death.charged,
        "intent": None
        if death.intent is None
        else {
            "verb": death.intent.verb,
            "actor": death.intent.actor,
            "reason": death.intent.reason,
            "at": rfc3339(death.intent.at),
        },
        "uptime_s": death.uptime_s,
        "activity": death.activity or None,
        "evidence": [{"source": line.source, "text": line.text} for line in death.evidence],
    }


def death_detail(
    death: Death, bundle: Bundle | None, folder: Path, beside: list[str], later: Sequence[StoredEvent]
) -> dict[str, Any]:
    """Return all there is about one death; without a bundle (yet), what that would say is empty."""
    told = (event.entry.data for event in later if event.entry.kind == KIND and event.entry.data.get("death") == death.id)
    return death_view(death) | {
        "beside": beside,
        "summary": next(({key: value for key, value in data.items() if key != "death"} for data in told), None),
        "last_events": bundle.last_events if bundle else [],
        "stderr_tail": bundle.stderr_tail if bundle else [],
        "stdout_tail": bundle.stdout_tail if bundle else [],
        "pane_tail": bundle.pane_tail if bundle else [],
        "pane_age_s": bundle.screen_age_s if bundle else None,
        "memory": bundle.memory if bundle else None,
        "changes": bundle.changes if bundle else None,
        "survivors": bundle.survivors if bundle else [],
        "kernel_lines": bundle.kernel_lines if bundle else [],
        "disk": bundle.disk if bundle else [],
        "tree": bundle.tree if bundle else None,
        "unknown": bundle.unknown if bundle else [],
        "bundle": str(folder) if bundle else None,
        "next": [{"at": rfc3339(event.entry.at), "what": _what(event)} for event in later if event.entry.kind in NEXT],
    }


def _what(event: StoredEvent) -> str:
    entry, data = event.entry, event.entry.data
    if entry.kind == "session.launched":
        return f"launched again as {entry.launch_id}"
    if entry.kind != "session.state":
        return entry.kind.removeprefix("session.")
    until = data.get("until")
    hold = f" ({data['hold']}{f' until {rfc3339(until)}' if until else ''})" if data.get("hold") else ""
    return f"{data.get('from')} → {data.get('to')}{hold}: {data.get('why')}"
