"""The shelf keeps the newest deaths within its bounds and touches nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from vigil.forensics.shelf import LIMITS, UNFINISHED_S, Limits, Shelf

NOW = 2_000_000_000.0
DAY_S = 86400.0
REMOVER = """
import shutil, sys
from pathlib import Path
for folder in sorted(Path(sys.argv[1]).glob("d-*")):
    shutil.rmtree(folder, ignore_errors=True)
"""


def tidy(deaths: Path, now: float, limits: Limits = LIMITS) -> list[str]:
    return Shelf(deaths, limits).tidy(now)


def remove(deaths: Path, death_ids: Iterable[str]) -> list[str]:
    return Shelf(deaths).remove(death_ids)


@pytest.fixture
def deaths(tmp_path: Path) -> Path:
    folder = tmp_path / "deaths"
    folder.mkdir(mode=0o700)
    return folder


def put(deaths: Path, death_id: str, at: float, size_bytes: int = 1000) -> Path:
    folder = deaths / death_id
    folder.mkdir()
    report = json.dumps({"death": {"id": death_id, "at": at}})
    (folder / "report.json").write_text(report)
    (folder / "stderr.txt").write_text("x" * (size_bytes - len(report)))
    return folder


def names(deaths: Path) -> list[str]:
    return sorted(path.name for path in deaths.iterdir())


def test_of_too_many_the_oldest_deaths_go(deaths: Path) -> None:
    for number in (5, 3, 1, 4, 2):  # made in another order than they died
        put(deaths, f"d-s1-{number}", NOW - 100 + number)

    removed = tidy(deaths, NOW, limits=Limits(count=3))

    assert removed == ["d-s1-1", "d-s1-2"]
    assert names(deaths) == ["d-s1-3", "d-s1-4", "d-s1-5"]


def test_what_is_too_old_goes_however_little_there_is(deaths: Path) -> None:
    put(deaths, "d-old", NOW - 30 * DAY_S - 1)
    put(deaths, "d-young", NOW - 30 * DAY_S + 1)

    assert tidy(deaths, NOW) == ["d-old"]
    assert names(deaths) == ["d-young"]


def test_of_too_much_the_oldest_deaths_go_until_it_fits(deaths: Path) -> None:
    for number in range(5):
        put(deaths, f"d-s1-{number}", NOW - 100 + number, size_bytes=1000)

    assert tidy(deaths, NOW, limits=Limits(bytes=3500)) == ["d-s1-0", "d-s1-1"]


def test_within_the_bounds_nothing_goes(deaths: Path) -> None:
    for number in range(5):
        put(deaths, f"d-s1-{number}", NOW)

    assert tidy(deaths, NOW, limits=Limits(count=5, bytes=5000)) == []
    assert len(names(deaths)) == 5


@pytest.mark.parametrize(
    "report", [None, b"", b"{", b"[]", b'{"death": 7}', b'{"death": {"at": "x"}}', b'{"death": {"at": NaN}}']
)
def test_a_bundle_that_does_not_say_when_is_as_old_as_its_folder(deaths: Path, report: bytes | None) -> None:
    folder = deaths / "d-s1-1"
    folder.mkdir()
    if report is not None:
        (folder / "report.json").write_bytes(report)
    os.utime(folder, (NOW - 31 * DAY_S, NOW - 31 * DAY_S))

    assert tidy(deaths, NOW) == ["d-s1-1"]


def test_nothing_but_bundles_is_touched(deaths: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (deaths / "d-link").symlink_to(outside)
    (deaths / "d-file").write_text("x")
    for name in ("notes", "d-", "d-.hidden", "D-s1-1", "d-s1 1", "xd-s1-1", "d-s1-1.tmp"):
        (deaths / name).mkdir()
    before = names(deaths)

    assert tidy(deaths, NOW + 10**9, limits=Limits(count=0, bytes=0, age_s=0)) == []
    assert remove(deaths, before) == []

    assert names(deaths) == before
    assert (outside / "precious").exists()


@pytest.mark.parametrize("name", ["..", ".", "", "/", "d-../outside", "../outside", "d-/../../outside", "d-x\n", "d-x\0"])
def test_no_name_leads_out_of_the_shelf(deaths: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()

    assert remove(deaths, [name]) == []
    assert outside.exists() and deaths.exists()


def test_a_link_inside_a_bundle_is_removed_and_not_followed(deaths: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (put(deaths, "d-s1-1", NOW) / "more").symlink_to(outside)

    assert remove(deaths, ["d-s1-1"]) == ["d-s1-1"]
    assert (outside / "precious").exists()


def test_a_bundle_that_nobody_finished_goes_after_an_hour(deaths: Path) -> None:
    for name, age_s in (("d-s1-1.abc_d1.tmp", UNFINISHED_S + 1), ("d-s1-2.abc_d2.tmp", UNFINISHED_S - 1)):
        (deaths / name).mkdir()
        os.utime(deaths / name, (NOW - age_s, NOW - age_s))

    assert tidy(deaths, NOW) == []
    assert names(deaths) == ["d-s1-2.abc_d2.tmp"]


def test_without_a_folder_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert tidy(tmp_path / "none", NOW) == []
    assert remove(tmp_path / "none", ["d-s1-1"]) == []


def test_the_bundles_of_a_session_are_removed_and_no_namesakes(deaths: Path) -> None:
    for death_id in ("d-s1-1", "d-s1-2", "d-s1-10", "d-s10-1"):
        put(deaths, death_id, NOW)

    assert Shelf(deaths).remove(["d-s1-1", "d-s1-2", "d-s1-3"]) == ["d-s1-1", "d-s1-2"]
    assert names(deaths) == ["d-s1-10", "d-s10-1"]


def test_a_bundle_is_looked_into_once(deaths: Path) -> None:
    shelf = Shelf(deaths, Limits(count=1))
    first = put(deaths, "d-first", NOW - 2)
    shelf.tidy(NOW)
    (first / "report.json").write_text(json.dumps({"death": {"at": NOW}}))  # would be the younger one now

    put(deaths, "d-second", NOW - 1)

    assert shelf.tidy(NOW) == ["d-first"]


def test_a_bundle_that_was_replaced_is_looked_into_again(deaths: Path) -> None:
    shelf = Shelf(deaths, Limits(bytes=5000))
    put(deaths, "d-first", NOW - 2)
    second = put(deaths, "d-second", NOW - 1)
    shelf.tidy(NOW)

    larger = put(deaths, "d-aside", NOW - 1, size_bytes=4500)
    second.rename(deaths / "kept")
    larger.rename(second)

    assert shelf.tidy(NOW) == ["d-first"]


def test_what_vanished_no_longer_counts(deaths: Path) -> None:
    shelf = Shelf(deaths, Limits(count=2))
    for number in range(2):
        put(deaths, f"d-s1-{number}", NOW - 10 + number)
    shelf.tidy(NOW)
    remove(deaths, ["d-s1-1"])
    put(deaths, "d-s1-2", NOW)

    assert shelf.tidy(NOW) == []
    assert names(deaths) == ["d-s1-0", "d-s1-2"]


def test_a_thousand_deaths_leave_the_newest_five_hundred(deaths: Path) -> None:
    shelf = Shelf(deaths)
    for number in range(1000):
        put(deaths, f"d-s1-{number}", NOW + number, size_bytes=200)
        shelf.tidy(NOW + number)

    assert set(names(deaths)) == {f"d-s1-{number}" for number in range(500, 1000)}


def test_bundles_may_vanish_while_they_are_looked_at(deaths: Path) -> None:
    for number in range(300):
        put(deaths, f"d-s1-{number}", NOW + number)
    remover = subprocess.Popen([sys.executable, "-c", REMOVER, str(deaths)])
    try:
        while remover.poll() is None:
            tidy(deaths, NOW, limits=Limits(count=10))
    finally:
        remover.wait(timeout=30)

    assert tidy(deaths, NOW) == []
    assert names(deaths) == []
