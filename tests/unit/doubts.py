"""What a session in doubt is asked, answered and told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.unit.builders import Stage, make_process
from vigil.core.effects import Conclude, Effect, Look, SetTimer, Tell, TimerKind
from vigil.core.events import TimerFired

AGENT = make_process(110)


def told(effects: Iterable[Effect]) -> list[str]:
    """Return the incidents that somebody is told of, by their keys and whether they are over."""
    tells = (effect.incident for effect in effects if isinstance(effect, Tell))
    return [f"{incident.key}{' is over' if incident.resolved_at is not None else ''}" for incident in tells]


def timers(effects: Iterable[Effect]) -> list[SetTimer]:
    return [effect for effect in effects if isinstance(effect, SetTimer)]


def concluded(effects: Iterable[Effect]) -> list[str]:
    return [effect.launch.id for effect in effects if isinstance(effect, Conclude)]


def in_doubt(stage: Stage, seconds: float, **axes: str) -> Iterator[str]:
    """Answer every look that is asked for with the same readings; yield the state after each."""
    until = stage.now + seconds
    asked = stage.see(**axes)
    while True:
        yield stage.state()
        pending = timers(asked)
        assert pending, "P5: nobody will look again"
        stage.now = pending[-1].at
        if stage.now > until:
            return
        asked = stage.tell(TimerFired("s1", TimerKind.LOOK))
        assert Look(stage.launch()) in asked
        asked += stage.see(**axes)
