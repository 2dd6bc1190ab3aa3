"""The hook spool: what agents' hooks wrote, read once, in order; a rename names each file, so a named one is whole.

Nothing stops the reading: other files go to `bad/`, and what cannot be moved is remembered and passed over."""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vigil.core.model.speech import Hook, Said
from vigil.kernel.theirs import opened_folder, remove_tree, theirs
from vigil.text import decode, one_line

HOOK_BYTES = 1 << 20
LAUNCH_ID_CHARS = 100
WAITING = 20_000  # files that may wait; beyond them the oldest of the launch with the most go unread
HEAD_BYTES = 1024  # where our hook says whose it is
KEPT_BAD = 100
UNFINISHED_S = 600.0  # a hook takes milliseconds; the writer of an older file has gone
OUR_LACK = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})  # no fault of the file: it is asked again
LAUNCH_KEYS = ("VIGIL_LAUNCH", "launch")
LAUNCH_IN = re.compile(rb'"(?:VIGIL_LAUNCH|launch)"\s{0,9}:\s{0,9}"([^"\\]{1,100})"')
TOKEN = "token"
TOKEN_IN = re.compile(rb'"token"\s{0,9}:\s{0,9}"([0-9a-f]{1,64})"')
PAYLOAD_KEYS = ("event", "payload")
NAME_KEYS = ("hook_event_name", "type", "event", "kind")  # where its name may stand; the first that is text counts
NAME_CHARS = 80
TIME = "timestamp"
ReadSaid = Callable[[str, Mapping[str, Any]], tuple[Said, ...]]  # a launch, and the payload of one of its hooks
IsTheirs = Callable[[str, str], bool | None]  # whether a launch has this token; None for an unknown launch
Version = tuple[int, int]  # inode and time of writing: another file of the same name has another


@dataclass(frozen=True, slots=True)
class TakenHooks:
    """One slice's hooks; the files stay until `done` is told their names."""

    hooks: tuple[Hook, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpoolCounts:
    """Since the start: hooks taken, files that were none, files removed unread; and the files that wait."""

    taken: int
    bad: int
    flooded: int
    backlog: int


class Bad(Exception):
    """A file that is no hook event."""


class TooLarge(Bad):
    """A file that is not even worth keeping."""


class Spool:
    def __init__(
        self,
        folder: Path,
        read_said: ReadSaid = lambda _launch_id, _payload: (),
        is_theirs: IsTheirs = lambda _launch_id, _token: True,
        waiting: int = WAITING,
    ) -> None:
        self._most = waiting
        self._folder = folder
        self._read_said = read_said
        self._is_theirs = is_theirs
        self._waiting: deque[str] = deque()  # listed and not yet read, in order
        self._held: dict[str, Version] = {}  # read and not yet removed
        self._finished: set[str] = set()  # the held ones that are done
        self._stuck: dict[str, Version] = {}  # could be neither moved nor removed
        self._taken_count = 0
        self._bad_count = 0
        self._flooded_count = 0

    @property
    def counts(self) -> SpoolCounts:
        return SpoolCounts(self._taken_count, self._bad_count, self._flooded_count, len(self._waiting))

    def take(self, limit: int, now: float) -> TakenHooks:
        """Read up to `limit` files in order, hooks as much older than `now` as their files; OSError: unreadable folder."""
        begun_at = time.time()  # once: files named in one tick of the clock are of one moment, and stay in order
        with opened_folder(self._folder, "new") as new:
            self._remove_finished(new)
            if not self._waiting:
                self._list(new)
            return self._read_slice(new, limit, now - begun_at)

    def done(self, names: Iterable[str]) -> None:
        """Remove taken files; OSError if the folder cannot be read, and the next call removes them."""
        self._finished.update(names)
        with opened_folder(self._folder, "new") as new:
            self._remove_finished(new)

    def _remove_finished(self, new: int) -> None:
        while self._finished:
            name = self._finished.pop()
            version = self._held.pop(name, None)
            if version is not None and version == _version_of(new, name):
                self._remove(new, name)

    def _list(self, new: int) -> None:
        """List what waits, oldest first; remove what is too much or too old."""
        found = sorted(self._find(new))
        self._stuck = {name: version for _, name, version in found if self._stuck.get(name) == version}
        self._waiting.extend(name for _, name, _ in found if name not in self._held and name not in self._stuck)
        if len(self._waiting) > self._most:
            self._thin(new)
        self._sweep_tmp()

    def _thin(self, new: int) -> None:
        """Remove the oldest of the launches that have the most, so that the rest may wait; what is forged is of one."""
        whose = {name: self._whose(new, name) for name in self._waiting}
        counts = Counter(whose.values())
        share = _share(counts.values(), self._most)
        kept: deque[str] = deque()
        for name in self._waiting:
            counts[whose[name]] -= 1
            if counts[whose[name]] < share:
                kept.append(name)
            else:
                self._remove(new, name)
                self._flooded_count += 1
        self._waiting = kept

    def _whose(self, new: int, name: str) -> str:
        launch, token = _said_in(new, name)
        return launch if self._is_theirs(launch, token) else ""

    def _find(self, new: int) -> Iterator[tuple[int, str, Version]]:
        """Yield each file's naming time (rename sets ctime), its name, and which file it is."""
        for name, found in _entries(new):
            if not name.startswith("."):
                yield found.st_ctime_ns, name, _version(found)
            elif _is_left_over(found):
                self._remove(new, name)

    def _sweep_tmp(self) -> None:
        """Remove files that were begun long ago."""
        try:
            with opened_folder(self._folder, "tmp") as tmp:
                for name, found in _entries(tmp):
                    if _is_left_over(found):
                        remove_tree(name, tmp)
        except OSError:
            pass  # hooks can be read without it

    def _read_slice(self, new: int, limit: int, offset_s: float) -> TakenHooks:
        hooks: list[Hook] = []
        names: list[str] = []
        bad_before = self._bad_count
        for _ in range(min(limit, len(self._waiting))):
            name = self._waiting.popleft()
            try:
                hook, version = self._read_hook(new, name, offset_s)
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno in OUR_LACK:
                    self._waiting.appendleft(name)
                    break
                self._put_aside(new, name)
            except TooLarge:
                self._bad_count += 1
                self._remove(new, name)
            except Bad:
                self._put_aside(new, name)
            else:
                hooks.append(hook)
                names.append(name)
                self._held[name] = version
        self._taken_count += len(names)
        if self._bad_count > bad_before:
            self._trim_bad()
        return TakenHooks(tuple(hooks), tuple(names))

    def _read_hook(self, new: int, name: str, offset_s: float) -> tuple[Hook, Version]:
        data, found = _read_file(new, name)
        launch_id, token, payload = _understand(data)
        if self._is_theirs(launch_id, token) is False:
            raise Bad
        written_at = min(found.st_ctime, time.time())  # of the file system's clock, which may differ from the caller's
        # A hook without a time was said when written: "in two hours" is not counted from its reading.
        said = self._read_said(launch_id, {TIME: written_at, **payload})
        return Hook(launch_id, _name_of(payload), written_at + offset_s, said), _version(found)

    def _put_aside(self, new: int, name: str) -> None:
        """Move a file that is no hook to where a person may look at it."""
        self._bad_count += 1
        try:
            (self._folder / "bad").mkdir(mode=0o700, exist_ok=True)
            with opened_folder(self._folder, "bad") as bad:
                os.rename(name, name, src_dir_fd=new, dst_dir_fd=bad)
        except OSError:
            self._remove(new, name)

    def _trim_bad(self) -> None:
        """Keep the newest of `bad/`; a file that grew too large there goes too."""
        try:
            with opened_folder(self._folder, "bad") as bad:
                found = sorted((found.st_ctime_ns, name, found.st_size) for name, found in _entries(bad))
                for number, (_, name, size_bytes) in enumerate(reversed(found)):
                    if number >= KEPT_BAD or size_bytes > HOOK_BYTES:
                        remove_tree(name, bad)
        except OSError:
            pass  # hooks can be read without it

    def _remove(self, new: int, name: str) -> None:
        """Remove an entry of `new/`; one that stays is passed over from now on."""
        if not remove_tree(name, new) and (version := _version_of(new, name)) is not None:
            self._stuck[name] = version


def _share(counts: Iterable[int], room: int) -> int:
    """Return how many each may have, so that all fit and those with fewer keep theirs."""
    left = deque(sorted(counts))
    while left and left[0] <= room // len(left):
        room -= left.popleft()
    return room // len(left) if left else room


def _entries(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                yield entry.name, entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue


def _is_left_over(found: os.stat_result) -> bool:
    return time.time() - found.st_mtime > UNFINISHED_S


def _version(found: os.stat_result) -> Version:
    return found.st_ino, found.st_mtime_ns


def _version_of(folder: int, name: str) -> Version | None:
    try:
        return _version(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except OSError:
        return None


def _read_file(new: int, name: str) -> tuple[bytes, os.stat_result]:
    with theirs(name, dir_fd=new) as (fd, found):
        if found.st_size > HOOK_BYTES:
            raise TooLarge
        return os.read(fd, found.st_size), found


def _said_in(folder: int, name: str) -> tuple[str, str]:
    """Return the launch and the token that the beginning of a file names, as far as it does."""
    try:
        with theirs(name, dir_fd=folder) as (fd, _):
            head = os.pread(fd, HEAD_BYTES, 0)
    except OSError:
        return "", ""
    launch, token = LAUNCH_IN.search(head), TOKEN_IN.search(head)
    return decode(launch[1]) if launch else "", decode(token[1]) if token else ""


def _understand(data: bytes) -> tuple[str, str, Mapping[str, Any]]:
    """Return the launch id, its token and the agent's own payload."""
    try:
        value = json.loads(decode(data))
    except (ValueError, RecursionError):
        raise Bad from None
    if not isinstance(value, dict):
        raise Bad
    launch_id = next((value[key] for key in LAUNCH_KEYS if key in value), None)
    if not isinstance(launch_id, str) or not 0 < len(launch_id) <= LAUNCH_ID_CHARS:
        raise Bad
    return launch_id, str(value.get(TOKEN, "")), _payload_of(value)


def _payload_of(value: dict[str, Any]) -> Mapping[str, Any]:
    """Return the payload inside an envelope, or the value itself where payload and launch id share one level."""
    if "hook_event_name" in value:
        return value
    return next((value[key] for key in PAYLOAD_KEYS if isinstance(value.get(key), dict)), value)


def _name_of(payload: Mapping[str, Any]) -> str:
    name = next((value for key in NAME_KEYS if isinstance(value := payload.get(key), str) and value), "")
    return one_line(name[:NAME_CHARS])


def forget_hooks(folder: Path, launch_ids: Collection[str]) -> int:
    """Remove unread hooks of these launches, also from `bad/`; return how many there were."""
    gone = 0
    for place in ("new", "bad"):
        try:
            with opened_folder(folder, place) as fd:
                found = [name for name in os.listdir(fd) if _said_in(fd, name)[0] in launch_ids]
                gone += sum(remove_tree(name, fd) for name in found)
        except OSError:
            continue  # there was none that is bad
    return gone
