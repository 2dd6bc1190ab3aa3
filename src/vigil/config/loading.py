"""Loading: the configuration file, parsed anew only when it has changed."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO

from vigil.config.checking import check
from vigil.config.values import Config
from vigil.errors import UsageError
from vigil.text import one_line

LARGEST_BYTES = 1 << 20

Stamp = tuple[int, int, int]


class ConfigRefused(UsageError):
    """The file is not valid. Its first argument is the first problem, its text names them all."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(problems[0])
        self.problems = problems

    def __str__(self) -> str:
        return "; ".join(self.problems)


class ConfigFile:
    """One configuration file, and what it said last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last_good = Config()
        self._problems: tuple[str, ...] = ()
        self._stamp: Stamp | None = None  # of the last file that was readable

    @property
    def problem(self) -> str | None:
        """What was wrong with the file at its last reading."""
        return "; ".join(self._problems) or None

    def read(self) -> Config:
        """Return what the file says now, or the defaults without a file; ConfigRefused if it is not valid."""
        try:
            with open(self.path, "rb", opener=_open) as file:
                found = os.fstat(file.fileno())
                stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
                if stamp != self._stamp:
                    self._remember(_understand(file, found), stamp)
        except FileNotFoundError:
            self._remember(Config(), None)
        except (OSError, ValueError) as error:  # ValueError: a name that no file can have
            words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._remember((f"cannot be read: {words}",), None)
        if self._problems:
            raise ConfigRefused(self._problems)
        return self.last_good

    def _remember(self, found: Config | tuple[str, ...], stamp: Stamp | None) -> None:
        self._stamp = stamp
        if isinstance(found, Config):
            self.last_good, self._problems = found, ()
        else:
            self._problems = tuple(one_line(f"{self.path.name}: {problem}") for problem in found)


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a pipe without a writer would block for ever


def _understand(file: BinaryIO, found: os.stat_result) -> Config | tuple[str, ...]:
    if not stat.S_ISREG(found.st_mode):
        return ("is not a regular file",)
    data = file.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        return ("is larger than 1 MiB",)
    document = parse(data)
    return (document,) if isinstance(document, str) else check(document)


def parse(data: bytes) -> dict[str, Any] | str:
    """Return the document, or why the data holds none."""
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        return f"line {_line(data[: error.start])}: not UTF-8"
    except tomllib.TOMLDecodeError as error:
        return _not_toml(str(error), data)
    except RecursionError:
        return "is nested too deeply"
    except ValueError:
        return "holds a number of too many digits"  # Python refuses to read it


def _not_toml(words: str, data: bytes) -> str:
    """Return the parser's message with its line first."""
    found = re.fullmatch(r"(.*) \(at (line [0-9]+, column [0-9]+|end of document)\)", words, re.DOTALL)
    what, where = (found[1], found[2]) if found else (words, "")
    if not where.startswith("line"):
        where = f"line {_line(data.rstrip())}, its last"
    return f"{where}: not TOML: {what[:1].lower()}{what[1:]}"


def _line(before: bytes) -> int:
    return before.count(b"\n") + 1
