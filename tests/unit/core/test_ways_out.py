"""Every state that is not for a person to end is left (P5): whatever happened before, when the world goes on as it should.

Random things happen to lone sessions and teams; then every effect is carried out and every timer fires. What does not run then,
and is not over, waits for a person and says so; a person's word ends that too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.builders import make_exit, make_launched, make_observed, make_spec
from vigil.core.effects import CloseLaunch, Conclude, Effect, EndLaunch, Interrupt, Look, SetTimer, Spawn, TimerKind
from vigil.core.events import (
    Applied,
    Asked,
    Attended,
    Closed,
    Declared,
    Ended,
    Event,
    Exited,
    Hooked,
    LaunchFailed,
    MemoryRead,
    Observed,
    Orphaned,
    Resumed,
    ShiftAborted,
    ShiftAsked,
    TimerFired,
)
from vigil.core.machine import Machine
from vigil.core.model.death import Cause, IntentVerb, Words
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.session import Session, State
from vigil.core.model.speech import Hook
from vigil.core.model.team import Health, Manifest, RoleSpec

OVER = frozenset({State.STOPPED, State.SUCCEEDED, State.FAILED, State.PARKED})
FOR_A_PERSON = frozenset({"auth", "cold-start"})
KEY = "shop/backend/coder"
HORIZON_S = 2 * 3600.0  # longer than any wait there is here


class World:
    """A machine whose effects are carried out in their order, well or badly, and whose time is ours."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.now = 1000.0
        self.todo: deque[Effect] = deque()
        self.timers: dict[tuple[str, TimerKind], float] = {}
        self.living: set[str] = set()

    def tell(self, event: Event) -> None:
        for effect in self.machine.handle(event, self.now):
            if isinstance(effect, SetTimer):
                self.timers[effect.session_id, effect.kind] = effect.at
            else:
                self.todo.append(effect)

    def carry_out(self, well: bool = True) -> None:
        """Do what was asked for first, if anything was."""
        if not self.todo:
            return
        effect = self.todo.popleft()
        if isinstance(effect, Spawn):
            if well:
                self.living.add(effect.launch.id)
                self.tell(make_launched(effect.launch.id, self.now))
            else:
                self.tell(LaunchFailed(effect.launch.id, self.now, "a test wants it"))
        elif isinstance(effect, EndLaunch):
            self._end(effect, well)
        elif isinstance(effect, Interrupt) and not well:
            self.tell(Attended(effect.launch.id, "somebody is there"))
        elif isinstance(effect, CloseLaunch):
            self.tell(Closed(effect.launch.id, ()))
        elif isinstance(effect, Look):
            self.tell(make_observed(effect.launch.id, self.now))
        elif isinstance(effect, Conclude):
            self.die(effect.launch.id)

    def _end(self, effect: EndLaunch, well: bool) -> None:
        launch_id = effect.launch.id
        if not well and effect.unless_attended:
            self.tell(Attended(launch_id, "somebody is there"))
            return
        if not well:
            self.tell(Ended(launch_id, False, "it lives on after KILL"))
            return
        self.die(launch_id, signal=15)
        self.tell(Ended(launch_id, True))

    def die(self, launch_id: str, **found: int) -> None:
        if launch_id in self.living:
            self.living.discard(launch_id)
            self.tell(Exited(make_exit(launch_id, self.now, **found)))

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and fire what is due."""
        end = self.now + seconds
        while due := [key for key, at in self.timers.items() if at <= end]:
            key = min(due, key=lambda one: (self.timers[one], one))
            self.now = max(self.now, self.timers.pop(key))
            self.tell(TimerFired(*key))
            if len(self.todo) > 10_000:
                raise AssertionError("it never ends")
        self.now = end

    def launch_of(self, pick: int) -> str | None:
        launches = [s.launch.id for s in self.machine.sessions.values() if s.launch is not None]
        return launches[pick % len(launches)] if launches else None

    def calm(self) -> None:
        """Let everything go well until nothing more happens; who lives gives signs of life."""
        self.tell(MemoryRead(None, ""))
        end = self.now + HORIZON_S
        while self.now < end and (self.todo or self._is_under_way()):
            while self.todo:
                self.carry_out()
            for session in list(self.machine.sessions.values()):
                if session.launch is not None and session.launch.id in self.living:
                    self.tell(Observed(session.launch.id, (), attached=0))
                    self.tell(Hooked(session.launch.id, (Hook(session.launch.id, "heartbeat", self.now),)))
            self.pass_time(min(20.0, *(max(0.001, at - self.now) for at in self.timers.values()), 20.0))

    def _is_under_way(self) -> bool:
        return any(map(is_unsettled, self.machine.sessions.values())) or any(r.shift for r in self.machine.roles.values())


def is_unsettled(session: Session) -> bool:
    """Say whether a session is in a state that it has to leave by itself."""
    if session.state in OVER:
        return False
    return session.state is not State.RUNNING and not (session.hold is not None and session.hold.reason in FOR_A_PERSON)


POLICIES = st.builds(
    RestartPolicy, st.sampled_from(RestartWhen), st.sampled_from((0, 1, 2)), st.sampled_from((0.5, 5.0)), jitter=st.just(0.0)
)
ROLES = st.builds(
    lambda policy, replicas, health, speaks, retry_s, command: RoleSpec(
        "shop",
        "backend",
        "coder",
        replicas,
        make_spec(policy, command),
        health=health,
        speaks=speaks,
        retry_saturated_s=retry_s,
    ),
    POLICIES,
    st.integers(0, 4),
    st.sampled_from((None, Health(30.0, 2, 10.0))),
    st.booleans(),
    st.sampled_from((0.0, 900.0)),
    st.sampled_from((("sleep", "60"), ("sleep", "61"))),
)
ENDS = st.sampled_from(({"exit_code": 0}, {"exit_code": 1}, {"signal": 9}, {}))
VERBS = st.sampled_from(("stop", "start", "restart", "rm", "reset", "hibernate", "wake", "archive"))
PICK = st.integers(0, 1000)


def _of_session(world: World, pick: int, act: Callable[[str], Event]) -> None:
    ids = sorted(world.machine.sessions)
    if ids:
        world.tell(act(ids[pick % len(ids)]))


def _of_launch(world: World, pick: int, act: Callable[[str], Event]) -> None:
    launch_id = world.launch_of(pick)
    if launch_id is not None and launch_id in world.living:
        world.tell(act(launch_id))


def _limited(launch_id: str, now: float, cause: Cause) -> Event:
    words = Words(cause, "it says so", now + 300.0 if cause is Cause.LIMIT else None)
    return Exited(replace(make_exit(launch_id, now, exit_code=1), words=words))


ACTS = st.one_of(
    st.tuples(st.just("declare"), POLICIES),
    st.tuples(st.just("apply"), ROLES, st.booleans()),
    st.tuples(st.just("forget")),
    st.tuples(st.just("shift"), st.sampled_from((60.0, 600.0))),
    st.tuples(st.just("abort")),
    st.tuples(st.just("ask"), VERBS, PICK),
    st.tuples(st.just("die"), PICK, ENDS),
    st.tuples(st.just("wall"), PICK, st.sampled_from((Cause.LIMIT, Cause.AUTH))),
    st.tuples(st.just("orphan"), PICK, st.sampled_from(("server", "pane"))),
    st.tuples(st.just("see"), PICK, st.sampled_from(("wedged", "unknown", "failed", "dead", "alive"))),
    st.tuples(st.just("attach"), PICK, st.integers(0, 1)),
    st.tuples(st.just("memory"), st.sampled_from((0, 1, None))),
    st.tuples(st.just("carry_out"), st.integers(1, 6), st.booleans()),
    st.tuples(st.just("carry_out"), st.integers(1, 6), st.just(True)),
    st.tuples(st.just("time"), st.sampled_from((0.5, 11.0, 61.0, 700.0))),
    st.tuples(st.just("restart"), st.booleans()),
)


def act(world: World, what: str, *more: object) -> None:
    """Let one thing happen."""
    world.now += 0.001
    machine, now = world.machine, world.now
    pick = more[0] if more and isinstance(more[0], int) else 0
    if what == "declare":
        number = len(machine.sessions)
        session_id = f"s{number}t{int(now * 1000)}"
        assert isinstance(more[0], RestartPolicy)
        if machine.find(session_id) is None:
            world.tell(Declared(session_id, session_id, make_spec(more[0]), "alice"))
    elif what == "apply":
        assert isinstance(more[0], RoleSpec)
        world.tell(Applied(Manifest("shop", (more[0],)), "alice", bool(more[1])))
    elif what == "forget":
        world.tell(Applied(Manifest("shop", ()), "alice"))
    elif what == "shift":
        assert isinstance(more[0], float)
        world.tell(ShiftAsked((KEY,), "alice", more[0]))
    elif what == "abort":
        world.tell(ShiftAborted((KEY,), "alice"))
    elif what == "ask":
        assert isinstance(more[1], int)
        _of_session(world, more[1], lambda session_id: Asked(IntentVerb(str(more[0])), session_id, "alice"))
    elif what == "die":
        launch_id = world.launch_of(pick)
        assert isinstance(more[1], dict)
        if launch_id is not None:
            world.die(launch_id, **more[1])
    elif what == "wall":
        launch_id = world.launch_of(pick)
        assert isinstance(more[1], Cause)
        if launch_id in world.living and launch_id is not None:
            world.living.discard(launch_id)
            world.tell(_limited(launch_id, now, more[1]))
    elif what == "orphan":
        _of_launch(world, pick, lambda launch_id: Orphaned(launch_id, now, str(more[1])))
    elif what == "see":
        axis = "server" if more[1] == "wedged" else "process"
        _of_launch(world, pick, lambda launch_id: make_observed(launch_id, now, **{axis: str(more[1])}))
    elif what == "attach":
        assert isinstance(more[1], int)
        attached = more[1]
        _of_launch(world, pick, lambda launch_id: Observed(launch_id, (), attached=attached))
    elif what == "memory":
        assert more[0] is None or isinstance(more[0], int)
        world.tell(MemoryRead(more[0], "as a test wants it"))
    elif what == "carry_out":
        for _ in range(pick):
            world.carry_out(bool(more[1]))
    elif what == "time":
        assert isinstance(more[0], float)
        world.pass_time(more[0])
    else:
        _restart(world, bool(more[0]))


def _restart(world: World, booted: bool) -> None:
    """The daemon is killed when all it decided is durable, and another one takes over."""
    sessions, roles = world.machine.sessions.values(), world.machine.roles.values()
    world.machine = Machine(sessions, world.machine.incidents.values(), roles)
    world.todo.clear()
    world.timers.clear()
    world.tell(Resumed(booted))
    for session in list(world.machine.sessions.values()):
        launch = session.launch
        if launch is not None and launch.ended_at is None and session.state is not State.PENDING:
            if launch.id in world.living and launch.process is not None:
                world.tell(replace(make_launched(launch.id, world.now), adopted=True))
            elif launch.process is None and session.state is State.STARTING:
                world.living.add(launch.id)
                world.tell(make_launched(launch.id, world.now))
            else:
                world.tell(Exited(make_exit(launch.id, world.now)))


@settings(max_examples=300)
@given(st.lists(ACTS, min_size=1, max_size=25))
def test_every_state_that_is_not_for_a_person_to_end_is_left(acts: list[tuple[object, ...]]) -> None:
    world = World()
    for what, *more in acts:
        act(world, str(what), *more)

    world.calm()
    for session in [s for s in world.machine.sessions.values() if s.state is State.STUCK]:
        world.tell(Asked(IntentVerb.STOP, session.id, "alice"))  # a person was told
    world.calm()

    left = [(s.name, s.state, s.hold, s.why) for s in world.machine.sessions.values() if is_unsettled(s)]
    assert left == []
    shifting = [role.key for role in world.machine.roles.values() if role.shift is not None]
    assert shifting == []
    for role in world.machine.roles.values():
        there = sorted(s.index for s in world.machine.sessions.values() if s.role == role.key)
        assert set(role.slots) <= set(there)
        assert len(role.slots) == role.spec.replicas
        crashed = [s for s in world.machine.sessions.values() if s.role == role.key and s.state is State.CRASHED]
        assert len(crashed) <= 1
