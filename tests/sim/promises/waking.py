"""How launches are made: with their session's own conversation or with a new one, and never two agents in one (DESIGN 4.6)."""

from __future__ import annotations

from tests.sim.promises.base import Promise
from vigil.core.effects import Effect, Persist, Spawn
from vigil.core.events import Asked, Ended, Event
from vigil.core.model.conversation import Kept
from vigil.core.model.death import Cause
from vigil.core.model.launch import Mode
from vigil.core.model.restart import After
from vigil.core.model.session import ALIVE, Session, State

TO_BLAME = frozenset({Cause.CRASH, Cause.EARLY_EXIT, Cause.UNOBSERVED})


class Conversations(Promise):
    """A conversation is gone on with unless it may have broken its agent; the decision is durable first; it has one owner.

    What a person stopped, or is stopping, is not woken.
    """

    name = "wake"

    def decided(self, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, Asked) and event.verb == "wake":
            self._check_stopped(event.session_id)
        changes = [effect for effect in effects if isinstance(effect, Persist)]
        logged = {entry.session_id for change in changes for entry in change.log if entry.kind == "session.wake"}
        for spawn in (effect for effect in effects if isinstance(effect, Spawn)):
            before = self.world.daemon.was(spawn.session.id)
            if before is not None and before.launch is not None and before.launch.id == spawn.launch.id:
                continue  # it was decided, and durable, before another daemon ordered it
            decided = spawn.session.id in logged or (before is not None and before.waking is not None)
            self.demand(decided, f"{spawn.session.name} is launched ({spawn.launch.mode}), and nobody said why so")
            if before is not None and before.launch is not None:
                self._check(before, spawn, event)

    def _check_stopped(self, session_id: str) -> None:
        before, after = self.world.daemon.was(session_id), self.world.daemon.known.get(session_id)
        if before is not None and after is not None and (before.state is State.STOPPED or before.after is After.STOP):
            stays = (after.state, after.after) == (before.state, before.after)
            self.demand(stays, f"{before.name} is woken, and somebody stopped it")

    def _check(self, before: Session, spawn: Spawn, event: Event) -> None:
        launch, death = spawn.launch, before.last_death
        assert before.launch is not None
        told = f"{before.name} is launched ({launch.mode}: {launch.woken_for})"
        cause = death.cause if death is not None and death.launch_id == before.launch.id else None
        transcript = event.transcript if isinstance(event, Ended) and event.transcript is not None else before.transcript
        there = transcript is not None and transcript.kept is Kept.THERE and transcript.conversation == before.conversation
        decided = before.waking  # before its last launch was over, maybe: then what was there is read anew
        if launch.mode is Mode.RESUME:
            self.demand(decided is None or decided.mode is Mode.RESUME, f"{told}, and {decided} was decided")
            self.demand(launch.conversation not in spawn.session.quarantined, f"{told} into what was set aside just now")
            self.demand(launch.conversation == before.conversation != "", f"{told} into {launch.conversation}, not its own")
            self.demand(there and launch.conversation not in before.quarantined, f"{told} into what is not there")
            self.demand(cause not in TO_BLAME, f"{told} after {cause}")
            self.demand(not self._others_in(before, launch.conversation), f"{told} into a conversation of another")
        elif decided is not None and decided.mode is Mode.FRESH:
            self.demand(launch.woken_for == decided.cause, f"{told}, and {decided} was decided")
        elif cause is not None and cause not in TO_BLAME and cause is not Cause.LAUNCH_FAILED:
            free = (
                there
                and before.conversation not in spawn.session.quarantined
                and not self._others_in(before, before.conversation)
            )
            self.demand(not free, f"{told} after {cause}, and left its conversation")

    def _others_in(self, session: Session, conversation: str) -> list[str]:
        return [
            other.name
            for other in self.world.daemon.known.values()
            if other.id != session.id and other.conversation == conversation and other.state in ALIVE - {State.STARTING}
        ]
