"""Tailed files: those of one key with their positions, and the folders in which more may appear.

A thread looks, the loop takes in what it found. `turns` says when to look."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from vigil.daemon.base.log import log
from vigil.kernel.descriptors import path_of
from vigil.kernel.inotify import IN_FOLDER, IN_MODIFY
from vigil.observe.inotify import Watches
from vigil.observe.lines import BEGUN_ANEW, Position, ReadOutcome, TakenLines, read_end, read_lines, resolve
from vigil.observe.walk import Version, Walk

# A turn takes the loop for milliseconds, all turns half of it at most: 20,000 lines are parsed in a second.
LOOK_BYTES = 256 << 10
LOOK_LINES = 200
BYTES_PER_S = 8 << 20  # of each looker, as below
LINES_PER_S = 5_000
LISTING_S = 0.002
MOST_FILES = 500  # of one key: an agent's further files are left
OnLines = Callable[[str, str, TakenLines], None]


@dataclass(eq=False)
class Followed:
    key: str
    patterns: tuple[str, ...]
    roots: tuple[str, ...]
    on_lines: OnLines
    from_end: bool
    real_roots: tuple[str, ...] = ()
    files: dict[str, FollowedFile] = field(default_factory=dict)
    ready: deque[Turn] = field(default_factory=deque)  # to be looked at
    is_offered: bool = False
    hung: int = 0  # looks that were given up
    progress: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.listing = Listing(self)

    def turns(self) -> list[Turn]:
        return [self.listing, *self.files.values()]

    def positions(self) -> dict[str, Position]:
        return {path: file.position for path, file in self.files.items() if file.position is not None}

    def begin(self, found: Mapping[str, Version]) -> bool:
        """Begin to tail a key's files that appeared; say whether that was decided for all."""
        appeared = [path for path in found if path not in self.files]
        left = self._files_that_left(found) if appeared else {}
        undecided = [path for path in appeared if any(file.is_working for file in left.get(found[path][:2], ()))]
        gone = [file for path, file in self.files.items() if path not in found and file.is_idle]
        for path in appeared:
            if len(self.files) >= MOST_FILES and gone:
                del self.files[gone.pop(0).path]
            if len(self.files) < MOST_FILES and path not in undecided:
                self._begin_one(path, left.get(found[path][:2], []))
        self.from_end = False
        return not undecided

    def _files_that_left(self, found: Mapping[str, Version]) -> dict[tuple[int, int], list[FollowedFile]]:
        """Return the tailed files whose names are gone, by device and inode."""
        left: dict[tuple[int, int], list[FollowedFile]] = {}
        for path, file in self.files.items():
            if file.position is not None:
                number = file.position.device, file.position.inode
                if path not in found or found[path][:2] != number:
                    left.setdefault(number, []).append(file)
        return left

    def _begin_one(self, path: str, before: list[FollowedFile]) -> None:
        """Begin to tail a file; a renamed one begins at its position.

        The next reading shows whether it is the same. Until then both names have the position, told before any words of a new
        file by the old name: so nothing is told twice if we end in between."""
        position = max((file.position for file in before if file.position), key=lambda at: at.offset, default=None)
        file = self.files[path] = FollowedFile(self, path, position, self.from_end)
        if position is not None:
            file.tell(TakenLines(position, ReadOutcome.MOVED))

    def update(self, found: Mapping[str, Version]) -> list[Turn]:
        """Take in the listed state of each tailed file; return those to look at."""
        changed = [file for path, file in self.files.items() if file.version != found.get(path) or file.outcome is None]
        for file in changed:
            file.version = found.get(file.path)
        return [*changed]


class Turn:
    """A tailed file, or a key's folders; one thread at a time looks at it."""

    name = ""

    def __init__(self, followed: Followed) -> None:
        self.followed = followed
        self.timer: asyncio.TimerHandle | None = None
        self.is_ready = False
        self.is_working = False
        self.again = False  # it was woken during a look
        self.more = False
        self.is_polled = False  # no watch will wake it
        self.doubted_at: float | None = None
        self.began_at = -math.inf
        self.looked_at = -math.inf
        self.read_at = -math.inf  # start of the last look that left nothing
        self.cost_s = 0.0

    def begin(self, now: float) -> None:
        self.is_ready = self.again = self.more = self.is_polled = False
        self.is_working = True
        self.began_at = now

    @property
    def is_idle(self) -> bool:
        """No look at the tailed file is under way or due."""
        return not (self.is_working or self.is_ready or self.timer)

    def stop_waiting(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def look(self, watches: Watches[Turn]) -> None:
        """Read the tailed file or its folders, in a thread."""
        raise NotImplementedError

    def take_in(self) -> Iterable[Turn]:
        """On the loop, take in what a tailed file gave; return files to look at."""
        raise NotImplementedError


class FollowedFile(Turn):
    def __init__(self, followed: Followed, path: str, position: Position | None, from_end: bool = False) -> None:
        super().__init__(followed)
        self.name = self.path = path
        self.position = position
        self.version: Version | None = None  # as it was listed
        self.outcome: tuple[ReadOutcome, str] | None = None
        self._from_end = from_end
        self._taken = TakenLines(position, ReadOutcome.READ)

    def look(self, watches: Watches[Turn]) -> None:
        """Watch a tailed file for its next write, then read: nothing falls between the two."""
        on_open = partial(self._watch, watches)
        roots = self.followed.real_roots
        if self.position is None and self._from_end:
            self._taken = read_end(self.path, roots, on_open)
        else:
            self._taken = read_lines(self.path, self.position, roots, LOOK_BYTES, LOOK_LINES, on_open)

    def _watch(self, watches: Watches[Turn], fd: int) -> None:
        try:
            watches.ask(path_of(fd), IN_MODIFY, self)
        except OSError:
            self.is_polled = True

    def take_in(self) -> Iterable[Turn]:
        """Tell the lines at a tailed file's end; its position moves with them."""
        taken = self._taken
        self.cost_s = max(taken.read_bytes / BYTES_PER_S, len(taken.lines) / LINES_PER_S)
        if taken.outcome in BEGUN_ANEW and not self._is_certain():
            self.again = True
            return (self.followed.listing,)
        self.doubted_at = None
        self.more = taken.more
        self.is_polled |= taken.outcome is ReadOutcome.FAILED
        if not taken.more:
            self.read_at = self.began_at
        outcome = taken.outcome, taken.why
        is_news = outcome != self.outcome or taken.position != self.position or taken.outcome in BEGUN_ANEW
        if outcome != self.outcome and taken.why:
            log.warning("file not read", key=self.followed.key, file=self.path, outcome=taken.outcome, why=taken.why)
        self.position, self.outcome = taken.position, outcome
        if is_news:
            self.tell(taken)
        return ()

    def _is_certain(self) -> bool:
        """Say whether a tailed file surely begins anew: it was listed since we doubted it."""
        if self.doubted_at is None:
            self.doubted_at = self.began_at
        return self.followed.listing.read_at > self.doubted_at

    def tell(self, taken: TakenLines) -> None:
        try:
            self.followed.on_lines(self.followed.key, self.path, taken)
        except Exception as error:  # a second try would raise too: one agent's words must not stop all others'
            log.error("lines not taken in", key=self.followed.key, file=self.path, lines=len(taken.lines), why=repr(error))


class Listing(Turn):
    """The list of files to tail, made again when a folder of theirs changes."""

    name = "its folders"

    def __init__(self, followed: Followed) -> None:
        super().__init__(followed)
        self._found: dict[str, Version] = {}

    def look(self, watches: Watches[Turn]) -> None:
        """Find the files to tail that exist, in a thread."""
        if not self.followed.real_roots:
            self.followed.real_roots = resolve(self.followed.roots)
        walk = Walk(partial(watches.ask, mask=IN_FOLDER, who=self))
        for pattern in self.followed.patterns:
            walk.find("/", tuple(part for part in pattern.split("/") if part))
        self.is_polled = walk.is_unwatched
        self._found = walk.files

    def take_in(self) -> Iterable[Turn]:
        """Begin to tail files that appeared; return them with those that changed or went."""
        self.cost_s = LISTING_S
        if self.followed.begin(self._found):
            self.read_at = self.began_at
        else:
            self.again = True
        return self.followed.update(self._found)
