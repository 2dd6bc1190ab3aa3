"""The kinds of agents, each with the command that starts it; the configuration may add some, or say more of these."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from vigil.agents.contract import Agent

KINDS: dict[str, Agent] = {
    agent.name: agent
    for agent in (
        Agent("generic"),
        Agent("claude", ("claude",)),
        Agent("codex", ("codex",)),
        Agent("gemini", ("gemini",)),
        Agent("opencode", ("opencode",)),
        Agent("qwen", ("qwen",)),
        Agent("pi", ("pi",)),
    )
}


class Configured(Protocol):
    """What a configuration says of a kind of agent; empty where it says nothing."""

    @property
    def command(self) -> tuple[str, ...]:
        """What starts it."""

    @property
    def process(self) -> tuple[str, ...]:
        """The names of its own process."""


def agent_of(name: str, configured: Mapping[str, Configured]) -> Agent:
    """Return a kind of agent, with what the configuration says of it; one that nobody knows any more is a plain command."""
    known = KINDS.get(name, Agent(name))
    more = configured.get(name)
    return known if more is None else replace(known, command=more.command or known.command, process=more.process)


def names_of(configured: Iterable[str]) -> list[str]:
    """Return the names of all kinds there are."""
    return sorted({*KINDS, *configured})
