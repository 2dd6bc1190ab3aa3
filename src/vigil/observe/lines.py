"""Lines: each complete line of one growing file behind a position, once; only of our user's regular files below the roots.

A position knows its file by read bytes, not by its inode: inodes are given again, and files are written anew in place."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum

from vigil.kernel.descriptors import path_of, read_place

LINE_BYTES = 16 << 20  # longer is no line of an agent, and is skipped
MOST_BYTES = 1 << 20
MOST_LINES = 1000
STEP_BYTES = 64 << 10
# Together they cover a short file. The middle of a long one is not compared: that costs as much as reading it, and a rewrite of
# the middle moves the end, unless it is by as many bytes.
HEAD_BYTES = 1024
MARK_BYTES = 256
FIND_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC  # finds without opening: no FIFO gets a reader, no device wakes
READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class ReadOutcome(StrEnum):
    READ = "read"  # the file that was read before, or the first one
    MOVED = "moved"  # another file that holds all that was read: the reading went on behind that
    REPLACED = "replaced"  # it holds something else, and was read from its beginning
    TRUNCATED = "truncated"  # it is shorter than what was read, and was read from its beginning
    GONE = "gone"  # there is none; the position stays, for one that may come
    REFUSED = "refused"  # it is not the agent's
    FAILED = "failed"  # unknown: ask again


BEGUN_ANEW = frozenset({ReadOutcome.REPLACED, ReadOutcome.TRUNCATED})


@dataclass(frozen=True, slots=True)
class Position:
    """How far one file was read, and by what it is known again."""

    device: int
    inode: int
    offset: int  # behind the last complete line
    mark: str  # fingerprint of the bytes just before the offset
    head: str = ""  # fingerprint of the first bytes that were read; empty if they were released
    searched: int = 0  # from the offset up to here no line ends
    searched_mark: str = ""  # fingerprint of the bytes just before that
    skipping: bool = False  # the offset lies within a line whose rest is skipped

    def as_json(self) -> dict[str, int | str | bool]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: object) -> Position | None:
        """Return the position, or None for another value."""
        try:
            position = cls(**value)  # type: ignore[arg-type]
        except TypeError:
            return None
        numbers = (position.device, position.inode, position.offset, position.searched)
        words = (position.mark, position.head, position.searched_mark)
        good = all(type(number) is int and number >= 0 for number in numbers) and all(type(word) is str for word in words)
        return position if good and type(position.skipping) is bool else None


@dataclass(frozen=True, slots=True)
class TakenLines:
    """What one reading took."""

    position: Position | None  # where the next one begins; unchanged where nothing could be read
    outcome: ReadOutcome
    lines: list[bytes] = field(default_factory=list)  # without their ends; any bytes
    why: str = ""  # refused or failed
    skipped: int = 0  # lines that were too long
    lost_bytes: int = 0  # of a head that was released unread
    read_bytes: int = 0
    more: bool = False  # more can be read at once


class FileRefused(Exception):
    """A file that is not the agent's; the message says why."""


def resolve(roots: Iterable[str]) -> tuple[str, ...]:
    """Return the real folders of roots; once, so that a root that becomes a link later leads nowhere."""
    return tuple(os.path.realpath(root) for root in roots)


def read_lines(
    path: str,
    position: Position | None,
    roots: tuple[str, ...],
    most_bytes: int = MOST_BYTES,
    most_lines: int = MOST_LINES,
    on_open: Callable[[int], None] | None = None,
) -> TakenLines:
    """Read the complete lines behind a position, or from the beginning; never raises for what a file is.

    `roots` are real paths (`resolve`). It holds the longest line and `most_bytes` at most. `on_open` gets the descriptor before
    the first read, to watch that very file: so nothing falls between watching and reading."""
    return _visit(path, position, roots, on_open, lambda file: _take(file, position, min(most_bytes, LINE_BYTES), most_lines))


def read_end(path: str, roots: tuple[str, ...], on_open: Callable[[int], None] | None = None) -> TakenLines:
    """Find the position behind the last complete line; only the end of the file is read."""
    return _visit(path, None, roots, on_open, _find_end)


@dataclass(frozen=True, slots=True)
class _File:
    fd: int
    device: int
    inode: int
    size: int
    begin: int  # the part before this was released, and reads as zeros

    def bytes_before(self, offset: int, most: int = MARK_BYTES) -> bytes:
        return os.pread(self.fd, min(most, offset), max(0, offset - most))

    def head(self, offset: int) -> str:
        return "" if self.begin else _fingerprint(os.pread(self.fd, min(HEAD_BYTES, offset), 0))


def _fingerprint(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _visit(
    path: str,
    position: Position | None,
    roots: tuple[str, ...],
    on_open: Callable[[int], None] | None,
    work: Callable[[_File], TakenLines],
) -> TakenLines:
    try:
        with _opened(path, roots) as fd:
            if on_open is not None:
                on_open(fd)
            found = os.fstat(fd)
            return work(_File(fd, found.st_dev, found.st_ino, found.st_size, _find_begin(fd, found.st_size)))
    except FileRefused as refusal:
        return TakenLines(position, ReadOutcome.REFUSED, why=str(refusal))
    except (FileNotFoundError, NotADirectoryError):
        return TakenLines(position, ReadOutcome.GONE)
    except OSError as error:
        return TakenLines(position, ReadOutcome.FAILED, why=str(error))


@contextmanager
def _opened(path: str, roots: tuple[str, ...]) -> Iterator[int]:
    """Open a file that was checked; no other can take its place in between."""
    found = os.open(path, FIND_FLAGS)
    try:
        _check(found, roots)
        fd = os.open(path_of(found), READ_FLAGS)
    finally:
        os.close(found)
    try:
        yield fd
    finally:
        os.close(fd)


def _check(fd: int, roots: tuple[str, ...]) -> None:
    """Raise FileRefused for what is not the agent's."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise FileRefused("it is a symbolic link" if stat.S_ISLNK(found.st_mode) else "it is no regular file")
    if found.st_uid != os.geteuid():
        raise FileRefused(f"it belongs to the user with the id {found.st_uid}")
    real = read_place(fd)
    if not any(real.startswith(f"{root.rstrip('/')}/") for root in roots):
        raise FileRefused(f"it really is {real}, outside of what the agent owns")


def _find_begin(fd: int, size: int) -> int:
    """Return where the content begins: a released head is a hole (runtimes/tail.py)."""
    if os.pread(fd, 1, 0) != b"\0":  # not every file system tells holes rightly
        return 0
    try:
        return min(os.lseek(fd, 0, os.SEEK_DATA), size)
    except OSError as error:
        return size if error.errno == errno.ENXIO else 0  # only a hole; or none that it can tell


def _take(file: _File, position: Position | None, most_bytes: int, most_lines: int) -> TakenLines:
    start, outcome, lost_bytes = _find_start(file, position)
    before = file.bytes_before(start.offset)
    data = os.pread(file.fd, most_bytes, start.searched)
    reached = start.searched + len(data)
    taken = TakenLines(None, outcome, lost_bytes=lost_bytes, read_bytes=len(data), more=reached < file.size)
    if b"\n" not in data:
        return _without_line(file, start, before, data, taken)
    if start.skipping:
        rest = data.find(b"\n") + 1
        before = (before + data[:rest])[-MARK_BYTES:]
        start = replace(start, offset=start.offset + rest, skipping=False)
        data = data[rest:]
    elif start.searched > start.offset:
        data = os.pread(file.fd, reached - start.offset, start.offset)
        taken = replace(taken, read_bytes=taken.read_bytes + len(data))
    return _with_lines(file, start, before, data, most_lines, taken)


def _find_start(file: _File, position: Position | None) -> tuple[Position, ReadOutcome, int]:
    """Return where to begin, what that says of the file, and how many bytes are lost."""
    start, outcome = _recognise(file, position)
    if start.offset < file.begin:  # a line that the hole cuts is none
        cut = replace(start, offset=file.begin, head="", searched=file.begin, skipping=True)
        return cut, outcome, file.begin - start.offset
    if start.searched > start.offset and start.searched_mark == _mark_of_search(file, start.offset, start.searched):
        return start, outcome, 0
    return replace(start, searched=start.offset), outcome, 0


def _recognise(file: _File, position: Position | None) -> tuple[Position, ReadOutcome]:
    anew = Position(file.device, file.inode, 0, "")
    if position is None:
        return anew, ReadOutcome.READ
    is_same = (file.device, file.inode) == (position.device, position.inode)
    if file.size < position.offset:
        return anew, ReadOutcome.TRUNCATED if is_same else ReadOutcome.REPLACED
    if is_same and max(0, position.offset - MARK_BYTES) < file.begin:  # its fingerprinted bytes were released
        return position, ReadOutcome.READ
    if not _holds_what_was_read(file, position, is_same):
        return anew, ReadOutcome.REPLACED
    return replace(position, device=file.device, inode=file.inode), ReadOutcome.READ if is_same else ReadOutcome.MOVED


def _holds_what_was_read(file: _File, position: Position, is_same: bool) -> bool:
    if position.mark != _fingerprint(file.bytes_before(position.offset)):
        return False
    return not position.head or position.head == file.head(position.offset) or (is_same and file.begin > 0)


def _mark_of_search(file: _File, offset: int, searched: int) -> str:
    return _fingerprint(file.bytes_before(searched, min(MARK_BYTES, searched - offset)))


def _without_line(file: _File, start: Position, before: bytes, data: bytes, taken: TakenLines) -> TakenLines:
    """Remember how far no line ends; give up a line that is too long, and hold nothing of it."""
    reached = start.searched + len(data)
    is_too_long = not start.skipping and reached - start.offset > LINE_BYTES
    if start.skipping or is_too_long:
        position = _position(file, start, reached, (before + data)[-MARK_BYTES:] if start.skipping else None)
        return replace(taken, position=replace(position, skipping=True), skipped=int(is_too_long))
    position = _position(file, start, start.offset, before)
    if data or start.searched > start.offset:
        position = replace(position, searched=reached, searched_mark=_mark_of_search(file, start.offset, reached))
    return replace(taken, position=position)


def _with_lines(file: _File, start: Position, before: bytes, data: bytes, most_lines: int, taken: TakenLines) -> TakenLines:
    *lines, rest = data.split(b"\n", most_lines)
    used = len(data) - len(rest)
    position = _position(file, start, start.offset + used, (before + data[max(0, used - MARK_BYTES) : used])[-MARK_BYTES:])
    skipped = 0
    if lines and len(lines[0]) > LINE_BYTES:  # only the first was searched for longer than one reading
        skipped = 1
        del lines[0]
    lines = [line.removesuffix(b"\r") for line in lines]
    return replace(taken, position=position, lines=lines, skipped=skipped, more=taken.more or b"\n" in rest)


def _position(file: _File, start: Position, offset: int, before: bytes | None) -> Position:
    """Return a position known by the very bytes that were read, as far as they are at hand."""
    mark = _fingerprint(file.bytes_before(offset) if before is None else before)
    head = start.head if start.offset >= HEAD_BYTES else file.head(offset)
    return Position(file.device, file.inode, offset, mark, head, searched=offset)


def _find_end(file: _File) -> TakenLines:
    at = file.size
    while at > file.begin and file.size - at < LINE_BYTES:
        step = min(STEP_BYTES, at - file.begin)
        at -= step
        cut = os.pread(file.fd, step, at).rfind(b"\n")
        if cut >= 0:
            return _taken_at(file, at + cut + 1)
    return _taken_at(file, 0) if at == 0 else _taken_at(file, file.size, skipping=True)


def _taken_at(file: _File, offset: int, skipping: bool = False) -> TakenLines:
    position = _position(file, Position(file.device, file.inode, 0, ""), offset, None)
    return TakenLines(replace(position, skipping=skipping), ReadOutcome.READ, more=offset < file.size)
