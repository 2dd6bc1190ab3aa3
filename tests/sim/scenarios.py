"""Scenarios: which faults, how often. Weights are relative; every scenario has its share of everything."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.sim.faults import FAULTS, TEAMS

HOURS = 24
RATE = 1.3  # faults drawn for each session and hour; a few find nothing to strike
LOOKS = 0.7  # how often somebody has a look at a session, an hour
BASE = 0.15
SHARE = 0.35  # of worlds that are about something else, and have a team
MOST_ROLES = 3
WEIGHTS = {"all servers are killed": 0.03, "all servers hang": 0.03, "host reboots": 0.05, "nobody can be read": 0.05}


@dataclass(frozen=True)
class Scenario:
    """A kind of bad day."""

    about: str
    likely: tuple[str, ...] = ()  # beginnings of faults' names that happen much more often here
    sessions: int = 5
    roles: int = 0  # so many at least; without any, some worlds have one all the same
    weights: dict[str, float] = field(default_factory=dict)


SCENARIOS = {
    "everything": Scenario("all that can go wrong, evenly", tuple(FAULTS)),
    "crashes": Scenario("agents that crash, also at birth, and come back", ("agent", "birth")),
    "tmux": Scenario(
        "servers that die, hang and lose their sockets", ("server", "all servers", "pane", "socket", "agent outlives")
    ),
    "blind": Scenario(
        "probes that fail, lie by omission, or answer late", ("axis", "nothing can", "nobody can", "everything is", "probes")
    ),
    "confused": Scenario(
        "every cell of the liveness table", ("everything is", "agent ends unseen", "agent outlives", "stopped agent")
    ),
    "killed": Scenario("daemon and keeper killed or stopped at any instant", ("daemon", "keeper", "birth is not told")),
    "people": Scenario("people who type at the worst moment", ("somebody", "agent cannot be killed")),
    "disk": Scenario("a store that is slow or full, and a notifier that is down", ("store", "notifier", "hooks")),
    "host": Scenario("a host that sleeps, reboots and has its clock set", ("host", "daemon is killed")),
    "walls": Scenario(
        "memory that runs out, limits, and agents that nobody lets in",
        ("memory", "agent meets", "agent is locked", "keeper", "somebody resets"),
    ),
    "teams": Scenario(
        "manifests that change, roles that are scaled, given up and reset",
        ("somebody", "replica", "launches", "agent exits", "agent dies", "host reboots"),
        sessions=7,
        roles=1,
        weights={"host reboots": 0.4},
    ),
    "signs": Scenario(
        "signs of life that do not come, from agents that cannot be read or that somebody sits at",
        (
            "replica gives",
            "replica is",
            "axis",
            "everything is",
            "server hangs",
            "somebody attaches",
            "somebody comes",
            "hooks are lost",
        ),
        sessions=6,
        roles=2,
    ),
    "shifts": Scenario(
        "teams that are shifted, and what comes between",
        ("team", "daemon", "agent exits", "somebody changes", "somebody attaches", "somebody comes", "somebody scales"),
        sessions=6,
        roles=1,
    ),
    "many": Scenario("a dozen sessions at once", ("all servers", "agent", "server", "nobody"), sessions=12),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a plan."""

    at: float
    kind: str
    target: int
    size: float


@dataclass(frozen=True)
class Plan:
    """What will go wrong in one world: drawn from its seed before anything happens, so that it can be had again, or shrunk."""

    seed: int
    scenario: str
    sessions: int
    hours: float
    faults: tuple[Fault, ...]
    roles: int = 0

    @property
    def lone(self) -> int:
        """How many sessions are of no role: one role stands for two of them."""
        return self.sessions if not self.roles else max(1, self.sessions - 2 * self.roles)


def draw_plan(seed: int, scenario: str | None = None, hours: float = HOURS, without: frozenset[str] = frozenset()) -> Plan:
    """Draw a plan from a seed; without a scenario the seed chooses one. Some faults may be left out of what is drawn from."""
    name = scenario or list(SCENARIOS)[seed % len(SCENARIOS)]
    chosen = SCENARIOS[name]
    chances = Random(f"plan/{seed}/{name}")
    kinds = [kind for kind in FAULTS if kind not in without]
    weights = [
        chosen.weights.get(kind, WEIGHTS.get(kind, 1.0)) * (1.0 if kind.startswith(chosen.likely) else BASE)
        if chosen.likely
        else 1.0
        for kind in kinds
    ]
    faults = []
    for _ in range(int(chosen.sessions * hours * RATE)):
        kind = chances.choices(kinds, weights)[0]
        faults.append(Fault(chances.uniform(60.0, hours * 3600), kind, chances.randrange(1000), chances.random()))
    for _ in range(int(chosen.sessions * hours * LOOKS)):
        faults.append(Fault(chances.uniform(60.0, hours * 3600), LOOK, chances.randrange(1000), chances.random()))
    roles = 0 if without & TEAMS else _draw_roles(Random(f"roles/{seed}/{name}"), chosen)
    return Plan(seed, name, chosen.sessions, hours, tuple(sorted(faults, key=lambda fault: fault.at)), roles)


def _draw_roles(chances: Random, scenario: Scenario) -> int:
    if scenario.roles:
        return chances.randint(scenario.roles, MOST_ROLES)
    return 1 if chances.random() < SHARE else 0


LOOK = "somebody has a look"
