"""A model's API on loopback, scripted: what real agents talk to in these tests (docs/real-clients.md)."""

from tests.real.model_api.running import ModelApi, Request

__all__ = ["ModelApi", "Request"]
