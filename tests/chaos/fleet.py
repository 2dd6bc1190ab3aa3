"""Fleet: who is declared, drawn from the seed: tmux and headless, lone and in a team, every policy and every character."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.chaos.agents import CHARACTERS, Character
from tests.chaos.history import Policy
from tests.chaos.place import CAP_S

ROLE = """
[[team.role]]
name = "{name}"
replicas = {replicas}
agent = "generic"
runtime = "{runtime}"
command = [{command}]
cwd = "/"
restart = "{when}"
max_restarts = {max_restarts}
backoff = {{ base = "{base_s}s", cap = "{cap_s:g}s", reset_after = "10m" }}
"""
WHEN = ("always", "always", "on-failure", "on-failure", "never")
BASES_S = (0.3, 0.3, 0.5, 1.0, 2.0)
MAX_RESTARTS = (0, 0, 5)
TEAM = "shop/crew"
ROLES = (("coder", 4), ("tester", 3))
MOST_REPLICAS = 5


@dataclass(frozen=True)
class Member:
    """A session of `vigil run`: what it is and how it is declared."""

    policy: Policy
    character: Character

    @property
    def name(self) -> str:
        return self.policy.name

    def words(self, work: Path) -> list[str]:
        """Return the command that declares it."""
        policy = self.policy
        return [
            *("run", "--name", policy.name, "--agent", "generic", "--cwd", "/"),
            *("--runtime", policy.runtime, "--restart", policy.when, "--max-restarts", str(policy.max_restarts)),
            *("--backoff-base", f"{policy.base_s}s", "-o", "json", "--", *self.character.command(work)),
        ]


@dataclass(frozen=True)
class Fleet:
    members: dict[str, Member]
    manifest: str
    policies: dict[str, Policy]  # of everybody, also of replicas that are not there yet


def draw_fleet(rng: Random, sessions: int, work: Path) -> Fleet:
    """Draw so many sessions, the replicas of the team among them."""
    replicas = sum(count for _, count in ROLES)
    members = {}
    for number in range(max(1, sessions - replicas)):
        character = CHARACTERS[number % len(CHARACTERS)]
        name = f"{character.kind}-{number}"
        when = "always" if character.kind == "hog" else rng.choice(WHEN)
        lingers, runtime = character.kind == "stubborn", rng.choice(("tmux", "headless"))
        policy = Policy(name, when, rng.choice(BASES_S), CAP_S, rng.choice(MAX_RESTARTS), runtime=runtime, lingers=lingers)
        members[name] = Member(policy, character)
    roles, policies = _draw_roles(rng, work)
    manifest = f'workspace = "shop"\n[[team]]\nname = "crew"\n{roles}'
    return Fleet(members, manifest, {name: member.policy for name, member in members.items()} | policies)


def _draw_roles(rng: Random, work: Path) -> tuple[str, dict[str, Policy]]:
    text, policies = "", {}
    for (name, replicas), runtime in zip(ROLES, ("tmux", "headless"), strict=True):
        character = rng.choice([one for one in CHARACTERS if one.kind in ("worker", "crasher", "deaf", "leaker")])
        key, base_s, when = f"{TEAM}/{name}", rng.choice(BASES_S), rng.choice(WHEN[:4])
        command = ", ".join(f'"{word}"' for word in character.command(work))
        text += ROLE.format(
            name=name,
            replicas=replicas,
            runtime=runtime,
            command=command,
            when=when,
            max_restarts=0,
            base_s=base_s,
            cap_s=CAP_S,
        )
        for index in range(MOST_REPLICAS):
            policies[f"{key}/{index}"] = Policy(f"{key}/{index}", when, base_s, CAP_S, 0, role=key, runtime=runtime)
    return text, policies
