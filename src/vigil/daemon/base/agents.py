"""Agents: the kinds that this host knows, by the last valid configuration."""

from __future__ import annotations

from vigil.agents import AgentKind, agent_of
from vigil.agents.adapters import adapter_of
from vigil.agents.contract import Adapter
from vigil.config.loading import ConfigFile


class Kinds:
    def __init__(self, config: ConfigFile) -> None:
        self._config = config

    def agent_of(self, name: str) -> AgentKind:
        return agent_of(name, self._config.last_good.agents)

    def adapter_of(self, name: str) -> Adapter:
        """Return the adapter for a kind of agent; a configured kind is a plain command."""
        return adapter_of(name)

    def is_set_up(self, name: str) -> bool:
        """Say whether agents of a kind start with their adapter's flags, hooks and files."""
        found = self._config.last_good.agents.get(name)
        return found is None or found.instrument

    def names_of(self, name: str) -> tuple[str, ...]:
        """Return the process names by which Vigil finds a kind of agent below its command."""
        return tuple(self.agent_of(name).process)

    def configured_names(self) -> dict[str, tuple[str, ...]]:
        """Return the process names that the configuration adds for kinds of agents."""
        return {name: agent.process for name, agent in self._config.last_good.agents.items() if agent.process}
