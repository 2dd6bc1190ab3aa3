"""Following: the lines that agents add to their files, told once each, in fair turns and at a bounded pace.

A file is looked at when it was written to, once a second at most; one that is quiet costs nothing. Only threads touch files, so
a file system that hangs holds up the agents on it and nobody else.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from queue import SimpleQueue

from vigil.daemon.log import log
from vigil.observe.inotify import IN_MODIFY, Watches
from vigil.observe.lines import BEGUN_ANEW, Outcome, Position, Taken, read_end, read_lines, resolve

LOOK_S = 1.0
POLL_S = 5.0  # for what cannot be watched, and after a reading that failed
LOOK_AT_ALL_S = 60.0  # without being told: not every file system tells
DEADLINE_S = 1.0  # of a look; one that takes longer goes on without anybody waiting
MOST_HUNG = 32  # threads that may wait for what does not come
# A turn takes the loop for milliseconds, and all turns together take half of it at most: 20,000 lines are parsed in a second.
LOOK_BYTES = 256 << 10
LOOK_LINES = 200
LOOKERS = 2
BYTES_PER_S = 8 << 20  # of each looker, as below
LINES_PER_S = 5_000
LISTING_S = 0.002
# Of one key: what an agent makes beyond these is left.
MOST_FILES = 500
MOST_FOLDERS = 200
MOST_ENTRIES = 10_000
MOST_DEPTH = 32

IN_MOVED = 0x40 | 0x80
IN_CREATE = 0x100
IN_DELETE = 0x200
IN_SELF_GONE = 0x400 | 0x800
IN_ONLYDIR = 0x01000000
IN_FOLDER = IN_MOVED | IN_CREATE | IN_DELETE | IN_SELF_GONE | IN_ONLYDIR
MAGIC = re.compile(r"[*?[]")
ESCAPED = re.compile(r"\[([*?[])\]")  # as glob.escape writes them

OnLines = Callable[[str, str, Taken], None]
Version = tuple[int, int, int]  # device, inode and size


class Following:
    """Many files, each known by whose it is, the key, and by its path."""

    def __init__(self, look_s: float = LOOK_S) -> None:
        self._look_s = look_s
        self._followed: dict[str, _Followed] = {}
        self._ready: asyncio.Queue[_Followed] = asyncio.Queue()
        self._watches: Watches[_Turn] = Watches(self._wake)
        self._hung = 0

    def follow(
        self,
        key: str,
        patterns: Iterable[str],
        roots: Iterable[str],
        on_lines: OnLines,
        positions: Mapping[str, Position] | None = None,
        from_end: bool = False,
    ) -> None:
        """Tell every line of the files that match, now or later, behind the positions that are known.

        Patterns are absolute, as `glob` has them. With `from_end`, files that are there now and have no position are followed
        from their end on. `on_lines` is called on the loop, with lines and with what became of a file; the position it is
        given belongs with what it makes of the lines. A key that is followed already keeps the positions it has reached.
        """
        before = self._followed.get(key)
        known = {**(positions or {}), **(before.positions() if before else {})}
        self.forget(key)
        followed = _Followed(key, tuple(patterns), tuple(roots), on_lines, from_end)
        followed.files = {path: _File(followed, path, position) for path, position in known.items()}
        self._followed[key] = followed
        self._wake(followed.listing)

    def forget(self, key: str) -> None:
        """Tell nothing more of these files."""
        followed = self._followed.pop(key, None)
        if followed is not None:
            turns = followed.turns()
            for turn in turns:
                turn.stop_waiting()
            self._watches.forget(turns)

    def positions(self) -> dict[str, dict[str, Position]]:
        """Return how far each file was told, by key and path."""
        return {key: followed.positions() for key, followed in self._followed.items()}

    async def catch_up(self, key: str, within_s: float) -> bool:
        """Tell all that is there by now, without waiting for its second; say whether that was done in time."""
        since = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(within_s):
                while (followed := self._followed.get(key)) is not None and self._hurry(followed, since):
                    followed.progress.clear()
                    await followed.progress.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Tell nothing any more; `run` may be cancelled before or after."""
        for key in list(self._followed):
            self.forget(key)
        self._watches.close()

    async def run(self) -> None:
        """Look at files for ever."""
        async with asyncio.TaskGroup() as group:
            for _ in range(LOOKERS):
                group.create_task(self._take_turns())
            group.create_task(self._look_at_all())

    async def _look_at_all(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AT_ALL_S)
            for followed in self._followed.values():
                self._wake(followed.listing)

    def _hurry(self, followed: _Followed, since: float) -> bool:
        """Look at once at what was not read to its end since then; say whether there is any."""
        late = [turn for turn in followed.turns() if turn.read_at < since]
        for turn in late if followed.listing not in late else [followed.listing]:  # it may find more
            if turn.doubted_at is None:
                self._wake(turn, 0.0)
        return bool(late)

    def _wake(self, turn: _Turn, after_s: float | None = None) -> None:
        """Look at something once so much time has passed since the last look, however often it is woken until then."""
        if turn.is_working or turn.is_ready:
            turn.again |= turn.is_working
            return
        loop = asyncio.get_running_loop()
        due_at = turn.looked_at + (self._look_s if after_s is None else after_s)
        if turn.timer is not None and turn.timer.when() <= due_at:
            return
        turn.stop_waiting()
        if due_at > loop.time():
            turn.timer = loop.call_at(due_at, self._queue, turn)
        else:
            self._queue(turn)

    def _queue(self, turn: _Turn) -> None:
        turn.timer = None
        turn.is_ready = True
        turn.followed.ready.append(turn)
        self._offer(turn.followed)

    def _offer(self, followed: _Followed) -> None:
        """Line up a key that has something to look at: one turn for each key, however much each of them has."""
        if followed.ready and not followed.is_offered and not followed.hung:
            followed.is_offered = True
            self._ready.put_nowait(followed)

    async def _take_turns(self) -> None:
        hands = _Hands()
        try:
            while True:
                turn = await self._next_turn()
                turn.begin(asyncio.get_running_loop().time())
                done = hands.do(partial(turn.look, self._watches))
                await asyncio.wait([done], timeout=DEADLINE_S if self._hung < MOST_HUNG else None)
                if done.done():
                    await asyncio.sleep(self._finish(turn, done))
                else:
                    self._leave_alone(turn, done)
                    hands.end()
                    hands = _Hands()
        finally:
            hands.end()

    async def _next_turn(self) -> _Turn:
        while True:
            followed = await self._ready.get()
            followed.is_offered = False
            if self._is_followed(followed) and not followed.hung:
                turn = followed.ready.popleft()
                self._offer(followed)
                return turn

    def _is_followed(self, followed: _Followed) -> bool:
        return self._followed.get(followed.key) is followed

    def _leave_alone(self, turn: _Turn, done: asyncio.Future[None]) -> None:
        """Let a look that hangs end when it can; until then nothing else of its key is looked at."""
        log.warning("file hangs", key=turn.followed.key, file=turn.name, waited_s=DEADLINE_S)
        turn.followed.hung += 1
        self._hung += 1
        done.add_done_callback(partial(self._come_back, turn))

    def _come_back(self, turn: _Turn, done: asyncio.Future[None]) -> None:
        turn.followed.hung -= 1
        self._hung -= 1
        self._finish(turn, done)

    def _finish(self, turn: _Turn, done: asyncio.Future[None]) -> float:
        """Take in what a look found, tell it, and see when to look next; return the pause that it costs."""
        turn.is_working = False
        turn.looked_at = asyncio.get_running_loop().time()
        followed = turn.followed
        if not self._is_followed(followed):
            return 0.0
        if (error := done.exception()) is not None:
            log.error("look failed", key=followed.key, file=turn.name, why=repr(error), next_look_s=POLL_S)
            turn.is_polled = True
        else:
            for other in turn.take_in():
                self._wake(other)
        if turn.more:
            self._queue(turn)
        elif turn.again:
            self._wake(turn)
        elif turn.is_polled:
            self._wake(turn, POLL_S)
        self._offer(followed)
        followed.progress.set()
        return turn.cost_s


class _Turn:
    """Something of a key that is looked at, by one thread at a time."""

    name = ""

    def __init__(self, followed: _Followed) -> None:
        self.followed = followed
        self.timer: asyncio.TimerHandle | None = None
        self.is_ready = False
        self.is_working = False
        self.again = False  # it was woken while it was looked at
        self.more = False
        self.is_polled = False  # nobody will say when to look again
        self.doubted_at: float | None = None
        self.began_at = -math.inf
        self.looked_at = -math.inf
        self.read_at = -math.inf  # the last look that left nothing began then
        self.cost_s = 0.0

    def begin(self, now: float) -> None:
        self.is_ready = self.again = self.more = self.is_polled = False
        self.is_working = True
        self.began_at = now

    @property
    def is_idle(self) -> bool:
        return not (self.is_working or self.is_ready or self.timer)

    def stop_waiting(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def look(self, watches: Watches[_Turn]) -> None:
        """Read, in a thread."""
        raise NotImplementedError

    def take_in(self) -> Iterable[_Turn]:
        """Take in what was read, on the loop; return what to look at because of it."""
        raise NotImplementedError


class _File(_Turn):
    """One file, and how far it was told."""

    def __init__(self, followed: _Followed, path: str, position: Position | None, from_end: bool = False) -> None:
        super().__init__(followed)
        self.name = self.path = path
        self.position = position
        self.version: Version | None = None  # as it was listed
        self.outcome: tuple[Outcome, str] | None = None
        self._from_end = from_end
        self._taken = Taken(position, Outcome.READ)

    def look(self, watches: Watches[_Turn]) -> None:
        """Watch for what is written next, then read: so nothing falls between the two."""
        on_open = partial(self._watch, watches)
        roots = self.followed.real_roots
        if self.position is None and self._from_end:
            self._taken = read_end(self.path, roots, on_open)
        else:
            self._taken = read_lines(self.path, self.position, roots, LOOK_BYTES, LOOK_LINES, on_open)

    def _watch(self, watches: Watches[_Turn], fd: int) -> None:
        try:
            watches.ask(f"/proc/self/fd/{fd}", IN_MODIFY, self)  # this very file, whatever has its name by now
        except OSError:
            self.is_polled = True

    def take_in(self) -> Iterable[_Turn]:
        """Tell what was read; the position moves with it."""
        taken = self._taken
        self.cost_s = max(taken.read_bytes / BYTES_PER_S, len(taken.lines) / LINES_PER_S)
        if taken.outcome in BEGUN_ANEW and not self._is_certain():
            self.again = True
            return (self.followed.listing,)
        self.doubted_at = None
        self.more = taken.more
        self.is_polled |= taken.outcome is Outcome.FAILED
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
        """Say whether a file that seems to have begun anew was asked before: whoever writes it anew may not be done.

        By then its folder was listed too, so that what was renamed has taken its position along.
        """
        if self.doubted_at is None:
            self.doubted_at = self.began_at
        return self.followed.listing.read_at > self.doubted_at

    def tell(self, taken: Taken) -> None:
        """Pass on what became of the file."""
        try:
            self.followed.on_lines(self.followed.key, self.path, taken)
        except Exception as error:  # read again, it would be raised again: one agent's words must not stop all others'
            log.error("lines not taken in", key=self.followed.key, file=self.path, lines=len(taken.lines), why=repr(error))


class _Listing(_Turn):
    """The files of a key that are there, found again whenever a folder changes in which one may appear."""

    name = "its folders"

    def __init__(self, followed: _Followed) -> None:
        super().__init__(followed)
        self._found: dict[str, Version] = {}

    def look(self, watches: Watches[_Turn]) -> None:
        if not self.followed.real_roots:
            self.followed.real_roots = resolve(self.followed.roots)
        walk = _Walk(partial(watches.ask, mask=IN_FOLDER, who=self))
        for pattern in self.followed.patterns:
            walk.find("/", tuple(part for part in pattern.split("/") if part))
        self.is_polled = walk.is_unwatched
        self._found = walk.files

    def take_in(self) -> Iterable[_Turn]:
        """Follow what appeared; return it with what changed or went."""
        self.cost_s = LISTING_S
        if self.followed.begin(self._found):
            self.read_at = self.began_at
        else:
            self.again = True
        return self.followed.update(self._found)


@dataclass(eq=False)
class _Followed:
    """All files of one key."""

    key: str
    patterns: tuple[str, ...]
    roots: tuple[str, ...]
    on_lines: OnLines
    from_end: bool
    real_roots: tuple[str, ...] = ()
    files: dict[str, _File] = field(default_factory=dict)
    ready: deque[_Turn] = field(default_factory=deque)  # to be looked at
    is_offered: bool = False
    hung: int = 0  # looks that nobody waits for any more
    progress: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.listing = _Listing(self)

    def turns(self) -> list[_Turn]:
        return [self.listing, *self.files.values()]

    def positions(self) -> dict[str, Position]:
        return {path: file.position for path, file in self.files.items() if file.position is not None}

    def begin(self, found: Mapping[str, Version]) -> bool:
        """Follow the files that appeared; say whether that could be decided for all of them."""
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

    def _files_that_left(self, found: Mapping[str, Version]) -> dict[tuple[int, int], list[_File]]:
        """Return, by device and inode, under which names was read what has these names no more."""
        left: dict[tuple[int, int], list[_File]] = {}
        for path, file in self.files.items():
            if file.position is not None:
                number = file.position.device, file.position.inode
                if path not in found or found[path][:2] != number:
                    left.setdefault(number, []).append(file)
        return left

    def _begin_one(self, path: str, before: list[_File]) -> None:
        """Follow a file; one that was renamed begins where it was left.

        Whether it is the same is seen when it is read. Until then both names have the position, and that is told before
        anything is told of what has the old name now: so nothing is told twice if we end in between.
        """
        position = max((file.position for file in before if file.position), key=lambda at: at.offset, default=None)
        file = self.files[path] = _File(self, path, position, self.from_end)
        if position is not None:
            file.tell(Taken(position, Outcome.MOVED))

    def update(self, found: Mapping[str, Version]) -> list[_Turn]:
        """Take in what there is of each file; return those to look at."""
        changed = [file for path, file in self.files.items() if file.version != found.get(path) or file.outcome is None]
        for file in changed:
            file.version = found.get(file.path)
        return [*changed]


class _Walk:
    """Finds the files that patterns match, and watches the folders in which more may appear before it looks into them."""

    def __init__(self, watch: Callable[[str], None]) -> None:
        self.files: dict[str, Version] = {}
        self.is_unwatched = False
        self._watch_folder = watch
        self._watched: set[str] = set()
        self._entries_left = MOST_ENTRIES

    def find(self, folder: str, parts: tuple[str, ...], depth: int = MOST_DEPTH) -> None:
        """Find what matches below a folder."""
        if not parts or depth == 0:
            return
        part, rest = parts[0], parts[1:]
        if MAGIC.search(ESCAPED.sub("", part)):
            self._find_many(folder, part, rest, depth)
        else:
            self._find_one(folder, ESCAPED.sub(r"\1", part), rest, depth)

    def _find_one(self, folder: str, name: str, rest: tuple[str, ...], depth: int) -> None:
        path = os.path.join(folder, name)
        if not rest:
            self._watch(folder)
            self._add(path)
        elif os.path.isdir(path) or (self._watch(folder) and os.path.isdir(path)):
            self.find(path, rest, depth - 1)

    def _find_many(self, folder: str, part: str, rest: tuple[str, ...], depth: int) -> None:
        self._watch(folder)
        if part == "**":
            self.find(folder, rest, depth - 1)
        for name, is_folder in self._entries(folder):
            path = os.path.join(folder, name)
            if part == "**" and is_folder:
                self.find(path, (part, *rest), depth - 1)
            elif part != "**" and fnmatchcase(name, part) and (is_folder if rest else not is_folder):
                self.find(path, rest, depth - 1) if rest else self._add(path)

    def _entries(self, folder: str) -> Iterator[tuple[str, bool]]:
        """Yield what is in a folder and whether it is one itself, links aside; the last by name first: dates count up."""
        try:
            with os.scandir(folder) as entries:
                found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name[0] != "."]
        except OSError:
            return
        found.sort(reverse=True)
        yield from found[: self._entries_left]
        self._entries_left -= min(self._entries_left, len(found))

    def _add(self, path: str) -> None:
        try:
            found = os.lstat(path)
        except OSError:
            return
        if not stat.S_ISDIR(found.st_mode):
            self.files[path] = found.st_dev, found.st_ino, found.st_size

    def _watch(self, folder: str) -> bool:
        """Watch a folder, once; there is always something to look for afterwards."""
        if folder not in self._watched:
            self._watched.add(folder)
            try:
                if len(self._watched) <= MOST_FOLDERS:
                    self._watch_folder(folder)
            except FileNotFoundError:
                pass  # whoever removed it changed a folder above, or the look at all finds it
            except OSError:
                self.is_unwatched = True
        return True


class _Hands:
    """A thread that does one thing after the other; left alone with one that hangs, it keeps nobody from ending."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], None], asyncio.Future[None]] | None] = SimpleQueue()
        threading.Thread(target=self._work, name="following", daemon=True).start()

    def do(self, job: Callable[[], None]) -> asyncio.Future[None]:
        """Return what is done when the job is."""
        done = asyncio.get_running_loop().create_future()
        self._jobs.put((job, done))
        return done

    def end(self) -> None:
        """End after what is at work."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (given := self._jobs.get()) is not None:
            job, done = given
            error: Exception | None = None
            try:
                job()
            except Exception as raised:
                error = raised
            try:
                done.get_loop().call_soon_threadsafe(_settle, done, error)
            except RuntimeError:
                return  # the loop has ended


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if not done.done():
        done.set_result(None) if error is None else done.set_exception(error)
