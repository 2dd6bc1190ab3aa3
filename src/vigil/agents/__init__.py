"""What runs in a session: the kinds of agents, and what each needs to be started."""

from vigil.agents.kinds import KINDS, AgentKind, agent_of, names_of

__all__ = ["KINDS", "AgentKind", "agent_of", "names_of"]
