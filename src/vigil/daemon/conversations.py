"""Conversations: whether a session could go on with its own, asked of its adapter and of the files it keeps (DESIGN 4.6)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping

from vigil.agents.adapter import Adapter, Beginning, Place
from vigil.core.model import Kept, RuntimeKind, Session, Spec, Transcript
from vigil.daemon.clock import Clock
from vigil.observe.transcripts import read_transcript

READ_S = 2.0  # a folder on a network that hangs delays nobody longer


class Conversations:
    """Reads what there is of conversations."""

    def __init__(
        self,
        clock: Clock,
        adapter_of: Callable[[str], Adapter],
        is_set_up: Callable[[str], bool],
        environment_of: Callable[[Session], Mapping[str, str]],
    ) -> None:
        self._clock = clock
        self._adapter_of = adapter_of
        self._is_set_up = is_set_up
        self._environment_of = environment_of

    async def read(self, session: Session) -> Transcript | None:
        """Return what there is of a session's conversation; None if it has none. Ends in time, whatever the disk does."""
        if not session.conversation:
            return None
        try:
            async with asyncio.timeout(READ_S):
                kept, why = await asyncio.to_thread(self._read, session)
        except TimeoutError:
            kept, why = Kept.UNKNOWN, f"its transcript could not be read within {READ_S:g} s"
        return Transcript(session.conversation, kept, self._clock.now(), why)

    def _read(self, session: Session) -> tuple[Kept, str]:
        spec, conversation = session.spec, session.conversation
        adapter = self._adapter_of(spec.agent)
        if not adapter.resumes or not self._is_set_up(spec.agent):
            return Kept.UNABLE, f"{spec.agent} is not asked to go on with a conversation"
        try:
            place = Place(os.path.realpath(spec.cwd), self._environment_of(session))
            start = adapter.begin(_beginning(spec, place, conversation, resume=True))
        except (OSError, ValueError) as error:
            return Kept.UNKNOWN, f"how it is launched cannot be found out: {error}"
        if start.conversation != conversation:
            words = next((line for line in start.without if "resume" in line), "its command takes no conversation")
            return Kept.UNABLE, words
        patterns = adapter.transcripts(place, conversation)
        if not patterns:
            return Kept.UNKNOWN, f"{spec.agent} does not show where it keeps its conversations"
        return read_transcript(patterns[0], conversation, adapter.read_entry)

    def named_by(self, spec: Spec, env: Mapping[str, str]) -> str:
        """Return the conversation that a command names itself; nothing if it names none."""
        if not self._is_set_up(spec.agent):
            return ""
        try:
            place = Place(os.path.realpath(spec.cwd), env)
            return self._adapter_of(spec.agent).begin(_beginning(spec, place, "", resume=False)).conversation
        except (OSError, ValueError):
            return ""


def _beginning(spec: Spec, place: Place, conversation: str, resume: bool) -> Beginning:
    """Return a launch that is only thought of: nothing of it is written."""
    return Beginning(spec.command, place, "/nowhere", spec.runtime is RuntimeKind.HEADLESS, conversation, resume)
