"""Dialogs: questions on the screens of agents that have said nothing or wait; a person is told, Vigil never answers.

Agents tell of an answer only when the tool has ended, so a permission that left the screen was answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from vigil.agents.contract import Adapter, Dialog
from vigil.core.events import Heard
from vigil.core.model.launch import Launch, RuntimeKind
from vigil.core.model.session import Session, State
from vigil.core.model.speech import Said, What
from vigil.daemon.base.clock import next_tick_s
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.log import log
from vigil.daemon.base.secrets import Secrets
from vigil.runtimes import Runtime
from vigil.runtimes.tmux import keyboard
from vigil.text import decode, one_line, plain

TICK_S = 1.0
EVERY_S = 5.0
YOUNG_S = 3.0  # a younger screen is still being drawn
OLD_S = 600.0  # a look costs a process: silent agents are looked at no longer than this, waiting ones rarely after it
SOON_S = 60.0  # most questions are answered within a minute: until then each tick looks
RARELY_S = 60.0
PERMISSION = "permission"
SHOWN_CHARS = 160


@dataclass(eq=False, repr=False)
class Dialogs:
    _ground: Ground
    _sessions: Callable[[], Iterable[Session]]
    _runtime: Runtime
    _adapter_of: Callable[[str], Adapter]
    _secrets: Secrets
    _looked_at: dict[str, float] = field(default_factory=dict, init=False)  # by launch
    # By launch: questions asked while its screen showed one.
    _shown: dict[str, frozenset[str]] = field(default_factory=dict, init=False)

    async def run(self) -> None:
        pause_s = TICK_S
        while True:
            await asyncio.sleep(next_tick_s(pause_s))
            sessions = list(self._sessions())
            kinds = {session.spec.agent for session in sessions}
            asking = {kind for kind in kinds if self._adapter_of(kind).dialogs}  # most never ask
            pause_s = TICK_S if asking else YOUNG_S  # a newborn that asks is not looked at sooner
            due = [session for session in sessions if session.spec.agent in asking and self._is_due(session)]
            if self._looked_at or self._shown:
                self._forget_but({session.launch.id for session in sessions if session.launch is not None})
            try:
                await asyncio.gather(*map(self._look, due))
            except Exception:  # a screen that cannot be read does not stop the watch
                log.exception("dialogs not looked for", next_look_s=TICK_S)

    def _forget_but(self, launches: set[str]) -> None:
        for known in (self._looked_at, self._shown):
            for launch_id in [one for one in known if one not in launches]:
                known.pop(launch_id)

    def _is_due(self, session: Session) -> bool:
        launch, now = session.launch, self._ground.now()
        if session.spec.runtime is not RuntimeKind.TMUX or session.state is not State.RUNNING or launch is None:
            return False
        every_s = self._every_s(session, launch, now)
        if every_s is None or now - self._looked_at.get(launch.id, 0.0) < every_s:
            return False
        self._looked_at[launch.id] = now
        return True

    @staticmethod
    def _every_s(session: Session, launch: Launch, now: float) -> float | None:
        """Return how often to look for dialogs on a session's screen; None for never."""
        if session.vitals.doing.asked:
            waits_s = now - max(one.since for one in session.vitals.doing.asked)
            return TICK_S if waits_s < SOON_S else EVERY_S if waits_s < OLD_S else RARELY_S
        up_s = now - launch.started_at if launch.started_at is not None else 0.0
        return EVERY_S if not session.vitals.doing.started and YOUNG_S <= up_s < OLD_S else None

    async def _look(self, session: Session) -> None:
        launch = session.launch
        assert launch is not None
        call = self._runtime.commands_to(launch)
        screen = await keyboard.read_visible(call, launch.pane) if call is not None and launch.pane is not None else None
        if screen is None:
            return  # unknown: the next tick looks again
        text = plain(decode(screen))
        found = find_dialog(self._adapter_of(session.spec.agent).dialogs, text)
        standing = _standing(session)
        gone = [Said(What.ANSWERED, id=known) for known in standing if found is None or known != _id(found)]
        asked = frozenset(one.id for one in session.vitals.doing.asked if one.id) - set(standing)
        if asked and (found is None or found.name != PERMISSION):
            gone += [Said(What.ANSWERED, id=known) for known in sorted(asked & self._shown.pop(launch.id, frozenset()))]
        elif asked:
            self._shown[launch.id] = self._shown.get(launch.id, frozenset()) | asked
        silent = not session.vitals.doing.started or bool(standing)
        new = [] if found is None or _id(found) in standing or not silent else [self._asked(launch, found, text)]
        if gone or new:
            self._ground.feed(Heard(launch.id, (*gone, *new), "screen"))

    def _asked(self, launch: Launch, dialog: Dialog, text: str) -> Said:
        """Return a dialog's question, with the lines around its sign on the screen."""
        at = text.find(dialog.signs[0])
        words = one_line(self._secrets.redactor(launch.session_id).text(text[at : at + 2 * SHOWN_CHARS]))[:SHOWN_CHARS]
        return Said(What.ASKED, id=_id(dialog), name=f"dialog {dialog.name}: {words}")


def find_dialog(dialogs: Iterable[Dialog], text: str) -> Dialog | None:
    return next((dialog for dialog in dialogs if all(sign in text for sign in dialog.signs)), None)


def _id(dialog: Dialog) -> str:
    return f"dialog-{dialog.name}"


def _standing(session: Session) -> list[str]:
    return [one.id for one in session.vitals.doing.asked if one.id.startswith("dialog-")]
