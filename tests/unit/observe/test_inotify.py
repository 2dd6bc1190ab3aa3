"""Watches of files and folders are told, until they are forgotten; a folder tells which names came or went."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.following import SOON_S, append
from vigil.kernel.inotify import CAME, IN_MODIFY, WENT
from vigil.observe.inotify import FolderWatch, Watches


async def test_a_watch_that_fires_before_the_loop_knows_of_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.touch()
    loop = asyncio.get_running_loop()
    fired = loop.create_future()
    watches: Watches[str] = Watches(fired.set_result)
    real = loop.call_soon_threadsafe
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *about: real(lambda: loop.call_later(0.1, *about)))

    watches.ask(str(path), IN_MODIFY, "who")
    append(path, b"x")

    assert await asyncio.wait_for(fired, SOON_S) == "who"
    watches.close()


async def test_whoever_is_forgotten_is_told_nothing_and_others_are(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    fired: list[str] = []
    told = asyncio.Event()

    def note(who: str) -> None:
        fired.append(who)
        told.set()

    watches = Watches(note)
    for who in ("forgotten", "kept"):
        watches.ask(str(path), IN_MODIFY, who)
    await asyncio.sleep(0)
    watches.forget(["forgotten"])
    append(path, b"x")
    await asyncio.wait_for(told.wait(), SOON_S)
    watches.close()

    assert fired == ["kept"]
    with pytest.raises(OSError, match="nothing is watched"):
        watches.ask(str(path), IN_MODIFY, "late")


class Told:
    """What a watch said so far, and a way to wait for more."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self._more = asyncio.Event()

    def __call__(self, names: list[str]) -> None:
        self.calls.append(names)
        self._more.set()

    @property
    def names(self) -> list[str]:
        return [name for call in self.calls for name in call]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON_S):
            while not holds():
                self._more.clear()
                await self._more.wait()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_a_file_that_is_renamed_into_the_folder_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    told = Told()
    watch = FolderWatch(folder, told, CAME)

    (tmp_path / "a").write_text("x")
    (tmp_path / "a").rename(folder / "b")
    await told.until(lambda: "b" in told.names)

    watch.close()
    assert told.names == ["b"]


async def test_a_file_that_is_written_in_place_is_told_when_it_is_closed(tmp_path: Path) -> None:
    told = Told()
    watch = FolderWatch(tmp_path, told, CAME)

    (tmp_path / "a").write_text("x")
    await told.until(lambda: "a" in told.names)

    watch.close()
    assert told.names == ["a"]


async def test_a_file_that_goes_is_told_to_whoever_asks_for_that(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("deleted", "moved"):
        (tmp_path / "folder" / name).write_text("x")
    told = Told()
    watch = FolderWatch(tmp_path / "folder", told, WENT)

    (tmp_path / "folder" / "came").write_text("x")
    (tmp_path / "folder" / "deleted").unlink()
    (tmp_path / "folder" / "moved").rename(tmp_path / "moved")
    await told.until(lambda: "moved" in told.names)

    watch.close()
    assert told.names == ["deleted", "moved"]


async def test_a_name_that_is_no_text_is_told_as_the_system_would_decode_it(tmp_path: Path) -> None:
    told = Told()
    watch = FolderWatch(tmp_path, told)
    name = os.fsdecode(b"caf\xe9")

    (tmp_path / name).write_text("x")
    await told.until(lambda: bool(told.names))

    watch.close()
    assert told.names == [name]


async def test_a_thousand_names_are_all_told_in_order(tmp_path: Path) -> None:
    told = Told()
    watch = FolderWatch(tmp_path, told)
    names = [f"{number:04}-{'x' * 100}" for number in range(1000)]

    for name in names:
        (tmp_path / name).write_text("x")
    await told.until(lambda: len(told.names) == len(names))

    watch.close()
    assert told.names == names
    assert len(told.calls) > 1  # more than one reading of the queue


async def test_a_queue_that_overflowed_says_to_look_at_everything(tmp_path: Path) -> None:
    room = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if room > 200_000:
        pytest.skip(f"this host queues {room} events: too many to make")
    (tmp_path / "a").write_text("x")
    told = Told()
    watch = FolderWatch(tmp_path, told)

    for _ in range(room // 2 + 2):  # two names in turn: equal events in a row would be merged
        os.rename(tmp_path / "a", tmp_path / "b")
        os.rename(tmp_path / "b", tmp_path / "a")
    await told.until(lambda: [] in told.calls)

    watch.close()
    assert set(told.names) == {"a", "b"}


async def test_a_folder_that_is_removed_says_to_look_at_everything(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    told = Told()
    watch = FolderWatch(folder, told)

    folder.rmdir()
    await told.until(lambda: bool(told.calls))

    watch.close()
    assert told.calls[0] == []


async def test_what_is_no_folder_is_refused_and_nothing_stays_open(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    before = descriptors()

    with pytest.raises(FileNotFoundError):
        FolderWatch(tmp_path / "none", Told())
    with pytest.raises(NotADirectoryError):
        FolderWatch(tmp_path / "file", Told())

    assert descriptors() == before


async def test_a_closed_watch_says_nothing_more(tmp_path: Path) -> None:
    before = descriptors()
    closed, told = Told(), Told()
    FolderWatch(tmp_path, closed).close()
    watch = FolderWatch(tmp_path, told)

    (tmp_path / "a").write_text("x")
    await told.until(lambda: bool(told.names))

    watch.close()
    assert closed.calls == []
    assert descriptors() == before


async def test_a_folder_that_was_removed_and_made_anew_is_watched_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    told = Told()
    watch = FolderWatch(folder, told, WENT)
    folder.rmdir()
    await told.until(lambda: [] in told.calls)
    folder.mkdir()

    watch.renew()
    (folder / "a").touch()
    (folder / "a").unlink()

    await told.until(lambda: "a" in told.names)
    watch.close()
