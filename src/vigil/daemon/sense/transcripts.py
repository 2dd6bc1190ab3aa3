"""Transcripts: whether a session could go on with its conversation, by its adapter and its files (DESIGN 4.6)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from vigil.agents.contract import Adapter, Beginning, Place
from vigil.core.model.conversation import Kept, Transcript
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.session import Session, Spec
from vigil.daemon.base.clock import Clock
from vigil.hands import Hands, Hangs
from vigil.observe.transcripts import read_transcript
from vigil.threads import ask

MOST_HUNG = 32
LIST = "list"  # a list reads many: while one hangs, the next shows what was known
READ_S = 2.0  # a network folder that hangs delays a caller no longer
MOST_KNOWN = 10_000
AGAIN_S = 2.0  # a missing transcript is looked for again after so long


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found of a conversation's transcript, and where."""

    conversation: str
    kept: Kept
    why: str  # or the file
    at: float
    file: tuple[int, int, int] | None = None  # the file that was read: device, inode, size


def _is_still_so(known: _Known, now: float) -> bool:
    if known.kept is not Kept.THERE:
        return now - known.at < AGAIN_S
    before, now_there = known.file, _file_at(known.why)
    return before is not None and now_there is not None and now_there[:2] == before[:2] and now_there[2] >= before[2]


def _file_at(path: str) -> tuple[int, int, int] | None:
    """Return which transcript file has this name; a link or a folder is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size) if stat.S_ISREG(found.st_mode) else None


@dataclass(eq=False, repr=False)
class Conversations:
    _clock: Clock
    _adapter_of: Callable[[str], Adapter]
    _is_set_up: Callable[[str], bool]
    _environment_of: Callable[[Session], Mapping[str, str]]
    _hands: Hands = field(default_factory=lambda: Hands("conversations", MOST_HUNG, ready=True), init=False)
    _known: dict[str, _Known] = field(default_factory=dict, init=False)  # by session: what the last list found

    async def peek(self, sessions: Iterable[Session]) -> dict[str, Transcript]:
        """Read which of many sessions have a transcript; known files are only checked again."""
        wanted = [session for session in sessions if session.conversation]
        if not wanted:
            return {}
        try:
            found = await ask(self._hands, lambda: [self._peek(one) for one in wanted], READ_S, LIST)
        except Hangs:
            return {one.id: one.transcript for one in wanted if one.transcript is not None}
        now = self._clock.now()
        if len(self._known) > MOST_KNOWN:
            self._known.clear()  # most are of sessions that are gone
        return {
            session.id: Transcript(session.conversation, kept, now, "" if kept is Kept.THERE else why)
            for session, (kept, why) in zip(wanted, found, strict=True)
        }

    def _peek(self, session: Session) -> tuple[Kept, str]:
        known = self._known.get(session.id)
        if known is None or known.conversation != session.conversation or not _is_still_so(known, self._clock.now()):
            kept, why = self._read(session)
            file = _file_at(why) if kept is Kept.THERE else None
            known = self._known[session.id] = _Known(session.conversation, kept, why, self._clock.now(), file)
        return known.kept, known.why

    async def read(self, session: Session) -> Transcript | None:
        """Read whether a session's conversation has its transcript, in time; None without a conversation."""
        if not session.conversation:
            return None
        try:
            kept, why = await ask(self._hands, lambda: self._read(session), READ_S, session.id)
        except Hangs:
            kept, why = Kept.UNKNOWN, f"its transcript could not be read within {READ_S:g} s"
        return Transcript(session.conversation, kept, self._clock.now(), "" if kept is Kept.THERE else why)

    def _read(self, session: Session) -> tuple[Kept, str]:
        spec, conversation = session.spec, session.conversation
        adapter = self._adapter_of(spec.agent)
        if not adapter.resumes or not self._is_set_up(spec.agent):
            return Kept.UNABLE, f"{spec.agent} is not asked to go on with a conversation"
        try:
            place = Place(os.path.realpath(spec.cwd), self._environment_of(session))
            start = adapter.start(_beginning(spec, place, conversation, resume=True))
        except (OSError, ValueError) as error:
            return Kept.UNKNOWN, f"how it is launched cannot be found out: {error}"
        if start.conversation != conversation:
            return Kept.UNABLE, start.unresumed or "its command takes no conversation"
        patterns = adapter.transcripts(place, conversation)
        if not patterns:
            return Kept.UNKNOWN, f"{spec.agent} does not show where it keeps its conversations"
        return read_transcript(patterns[0], conversation, adapter.read_entry)

    def named_by(self, spec: Spec, env: Mapping[str, str]) -> str:
        """Return the conversation whose transcript a command itself asks to continue; nothing if none."""
        if not self._is_set_up(spec.agent):
            return ""
        try:
            place = Place(os.path.realpath(spec.cwd), env)
            return self._adapter_of(spec.agent).start(_beginning(spec, place, "", resume=False)).conversation
        except (OSError, ValueError):
            return ""


def _beginning(spec: Spec, place: Place, conversation: str, resume: bool) -> Beginning:
    """Return an imagined launch that would resume a transcript: nothing of it is written."""
    return Beginning(spec.command, place, "/nowhere", spec.runtime is RuntimeKind.HEADLESS, conversation, resume)
