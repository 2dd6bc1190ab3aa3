"""Dialogs: questions that an agent puts on its screen before it says anything; a person is told, nobody answers blindly.

Only screens of agents that have not said anything yet, or whose dialog is known to stand there, are looked at: what an agent
says of itself is always better than its screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from vigil.agents.adapter import Adapter, Dialog
from vigil.core.events import Event, Heard
from vigil.core.model import Launch, RuntimeKind, Session, State
from vigil.core.said import Said, What
from vigil.daemon.log import log
from vigil.daemon.secrets import Secrets
from vigil.runtimes import Runtime, keyboard
from vigil.text import decode, one_line, plain

EVERY_S = 5.0
YOUNG_S = 3.0  # before that a screen is still being drawn
OLD_S = 600.0  # a look costs a process: who says nothing for so long is not asked for ever
SHOWN_CHARS = 160


class Dialogs:
    """Looks for dialogs on the screens of silent agents."""

    def __init__(
        self,
        sessions: Callable[[], Iterable[Session]],
        runtime: Runtime,
        adapter_of: Callable[[str], Adapter],
        secrets: Secrets,
        now: Callable[[], float],
        feed: Callable[[Event], None],
    ) -> None:
        self._sessions = sessions
        self._runtime = runtime
        self._adapter_of = adapter_of
        self._secrets = secrets
        self._now = now
        self._feed = feed

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await asyncio.gather(*(self._look(session) for session in list(self._sessions()) if self._is_silent(session)))
            except Exception:  # a screen that cannot be read is no reason to stop watching
                log.exception("dialogs not looked for", next_look_s=EVERY_S)

    def _is_silent(self, session: Session) -> bool:
        launch = session.launch
        if session.spec.runtime is not RuntimeKind.TMUX or session.state is not State.RUNNING or launch is None:
            return False
        up_s = self._now() - launch.started_at if launch.started_at is not None else 0.0
        silent = not session.doing.started and YOUNG_S <= up_s < OLD_S
        return (silent or bool(_standing(session))) and bool(self._adapter_of(session.spec.agent).dialogs)

    async def _look(self, session: Session) -> None:
        launch = session.launch
        assert launch is not None
        call = self._runtime.commands_to(launch)
        screen = await keyboard.read_visible(call, launch.pane) if call is not None and launch.pane is not None else None
        if screen is None:
            return  # nobody knows: it is asked again
        text = plain(decode(screen))
        found = find_dialog(self._adapter_of(session.spec.agent).dialogs, text)
        standing = _standing(session)
        gone = [Said(What.ANSWERED, id=known) for known in standing if found is None or known != _id(found)]
        new = [] if found is None or _id(found) in standing else [self._asked(launch, found, text)]
        if gone or new:
            self._feed(Heard(launch.id, (*gone, *new), "screen"))

    def _asked(self, launch: Launch, dialog: Dialog, text: str) -> Said:
        """Return the question, with what stands around its sign on the screen."""
        at = text.find(dialog.signs[0])
        words = one_line(self._secrets.redactor(launch.session_id).text(text[at : at + 2 * SHOWN_CHARS]))[:SHOWN_CHARS]
        return Said(What.ASKED, id=_id(dialog), name=f"dialog {dialog.name}: {words}")


def find_dialog(dialogs: Iterable[Dialog], text: str) -> Dialog | None:
    """Return the dialog that stands on a screen."""
    return next((dialog for dialog in dialogs if all(sign in text for sign in dialog.signs)), None)


def _id(dialog: Dialog) -> str:
    return f"dialog-{dialog.name}"


def _standing(session: Session) -> list[str]:
    return [one.id for one in session.doing.asked if one.id.startswith("dialog-")]
