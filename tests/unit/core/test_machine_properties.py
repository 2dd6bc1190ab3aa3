"""The machine in a small world that dies, hangs, repeats itself and answers out of order: the promises hold all the same.

The world knows what really lives. It carries out effects when it likes, tells of them when it likes, and tells old things
again. There are two: in one, as the carrier has it, an exit is told before its end is verified; in the other not even that.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.unit.builders import make_exit, make_launched, make_spec
from vigil.codec import dump, load
from vigil.core.book import Book
from vigil.core.effects import (
    Amend,
    CloseLaunch,
    Conclude,
    Effect,
    EndLaunch,
    Examine,
    Look,
    Persist,
    Purge,
    RepairSocket,
    SetTimer,
    Spawn,
    Tell,
    TimerKind,
)
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
    Observed,
    Orphaned,
    Resumed,
    TimerFired,
)
from vigil.core.machine import Machine
from vigil.core.model.death import Death, Exit, Intent, IntentVerb
from vigil.core.model.launch import Launch
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.core.model.restart import HoldReason, RestartPolicy, RestartWhen
from vigil.core.model.session import ALIVE, Session, State, with_vitals

T = TypeVar("T")
NAMES = tuple(f"n{number}" for number in range(7))
ENDS: tuple[dict[str, int], ...] = ({"exit_code": 0}, {"exit_code": 1}, {"signal": 9}, {"signal": 15}, {})
EXAMPLES = 200 if os.environ.get("HYPOTHESIS_PROFILE") != "search" else 5_000
PICK = st.integers(0, 10**6)
OF_A_LAUNCH = (Launched, LaunchFailed, Interrupted, Exited, Orphaned, Ended, Closed, Observed)


@dataclass
class Body:
    """What really became of a launch."""

    launch_id: str
    session_id: str
    phase: str = "unborn"  # unborn, never, alive, dead
    watched: bool = False
    orphan: bool = False
    exit: Exit | None = None


@dataclass
class World:
    """What is under way: effects not carried out, words not yet told, timers."""

    bodies: dict[str, Body] = field(default_factory=dict)
    tasks: list[Effect] = field(default_factory=list)
    mail: list[Event] = field(default_factory=list)
    timers: dict[tuple[str, TimerKind], float] = field(default_factory=dict)

    def ask(self, effects: Iterable[Effect]) -> None:
        """Take on what the machine asked for."""
        for effect in effects:
            if isinstance(effect, SetTimer):
                self.timers[effect.session_id, effect.kind] = effect.at
            elif isinstance(effect, Spawn):
                self.bodies[effect.launch.id] = Body(effect.launch.id, effect.session.id)
                self.tasks.append(effect)
            elif not isinstance(effect, Persist | Tell | RepairSocket | Examine | Amend):
                self.tasks.append(effect)

    def carry_out(self, task: Effect, well: bool, half: bool, now: float) -> None:
        """Do what was asked, well or badly; a launch that failed half-way lives."""
        if isinstance(task, Spawn):
            body = self.bodies[task.launch.id]
            body.phase = "alive" if well or half else "never"
            body.watched = well
            self.mail.append(make_launched(task.launch.id, now) if well else LaunchFailed(task.launch.id, now, "it failed"))
        elif isinstance(task, EndLaunch):
            if well:
                self.kill(task.launch.id, now, signal=15)
            self.mail.append(Ended(task.launch.id, ok=well, why="" if well else "it lives on"))
        elif isinstance(task, CloseLaunch):
            self.mail.append(Closed(task.launch.id, (Fact(Axis.SERVER, AxisValue.DEAD, "procfs", now, conclusive=True),)))
        elif isinstance(task, Look):
            self.look(task.launch.id, now)
        elif isinstance(task, Conclude):
            exit_ = self.bodies[task.launch.id].exit
            self.mail += [Exited(exit_)] if exit_ is not None else []
        else:
            assert isinstance(task, Purge)

    def look(self, launch_id: str, now: float) -> None:
        """Read what is true: the kernel does not lie."""
        value = AxisValue.ALIVE if self.bodies[launch_id].phase == "alive" else AxisValue.DEAD
        self.mail.append(Observed(launch_id, (Fact(Axis.PROCESS, value, "procfs", now, conclusive=True),)))

    def kill(self, launch_id: str, now: float, **found: int) -> None:
        """An agent ends; whoever watches it will hear of it."""
        body = self.bodies.get(launch_id)
        if body is not None and body.phase == "alive":
            body.phase, body.exit = "dead", make_exit(launch_id, now, **found)
            if body.watched:
                self.mail.append(Exited(body.exit))

    def adoption(self, session: Session, now: float) -> list[Event]:
        """Return what a new daemon tells of a stored launch (daemon/start/takeover.py)."""
        launch = session.launch
        if launch is None or session.state not in ALIVE or launch.ended_at is not None:
            return []
        body = self.bodies[launch.id]
        body.watched = True
        born: list[Event] = [make_launched(launch.id, launch.started_at or now, adopted=True)]
        if body.phase == "alive":
            return [*born, *([Orphaned(launch.id, now, "pane")] if body.orphan else [])]
        if body.phase == "dead":
            assert body.exit is not None
            return [*(born if launch.process is None else []), Exited(body.exit)]
        if session.state is State.ENDING:
            return []
        if body.phase == "unborn":  # no keeper had its order
            return [Interrupted(launch.id)]
        return [LaunchFailed(launch.id, now, "it never began", ours=True)]

    def expects(self, what: str, launch_id: str | None = None) -> bool:
        """Say whether something is still to come: a task that is not done, or a word that was not told."""
        tasks: tuple[type, ...]
        words: tuple[type, ...]
        tasks, words = {
            "birth": ((Spawn,), (Launched, LaunchFailed)),
            "end": ((EndLaunch,), (Ended,)),
            "exit": ((Conclude,), (Exited,)),
            "look": ((Look,), (Observed,)),
        }[what]
        return any(isinstance(task, tasks) and launch_id in (None, _launch_of(task)) for task in self.tasks) or any(
            isinstance(word, words) and launch_id in (None, _launch_of(word)) for word in self.mail
        )


def _launch_of(thing: Effect | Event) -> str | None:
    if isinstance(thing, Spawn | EndLaunch | CloseLaunch | Look | Conclude):
        return thing.launch.id
    if isinstance(thing, Exited):
        return thing.exit.launch_id
    return thing.launch_id if isinstance(thing, OF_A_LAUNCH) else None


class Promises(RuleBasedStateMachine):
    """The machine against the world, as orderly as the carrier makes it."""

    exits_may_be_late = False

    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine()
        self.world = World()
        self.now = 1000.0
        self.born = 0
        self.told: list[Event] = []
        self.stored: dict[str, Session] = {}
        self.deaths: set[str] = set()
        self.intended: set[str] = set()
        self.verified: set[str] = set()
        self.unwanted: set[str] = set()  # sessions that an operator stopped

    # What can happen

    @rule(
        name=st.sampled_from(NAMES),
        when=st.sampled_from(RestartWhen),
        max_restarts=st.integers(0, 2),
        base_s=st.sampled_from((0.5, 5.0)),
    )
    def declare(self, name: str, when: RestartWhen, max_restarts: int, base_s: float) -> None:
        if self.machine.find(name) is None:
            self.born += 1
            policy = RestartPolicy(when, max_restarts, base_s, reset_after_s=60.0)
            self.tell(Declared(f"s{self.born}", name, make_spec(policy), "alice"))

    @precondition(lambda self: self.machine.sessions)
    @rule(verb=st.sampled_from(("stop", "stop", "start", "restart", "rm", "reset", "hibernate", "wake")), pick=PICK)
    def ask(self, verb: str, pick: int) -> None:
        session = _pick(sorted(self.machine.sessions.values(), key=lambda found: found.id), pick)
        if verb in ("stop", "rm"):
            self.unwanted.add(session.id)
        elif verb == "restart" or (verb == "start" and (session.state not in ALIVE or session.after is not None)):
            self.unwanted.discard(session.id)
        self.tell(Asked(IntentVerb(verb), session.id, "alice"))

    @precondition(lambda self: self.world.tasks)
    @rule(pick=PICK, well=st.sampled_from((True, True, True, False)), half=st.booleans())
    def carry_out(self, pick: int, well: bool, half: bool) -> None:
        task = self.world.tasks.pop(pick % len(self.world.tasks))
        if isinstance(task, Spawn):
            living = [
                body for body in self.world.bodies.values() if body.session_id == task.session.id and body.phase == "alive"
            ]
            assert not living, "P1: two live launches of one session"
        self.world.carry_out(task, well, half, self.now)

    @precondition(lambda self: self.tellable())
    @rule(pick=PICK)
    def hear(self, pick: int) -> None:
        event = _pick(self.tellable(), pick)
        self.world.mail.remove(event)
        self.tell(event)

    @rule(steps=st.integers(1, 12), picks=st.lists(PICK, min_size=12, max_size=12))
    def life_goes_on(self, steps: int, picks: list[int]) -> None:
        """A while in which all goes well."""
        for pick in picks[:steps]:
            if tellable := self.tellable():
                event = _pick(tellable, pick)
                self.world.mail.remove(event)
                self.tell(event)
            elif self.world.tasks:
                self.carry_out(pick, True, False)
            elif self.world.timers:
                self.timer_fires(pick, 0.0)

    @precondition(lambda self: self.told)
    @rule(pick=PICK)
    def hear_again(self, pick: int) -> None:
        self.tell(_pick(self.told, pick))

    @precondition(lambda self: self.living())
    @rule(pick=PICK, how=st.sampled_from(ENDS))
    def agent_dies(self, pick: int, how: dict[str, int]) -> None:
        self.world.kill(_pick(self.living(), pick).launch_id, self.now, **how)

    @precondition(lambda self: self.living())
    @rule(pick=PICK, what=st.sampled_from(("pane", "server")))
    def agent_outlives_its_pane(self, pick: int, what: str) -> None:
        body = _pick(self.living(), pick)
        if body.watched and not body.orphan:
            body.orphan = True
            self.world.mail.append(Orphaned(body.launch_id, self.now, what))

    @precondition(lambda self: self.world.bodies)
    @rule(pick=PICK, value=st.sampled_from(("alive", "dead", "unknown", "failed")))
    def look(self, pick: int, value: str) -> None:
        launch_id = _pick(sorted(self.world.bodies), pick)
        if value in ("alive", "dead"):  # the kernel does not lie
            value = "alive" if self.world.bodies[launch_id].phase == "alive" else "dead"
        fact = Fact(Axis.PROCESS, AxisValue(value), "procfs", self.now, conclusive=value in ("alive", "dead"))
        deaths = set(self.deaths)

        effects = self.tell(Observed(launch_id, (fact,), attached=1, active_at=self.now))

        assert self.deaths == deaths, "P7: a reading never concludes"
        assert not any(isinstance(effect, Spawn) for effect in effects)

    @precondition(lambda self: self.world.timers)
    @rule(pick=PICK, late_s=st.sampled_from((-0.01, 0.0, 0.0, 5.0)))
    def timer_fires(self, pick: int, late_s: float) -> None:
        key = _pick(sorted(self.world.timers), pick)
        self.now = max(self.now, self.world.timers.pop(key) + late_s)
        self.tell(TimerFired(*key))

    @precondition(lambda self: self.stored)
    @rule(seconds=st.sampled_from((0.1, 3.0, 61.0)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.stored)
    @rule(births=st.integers(0, 255), now_and_then=st.integers(0, 3))
    def daemon_is_killed(self, births: int, now_and_then: int) -> None:
        """`kill -9` at any instant: what was not durable, not carried out and not told is gone."""
        if now_and_then:
            return
        for number, task in enumerate(task for task in self.world.tasks if isinstance(task, Spawn)):
            fates = ("unborn", "alive", "never", "alive")  # no keeper had the order, or it went on, or died with it
            self.world.bodies[task.launch.id].phase = fates[births >> 2 * number & 3]
        self.world.tasks, self.world.mail, self.world.timers, self.told = [], [], {}, []
        self.machine = Machine([_stored(session) for session in self.stored.values()])
        charges = {session.id: session.charges for session in self.machine.sessions.values()}
        stored = list(self.stored.values())  # what a daemon begins itself it does not adopt
        self.tell(Resumed())
        assert {session.id: session.charges for session in self.machine.sessions.values()} == charges, "P10: charges no one"
        for session in stored:
            for event in self.world.adoption(session, self.now):
                self.tell(event)

    @precondition(lambda self: self.stored)
    @rule(now_and_then=st.integers(0, 3))
    def a_new_daemon_would_end_up_in_the_same_states(self, now_and_then: int) -> None:
        if now_and_then or any(map(self.is_lost_with_a_daemon, self.world.mail)) or any(map(self.is_tried_again, self.stored)):
            return
        before = _copied(self.machine), _copied(self.world)
        machine, world = Machine([_stored(session) for session in self.stored.values()]), _copied(self.world)
        for task in world.tasks:
            if isinstance(task, Spawn):
                world.bodies[task.launch.id].phase = "alive"
        world.tasks, world.mail, world.timers = [], [], {}
        for event in (Resumed(), *(event for found in self.stored.values() for event in world.adoption(found, self.now))):
            world.ask(machine.handle(event, self.now))

        assert _settle(machine, world, self.now) == _settle(*before, self.now)

    # What must hold

    def tell(self, event: Event) -> list[Effect]:
        if isinstance(event, (*OF_A_LAUNCH, TimerFired)):
            self.told = [*self.told[-30:], event]
        launch_id = _launch_of(event)
        if isinstance(event, Ended) and event.ok:
            self.verified.add(event.launch_id)
        stale = launch_id is not None and self.machine.of_launch(launch_id) is None
        before = dict(self.machine.sessions)

        effects = self.machine.handle(event, self.now)

        self.check_order(effects)
        self.check_changed(before)
        if stale:
            assert launch_id not in {_launch_of(effect) for effect in effects}, "an old launch was heard"
            if not isinstance(event, Launched | LaunchFailed | Interrupted):  # those also free a place in the line
                assert effects == [], "an old launch was heard"
                assert self.machine.sessions == before
        for effect in effects:
            if isinstance(effect, Persist):
                self.check_persist(effect)
            elif isinstance(effect, Spawn):
                self.check_spawn(effect)
            elif isinstance(effect, EndLaunch):
                self.check_end(effect)
        self.world.ask(effects)
        return effects

    def check_changed(self, before: dict[str, Session]) -> None:
        """Whoever shows sessions takes over what is said to have changed, and has them all."""
        shown = {**before, **self.machine.changed}
        assert {id_: session for id_, session in shown.items() if session is not None} == self.machine.sessions

    def check_order(self, effects: list[Effect]) -> None:
        persists = [number for number, effect in enumerate(effects) if isinstance(effect, Persist)]
        assert persists in ([], [0]), "what must be durable comes first"

    def check_persist(self, change: Persist) -> None:
        for death in change.deaths:
            assert death.launch_id not in self.deaths, "P3: two deaths of one launch"
            assert death.evidence, "P3: a cause without evidence"
            assert load(Death, dump(death)) == death
            self.deaths.add(death.launch_id)
        for intent in change.intents:
            assert load(Intent, dump(intent)) == intent
            self.intended.add(intent.launch_id)
        for launch in change.launches:
            assert load(Launch, dump(launch)) == launch
        for session_id in change.removed:  # in the store's order: what is removed and stored in one call is there again
            del self.stored[session_id]
            self.check_deaths_of(session_id)
        kept = {launch.session_id for launch in change.launches} | {intent.session_id for intent in change.intents}
        assert not kept & set(change.removed), "P11: a row of a removed session is stored again"
        for session in change.sessions:
            self.stored[session.id] = _stored(session)
            assert self.stored[session.id] == session

    def check_spawn(self, effect: Spawn) -> None:
        again = self.world.bodies.get(effect.launch.id)  # an order that no keeper had may be given again
        assert again is None or again.phase == "unborn", "a launch id was used twice"
        for body in self.world.bodies.values():
            if body is not again and body.session_id == effect.session.id:
                assert body.phase in ("dead", "never"), f"P1: spawned while {body.launch_id} is {body.phase}"
                assert body.launch_id in self.verified, f"P1: spawned before {body.launch_id} was verified gone"
        self.check_deaths_of(effect.session.id)
        assert effect.session.id not in self.unwanted, "what an operator stopped came back by itself"
        launching = [session for session in self.machine.sessions.values() if session.state is State.STARTING]
        assert len(launching) <= 4, "P4: a storm of launches"

    def check_deaths_of(self, session_id: str) -> None:
        for body in self.world.bodies.values():
            if body.session_id == session_id and body.phase == "dead":
                assert body.launch_id in self.deaths, f"P3: {body.launch_id} left no death record"

    def check_end(self, effect: EndLaunch) -> None:
        if effect.launch.ended_at is None:
            assert effect.launch.id in self.intended, "P8: a living launch is ended without an intent"

    @invariant()
    def at_most_one_launch_of_a_session_lives(self) -> None:
        living = [body.session_id for body in self.world.bodies.values() if body.phase == "alive"]
        assert len(living) == len(set(living)), "P1"

    @invariant()
    def every_state_says_what_it_waits_for(self) -> None:
        for session in self.machine.sessions.values():
            assert session.why
            assert self.has_a_way_out(session), f"P5: {session.name} is {session.state} for ever ({session.hold})"

    @invariant()
    def what_is_remembered_is_what_is_durable(self) -> None:
        assert {key: _lasting(session) for key, session in self.machine.sessions.items()} == {
            key: _lasting(session) for key, session in self.stored.items()
        }

    def has_a_way_out(self, session: Session) -> bool:
        launch_id, hold = session.launch.id if session.launch else "", session.hold
        expects = self.world.expects
        if session.state is State.STARTING:
            return expects("birth", launch_id)
        if session.state is State.ENDING:
            return expects("end", launch_id) or expects("birth", launch_id) or expects("exit", launch_id)
        if session.state is State.SUSPECT:
            return (session.id, "look") in self.world.timers or expects("look", launch_id) or expects("exit", launch_id)
        if session.state not in (State.PENDING, State.CRASHED):
            return True
        if hold is None:
            return False
        if hold.until is not None:
            return (session.id, "hold") in self.world.timers
        return (
            expects("end", launch_id)
            if hold.reason == HoldReason.SURVIVOR
            else hold.reason == HoldReason.PACE and expects("birth")
        )

    def tellable(self) -> list[Event]:
        return [event for event in self.world.mail if self.exits_may_be_late or not self.is_early(event)]

    def is_early(self, event: Event) -> bool:
        """The carrier verifies an end only after the exit was told."""
        return isinstance(event, Ended) and event.ok and self.world.expects("exit", event.launch_id)

    def is_lost_with_a_daemon(self, word: Event) -> bool:
        """Words that the next daemon does not hear: it tries again, or finds the agent dead."""
        if isinstance(word, Orphaned):
            return self.world.bodies[word.launch_id].phase != "alive"
        return isinstance(word, LaunchFailed) or (isinstance(word, Ended) and not word.ok)

    def is_tried_again(self, session_id: str) -> bool:
        """A stuck session waits for a human, unless a second attempt to end it is under way; that ends with its daemon."""
        session = self.stored[session_id]
        return session.state is State.STUCK and session.launch is not None and self.world.expects("end", session.launch.id)

    def living(self) -> list[Body]:
        return [body for body in self.world.bodies.values() if body.phase == "alive"]


class PromisesInDisorder(Promises):
    """The same, where an exit may be told after its end was verified."""

    exits_may_be_late = True


def _pick(things: list[T], number: int) -> T:
    return things[number % len(things)]


def _copied(thing: T) -> T:
    """Return a copy of a machine or a world: what they hold is frozen, but for the bodies."""
    copied = copy.copy(thing)
    vars(copied).update({name: copy.copy(value) for name, value in vars(thing).items()})
    for name, value in vars(copied).items():
        if isinstance(value, Book):
            setattr(copied, name, _copied(value))
    if isinstance(copied, Machine):
        vars(copied).update({name: getattr(copied._book, name) for name in ("sessions", "incidents", "roles", "by_name")})
    if isinstance(copied, World):
        copied.bodies = {key: copy.copy(body) for key, body in copied.bodies.items()}
    return copied


def _stored(session: Session) -> Session:
    return load(Session, dump(session))


def _lasting(session: Session) -> Session:
    """Return a session without what readings change: that is read anew, or stored now and then."""
    return with_vitals(replace(session, last_activity_at=None, worked={}), axes={}, attached=0)


def _settle(machine: Machine, world: World, now: float) -> dict[str, State]:
    """Let all that is under way go well, nothing else happen, all be looked at, and all holds end; return what is left."""
    looks: set[tuple[str, str]] = set()
    for _ in range(2000):
        if world.mail:
            world.ask(machine.handle(world.mail.pop(0), now))
        elif world.tasks:
            world.carry_out(world.tasks.pop(0), True, False, now)
        elif left := sorted({key for key in world.timers if key[1] is TimerKind.LOOK} - looks):
            looks.add(left[0])
            world.ask(machine.handle(TimerFired(*left[0]), now))
        elif holds := {key: at for key, at in world.timers.items() if key[1] is TimerKind.HOLD}:
            key = min(holds, key=lambda found: holds[found])
            now = max(now, world.timers.pop(key))
            world.ask(machine.handle(TimerFired(*key), now))
        else:
            return {session.name: session.state for session in machine.sessions.values()}
    raise AssertionError("it never came to rest")


TestPromises = Promises.TestCase
TestPromisesInDisorder = PromisesInDisorder.TestCase
TestPromises.settings = TestPromisesInDisorder.settings = settings(max_examples=EXAMPLES, stateful_step_count=50)
