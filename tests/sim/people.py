"""Simulated people: they declare, stop, restart and remove sessions, attach to panes, and do so at the worst moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from zlib import crc32

from tests.sim.manifests import WORKSPACE
from tests.sim.sockets import DAEMON, LOOK_S
from vigil.core.events import Acked, Applied, Asked, Declared, Event, ShiftAborted, ShiftAsked
from vigil.core.model.death import IntentVerb
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.reading import DoubtKind
from vigil.core.model.restart import After, HoldReason, RestartPolicy, RestartWhen
from vigil.core.model.session import Session, Spec, State
from vigil.core.model.team import Manifest, Role, RoleSpec
from vigil.core.rules.escalation import Due

if TYPE_CHECKING:
    from tests.sim.world import World

AGAIN_S = 60.0
ACKS = 0.2  # of the notices that somebody reads
LONGEST_ACK_S = 5400.0
OVER = (State.STOPPED, State.FAILED, State.SUCCEEDED)


class People:
    """Everybody who types."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._declared = 0
        self.existing: set[str] = set()  # sessions whose declaration is durable, and not their removal
        self.seen: set[str] = set()
        self.removing: set[str] = set()
        self._verb: dict[str, tuple[str, float]] = {}  # the last thing that was durably asked of a session, and when
        self._ways: dict[str, tuple[object, ...]] = {}  # how roles come back
        self._changed_at: dict[str, float] = {}
        self.manifest = Manifest(WORKSPACE, ())  # the file, as it was saved last
        self.worst: dict[tuple[str, str], str] = {}  # what somebody will type at a moment of a session

        self.acks: dict[str, float] = {}  # the incidents that somebody said they know of, and when
        self.comes: dict[str, float] = {}  # who attaches to a session when policy is about to end it, and for how long

    def declare(self, name: str) -> None:
        """Somebody wants a session; one of the same name must not exist."""
        world = self._world
        if not self._reach(self.declare, name) or world.daemon.has_name(name):
            return
        self._declared += 1
        chances = world.chances(f"declare-{self._declared}")
        kind = chances.choice((RuntimeKind.TMUX, RuntimeKind.TMUX, RuntimeKind.HEADLESS))
        when = chances.choice((RestartWhen.ALWAYS,) * 4 + (RestartWhen.ON_FAILURE,) * 2 + (RestartWhen.NEVER,))
        policy = RestartPolicy(when, max_restarts=chances.choice((0, 0, 3, 6)))
        agent = "claude" if chances.random() < 0.25 else "generic"
        spec = Spec(("agent",), "/work", agent, kind, policy)
        world.daemon.feed(Declared(f"s{self._declared}", name, spec, "alice", self.account_of(name)))

    def account_of(self, name: str) -> str:
        """Return whose limits the agents of a session or role meet: most are of one of two accounts."""
        known = ("claude-a", "claude-a", "claude-b", "")
        return known[crc32(f"{self._world.plan.seed} {name}".encode()) % len(known)]

    def refused(self, name: str) -> None:
        """A declaration could not be kept: whoever made it tries again."""
        self._world.engine.after(AGAIN_S, self.declare, name)

    def ask(self, verb: str, session_id: str) -> None:
        """Somebody types a command; it starts a daemon if there is none."""
        session = self._world.store.sessions.get(session_id) if self._reach(self.ask, verb, session_id) else None
        if session is not None:
            self._world.daemon.feed(Asked(IntentVerb(verb), session_id, "alice"))

    def _reach(self, command: Callable[..., None], *words: str) -> bool:
        """Say whether a command reaches the daemon; one whose socket is lost is waited for, never doubled."""
        self._world.daemon.start()
        if DAEMON in self._world.sockets.lost:
            self._world.engine.after(LOOK_S, command, *words)
            return False
        return True

    def apply(self, at_once: bool = False) -> None:
        """Somebody applies the manifest."""
        self._world.daemon.start()
        if self.manifest.roles:
            accounts = tuple((role.key, self.account_of(role.key)) for role in self.manifest.roles)
            self._world.daemon.feed(Applied(self.manifest, "alice", at_once, accounts=accounts))

    def scale(self, key: str, replicas: int) -> bool:
        """Somebody changes the number of replicas; refused while the role is shifted."""
        self._world.daemon.start()
        role = self._world.daemon.roles.get(key)
        if role is None or role.shift is not None:
            return False
        manifest = Manifest(WORKSPACE, (replace(role.spec, replicas=replicas),))
        self._world.daemon.feed(Applied(manifest, "alice", only=(key,)))
        return True

    def take_down(self, team: str) -> None:
        """Somebody takes a team down; the file stays."""
        self._world.daemon.start()
        keys = tuple(role.key for role in self._team(team))
        if keys:
            self._world.daemon.feed(Applied(Manifest(WORKSPACE, ()), "alice", only=keys))

    def shift(self, team: str, timeout_s: float) -> bool:
        """Somebody shifts a team; refused while it is being shifted."""
        self._world.daemon.start()
        roles = self._team(team)
        if not roles or any(role.shift is not None for role in roles):
            return False
        keys = tuple(role.key for role in sorted(roles, key=lambda role: (role.declared_at, role.key)))
        self._world.daemon.feed(ShiftAsked(keys, "alice", timeout_s))
        return True

    def abort(self, team: str) -> bool:
        """Somebody ends a shift where it is."""
        self._world.daemon.start()
        keys = tuple(role.key for role in self._team(team) if role.shift is not None)
        if keys:
            self._world.daemon.feed(ShiftAborted(keys, "bob"))
        return bool(keys)

    def abort_all(self) -> None:
        """Somebody has waited long enough."""
        for team in sorted({role.spec.team for role in self._world.daemon.roles.values()}):
            self.abort(team)

    def _team(self, team: str) -> list[Role]:
        return [role for role in self._world.daemon.roles.values() if role.spec.team == team]

    def was_told(self, due: Due) -> None:
        """Somebody has read a notice, and may say that they know of it, soon or late."""
        chances = self._world.chances(f"ack-{due.incident.id}")
        if due.event != "resolved" and chances.random() < ACKS:
            self._world.engine.after(LONGEST_ACK_S * chances.random() ** 3, self.ack, due.incident.id)

    def ack(self, incident_id: str) -> None:
        """Somebody says that they know of an incident; who gets no answer tries again."""
        world = self._world
        known = world.store.incidents.get(incident_id)
        if known is None or known.resolved_at is not None or incident_id in self.acks:
            return
        if not world.daemon.hears or world.daemon.has_backlog or not world.store.is_well:
            world.engine.after(AGAIN_S, self.ack, incident_id)
            return
        life = world.daemon.life
        world.daemon.feed(Acked(incident_id, "bob"))
        if life == world.daemon.life:  # else there was no answer
            self.acks[incident_id] = world.engine.now

    def revive(self, session_id: str) -> None:
        """Somebody has a look, and starts what is not running."""
        session = self._world.store.sessions.get(session_id)
        if session is not None and session.state in OVER:
            self.ask("start", session_id)
        elif session is not None and session.state is State.PARKED:
            self.ask("wake", session_id)
        elif session is not None and session.state is State.STUCK:
            self.look_after(session)
        elif session is not None and is_locked_out(session):
            self.let_in(session)
        elif session is not None and is_cold(session) and session.launches % 3:
            self.ask("start" if session.launches % 3 == 1 else "reset", session_id)

    def look_after(self, session: Session) -> None:
        """Somebody was told of a session that is stuck: what cannot heal by itself is asked for again."""
        kind = session.vitals.doubt.kind if session.vitals.doubt is not None else None
        unfound = session.launch is not None and bool(session.launch.names) and session.launch.found is None
        orphaned = kind is DoubtKind.ORPHANED or "orphaned" in session.why
        if kind is None or orphaned or unfound:
            asked = "stop" if self.stopped(session.id) else "hibernate" if self.sleeps(session.id) else "restart"
            self.ask(asked, session.id)

    def let_in(self, session: Session) -> None:
        """Somebody has logged in anew, and says so in one way or the other."""
        self.ask("reset" if session.launches % 2 else "start", session.id)

    def heard(self, event: Event) -> None:
        """What was asked is durable: whoever asked may rely on it."""
        if isinstance(event, Declared):
            self.existing.add(event.session_id)
        elif isinstance(event, Asked):
            self._note(event)
        elif isinstance(event, Applied):
            self._changed_at |= {role.key: self._world.daemon.clock() for role in event.manifest.roles if self._is_new(role)}

    def _is_new(self, role: RoleSpec) -> bool:
        """Say whether a role comes back in another way than before."""
        way = (role.spec.restart, role.autostart)
        before, self._ways[role.key] = self._ways.get(role.key), way
        return before != way

    def asked_for(self, session_id: str, verb: str, by: str) -> None:
        """What a manifest asked of a replica is durable."""
        self._note(Asked(IntentVerb(verb), session_id, by))

    def _note(self, event: Asked) -> None:
        now = self._world.engine.now
        if event.verb in ("hibernate", "wake"):
            self._note_sleep(event, now)
            return
        if event.verb == "rm":
            self.removing.add(event.session_id)
        elif event.verb != "reset":
            self.removing.discard(event.session_id)  # whoever types last has it
        if event.verb in ("stop", "rm", "restart"):
            self._verb[event.session_id] = (event.verb, now)
        elif event.verb in ("start", "reset"):
            for session_id in self._meant(event):
                if event.verb == "start" or not self._stays_stopped(session_id):
                    self._verb[session_id] = (event.verb, now)

    def _note_sleep(self, event: Asked, now: float) -> None:
        """What cannot sleep, or is not to be woken, stays as it is: that was refused."""
        session = self._world.store.sessions.get(event.session_id)
        if session is None or session.after is After.REMOVE:
            return
        sleeps = session.state is State.PARKED or session.after is After.PARK
        if event.verb == "hibernate" and sleeps:
            self._verb[session.id] = ("hibernate", now)
        elif event.verb == "wake" and not sleeps and not self.stopped(session.id) and session.state is not State.STOPPED:
            self._verb[session.id] = ("wake", now)

    def sleeps(self, session_id: str) -> bool:
        """Say whether the last thing anybody asked of a session was to sleep."""
        return self._verb.get(session_id, ("", 0.0))[0] == "hibernate"

    def _stays_stopped(self, session_id: str) -> bool:
        """Say whether a session is stopped or sleeps, or was asked to: no reset starts it."""
        session = self._world.store.sessions.get(session_id)
        if self.sleeps(session_id):
            return True
        return self.stopped(session_id) or (session is not None and session.state is State.STOPPED)

    def _meant(self, event: Asked) -> list[str]:
        """Return the sessions that a command is about: a reset is about all replicas of a role."""
        session = self._world.store.sessions.get(event.session_id)
        if event.verb != "reset" or session is None or session.role is None:
            return [event.session_id]
        return [other.id for other in self._world.store.sessions.values() if other.role == session.role]

    def removed(self, session: str) -> None:
        """A session is gone, as somebody wanted."""
        self.existing.discard(session)

    def stopped(self, session_id: str) -> bool:
        """Say whether the last thing anybody asked of a session was to stop."""
        return self._verb.get(session_id, ("", 0.0))[0] == "stop"

    def changed(self, session: Session, since: float) -> bool:
        """Say whether the policy of a session's role was changed since a moment of the daemon's clock."""
        return self._changed_at.get(session.role or "", 0.0) >= since

    def wants_anew(self, session_id: str, since: float) -> bool:
        """Say whether somebody asked something of a session since a moment."""
        return self._verb.get(session_id, ("", -1.0))[1] >= since

    def at_moment(self, moment: str, session: Session) -> None:
        """A moment somebody may have waited for, to type at exactly then."""
        verb = self.worst.pop((moment, session.id), None)
        if verb is not None:
            self._world.say("person", verb, session.id, f"just when: {moment}")
            self._world.engine.after(0.0, self.ask, verb, session.id)


def is_cold(session: Session) -> bool:
    """Say whether a session waits for a person since the host was booted anew."""
    return session.hold is not None and session.hold.reason == HoldReason.COLD_START


def is_locked_out(session: Session) -> bool:
    """Say whether a session waits until somebody lets its agent in."""
    return session.hold is not None and session.hold.reason == HoldReason.AUTH
