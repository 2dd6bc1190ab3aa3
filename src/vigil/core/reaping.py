"""Reaping: what the reaper saw is judged by the table, and what is to be done is meant first, then done (P8).

Nothing is ended here that a person uses, that works, or of which too little is known (P2): the table keeps it, and what it does
not keep is compared once more by the tmux server itself in the moment of the kill.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vigil.core import incidents
from vigil.core.activity import Activity
from vigil.core.book import GRACE_S, Book
from vigil.core.changing import replace
from vigil.core.counting import some
from vigil.core.effects import EndLaunch, EndStray, LogEntry, Release
from vigil.core.ending import remove
from vigil.core.events import Adopted, Asked, Recovered, Sighted, Spared
from vigil.core.incident import IncidentKind
from vigil.core.intents import REAP, intend
from vigil.core.launching import leaves_its_pane
from vigil.core.model import ALIVE, After, Axis, Cause, ProcessId, RuntimeKind, Session, State
from vigil.core.reap import Action, Class, Glimpse, Policy, Sighting, Stray, Verdict, classify, last_work, recent_s, span
from vigil.core.roles import Role
from vigil.core.transition import become

MASS = 2  # so many, and over half of all, are more likely our own mistake than orphans (DESIGN 4.5)
SETTLED_S = 600.0  # a store that was lost stays an incident for so long, whatever else is found

ONLY_THERE = "what only the store knew is lost: who slept or was stopped, what waited to be typed, counters and history"

AFTER = {Class.ORPHAN: After.STOP, Class.ARCHIVED: After.ARCHIVE, Class.IDLE: After.PARK}


def judge(
    sessions: Iterable[Session],
    roles: Mapping[str, Role],
    glimpses: Iterable[Glimpse],
    strays: Iterable[Stray],
    policy: Policy,
    now: float,
) -> tuple[list[Verdict], list[tuple[Verdict, Stray]], str]:
    """Return what becomes of every session and every stray, and why orphans are kept if there are too many of them."""
    by_launch, strays = {glimpse.launch_id: glimpse for glimpse in glimpses}, tuple(strays)
    seen = [(session, _glimpse_of(session, by_launch)) for session in sorted(sessions, key=lambda session: session.name)]
    sightings = [(session, sight(session, glimpse, policy, roles, now)) for session, glimpse in seen]
    why = _why_kept(sightings, strays)
    verdicts = [_classify(session, sighting, why) for session, sighting in sightings]
    if policy.pressure:
        verdicts = _relieve(verdicts, sightings, policy)
    return verdicts, [(_classify_stray(stray, policy, why), stray) for stray in strays], why


def _glimpse_of(session: Session, glimpses: Mapping[str, Glimpse]) -> Glimpse | None:
    return None if session.launch is None else glimpses.get(session.launch.id)


def sight(session: Session, glimpse: Glimpse | None, policy: Policy, roles: Mapping[str, Role], now: float) -> Sighting:
    """Put together what is known of a session and what was read of it."""
    role = roles.get(session.role or "")
    ttl_s = policy.idle_ttl_s if role is None or role.spec.idle_ttl_s is None else role.spec.idle_ttl_s
    base = Sighting(archived=session.archived_at is not None, idle_ttl_s=ttl_s, grace_s=policy.grace_s)
    launch = session.launch
    if session.state is State.ENDING:
        return replace(base, runs=False, kept=f"it is being ended: {session.why}")
    if session.state not in ALIVE or launch is None or launch.ended_at is not None:
        return _sight_dead(session, glimpse, base)
    activity = session.axes.get(Axis.ACTIVITY)
    worked = worked_of(session, glimpse)
    quiet_s, words = last_work(worked, now if glimpse is None else glimpse.at)
    return replace(
        base,
        human_clients=session.attached if glimpse is None or glimpse.clients is None else glimpse.clients,
        activity=Activity.STARTING if session.state is State.STARTING else activity.value if activity else Activity.UNKNOWN,
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
    """Of a launch that is over only what it left behind matters; what a finished one left is no leak (DESIGN 4.5)."""
    base = replace(base, runs=False, kept=f"nothing of it runs: {session.state}")
    if leaves_its_pane(session):
        return replace(base, kept="its agent is dead, and its pane is open for a person to look at")
    if glimpse is None or not glimpse.survivors or session.state in (State.ENDING, State.PENDING, State.CRASHED):
        return base
    pids = ", ".join(str(process.pid) for process in glimpse.survivors[:5])
    left = some(len(glimpse.survivors), "process", "processes")
    words = f"{left} that its last launch left {'lives' if len(glimpse.survivors) == 1 else 'live'} on (pid {pids})"
    death = session.last_death
    if session.state is State.SUCCEEDED or (death is not None and death.cause is Cause.FINISHED):
        return replace(base, kept=f"{words}; it finished, so they are kept")
    return replace(base, orphan=words, orphan_s=max(0.0, glimpse.at - session.state_since), kept="", cpu=glimpse.cpu)


def worked_of(session: Session, glimpse: Glimpse | None) -> dict[str, float]:
    """Return when each kind of evidence last showed work; what a pane printed counts, unless it is only a spinner."""
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
    """Say whether an agent's own words are that no turn is open; only then what its screen draws may be a spinner."""
    activity = session.axes.get(Axis.ACTIVITY)
    return activity is not None and activity.value == Activity.IDLE


def _open_of(session: Session) -> str:
    if session.queue:
        return f"{some(len(session.queue), 'message waits', 'messages wait')} to be typed"
    if session.doing.tools:
        return f"a tool runs: {session.doing.tools[-1].name or 'one'}"
    return "a turn is open" if session.doing.turn else ""


def _unreadable(session: Session, glimpse: Glimpse | None) -> str:
    if session.state is not State.RUNNING:
        return f"its life is in doubt: it is {session.state}"
    if glimpse is None:
        return "nothing could be read of it"
    if glimpse.unreadable or glimpse.clients is None:
        return glimpse.unreadable or "who is attached could not be read"
    process = session.axes.get(Axis.PROCESS)
    if process is None or process.value not in ("alive", "stopped"):
        return "its process cannot be read"
    return ""


def _why_kept(sightings: list[tuple[Session, Sighting]], strays: Iterable[Stray]) -> str:
    """Return why no orphan is ended: one is older than the store, or over half of all would be."""
    strays = list(strays)
    older = [stray for stray in strays if stray.older_than_store]
    homeless = sum(1 for _, sighting in sightings if sighting.runs and sighting.orphan)
    orphans = homeless + len(strays)
    all_of_them = sum(1 for _, sighting in sightings if sighting.runs) + len(strays)
    if older:
        return f"{some(len(older), 'launch', 'launches')} the store does not know, older than the store itself"
    if orphans >= MASS and 2 * orphans > all_of_them:
        return f"{orphans} of {all_of_them} would be orphans"
    return ""


def _classify(session: Session, sighting: Sighting, why_kept: str) -> Verdict:
    launch_id = session.launch.id if session.launch is not None else ""
    if why_kept and sighting.orphan and sighting.runs:
        sighting = replace(sighting, kept=f"kept: {why_kept}")
    return classify(session.name, launch_id, sighting)


def _classify_stray(stray: Stray, policy: Policy, why_kept: str) -> Verdict:
    glimpse = stray.glimpse
    printed_at = glimpse.printed_at if glimpse is not None else None
    worked = {} if glimpse is None or printed_at is None else {"screen": printed_at}
    quiet_s, words = last_work(worked, glimpse.at if glimpse is not None else 0.0)
    what = f"launch {stray.launch_id} belongs to no session (pid {', '.join(str(p.pid) for p in processes_of(stray)[:5])})"
    sighting = Sighting(
        human_clients=(glimpse.clients or 0) if glimpse is not None else 0,
        cpu=glimpse.cpu if glimpse is not None else None,
        unreadable=_unreadable_stray(glimpse),
        orphan=what,
        orphan_s=stray.age_s,
        quiet_s=quiet_s if worked else stray.age_s,
        last_work=words if worked else "",
        idle_ttl_s=policy.grace_s,
        grace_s=policy.grace_s,
        kept=f"kept: {why_kept}" if why_kept else "",
    )
    return classify(stray.name or stray.launch_id, stray.launch_id, sighting)


def _unreadable_stray(glimpse: Glimpse | None) -> str:
    if glimpse is None:
        return ""
    return glimpse.unreadable or ("who is attached could not be read" if glimpse.clients is None else "")


def processes_of(stray: Stray) -> list[ProcessId]:
    """Return all there is of a stray, its server first."""
    return [*([stray.server] if stray.server is not None else []), *stray.processes]


def _relieve(verdicts: list[Verdict], sightings: list[tuple[Session, Sighting]], policy: Policy) -> list[Verdict]:
    """Memory is short: of those that are idle and would be kept, the longest idle is put to sleep; one at a time."""
    if any(verdict.action is Action.PARK for verdict in verdicts):
        return verdicts
    able = [
        (sighting.quiet_s, number)
        for number, ((_, sighting), verdict) in enumerate(zip(sightings, verdicts, strict=True))
        if verdict.kind is Class.KEEP and sighting.runs and not sighting.kept and sighting.quiet_s >= recent_s(sighting)
        if sighting.idle_ttl_s > 0
    ]
    if not able:
        return verdicts
    quiet_s, number = max(able)
    before = verdicts[number]
    words = f"memory is short ({policy.pressure}), and it is the longest idle ({span(quiet_s)})"
    verdicts[number] = replace(before, kind=Class.IDLE, action=Action.PARK, evidence=(words, *before.evidence))
    return verdicts


def sighted(book: Book, event: Sighted, now: float) -> None:
    """Do what the table says, each with its intent and its class in the event log first."""
    verdicts, strays, why_kept = judge(book.sessions.values(), book.roles, event.glimpses, event.strays, event.policy, now)
    glimpses = {glimpse.launch_id: glimpse for glimpse in event.glimpses}
    for verdict in verdicts:
        session = book.of_launch(verdict.launch_id)
        if verdict.action is not Action.KEEP and session is not None:
            reap(book, session, verdict, glimpses[verdict.launch_id], event.actor, now)
    for verdict, stray in strays:
        if verdict.action is Action.KILL:
            pids = [process.pid for process in processes_of(stray)]
            data = {"class": verdict.kind.value, "evidence": list(verdict.evidence), "pids": pids, "actor": event.actor}
            book.change.log.append(LogEntry(now, "orphan.reaping", None, stray.name or None, stray.launch_id, data))
            book.do(EndStray(stray, GRACE_S))
    _tell_of_store(book, why_kept, now)


def _tell_of_store(book: Book, why_kept: str, now: float) -> None:
    """One incident while there is reason to think that the store does not know what it should."""
    key = incidents.key_of(IncidentKind.STORE_LOST)
    if why_kept:
        words = f"nothing is reaped as an orphan: {why_kept}; vigil reap --dry-run shows them"
        if key in book.incidents:
            return
        incidents.open_incident(book, IncidentKind.STORE_LOST, None, words, now)
    elif key in book.incidents and now - book.incidents[key].opened_at >= SETTLED_S:
        incidents.resolve(book, key, "every launch that lives is known", now)


def reap(book: Book, session: Session, verdict: Verdict, glimpse: Glimpse, actor: str, now: float) -> None:
    """Mean it, then ask for it: what lives is compared by its server first; what only left something behind is cleared."""
    launch = session.launch
    assert launch is not None
    reason = f"{verdict.kind}: {verdict.evidence[0]}"
    data = {"class": verdict.kind.value, "action": verdict.action.value, "evidence": list(verdict.evidence), "actor": actor}
    book.log(now, session, "session.reaping", **data)
    intent = intend(book, session, REAP, Cause.POLICY, actor, reason, now)
    if launch.ended_at is not None:
        book.keep(replace(session, intent=intent))
        book.do(EndLaunch(launch, GRACE_S))
        return
    words = f"being reaped ({reason})"
    become(book, session, now, State.ENDING, words, hold=None, after=AFTER[verdict.kind], intent=intent)
    book.do(EndLaunch(launch, GRACE_S, unless_attended=True, reap=True, guard=glimpse.guard))


def spared(book: Book, event: Spared, now: float) -> None:
    """What was to be reaped lives on; of one that died meanwhile the rest is ended."""
    session = book.of_launch(event.launch_id)
    if session is None or session.state is not State.ENDING or session.intent is None or session.intent.verb != REAP:
        return
    assert session.launch is not None
    if session.launch.ended_at is not None:
        book.do(EndLaunch(session.launch, GRACE_S, unless_attended=True))
        return
    book.log(now, session, "session.spared", verb=REAP, why=event.why)
    # A kill that its server did after all was ours, and nobody's crash (P8).
    intent = replace(session.intent, void_from=now + GRACE_S)
    become(book, session, now, State.RUNNING, f"not reaped: {event.why}", after=None, intent=intent, waking=None)


def recovered(book: Book, event: Recovered, now: float) -> None:
    """Take sessions over that live and that the store does not know; one incident for all of them."""
    for session in event.sessions:
        before = book.sessions.get(session.id)
        if (before is None and session.name in book.by_name) or session.launch is None:
            continue
        if before is not None:
            session = replace(before, launch=session.launch, launches=session.launches, axes=session.axes)
            session = replace(session, hold=None, after=None, intent=None, doubt=None)
        session = replace(session, worked={**session.worked, "recovery": now})
        assert session.launch is not None
        book.change.launches.append(session.launch)
        session = become(book, session, now, State.RUNNING, "found alive, and unknown to the store")
        book.log(now, session, "session.recovered", why=event.why)
    words = f"{event.why}: {some(len(event.sessions), 'session was', 'sessions were')} adopted from launches/; {ONLY_THERE}"
    incidents.open_incident(book, IncidentKind.STORE_LOST, None, words, now)


def adopted(book: Book, event: Adopted, now: float) -> None:
    """Take over a session that was started elsewhere."""
    session = event.session
    assert session.launch is not None and session.name not in book.by_name, "checked at the door"
    session = book.keep(book.read_axes(session, event.facts))
    assert session.launch is not None and session.launch.host is not None
    book.change.launches.append(session.launch)
    pid = session.launch.agent.pid if session.launch.agent is not None else None
    host = session.launch.host
    data = {"target": host.name, "socket": host.socket, "pid": pid, "agent": session.spec.agent}
    book.log(now, session, "session.adopted", actor=event.actor, **data)


def release(book: Book, session: Session, event: Asked, now: float) -> None:
    """Forget a session that was adopted, and leave all that runs as it is; what Vigil launched is never let go like that."""
    if session.launch is None or session.launch.host is None:
        return
    book.log(now, session, "session.released", actor=event.actor, reason=event.reason)
    book.do(Release(session.launch))
    remove(book, session, now)
