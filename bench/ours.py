"""Vigil with so many sessions, in a home of its own; a subscriber of its event stream is told of deaths."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.harness import AGENT, Run, send, wait_until
from bench.peers.contract import START_S, System, is_there, tool
from bench.readings import read_children
from vigil.client import Client
from vigil.client.starting import start_daemon
from vigil.home import home_at
from vigil.kernel import process

CALLERS = 4  # as many as the daemon launches at once
REQUEST = b"GET /v1/events/stream HTTP/1.1\r\nHost: vigil\r\nAccept: text/event-stream\r\n\r\n"
STOP_S = 120.0


class Vigil(System):
    """One daemon, one keeper, so many sessions of one runtime, none of which restarts by itself."""

    kills = 100
    phase_s = 0.3

    def __init__(self, run: Run, runtime: str) -> None:
        super().__init__(run)
        self.runtime = runtime
        self.name = f"vigil-{runtime}"
        self.label = f"Vigil, {runtime}"
        self.client: Client
        self.count = 0
        self._names: dict[int, str] = {}
        self._stream: socket.socket | None = None
        self._dead: str | None = None

    def start(self, count: int) -> None:
        """Start the daemon, then declare all sessions from a few threads."""
        self.count = count
        self._names = {}
        self.client = Client(home_at(self.run.folder / f"{self.name}-{count}"))
        start_daemon(self.client.home)
        wanted: dict[str, Any] = {"runtime": self.runtime, "command": AGENT, "cwd": "/", "env": self.run.agent_environment()}
        with ThreadPoolExecutor(CALLERS) as callers:
            for session in callers.map(self.client.run, ({**wanted, "name": f"agent-{n}"} for n in range(count))):
                self._names[session["pid"]] = session["name"]

    def stop(self) -> None:
        """End the sessions the way a user does, verified by ourselves."""
        self.unsubscribe()
        try:
            pids = [*self.supervisors(), *self._names]
        except Exception:  # it never came up: what bears our mark is ended with the run
            return
        self.client.stop_daemon(kill_sessions=True)
        wait_until(lambda: not any(map(is_there, pids)), STOP_S, f"end of {self.label}")

    def supervisors(self) -> list[int]:
        """Return daemon and keeper."""
        status = self.client.status()
        return [status["pid"], status["keeper_pid"]]

    def surroundings(self) -> list[list[int]]:
        """Return for each session its tmux server and shim; nothing where there is none."""
        found = []
        for session in self.client.sessions():
            if (server := session["server_pid"]) is not None:
                found.append([server, *_below(server, stop=session["pid"])])
        return found

    def subscribe(self) -> None:
        """Open the event stream, as any client of the socket can."""
        self._stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._stream.connect(str(self.client.home.api_socket))
        self._stream.sendall(REQUEST)
        assert self._stream.recv(65536).startswith(b"HTTP/1.1 200")

    def unsubscribe(self) -> None:
        """Close the stream."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def victims(self) -> list[int]:
        """Return the agents, after reading all that the stream holds of the past."""
        assert self._stream is not None
        self._stream.setblocking(False)
        try:
            while self._stream.recv(65536):
                pass
        except BlockingIOError:
            pass
        return list(self._names)

    def told_at_ns(self, pid: int, within_s: float) -> int:
        """Return when the event of this death could be read."""
        assert self._stream is not None
        name = self._dead = self._names.pop(pid)
        deadline = time.monotonic() + within_s
        text = b""
        while (left_s := deadline - time.monotonic()) > 0:
            self._stream.settimeout(left_s)
            text += self._stream.recv(65536)
            at_ns = time.monotonic_ns()
            if any(event["session"] == name for event in _events(text, b"session.died")):
                return at_ns
        raise TimeoutError(f"nobody was told of the death of {name} within {within_s:g} s")

    def make_whole(self) -> None:
        """Start the session that died."""
        if self._dead is not None:
            session = self.client.ask("start", self._dead)
            self._names[session["pid"]] = session["name"]
            self._dead = None

    def list_command(self) -> list[str] | None:
        """List all sessions."""
        return [tool("vigil"), "ls"]

    def environment(self) -> dict[str, str]:
        """Name the home."""
        return {**os.environ, "VIGIL_HOME": str(self.client.home.path)}

    def kill_daemon(self) -> None:
        """Kill the daemon alone, and see it gone."""
        pid = self.client.status()["pid"]
        send(pid, process.read_start_ticks(pid) or 0, signal.SIGKILL)
        wait_until(lambda: not process.is_alive(pid, process.read_start_ticks(pid) or 0), START_S, "end of the daemon", 0.001)

    def pids(self) -> set[int]:
        """Return the agents as they were started."""
        return set(self._names)


def _events(text: bytes, kind: bytes) -> Iterator[dict[str, Any]]:
    """Yield the events of one kind that are there in full."""
    for part in text.split(b"event: " + kind + b"\ndata: ")[1:]:
        line, end, _ = part.partition(b"\n")
        if end:
            yield json.loads(line)


def _below(pid: int, stop: int) -> list[int]:
    """Return what is below a process, without a process and what is below that."""
    return [found for child in read_children(pid) if child != stop for found in (child, *_below(child, stop))]
