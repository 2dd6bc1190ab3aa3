"""Heartbeats: why Vigil keeps a session without signs of life all the same (P2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vigil.core.model.reading import Axis
from vigil.core.model.session import Session, State
from vigil.core.model.team import Health


class HeartbeatKeep(NamedTuple):
    why: str
    holds: Callable[[Session, Health, float], bool]


KEEPS = (
    HeartbeatKeep("a person is attached", lambda s, _h, _now: s.vitals.attached > 0),
    HeartbeatKeep("its life is in doubt", lambda s, _h, _now: s.state is not State.RUNNING or s.vitals.doubt is not None),
    HeartbeatKeep("its process cannot be read", lambda s, _h, _now: s.vitals.shows(Axis.PROCESS) not in ("alive", "stopped")),
    HeartbeatKeep("its tmux server does not answer", lambda s, _h, _now: s.vitals.shows(Axis.SERVER) not in (None, "alive")),
    HeartbeatKeep("it still prints", lambda s, h, now: now - (s.last_activity_at or 0.0) < h.heartbeat_s * h.failures),
)
