"""The daemon's own log: constant phrases with keys, one line each, bounded in size."""

from __future__ import annotations

import os
from pathlib import Path

import structlog

from vigil.redact import Redactor

LOG_BYTES = 4 << 20
REDACTOR = Redactor()  # no log shows what looks like a secret
log: structlog.stdlib.BoundLogger = structlog.get_logger()


class BoundedFile:
    """A file that turns over when it grows too large, and keeps the last two halves."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open(path, "a", encoding="utf-8", errors="replace")  # noqa: SIM115

    def write(self, text: str) -> None:
        """Append; a disk that refuses does not stop the watch."""
        try:
            self._file.write(text)
            if self._file.tell() > LOG_BYTES:
                self._file.close()
                os.replace(self._path, f"{self._path}.1")
                self._file = open(self._path, "a", encoding="utf-8", errors="replace")  # noqa: SIM115
        except OSError:
            pass

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError:
            pass


def log_to(path: Path) -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            lambda _logger, _name, line: REDACTOR.value(line),
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], drop_missing=True),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=BoundedFile(path)),  # type: ignore[arg-type]
    )
