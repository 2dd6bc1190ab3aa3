"""Purging: removes the files of a removed session, by the exact names of its launches."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from vigil.core.effects import Purge
from vigil.core.model.death import IntentVerb
from vigil.core.model.session import Session
from vigil.daemon.act.launches import Custody
from vigil.daemon.base.environments import Environments
from vigil.home import Home
from vigil.observe.spool import forget_hooks
from vigil.threads import FOLDERS, in_thread

PARKING = frozenset({IntentVerb.HIBERNATE, IntentVerb.REAP})
REMEMBERED = 1000  # removed sessions; the caller reads its answer within a minute
Purged = tuple[list[str], list[str]]


@dataclass(eq=False, repr=False)
class Purging:
    _home: Home
    _custody: Custody
    _environments: Environments
    _purge_bundles: Callable[[Session], Awaitable[list[str]]]
    _purge_messages: Callable[[Session], list[str]]
    _forget: Callable[[str], None]  # what the daemon has in memory of a session
    # Kept after reading: two callers may have asked.
    _purged: dict[str, asyncio.Future[Purged]] = field(default_factory=dict, init=False)

    async def purged(self, session_id: str, within_s: float) -> Purged | None:
        """Return what a purge removed, and what would not go; None if that takes longer."""
        future = self._outcome(session_id)
        await asyncio.wait((future,), timeout=within_s)
        return future.result() if future.done() else None

    def _outcome(self, session_id: str) -> asyncio.Future[Purged]:
        if session_id not in self._purged:
            self._purged[session_id] = asyncio.get_running_loop().create_future()
        while len(self._purged) > REMEMBERED:
            del self._purged[next(iter(self._purged))]
        return self._purged[session_id]

    async def purge(self, effect: Purge) -> None:
        """Purge a removed session's files, and list them; deaths and events stay under its id."""
        session = effect.session
        gone = [f"session {session.name}"]
        gone += ["park mark"] if _was_parked(session) else []
        launch_ids = [f"{session.id}-{number}" for number in range(1, session.launches + 1)]
        left: list[str] = []
        self._forget(session.id)
        self._custody.let_go(launch_ids)
        for launch_id in await in_thread(FOLDERS, self._with_folders, launch_ids):
            went = await self._custody.remove(launch_id)
            (gone if went else left).append(f"launch {launch_id}" if went else str(self._home.launch(launch_id)))
        try:
            hooks = await in_thread(FOLDERS, forget_hooks, self._home.spool, frozenset(launch_ids))
            gone += [f"{hooks} hook events that nobody had read"] if hooks else []
            gone += [f"bundle {death_id}" for death_id in await self._purge_bundles(session)]
            gone += await in_thread(FOLDERS, self._purge_messages, session)
            gone += ["environment"] if self._environments.forget(session.id) else []
        except OSError as error:
            left.append(f"{error.filename or 'files'} ({error.strerror})")
        outcome = self._outcome(session.id)
        if not outcome.done():
            outcome.set_result((gone, [f"{one}, which could not be removed" for one in left]))

    def _with_folders(self, launch_ids: list[str]) -> list[str]:
        return [launch_id for launch_id in launch_ids if os.path.lexists(self._home.launch(launch_id))]


def _was_parked(session: Session) -> bool:
    """Say whether the purged session's last launch was parked, to be woken."""
    launch, death = session.launch, session.last_death
    if launch is None or death is None or death.launch_id != launch.id or death.intent is None:
        return False
    return death.intent.verb in PARKING
