"""What is shown: sessions and incidents as far as they are durable, and who waits for them to change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from vigil.core.effects import Answer
from vigil.core.model.conversation import Wake
from vigil.core.model.incident import Incident
from vigil.core.model.session import Session


class Shown:
    """What readers see; only the commit changes it."""

    def __init__(self, sessions: Mapping[str, Session], incidents: Mapping[str, Incident]) -> None:
        self.sessions = dict(sessions)
        self.incidents: Mapping[str, Incident] = dict(incidents)  # open ones
        self.answers: dict[str, Wake] = {}  # by session: what was decided, until its caller asks
        self.store_trouble: str | None = None
        self._changed = asyncio.Event()

    def change(self, changed: Mapping[str, Session | None], incidents: Mapping[str, Incident]) -> None:
        """Show what is durable by now, only what changed (copying all sessions for each event cost too much); None is gone."""
        self.incidents = incidents
        for session_id, session in changed.items():
            if session is None:
                self.sessions.pop(session_id, None)
            else:
                self.sessions[session_id] = session

    def answer(self, effect: Answer) -> None:
        """Keep a decision for its caller."""
        self.answers[effect.ticket] = effect.wake

    def store_is(self, trouble: str | None) -> None:
        """Show why nothing can be written, or None where it can."""
        self.store_trouble = trouble

    def tell(self) -> None:
        """Have all who wait look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, holds: Callable[[], bool], within_s: float) -> bool:
        """Wait until something is true of what is shown; say whether it is."""
        try:
            async with asyncio.timeout(within_s):
                while not holds():
                    await self._changed.wait()
        except TimeoutError:
            return holds()
        return True
