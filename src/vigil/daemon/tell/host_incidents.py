"""Host incidents: what is wrong with Vigil's own parts, told at once and recorded after."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from vigil.core.events import Condition
from vigil.core.model.incident import Incident, IncidentKind
from vigil.core.rules.incident import incident_of, opened
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.inbox import Inbox
from vigil.daemon.base.log import log
from vigil.daemon.tell.clock import Heartbeat
from vigil.home import Home
from vigil.keeper.protocol import ExitWord
from vigil.keeper.records import exit_path
from vigil.store.store import Store

OF_ONE_LIFE = (  # each daemon sees its own
    IncidentKind.KEEPER_LOST,
    IncidentKind.UNHEALTHY_PROBER,
    IncidentKind.LATE_DAEMON,
    IncidentKind.EXHAUSTED,
)
KEEPER_TROUBLES = {
    "keeper.lost": "is gone",
    "keeper.wedged": "does not answer",
    "keeper.unreachable": "cannot be reached: {why}",
}
KEEPER_IS_WELL = ("keeper.answers", "keeper.started")
STEADY_S = 2.0  # a host's trouble must be gone so long before it is over; a short one is told all the same


class HostIncidents:
    """Host incidents, of no session; any thread opens and resolves them."""

    def __init__(self, clock: Clock, inbox: Inbox, heartbeat: Heartbeat, tell: Callable[[Incident], None]) -> None:
        self._clock = clock
        self._inbox = inbox
        self._heartbeat = heartbeat
        self._tell = tell
        self._causes: dict[IncidentKind, set[str]] = {}
        self._last: dict[str, Incident] = {}  # by key: the newest incident

    def take(self, incident: Incident) -> None:
        """Remember the newest host incident of each kind; those of sessions are not ours."""
        last = self._last.get(incident.key)
        if incident.session_id is None and (last is None or last.id == incident.id or incident.opened_at >= last.opened_at):
            self._last[incident.key] = incident

    def report(self, kind: IncidentKind, why: str, cause: str = "") -> None:
        """Open a host incident at once, recorded after: callers may not wait for the store."""
        self._causes.setdefault(kind, set()).add(cause)
        self._heartbeat.cancel(_over_key(kind, cause))
        fresh = incident_of(kind, None, why, self._clock.now())
        last = self._last.get(fresh.key)
        if last is None or last.resolved_at is not None:  # else the open one takes it in
            incident = opened(fresh, last)
            self.take(incident)
            self._tell(incident)
        self._inbox.feed_from_thread(Condition(kind, True, why, fresh.opened_at))

    def over(self, kind: IncidentKind, why: str, cause: str = "") -> None:
        """Resolve a host incident, unless it has another cause that lasts."""
        self._causes.setdefault(kind, set()).discard(cause)
        if not self._causes[kind]:
            self._inbox.feed_from_thread(Condition(kind, False, why, self._clock.now()))

    def over_soon(self, kind: IncidentKind, why: str, cause: str = "") -> None:
        """Resolve a host incident once its cause has been gone for a while."""
        over_at = self._heartbeat.monotonic() + STEADY_S
        self._heartbeat.at(_over_key(kind, cause), over_at, lambda: self.over(kind, why, cause))

    def stood_still(self, late_s: float) -> None:
        """Open a host incident: the daemon was stopped, or the machine is too busy."""
        if "loop" not in self._causes.get(IncidentKind.LATE_DAEMON, ()):  # else the clock apart ran, and has said so
            self.report(IncidentKind.LATE_DAEMON, f"the daemon stood still for {late_s:.1f} s", "still")
            self.over_soon(IncidentKind.LATE_DAEMON, f"the daemon runs again; it stood still for {late_s:.1f} s", "still")

    def blocked(self, so_far_s: float, where: str) -> None:
        """Open a host incident: the event loop no longer beats, as the heartbeat's thread sees."""
        self.report(IncidentKind.LATE_DAEMON, f"the event loop has stood still for {so_far_s:.1f} s", "loop")
        words = {"so_far_s": round(so_far_s, 1), "where": where.replace("\n", " < ")}
        # Not here: the log's disk may be what hangs, and this is the clock's own thread.
        threading.Thread(target=log.error, args=("the event loop is blocked",), kwargs=words, daemon=True).start()

    def unblocked(self, lasted_s: float) -> None:
        self.over_soon(IncidentKind.LATE_DAEMON, f"the event loop runs again; it stood still for {lasted_s:.1f} s", "loop")


def _over_key(kind: IncidentKind, cause: str) -> str:
    return f"over {kind} {cause}"


class Troubles:
    """Opens and resolves host incidents of a daemon's own keeper, prober and store."""

    def __init__(self, home: Home, store: Store, host: HostIncidents, note: Callable[[str, dict[str, Any]], None]) -> None:
        self._home = home
        self._store = store
        self._host = host
        self._note = note
        self._begun_anew = 0
        self._store_lost = False
        self._short: set[str] = set()  # for want of what the host is told as exhausted
        self._unrecorded: set[str] = set()  # records that the keeper still owes

    def begin_anew(self, keeper_hangs: bool) -> None:
        """Resolve the host incidents that only the daemon before us had."""
        for kind in OF_ONE_LIFE:
            if kind is not IncidentKind.KEEPER_LOST or not keeper_hangs:
                self._host.over(kind, "a new daemon has started, and all is well")

    def keeper_changed(self, kind: str, data: dict[str, Any]) -> None:
        """Open the host incident of a keeper that is gone or hangs, or resolve it."""
        self._note(kind, data)
        if words := keeper_trouble(kind, data):
            self._host.report(IncidentKind.KEEPER_LOST, words)
        elif kind in KEEPER_IS_WELL:
            self._host.over_soon(IncidentKind.KEEPER_LOST, f"a keeper answers (pid {data.get('pid')})")

    def prober_changed(self, well: bool, why: str) -> None:
        """Open the host incident of probes that fail, or resolve it."""
        (self._host.over if well else self._host.report)(IncidentKind.UNHEALTHY_PROBER, why)

    def store_changed(self, slow: bool) -> None:
        """Open the host incident of a store that takes long, or resolve it."""
        if slow:
            words = "the store takes long to write; what happens is not recorded yet"
            self._host.report(IncidentKind.LATE_DAEMON, words, "store")
        else:
            self._host.over(IncidentKind.LATE_DAEMON, "the store writes again", "store")

    def store_refused(self, why: str | None) -> None:
        """Open the host incident of a store that takes no writes, or resolve it."""
        self._exhausted("store", why and f"the store cannot be written ({why}): what happens is not recorded yet")

    def launch_changed(self, why: str | None) -> None:
        """Open the host incident of launches that the host has no room for, or resolve it."""
        self._exhausted("launch", why and f"the host could not make a launch ({why}): it is tried again, and charged to nobody")

    def bundle_changed(self, why: str | None) -> None:
        """Open the host incident of deaths whose bundle or line was not written, or resolve it."""
        self._exhausted("deaths", why and f"the evidence of deaths cannot be written ({why}): it is tried again")

    def heard_of_record(self, folder: str, word: ExitWord) -> None:
        """Open a host incident if the keeper could not record an end; the keeper tries again."""
        if word.unrecorded:
            self._unrecorded.add(exit_path(folder, word.role))
            self._note("keeper.unrecorded", {"launch": word.launch, "role": word.role, "why": word.unrecorded})
            words = f"the keeper cannot record ends ({word.unrecorded}): it holds them in memory, and tries again"
            self._exhausted("keeper", words)

    def check_records(self) -> None:
        """Look whether the keeper has recorded what it could not, and resolve that host incident."""
        if self._unrecorded:
            self._unrecorded = {path for path in self._unrecorded if _is_missing(path)}
            if not self._unrecorded:
                self._exhausted("keeper", None)

    def _exhausted(self, cause: str, words: str | None) -> None:
        if words:
            self._short.add(cause)
            self._host.report(IncidentKind.EXHAUSTED, words, cause)
        elif cause in self._short:
            self._short.discard(cause)
            self._host.over_soon(IncidentKind.EXHAUSTED, "the host has room again, and all is recorded", cause)

    def check_store(self) -> None:
        """Look for a lost database, have it put back, and open a host incident once."""
        lost, before = self._store.is_lost(), self._store_lost
        self._store_lost = lost
        if lost and not before:
            self._note("store.lost", {"file": str(self._home.database)})
        if self._store.begun_anew != self._begun_anew:
            self._begun_anew = self._store.begun_anew
            aside = self._store.aside
            kept = "" if aside is None else f", and what lay in its place is {aside} now"
            words = f"{self._home.database} was removed or replaced while the daemon ran: it was put back{kept}"
            self._host.report(IncidentKind.STORE_LOST, words)


def keeper_trouble(kind: str, data: dict[str, Any]) -> str:
    """Return what is wrong with the host's keeper, by a change of the line to it; nothing if it is well."""
    words = KEEPER_TROUBLES.get(kind, "").format(why=data.get("why"))
    return f"the keeper (pid {data.get('pid')}) {words}" if words else ""


def _is_missing(path: str) -> bool:
    """Say whether a host still owes a record: its launch's folder is there without it."""
    return os.path.isdir(os.path.dirname(path)) and not os.path.isfile(path)
