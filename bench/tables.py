"""Tables: rows become Markdown, which is printed and put between its marks in docs/performance.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
Column = tuple[str, Callable[[Row], str]]


def number(key: str, digits: int = 1) -> Callable[[Row], str]:
    """Return what shows one number of a row."""

    def show(row: Row) -> str:
        value = row[key]
        return "-" if value is None else f"{value:,.{digits}f}"

    return show


def text(key: str) -> Callable[[Row], str]:
    """Return what shows one word of a row."""
    return lambda row: str(row[key])


COLUMNS: dict[str, tuple[Column, ...]] = {
    "detection": (
        ("system", text("label")),
        ("sessions", text("count")),
        ("kills", text("kills")),
        ("p50 ms", number("p50_ms", 2)),
        ("p99 ms", number("p99_ms", 2)),
        ("max ms", number("max_ms", 2)),
        ("never told", text("never_told")),
        ("machine busy before", lambda row: f"{row['busy_before']:.0%}"),
    ),
    "idle": (
        ("system", text("label")),
        ("sessions", text("count")),
        ("CPU ms a minute", number("cpu_ms_per_minute", 0)),
        ("wake-ups a second", number("wakeups_per_s")),
        ("RSS MB", number("rss_mb")),
        ("PSS MB", number("pss_mb")),
        ("processes", text("processes")),
        ("started a minute", number("started_per_minute", 0)),
    ),
    "per-session": (
        ("sessions", text("count")),
        ("tmux server MB", number("server_mb", 2)),
        ("shim MB", number("shim_mb", 2)),
        ("both MB", number("both_mb", 2)),
        ("worst session MB", number("max_mb", 2)),
    ),
    "listing": (
        ("command", text("label")),
        ("sessions", text("count")),
        ("runs", text("runs")),
        ("median ms", number("p50_ms", 0)),
        ("max ms", number("max_ms", 0)),
    ),
    "adoption": (
        ("system", text("label")),
        ("sessions", text("count")),
        ("runs", text("runs")),
        ("shown in `vigil ls`, median s", number("shown_s", 2)),
        ("max s", number("shown_max_s", 2)),
        ("daemon ready, median s", number("ready_s", 2)),
        ("max s", number("ready_max_s", 2)),
    ),
    "sweep": (
        ("system", text("label")),
        ("sessions", text("count")),
        ("passes", text("passes")),
        ("daemon's CPU ms a pass", number("cpu_ms", 0)),
        ("until all who answer were read, median ms", number("well_ms", 0)),
    ),
    "bringup": (
        ("system", text("label")),
        ("replicas", text("count")),
        ("bring-ups", text("runs")),
        ("a second, median", number("per_s")),
        ("slowest to fastest", lambda row: f"{row['slowest_per_s']:.1f} to {row['fastest_per_s']:.1f}"),
        ("of raw tmux, 4 at once", lambda row: f"{row['of_raw']:.0%}"),
        ("first declared after s", number("declared_s", 2)),
        ("a second from then on", number("launching_per_s")),
        ("daemon's answer p95 ms", number("answer_p95_ms", 0)),
        ("max ms", number("answer_max_ms", 0)),
        ("`vigil ls` p95 ms", number("ls_p95_ms", 0)),
        ("max ms", number("ls_max_ms", 0)),
        ("a second beside it", number("listed_per_s")),
    ),
    "plan": (
        ("what there is", text("label")),
        ("replicas", text("count")),
        ("runs", text("runs")),
        ("median ms", number("p50_ms", 2)),
        ("max ms", number("max_ms", 2)),
    ),
    "diagnosis": (
        ("what is read", text("label")),
        ("runs", text("runs")),
        ("median ms", number("p50_ms", 2)),
        ("max ms", number("max_ms", 2)),
        ("CPU ms, median", number("cpu_ms", 2)),
        ("of a core at its cadence, %", number("core_percent", 2)),
    ),
    "ingest": (
        ("what", text("label")),
        ("median ms", number("p50_ms", 3)),
        ("max ms", number("max_ms", 3)),
        ("a second, one core", number("per_s", 0)),
    ),
    "targets": (
        ("target", text("what")),
        ("limit", text("limit")),
        ("measured", text("value")),
        ("met", text("met")),
    ),
    "machine": (
        ("date", text("date")),
        ("run", text("kind")),
        ("cores", text("cores")),
        ("memory", lambda row: f"{row['memory_gb']} GB"),
        ("Linux", text("kernel")),
        ("filesystem", text("filesystem")),
        ("fdatasync p50 / p99", lambda row: f"{row['fdatasync_p50_ms']:.2f} / {row['fdatasync_p99_ms']:.2f} ms"),
        ("Python", text("python")),
        ("tmux", text("tmux")),
        ("Vigil", text("vigil")),
        ("supervisord", text("supervisor")),
        ("circus", text("circus")),
    ),
}


def format_table(name: str, rows: Sequence[Row]) -> str:
    """Return rows as a Markdown table."""
    columns = COLUMNS[name]
    lines = ["| " + " | ".join(title for title, _ in columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(show(row) for _, show in columns) + " |" for row in rows]
    return "\n".join(lines)


def rewrite(path: Path, tables: Mapping[str, str]) -> None:
    """Put each table between its marks; a page without them is left as it is, loudly."""
    page = path.read_text("utf-8")
    for name, table in tables.items():
        begin, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
        before, found_begin, rest = page.partition(begin)
        _, found_end, after = rest.partition(end)
        if not (found_begin and found_end):
            raise RuntimeError(f"{path.name} has no place for the table {name}: it needs {begin} and {end}")
        page = f"{before}{begin}\n{table}\n{end}{after}"
    path.write_text(page, "utf-8")
