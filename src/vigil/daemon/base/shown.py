"""What is shown: sessions and incidents as far as they are durable, and who waits for them to change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from vigil.core.effects import Answer
from vigil.core.model.conversation import Wake
from vigil.core.model.incident import Incident
from vigil.core.model.session import Session

ANSWERS = 1000  # a caller that went away does not ask for its own


class Changes:
    """Those who wait for what is shown to change, and look again when it did."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def tell(self) -> None:
        """Have all who wait for a change look again at what is shown."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, holds: Callable[[], bool], within_s: float) -> bool:
        """At each change of what is shown, look until something holds; say whether it does."""
        try:
            async with asyncio.timeout(within_s):
                while not holds():
                    await self._changed.wait()
        except TimeoutError:
            return holds()
        return True


class Shown(Changes):
    """What Vigil shows its readers; only the commit changes it."""

    def __init__(self, sessions: Mapping[str, Session], incidents: Mapping[str, Incident]) -> None:
        super().__init__()
        self.sessions = dict(sessions)
        self.incidents: Mapping[str, Incident] = dict(incidents)  # open ones
        self.answers: dict[str, Wake] = {}  # by session: what was decided, until its caller asks
        self.store_trouble: str | None = None

    def change(self, changed: Mapping[str, Session | None], incidents: Mapping[str, Incident]) -> None:
        """Show the durable changes alone, as copying all sessions costs too much; None is gone."""
        self.incidents = incidents
        for session_id, session in changed.items():
            if session is None:
                self.sessions.pop(session_id, None)
            else:
                self.sessions[session_id] = session

    def answer(self, effect: Answer) -> None:
        self.answers[effect.ticket] = effect.wake
        while len(self.answers) > ANSWERS:
            del self.answers[next(iter(self.answers))]

    def store_is(self, trouble: str | None) -> None:
        self.store_trouble = trouble
