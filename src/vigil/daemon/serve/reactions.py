"""The reactor: carries out what is to be done about an incident, within its time, and says what became of it.

A prompt goes the way of every prompt (daemon/serve/prompts.py): into no dialog, no shell and no dead pane, and never twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from vigil.core.effects import React
from vigil.core.events import Event, ReactionEnded
from vigil.core.model.incident import PROMPT
from vigil.daemon.serve.prompts import Sending
from vigil.errors import VigilError
from vigil.notify import ExecRoute
from vigil.notify.message import reaction_of

RUN_S = 60.0
OUTCOMES = {"submitted": "done", "unsubmitted": "failed", "refused": "refused"}


class Reactor:
    """What reactions need of the daemon."""

    def __init__(self, sending: Sending, feed: Callable[[Event], None]) -> None:
        self._sending = sending
        self._feed = feed

    async def react(self, effect: React) -> None:
        """Do it, and say what became of it."""
        outcome, why = await (self._prompt(effect) if effect.do == PROMPT else self._run(effect))
        self._feed(ReactionEnded(effect.incident.id, effect.number, outcome, why))

    async def _prompt(self, effect: React) -> tuple[str, str]:
        assert effect.incident.session_id is not None
        try:
            sent = await self._sending.send(effect.incident.session_id, effect.text, 0.0, "reaction")
        except VigilError as error:
            return "failed", str(error)
        return OUTCOMES.get(sent.outcome, "unknown"), sent.why

    async def _run(self, effect: React) -> tuple[str, str]:
        route = ExecRoute(effect.command, RUN_S)
        ended = await asyncio.to_thread(route.deliver, reaction_of(effect.incident, effect.number))
        return "done" if ended.ok else "unknown" if ended.unsure else "failed", ended.why
