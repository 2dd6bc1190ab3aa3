"""Sightings: what Vigil knows of a session and what it read of it, for the reaper's table (DESIGN 4.5)."""

from __future__ import annotations

from collections.abc import Mapping

from vigil.core.model.death import Cause
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.reading import Axis, AxisValue
from vigil.core.model.replace import replace
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.sighting import Glimpse, ReapPolicy, Sighting
from vigil.core.model.speech import Activity
from vigil.core.model.team import Role
from vigil.core.rules.liveness import leaves_its_pane
from vigil.words import some, span

WORKS = {  # evidence of work, in words; never `session_activity`, an mtime or a spinner
    "hook": "hook event",
    "stream": "event of its stream",
    "transcript": "transcript entry",
    "sub-agent": "word of a sub-agent",
    "screen": "change on its screen",
    "output": "output",
    "delivery": "delivery",
    "wake": "wake",
    "recovery": "recovery from its launch's folder",
}


def last_work(worked: Mapping[str, float], now: float) -> tuple[float, str]:
    """Return for a sighting how long ago a session worked, and by which evidence."""
    if not worked:
        return 0.0, "nothing is known of its work"
    kind = max(worked, key=lambda name: worked[name])
    quiet_s = max(0.0, now - worked[kind])
    return quiet_s, f"last work: {WORKS.get(kind, kind)}, {span(quiet_s)} ago"


def sight(session: Session, glimpse: Glimpse | None, policy: ReapPolicy, roles: Mapping[str, Role], now: float) -> Sighting:
    """Return the sighting of a session, as the reaper's table needs it."""
    role = roles.get(session.role or "")
    ttl_s = policy.idle_ttl_s if role is None or role.spec.idle_ttl_s is None else role.spec.idle_ttl_s
    base = Sighting(archived=session.archived_at is not None, idle_ttl_s=ttl_s, grace_s=policy.grace_s)
    launch = session.launch
    if session.state is State.ENDING:
        return replace(base, runs=False, kept=f"it is being ended: {session.why}")
    if session.state not in ALIVE or launch is None or launch.ended_at is not None:
        return _sight_dead(session, glimpse, base)
    activity = session.vitals.shows(Axis.ACTIVITY) or Activity.UNKNOWN
    worked = worked_of(session, glimpse)
    quiet_s, words = last_work(worked, now if glimpse is None else glimpse.at)
    return replace(
        base,
        human_clients=session.vitals.attached if glimpse is None or glimpse.clients is None else glimpse.clients,
        activity=Activity.STARTING if session.state is State.STARTING else activity,
        open=_open_of(session),
        cpu=None if glimpse is None else glimpse.cpu,
        unreadable=_unreadable(session, glimpse),
        orphan=f"its working folder {session.spec.cwd} is gone" if glimpse and glimpse.folder_gone_s is not None else "",
        orphan_s=(glimpse.folder_gone_s or 0.0) if glimpse else 0.0,
        quiet_s=quiet_s,
        last_work=words,
        kept="it was adopted: only who started it, or vigil stop, ends it" if launch.host is not None else "",
    )


def _sight_dead(session: Session, glimpse: Glimpse | None, base: Sighting) -> Sighting:
    """Return the sighting of a dead launch's leftovers; those of a finished one are kept."""
    base = replace(base, runs=False, kept=f"nothing of it runs: {session.state}")
    if leaves_its_pane(session):
        return replace(base, kept="its agent is dead, and its pane is open for a person to look at")
    if glimpse is None or not glimpse.survivors or session.state in (State.ENDING, State.PENDING, State.CRASHED):
        return base
    pids = ", ".join(str(process.pid) for process in glimpse.survivors[:5])
    one, many = "process that its last launch left lives", "processes that its last launch left live"
    words = f"{some(len(glimpse.survivors), one, many)} on (pid {pids})"
    death = session.last_death
    if session.state is State.SUCCEEDED or (death is not None and death.cause is Cause.FINISHED):
        return replace(base, kept=f"{words}; it finished, so they are kept")
    return replace(base, orphan=words, orphan_s=max(0.0, glimpse.at - session.state_since), kept="", cpu=glimpse.cpu)


def worked_of(session: Session, glimpse: Glimpse | None) -> dict[str, float]:
    """Return for a sighting when each evidence last showed work; idle spinners do not count."""
    worked = dict(session.worked)
    launch = session.launch
    if launch is not None and launch.started_at is not None:
        worked["wake"] = launch.started_at
        if launch.host is not None:
            worked["wake"] = launch.created_at
    if glimpse is not None and glimpse.printed_at is not None and not (glimpse.spins and says_idle(session)):
        kind = "output" if session.spec.runtime is RuntimeKind.HEADLESS else "screen"
        worked[kind] = max(glimpse.printed_at, worked.get(kind, 0.0))
    return worked


def says_idle(session: Session) -> bool:
    """Say whether an agent says it is idle, so that the reaper's sighting ignores spinners."""
    return session.vitals.shows(Axis.ACTIVITY) == Activity.IDLE


def _open_of(session: Session) -> str:
    if session.queue:
        return f"{some(len(session.queue), 'message waits', 'messages wait')} to be typed"
    if session.vitals.doing.tools:
        return f"a tool runs: {session.vitals.doing.tools[-1].name or 'one'}"
    return "a turn is open" if session.vitals.doing.turn else ""


def _unreadable(session: Session, glimpse: Glimpse | None) -> str:
    if session.state is not State.RUNNING:
        return f"its life is in doubt: it is {session.state}"
    if glimpse is None:
        return "nothing could be read of it"
    if glimpse.unreadable or glimpse.clients is None:
        return glimpse.unreadable or "who is attached could not be read"
    is_read = session.vitals.shows(Axis.PROCESS) in (AxisValue.ALIVE, AxisValue.STOPPED)
    return "" if is_read else "its process cannot be read"


def unreadable_stray(glimpse: Glimpse | None) -> str:
    if glimpse is None:
        return ""
    return glimpse.unreadable or ("who is attached could not be read" if glimpse.clients is None else "")
