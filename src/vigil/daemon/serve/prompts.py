"""Prompts: types one into a session's terminal once its composer can take it, and says what became of it.

Never twice: after the paste began, the answer tells what happened and nothing is tried again."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from vigil.agents.contract import Adapter
from vigil.core.events import Observed
from vigil.core.machine import Machine
from vigil.core.model.launch import Launch, RuntimeKind
from vigil.core.model.reading import Axis, AxisValue
from vigil.core.model.session import Session
from vigil.core.rules.prompt import ComposerSight, PromptRefusal, why_not
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.inbox import Inbox
from vigil.daemon.base.shown import Shown
from vigil.daemon.sense.dialogs import find_dialog
from vigil.errors import UsageError
from vigil.kernel.process import read_stat
from vigil.observe.process import read_process
from vigil.runtimes import Runtime
from vigil.runtimes.tmux import keyboard
from vigil.text import decode, plain

PAUSE_S = 0.3  # Codex takes an Enter within 120 ms of a paste for a part of it, Claude one in the same read
CONFIRM_S = 6.0
ENTERS = 2  # one may be lost: Gemini CLI shows its composer seconds before it takes any
LOOK_S = 0.3
SEEN_CHARS = 40  # of a line, which a terminal shows unbroken
MOST_CHARS = 1_000_000


@dataclass(frozen=True)
class Sent:
    """What became of a prompt."""

    outcome: str  # submitted, unsubmitted, refused, unknown; queued, where it waits
    why: str


@dataclass(eq=False, repr=False)
class Sending:
    """Types prompts, one at a time for each session."""

    _inbox: Inbox
    _shown: Shown
    _machine: Machine
    _clock: Clock
    _runtime: Runtime
    _adapter_of: Callable[[str], Adapter]
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary, init=False)

    async def send(self, session_id: str, text: str, wait_s: float, actor: str) -> Sent:
        """Wait for a composer that can take a prompt, type it, find out its outcome."""
        prompt = checked(text)
        async with self.lock(session_id):
            sent = await self.type(session_id, prompt, wait_s)
        session = self._shown.sessions.get(session_id)
        words = {"session": session.name if session else session_id, "characters": len(prompt), "actor": actor}
        self._inbox.note("session.sent", words | {"outcome": sent.outcome, "why": sent.why}, session)
        return sent

    def lock(self, session_id: str) -> asyncio.Lock:
        """Return the lock of a session's keyboard; only its holder types prompts."""
        return self._locks.setdefault(session_id, asyncio.Lock())

    async def type(self, session_id: str, prompt: str, wait_s: float) -> Sent:
        """Type a prompt when its composer can take it, lock held. `refused`: nothing was typed."""
        refusal = await self.wait_until_fit(session_id, wait_s)
        session = self._shown.sessions.get(session_id)
        if refusal is not None or session is None or session.launch is None or session.launch.pane is None:
            return Sent("refused", refusal or "it is gone")
        launch, typed_at = session.launch, self._clock.now()
        call = self._runtime.commands_to(launch)
        assert launch.pane is not None and call is not None
        pasted = await keyboard.paste(call, launch.pane, f"vigil-{secrets.token_hex(4)}", prompt)
        if pasted == keyboard.REFUSED:
            return Sent("refused", "its pane died, or somebody began to read there")
        self._inbox.feed(Observed(launch.id, (), delivered_at=typed_at))
        if pasted is None:
            return Sent("unknown", "its tmux server gave no answer: the prompt may stand in its composer")
        await asyncio.sleep(PAUSE_S)
        found = await self._look(session_id)
        if found is None or found.process == "dead":
            return Sent("unsubmitted", "its agent ended before Enter: the prompt was pasted, and not sent")
        if found.foreground == "other":
            return Sent("unsubmitted", "its agent lost the terminal before Enter: the prompt was pasted, and not sent")
        for _ in range(ENTERS):
            sent = await self._press(session_id, launch, typed_at)
            if sent.outcome != "unknown" or not await self._stands_there(session_id, launch, prompt):
                return sent
        return Sent("unsubmitted", "it stands in its composer: its agent took no Enter")

    async def finish(self, session_id: str, launch_id: str, typed_at: float, wait_s: float, prompt: str) -> Sent:
        """Send a prompt that may stand in a composer: Enter alone, only where seen."""
        session = self._shown.sessions.get(session_id)
        launch = session.launch if session is not None else None
        if session is None or launch is None or launch.id != launch_id or launch.ended_at is not None:
            return Sent("unknown", "it was typed, and its agent ended before it said that it took it")
        adapter = self._adapter_of(session.spec.agent)
        if adapter.submits and await self._was_taken(session_id, launch, typed_at):
            return Sent("submitted", "its agent says that it took it")
        if not adapter.composer:
            return await self._finish_line(session_id, launch, typed_at, wait_s, prompt)
        if session.vitals.attached:
            return Sent("unknown", "it was typed, and may stand in its composer; vigil attach shows it")
        refusal = await self.wait_until_fit(session_id, wait_s, draft_is_ours=True)
        if refusal is not None:
            return Sent("unknown", f"it was typed, and may stand in its composer: {refusal}")
        sight = await self._look(session_id)
        if sight is None or (adapter.draft is not None and not sight.draft):
            return Sent("unknown", "it does not stand in its composer, and its agent has not said that it took it")
        return await self._press(session_id, launch, typed_at)

    async def _stands_there(self, session_id: str, launch: Launch, prompt: str) -> bool:
        """Say whether a pasted prompt's last line still stands in a composer only we use."""
        session, sight = self._shown.sessions.get(session_id), await self._look(session_id)
        if session is None or sight is None or session.launch is None:
            return False
        if session.vitals.attached or session.launch.id != launch.id:
            return False
        adapter, call = self._adapter_of(session.spec.agent), self._runtime.commands_to(launch)
        holds = sight.draft if adapter.draft is not None else sight.composer is False  # most only show an empty one
        if not (adapter.submits and holds) or why_not(replace(sight, draft=False, composer=None)) is not None:
            return False
        assert launch.pane is not None and call is not None
        screen = await keyboard.read_visible(call, launch.pane)
        return prompt.strip().splitlines()[-1].strip()[:SEEN_CHARS] in plain(decode(screen or b""))

    async def _finish_line(self, session_id: str, launch: Launch, typed_at: float, wait_s: float, prompt: str) -> Sent:
        """Press Enter behind a prompt before the cursor: the next would be typed onto it."""
        refusal = await self.wait_until_fit(session_id, wait_s)
        if refusal is not None:
            return Sent("unknown", f"it was typed, and may stand there unsent: {refusal}")
        call = self._runtime.commands_to(launch)
        assert launch.pane is not None and call is not None
        line = await keyboard.read_typed(call, launch.pane)
        if line is None or not stands_in(line, prompt):
            return Sent("unknown", "it may have been typed, and does not stand before the cursor; vigil attach shows it")
        return await self._press(session_id, launch, typed_at)

    async def _press(self, session_id: str, launch: Launch, typed_at: float) -> Sent:
        call = self._runtime.commands_to(launch)
        assert launch.pane is not None and call is not None
        entered = await keyboard.enter(call, launch.pane)
        if entered == keyboard.REFUSED:
            return Sent("unsubmitted", "its pane died, or somebody began to read there, before Enter")
        if entered is None:
            return Sent("unknown", "its tmux server gave no answer to Enter")
        return await self._confirm(session_id, launch, typed_at)

    async def wait_until_fit(self, session_id: str, wait_s: float, draft_is_ours: bool = False) -> str | None:
        """Wait while a composer may yet take a prompt; return why it cannot, or None."""
        deadline = asyncio.get_running_loop().time() + wait_s
        while True:
            sight = await self._look(session_id)
            if sight is None:
                return "it is gone"
            row: PromptRefusal | None = why_not(replace(sight, draft=False) if draft_is_ours else sight)
            if row is None:
                return None
            if not row.passes or asyncio.get_running_loop().time() >= deadline:
                return row.why(sight)
            await asyncio.sleep(LOOK_S)

    async def _look(self, session_id: str) -> ComposerSight | None:
        session = self._shown.sessions.get(session_id)
        if session is None:
            return None
        server = session.vitals.axes.get(Axis.SERVER)
        headless = session.spec.runtime is RuntimeKind.HEADLESS
        known = ComposerSight(
            session.state,
            headless,
            process_of(session),
            server.value if server is not None else "alive",
            ", ".join(one.name or "a question" for one in session.vitals.doing.asked),
        )
        if why_not(known) is not None or session.launch is None or session.launch.pane is None:
            return known
        return await self._look_at_terminal(session, session.launch, known)

    async def _look_at_terminal(self, session: Session, launch: Launch, known: ComposerSight) -> ComposerSight:
        adapter = self._adapter_of(session.spec.agent)
        call = self._runtime.commands_to(launch)
        assert launch.pane is not None and call is not None
        pane = await keyboard.read_pane(call, launch.pane)
        screen = await keyboard.read_visible(call, launch.pane) if adapter.composer or adapter.dialogs else b""
        shown = plain(decode(screen or b""))
        dialog = find_dialog(adapter.dialogs, shown)
        found = [re.search(pattern, shown, re.MULTILINE) for pattern in adapter.composer]
        return replace(
            known,
            pane_read=pane is not None,
            pane_dead=pane is not None and pane.dead,
            in_mode=pane is not None and pane.in_mode,
            foreground=foreground_of(launch),
            screen_read=screen is not None,
            dialog=dialog.name if dialog is not None else "",
            composer=any(found) if found else None,
            draft=pane is not None and holds_draft(adapter, shown, pane.cursor_x),
        )

    async def _confirm(self, session_id: str, launch: Launch, typed_at: float) -> Sent:
        """Wait for the agent's word that it took a prompt; without one that is unknown."""
        session = self._shown.sessions.get(session_id)
        if session is None or not self._adapter_of(session.spec.agent).submits:
            return Sent("unknown", "it was typed; this kind of agent does not say whether it took it")
        if await self._was_taken(session_id, launch, typed_at):
            return Sent("submitted", "its agent says that it took it")
        return Sent("unknown", f"it was typed, and its agent has said nothing of it for {CONFIRM_S:g} s; vigil attach shows it")

    async def _was_taken(self, session_id: str, launch: Launch, typed_at: float) -> bool:
        """Wait for the agent's word that it took a prompt; say whether it came."""

        def taken() -> bool:
            found = self._machine.sessions.get(session_id)
            same = found is not None and found.launch is not None and found.launch.id == launch.id
            return same and found is not None and (found.prompted_at or 0.0) >= typed_at

        return await self._shown.until(taken, CONFIRM_S)


def checked(text: str) -> str:
    """Return a prompt without control characters that a terminal obeys or that end the paste."""
    prompt = plain(text)
    if not prompt.strip():
        raise UsageError("there is nothing to send: the text is empty")
    if len(prompt) > MOST_CHARS:
        raise UsageError(f"{len(prompt)} characters are too many: at most {MOST_CHARS}")
    return prompt


def stands_in(line: str, prompt: str) -> bool:
    """Say whether the line at the cursor ends as a prompt does."""
    last = prompt.rstrip().rpartition("\n")[2].strip()
    return bool(last) and line.rstrip().endswith(last)


def holds_draft(adapter: Adapter, shown: str, cursor_x: int) -> bool:
    """Say whether a person's draft stands in a composer: a prompt's Enter would send it."""
    if adapter.draft is None:
        return False
    pattern, column = adapter.draft
    return cursor_x > column and re.search(pattern, shown, re.MULTILINE) is not None


def process_of(session: Session) -> str:
    """Say how the agent for a prompt is now: the last sweep was seconds ago."""
    reading, agent = session.vitals.axes.get(Axis.PROCESS), session.launch.agent if session.launch is not None else None
    if reading is None:
        return "unknown"
    if reading.value not in (AxisValue.ALIVE, AxisValue.STOPPED) or agent is None:
        return reading.value
    return read_process(Axis.PROCESS, agent, agent.boot, 0.0).value


def foreground_of(launch: Launch) -> str:
    """Say who would get a prompt, by the kernel's foreground process group of the terminal."""
    agent, root = launch.agent, launch.root
    if agent is None or root is None:
        return "unknown"
    try:
        pane, own = read_stat(root.pid), read_stat(agent.pid)
    except OSError:
        return "unknown"
    if pane is None or own is None or (pane.start_ticks, own.start_ticks) != (root.start_ticks, agent.start_ticks):
        return "unknown"
    return "agent" if pane.tpgid == own.pgrp else "other"
