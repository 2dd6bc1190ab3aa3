"""The kinds of agents that run in a session, and the command that starts each."""

from vigil.agents.kinds import KINDS, AgentKind, agent_of, kind_of, names_of

__all__ = ["KINDS", "AgentKind", "agent_of", "kind_of", "names_of"]
