"""What the API shows of a diagnosis (INTERFACE.md): an unreadable value is null and named in `unknown`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from vigil.core.model.progress import Open
from vigil.core.model.session import Session
from vigil.moments import rfc3339
from vigil.observe.diagnosis import Diagnosis, Owned, ProcessReading

BEFORE_S = 1.0  # a tool's process may be older than the report of its start: that comes later, or by another clock
TCP = ("inet", "inet6")


def diag_view(session: Session, found: Diagnosis, at: Callable[[float], float], redact: Callable[[str], str]) -> dict[str, Any]:
    """Return a diagnosis; `at` turns the sensors' clock into ours."""
    now = at(found.at_s)
    return {
        "name": session.name,
        "at": rfc3339(now),
        "launch": found.launch_id,
        "pid": found.agent.process.pid if found.agent is not None else None,
        "window_s": _rounded(found.window_s),
        "processes": [process_view(reading, redact) for reading in found.processes],
        "sockets": [socket_view(owned) for owned in found.sockets],
        "tools": [tool_view(tool, found.processes, now) for tool in session.vitals.doing.tools],
        "totals": totals_view(found),
        "unknown": list(found.unknown),
    }


def process_view(reading: ProcessReading, redact: Callable[[str], str]) -> dict[str, Any]:
    """Return one process."""
    return {
        "pid": reading.process.pid,
        "ppid": reading.ppid,
        "name": redact(reading.name),
        "command": None if reading.command is None else redact(" ".join(reading.command)),
        "role": reading.role,
        "depth": reading.depth,
        "state": reading.state,
        "wchan": reading.wchan,
        "cpu_rate": _rounded(reading.cpu),
        "ended_children_cpu_rate": _rounded(reading.reaped_cpu),
        "used_cpu_s": round(reading.used_cpu_s, 2),
        "rss_bytes": reading.rss_bytes,
        "peak_rss_bytes": reading.peak_rss_bytes,
        "threads": reading.threads,
        "first_thread_ended": reading.first_thread_ended,
        "age_s": round(reading.age_s, 2),
        "descriptors": reading.descriptors,
        "descriptor_kinds": reading.kinds,
        "io_read_bytes": reading.io_read,
        "io_written_bytes": reading.io_written,
        "disk_read_bytes": reading.disk_read,
        "disk_written_bytes": reading.disk_written,
        "tty": reading.tty,
        "foreground": reading.foreground,
        "traced_by": reading.traced_by,
        "waits_for_input": reading.waits_for_input,
        "holds_agents_pipe": reading.holds_agents_pipe,
    }


def socket_view(owned: Owned) -> dict[str, Any]:
    """Return one socket."""
    one = owned.socket
    return {
        "pid": owned.pid,
        "family": one.family,
        "state": one.state,
        "local": one.local,
        "peer": one.peer,
        "last_recv_ms": one.last_recv_ms,
        "last_send_ms": one.last_send_ms,
        "recv_queue": one.recv_queue,
        "send_queue": one.send_queue,
        "bytes_received": one.bytes_received,
        "bytes_sent": one.bytes_sent,
        "unacked": one.unacked,
        "retransmits": one.retransmits,
    }


def tool_view(tool: Open, processes: Sequence[ProcessReading], now: float) -> dict[str, Any]:
    """Return an open tool with the processes that may be its own: the agent's children since its start."""
    age_s = max(0.0, now - tool.since)
    agent = next((reading for reading in processes if reading.role == "agent"), None)
    own = [one for one in processes if agent is not None and one.ppid == agent.process.pid and one.age_s <= age_s + BEFORE_S]
    return {
        "id": tool.id,
        "name": tool.name,
        "since": rfc3339(tool.since),
        "age_s": round(age_s, 2),
        "pids": [one.process.pid for one in own],
    }


def totals_view(found: Diagnosis) -> dict[str, Any]:
    """Return the sums over a launch's processes, without unknown values."""
    processes = found.processes
    states = Counter(reading.state for reading in processes)
    connections = [
        owned.socket for owned in found.sockets if owned.socket.family in TCP and owned.socket.state == "ESTABLISHED"
    ]
    return {
        "processes": len(processes),
        "strays": sum(reading.role == "stray" for reading in processes),
        "cpu_rate": _rounded(found.cpu.tree),
        "agent_cpu_rate": _rounded(found.cpu.agent),
        "used_cpu_s": round(sum(reading.used_cpu_s for reading in processes), 2),
        "rss_bytes": sum(reading.rss_bytes for reading in processes),
        "threads": sum(reading.threads for reading in processes),
        "descriptors": _sum(reading.descriptors for reading in processes),
        "io_read_bytes": _sum(reading.io_read for reading in processes),
        "io_written_bytes": _sum(reading.io_written for reading in processes),
        "states": dict(states),
        "stopped": states["T"] + states["t"],
        "zombies": states["Z"],
        "uninterruptible": states["D"],
        "sockets": len(found.sockets),
        "established": len(connections),
        "last_recv_ms": min((one.last_recv_ms for one in connections if one.last_recv_ms is not None), default=None),
        "last_send_ms": min((one.last_send_ms for one in connections if one.last_send_ms is not None), default=None),
    }


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
