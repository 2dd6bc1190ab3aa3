"""`vigil diag`: what a session's processes do right now: a readable tree, their sockets, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from vigil.cli.death_page import size
from vigil.cli.options import name_argument, output_option, show
from vigil.cli.table import Column, Drawn, format_table, terminal_width, use_colour
from vigil.client import connect
from vigil.text import one_line
from vigil.words import age, length, some

Json = Mapping[str, Any]

STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "uninterruptible",
    "T": "stopped",
    "t": "traced",
    "Z": "zombie",
    "I": "idle",
}
COLOURS = {"running": "green", "uninterruptible": "red", "stopped": "red", "traced": "yellow", "zombie": "yellow"}
COMMAND, WIDE_COMMAND = 60, 400
UNKNOWN = "?"

PROCESSES = (
    Column("PROCESS", shrink=True),
    Column("PID"),
    Column("STATE", colour=lambda cell: COLOURS.get(cell)),
    Column("CPU"),
    Column("MEMORY"),
    Column("AGE"),
    Column("WAITS IN", shrink=True),
    Column("FDS"),
    Column("THREADS"),
    Column("READ/WRITTEN"),
)
SOCKETS = (
    Column("PEER", shrink=True),
    Column("PID"),
    Column("STATE"),
    Column("RECEIVED"),
    Column("SENT"),
    Column("UNREAD/UNSENT"),
)


@click.command()
@name_argument
@click.option(
    "--over",
    type=click.FloatRange(0.1, 10.0),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="How far apart the two looks are that rates are taken from.",
)
@output_option
def diag(name: str, over: float, output: str) -> None:
    """Look at NAME's processes now: tree, CPU, memory, sockets of their own, where they wait.

    Example: vigil diag fix-tests"""
    found, wide = connect().diag(name, over), output == "wide"
    show(found, output, page(found, terminal_width(wide), use_colour(), wide))


def page(found: Json, width: int | None, coloured: bool, wide: bool = False) -> Iterator[str]:
    """Yield the lines of the page."""
    totals = found["totals"]
    over = "" if found["window_s"] is None else f", over {found['window_s']:.1f} s"
    agent = "the agent is not there" if found["pid"] is None else f"agent pid {found['pid']}"
    unread = [line for line in found["unknown"] if line.startswith("processes: ")]
    if unread and not found["processes"]:
        yield one_line(f"{found['name']}: nothing is known of its processes: {unread[0].removeprefix('processes: ')}")
        return
    yield one_line(f"{found['name']}: {agent}{over}")
    yield f"  {_cpu_words(totals)}; {_memory_words(found)}; {some(totals['processes'], 'process', 'processes')}"
    yield f"  {_socket_words(totals)}"
    if found["processes"]:
        yield ""
        rows = list(_process_rows(found["processes"], found["window_s"], wide))
        yield from format_table(PROCESSES, rows, width, coloured)
    connections = [one for one in found["sockets"] if one["family"] != "unix"]
    if connections:
        yield ""
        yield from format_table(SOCKETS, [_socket_row(one) for one in connections], width, coloured)
    unknown = [line for line in found["unknown"] if not line.endswith(": it is a zombie")]  # notable already names zombies
    for title, lines in (("open tools", _tools(found)), ("notable", _notable(found)), ("not known", unknown)):
        if lines:
            yield from ("", title)
            yield from (f"  {one_line(line)}" for line in lines)


def _cpu_words(totals: Json) -> str:
    if totals["cpu_rate"] is None:
        return "CPU unknown"
    own = "" if totals["agent_cpu_rate"] is None else f" ({percent(totals['agent_cpu_rate'])} the agent itself)"
    return f"{percent(totals['cpu_rate'])} of a core{own}"


def _memory_words(found: Json) -> str:
    agent = next((one for one in found["processes"] if one["role"] == "agent"), None)
    peak = "" if agent is None or agent["peak_rss_bytes"] is None else f" (the agent's peak {_bytes(agent['peak_rss_bytes'])})"
    return f"{_bytes(found['totals']['rss_bytes'])} of memory{peak}"


def _socket_words(totals: Json) -> str:
    if not totals["established"]:
        return "no TCP connection is established"
    words = some(totals["established"], "TCP connection")
    ages = [
        f"last byte {what} {_ago(totals[key])}"
        for what, key in (("received", "last_recv_ms"), ("sent", "last_send_ms"))
        if totals[key] is not None
    ]
    return ", ".join([words, *ages])


def _process_rows(processes: Sequence[Json], window_s: float | None, wide: bool) -> Iterator[list[str]]:
    for process, stem in zip(processes, stems([process["depth"] for process in processes]), strict=True):
        command = process["command"] or f"[{process['name']}]"
        command = command[:WIDE_COMMAND] if wide else _short(command)
        mark = " (left behind)" if process["role"] == "stray" else ""
        rate, ended = process["cpu_rate"], process["ended_children_cpu_rate"] or 0.0
        yield [
            Drawn(f"{stem}{one_line(command)}{mark}"),
            str(process["pid"]),
            STATES.get(process["state"]) or str(process["state"]),
            UNKNOWN if rate is None else percent(rate) + (f" +{percent(ended)} ended" if ended >= 0.01 else ""),
            _bytes(process["rss_bytes"]),
            age(process["age_s"]),
            "-" if process["wchan"] == "" or process["state"] == "Z" else _known(process["wchan"]),
            _known(process["descriptors"]),
            str(process["threads"]),
            _moved(process, window_s),
        ]


def stems(depths: Sequence[int]) -> list[str]:
    """Return the stem before each process: the lines that lead to its parent."""
    found = []
    for at, depth in enumerate(depths):
        parts = [_has_sibling_below(depths, at, level) for level in range(1, depth + 1)]
        lead = "".join("│  " if more else "   " for more in parts[:-1])
        found.append(lead + ("├─ " if parts[-1] else "└─ ") if parts else "")
    return found


def _has_sibling_below(depths: Sequence[int], at: int, level: int) -> bool:
    for depth in depths[at + 1 :]:
        if depth < level:
            return False
        if depth == level:
            return True
    return False


def _short(command: str) -> str:
    """Return a command short enough for a tree: its program without the folder."""
    program, space, rest = command.partition(" ")
    shown = f"{program.rpartition('/')[2] or program}{space}{rest}"
    return shown if len(shown) <= COMMAND else f"{shown[:COMMAND]}…"


def _moved(process: Json, window_s: float | None) -> str:
    read, written = process["io_read_bytes"], process["io_written_bytes"]
    if read is None or written is None or not window_s:
        return UNKNOWN
    return "-" if not read and not written else f"{_bytes(read / window_s)}/s {_bytes(written / window_s)}/s"


def _socket_row(one: Json) -> list[str]:
    peer = one["peer"] or f"listens on {one['local']}"
    queues = f"{one['recv_queue']}/{one['send_queue']}" if one["peer"] else "-"
    return [peer, str(one["pid"]), one["state"], _ago(one["last_recv_ms"]), _ago(one["last_send_ms"]), queues]


def _tools(found: Json) -> list[str]:
    return [
        f"{tool['name'] or tool['id']} for {length(tool['age_s'])}"
        + (f", pid {', '.join(map(str, tool['pids']))}" if tool["pids"] else ", without a process of its own")
        for tool in found["tools"]
    ]


def _notable(found: Json) -> list[str]:
    """Return what a person should not have to search for."""
    lines = []
    for process in found["processes"]:
        who = f"pid {process['pid']} ({process['name']})"
        state = process["state"]
        if state in "Tt":
            by = f" by pid {process['traced_by']}, a debugger" if process["traced_by"] else ""
            lines.append(f"{who} is stopped{by}")
        elif state == "D":
            lines.append(f"{who} is in uninterruptible sleep: no signal reaches it")
        elif state == "Z":
            lines.append(f"{who} has ended, and its parent has not waited for it")
        if process["first_thread_ended"]:
            lines.append(f"{who} lives on without its first thread")
        if process["waits_for_input"] and process["role"] != "agent":
            lines.append(f"{who} waits for input")
        if process["role"] == "stray" and process["holds_agents_pipe"]:
            lines.append(f"{who} was left behind and holds a pipe that the agent reads")
        if process["tty"] and process["foreground"] is False and process["role"] == "agent":
            lines.append(f"{who} is not in the foreground of its terminal")
    return lines


def percent(rate: float) -> str:
    """Return a share of a core."""
    return f"{rate * 100:.0f}%" if rate >= 0.1 or rate == 0 else f"{rate * 100:.1f}%"


def _bytes(count: float) -> str:
    return f"{count:.0f} B" if count < 1024 else size(count / 1024)


def _ago(ms: int | None) -> str:
    return "-" if ms is None else f"{length(ms / 1000)} ago"


def _known(value: Any) -> str:
    return UNKNOWN if value is None else str(value)
