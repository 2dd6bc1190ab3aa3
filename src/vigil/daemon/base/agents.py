"""Kinds of agents: what is known of each, by the configuration as it was valid last."""

from __future__ import annotations

from vigil.agents import AgentKind, agent_of
from vigil.agents.adapters import adapter_of
from vigil.agents.contract import Adapter
from vigil.config.loading import ConfigFile


class Kinds:
    """The kinds that Vigil knows, and those that the configuration adds."""

    def __init__(self, config: ConfigFile) -> None:
        self._config = config

    def agent_of(self, name: str) -> AgentKind:
        """Return what is known of a kind."""
        return agent_of(name, self._config.last_good.agents)

    def adapter_of(self, name: str) -> Adapter:
        """Return the adapter of a kind; one that the configuration added is a plain command."""
        return adapter_of(name)

    def is_set_up(self, name: str) -> bool:
        """Say whether launches of a kind get what its adapter adds: flags, hooks, files of their own."""
        found = self._config.last_good.agents.get(name)
        return found is None or found.instrument

    def names_of(self, name: str) -> tuple[str, ...]:
        """Return the names by which an agent of a kind is found below its command."""
        return tuple(self.agent_of(name).process)

    def configured_names(self) -> dict[str, tuple[str, ...]]:
        """Return the names of agents' processes that the configuration adds."""
        return {name: agent.process for name, agent in self._config.last_good.agents.items() if agent.process}
