"""The demo's story: what each agent has shown so far, and what is still to come. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from vigil.demo.fleet import DemoAgent


class Story:
    """What the event log says of a fleet."""

    def __init__(self, fleet: Sequence[DemoAgent]) -> None:
        self._fleet = fleet
        self._states: defaultdict[str, list[str]] = defaultdict(list)
        self._causes: defaultdict[str, list[str]] = defaultdict(list)

    def hear(self, event: dict[str, Any]) -> None:
        """Take in one event."""
        if event["kind"] == "session.state":
            self._states[event["session"]].append(event["data"]["to"])
        elif event["kind"] == "session.died":
            self._causes[event["session"]].append(event["data"]["cause"])

    def missing(self) -> list[str]:
        """Return what is still missing, a line for each agent; empty when the story is complete."""
        lines = []
        for agent in self._fleet:
            if not in_order(agent.states, self._states[agent.name]):
                lines.append(f"{agent.name} did not go through {', '.join(agent.states)}")
            elif agent.cause is not None and agent.cause not in self._causes[agent.name]:
                lines.append(f"{agent.name} left no death of cause {agent.cause}")
        return lines


def in_order(wanted: Iterable[str], seen: Iterable[str]) -> bool:
    """Say whether `seen` holds all of `wanted` in this order, with anything between."""
    rest = iter(seen)
    return all(state in rest for state in wanted)
