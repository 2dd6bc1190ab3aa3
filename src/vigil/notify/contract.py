"""What every route can do: deliver one notice, and say whether it arrived."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from vigil.core.rules.notice import Attempt

WHY_CHARACTERS = 200
DEADLINE_S = 30.0
# The outcome of one attempt; a notice counts when it was delivered, not when it was tried (P12).
Delivery = Attempt


class Route(Protocol):
    """One way to reach people. Equal routes are the same, also after the configuration was read again."""

    def deliver(self, body: bytes, took: Collection[str] = ()) -> Delivery:
        """Deliver one notice, a JSON object, but not again to `took`; blocks, within a deadline of its own."""
