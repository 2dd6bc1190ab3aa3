"""Sweeps: the caller gets the core's judgement, then the outcome of each removal, as futures."""

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
    """The judgement on one session or stray, and its outcome; kept ones have none."""

    verdict: ReapVerdict
    outcome: ReapOutcome | None = None
    why: str = ""


class SweepReport:
    """One sweep: its judgement, once durable, and a future for each that is to go."""

    def __init__(self) -> None:
        self.verdicts: tuple[ReapVerdict, ...] = ()
        self._ended: dict[str, asyncio.Future[ReapEnded]] = {}

    def judged(self, verdicts: tuple[ReapVerdict, ...]) -> None:
        going = [verdict.launch_id for verdict in verdicts if verdict.action is not ReapAction.KEEP]
        loop = asyncio.get_running_loop()
        self.verdicts, self._ended = verdicts, {launch_id: loop.create_future() for launch_id in going}

    def ended(self, effect: ReapEnded) -> None:
        """Take in one outcome; the first counts."""
        future = self._ended.get(effect.launch_id)
        if future is not None and not future.done():
            future.set_result(effect)

    async def outcomes(self, within_s: float) -> list[Reaped]:
        """Return the outcome of each; what takes longer is unknown."""
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
        """Collect a sweep's news inside this block; what comes later has no listener."""
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
