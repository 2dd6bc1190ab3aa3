"""The shelf: keeps the death bundles within a count, an age and a size; the oldest deaths go first.

It touches only bundles, and unfinished ones whose writer is gone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from vigil.forensics.bundle import REPORT
from vigil.forensics.facts import number
from vigil.forensics.folders import ASIDE_NAME, BUNDLE_NAME
from vigil.kernel.theirs import read_object

UNFINISHED_S = 3600.0  # a bundle takes milliseconds; the writer of one this old is gone


@dataclass(frozen=True, slots=True)
class Limits:
    """How much the shelf keeps; an age of 0 is no limit."""

    count: int = 500
    age_s: float = 30 * 86400.0
    bytes: int = 64 << 20


class KeptBundle(NamedTuple):
    """One bundle: the inode of its folder, the moment of its death, and its size."""

    inode: int
    at: float
    bytes: int


Index = dict[str, KeptBundle]
LIMITS = Limits()


class Shelf:
    """One folder of bundles, with an index of them."""

    def __init__(self, deaths: Path, limits: Limits | Callable[[], Limits] = LIMITS) -> None:
        self._deaths = deaths
        self._limits = limits if callable(limits) else lambda: limits
        self._index: Index = {}

    def tidy(self, now: float) -> list[str]:
        """Remove bundles beyond the limits, and return the ids of their deaths; it reads only those new or replaced."""
        index, limits = self._index, self._limits()
        _refresh(self._deaths, now, index)
        total_bytes = sum(kept.bytes for kept in index.values())
        removed = []
        for death_id, kept in sorted(index.items(), key=lambda item: (item[1].at, item[0])):
            if (
                len(index) <= limits.count
                and total_bytes <= limits.bytes
                and (not limits.age_s or now - kept.at <= limits.age_s)
            ):
                break  # all that follow are younger
            del index[death_id]  # also if the removal fails: it must not drive out the others
            total_bytes -= kept.bytes
            if _remove(self._deaths / death_id):
                removed.append(death_id)
        return removed

    def remove(self, death_ids: Iterable[str]) -> list[str]:
        """Remove the bundles of these deaths, if they exist; return the ids of those removed."""
        named = [death_id for death_id in death_ids if BUNDLE_NAME.fullmatch(death_id)]
        folders = [self._deaths / death_id for death_id in named]
        there = [folder for folder in folders if os.path.isdir(folder) and not os.path.islink(folder)]
        return [folder.name for folder in there if _remove(folder)]


def _refresh(deaths: Path, now: float, index: Index) -> None:
    """Bring the index up to date with the folder."""
    found: set[str] = set()
    try:
        with os.scandir(deaths) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    continue
                if BUNDLE_NAME.fullmatch(entry.name):
                    found.add(entry.name)
                    known = index.get(entry.name)
                    if known is None or known.inode != entry.inode():
                        index[entry.name] = _measure(deaths / entry.name, entry.inode(), now)
                elif ASIDE_NAME.fullmatch(entry.name) and _is_unfinished(entry, now):
                    _remove(deaths / entry.name)
    except FileNotFoundError:
        pass  # no death yet
    for gone in index.keys() - found:
        del index[gone]


def _measure(folder: Path, inode: int, now: float) -> KeptBundle:
    """Return the size of a bundle and the moment of its death; size 0 if it vanishes meanwhile."""
    at, size = now, 0
    try:
        at = folder.stat().st_mtime
        with os.scandir(folder) as entries:
            size = sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
        death = read_object(folder / REPORT).get("death")
        at = (number(death.get("at")) if isinstance(death, dict) else None) or at
    except (OSError, ValueError):
        pass
    return KeptBundle(inode, at, size)


def _is_unfinished(entry: os.DirEntry[str], now: float) -> bool:
    try:
        return now - entry.stat(follow_symlinks=False).st_mtime > UNFINISHED_S
    except OSError:
        return False


def _remove(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not os.path.lexists(folder)
