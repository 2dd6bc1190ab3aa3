"""Fleets of agents that think, build, wait, ask and hang for 8 hours: nobody who gets on is ended, interrupted or robbed.

What an agent really does is a world of its own: bytes come when they come, it computes and pauses when it likes. What is
read is measured from that, now and then late or not at all, and is not asked for the truth: what is done to an agent is held
against what it really does.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Any

import pytest

from tests.sim.mutants import mutant_named
from vigil.core.effects import Diagnose, Effect, EndChild, EndLaunch, Interrupt, Persist, SetTimer, Spawn
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
from vigil.core.machine import Machine
from vigil.core.model.death import Exit
from vigil.core.model.evidence import Child, Evidence, Flag, Number, Text
from vigil.core.model.launch import ProcessId
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.session import ALIVE, Session, Spec
from vigil.core.model.speech import Said, What
from vigil.core.model.stall import Watchdog, Watchdogs

FLEETS, AGENTS, HOURS = 20, 8, 8
EPOCH = 1_000_000.0
UNREADABLE = 0.1  # of all readings
NEVER = FOREVER = (1e9, 1e9)
WINDOW_S = 30.0


@dataclass(frozen=True)
class Phase:
    """What an agent really does for a while: its words when it begins and ends, and what can be read of it."""

    name: str
    lasts_s: tuple[float, float]
    begins: tuple[Said, ...] = (Said(What.THINKS),)
    ends: tuple[Said, ...] = (Said(What.ALIVE),)
    hangs: bool = False
    bytes_every_s: tuple[float, float] = NEVER  # between two bytes over its connection
    computes_s: tuple[float, float] = NEVER  # at a time; then it pauses
    pauses_s: tuple[float, float] = (1, 20)
    cores: float = 0.9
    writes_every_s: tuple[float, float] = NEVER  # its sub-agents' transcripts
    moves: float = 0.0  # bytes a second, while it computes
    by_child: bool = False  # a process of its tool does this, and not the agent
    connected: bool = True
    children: tuple[dict[str, Any], ...] = ()


def tool(name: str) -> dict[str, Any]:
    return {"begins": (Said(What.TOOL_STARTED, name=name, id="t"),), "ends": (Said(What.TOOL_ENDED, id="t"),)}


PHASES = (
    Phase("talks", (5, 200), bytes_every_s=(1, 20)),
    Phase("thinks in silence", (60, 2400), bytes_every_s=(1, 110)),
    Phase("computes", (60, 900), computes_s=(1, 60), moves=5e6),
    Phase("builds", (60, 2400), **tool("Bash"), computes_s=(1, 60), by_child=True),
    Phase("builds on a busy host", (60, 2400), **tool("Bash"), computes_s=(20, 60), cores=0.02, by_child=True),
    Phase("deploys", (60, 2400), **tool("Bash"), bytes_every_s=(1, 110), by_child=True),
    Phase("asks a slow server", (60, 840), **tool("mcp__jira__search")),
    Phase("lets a sub-agent work", (60, 1700), **tool("Task"), writes_every_s=(1, 100)),
    Phase("asks", (60, 9000), (Said(What.ASKED, name="Bash", id="q"),), (Said(What.ANSWERED, id="q"),)),
    Phase("waits", (60, 1500), (Said(What.WAITS, until=0.0),)),
    Phase("is limited", (60, 6000), (Said(What.RETRIES, until=0.0),)),
    Phase("rests", (60, 9000), (Said(What.TURN_ENDED),), (Said(What.PROMPT),)),
    Phase("hangs after a tool", FOREVER, (Said(What.TOOL_ENDED, id="x"),), hangs=True),
    Phase("has no network", FOREVER, hangs=True, connected=False),
    Phase("spins", FOREVER, hangs=True, computes_s=FOREVER, cores=1.0),
    Phase("spins on a busy host", FOREVER, hangs=True, computes_s=FOREVER, cores=0.1),
    Phase("loses a result", FOREVER, **tool("Read"), hangs=True),
    Phase("waits for input", FOREVER, **tool("Bash"), hangs=True, children=({"waits_for_input": True},)),
)
WEIGHTS = [1 if phase.hangs else 6 for phase in PHASES]


class Truth:
    """What one agent really does in a phase, moment by moment; whoever reads it measures that, and knows no more."""

    def __init__(self, phase: Phase, began: float, chances: Random) -> None:
        self.phase = phase
        self._chances = Random(chances.random())
        self._began = began
        self._byte_at = self._written_at = began
        self._next_byte, self._next_line = (began + self._chances.uniform(*every) for every in self._every)
        self._bursts: list[tuple[float, float]] = []

    @property
    def _every(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return self.phase.bytes_every_s, self.phase.writes_every_s

    def since_byte(self, now: float) -> float:
        while self._next_byte <= now:
            self._byte_at, self._next_byte = self._next_byte, self._next_byte + self._chances.uniform(*self._every[0])
        return now - self._byte_at

    def since_line(self, now: float) -> float:
        while self._next_line <= now:
            self._written_at, self._next_line = self._next_line, self._next_line + self._chances.uniform(*self._every[1])
        return now - self._written_at

    def computed(self, now: float) -> float:
        """Return the share of the last window in which it wanted to compute."""
        if self.phase.computes_s == NEVER and not self.phase.name.startswith("spins"):
            return 0.0
        end = self._bursts[-1][1] + self._pause() if self._bursts else self._began
        while end <= now:
            self._bursts.append((end, end + self._chances.uniform(*self.phase.computes_s)))
            end = self._bursts[-1][1] + self._pause()
        begins = now - WINDOW_S
        return sum(max(0.0, min(now, b) - max(begins, a)) for a, b in self._bursts) / WINDOW_S

    def _pause(self) -> float:
        return self._chances.uniform(*self.phase.pauses_s)


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
        self.truth: dict[str, Truth] = {}
        self.began: dict[str, float] = {}
        self.treated = 0
        self.hung_at: dict[str, float] = {}
        self.told_at: dict[str, float] = {}

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
        if isinstance(effect, Persist):
            self.told_at |= {entry.launch_id or "": entry.at for entry in effect.log if entry.kind == "session.stalled"}
        elif isinstance(effect, SetTimer):
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
        self.truth[launch_id] = Truth(phase, self.now, self.chances)
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
        phase, truth, age_s = self.phase[launch_id], self.truth[launch_id], self.now - self.began[launch_id]
        wanted, silent_s = truth.computed(self.now), truth.since_byte(self.now)
        got, waited = wanted * phase.cores, wanted * max(0.0, 0.95 - phase.cores)
        own = 0.0 if phase.by_child else 1.0
        values = {
            "main_cpu": 0.005 + own * got,
            "main_waited": own * waited,
            "main_burst_s": own * 20.0 * wanted,
            "tree_cpu": 0.005 + got,
            "io": phase.moves * wanted,
            "sockets": float(phase.connected),
            "received_s": silent_s,
            "unacked": 0.0,
            "window_s": WINDOW_S,
            "descendants": float(len(phase.children) + phase.by_child),
            "hidden": 0.0,
            "late_s": self.chances.choice((0.0, 0.0, 0.0, 0.3, 30.0)),
            "transcript_s": age_s,
            "subagents_s": truth.since_line(self.now),
        }
        if not phase.connected:
            values.pop("received_s")
        known: dict[str, Any] = {
            name: Number(value, "x", self.now)
            if self.chances.random() > UNREADABLE
            else Number(None, "x", self.now, "unreadable")
            for name, value in values.items()
        }
        quiet: dict[str, Any] = {"state": "S", "cpu": 0.0, "io": 0.0, "sockets": 0, "waits_for_input": False, "age_s": age_s}
        working = {"cpu": got, "waited": waited, "burst_s": 20.0 * wanted, "sockets": 1, "received_s": silent_s}
        below = (*phase.children, *((working,) if phase.by_child else ()))
        children = tuple(Child(ProcessId(900, 1, "b"), "sh", holds_pipe=False, **(quiet | one)) for one in below)
        state = Text("R" if own and wanted >= 1.0 else "S", "x", self.now)
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
        assert not session.vitals.attached, f"{session.name} is used by a person, and: {effect}"
        self.treated += 1
        if isinstance(effect, EndChild):
            self.tell(Stepped(launch_id, "end-child", True))
            self.phase[launch_id] = replace(phase, hangs=False)
            self.hung_at.pop(launch_id, None)
            self.truth[launch_id] = Truth(self.phase[launch_id], self.now, self.chances)
            self.later(1.0, lambda: self.end(launch_id, self.phase[launch_id]))
        elif isinstance(effect, EndLaunch):
            self.hung_at.pop(launch_id, None)
            self.later(0.1, lambda: self.tell(Exited(Exit(launch_id, self.now, "keeper", signal=15))))
            self.later(0.2, lambda: self.tell(Ended(launch_id, True)))


@pytest.mark.parametrize("seed", range(FLEETS))
def test_nobody_who_gets_on_is_disturbed_in_eight_hours_and_whoever_hangs_is_dealt_with(seed: int) -> None:
    live_eight_hours(seed)


@pytest.mark.parametrize(
    "name",
    [
        "events: Heard is not heard",
        "events: WatchdogsSet is not heard",
        "events: Diagnosed is not heard",
        "timers: silence does nothing",
    ],
)
def test_a_fleet_notices_what_is_not_heard(name: str) -> None:
    with mutant_named(name).change(), pytest.raises(AssertionError):
        live_eight_hours(seed=0)


def live_eight_hours(seed: int) -> None:
    fleet = Fleet(seed)

    fleet.live(HOURS)

    assert fleet.treated > 0, "somebody hung, and was treated"
    for launch_id, since in fleet.hung_at.items():
        session = fleet.machine.of_launch(launch_id)
        if session is not None and fleet.now - since > 3 * 3600 and not session.vitals.attached:
            told_at = fleet.told_at.get(launch_id, 0.0)
            assert told_at > max(since, fleet.now - 3600), f"{fleet.phase[launch_id].name} is not told"
