"""Restart: what a death costs in waiting; every death passes through `charge`, also a failed launch (DESIGN 4.4)."""

from __future__ import annotations

import zlib

from vigil.core.model.death import Cause, Death
from vigil.core.model.restart import Hold, HoldReason, RestartPolicy, RestartWhen
from vigil.core.model.session import Session
from vigil.core.model.team import Role

FREE = frozenset({Cause.FINISHED, Cause.OPERATOR, Cause.POLICY, Cause.HOST_REBOOTED})
COUNTED = frozenset(
    {
        Cause.CRASH,
        Cause.EARLY_EXIT,
        Cause.LAUNCH_FAILED,
        Cause.UNHEALTHY,
        Cause.STALLED,
        Cause.OOM,
        Cause.SERVER_DIED,
        Cause.PANE_CLOSED,
        Cause.KILLED_BY_UNKNOWN,
        Cause.UNOBSERVED,
    }
)
HELD = frozenset({Cause.LIMIT, Cause.AUTH})  # a launch now would only meet the same wall
WALLS = {Cause.LIMIT: HoldReason.LIMIT, Cause.AUTH: HoldReason.AUTH}
LIMIT_S = 3600.0  # the first retry of a limit without an end
COMES_BACK: dict[RestartWhen, frozenset[Cause]] = {
    RestartWhen.ALWAYS: frozenset(Cause),
    RestartWhen.ON_FAILURE: frozenset(Cause) - {Cause.FINISHED},
    RestartWhen.NEVER: frozenset(),
}


def charge(
    cause: Cause, at: float, count: int, stable_s: float, policy: RestartPolicy, jitter: float, resets_at: float | None = None
) -> tuple[int, Hold]:
    """Return what a death costs: the new count (anew if stable), and the restart's hold."""
    if stable_s >= policy.reset_after_s:
        count = 0
    if cause in HELD:
        return count, Hold(WALLS[cause], until=_lifted_at(cause, at, resets_at, policy))
    if cause in FREE:
        return count, uncharged(at, policy)
    assert cause in COUNTED
    count += 1
    if 0 < policy.max_restarts < count:  # 0 means no limit
        return count, Hold(HoldReason.SATURATED, until=None)
    return count, Hold(HoldReason.BACKOFF, until=at + delay_s(count, policy, jitter))


def uncharged(at: float, policy: RestartPolicy) -> Hold:
    """Return the hold before a restart that costs nothing: still no tight loop."""
    return Hold(HoldReason.BACKOFF, until=at + policy.base_s)


def is_ours(death: Death | None) -> bool:
    """Say whether a death is of a launch that never began because Vigil itself failed; it is not charged (P15)."""
    return death is not None and death.cause is Cause.LAUNCH_FAILED and not death.charged


def _lifted_at(cause: Cause, at: float, resets_at: float | None, policy: RestartPolicy) -> float | None:
    """Return when a restart tries a wall again, never at once; None needs a person."""
    if resets_at is None:
        return None if cause is Cause.AUTH else at + LIMIT_S
    return max(resets_at, at + policy.base_s)


def earliest_at(session: Session, now: float) -> float:
    """Return before when no restart begins that nobody asked for, whatever ends its hold (P4)."""
    death, launch, policy = session.last_death, session.launch, session.spec.restart
    if death is None or launch is None or death.launch_id != launch.id or death.at > now:  # the last: a clock was set back
        return now
    if session.waking is not None or (session.asked_at is not None and session.asked_at >= death.at):
        return now
    return death.at + (delay_s(1, policy, -1.0) if death.charged else policy.base_s)


def delay_s(count: int, policy: RestartPolicy, jitter: float) -> float:
    """Return the pause before restart number `count`; jitter runs from -1 to 1."""
    # Clamped: 2.0 ** 1024 raises, and a session that dies every five minutes gets there within four days.
    steps = min(count - 1, 64)
    return min(policy.cap_s, policy.base_s * policy.factor**steps) * (1 + policy.jitter * jitter)


def jitter_of(launch_id: str) -> float:
    """Return a launch's restart jitter, -1 to 1: equal in a replay, different among sessions."""
    return zlib.crc32(launch_id.encode()) / 0xFFFFFFFF * 2 - 1


def comes_back_by_itself(role: Role | None) -> bool:
    """Say whether a new boot restarts a session; replicas only if their manifest says so."""
    return role is None or role.spec.autostart
