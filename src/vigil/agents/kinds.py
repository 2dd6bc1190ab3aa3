"""The kinds of agents, each with the command that starts it; the configuration may add some, or say more of these."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from vigil.agents.adapters import ADAPTERS


@dataclass(frozen=True)
class AgentKind:
    """One kind of agent, as far as it is declared with it."""

    name: str
    command: tuple[str, ...] = ()  # what starts it when nothing else is said; empty: a command must be given
    process: tuple[str, ...] = ()  # the names of the agent's own process, where its command only runs it


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
    """Return a kind of agent, with what the configuration says of it; one that nobody knows any more is a plain command."""
    known = KINDS.get(name, AgentKind(name))
    more = configured.get(name)
    return known if more is None else replace(known, command=more.command or known.command, process=more.process)


def names_of(configured: Iterable[str]) -> list[str]:
    """Return the names of all kinds there are."""
    return sorted({*KINDS, *configured})
