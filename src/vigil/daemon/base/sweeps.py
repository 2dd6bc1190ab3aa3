"""Sweeps of the reaper: the caller gets the core's judgement, then the outcome of each removal, as futures."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from vigil.core.effects import Judged, ReapEnded
from vigil.core.model.sighting import ReapAction, ReapOutcome, ReapVerdict

TAKES_LONG = "it takes long"


@dataclass(frozen=True, slots=True)
class Reaped:
    """A sweep's judgement on one session or stray, and its removal's outcome, if any."""

    verdict: ReapVerdict
    outcome: ReapOutcome | None = None
    why: str = ""


class SweepReport:
    """The report of one reaper's sweep: its durable judgement, and a future for each removal."""

    def __init__(self) -> None:
        self.verdicts: tuple[ReapVerdict, ...] = ()
        self._ended: dict[str, asyncio.Future[ReapEnded]] = {}

    def judged(self, verdicts: tuple[ReapVerdict, ...]) -> None:
        going = [verdict.launch_id for verdict in verdicts if verdict.action is not ReapAction.KEEP]
        loop = asyncio.get_running_loop()
        self.verdicts, self._ended = verdicts, {launch_id: loop.create_future() for launch_id in going}

    def ended(self, effect: ReapEnded) -> None:
        """Take the outcome of one removal into the sweep's report; the first counts."""
        future = self._ended.get(effect.launch_id)
        if future is not None and not future.done():
            future.set_result(effect)

    async def outcomes(self, within_s: float) -> list[Reaped]:
        """Return the outcome of each removal of a sweep; what takes longer is unknown."""
        if self._ended:
            await asyncio.wait(self._ended.values(), timeout=within_s)
        return [self._reaped(verdict) for verdict in self.verdicts]

    def _reaped(self, verdict: ReapVerdict) -> Reaped:
        future = self._ended.get(verdict.launch_id)
        if future is None:
            return Reaped(verdict)
        if not future.done():
            return Reaped(verdict, ReapOutcome.UNKNOWN, TAKES_LONG)
        return Reaped(verdict, future.result().outcome, future.result().why)


class Sweeps:
    def __init__(self) -> None:
        self._under_way: dict[str, SweepReport] = {}

    @contextmanager
    def follow(self, ticket: str) -> Iterator[SweepReport]:
        """Report one of the reaper's sweeps inside this block; what comes later has no listener."""
        report = self._under_way[ticket] = SweepReport()
        try:
            yield report
        finally:
            del self._under_way[ticket]

    def judged(self, effect: Judged) -> None:
        if (report := self._under_way.get(effect.ticket)) is not None:
            report.judged(effect.verdicts)

    def ended(self, effect: ReapEnded) -> None:
        if (report := self._under_way.get(effect.ticket)) is not None:
            report.ended(effect)
