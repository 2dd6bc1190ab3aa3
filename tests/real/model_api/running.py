"""The server as a process of a test's own: where it is, and what was asked of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
STOP_S = 10


@dataclass(frozen=True)
class Request:
    """A request, as the server has written it down."""

    id: int
    client: str
    scenario: str
    path: str
    number: int | None  # in the script, from 1; None: a side call, or nothing a model is asked
    did: str  # what the server did: say, use, refuse, break; nothing; refused
    ended: str = ""  # as scripted; hung up, by the client; broken off, by the server's end; empty: it is still open


class ModelApi:
    """A running server."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.real.model_api", str(log)],
            cwd=ROOT,
            stdin=subprocess.PIPE,  # it ends when this does
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        assert self.address.startswith("http://127.0.0.1:"), f"it did not start: {self.address!r}"

    def url(self, scenario: str, client: str) -> str:
        """Return where a client finds its scenario."""
        return f"{self.address}/s/{scenario}/{client}"

    def requests(self, client: str) -> list[Request]:
        """Return all that a client asked, in order."""
        asked: dict[int, Request] = {}
        for line in map(json.loads, self._log.read_text("utf-8").splitlines()):
            line.pop("at")
            known = asked.get(line["id"])
            asked[line["id"]] = Request(**line) if known is None else Request(**(known.__dict__ | line))
        return [request for request in asked.values() if request.client == client]

    def scripted(self, client: str) -> list[Request]:
        """Return what a client asked of the script."""
        return [request for request in self.requests(client) if request.number is not None]

    def stop(self) -> None:
        """End it."""
        self._process.communicate(timeout=STOP_S)
