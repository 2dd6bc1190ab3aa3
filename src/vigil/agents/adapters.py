"""All adapters there are, by the name of their kind."""

from vigil.agents.adapter import Adapter

ADAPTERS: dict[str, Adapter] = {"generic": Adapter("generic")}
