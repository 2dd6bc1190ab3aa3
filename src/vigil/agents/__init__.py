"""What runs in a session: the kinds of agents, and what each needs to be started."""

from vigil.agents.contract import Agent
from vigil.agents.kinds import KINDS

__all__ = ["KINDS", "Agent"]
