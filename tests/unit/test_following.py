"""Files are followed: every line is told once, across restarts too, and no agent and no file system holds up the others."""

from __future__ import annotations

import asyncio
import glob
import json
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vigil.daemon.followed import LOOK_BYTES, LOOK_LINES, MOST_FILES
from vigil.daemon.following import Following
from vigil.observe.inotify import IN_MODIFY, Watches
from vigil.observe.lines import BEGUN_ANEW, LINE_BYTES, Outcome, Position, Taken
from vigil.runtimes.tail import release_head

SOON_S = 20.0
OFTEN_S = 0.02


class Told:
    """What was told, and a way to wait for more."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Taken]] = []
        self.at: list[float] = []
        self._more = asyncio.Event()

    def __call__(self, key: str, path: str, taken: Taken) -> None:
        self.calls.append((key, os.path.basename(path), taken))
        self.at.append(time.monotonic())
        self._more.set()

    def lines(self, key: str | None = None) -> list[bytes]:
        return [line for whose, _, taken in self.calls if key in (None, whose) for line in taken.lines]

    def outcomes(self, name: str | None = None) -> list[Outcome]:
        return [taken.outcome for _, whose, taken in self.calls if name in (None, whose)]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON_S):
            while not holds():
                self._more.clear()
                await self._more.wait()

    async def until_told(self, *lines: bytes) -> None:
        await self.until(lambda: set(lines) <= set(self.lines()))


@asynccontextmanager
async def following(look_s: float = OFTEN_S) -> AsyncIterator[Following]:
    subject = Following(look_s)
    task = asyncio.create_task(subject.run())
    try:
        yield subject
    finally:
        subject.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def append(path: Path, *lines: bytes) -> None:
    with open(path, "ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))


def literal(path: Path) -> str:
    return glob.escape(str(path))


def stored(positions: dict[str, Position]) -> dict[str, Position]:
    """Return positions as they are after they were kept on disk."""
    kept = json.loads(json.dumps({path: position.as_json() for path, position in positions.items()}))
    read = {path: Position.from_json(value) for path, value in kept.items()}
    return {path: position for path, position in read.items() if position is not None}


# Lines


async def test_lines_are_told_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "a"
    append(path, b"one")
    told = Told()
    async with following() as subject:
        subject.follow("k", [literal(path)], [str(tmp_path)], told)
        await told.until_told(b"one")
        append(path, b"two")
        await told.until_told(b"two")
        with open(path, "ab", buffering=0) as file:
            file.write(b"thr")
            file.write(b"ee\n")
        await told.until_told(b"three")

    assert told.lines() == [b"one", b"two", b"three"]
    assert set(told.outcomes()) == {Outcome.READ}


async def test_files_and_folders_that_appear_later_are_found(tmp_path: Path) -> None:
    told = Told()
    patterns = [f"{glob.escape(str(tmp_path))}/p/x[[]1].jsonl", f"{glob.escape(str(tmp_path))}/p/x/sub/agent-*.jsonl"]
    async with following() as subject:
        subject.follow("k", patterns, [str(tmp_path)], told)
        assert await subject.catch_up("k", SOON_S)
        (tmp_path / "p").mkdir()
        append(tmp_path / "p" / "x[1].jsonl", b"one")
        await told.until_told(b"one")
        (tmp_path / "p" / "x" / "sub").mkdir(parents=True)
        append(tmp_path / "p" / "x" / "sub" / "agent-1.jsonl", b"two")
        append(tmp_path / "p" / "x" / "sub" / "other.jsonl", b"no")
        await told.until_told(b"two")
        append(tmp_path / "p" / "x" / "sub" / "agent-2.jsonl", b"three")
        await told.until_told(b"three")
        append(tmp_path / "p" / "x" / "sub" / "agent-1.jsonl", b"four")
        await told.until_told(b"four")
        shutil.rmtree(tmp_path / "p")
        await told.until(lambda: told.outcomes().count(Outcome.GONE) == 3)
        (tmp_path / "p" / "x" / "sub").mkdir(parents=True)
        append(tmp_path / "p" / "x" / "sub" / "agent-3.jsonl", b"five")
        await told.until_told(b"five")

    assert told.lines() == [b"one", b"two", b"three", b"four", b"five"]


async def test_two_stars_find_files_at_any_depth_and_no_hidden_ones(tmp_path: Path) -> None:
    for name in ("a.jsonl", "x/a.jsonl", "x/y/z/a.jsonl", ".h/a.jsonl", "x/.a.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        append(tmp_path / name, name.encode())
    told = Told()
    async with following() as subject:
        subject.follow("k", [f"{literal(tmp_path)}/**/*.jsonl"], [str(tmp_path)], told)
        assert await subject.catch_up("k", SOON_S)

    assert sorted(told.lines()) == [b"a.jsonl", b"x/a.jsonl", b"x/y/z/a.jsonl"]


async def test_a_file_that_is_there_can_be_followed_from_its_end_and_one_that_comes_from_its_beginning(tmp_path: Path) -> None:
    append(tmp_path / "a", b"old")
    told = Told()
    async with following() as subject:
        subject.follow("k", [f"{literal(tmp_path)}/?"], [str(tmp_path)], told, from_end=True)
        assert await subject.catch_up("k", SOON_S)
        append(tmp_path / "a", b"new")
        append(tmp_path / "b", b"later")
        await told.until_told(b"new", b"later")

    assert sorted(told.lines()) == [b"later", b"new"]


async def test_two_keys_follow_the_same_file_each_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "a"
    append(path, b"one")
    told = Told()
    async with following() as subject:
        for key in "kl":
            subject.follow(key, [literal(path)], [str(tmp_path)], told)
        await told.until(lambda: told.lines("k") == told.lines("l") == [b"one"])
        append(path, b"two")
        await told.until(lambda: told.lines("k") == told.lines("l") == [b"one", b"two"])
        subject.forget("k")
        append(path, b"three")
        await told.until(lambda: told.lines("l") == [b"one", b"two", b"three"])
        assert await subject.catch_up("k", SOON_S)

    assert told.lines("k") == [b"one", b"two"]


async def test_whoever_is_followed_anew_keeps_its_place(tmp_path: Path) -> None:
    told = Told()
    append(tmp_path / "a", b"one")
    async with following() as subject:
        subject.follow("k", [literal(tmp_path / "a")], [str(tmp_path)], told)
        await told.until_told(b"one")
        append(tmp_path / "b", b"two")
        subject.follow("k", [literal(tmp_path / "a"), literal(tmp_path / "b")], [str(tmp_path)], told)
        await told.until_told(b"two")
        assert await subject.catch_up("k", SOON_S)

    assert told.lines() == [b"one", b"two"]


async def test_nothing_is_told_after_the_end_and_nothing_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "a"
    append(path, b"one")
    before, after = Told(), Told()
    descriptors = len(os.listdir("/proc/self/fd"))
    async with following() as first:
        first.follow("k", [literal(path)], [str(tmp_path)], before)
        await before.until_told(b"one")
    async with following() as second:
        second.follow("k", [literal(path)], [str(tmp_path)], after)
        append(path, b"two")
        await after.until_told(b"two")

    assert before.lines() == [b"one"]
    assert len(os.listdir("/proc/self/fd")) == descriptors


async def test_who_cannot_take_lines_in_stops_nobody(tmp_path: Path) -> None:
    told = Told()

    def refuse(key: str, path: str, taken: Taken) -> None:
        told(key, path, taken)
        raise ValueError("no JSON")

    append(tmp_path / "a", b"one")
    async with following() as subject:
        subject.follow("k", [literal(tmp_path / "a")], [str(tmp_path)], refuse)
        await told.until_told(b"one")
        append(tmp_path / "a", b"two")
        await told.until_told(b"two")

    assert told.lines() == [b"one", b"two"]


# Pace


async def test_a_file_is_looked_at_once_in_its_time_however_often_it_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "a"
    append(path, b"0")
    look_s = 0.1
    told = Told()
    async with following(look_s) as subject:
        subject.follow("k", [literal(path)], [str(tmp_path)], told)
        await told.until_told(b"0")
        for number in range(1, 300):
            append(path, b"%d" % number)
            await asyncio.sleep(0.002)
        await told.until_told(b"299")

    assert told.lines() == [b"%d" % number for number in range(300)]
    assert len(told.calls) > 2
    assert all(later - sooner > 0.9 * look_s for sooner, later in zip(told.at, told.at[1:], strict=False))


async def test_a_change_after_a_quiet_time_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a"
    append(path, b"one")
    told = Told()
    async with following(look_s=1.0) as subject:
        subject.follow("k", [literal(path)], [str(tmp_path)], told)
        await told.until_told(b"one")
        await quiet(1.0)
        began = time.monotonic()
        append(path, b"two")
        await told.until_told(b"two")

    assert told.at[-1] - began < 0.8


async def quiet(seconds: float) -> None:
    """Let time pass in which nothing is written."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, passed.set)
    await passed.wait()


async def test_a_flood_of_one_agent_delays_nobody(tmp_path: Path) -> None:
    """One key has 15 files of 2000 lines; another gets a line now and then."""
    for number in range(15):
        append(tmp_path / f"flood-{number}", *(b"x" * 100 for _ in range(2000)))
    told, quick = Told(), Told()
    took: list[float] = []
    async with following() as subject:
        subject.follow("flood", [f"{literal(tmp_path)}/flood-*"], [str(tmp_path)], told)
        await told.until(lambda: len(told.lines()) > 0)
        append(tmp_path / "quick", b"0")
        subject.follow("quick", [literal(tmp_path / "quick")], [str(tmp_path)], quick)
        for number in range(10):
            began = time.monotonic()
            append(tmp_path / "quick", b"line %d" % number)
            await quick.until_told(b"line %d" % number)
            took.append(time.monotonic() - began)
        flooded = len(told.lines())
        await told.until(lambda: len(told.lines()) == 30_000)

    assert flooded < 30_000  # it was still going on
    assert max(took) < 2.0
    assert max(len(taken.lines) for _, _, taken in told.calls) <= LOOK_LINES
    assert max(taken.read_bytes for _, _, taken in told.calls) <= LOOK_BYTES


async def test_the_loop_is_never_held_up_by_what_is_read(tmp_path: Path) -> None:
    with open(tmp_path / "a", "wb") as file:
        file.write(b"x" * 10_000_000 + b"\n" + b"y" * (LINE_BYTES + 1) + b"\n" + b"z\n" * 1000)
    told = Told()
    latest = 0.0
    async with following() as subject:
        subject.follow("k", [literal(tmp_path / "a")], [str(tmp_path)], told)
        while told.lines()[-1:] != [b"z"] or len(told.lines()) < 1001:
            before = time.monotonic()
            await quiet(0.005)
            latest = max(latest, time.monotonic() - before)

    assert sum(taken.skipped for _, _, taken in told.calls) == 1
    assert latest < 5.0


async def test_a_file_system_that_hangs_holds_up_only_who_is_on_it(tmp_path: Path) -> None:
    class Hanging(str):
        """A pattern that takes as long to look up as the test wants."""

        may_go = threading.Event()

        def split(self, *by: Any) -> list[str]:
            self.may_go.wait(SOON_S)
            return super().split(*by)

    told = Told()
    append(tmp_path / "a", b"one")
    append(tmp_path / "b", b"two")
    async with following() as subject:
        for number in range(4):  # more than there are lookers
            subject.follow(f"hung {number}", [Hanging(literal(tmp_path / "a"))], [str(tmp_path)], told)
        subject.follow("k", [literal(tmp_path / "b")], [str(tmp_path)], told)
        await told.until_told(b"two")
        assert told.lines() == [b"two"]
        append(tmp_path / "b", b"three")
        await told.until_told(b"three")
        assert not await subject.catch_up("hung 0", 0.05)
        Hanging.may_go.set()
        await told.until(lambda: told.lines().count(b"one") == 4)
        append(tmp_path / "a", b"four")
        await told.until(lambda: told.lines().count(b"four") == 4)

    assert Counter(told.lines()) == {b"one": 4, b"two": 1, b"three": 1, b"four": 4}


async def test_all_that_is_there_is_told_before_a_launch_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "a"
    append(path, b"0")
    told = Told()
    async with following(look_s=60.0) as subject:
        subject.follow("k", [f"{literal(tmp_path)}/*"], [str(tmp_path)], told)
        await told.until_told(b"0")
        append(path, *(b"%d" % number for number in range(1, 1000)))
        append(tmp_path / "b", b"last")
        assert await subject.catch_up("k", SOON_S)
        assert sorted(told.lines()) == sorted([*(b"%d" % number for number in range(1000)), b"last"])


async def test_a_key_that_nobody_follows_is_caught_up_with() -> None:
    async with following() as subject:
        assert await subject.catch_up("k", SOON_S)


async def test_an_agent_that_makes_files_without_end_is_followed_only_so_far(tmp_path: Path) -> None:
    for number in range(MOST_FILES + 20):
        append(tmp_path / f"{number:04}", b"x")
    told = Told()
    async with following() as subject:
        subject.follow("k", [f"{literal(tmp_path)}/*"], [str(tmp_path)], told)
        assert await subject.catch_up("k", SOON_S)
        assert len(told.lines()) == MOST_FILES
        for number in range(30, MOST_FILES):
            (tmp_path / f"{number:04}").unlink()
        append(tmp_path / "new", b"the newest")
        await told.until_told(b"the newest")


# What becomes of files


async def test_a_file_that_is_written_anew_in_place_is_not_told_twice(tmp_path: Path) -> None:
    """Whoever does so empties it first, and is seen in between."""
    path = tmp_path / "a"
    append(path, b"one", b"two")
    append(tmp_path / "b", b"b")
    told = Told()
    async with following(look_s=0.6) as subject:
        subject.follow("k", [literal(path)], [str(tmp_path)], told)
        subject.follow("l", [literal(tmp_path / "b")], [str(tmp_path)], told)
        await told.until_told(b"one", b"b")
        await quiet(0.6)
        os.truncate(path, 0)
        append(tmp_path / "b", b"so it was looked at")
        await told.until_told(b"so it was looked at")
        append(path, b"one", b"two", b"three")
        await told.until_told(b"three")

    assert told.lines("k") == [b"one", b"two", b"three"]
    assert not BEGUN_ANEW & set(told.outcomes())


async def test_a_file_that_was_cut_or_replaced_is_told_from_its_beginning_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a"
    append(path, b"one", b"two")
    told = Told()
    async with following() as subject:
        subject.follow("k", [literal(path)], [str(tmp_path)], told)
        await told.until_told(b"two")
        path.write_bytes(b"cut\n")
        await told.until_told(b"cut")
        (tmp_path / "new").write_bytes(b"replaced\nby rename\n")
        os.replace(tmp_path / "new", path)
        await told.until_told(b"by rename")
        append(path, b"and followed")
        await told.until_told(b"and followed")

    assert told.lines() == [b"one", b"two", b"cut", b"replaced", b"by rename", b"and followed"]
    assert [outcome for outcome in told.outcomes() if outcome in BEGUN_ANEW] == [Outcome.TRUNCATED, Outcome.REPLACED]


async def test_a_file_that_goes_and_comes_back_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "a"
    append(path, b"one")
    told = Told()
    async with following() as subject:
        subject.follow("k", [literal(path)], [str(tmp_path)], told)
        await told.until_told(b"one")
        path.unlink()
        await told.until(lambda: Outcome.GONE in told.outcomes())
        append(path, b"one", b"two")
        await told.until_told(b"two")

    assert told.lines() == [b"one", b"two"]


async def test_a_file_that_is_turned_over_by_rename_loses_nothing_where_both_names_match(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, b"one")
    told = Told()
    async with following(look_s=0.2) as subject:
        subject.follow("k", [f"{literal(tmp_path)}/log*"], [str(tmp_path)], told)
        await told.until_told(b"one")
        append(path, b"two")
        path.rename(tmp_path / "log.1")
        append(path, b"three")
        append(tmp_path / "log.1", b"four")
        await told.until_told(b"two", b"three", b"four")

    assert sorted(told.lines()) == [b"four", b"one", b"three", b"two"]


async def test_a_file_that_is_renamed_says_so_and_keeps_its_place(tmp_path: Path) -> None:
    append(tmp_path / "log", b"one")
    told = Told()
    async with following() as subject:
        subject.follow("k", [f"{literal(tmp_path)}/log*"], [str(tmp_path)], told)
        await told.until_told(b"one")
        position = subject.positions()["k"][str(tmp_path / "log")]
        (tmp_path / "log").rename(tmp_path / "log.1")
        await told.until(lambda: bool(told.outcomes("log.1")))
        assert told.calls[-1][2] == Taken(position, Outcome.MOVED)
        append(tmp_path / "log.1", b"two")
        await told.until_told(b"two")

    assert told.lines() == [b"one", b"two"]


async def test_what_is_not_the_agents_is_refused_and_said_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    append(tmp_path / "secret", b"secret")
    (home / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "folder").mkdir()
    append(tmp_path / "folder" / "secret", b"secret")
    (home / "folder").symlink_to(tmp_path / "folder")
    os.mkfifo(home / "fifo")
    append(home / "mine", b"mine")
    told = Told()
    patterns = [f"{literal(home)}/*", literal(home / "folder" / "secret")]
    async with following() as subject:
        subject.follow("k", patterns, [str(home)], told)
        assert await subject.catch_up("k", SOON_S)
        append(tmp_path / "secret", b"more")
        (home / "new").touch()
        assert await subject.catch_up("k", SOON_S)

    assert told.lines() == [b"mine"]
    refused = {name: taken.why for _, name, taken in told.calls if taken.outcome is Outcome.REFUSED}
    assert refused == {
        "link": "it is a symbolic link",
        "folder": "it is a symbolic link",
        "fifo": "it is no regular file",
        "secret": f"it really is {tmp_path}/folder/secret, outside of what the agent owns",
    }
    assert told.outcomes().count(Outcome.REFUSED) == 4


async def test_a_root_that_becomes_a_link_later_leads_nowhere(tmp_path: Path) -> None:
    home, private = tmp_path / "home", tmp_path / "private"
    home.mkdir()
    private.mkdir()
    append(private / "a", b"secret")
    told = Told()
    async with following() as subject:
        subject.follow("k", [literal(home / "a")], [str(home)], told)
        assert await subject.catch_up("k", SOON_S)
        home.rmdir()
        home.symlink_to(private)
        await told.until(lambda: Outcome.REFUSED in told.outcomes())

    assert told.lines() == []


async def test_a_head_that_is_released_meanwhile_disturbs_nobody(tmp_path: Path) -> None:
    path = tmp_path / "a"
    told = Told()
    async with following() as subject:
        subject.follow("k", [literal(path)], [str(tmp_path)], told)
        for number in range(20):
            append(path, *(b"%d %d %s" % (number, line, b"x" * 1000) for line in range(20)))
            await told.until(lambda number=number: len(told.lines()) == 20 * (number + 1))  # type: ignore[misc]
            release_head(path, 8192)

    assert path.stat().st_blocks * 512 < 200_000 < path.stat().st_size
    assert set(told.outcomes()) == {Outcome.READ}


# Watches


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


# Restarts


async def test_the_next_daemon_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    append(tmp_path / "a", b"one")
    append(tmp_path / "b", b"two")
    told = Told()
    patterns, roots = [f"{literal(tmp_path)}/*"], [str(tmp_path)]
    async with following() as subject:
        subject.follow("k", patterns, roots, told)
        assert await subject.catch_up("k", SOON_S)
        kept = stored(subject.positions()["k"])
    append(tmp_path / "a", b"three")
    append(tmp_path / "c", b"four")
    (tmp_path / "b").rename(tmp_path / "d")
    async with following() as subject:
        subject.follow("k", patterns, roots, told, kept)
        assert await subject.catch_up("k", SOON_S)

    assert sorted(told.lines()) == [b"four", b"one", b"three", b"two"]


STEPS = st.one_of(
    st.tuples(st.sampled_from(["append", "append", "append", "extend", "empty", "turn over"]), st.sampled_from("abc")),
    st.tuples(st.sampled_from(["catch up", "wait", "restart", "crash"]), st.just("")),
)


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=25))
def test_across_restarts_at_any_moment_every_line_is_told_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    """A line may be lost where it was thrown away before anybody looked, and only there."""
    folder = tmp_path_factory.mktemp("files")
    world = World(folder)
    asyncio.run(world.play(steps))

    told = Counter(world.told)
    assert {line: count for line, count in told.items() if count > 1} == {}
    assert world.whole_lines() - set(told) == set()
    assert set(told) - set(world.written) == set()
    shutil.rmtree(folder)


class World:
    """Writers that number their lines, and daemons that follow them, one after the other.

    A file that is written anew and renamed before anybody looked is a new one: nobody can know it again. So that is not done.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.written: list[bytes] = []
        self.told: list[bytes] = []
        self._kept: dict[str, Position] = {}  # as each daemon keeps them, with the lines
        self._turned = 0
        self._unseen: set[str] = set()  # written anew since all was looked at

    def whole_lines(self) -> set[bytes]:
        return {line for path in self._folder.iterdir() for line in path.read_bytes().split(b"\n")[:-1]}

    async def play(self, steps: list[tuple[str, str]]) -> None:
        left = [*steps, ("restart", "")]
        while left:
            async with following(0.005) as subject:
                subject.follow("k", [f"{literal(self._folder)}/*"], [str(self._folder)], self._take_in, stored(self._kept))
                while left:
                    step, name = left.pop(0)
                    if step in ("restart", "crash"):
                        break
                    await self._do(subject, step, name)
                if step == "restart":
                    assert await subject.catch_up("k", SOON_S)
                    assert stored(subject.positions()["k"]) == self._kept

    def _take_in(self, _key: str, path: str, taken: Taken) -> None:
        self.told += taken.lines
        if taken.position is not None:
            self._kept[path] = taken.position

    async def _do(self, subject: Following, step: str, name: str) -> None:
        path = self._folder / name
        if step == "catch up" or (step == "turn over" and name in self._unseen):
            self._unseen.clear()
            assert await subject.catch_up("k", SOON_S)
        elif step == "wait":
            await quiet(0.01)
        elif step == "append":
            self._write(path, "ab", self._new_lines())
        elif step == "extend":
            self._unseen.add(name)
            self._write(path.with_name(f".{name}"), "wb", (path.read_bytes() if path.exists() else b"") + self._new_lines())
            os.replace(path.with_name(f".{name}"), path)
        elif step == "empty":
            self._write(path, "wb", self._new_lines())
        if step == "turn over" and path.exists():
            self._turned += 1
            path.rename(self._folder / f"{name}.{self._turned}")

    def _write(self, path: Path, mode: str, data: bytes) -> None:
        with open(path, mode) as file:
            file.write(data)

    def _new_lines(self) -> bytes:
        count = 1 + len(self.written) % 4
        lines = [b"line %d %s" % (len(self.written) + number, b"x" * 30) for number in range(count)]
        self.written += lines
        return b"\n".join(lines) + b"\n"
