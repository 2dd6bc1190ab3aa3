"""Troubles: what is wrong with Vigil's own parts, told as incidents of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vigil.core.model.incident import IncidentKind
from vigil.daemon.tell.alarms import Alarms
from vigil.home import Home
from vigil.store.store import Store

OF_ONE_LIFE = (IncidentKind.KEEPER_LOST, IncidentKind.UNHEALTHY_PROBER, IncidentKind.LATE_DAEMON)  # seen by whoever has them


class Troubles:
    """Opens and resolves what a daemon sees of its own keeper, prober and store."""

    def __init__(self, home: Home, store: Store, alarms: Alarms, note: Callable[[str, dict[str, Any]], None]) -> None:
        self._home = home
        self._store = store
        self._alarms = alarms
        self._note = note
        self._begun_anew = 0
        self._store_lost = False

    def begin_anew(self, keeper_hangs: bool) -> None:
        """Resolve what only the daemon before us had."""
        for kind in OF_ONE_LIFE:
            if kind is not IncidentKind.KEEPER_LOST or not keeper_hangs:
                self._alarms.over(kind, "a new daemon has started, and all is well")

    def keeper_changed(self, kind: str, data: dict[str, Any]) -> None:
        """The keeper is gone, hangs, answers, or refused something."""
        self._note(kind, data)
        if kind in ("keeper.wedged", "keeper.lost"):
            words = "does not answer" if kind == "keeper.wedged" else "is gone"
            self._alarms.report(IncidentKind.KEEPER_LOST, f"the keeper (pid {data.get('pid')}) {words}")
        elif kind in ("keeper.answers", "keeper.started"):
            self._alarms.over_soon(IncidentKind.KEEPER_LOST, f"a keeper answers (pid {data.get('pid')})")

    def prober_changed(self, well: bool, why: str) -> None:
        """Probing itself goes wrong, or works again."""
        (self._alarms.over if well else self._alarms.report)(IncidentKind.UNHEALTHY_PROBER, why)

    def store_changed(self, slow: bool) -> None:
        """The store takes long, or writes again."""
        if slow:
            words = "the store takes long to write; what happens is not recorded yet"
            self._alarms.report(IncidentKind.LATE_DAEMON, words, "store")
        else:
            self._alarms.over(IncidentKind.LATE_DAEMON, "the store writes again", "store")

    def check_store(self) -> None:
        """A database that was removed or replaced under us is put back by the next write, and a human is told once."""
        lost, before = self._store.is_lost(), self._store_lost
        self._store_lost = lost
        if lost and not before:
            self._note("store.lost", {"file": str(self._home.database)})
        if self._store.begun_anew != self._begun_anew:
            self._begun_anew = self._store.begun_anew
            aside = self._store.aside
            kept = "" if aside is None else f", and what lay in its place is {aside} now"
            words = f"{self._home.database} was removed or replaced while the daemon ran: it was put back{kept}"
            self._alarms.report(IncidentKind.STORE_LOST, words)
