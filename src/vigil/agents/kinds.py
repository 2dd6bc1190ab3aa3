"""The kinds of agents, each with the command that starts it; the configuration may add or change some."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from vigil.agents.adapters import ADAPTERS
from vigil.agents.launchers import Folder, is_program, launched_by

PLAIN = "generic"


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


def kind_of(command: tuple[str, ...], configured: Mapping[str, ConfiguredAgents], place: Folder | None = None) -> str:
    """Return the kind of agent that a command starts, by its program; `generic` if that is none we know."""
    programs = {name: (*adapter.command, *adapter.packages) for name, adapter in ADAPTERS.items()}
    programs |= {name: agent.command[:1] for name, agent in configured.items() if agent.command}

    def kind_named(word: str) -> str:
        return next((name for name, names in programs.items() if is_program(word, names)), "")

    return kind_named(launched_by(command, lambda word: bool(kind_named(word)), place).program) or PLAIN
