"""Walking: finds the files that patterns match; watches each folder in which more may appear before it looks into it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

# Of one walk: an agent's further files are left.
MOST_FOLDERS = 200
MOST_ENTRIES = 10_000
MOST_DEPTH = 32

MAGIC = re.compile(r"[*?[]")
ESCAPED = re.compile(r"\[([*?[])\]")  # as glob.escape writes them

Version = tuple[int, int, int]  # device, inode and size


class Walk:
    """One walk, and its finds; `watch` watches a folder, or raises OSError."""

    def __init__(self, watch: Callable[[str], None]) -> None:
        self.files: dict[str, Version] = {}
        self.is_unwatched = False
        self._watch_folder = watch
        self._watched: set[str] = set()
        self._entries_left = MOST_ENTRIES

    def find(self, folder: str, parts: tuple[str, ...], depth: int = MOST_DEPTH) -> None:
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
        """Yield a folder's entries and whether each is a folder, without links; the last by name first: dates count up."""
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
                pass  # its removal changed a folder above, or the look at all finds it
            except OSError:
                self.is_unwatched = True
        return True


def fixed_folder(pattern: str) -> str:
    """Return the fixed folder of a pattern, above all that matches."""
    parts = os.path.dirname(pattern).split("/")
    kept = next((number for number, part in enumerate(parts) if MAGIC.search(part)), len(parts))
    return "/".join(parts[:kept]) or "/"
