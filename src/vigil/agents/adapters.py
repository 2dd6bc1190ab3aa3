"""All adapters there are, by the name of their kind: here a new one is added, and nowhere else."""

from vigil.agents import generic
from vigil.agents.claude import adapter as claude
from vigil.agents.codex import adapter as codex
from vigil.agents.contract import Adapter
from vigil.agents.gemini import adapter as gemini
from vigil.agents.opencode import adapter as opencode
from vigil.agents.pi import adapter as pi
from vigil.agents.qwen import adapter as qwen

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
