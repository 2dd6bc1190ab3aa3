"""Whatever is put in a database's place: ours comes back whole, the other is kept beside it, and nothing is mixed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.builders import make_session
from vigil.core.effects import LogEntry, Persist
from vigil.core.model.session import State
from vigil.store.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vigil.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path)
    for name in ("first", "second"):
        write(opened, name)
    yield opened
    opened.close()


def write(store: Store, kind: str) -> None:
    store.write([Persist(log=(LogEntry(1000.0, kind, None, None, None, {}),))], whole)


def whole() -> Persist:
    return Persist(sessions=(make_session(State.RUNNING, id="s1", name="known"),))


def kinds(store: Store) -> list[str]:
    return [event.entry.kind for event in store.read_events()]


def remove(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink()


def older_copy(path: Path) -> None:
    """Put an older copy there; what is written since was written over the pages it lacks."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM events")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(path, path.with_name("older"))
        connection.executemany("INSERT INTO events (at, kind, data) VALUES (1, ?, '{}')", [("first",), ("second",)])
        connection.commit()
    path.with_name("older").rename(path)


def another(path: Path) -> None:
    folder = path.parent / "another"
    folder.mkdir()
    other = Store(folder / "vigil.db")
    write(other, "theirs")
    other.close()
    (folder / "vigil.db").rename(path)


def notes(path: Path) -> None:
    path.with_name("notes").write_text("no database at all\n" * 100)
    path.with_name("notes").rename(path)


@pytest.mark.parametrize(("lose", "kept"), [(remove, 0), (older_copy, 1), (another, 1), (notes, 1)])
def test_ours_is_back_whole_and_what_lay_there_is_kept(
    store: Store, path: Path, lose: Callable[[Path], None], kept: int
) -> None:
    lose(path)
    theirs = path.read_bytes() if path.exists() else b""
    assert store.is_lost()

    write(store, "third")

    assert (kinds(store), store.is_lost(), store.begun_anew) == (["first", "second", "third"], False, 1)
    asides = list(path.parent.glob("vigil.db.found-*"))
    assert [aside.read_bytes() for aside in asides] == [theirs] * kept
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    store.close()
    again = Store(path)
    assert (kinds(again), again.read_sessions(), again.aside) == (["first", "second", "third"], [], None)
    again.close()


def test_what_is_damaged_and_gone_is_written_from_what_is_known(store: Store, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    fd = os.open(path, os.O_RDWR)
    size = os.fstat(fd).st_size
    os.pwrite(fd, b"\xde\xad" * ((size - 4096) // 2), 4096)
    os.close(fd)
    remove(path)

    write(store, "third")

    assert (kinds(store), [session.name for session in store.read_sessions()]) == (["third"], ["known"])


def test_a_new_daemon_puts_another_instances_database_aside_and_takes_its_own_older_one(store: Store, path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    store.close()
    another(path)

    opened = Store(path)
    assert opened.aside is not None and opened.aside.exists()
    assert kinds(opened) == []
    opened.close()

    path.with_name("copy").rename(path)
    opened = Store(path)
    assert opened.aside is None
    opened.close()
