"""The doctor's judgements: what a version, a limit or a database means."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from vigil.doctor import INSTANCE, MACHINE, Finding, Level
from vigil.doctor.database import read_database
from vigil.doctor.machine import judge_files, judge_tmux
from vigil.store.revision import HEAD


@pytest.mark.parametrize(
    ("said", "level", "part"),
    [
        ("tmux 3.1c", Level.PROBLEM, "too old"),
        ("tmux 2.9a", Level.PROBLEM, "too old"),
        ("tmux 3.2", Level.NOTE, "paste into a dead pane"),
        ("tmux 3.3a", Level.NOTE, "fixed in 3.4"),
        ("tmux 3.5a", Level.NOTE, "utempter"),
        ("tmux 3.6", Level.OK, "3.6"),
        ("tmux next-3.7", Level.OK, "next-3.7"),
        ("tmux 3.10", Level.OK, "3.10"),
        ("tmux master", Level.OK, "master"),
        ("tmux openbsd-7.6", Level.OK, "openbsd-7.6"),
        ("screen 4.9", Level.NOTE, "does not know"),
        ("", Level.NOTE, "does not know"),
    ],
)
def test_a_tmux_is_judged_by_its_version(said: str, level: Level, part: str) -> None:
    finding = judge_tmux(said)

    assert finding.level is level
    assert part in finding.says


def test_a_tmux_after_the_paste_fault_does_not_mention_it() -> None:
    assert "paste" not in judge_tmux("tmux 3.4").says


@pytest.mark.parametrize(
    ("hard", "sessions", "level"),
    [
        (1_048_576, 500, Level.OK),
        (-1, 500, Level.OK),
        (256, 10, Level.WARNING),
        (256, 49, Level.PROBLEM),
        (10, 1, Level.PROBLEM),
    ],
)
def test_open_files_are_judged_by_the_sessions_there_are(hard: int, sessions: int, level: Level) -> None:
    assert judge_files(256, hard, sessions).level is level


def test_a_warning_without_a_way_out_cannot_be_made() -> None:
    with pytest.raises(AssertionError):
        Finding(Level.WARNING, "something is wrong")


def test_no_check_has_the_name_of_another() -> None:
    assert not MACHINE.keys() & INSTANCE.keys()


def test_no_database_is_absent_and_an_empty_file_is_empty(tmp_path: Path) -> None:
    assert read_database(tmp_path / "vigil.db").state == "absent"
    (tmp_path / "vigil.db").touch()
    assert read_database(tmp_path / "vigil.db").state == "empty"


@pytest.mark.parametrize(("revision", "state"), [(HEAD, "current"), ("9999", "newer"), ("0000", "older")])
def test_a_database_is_judged_by_its_revision(tmp_path: Path, revision: str, state: str) -> None:
    path = make_database(tmp_path, revision)

    found = read_database(path)

    assert (found.state, found.session_ids) == (state, frozenset({"sabc"}))


def test_a_database_without_a_revision_is_somebody_elses(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "vigil.db") as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()

    assert read_database(tmp_path / "vigil.db").state == "foreign"


def test_a_file_that_is_no_database_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "vigil.db").write_bytes(b"not a database, but long enough to be looked at\n" * 100)

    assert read_database(tmp_path / "vigil.db").state == "damaged"


def test_a_database_with_torn_pages_is_damaged(tmp_path: Path) -> None:
    path = make_database(tmp_path, HEAD)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)

    assert read_database(path).state == "damaged"


def test_reading_a_database_in_wal_mode_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = make_database(tmp_path, HEAD, wal=True)
    before = sorted(tmp_path.iterdir())

    assert read_database(path).state == "current"

    assert sorted(tmp_path.iterdir()) == before == [path]


def make_database(folder: Path, revision: str, wal: bool = False) -> Path:
    connection = sqlite3.connect(folder / "vigil.db")
    if wal:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(
        f"""
        CREATE TABLE alembic_version (version_num TEXT);
        INSERT INTO alembic_version VALUES ('{revision}');
        CREATE TABLE sessions (id TEXT, name TEXT);
        INSERT INTO sessions VALUES ('sabc', 'a');
        """
    )
    connection.close()
    return folder / "vigil.db"
