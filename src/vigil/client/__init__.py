"""The API's client: standard library only, quick to import. What cli and tui use."""

from vigil.client.client import Client, connect

__all__ = ["Client", "connect"]
