"""The machine: every event of a session's life, in one place, and what is to be done about it (DESIGN 3).

Pure. `handle` changes the machine's own memory and returns effects; the first is always what must be durable before the rest is
done. Facts of another launch than the current one are dropped (fencing), so nothing old ever speaks for something new.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from vigil.core import death as deaths
from vigil.core.effects import CloseLaunch, Effect, EndLaunch, LogEntry, Persist, Purge, SetTimer, Spawn
from vigil.core.events import (
    Asked,
    Closed,
    Declared,
    Ended,
    Event,
    Exited,
    Interrupted,
    Launched,
    LaunchFailed,
    Noted,
    Observed,
    Orphaned,
    Resumed,
    TimerFired,
    Withdrawn,
)
from vigil.core.model import (
    ALIVE,
    After,
    Axis,
    Cause,
    Death,
    Evidence,
    Exit,
    Fact,
    Hold,
    Intent,
    Launch,
    Reading,
    Session,
    State,
)
from vigil.core.restart import COMES_BACK, COUNTED, charge, jitter_of

PACE = 4  # launches that may start at once on a host (DESIGN 4.4)
GRACE_S = 10.0  # between TERM and KILL
INTENT_LASTS_S = 600.0


class Machine:
    """All sessions of one host, and the policy over them."""

    def __init__(self, sessions: Iterable[Session] = ()) -> None:
        self.sessions: dict[str, Session] = {}
        self.by_name: dict[str, str] = {}
        self._by_launch: dict[str, str] = {}
        self._spawning: set[str] = set()
        self._waiting: deque[str] = deque()
        self._change = _Change()
        for session in sessions:
            self._keep(session)
        self._change = _Change()  # what was loaded is no change

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Return what is to be done about an event, in order; what must be durable comes first."""
        self._change = _Change()
        HANDLERS[type(event)](self, event, now)
        return self._change.effects()

    def find(self, name: str) -> Session | None:
        """Return the session of exactly this name."""
        session_id = self.by_name.get(name)
        return None if session_id is None else self.sessions[session_id]

    def of_launch(self, launch_id: str) -> Session | None:
        """Return the session whose current launch this is; an old launch has none (fencing)."""
        session = self.sessions.get(self._by_launch.get(launch_id, ""))
        return session if session and session.launch and session.launch.id == launch_id else None

    # Declared and asked: what operators want

    def _declared(self, event: Declared, now: float) -> None:
        assert event.name not in self.by_name, "checked at the door"
        session = Session(event.session_id, event.name, event.spec, now, State.PENDING, now, "declared")
        self._keep(session)
        self._log(now, session, "session.declared", actor=event.actor, agent=event.spec.agent, runtime=event.spec.runtime.value)
        self._launch_when_paced(session, now)

    def _withdrawn(self, event: Withdrawn, now: float) -> None:  # noqa: ARG002
        session = self.sessions[event.session_id]
        self._forget(session)
        self._change = _Change()

    def _asked(self, event: Asked, now: float) -> None:
        session = self.sessions.get(event.session_id)
        if session is None:
            return
        self._log(now, session, f"session.asked-{event.verb}", actor=event.actor, reason=event.reason)
        VERBS[event.verb](self, session, event, now)

    def _stop(self, session: Session, event: Asked, now: float) -> None:
        if session.state in ALIVE:
            self._end(session, event, After.STOP, now)
        elif session.state is not State.STOPPED:
            self._become(session, now, State.STOPPED, f"stopped by {event.actor}", hold=None, after=None)

    def _start(self, session: Session, event: Asked, now: float) -> None:
        if session.state is State.ENDING:
            self._end(session, event, After.RELAUNCH, now)
        elif session.state not in ALIVE:
            self._relaunch(replace(session, charges=0), now)

    def _restart(self, session: Session, event: Asked, now: float) -> None:
        if session.state in ALIVE:
            self._end(session, event, After.RELAUNCH, now)
        else:
            self._relaunch(session, now)

    def _rm(self, session: Session, event: Asked, now: float) -> None:
        if session.state in ALIVE:
            self._end(session, event, After.REMOVE, now)
        elif session.launch is None:
            self._remove(session, now)
        else:  # its survivors go first; nothing is purged before that is verified
            session = self._become(session, now, State.ENDING, "being removed", hold=None, after=After.REMOVE)
            self._end_all(session.launch)

    def _reset(self, session: Session, event: Asked, now: float) -> None:
        waiting = session.hold is not None and session.hold.reason in ("backoff", "saturated")
        session = self._keep(replace(session, charges=0))
        if waiting and session.state not in ALIVE:
            self._log(now, session, "session.reset", actor=event.actor)
            self._relaunch(session, now)

    def _end(self, session: Session, event: Asked, after: After, now: float) -> None:
        """Record the intent, then end the launch; while another ending runs only what follows it changes."""
        assert session.launch is not None
        launch, ending = session.launch, session.state is State.ENDING
        intent = self._intend(session, event.verb, Cause.OPERATOR, event.actor, event.reason, now)
        if launch.ended_at is not None and not ending:
            intent = session.intent or intent
        self._become(session, now, State.ENDING, f"{event.verb} by {event.actor}", hold=None, after=after, intent=intent)
        if not ending and launch.id not in self._spawning:  # a spawn in flight is ended when it has come to life
            self._end_all(launch)

    def _end_all(self, launch: Launch | None) -> None:
        assert launch is not None
        self._do(EndLaunch(launch, GRACE_S))

    def _intend(self, session: Session, verb: str, cause: Cause, actor: str, reason: str, now: float) -> Intent:
        assert session.launch is not None
        intent = Intent(
            id=f"{session.launch.id}-{verb}",
            session_id=session.id,
            launch_id=session.launch.id,
            verb=verb,
            cause=cause,
            actor=actor,
            reason=reason,
            at=now,
            target=session.launch.process,
            until=now + INTENT_LASTS_S,
        )
        self._change.intents.append(intent)
        return intent

    # Launches: how a session comes to life

    def _relaunch(self, session: Session, now: float) -> None:
        """Launch anew; whatever the last launch left behind is ended and verified gone first (P1)."""
        if session.launch is None:
            self._launch_when_paced(self._keep(replace(session, hold=None)), now)
        else:
            state = session.state if session.state is State.CRASHED else State.PENDING
            self._become(session, now, state, "ending what its last launch left", hold=Hold("survivor", None), after=None)
            self._end_all(session.launch)

    def _launch_when_paced(self, session: Session, now: float) -> None:
        if len(self._spawning) < PACE:
            self._launch(session, now)
        else:
            self._become(
                session, now, State.PENDING, f"{PACE} launches start at once on a host", hold=Hold("pace", None), after=None
            )
            self._waiting.append(session.id)

    def _launch(self, session: Session, now: float) -> None:
        number = session.launches + 1
        launch = Launch(id=f"{session.id}-{number}", session_id=session.id, number=number, created_at=now)
        if session.launch is not None:
            self._by_launch.pop(session.launch.id, None)
        session = replace(session, launches=number, launch=launch, axes={}, intent=None, attached=0)
        session = self._become(session, now, State.STARTING, "launching", hold=None, after=None)
        self._change.launches.append(launch)
        self._spawning.add(launch.id)
        self._do(Spawn(session, launch))

    def _spawn_over(self, launch_id: str, now: float) -> None:
        self._spawning.discard(launch_id)
        while self._waiting and len(self._spawning) < PACE:
            session = self.sessions.get(self._waiting.popleft())
            if session and session.state is State.PENDING and session.hold and session.hold.reason == "pace":
                self._launch(session, now)

    def _launched(self, event: Launched, now: float) -> None:
        self._spawn_over(event.launch_id, now)
        session = self.of_launch(event.launch_id)
        if session is None or session.launch is None or session.launch.ended_at is not None:
            return
        launch = replace(
            session.launch,
            started_at=session.launch.started_at or event.at,
            process=event.process,
            root=event.root,
            server=event.server,
            pane=event.pane,
        )
        self._change.launches.append(launch)
        session = self._read_axes(replace(session, launch=launch), event.facts)
        if session.state is State.ENDING:
            self._keep(session)
            self._end_all(launch)
            return
        if session.state is State.STARTING:
            session = self._become(session, now, State.RUNNING, f"up as pid {event.process.pid}", hold=None)
            self._log(now, session, "session.launched", pid=event.process.pid)
        elif event.adopted:
            self._keep(session)
        if session.charges:
            self._do(SetTimer(session.id, "stable", (launch.started_at or now) + session.spec.restart.reset_after_s))

    def _launch_failed(self, event: LaunchFailed, now: float) -> None:
        self._spawn_over(event.launch_id, now)
        session = self.of_launch(event.launch_id)
        if session is None or session.launch is None or session.launch.ended_at is not None:
            return
        found = Exit(event.launch_id, event.at, "daemon", started=False, status_source="launch")
        session, death = self._record_death(session, found, event.why)
        self._after_death(session, death, now)

    def _interrupted(self, event: Interrupted, now: float) -> None:
        self._spawn_over(event.launch_id, now)
        session = self.of_launch(event.launch_id)
        if session is None or session.state is not State.STARTING or session.launch is None:
            return
        launch = replace(session.launch, ended_at=now)
        self._change.launches.append(launch)
        session = self._become(replace(session, launch=launch), now, State.PENDING, "its launch was interrupted")
        self._relaunch(session, now)

    # Deaths: one funnel

    def _exited(self, event: Exited, now: float) -> None:
        session = self.of_launch(event.exit.launch_id)
        if session is None or session.launch is None or session.launch.ended_at is not None:
            return
        session, death = self._record_death(session, event.exit)
        self._after_death(session, death, now)

    def _record_death(self, session: Session, found: Exit, why: str = "") -> tuple[Session, Death]:
        assert session.launch is not None
        launch = session.launch
        uptime_s = None if launch.started_at is None else max(0.0, found.at - launch.started_at)
        case = deaths.Case(found, session.intent, uptime_s, session.spec.restart.when)
        cause = deaths.classify(case)
        of_server = cause is Cause.SERVER_DIED and found.server_ended
        evidence = deaths.evidence_of(case)
        if why:
            evidence = (Evidence("launch", why), *evidence[1:])
        death = Death(
            id=f"d-{launch.id}",
            session_id=session.id,
            session=session.name,
            launch_id=launch.id,
            at=found.at,
            observed_by=found.observed_by,
            cause=cause,
            exit_code=found.server_exit_code if of_server else found.exit_code,
            signal=found.server_signal if of_server else found.signal,
            charged=cause in COUNTED,
            intent=session.intent,
            uptime_s=uptime_s,
            evidence=evidence,
        )
        launch = replace(launch, ended_at=found.at)
        facts = (Fact(Axis.PROCESS, "dead", found.status_source or found.observed_by, found.at, conclusive=True),)
        session = self._read_axes(replace(session, launch=launch, last_death=death), facts)
        self._change.launches.append(launch)
        self._change.deaths.append(death)
        self._log(
            found.at,
            session,
            "session.died",
            death=death.id,
            cause=cause.value,
            exit_code=death.exit_code,
            signal=death.signal,
            charged=death.charged,
            observed_by=death.observed_by,
            why=why or evidence[0].text,
        )
        return session, death

    def _after_death(self, session: Session, death: Death, now: float) -> None:
        """Decide what becomes of a session that died; one that is being ended waits until that is verified."""
        launch = session.launch
        assert launch is not None
        if session.after is not None:
            if session.state is State.STUCK:
                self._become(session, now, State.ENDING, "it died at last; the rest of it is ended")
                self._end_all(launch)
            else:
                self._keep(session)
                if launch.process is None:  # its end was put off until its birth was over
                    self._end_all(launch)
            return
        policy = session.spec.restart
        count, hold = charge(death.cause, death.at, session.charges, death.uptime_s or 0.0, policy, jitter_of(launch.id))
        words = death.evidence[0].text
        if death.cause not in COMES_BACK[policy.when]:
            state = State.SUCCEEDED if death.cause is Cause.FINISHED else State.FAILED
            self._become(session, now, state, f"{death.cause}: {words}; restart is {policy.when}", hold=None)
        elif hold.reason == "saturated":
            words = f"{death.cause} again after {policy.max_restarts} restarts: {words}"
            self._become(replace(session, charges=count), now, State.FAILED, words, hold=hold)
        else:
            state = State.CRASHED if death.cause in COUNTED else State.PENDING
            self._become(replace(session, charges=count), now, state, f"{death.cause}: {words}", hold=hold)
            if hold.until is not None:
                self._do(SetTimer(session.id, "hold", hold.until))
        if death.cause is Cause.LAUNCH_FAILED:
            self._end_all(launch)  # whatever came of it half-way
        else:
            self._do(CloseLaunch(launch))

    def _orphaned(self, event: Orphaned, now: float) -> None:
        """Show an agent without its pane; end it only where something is to take its place (P1, P2)."""
        session = self.of_launch(event.launch_id)
        if session is None or session.launch is None or session.state not in (State.STARTING, State.RUNNING, State.SUSPECT):
            return
        axes = [Fact(Axis.RUNTIME, "dead", "pidfd", event.at, conclusive=True)]
        if event.what == "server":
            axes.append(Fact(Axis.SERVER, "dead", "keeper", event.at, conclusive=True))
        session = self._read_axes(session, tuple(axes))
        words = f"orphaned: the agent outlived its {event.what}"
        if session.state is not State.SUSPECT:
            self._log(now, session, "session.orphaned", what=event.what, exit_code=event.exit_code, signal=event.signal)
        if Cause.SERVER_DIED not in COMES_BACK[session.spec.restart.when]:
            self._become(session, now, State.SUSPECT, f"{words}; vigil stop {session.name} ends it", hold=None)
            return
        assert session.launch is not None
        intent = self._intend(session, "replace", Cause.SERVER_DIED, "policy", words, now)
        self._become(session, now, State.ENDING, f"{words} and is ended before its replacement", after=None, intent=intent)
        self._end_all(session.launch)

    def _ended(self, event: Ended, now: float) -> None:
        session = self.of_launch(event.launch_id)
        if session is None:
            return
        if event.ok and session.state is State.ENDING:
            session = self._bury(session, now)
        held = session.hold is not None and session.hold.reason == "survivor"
        if not event.ok:
            if session.state is State.ENDING or held:
                self._become(session, now, State.STUCK, f"could not be ended: {event.why}", hold=None, after=session.after)
        elif held and session.state in (State.CRASHED, State.PENDING):
            self._launch_when_paced(session, now)
        elif session.state is State.ENDING and session.after is After.STOP:
            actor = session.intent.actor if session.intent else "operator"
            self._become(session, now, State.STOPPED, f"stopped by {actor}", hold=None, after=None)
        elif session.state is State.ENDING and session.after is After.RELAUNCH:
            self._launch_when_paced(session, now)
        elif session.state is State.ENDING and session.after is After.REMOVE:
            self._remove(session, now)

    def _bury(self, session: Session, now: float) -> Session:
        """Record the death of a launch that is verified gone and whose exit nobody told; a late exit is dropped then (P3)."""
        launch = session.launch
        if launch is None or launch.ended_at is not None:
            return session
        session, death = self._record_death(session, Exit(launch.id, now, "daemon", started=launch.process is not None))
        if session.after is None:
            self._after_death(session, death, now)
            return self.sessions[session.id]
        return self._keep(session)

    def _closed(self, event: Closed, now: float) -> None:  # noqa: ARG002
        session = self.of_launch(event.launch_id)
        if session is not None:
            self._keep(self._read_axes(session, event.facts))

    def _remove(self, session: Session, now: float) -> None:
        self._log(now, session, "session.removed")
        self._forget(session)
        self._change.sessions.pop(session.id, None)
        self._change.removed.append(session.id)
        self._do(Purge(session))

    # Time, readings and restarts of the daemon

    def _timer_fired(self, event: TimerFired, now: float) -> None:
        session = self.sessions.get(event.session_id)
        if session is not None:
            TIMERS[event.kind](self, session, now)

    def _hold_over(self, session: Session, now: float) -> None:
        hold = session.hold
        if hold is None or hold.until is None or session.state not in (State.CRASHED, State.PENDING):
            return
        if now < hold.until:
            self._do(SetTimer(session.id, "hold", hold.until))
        else:
            self._log(now, session, "session.hold-over", hold=hold.reason)
            self._relaunch(session, now)

    def _stable(self, session: Session, now: float) -> None:
        started_at = session.launch.started_at if session.launch else None
        if session.state is not State.RUNNING or started_at is None or not session.charges:
            return
        stable_at = started_at + session.spec.restart.reset_after_s
        if now < stable_at:
            self._do(SetTimer(session.id, "stable", stable_at))
        else:
            self._keep(replace(session, charges=0))

    def _observed(self, event: Observed, now: float) -> None:  # noqa: ARG002
        session = self.of_launch(event.launch_id)
        if session is None or session.launch is None or session.launch.ended_at is not None:
            return
        if event.attached is not None:
            session = replace(session, attached=event.attached)
        if event.active_at is not None:
            session = replace(session, last_activity_at=max(event.active_at, session.last_activity_at or 0.0))
        self._keep(self._read_axes(session, event.facts), durable=False)

    def _resumed(self, event: Resumed, now: float) -> None:  # noqa: ARG002
        """Take up what was under way; live launches speak for themselves in events of their own."""
        stored = list(self.sessions.values())
        self._spawning |= {s.launch.id for s in stored if s.state is State.STARTING and s.launch is not None}
        for session in stored:
            hold = session.hold
            if session.state is State.ENDING:
                self._end_all(session.launch)
            elif session.state not in (State.CRASHED, State.PENDING):
                continue
            elif hold is None or hold.reason in ("pace", "survivor"):
                self._relaunch(session, now)
            elif hold.until is not None:
                self._do(SetTimer(session.id, "hold", hold.until))

    def _noted(self, event: Noted, now: float) -> None:
        self._change.log.append(LogEntry(now, event.kind, data=dict(event.data)))

    # Memory

    def _become(self, session: Session, now: float, state: State, why: str, **changes: Any) -> Session:
        moved = state is not session.state
        changed = replace(session, state=state, why=why, state_since=now if moved else session.state_since, **changes)
        if moved:
            data: dict[str, Any] = {"from": session.state.value, "to": state.value, "why": why}
            if changed.hold is not None:
                data |= {"hold": changed.hold.reason, "until": changed.hold.until}
            self._log(now, changed, "session.state", **data)
        return self._keep(changed)

    def _read_axes(self, session: Session, facts: tuple[Fact, ...]) -> Session:
        axes = dict(session.axes)
        for fact in facts:
            before = axes.get(fact.axis)
            if before is not None and before.value == "dead" and before.conclusive and not fact.conclusive:
                continue  # what the kernel saw end does not come back, and no lesser source knows better
            since = before.since if before is not None and before.value == fact.value else fact.observed_at
            axes[fact.axis] = Reading(fact.value, fact.source, fact.conclusive, fact.observed_at, since, fact.why)
        return replace(session, axes=axes)

    def _keep(self, session: Session, durable: bool = True) -> Session:
        self.sessions[session.id] = session
        self.by_name[session.name] = session.id
        if session.launch is not None:
            self._by_launch[session.launch.id] = session.id
        if durable:
            self._change.sessions[session.id] = session
        return session

    def _forget(self, session: Session) -> None:
        del self.sessions[session.id], self.by_name[session.name]
        for launch_id in [key for key, owner in self._by_launch.items() if owner == session.id]:
            del self._by_launch[launch_id]
            self._spawning.discard(launch_id)

    def _log(self, at: float, session: Session, kind: str, **data: Any) -> None:
        launch_id = session.launch.id if session.launch else None
        self._change.log.append(LogEntry(at, kind, session.id, session.name, launch_id, data))

    def _do(self, effect: Effect) -> None:
        self._change.todo.append(effect)


class _Change:
    """What one event changed: collected while it is handled, returned as effects."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.launches: list[Launch] = []
        self.removed: list[str] = []
        self.deaths: list[Death] = []
        self.intents: list[Intent] = []
        self.log: list[LogEntry] = []
        self.todo: list[Effect] = []

    def effects(self) -> list[Effect]:
        if not (self.sessions or self.removed or self.log or self.intents):
            return self.todo
        persist = Persist(
            tuple(self.sessions.values()),
            tuple(self.launches),
            tuple(self.removed),
            tuple(self.deaths),
            tuple(self.intents),
            tuple(self.log),
        )
        return [persist, *self.todo]


Handler = Callable[[Machine, Any, float], None]

HANDLERS: dict[type[Event], Handler] = {
    Declared: Machine._declared,
    Asked: Machine._asked,
    Launched: Machine._launched,
    LaunchFailed: Machine._launch_failed,
    Interrupted: Machine._interrupted,
    Exited: Machine._exited,
    Orphaned: Machine._orphaned,
    Observed: Machine._observed,
    Ended: Machine._ended,
    Closed: Machine._closed,
    TimerFired: Machine._timer_fired,
    Resumed: Machine._resumed,
    Withdrawn: Machine._withdrawn,
    Noted: Machine._noted,
}

VERBS: dict[str, Callable[[Machine, Session, Asked, float], None]] = {
    "stop": Machine._stop,
    "start": Machine._start,
    "restart": Machine._restart,
    "rm": Machine._rm,
    "reset": Machine._reset,
}

TIMERS: dict[str, Callable[[Machine, Session, float], None]] = {
    "hold": Machine._hold_over,
    "stable": Machine._stable,
}
