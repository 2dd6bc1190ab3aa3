"""What every route can do: deliver one notice, and say whether it arrived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

WHY_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of one attempt to deliver; a notice counts when it was delivered, not when it was tried (P12)."""

    ok: bool
    why: str = ""


class Route(Protocol):
    """One way to reach people. Routes that compare equal are the same, also after the configuration was read again."""

    def deliver(self, body: bytes) -> Delivery:
        """Deliver one notice, a JSON object; blocks, and returns within a time of its own."""
