"""What many worlds came to: one line for people."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tests.sim.run import Outcome


@dataclass
class Totals:
    """Sums over outcomes; the time is that of one core."""

    seeds: int = 0
    session_days: float = 0.0
    events: int = 0
    faults: int = 0
    deaths: int = 0
    cpu_s: float = 0.0
    failures: list[str] = field(default_factory=list)
    _began: float = field(default_factory=time.process_time)

    def add(self, outcome: Outcome) -> None:
        """Count one world that was just lived through."""
        now = time.process_time()
        self.cpu_s, self._began = self.cpu_s + now - self._began, now
        self.seeds += 1
        tally = outcome.tally
        self.session_days += tally.session_days
        self.events += tally.events
        self.faults += tally.faults
        self.deaths += tally.deaths
        if outcome.broken:
            self.failures.append(f"{outcome.words}\n  again: {outcome.command}")

    def __iadd__(self, other: Totals) -> Totals:
        self.seeds += other.seeds
        self.session_days += other.session_days
        self.events += other.events
        self.faults += other.faults
        self.deaths += other.deaths
        self.cpu_s += other.cpu_s
        self.failures += other.failures
        return self

    def line(self) -> str:
        """Return the sums in one line: the rate is simulated days of sessions for each minute of one core."""
        rate = self.session_days / self.cpu_s * 60 if self.cpu_s else 0.0
        an_hour = self.faults / (self.session_days * 24) if self.session_days else 0.0
        return (
            f"{self.seeds} seeds, {self.session_days:,.0f} session-days, {rate:,.0f} a minute; {self.events:,} events, "
            f"{self.deaths:,} deaths, {self.faults:,} faults ({an_hour:.1f} a session-hour), {len(self.failures)} failed"
        )
