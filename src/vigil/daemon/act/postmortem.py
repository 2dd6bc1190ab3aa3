"""The postmortem: after a death, the coroner writes one line in the exit log and a bundle of what is left, in two seconds.

It makes a bundle anew when a snapshot or the agent's words come late. The next daemon does what a killed one left undone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from vigil.core.effects import Amend, Examine
from vigil.core.model.death import Death
from vigil.core.model.progress import Recent
from vigil.core.model.retention import Retention
from vigil.core.model.session import Session
from vigil.core.model.speech import What
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.log import log
from vigil.daemon.base.secrets import Secrets
from vigil.errors import VigilError
from vigil.forensics import ExitLog, Shelf, assemble
from vigil.forensics.shelf import Limits
from vigil.hands import Hands, Hangs
from vigil.home import Home
from vigil.kernel import durable
from vigil.moments import rfc3339
from vigil.store.store import Store
from vigil.threads import ask

SNAPSHOT_S = 1.5  # the keeper takes it half a second after the death, or a second where many die
EVENTS = 30
UNSEEN_KEPT = 200
DO_S = 30.0
MOST_HUNG = 3
CLOSE_S = 5.0
LOGGED_KEPT = 5_000
CAUGHT_UP = 200  # newest deaths that a new daemon checks for what its predecessor left undone


class Coroner:
    def __init__(
        self,
        home: Home,
        store: Store,
        clock: Clock,
        secrets: Secrets,
        find: Callable[[str], Session | None],
        retention: Callable[[], Retention] = Retention,
        on_refused: Callable[[str | None], None] = lambda _why: None,
    ) -> None:
        self._home = home
        self._store = store
        self._clock = clock
        self._secrets = secrets
        self._find = find
        self._on_refused = on_refused  # why the disk takes no evidence; None: it does again
        self._refused: dict[str, Death] = {}  # by launch: no bundle of them was written
        self._exit_log = ExitLog(home.log / "exits.log")
        self._shelf = Shelf(home.deaths, lambda: _limits_of(retention()))
        self._snapshots: dict[str, asyncio.Event] = {}
        self._unseen: dict[str, Death] = {}  # by launch: their snapshot did not come in time
        self._amended: dict[str, Death] = {}  # by launch: more was read later
        self._logged: dict[str, None] | None = None  # the newest deaths that have their line
        self._hands = Hands("coroner", 1 + MOST_HUNG, ready=True)
        self._working = asyncio.Lock()  # one after the other, unless one hangs
        self._tasks: set[asyncio.Task[Any]] = set()

    async def examine(self, effect: Examine) -> None:
        """Do a death's postmortem: write its line, wait for the snapshot, put the bundle together."""
        death = effect.death
        taken = self._snapshots.setdefault(death.launch_id, asyncio.Event())
        await self._do(self._log, death)
        if not self._has_snapshot(death.launch_id):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(taken.wait(), SNAPSHOT_S)
            if not taken.is_set():
                _keep(self._unseen, death)
        del self._snapshots[death.launch_id]
        await self._do(self._assemble, death)

    def snapshot_taken(self, launch_id: str) -> None:
        """Take the keeper's snapshot into a death's bundle; a late one makes it anew."""
        if (taken := self._snapshots.get(launch_id)) is not None:
            taken.set()
        elif (death := self._unseen.pop(launch_id, None)) is not None:
            self._later(self._assemble, death)

    def amend(self, effect: Amend) -> None:
        """Make a death's bundle anew with words that were read later."""
        _keep(self._amended, effect.death)
        self._later(self._assemble, effect.death)

    def with_words(self, death: Death, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the last events in a death's bundle with all its agent's words by now."""
        redact = self._secrets.redactor(death.session_id).text
        known = [_as_event(replace(one, name=redact(one.name), text=redact(one.text))) for one in self._words_of(death)]
        logged = [event for event in events if event.get("seq") is not None]
        return sorted([*logged, *known], key=lambda event: str(event.get("at"))) if known else events

    async def catch_up(self) -> None:
        """Do the postmortems that the daemon before us left undone."""
        newest: list[Death] = await self._do(self._newest) or []
        for death in reversed(newest):
            await self._do(self._log, death)
            if not (self._home.deaths / death.id).exists():
                await self._do(self._assemble, death)
        await self._do(self._shelf.tidy, self._clock.now())

    async def purge(self, session: Session) -> list[str]:
        """Remove the bundles of a removed session's deaths; return their names."""
        ids = [f"d-{session.id}-{number}" for number in range(1, session.launches + 1)]
        removed: list[str] = await self._do(self._shelf.remove, ids) or []
        return removed

    def write_again(self) -> None:
        """Write what the disk refused of earlier postmortems."""
        if self._refused or self._exit_log.waiting:
            self._later(self._write_again)

    def _write_again(self) -> None:
        self._exit_log.write_again()
        for death in list(self._refused.values()):
            self._assemble(death)
        if not self._refused and not self._exit_log.waiting:
            self._on_refused(None)

    def forget(self, death_ids: Sequence[str]) -> None:
        """Remove the bundles of deaths whose records are deleted."""
        if death_ids:
            self._later(self._shelf.remove, list(death_ids))

    async def close(self) -> None:
        """End the postmortem under way, in a bounded time, and begin no other."""
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._working.acquire()
        self._hands.close()

    def _has_snapshot(self, launch_id: str) -> bool:
        """Say whether a death has a snapshot for its bundle; its server's may be older."""
        found = durable.read_json(str(self._home.launch(launch_id) / "snapshot.json"))
        return found is not None and found.get("of") != "server"

    async def _do(self, work: Callable[..., Any], *about: Any) -> Any:
        """Do a part of a postmortem; one that hangs is given up, and the next goes on."""
        async with self._working:
            try:
                return await ask(self._hands, partial(work, *about), DO_S)
            except Hangs as error:
                log.error("postmortem hangs", work=work.__name__, why=str(error))
                return None

    def _later(self, work: Callable[..., Any], *about: Any) -> None:
        """Do a part of a postmortem when its turn comes."""
        task = asyncio.create_task(self._do(work, *about))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _log(self, death: Death) -> None:
        """Write a death's line into the exit log, unless we or an earlier daemon did."""
        if self._logged is None:
            self._logged = dict.fromkeys(self._exit_log.logged_ids())
        if death.id not in self._logged:
            self._logged[death.id] = None
            self._exit_log.append(death, self._secrets.redactor(death.session_id).text)
            if self._exit_log.refused is not None:
                log.error("no line of a death", death=death.id, why=self._exit_log.refused)
                self._on_refused(self._exit_log.refused)
            if len(self._logged) > LOGGED_KEPT:
                del self._logged[next(iter(self._logged))]

    def _newest(self) -> list[Death]:
        return self._store.read_deaths(limit=CAUGHT_UP)

    def _assemble(self, death: Death) -> None:
        """Put a death's bundle together; a removed launch has no files, so no bundle."""
        folder = self._home.launch(death.launch_id)
        if not folder.exists():
            return
        try:
            assemble(
                self._home.deaths,
                folder,
                death,
                self._events_of(death),
                death.activity or None,
                self._places(death.session_id),
                self._secrets.redactor(death.session_id).text,
                self._clock.now(),
            )
            self._shelf.tidy(self._clock.now())
            self._refused.pop(death.launch_id, None)
        except (OSError, VigilError) as error:
            log.error("no bundle of a death", death=death.id, why=str(error))
            _keep(self._refused, death)
            self._on_refused(str(error))

    def _places(self, session_id: str) -> list[Path]:
        session = self._find(session_id)
        return [self._home.path, *([Path(session.spec.cwd)] if session else [])]

    def _events_of(self, death: Death) -> list[dict[str, Any]]:
        """Return the events before a death for its bundle, with its agent's words, in order."""
        found: list[tuple[float, dict[str, Any]]] = []
        for event in self._store.read_events(session_id=death.session_id, until=death.at, limit=EVENTS, newest=True):
            entry = event.entry
            if entry.data.get("death") == death.id:
                break
            data = {key: rfc3339(value) if key == "until" else value for key, value in entry.data.items()}
            found.append((entry.at, {"seq": event.seq, "at": rfc3339(entry.at), "kind": entry.kind, "data": data}))
        found += [(one.at, _as_event(one)) for one in self._words_of(death)]
        return [event for _, event in sorted(found, key=lambda pair: pair[0])]

    def _words_of(self, death: Death) -> tuple[Recent, ...]:
        """Return a dead agent's last words for its bundle, also those read later."""
        session = self._find(death.session_id)
        is_last = session is not None and session.launch is not None and session.launch.id == death.launch_id
        return session.vitals.recent if session is not None and is_last else self._amended.get(death.launch_id, death).said


def _limits_of(retention: Retention) -> Limits:
    return Limits(retention.bundles, retention.bundle_age_s, retention.bundle_bytes)


def _keep(deaths: dict[str, Death], death: Death) -> None:
    deaths[death.launch_id] = death
    while len(deaths) > UNSEEN_KEPT:
        del deaths[next(iter(deaths))]


def _as_event(one: Recent) -> dict[str, Any]:
    told = {
        "tool" if one.what in (What.TOOL_STARTED, What.TOOL_ENDED) else "name": one.name,
        "text": one.text,
        "subagent": one.subagent,
    }
    data: dict[str, Any] = {key: value for key, value in told.items() if value}
    if one.failed:
        data["failed"] = True
    if one.times > 1:
        data["times"] = one.times
    return {"seq": None, "at": rfc3339(one.at), "kind": f"agent.{one.what.value}", "data": data | {"source": one.source}}
