"""The targets, and whether the rows of a run meet them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Target:
    """A number that must stay below its limit, or reach it, wherever it is measured."""

    what: str
    table: str
    column: str
    systems: tuple[str, ...]
    count: int | None  # None: however many
    limit: float
    unit: str
    reach: bool = False

    def is_met(self, value: float) -> bool:
        """Say whether a measured value is on the right side of the limit."""
        return value >= self.limit if self.reach else value < self.limit


BOTH = ("vigil-headless", "vigil-tmux")
TALKERS = tuple(f"lines-{agent}" for agent in ("claude", "codex", "gemini", "opencode", "pi", "qwen"))
PLANS = ("all new", "nothing to do", "all changed", "all taken out")
CPU_MS = 0.005 * 60_000  # 0.5 % of a core, as ms of a minute

TARGETS = (
    Target("death told, p50", "detection", "p50_ms", BOTH, 500, 6, "ms"),
    Target("death told, p99", "detection", "p99_ms", BOTH, 500, 30, "ms"),
    Target("CPU of daemon and keeper in an idle minute", "idle", "cpu_ms_per_minute", BOTH, 500, CPU_MS, "ms"),
    Target("memory of daemon and keeper (RSS)", "idle", "rss_mb", BOTH, 500, 100, "MB"),
    Target("processes started in an idle minute", "idle", "started_per_minute", BOTH, 500, 1, ""),
    Target("tmux server and shim of a session (PSS)", "per-session", "both_mb", ("vigil-tmux",), 500, 1.5, "MB"),
    Target("`vigil ls` with 500 sessions", "listing", "p50_ms", BOTH, 500, 150, "ms"),
    Target("CPU of a sweep over 1,000", "sweep", "cpu_ms", ("vigil-headless",), 1000, 100, "ms"),
    Target("CPU of a sweep over 200", "sweep", "cpu_ms", ("vigil-tmux",), 200, 150, "ms"),
    Target("adoption of 500 sessions", "adoption", "shown_s", BOTH, 500, 2, "s"),
    Target("bring-up of 200 replicas", "bringup", "per_s", BOTH, 200, 40, "a second", reach=True),
    Target("daemon's answer during that, longest", "bringup", "answer_max_ms", BOTH, 200, 250, "ms"),
    Target("`vigil ls` during that, longest", "bringup", "ls_max_ms", BOTH, 200, 250, "ms"),
    Target("close look at an agent with 15 children", "diagnosis", "p50_ms", ("vigil-full",), 15, 10, "ms"),
    Target(
        "CPU of a cheap pass over 500 agents with 10 children each", "diagnosis", "cpu_ms", ("vigil-cheap",), 500, 1000, "ms"
    ),
    Target("that at its cadence", "diagnosis", "core_percent", ("vigil-cheap",), 500, 2, "% of a core"),
    Target("lines of samples, to events", "ingest", "per_s", TALKERS, None, 20_000, "a second", reach=True),
    Target("transcript of 200 MB taken up", "ingest", "p50_ms", ("pickup",), 200, 100, "ms"),
    Target("hook command with a payload of 1 kB", "ingest", "p50_ms", ("hook",), 1000, 5, "ms"),
    Target("plan for 1,000 replicas in 200 roles", "plan", "p50_ms", PLANS, 1000, 20, "ms"),
)


def judge(results: Mapping[str, Rows]) -> list[dict[str, Any]]:
    """Return a line for each target and system that was measured."""
    verdicts = []
    for target in TARGETS:
        for row in results.get(target.table, ()):
            value = row.get(target.column)
            if row["system"] in target.systems and target.count in (None, row["count"]) and value is not None:
                verdicts.append(
                    {
                        "what": f"{target.what}, {row['system'].removeprefix('vigil-')}",
                        "limit": f"{'≥' if target.reach else '<'} {target.limit:g} {target.unit}".strip(),
                        "value": f"{value:.4g} {target.unit}".strip(),
                        "met": "yes" if target.is_met(value) else "**no**",
                    }
                )
    return verdicts
