"""Files are followed: every line is told once, across restarts too, and no agent and no file system holds up the others."""

from __future__ import annotations

import asyncio
import glob
import os
import shutil
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.following import SOON_S, Told, append, following, literal, quiet, stored
from vigil.daemon.sense.tail.files import LOOK_BYTES, LOOK_LINES, MOST_FILES
from vigil.daemon.sense.tail.turns import Following
from vigil.observe.lines import LINE_BYTES, Position, ReadOutcome, TakenLines

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
    assert set(told.outcomes()) == {ReadOutcome.READ}


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
        await told.until(lambda: told.outcomes().count(ReadOutcome.GONE) == 3)
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

    def refuse(key: str, path: str, taken: TakenLines) -> None:
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

    def _take_in(self, _key: str, path: str, taken: TakenLines) -> None:
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
