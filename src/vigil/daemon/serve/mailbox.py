"""The mailbox: keeps prompts for sleeping sessions on disk, and types them in order once their agents can take them.

Durable before acknowledged, typed once. A prompt that a killed daemon was typing is traced, or its outcome is unknown."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
from pathlib import Path

from vigil.core.events import MessageQueued, MessageSent, MessageTyped
from vigil.core.model.conversation import Message
from vigil.core.model.launch import Mode, RuntimeKind
from vigil.core.model.restart import After
from vigil.core.model.session import Session, State
from vigil.daemon.base.log import log
from vigil.daemon.sense.transcripts import Conversations
from vigil.daemon.serve.prompts import Sending, Sent, checked
from vigil.daemon.supervisor import Supervisor
from vigil.errors import NoSuchSession, VigilError
from vigil.kernel.durable import read_json, record_json
from vigil.moments import rfc3339
from vigil.threads import PROMPTS, in_thread
from vigil.words import some

DIRECT_S = 20.0  # for a composer that can take a prompt at once
FIT_S = 10.0
AGAIN_S = 2.0  # a dialog, or a person who types, is looked at again after so long
QUIET_S = 600.0
TAKES = frozenset({State.STARTING, State.RUNNING})


class Texts:
    """The mailbox's texts, 0600 files, no rows: store and recording must not have prompts' secrets."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def record(self, session_id: str, message_id: str, text: str) -> None:
        """Keep a message's text in the mailbox; it is on disk when this returns."""
        folder = self._folder / session_id
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)
            fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        record_json(str(self._path(session_id, message_id)), {"text": text})

    def read(self, session_id: str, message_id: str) -> str | None:
        """Read a message's text from the mailbox; None if it is missing, or not whole."""
        text = (read_json(str(self._path(session_id, message_id))) or {}).get("text")
        return text if isinstance(text, str) else None

    def forget(self, session_id: str, message_id: str) -> None:
        self._path(session_id, message_id).unlink(missing_ok=True)

    def purge(self, session: Session) -> list[str]:
        """Empty a removed session's mailbox; return which messages went."""
        folder = self._folder / session.id
        found = sorted(path.stem for path in folder.glob("*.json"))
        shutil.rmtree(folder, ignore_errors=True)
        return [f"message {name}" for name in found]

    def keep_only(self, sessions: dict[str, Session]) -> None:
        """Clear the mailbox of texts that no session waits for: never acknowledged, or dealt with."""
        for folder in self._folder.iterdir():
            session = sessions.get(folder.name)
            known = {message.id for message in session.queue} if session is not None else set()
            for path in folder.glob("*"):
                if path.stem not in known or path.suffix != ".json":
                    path.unlink(missing_ok=True)
            if not known:
                shutil.rmtree(folder, ignore_errors=True)

    def _path(self, session_id: str, message_id: str) -> Path:
        return self._folder / session_id / f"{message_id}.json"


class Delivery:
    def __init__(self, texts: Texts, supervisor: Supervisor, sending: Sending, conversations: Conversations) -> None:
        self._texts = texts
        self._supervisor = supervisor
        self._sending = sending
        self._conversations = conversations
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._asked: dict[tuple[str, str], asyncio.Future[Sent]] = {}  # by session and message: the caller's answer

    def start(self) -> None:
        """Deliver the messages that the daemon before us left in its mailbox."""
        sessions = self._supervisor.machine.sessions
        with contextlib.suppress(OSError):
            self._texts.keep_only(sessions)
        for session in sessions.values():
            if session.queue:
                self._see_to(session.id)

    async def close(self) -> None:
        """Deliver no more messages; what waits in the mailbox is durable."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def send(self, session: Session, text: str, wait_s: float | None, actor: str) -> Sent:
        """Type a prompt into an awake session; put a sleeper's into the mailbox, wake it."""
        if not _must_wait(session):
            return await self._sending.send(session.id, text, DIRECT_S if wait_s is None else wait_s, actor)
        prompt = checked(text)
        message = Message(f"m{secrets.token_hex(8)}", self._supervisor.now(), actor, len(prompt))
        answered = self._asked[session.id, message.id] = asyncio.get_running_loop().create_future()
        try:
            refusal = await self._queue(session, message, prompt)
            if refusal is not None:
                return refusal
            self._see_to(session.id)
            done, _ = await asyncio.wait((answered,), timeout=wait_s or 0.0)
            return answered.result() if done else self._queued(session.id, message)
        finally:
            self._asked.pop((session.id, message.id), None)

    async def _queue(self, session: Session, message: Message, prompt: str) -> Sent | None:
        """Put a message into the mailbox, and wake its session; return why it is refused."""
        try:
            await in_thread(PROMPTS, self._texts.record, session.id, message.id, prompt, about=session.id)
        except OSError as error:
            raise VigilError(f"{session.name} was not sent anything: {error.strerror}: free some space") from error
        ticket = secrets.token_hex(8)
        transcript = await self._conversations.read(session)
        await self._supervisor.done(MessageQueued(session.id, message, transcript, ticket))
        wake = self._supervisor.answers.pop(ticket, None)
        if wake is None or wake.mode is Mode.REFUSED:
            with contextlib.suppress(OSError):
                await in_thread(PROMPTS, self._texts.forget, session.id, message.id, about=session.id)
        if wake is None:
            raise NoSuchSession(f"{session.name} was removed meanwhile")
        until = f"until {rfc3339(wake.until)} " if wake.until is not None else ""
        return Sent("refused", f"{until}{wake.why}") if wake.mode is Mode.REFUSED else None

    def _queued(self, session_id: str, message: Message) -> Sent:
        session = self._supervisor.shown.get(session_id)
        before = [one.id for one in session.queue].index(message.id) if session and message in session.queue else 0
        others = some(before, "message is", "messages are")
        words = f"it is {session.state if session else 'gone'}, and {others} before this one"
        return Sent("queued", f"typed when it can take it: {words}; vigil events says what became of it ({message.id})")

    def _see_to(self, session_id: str) -> None:
        """Deliver a session's mailbox, in one task at a time."""
        before = self._tasks.get(session_id)
        if before is None or before.done():
            task = self._tasks[session_id] = asyncio.create_task(self._deliver(session_id))
            task.add_done_callback(lambda done: self._delivered(session_id, done))

    def _delivered(self, session_id: str, task: asyncio.Task[None]) -> None:
        """Let go of a mailbox's task that is done, unless another one took its place."""
        if self._tasks.get(session_id) is task:
            del self._tasks[session_id]

    async def _deliver(self, session_id: str) -> None:
        """Deliver a mailbox's durable messages; a later one calls `_see_to` again."""
        while (session := self._supervisor.shown.get(session_id)) is not None and session.queue:
            if not self._can_go_on(session_id):
                await self._supervisor.until(lambda: self._can_go_on(session_id), QUIET_S)
                continue
            try:
                if not await self._deliver_first(session_id, session.queue[0]):
                    await asyncio.sleep(AGAIN_S)
            except (VigilError, OSError) as error:  # store or disk hang or refuse: nothing is typed before it is durable
                log.error("message waits", session=session.name, why=str(error), next_try_s=AGAIN_S)
                await asyncio.sleep(AGAIN_S)
        for who, asked in self._asked.items():
            if session is None and who[0] == session_id and not asked.done():
                asked.set_result(Sent("refused", "it was removed"))

    def _can_go_on(self, session_id: str) -> bool:
        session = self._supervisor.shown.get(session_id)
        return session is None or not session.queue or (session.state in TAKES and session.launch is not None)

    async def _deliver_first(self, session_id: str, message: Message) -> bool:
        """Deliver a mailbox's first message, or learn its fate; say whether that is settled."""
        async with self._sending.lock(session_id):
            if message.launch_id and message.typed_at is not None:
                text = await in_thread(PROMPTS, self._texts.read, session_id, message.id, about=session_id)
                sent = await self._sending.finish(session_id, message.launch_id, message.typed_at, FIT_S, text or "")
            else:
                found = await self._type(session_id, message)
                if found is None:
                    return False
                sent = found
        await self._supervisor.done(MessageSent(session_id, message.id, sent.outcome, sent.why))
        with contextlib.suppress(OSError):
            await in_thread(PROMPTS, self._texts.forget, session_id, message.id, about=session_id)
        if (asked := self._asked.get((session_id, message.id))) is not None and not asked.done():
            asked.set_result(sent)
        return True

    async def _type(self, session_id: str, message: Message) -> Sent | None:
        """Type a message from the mailbox into its session; None if that has to wait."""
        if await self._sending.wait_until_fit(session_id, FIT_S) is not None:
            return None
        text = await in_thread(PROMPTS, self._texts.read, session_id, message.id, about=session_id)
        session = self._supervisor.shown.get(session_id)
        if text is None:
            return Sent("refused", "its text cannot be read any more")
        if session is None or session.launch is None:
            return None
        await self._supervisor.done(MessageTyped(session_id, message.id, session.launch.id))
        typed_at = self._supervisor.now()
        sent = await self._sending.type(session_id, text, 0.0)
        if sent.outcome == "refused":
            await self._supervisor.done(MessageTyped(session_id, message.id, ""))
            return None
        if sent.outcome == "unsubmitted":
            return await self._sending.finish(session_id, session.launch.id, typed_at, FIT_S, text)
        return sent


def _must_wait(session: Session) -> bool:
    """Say whether a prompt waits in the mailbox: its session sleeps, or others wait before."""
    if session.spec.runtime is RuntimeKind.HEADLESS:
        return False
    asleep = session.state is State.PARKED or (session.state is State.ENDING and session.after is After.PARK)
    return asleep or bool(session.queue)
