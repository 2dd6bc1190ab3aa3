"""All adapters there are, by the name of their kind."""

from vigil.agents import claude, codex, gemini, generic, opencode, pi, qwen
from vigil.agents.adapter import Adapter

ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter
    for adapter in (
        claude.ADAPTER,
        codex.ADAPTER,
        gemini.ADAPTER,
        generic.ADAPTER,
        opencode.ADAPTER,
        pi.ADAPTER,
        qwen.ADAPTER,
    )
}


def adapter_of(agent: str) -> Adapter:
    """Return the adapter of a kind of agent; one that the configuration added is a plain command."""
    return ADAPTERS.get(agent, ADAPTERS["generic"])
