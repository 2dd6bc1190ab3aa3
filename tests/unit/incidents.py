"""Sessions that hang, die and come back, and what humans are told of it."""

from __future__ import annotations

from collections.abc import Iterable

from tests.unit.builders import Stage, make_exit, make_launched
from vigil.core.effects import Effect, Tell, TimerKind
from vigil.core.events import Condition, Ended, Exited, TimerFired
from vigil.core.model.incident import Incident, IncidentKind

PASS_S = 10.0
HOLDS = Condition(IncidentKind.LOW_MEMORY, True, "180 MB are left", 1100.0)
OVER = Condition(IncidentKind.LOW_MEMORY, False, "2 GB are free", 1200.0)


def told(effects: Iterable[Effect]) -> list[Incident]:
    return [effect.incident for effect in effects if isinstance(effect, Tell)]


def open_keys(stage: Stage) -> list[str]:
    return sorted(stage.machine.incidents)


def only_incident(stage: Stage) -> Incident:
    (incident,) = stage.machine.incidents.values()
    return incident


def hang(stage: Stage, session_ids: list[str], seconds: float = 90.0) -> list[Effect]:
    """The servers of these sessions do not answer, pass after pass."""
    asked: list[Effect] = []
    for _ in range(int(seconds / PASS_S)):
        asked += stage.sweep(session_ids, len(stage.machine.sessions), server="wedged")
        stage.now += PASS_S
    return asked


def die(stage: Stage, session_id: str, **found: int | bool) -> list[Effect]:
    return stage.tell(Exited(make_exit(stage.launch(session_id).id, stage.now, **found)))


def come_back(stage: Stage, session_id: str = "s1") -> None:
    """The wait of a session is over, and its next launch comes to life."""
    hold = stage.session(session_id).hold
    assert hold is not None and hold.until is not None
    stage.now = max(stage.now, hold.until)
    stage.tell(TimerFired(session_id, TimerKind.HOLD))
    relaunched(stage, session_id)


def relaunched(stage: Stage, session_id: str = "s1") -> None:
    """What the last launch left is gone, and the next one comes to life."""
    stage.tell(Ended(stage.launch(session_id).id, ok=True))
    stage.tell(make_launched(stage.launch(session_id).id, stage.now))


def waits(stage: Stage, waiting: bool) -> list[Effect]:
    return stage.hear("waiting-human" if waiting else "working")


def last_told(effects: Iterable[Effect], kind: IncidentKind = IncidentKind.NEEDS_INPUT) -> Incident:
    return [incident for incident in told(effects) if incident.kind is kind][-1]
