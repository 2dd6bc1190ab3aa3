"""The kinds of agents, each with the command that starts it; the configuration may add or change some."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from vigil.agents.adapters import ADAPTERS


@dataclass(frozen=True)
class AgentKind:
    """One kind of agent, as it is declared."""

    name: str
    command: tuple[str, ...] = ()  # what starts it by default; empty: the user must give a command
    process: tuple[str, ...] = ()  # names of the agent's own process, where its command is a wrapper


KINDS: dict[str, AgentKind] = {name: AgentKind(name, adapter.command) for name, adapter in ADAPTERS.items()}


class ConfiguredAgents(Protocol):
    """What a configuration says of a kind of agent; empty where it says nothing."""

    @property
    def command(self) -> tuple[str, ...]:
        """What starts it."""

    @property
    def process(self) -> tuple[str, ...]:
        """The names of its own process."""


def agent_of(name: str, configured: Mapping[str, ConfiguredAgents]) -> AgentKind:
    """Return a kind of agent with its configuration; an unknown name is a plain command."""
    known = KINDS.get(name, AgentKind(name))
    more = configured.get(name)
    return known if more is None else replace(known, command=more.command or known.command, process=more.process)


def names_of(configured: Iterable[str]) -> list[str]:
    """Return the names of all kinds."""
    return sorted({*KINDS, *configured})
