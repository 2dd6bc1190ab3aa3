"""Vigil keeps watch over AI coding-agent sessions."""

__version__ = "0.1.0"
