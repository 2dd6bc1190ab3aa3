"""The escalator: hands each notice to its route at its moment, in the heartbeat's thread; waits for no loop or store (P6).

It remembers what it handed out, so an incident whose records are behind is not told twice (P12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from heapq import heapify, heappop, heappush

from vigil.core.model.incident import Incident, Notice, NoticeState, Telling
from vigil.core.rules.escalation import Due, due_notices, next_at
from vigil.daemon.tell.clock import Heartbeat
from vigil.daemon.tell.known import Known, KnownIncidents

KEY = "escalator"
# The monotonic clock stands still during a suspend while incidents age: so no alarm is set further ahead.
RECHECK_S = 0.5
RETRY_S = 10.0
CROWDED = 1000


class Escalator:
    """The escalator: hands each incident's notices to their routes when they are due."""

    def __init__(
        self, known: KnownIncidents, heartbeat: Heartbeat, now: Callable[[], float], hand: Callable[[Due], None]
    ) -> None:
        self._known = known
        self._lock = known.lock
        self._heartbeat = heartbeat
        self._now = now
        self._hand = hand  # called in the heartbeat's thread, and never under the lock
        self._telling = Telling()
        self._coming: list[tuple[float, str]] = []  # a heap of moments and incidents; a changed moment is in it twice

    def use(self, telling: Telling) -> None:
        """Have the escalator use these ladders and quiet hours from now on."""
        with self._lock:
            self._telling = telling
            for known in self._known.all():
                self._plan(known)
            self._arm()

    def tell(self, incident: Incident) -> None:
        """Have the escalator take an incident's newest version, in any state; returns at once."""
        with self._lock:
            known = self._known.take(incident)
            if known is None:
                return
            self._plan(known)
            if known.next_at is not None and known.next_at == self._earliest():
                self._arm()  # else the set alarm comes first, or comes for nothing

    def forget(self, incident_id: str) -> None:
        with self._lock:
            self._known.forget(incident_id)

    def _fire(self) -> None:
        """Hand the escalator's due notices to their routes; a refused one is tried again."""
        with self._lock:
            now = self._now()
            woken = self._pop_due(now)
            due = [notice for known in woken for notice in self._take_due(known, now)]
        refused = [(notice, why) for notice in due if (why := self._hand_out(notice)) is not None]
        with self._lock:
            for notice, _ in refused:
                self._note(notice, NoticeState.FAILED, self._now() + RETRY_S)
            for known in woken:
                if self._known.get(known.incident.id) is known:
                    self._plan(known)
            self._arm()
        if refused:
            notice, error = refused[0]
            raise RuntimeError(f"{len(refused)} of {len(due)} notices refused, to try again; {notice.notice_id}") from error

    def _pop_due(self, now: float) -> list[Known]:
        woken = []
        while (at := self._earliest()) is not None and at <= now:
            known = self._known.get(heappop(self._coming)[1])
            assert known is not None  # or its moment would not hold
            known.next_at = None
            woken.append(known)
        return woken

    def _earliest(self) -> float | None:
        """Return the escalator's earliest moment that still holds, dropping those that changed."""
        while self._coming:
            at, incident_id = self._coming[0]
            known = self._known.get(incident_id)
            if known is not None and known.next_at == at:
                return at
            heappop(self._coming)
        return None

    def _take_due(self, known: Known, now: float) -> list[Due]:
        known.handed = {
            id_: notice for id_, notice in known.handed.items() if notice.state is NoticeState.SENT or notice.at > now
        }
        taken = [replace(notice, incident=known.incident) for notice in due_notices(known.seen(), self._telling, now)]
        for notice in taken:
            self._note(notice, NoticeState.SENT, now)
        return taken

    def _note(self, notice: Due, state: NoticeState, at: float) -> None:
        known = self._known.get(notice.incident.id)
        if known is not None:
            attempts = 1 if notice.before is None else notice.before.attempts + 1
            known.handed[notice.notice_id] = Notice(
                notice.notice_id,
                notice.route,
                state,
                at,
                event=notice.event,
                attempts=attempts,
                rung=notice.rung,
                over=notice.incident.resolved_at is not None,
            )

    def _hand_out(self, notice: Due) -> BaseException | None:
        try:
            self._hand(notice)
        except BaseException as error:  # also a cancelled future: the next notice must go out
            return error
        return None

    def _plan(self, known: Known) -> None:
        """Plan the escalator's next notice of an incident; a resolved one without any is over."""
        retries = [notice.at for notice in known.handed.values() if notice.state is NoticeState.FAILED]
        coming = next_at(known.seen(), self._telling, self._now())
        moment = min([*retries, *([] if coming is None else [coming])], default=None)
        if moment is not None and moment != known.next_at:
            heappush(self._coming, (moment, known.incident.id))
            if len(self._coming) > CROWDED + 2 * len(self._known.all()):
                self._clear_out(known, moment)
        known.next_at = moment
        if moment is None and known.incident.resolved_at is not None:
            self._known.is_over(known)

    def _clear_out(self, known: Known, moment: float) -> None:
        """Drop the escalator's moments that changed: those far ahead would stay for hours."""
        holding = [(one.next_at, one.incident.id) for one in self._known.all() if one.next_at is not None and one is not known]
        self._coming = [*holding, (moment, known.incident.id)]
        heapify(self._coming)

    def _arm(self) -> None:
        at = self._earliest()
        if at is None:
            self._heartbeat.cancel(KEY)
        else:
            self._heartbeat.at(KEY, self._heartbeat.monotonic() + min(at - self._now(), RECHECK_S), self._fire)
