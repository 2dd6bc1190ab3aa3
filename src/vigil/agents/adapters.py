"""All adapters, by the name of their kind; a new one is added only here."""

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
    """Return the adapter of a kind; a kind from the configuration gets the generic one."""
    return ADAPTERS.get(agent, ADAPTERS["generic"])
