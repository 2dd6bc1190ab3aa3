"""The API's client, for cli and tui: standard library only, quick to import."""

from vigil.client.client import Client, connect

__all__ = ["Client", "connect"]
