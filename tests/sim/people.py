"""Simulated people: they declare, stop, restart and remove sessions, attach to panes, and do so at the worst moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vigil.core.events import Asked, Declared, Event
from vigil.core.model import DoubtKind, RestartPolicy, RestartWhen, RuntimeKind, Session, Spec, State

if TYPE_CHECKING:
    from tests.sim.world import World

AGAIN_S = 60.0
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
        self.worst: dict[tuple[str, str], str] = {}  # what somebody will type at a moment of a session

    def declare(self, name: str) -> None:
        """Somebody wants a session; one of the same name must not exist."""
        world = self._world
        world.daemon.start()
        if world.daemon.has_name(name):
            return
        self._declared += 1
        chances = world.chances(f"declare-{self._declared}")
        kind = chances.choice((RuntimeKind.TMUX, RuntimeKind.TMUX, RuntimeKind.HEADLESS))
        when = chances.choice((RestartWhen.ALWAYS,) * 4 + (RestartWhen.ON_FAILURE,) * 2 + (RestartWhen.NEVER,))
        policy = RestartPolicy(when, max_restarts=chances.choice((0, 0, 3, 6)))
        agent = "claude" if chances.random() < 0.25 else "generic"
        spec = Spec(("agent",), "/work", agent, kind, policy)
        world.daemon.feed(Declared(f"s{self._declared}", name, spec, "alice"))

    def refused(self, name: str) -> None:
        """A declaration could not be kept: whoever made it tries again."""
        self._world.engine.after(AGAIN_S, self.declare, name)

    def ask(self, verb: str, session_id: str) -> None:
        """Somebody types a command; it starts a daemon if there is none."""
        self._world.daemon.start()
        session = self._world.store.sessions.get(session_id)
        if session is not None:
            self._world.daemon.feed(Asked(verb, session_id, "alice"))

    def revive(self, session_id: str) -> None:
        """Somebody has a look, and starts what is not running."""
        session = self._world.store.sessions.get(session_id)
        if session is not None and session.state in OVER:
            self.ask("start", session_id)
        elif session is not None and session.state is State.STUCK:
            self.look_after(session)
        elif session is not None and is_locked_out(session):
            self.let_in(session)

    def look_after(self, session: Session) -> None:
        """Somebody was told of a session that is stuck: what cannot heal by itself is asked for again."""
        kind = session.doubt.kind if session.doubt is not None else None
        unfound = session.launch is not None and bool(session.launch.names) and session.launch.found is None
        orphaned = kind is DoubtKind.ORPHANED or "orphaned" in session.why
        if kind is None or orphaned or unfound:
            self.ask("stop" if self.stopped(session.id) else "restart", session.id)

    def let_in(self, session: Session) -> None:
        """Somebody has logged in anew, and says so in one way or the other."""
        self.ask("reset" if session.launches % 2 else "start", session.id)

    def heard(self, event: Event) -> None:
        """What was asked is durable: whoever asked may rely on it."""
        if isinstance(event, Declared):
            self.existing.add(event.session_id)
        elif isinstance(event, Asked):
            self._note(event)

    def _note(self, event: Asked) -> None:
        session = self._world.store.sessions.get(event.session_id)
        now = self._world.engine.now
        if event.verb == "rm":
            self.removing.add(event.session_id)
        elif event.verb != "reset":
            self.removing.discard(event.session_id)  # whoever types last has it
        if event.verb in ("stop", "rm", "restart"):
            self._verb[event.session_id] = (event.verb, now)
        elif event.verb == "start" or (event.verb == "reset" and session is not None and session.state is not State.STOPPED):
            if event.verb == "reset" and self.stopped(event.session_id):
                return  # what was stopped stays so
            self._verb[event.session_id] = (event.verb, now)

    def removed(self, session: str) -> None:
        """A session is gone, as somebody wanted."""
        self.existing.discard(session)

    def stopped(self, session_id: str) -> bool:
        """Say whether the last thing anybody asked of a session was to stop."""
        return self._verb.get(session_id, ("", 0.0))[0] == "stop"

    def wants_anew(self, session_id: str, since: float) -> bool:
        """Say whether somebody asked something of a session since a moment."""
        return self._verb.get(session_id, ("", -1.0))[1] >= since

    def at_moment(self, moment: str, session: Session) -> None:
        """A moment somebody may have waited for, to type at exactly then."""
        verb = self.worst.pop((moment, session.id), None)
        if verb is not None:
            self._world.say("person", verb, session.id, f"just when: {moment}")
            self._world.engine.after(0.0, self.ask, verb, session.id)


def is_locked_out(session: Session) -> bool:
    """Say whether a session waits until somebody lets its agent in."""
    return session.hold is not None and session.hold.reason == "auth"
