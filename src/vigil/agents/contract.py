"""What is known of a kind of agent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Agent:
    """One kind of agent."""

    name: str
    command: tuple[str, ...] = ()  # what starts it when nothing else is said; empty: a command must be given
    process: tuple[str, ...] = ()  # the names of the agent's own process, where its command only runs it
