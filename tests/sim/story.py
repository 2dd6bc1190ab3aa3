"""The story of one world, for people: what really happened, what the machine heard, and what it wanted done, a line each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vigil.core.effects import EndLaunch, LogEntry, SetTimer, Spawn, Tell
from vigil.core.events import Asked, Exited, Hooked, Observed, Sighted, Swept
from vigil.core.model.incident import Incident
from vigil.core.model.launch import Launch
from vigil.core.model.reading import Fact
from vigil.core.model.session import Session

Line = tuple[float, str, tuple[Any, ...]]


def tell(story: Iterable[Line], about: str | None = None) -> list[str]:
    """Return the lines of a story, or those about one session and the host."""
    lines = []
    for at, who, words in story:
        line = " ".join(_word(word) for word in words)
        if about is None or who in ("fault", "daemon", "world") or _is_about(line, about):
            lines.append(f"{_moment(at)}  {who:8} {line}")
    return lines


def _moment(at: float) -> str:
    hours, rest = divmod(at, 3600)
    return f"{int(hours):02}:{int(rest // 60):02}:{rest % 60:06.3f}"


def _is_about(line: str, session_id: str) -> bool:
    return any(part == session_id or part.startswith(f"{session_id}-") for part in line.replace(":", " ").split())


def _word(word: Any) -> str:
    """Return one thing in a few words."""
    if isinstance(word, Observed):
        more = f" attached {word.attached}" if word.attached else ""
        return f"Observed {word.launch_id}: {_facts(word.facts)}{more}{' socket lost' if word.socket_lost else ''}"
    if isinstance(word, Swept):
        return "Swept " + "; ".join(f"{seen.launch_id} : {_facts(seen.facts)}" for seen in word.observed)
    if isinstance(word, Sighted):
        return "Sighted " + "; ".join(
            f"{seen.launch_id} : {seen.unreadable or f'{seen.clients} people'}" for seen in word.glimpses
        )
    if isinstance(word, Exited):
        found = word.exit
        status = f"signal {found.signal}" if found.signal is not None else f"exit {found.exit_code}"
        return f"Exited {found.launch_id} : {status}, by {found.observed_by}{', server ended' if found.server_ended else ''}"
    if isinstance(word, Hooked):
        return f"Hooked {word.launch_id} : " + ", ".join(hook.name for hook in word.hooks)
    if isinstance(word, Asked):
        return f"Asked {word.verb} {word.session_id} by {word.actor}"
    if isinstance(word, LogEntry):
        return f"{word.session_id or 'host'} {word.kind} " + " ".join(f"{key}={value}" for key, value in word.data.items())
    if isinstance(word, SetTimer):
        return f"SetTimer {word.session_id} {word.kind}"
    if isinstance(word, Spawn):
        return f"Spawn {word.launch.id}"
    if isinstance(word, EndLaunch):
        return f"EndLaunch {word.launch.id}{' unless attended' if word.unless_attended else ''}"
    if isinstance(word, Tell):
        return f"Tell {_incident(word.incident)}"
    if isinstance(word, tuple) and word and isinstance(word[0], Fact):
        return _facts(word)
    if isinstance(word, Launch | Session):
        return word.id
    if hasattr(word, "__dataclass_fields__"):
        return f"{type(word).__name__} " + " ".join(_word(getattr(word, name)) for name in word.__dataclass_fields__)
    return str(word)


def _facts(facts: Iterable[Fact]) -> str:
    return ", ".join(f"{fact.axis} {fact.value}{'!' if fact.conclusive else ''}" for fact in facts) or "nothing"


def _incident(incident: Incident) -> str:
    return f"{incident.session_id or 'host'} {incident.kind} {'is over' if incident.resolved_at is not None else 'is open'}"
