"""What becomes of files while they are followed: written anew, cut, renamed, refused."""

from __future__ import annotations

import os
from pathlib import Path

from tests.unit.following import SOON_S, Told, append, following, literal, quiet
from vigil.observe.lines import BEGUN_ANEW, ReadOutcome, TakenLines
from vigil.runtimes.tail import release_head


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
    assert [outcome for outcome in told.outcomes() if outcome in BEGUN_ANEW] == [ReadOutcome.TRUNCATED, ReadOutcome.REPLACED]


async def test_a_file_that_goes_and_comes_back_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "a"
    append(path, b"one")
    told = Told()
    async with following() as subject:
        subject.follow("k", [literal(path)], [str(tmp_path)], told)
        await told.until_told(b"one")
        path.unlink()
        await told.until(lambda: ReadOutcome.GONE in told.outcomes())
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
        assert told.calls[-1][2] == TakenLines(position, ReadOutcome.MOVED)
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
    refused = {name: taken.why for _, name, taken in told.calls if taken.outcome is ReadOutcome.REFUSED}
    assert refused == {
        "link": "it is a symbolic link",
        "folder": "it is a symbolic link",
        "fifo": "it is no regular file",
        "secret": f"it really is {tmp_path}/folder/secret, outside of what the agent owns",
    }
    assert told.outcomes().count(ReadOutcome.REFUSED) == 4


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
        await told.until(lambda: ReadOutcome.REFUSED in told.outcomes())

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
    assert set(told.outcomes()) == {ReadOutcome.READ}
