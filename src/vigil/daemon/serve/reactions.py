"""Reactions: carries out an incident's reaction within its time, and feeds the outcome.

A prompt goes the way of every prompt (`prompts`): into no dialog, no shell and no dead pane, and never twice."""

from __future__ import annotations

from collections.abc import Callable

from vigil.core.effects import React
from vigil.core.events import Event, ReactionEnded
from vigil.core.model.incident import PROMPT, ReactionOutcome
from vigil.daemon.serve.prompts import Sending
from vigil.errors import VigilError
from vigil.hands import Hangs
from vigil.notify import ExecRoute
from vigil.notify.message import reaction_of
from vigil.threads import REACTIONS, in_thread

RUN_S = 60.0
OUTCOMES = {
    "submitted": ReactionOutcome.DONE,
    "unsubmitted": ReactionOutcome.FAILED,
    "refused": ReactionOutcome.REFUSED,
}


class Reactor:
    def __init__(self, sending: Sending, feed: Callable[[Event], None]) -> None:
        self._sending = sending
        self._feed = feed

    async def react(self, effect: React) -> None:
        outcome, why = await (self._prompt(effect) if effect.do == PROMPT else self._run(effect))
        self._feed(ReactionEnded(effect.incident.id, effect.number, outcome, why))

    async def _prompt(self, effect: React) -> tuple[ReactionOutcome, str]:
        assert effect.incident.session_id is not None
        try:
            sent = await self._sending.send(effect.incident.session_id, effect.text, 0.0, "reaction")
        except VigilError as error:
            return ReactionOutcome.FAILED, str(error)
        return OUTCOMES.get(sent.outcome, ReactionOutcome.UNKNOWN), sent.why

    async def _run(self, effect: React) -> tuple[ReactionOutcome, str]:
        route = ExecRoute(effect.command, RUN_S)
        try:
            ended = await in_thread(REACTIONS, route.deliver, reaction_of(effect.incident, effect.number))
        except Hangs as error:
            return ReactionOutcome.UNKNOWN, str(error)
        failed = ReactionOutcome.UNKNOWN if ended.unsure else ReactionOutcome.FAILED
        return ReactionOutcome.DONE if ended.ok else failed, ended.why
