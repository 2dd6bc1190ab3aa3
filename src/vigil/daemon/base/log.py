"""The daemon's own log: constant phrases with keys, one line each, bounded in size."""

from __future__ import annotations

import io
import logging
import os
import time
from pathlib import Path

import structlog

from vigil.redact import Redactor

LOG_BYTES = 4 << 20
A_MINUTE = 20  # lines of the libraries below us; a flood must not push our own lines out
REDACTOR = Redactor()  # it learns the secrets of every session
log: structlog.stdlib.BoundLogger = structlog.get_logger()


class BoundedFile(io.TextIOBase):
    """The log's file: it turns over when it grows too large, and keeps two halves."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open(path, "a", encoding="utf-8", errors="replace")  # noqa: SIM115

    def write(self, text: str) -> int:
        """Append to the log; a disk that refuses does not stop the watch."""
        try:
            self._file.write(text)
            if self._file.tell() > LOG_BYTES:
                self._file.close()
                os.replace(self._path, f"{self._path}.1")
                self._file = open(self._path, "a", encoding="utf-8", errors="replace")  # noqa: SIM115
        except OSError:
            pass
        return len(text)

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError:
            pass


class Libraries(logging.Handler):
    """Takes warnings of the libraries below us into the log, a few in each minute."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._minute = self._seen = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Log a library's line, or count it; each minute's first tells how many are missing."""
        minute = int(time.monotonic() // 60)
        left_out = max(0, self._seen - A_MINUTE)
        if minute != self._minute:
            self._minute, self._seen = minute, 0
        self._seen += 1
        if self._seen == 1 and left_out:
            log.warning("lines of libraries were left out", lines=left_out)
        if self._seen <= A_MINUTE:
            log.warning("a library says", library=record.name, says=record.getMessage(), exc_info=record.exc_info or None)


def log_to(path: Path) -> None:
    logging.basicConfig(handlers=[Libraries()], force=True)
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
