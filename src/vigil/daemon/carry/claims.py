"""Claims: a conversation is open in one launch at a time; two agents in one would write into each other."""

from __future__ import annotations

from collections.abc import Callable

from vigil.core.model.launch import Launch
from vigil.core.model.session import Session


class Claims:
    """Which launch was last made into which agent's conversation."""

    def __init__(
        self, session_of: Callable[[str], Session | None], owner_of: Callable[[str, str, str], Session | None]
    ) -> None:
        self._session_of = session_of
        self._owner_of = owner_of
        self._claims: dict[tuple[str, str], str] = {}

    def claim(self, session: Session, launch: Launch, conversation: str) -> None:
        """Refuse a launch into a conversation that another one is in: ValueError.

        Its command may name one itself, and two may be launched at once: whoever comes first has it while its launch lives.
        """
        if not conversation:
            return
        key = (session.spec.agent, conversation)
        other = self._session_of(self._claims.get(key, ""))
        lives = other is not None and other.launch is not None and other.launch.ended_at is None and other.id != session.id
        owner = other if lives else self._owner_of(session.spec.agent, conversation, session.id)
        if owner is not None:
            raise ValueError(f"conversation {conversation} is open in {owner.name}: two agents in one would mix it up")
        self._claims = {known: who for known, who in self._claims.items() if self._session_of(who) is not None}
        self._claims[key] = launch.id
