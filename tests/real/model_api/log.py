"""The log: one line when a request was read, one when it ended, which says whether the client hung up; the oracle of tests."""

from __future__ import annotations

import json
import time
from pathlib import Path


class Log:
    """The log file of one server."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - it is kept open as long as we serve
        self._number = 0

    def asked(self, client: str, scenario: str, path: str, number: int | None, did: str) -> int:
        """Write down a request, and return its id; without a number it was answered off the script."""
        self._number += 1
        self._write(id=self._number, client=client, scenario=scenario, path=path, number=number, did=did)
        return self._number

    def ended(self, request: int, how: str) -> None:
        """Write down how a request ended: as scripted, or hung up on by the client."""
        self._write(id=request, ended=how)

    def _write(self, **line: object) -> None:
        print(json.dumps({"at": time.time(), **line}), file=self._file)
