"""What is over goes by count and by age, a few rows at a time; what is open or needed stays, and the file becomes smaller."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.builders import make_death, make_intent, make_launch, make_session
from tests.unit.core.rules.test_escalation import make_incident
from vigil.core.effects import LogEntry, Persist
from vigil.core.model.death import Death
from vigil.core.model.retention import Retention
from vigil.store import opening
from vigil.store.retention import BATCH, SPARE_PAGES
from vigil.store.store import Store

NOW = 1_700_000_000.0
FEW = Retention(events=10, deaths=10, incidents=10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vigil.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path)
    yield opened
    opened.close()


def make_deaths(count: int, session_id: str = "gone") -> tuple[Death, ...]:
    """Deaths of a session, a second apart, the last one now."""
    return tuple(
        make_death(id=f"d-{session_id}-{n}", session_id=session_id, launch_id=f"{session_id}-{n}", at=NOW - count + n)
        for n in range(1, count + 1)
    )


def prune_all(store: Store, retention: Retention = FEW, now: float = NOW) -> int:
    """Delete all that goes; return in how many steps."""
    steps = 1
    while store.prune(retention, now).are_many:
        steps += 1
    return steps


def rows(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_the_newest_of_each_are_kept_and_the_oldest_go_first(store: Store) -> None:
    events = tuple(LogEntry(NOW - 50 + n, f"k{n}") for n in range(50))
    over = tuple(make_incident(id=f"i{n}", opened_at=NOW - 50 + n, resolved_at=NOW) for n in range(50))
    store.write([Persist(log=events, deaths=make_deaths(50), incidents=over)])

    prune_all(store)

    assert [event.entry.kind for event in store.read_events()] == [f"k{n}" for n in range(40, 50)]
    assert [death.id for death in store.read_deaths()] == [f"d-gone-{n}" for n in range(50, 40, -1)]
    assert [incident.id for incident in store.read_incidents(everything=True)] == [f"i{n}" for n in range(49, 39, -1)]


def test_what_is_older_than_its_age_goes_however_few_there_are(store: Store) -> None:
    for age_s, left in ((5.5, 5), (0.0, 5)):  # 0 is no limit
        store.write([Persist(log=tuple(LogEntry(NOW - n, "k") for n in range(10, 0, -1)))] if age_s else [])
        prune_all(store, Retention(age_s=age_s))
        assert len(store.read_events()) == left


def test_one_step_deletes_few_rows_so_that_no_commit_waits_long(path: Path, store: Store) -> None:
    store.write([Persist(deaths=make_deaths(3 * BATCH + 10))])

    old = store.prune(FEW, NOW)

    assert (len(old.keys["deaths"]), old.are_many) == (BATCH, True)
    assert rows(path, "deaths") == 2 * BATCH + 10
    assert prune_all(store) == 3
    assert rows(path, "deaths") == 10


def test_what_is_open_or_the_last_of_a_session_stays_whatever_its_age(path: Path, store: Store) -> None:
    launches = (make_launch(created_at=1.0, ended_at=2.0), make_launch(number=2, created_at=3.0))
    store.write([Persist(sessions=(make_session(launch=launches[1]),), launches=launches, intents=(make_intent(at=4.0),))])
    deaths = [make_death(id=f"d-s1-{n}", launch_id=f"s1-{n}", at=float(n)) for n in (1, 2)]
    over = make_incident(id="over", resolved_at=2.0, opened_at=1.0)
    store.write([Persist(deaths=tuple(deaths), incidents=(make_incident(opened_at=1.0), over))])

    prune_all(store, Retention(events=1, deaths=1, incidents=1, age_s=1.0))

    assert [death.id for death in store.read_deaths()] == ["d-s1-2"]
    assert [incident.id for incident in store.read_incidents(everything=True)] == ["i1"]
    assert (rows(path, "launches"), rows(path, "intents"), rows(path, "sessions")) == (1, 1, 1)


def test_rows_that_a_crash_left_of_a_removed_session_go(path: Path, store: Store) -> None:
    left, new = make_launch("gone", created_at=NOW - 7200), make_launch("new", created_at=NOW)
    store.write([Persist(launches=(left, new), intents=(make_intent(session_id="gone", at=NOW - 7200),))])

    prune_all(store, Retention())

    assert (rows(path, "launches"), rows(path, "intents")) == (1, 0)


def test_it_is_known_since_when_records_are_there_also_to_the_next_daemon(path: Path, store: Store) -> None:
    store.write([Persist(deaths=make_deaths(50))])
    assert store.removed_until == {}

    prune_all(store)

    assert store.removed_until == {"deaths": NOW - 10}
    with closing(Store(path)) as again:
        assert again.removed_until == {"deaths": NOW - 10}


# The file


def test_free_pages_go_back_to_the_disk_a_few_at_a_time(path: Path, store: Store) -> None:
    for n in range(20):
        store.write([Persist(log=tuple(LogEntry(NOW, "k", data={"why": "x" * 4000, "n": n}) for _ in range(50)))])
    prune_all(store)
    before = free_pages(path)

    steps = 1
    while store.give_back():
        steps += 1

    assert steps > 5
    assert free_pages(path) == SPARE_PAGES < before
    store.close()
    assert path.stat().st_size < 2 << 20


def free_pages(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def make_old(path: Path) -> None:
    """A database of a version before, which never became smaller."""
    with closing(Store(path)) as store:
        store.write([Persist(log=tuple(LogEntry(NOW, f"k{n}") for n in range(100)), sessions=(make_session(),))])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")
        assert connection.execute("PRAGMA auto_vacuum").fetchone()[0] == 0


def is_shrinkable(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute("PRAGMA auto_vacuum").fetchone()[0] == opening.INCREMENTAL)


def test_a_database_of_a_version_before_becomes_one_that_can_shrink_and_loses_nothing(path: Path) -> None:
    make_old(path)

    with closing(Store(path)) as store:
        assert [event.seq for event in store.read_events()] == list(range(1, 101))
        assert store.read_sessions() == [make_session()]
    assert is_shrinkable(path)


def test_a_large_one_stays_as_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_old(path)
    monkeypatch.setattr(opening, "VACUUMED_BYTES", 1)

    with closing(Store(path)) as store:
        assert (len(store.read_events()), store.give_back()) == (100, False)
    assert not is_shrinkable(path)


def test_one_that_somebody_reads_is_opened_all_the_same(path: Path) -> None:
    make_old(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()

        with closing(Store(path)) as store:
            assert len(store.read_events()) == 100


def test_a_log_that_a_burst_made_long_is_cut_again(path: Path, store: Store) -> None:
    written = path.with_name(f"{path.name}-wal")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        for _ in range(30):
            store.write([Persist(log=tuple(LogEntry(NOW, "k", data={"why": "x" * 4000}) for _ in range(100)))])
        assert written.stat().st_size > opening.LONGEST_LOG_BYTES

    for _ in range(3):
        store.write([Persist(log=tuple(LogEntry(NOW, "k", data={"why": "x" * 4000}) for _ in range(100)))])

    assert written.stat().st_size <= opening.LONGEST_LOG_BYTES
