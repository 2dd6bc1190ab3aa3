"""The kinds of agents, each with the command that starts it."""

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
