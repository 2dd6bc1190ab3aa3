"""The page of one death: what, when, why, how sure, on what evidence, and what Vigil did next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vigil.text import one_line
from vigil.words import few, length, some

Json = Mapping[str, Any]

LABEL = 18
TAIL = 15  # lines of its output
LINE = 400  # characters of each
BESIDE = 8
EVENT = 160
SURE = {"certain": "this is certain", "likely": "this is likely", "unknown": "nobody can say how sure"}
MEANS = {
    "finished": "it finished",
    "operator": "somebody ended it",
    "policy": "Vigil ended it, by policy",
    "unhealthy": "Vigil ended it: it was unhealthy",
    "stalled": "Vigil ended it: it was stalled",
    "launch-failed": "it never came to life",
    "early-exit": "it exited right after it was launched",
    "crash": "it crashed",
    "oom": "the kernel ended it for want of memory",
    "server-died": "its tmux server died",
    "pane-closed": "its pane was closed",
    "killed-by-unknown": "somebody outside Vigil ended it",
    "unobserved": "nobody saw it end",
    "host-rebooted": "the host was booted anew",
    "limit": "it met a usage limit",
    "auth": "it was not let in",
}


def status_of(death: Json) -> str:
    """Return how it ended, in two words."""
    if death["signal"] is not None:
        return f"signal {death['signal']}"
    return "unknown" if death["exit_code"] is None else f"exit {death['exit_code']}"


def page(death: Json) -> Iterator[str]:
    """Yield the lines of the page."""
    cause, sure = death["cause"], SURE.get(death["confidence"], death["confidence"])
    when = "was found dead" if cause == "unobserved" else "died"
    yield one_line(f"{death['session']} {when} at {death['at']}: {MEANS.get(cause, cause)}")
    yield from _row("cause", f"{cause}; {sure}")
    yield from _row("status", status_of(death) + (" (the tmux server's)" if cause == "server-died" else ""))
    up = "" if death["uptime_s"] is None else f", up {length(death['uptime_s'])}"
    yield from _row("launch", f"{death['launch']}{up}{_pids(death)}")
    yield from _row("seen by", death["observed_by"])
    yield from _row("charged", "yes" if death["charged"] else "no")
    if death["activity"]:
        yield from _row("was doing", death["activity"])
    if death["beside"]:
        yield from _row("in that second", f"others died too: {few(death['beside'], BESIDE)}")
    yield from _section("what it did", _did(death.get("summary") or {}))
    shown = [line for line in death["evidence"] if line["source"] != "others"]  # others stand above, with those that died later
    yield from _section("evidence", ((line["source"], line["text"]) for line in shown))
    yield from _section("memory", _memory(death["memory"] or {}, death["changes"] or {}))
    yield from _section("processes that outlived it", map(_process, death["survivors"]))
    full = ((disk.get("path"), (disk.get("free_bytes") or 0) // 1024) for disk in death["disk"] if disk.get("full"))
    yield from _section("disk", (("full", f"{path}: {size(kb)} free") for path, kb in full))
    yield from _section("the kernel said", (("", line) for line in death["kernel_lines"]))
    yield from _section("last events", map(_event, death["last_events"][-8:]))
    yield from _tail("last lines of stderr", death["stderr_tail"])
    yield from _tail("last lines of stdout", [] if death["stderr_tail"] else death["stdout_tail"])
    age = "" if death["pane_age_s"] is None else f", captured {death['pane_age_s']:.0f} s before its end"
    yield from _tail(f"its screen{age}", death["pane_tail"])
    yield from _section("what Vigil did next", ((step["at"], step["what"]) for step in death["next"][:6]))
    yield ""
    yield from _row("bundle", death["bundle"] or "none: it comes within 2 s, and goes when it is old or its session is removed")


def _did(summary: Json) -> Iterator[tuple[str, str]]:
    """Yield what a launch did in all, as far as we know."""
    counts = (("turns", "turn", "turns"), ("tools", "tool", "tools"), ("failed_tools", "that failed", "that failed"))
    words = [some(summary[key], one, many) for key, one, many in counts if summary.get(key)]
    if words:
        yield "work", ", ".join(words)
    if summary.get("input_tokens") is not None:
        cost = "" if summary.get("cost_usd") is None else f", {summary['cost_usd']:.4f} USD"
        yield "tokens", f"{summary['input_tokens']:,} in, {summary['output_tokens']:,} out{cost}"
    if summary.get("longest_silence_s"):
        yield "longest silence", length(summary["longest_silence_s"])
    if summary.get("peak_rss_bytes"):
        yield "peak memory", f"{size(summary['peak_rss_bytes'] / 1024)} at least, of all its processes or of the largest"
    if summary.get("stalls"):
        yield "stalls", ", ".join(f"{name} ({count})" for name, count in summary["stalls"].items())
    if summary.get("ended_by"):
        yield "ended by", str(summary["ended_by"])


def _row(label: str, text: str) -> Iterator[str]:
    yield f"  {label:<{LABEL}} {one_line(text)}".rstrip()


def _section(title: str, rows: Iterator[tuple[str, str]] | Any) -> Iterator[str]:
    """Yield a titled block, or nothing without rows."""
    first = True
    for label, text in rows:
        if first:
            yield from ("", title)
            first = False
        yield from _row(label, text) if label else [f"  {one_line(text)}"]


def _tail(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield from ("", title)
        shown = map(one_line, lines[-TAIL:])
        yield from (f"  | {line if len(line) <= LINE else f'…{line[-LINE:]}'}".rstrip() for line in shown)


def _pids(death: Json) -> str:
    agent, server = death["pid"], death["server_pid"]
    return (f"; pid {agent}" if agent else "") + (f", its tmux server {server}" if server else "")


def _memory(memory: Json, changes: Json) -> Iterator[tuple[str, str]]:
    total, available = memory.get("total_kb"), memory.get("available_kb")
    if available is not None:
        yield "available", size(available) + (f" of {size(total)}" if total else "")
    if memory.get("swap_total_kb"):
        yield "swap free", f"{size(memory.get('swap_free_kb') or 0)} of {size(memory['swap_total_kb'])}"
    rss = memory.get("agent_rss_kb")
    if rss is not None:
        age = memory.get("agent_rss_age_s")
        yield "the agent had", size(rss) + (f", {age:.0f} s before its end" if age is not None else "")
    if changes.get("oom_kills"):
        yield "since its launch", f"processes of the host that the kernel ended for want of memory: {changes['oom_kills']}"


def _process(process: Json) -> tuple[str, str]:
    age = process.get("age_s")
    words = f"{process.get('name')}" + (f", {length(age)} old" if age is not None else "")
    return f"pid {process.get('pid')}", words + (f", {size(process['rss_kb'])}" if process.get("rss_kb") else "")


def _event(event: Json) -> tuple[str, str]:
    data = " ".join(f"{key}={value}" for key, value in event.get("data", {}).items() if value not in (None, ""))
    words = f"{event.get('kind')} {data}"
    return str(event.get("at", ""))[11:23], words if len(words) <= EVENT else f"{words[:EVENT]}…"


def size(kb: float) -> str:
    """Return an amount of memory in words."""
    for unit, step in (("GiB", 1 << 20), ("MiB", 1 << 10)):
        if kb >= step:
            return f"{kb / step:.1f} {unit}"
    return f"{kb:.0f} KiB"
