"""Fleets of agents that think, build, wait, ask and hang for 8 hours: nobody who gets on is ended, interrupted or robbed."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from typing import Any

import pytest

from vigil.core.effects import Diagnose, Effect, EndChild, EndLaunch, Interrupt, SetTimer, Spawn
from vigil.core.events import (
    Declared,
    Diagnosed,
    Ended,
    Event,
    Exited,
    Gap,
    Heard,
    Launched,
    Observed,
    Stepped,
    TimerFired,
    WatchdogsSet,
)
from vigil.core.evidence import Child, Evidence, Flag, Number, Text
from vigil.core.machine import Machine
from vigil.core.model import ALIVE, Exit, ProcessId, RestartPolicy, RestartWhen, Session, Spec
from vigil.core.patience import Watchdogs
from vigil.core.roles import Watchdog
from vigil.core.said import Said, What

FLEETS, AGENTS, HOURS = 20, 8, 8
EPOCH = 1_000_000.0
UNREADABLE = 0.1  # of all readings
MIN = 60.0


@dataclass(frozen=True)
class Phase:
    """What an agent really does for a while: its words when it begins and ends, and what can be read of it."""

    name: str
    lasts_s: tuple[float, float]
    begins: tuple[Said, ...] = (Said(What.THINKS),)
    ends: tuple[Said, ...] = (Said(What.ALIVE),)
    hangs: bool = False
    read: dict[str, float] = field(default_factory=dict)
    children: tuple[dict[str, Any], ...] = ()


def tool(name: str) -> dict[str, Any]:
    return {"begins": (Said(What.TOOL_STARTED, name=name, id="t"),), "ends": (Said(What.TOOL_ENDED, id="t"),)}


CALM = {"tree_cpu": 0.005, "received_s": 4000.0}
PHASES = (
    Phase("talks", (5, 200)),
    Phase("thinks in silence", (60, 480), read={"received_s": 40.0}),
    Phase("computes", (60, 900), read={"tree_cpu": 0.9, "main_cpu": 0.6, "io": 5e6}),
    Phase("builds", (60, 2400), **tool("Bash"), read={"tree_cpu": 0.9}, children=({"cpu": 0.9},)),
    Phase("deploys", (60, 2400), **tool("Bash"), children=({"sockets": 1, "received_s": 30.0},)),
    Phase("asks a slow server", (60, 840), **tool("mcp__jira__search"), read=CALM),
    Phase("lets a sub-agent work", (60, 1700), **tool("Task"), read={"subagents_s": 20.0}),
    Phase("asks", (60, 9000), (Said(What.ASKED, name="Bash", id="q"),), (Said(What.ANSWERED, id="q"),), read=CALM),
    Phase("waits", (60, 1500), (Said(What.WAITS, until=0.0),), read=CALM),
    Phase("is limited", (60, 6000), (Said(What.RETRIES, until=0.0),), read=CALM),
    Phase("rests", (60, 9000), (Said(What.TURN_ENDED),), (Said(What.PROMPT),), read=CALM),
    Phase("hangs after a tool", (1e9, 1e9), (Said(What.TOOL_ENDED, id="x"),), hangs=True, read=CALM),
    Phase("has no network", (1e9, 1e9), hangs=True, read=CALM | {"sockets": 0.0}),
    Phase("spins", (1e9, 1e9), hangs=True, read={"tree_cpu": 1.0, "main_cpu": 1.0, "received_s": 4000.0}),
    Phase("loses a result", (1e9, 1e9), **tool("Read"), hangs=True, read=CALM),
    Phase("waits for input", (1e9, 1e9), **tool("Bash"), hangs=True, read=CALM, children=({"waits_for_input": True},)),
)
WEIGHTS = [1 if phase.hangs else 6 for phase in PHASES]


class Fleet:
    """Agents, a machine, and all that is asked of it."""

    def __init__(self, seed: int) -> None:
        self.chances = Random(seed)
        self.now = EPOCH
        self.machine = Machine()
        self.heap: list[tuple[float, int, Callable[[], None]]] = []
        self.numbers = count()
        self.timers: dict[tuple[str, str], float] = {}
        self.phase: dict[str, Phase] = {}  # by launch
        self.began: dict[str, float] = {}
        self.treated = 0
        self.hung_at: dict[str, float] = {}
        self.deaf_until = 0.0

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        heapq.heappush(self.heap, (self.now + delay_s, next(self.numbers), call))

    def live(self, hours: float) -> None:
        """Live through so many hours."""
        kills = Watchdog(stall_auto_kill=True)
        self.tell(WatchdogsSet(Watchdogs(kills)))
        policy = RestartPolicy(RestartWhen.ALWAYS, base_s=5.0, jitter=0.0)
        for number in range(AGENTS):
            self.tell(Declared(f"s{number}", f"n{number}", Spec(("agent",), "/", restart=policy), "x"))
        self.later(self.chances.uniform(600, 7200), self.sleep)
        self.later(self.chances.uniform(60, 1200), self.visit)
        while self.heap and self.heap[0][0] < EPOCH + hours * 3600:
            self.now, _, call = heapq.heappop(self.heap)
            call()

    def tell(self, event: Event) -> None:
        for effect in self.machine.handle(event, self.now):
            self.carry_out(effect)

    def carry_out(self, effect: Effect) -> None:
        if isinstance(effect, SetTimer):
            self.timers[(effect.session_id, effect.kind)] = effect.at
            self.later(max(0.0, effect.at - self.now), lambda: self.fire(effect))
        elif isinstance(effect, Spawn):
            self.later(0.5, lambda: self.bear(effect))
        elif isinstance(effect, Diagnose):
            self.later(effect.window_s, lambda: self.read(effect.launch.id))
        elif isinstance(effect, Interrupt | EndChild | EndLaunch):
            self.treat(effect)

    def fire(self, effect: SetTimer) -> None:
        if self.timers.get((effect.session_id, effect.kind)) == effect.at:
            self.tell(TimerFired(effect.session_id, effect.kind))

    def bear(self, effect: Spawn) -> None:
        launch_id = effect.launch.id
        process = ProcessId(effect.launch.number, 1, "b")
        self.tell(Launched(launch_id, self.now, process, None, None, None, (), speaks=True))
        self.tell(Heard(launch_id, (Said(What.STARTED), Said(What.PROMPT)), "hook"))
        self.turn(launch_id, PHASES[0])

    def lives(self, launch_id: str) -> Session | None:
        session = self.machine.of_launch(launch_id)
        return session if session is not None and session.state in ALIVE and session.launch.ended_at is None else None  # type: ignore[union-attr]

    def turn(self, launch_id: str, phase: Phase) -> None:
        """An agent begins to do something."""
        lasts_s = self.chances.uniform(*phase.lasts_s)
        said = tuple(replace(one, until=self.now + lasts_s) if one.until is not None else one for one in phase.begins)
        self.phase[launch_id], self.began[launch_id] = phase, self.now
        if phase.hangs:
            self.hung_at[launch_id] = self.now
        self.tell(Heard(launch_id, said, "hook"))
        self.later(lasts_s, lambda: self.end(launch_id, phase))

    def end(self, launch_id: str, phase: Phase) -> None:
        if self.lives(launch_id) is not None and self.phase.get(launch_id) is phase:
            self.tell(Heard(launch_id, phase.ends, "hook"))
            self.turn(launch_id, self.chances.choices(PHASES, WEIGHTS)[0])

    def sleep(self) -> None:
        """The host sleeps, or nobody runs us."""
        self.tell(Gap(self.chances.choice((4.0, 40.0, 3600.0))))
        self.later(self.chances.uniform(600, 7200), self.sleep)

    def visit(self) -> None:
        session = self.chances.choice(list(self.machine.sessions.values()))
        if session.launch is not None:
            self.tell(Observed(session.launch.id, (), attached=self.chances.choice((0, 0, 1))))
        self.later(self.chances.uniform(60, 1200), self.visit)

    def read(self, launch_id: str) -> None:
        if self.lives(launch_id) is None:
            return
        phase, age_s = self.phase[launch_id], self.now - self.began[launch_id]
        values = {"main_cpu": 0.005, "tree_cpu": 0.005, "io": 0.0, "sockets": 1.0, "received_s": 20.0, "unacked": 0.0}
        values |= {
            "window_s": 30.0,
            "descendants": float(len(phase.children)),
            "late_s": 0.0,
            "transcript_s": age_s,
        } | phase.read
        if values["sockets"] == 0.0:
            values.pop("received_s")
        known: dict[str, Any] = {
            name: Number(value, "x", self.now) for name, value in values.items() if self.chances.random() > UNREADABLE
        }
        quiet: dict[str, Any] = {"state": "S", "cpu": 0.0, "io": 0.0, "sockets": 0, "waits_for_input": False, "age_s": age_s}
        children = tuple(Child(ProcessId(900, 1, "b"), "sh", holds_pipe=False, **(quiet | one)) for one in phase.children)
        state = Text("R" if phase.name == "spins" else "S", "x", self.now)
        seen = Evidence(self.now, 1, state=state, traced=Flag(False, "x", self.now), children=children, **known)
        self.tell(Diagnosed(launch_id, seen))

    def treat(self, effect: Interrupt | EndChild | EndLaunch) -> None:
        """Something is done to an agent: it must really hang."""
        launch_id = effect.launch.id
        session = self.machine.of_launch(launch_id)
        assert session is not None
        if effect.launch.ended_at is not None:
            self.later(0.1, lambda: self.tell(Ended(launch_id, True)))
            return
        phase = self.phase[launch_id]
        assert phase.hangs, f"{session.name} {phase.name} since {self.now - self.began[launch_id]:.0f} s, and: {effect}"
        assert not session.attached, f"{session.name} is used by a person, and: {effect}"
        self.treated += 1
        if isinstance(effect, EndChild):
            self.tell(Stepped(launch_id, "end-child", True))
            self.phase[launch_id] = replace(phase, hangs=False)
            self.hung_at.pop(launch_id, None)
            self.later(1.0, lambda: self.end(launch_id, self.phase[launch_id]))
        elif isinstance(effect, EndLaunch):
            self.hung_at.pop(launch_id, None)
            self.later(0.1, lambda: self.tell(Exited(Exit(launch_id, self.now, "keeper", signal=15))))
            self.later(0.2, lambda: self.tell(Ended(launch_id, True)))


@pytest.mark.parametrize("seed", range(FLEETS))
def test_nobody_who_gets_on_is_disturbed_in_eight_hours_and_whoever_hangs_is_dealt_with(seed: int) -> None:
    fleet = Fleet(seed)

    fleet.live(HOURS)

    assert fleet.treated > 0, "somebody hung, and was treated"
    for launch_id, since in fleet.hung_at.items():
        session = fleet.machine.of_launch(launch_id)
        if session is not None and fleet.now - since > 3 * 3600 and not session.attached:
            assert session.stall is not None and session.stall.warned_at is not None, (
                f"{fleet.phase[launch_id].name} is not told"
            )
