"""All adapters there are, by the name of their kind: here a new one is added, and nowhere else."""

from vigil.agents import claude, codex, gemini, generic, opencode, pi, qwen
from vigil.agents.contract import Adapter

ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter
    for adapter in (
        generic.ADAPTER,
        claude.ADAPTER,
        codex.ADAPTER,
        gemini.ADAPTER,
        opencode.ADAPTER,
        qwen.ADAPTER,
        pi.ADAPTER,
    )
}


def adapter_of(agent: str) -> Adapter:
    """Return the adapter of a kind of agent; one that the configuration added is a plain command."""
    return ADAPTERS.get(agent, ADAPTERS["generic"])
