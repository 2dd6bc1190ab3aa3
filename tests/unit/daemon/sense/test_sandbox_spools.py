"""Hooks of confined agents come into the spool of all: whole, in order, at a bounded pace, each launch apart."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from vigil.daemon.sense.sandbox_spools import WAITING, SandboxSpools
from vigil.home import Home, home_at, make_home

LAUNCH = "s1-1"


@pytest.fixture
async def home(short: Path) -> AsyncIterator[Home]:
    found = home_at(short / "vigil")
    make_home(found)
    (found.launch(LAUNCH) / "spool" / "new").mkdir(parents=True)
    yield found


@pytest.fixture
async def spools(home: Home) -> AsyncIterator[SandboxSpools]:
    found = SandboxSpools(home)
    yield found
    found.close()


def say(home: Home, name: str) -> None:
    new = home.launch(LAUNCH) / "spool" / "new"
    (new / f".{name}").write_text("{}")
    (new / f".{name}").rename(new / name)


def arrived(home: Home) -> list[str]:
    return sorted(os.listdir(home.spool / "new"))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)


async def test_what_waits_and_what_comes_is_moved(home: Home, spools: SandboxSpools) -> None:
    say(home, "0.json")

    spools.follow(LAUNCH)

    await until(lambda: arrived(home) == [f"{LAUNCH}-0.json"])
    for number in range(1, 4):
        say(home, f"{number}.json")
        await until(lambda: len(arrived(home)) == number + 1)  # noqa: B023


async def test_an_unfinished_file_stays_and_a_link_is_moved_as_a_link(home: Home, spools: SandboxSpools) -> None:
    new = home.launch(LAUNCH) / "spool" / "new"
    (new / ".half.json").write_text("{")
    (new / "link.json").symlink_to("/dev/zero")

    await spools.finish(LAUNCH)

    assert arrived(home) == [f"{LAUNCH}-link.json"]
    assert os.path.islink(home.spool / "new" / f"{LAUNCH}-link.json")
    assert os.listdir(new) == [".half.json"]


async def test_files_that_go_while_their_folder_is_read_do_not_end_it(home: Home, spools: SandboxSpools) -> None:
    new, over = home.launch(LAUNCH) / "spool" / "new", threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            for number in range(20):
                (new / f"{number}.taken-back").write_text("{}")
            for number in range(20):
                (new / f"{number}.taken-back").unlink(missing_ok=True)

    restless = threading.Thread(target=come_and_go)
    restless.start()
    try:
        spools.follow(LAUNCH)
        for number in range(20):
            say(home, f"{number:05}.json")
            wanted = f"{LAUNCH}-{number:05}.json"
            await until(lambda: (home.spool / "new" / wanted).exists())  # noqa: B023
    finally:
        over.set()
        restless.join()


async def test_a_flood_loses_its_own_oldest(home: Home, spools: SandboxSpools) -> None:
    for number in range(WAITING + 50):
        say(home, f"{number:05}.json")

    await spools.finish(LAUNCH)

    assert len(arrived(home)) == WAITING
    assert os.listdir(home.launch(LAUNCH) / "spool" / "new") == []


async def test_a_name_that_is_too_long_for_the_spool_of_all_goes(home: Home, spools: SandboxSpools) -> None:
    (home.launch(LAUNCH) / "spool" / "new" / ("x" * 255)).write_text("{}")

    await spools.finish(LAUNCH)

    assert arrived(home) == os.listdir(home.launch(LAUNCH) / "spool" / "new") == []


async def test_a_launch_without_a_sandbox_has_none(home: Home, spools: SandboxSpools) -> None:
    spools.follow("s2-1")
    await spools.finish("s2-1")

    assert arrived(home) == []


async def test_a_link_in_the_place_of_its_folder_moves_nothing_of_others(
    home: Home, spools: SandboxSpools, short: Path
) -> None:
    theirs = short / "theirs"
    theirs.mkdir()
    (theirs / "letter").write_text("mine")
    new = home.launch(LAUNCH) / "spool" / "new"
    spools.follow(LAUNCH)
    say(home, "0.json")
    await until(lambda: arrived(home) == [f"{LAUNCH}-0.json"])
    new.rename(new.with_name("old"))
    new.symlink_to(theirs)

    spools.follow(LAUNCH)
    await spools.finish(LAUNCH)

    assert arrived(home) == [f"{LAUNCH}-0.json"]
    assert (theirs / "letter").read_text() == "mine"
