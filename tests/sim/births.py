"""Simulated births: an order to the keeper, and what becomes of it, also when keeper or daemon die or hang in between.

As the real ones do (daemon/act/spawn.py, order.py): what was ordered and not answered is looked for by its mark, adopted if
its agent has begun, else ended; only then it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.host import Body
from vigil.core.effects import Spawn
from vigil.core.events import Event, Exited, Launched, LaunchFailed, Unordered
from vigil.core.model.death import Exit
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.session import Session

if TYPE_CHECKING:
    from tests.sim.world import World

SPAWN_S = 15.0
PING_S = 2.0  # a keeper that does not answer for so long is given no order
LOOK_S = 0.2
SETTLE_S = 0.3
BRIEF_S = 0.003
NAMES = ("claude",)  # agents that run below a shell are found by this name
# How far a birth is when its keeper dies. An agent in tmux begins only once its birth is on record.
STAGES = ("nothing", "server", "gate", "born", "brief")
DAEMON_DIES = "daemon dies"
BEGUN = ("", "lost", "born", "brief")


class Births:
    """Orders to the keeper, and what comes of each."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.orders: dict[str, tuple[Spawn, str]] = {}  # given to the keeper, which goes on without a daemon
        self.given: set[str] = set()  # every launch that was ever ordered
        self.fate: dict[str, str] = {}  # what the next birth of a session will be: fails, half, lost, or a stage
        self.by_itself: set[str] = set()  # launches that failed, and not by Vigil
        self.rebooted: set[str] = set()  # orders of an earlier boot
        self._unrecorded: set[str] = set()  # agents that began, and whose keeper could not record that

    def reboot(self) -> None:
        """A new boot has no orders under way."""
        self.rebooted |= self.orders.keys()
        self.orders.clear()

    def spawn(self, effect: Spawn, patience_s: float = PING_S) -> None:
        """Order a launch, if the keeper gives a sign of life."""
        world, launch = self._world, effect.launch
        if not world.keeper.answers:
            if patience_s > 0:
                world.daemon.later(LOOK_S, self.spawn, effect, patience_s - LOOK_S)
            else:
                world.keeper.note_silent()
                world.daemon.feed(Unordered(launch.id, "the keeper gives no answer"))
            return
        if self.fate.get(effect.session.id) == DAEMON_DIES:
            self.fate.pop(effect.session.id)
            world.take_daemon_down(world.down_s)  # before it gave the order
            return
        world.carriers.folders.add(launch.id)
        self.given.add(launch.id)
        self.orders[launch.id] = (effect, self.fate.pop(effect.session.id, ""))
        latency_s = world.chances(effect.session.id).uniform(0.02, 0.4)
        world.engine.after(latency_s, self._bear, launch.id, world.keeper.generation, world.daemon.life)
        world.daemon.later(SPAWN_S, self._give_up, launch.id)

    def _give_up(self, launch_id: str) -> None:
        """A keeper that has not carried out an order in its time finds none any more."""
        if launch_id in self.orders:
            self.orders.pop(launch_id)
            self._world.keeper.note_silent()
            self._settle(launch_id, ours=True)

    def _bear(self, launch_id: str, keeper: int, life: int) -> None:
        """The keeper carries out an order; a daemon that still lives hears of it, or of the keeper's end."""
        world = self._world
        if launch_id not in self.orders:
            return
        lives_on = life == world.daemon.life
        if keeper != world.keeper.generation or not world.keeper.lives:
            self.orders.pop(launch_id)  # it died with the order
            if lives_on:
                world.daemon.later(SETTLE_S, self._settle, launch_id, True)
            return
        if world.keeper.stopped:
            if lives_on:
                world.engine.after(1.0, self._bear, launch_id, keeper, life)
            return
        effect, fate = self.orders.pop(launch_id)
        if fate == "fails":
            if lives_on:
                world.daemon.later(0.05, self._settle, launch_id, False)
            return
        body = self._carry_out(effect, fate)
        if fate in STAGES:
            world.keeper.kill()
        if not lives_on:
            return
        if fate in ("half", "lost"):  # its keeper answers, and its birth comes to no end, or is not told
            world.daemon.later(SPAWN_S, self._settle, launch_id, fate == "lost")
        elif fate in STAGES:
            world.daemon.later(SETTLE_S, self._settle, launch_id, True)
        elif body is not None:
            world.daemon.later(0.002, self._tell_born, body, effect.session)

    def _carry_out(self, effect: Spawn, fate: str) -> Body | None:
        """Bring to life what there is of a birth by then."""
        world = self._world
        headless = effect.session.spec.runtime is RuntimeKind.HEADLESS
        if fate == "nothing" or (headless and fate in ("server", "gate", "half")):  # there an agent is born at once, or nothing
            return None
        body = self._make_body(effect)
        world.host.bear(body, with_agent=fate in BEGUN)
        world.born(body)
        if headless and fate in ("born", "brief"):
            self._unrecorded.add(effect.launch.id)
        if fate == "brief" and body.agent is not None:
            world.engine.after(BRIEF_S, world.host.end, body, body.agent, 1, None, "itself")
        return body

    def _settle(self, launch_id: str, ours: bool) -> None:
        """No answer came: find out what became of an order, and tell that."""
        session = self._world.daemon.known.get(launch_id.rpartition("-")[0])
        if session is None or session.launch is None or session.launch.id != launch_id:
            return
        body = self._world.host.bodies.get(launch_id)
        event = self.look(session, "daemon", ours)
        if isinstance(event, LaunchFailed) and not ours:
            self.by_itself.add(launch_id)
        self._world.daemon.feed(event)
        if isinstance(event, Launched) and body is not None and self._world.daemon.runs:
            self._world.senses.follow(body, session)

    def look(self, session: Session, observer: str, ours: bool = True) -> Event:
        """Return what is true of an order that nobody answered: an agent that began, or verified nothing."""
        world, launch = self._world, session.launch
        assert launch is not None
        body = world.host.bodies.get(launch.id)
        if body is None or body.agent is None:
            for process in [] if body is None else body.processes():
                world.host.end(body, process, by_signal=9, why="vigil")  # type: ignore[arg-type]
            return LaunchFailed(launch.id, world.daemon.clock(), "it never began", ours)
        if not body.agent.alive and launch.id in self._unrecorded:
            body.kept.clear()
            return Exited(Exit(launch.id, world.daemon.clock(), observer))
        return self.launched(body, session, adopted=observer == "start-up")

    def _tell_born(self, body: Body, session: Session) -> None:
        self._world.daemon.feed(self.launched(body, session))
        if self._world.daemon.runs:
            self._world.senses.follow(body, session)

    def finish_order(self, launch_id: str) -> bool:
        """A new daemon waits a moment for a birth under way; what is not born by then is withdrawn. Say if none took it up."""
        world = self._world
        order = self.orders.get(launch_id)
        if order is None:
            return launch_id not in self.given
        if not world.keeper.answers:
            self.orders.pop(launch_id)
            return False
        if world.chances(order[0].session.id).random() < 0.3:  # the keeper obeys no dead daemon
            self.orders.pop(launch_id)
            return True
        self._bear(launch_id, world.keeper.generation, 0)
        self.orders.pop(launch_id, None)
        return False

    def _make_body(self, effect: Spawn) -> Body:
        world, session = self._world, effect.session
        chances = world.chances(session.id)
        body = Body(
            effect.launch.id,
            session.id,
            session.spec.runtime,
            named=session.spec.agent == "claude",
            born_at=world.engine.now,
            keeper=world.keeper.generation,
        )
        body.ignores_term = chances.random() < 0.1
        body.ignores_hup = chances.random() < 0.15
        body.slow_to_end_s = chances.choice((0.02, 0.02, 0.5, 4.0))
        body.when_interrupted = world.chances(f"{session.id} interrupted").choice(("ignores", "ignores", "dies", "exits"))
        return body

    def launched(self, body: Body, session: Session, adopted: bool = False) -> Launched:
        """Return the event that says who was born."""
        assert body.command is not None
        launch = session.launch
        names = NAMES if body.named else ()
        facts = self._world.senses.read_facts(body, launch.found if launch else None, body.named, with_server=False)
        return Launched(
            body.launch_id,
            (launch.started_at if launch else None) or self._world.daemon.offset + body.born_at,
            body.command.id,
            body.root.id if body.root else None,
            body.server.id if body.server else None,
            "%0" if body.root else None,
            facts,
            adopted,
            names,
            "" if adopted or launch is None or session.spec.agent != "claude" else launch.conversation or f"c-{launch.id}",
        )
