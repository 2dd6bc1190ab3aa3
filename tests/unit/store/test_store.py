"""What was made durable is there, whole or not at all; a database that cannot be trusted is refused and left as it is."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect
from sqlalchemy.schema import CreateTable

import vigil.store
from tests.unit.builders import (
    SITUATIONS,
    make_death,
    make_intent,
    make_launch,
    make_process,
    make_reading,
    make_session,
    make_spec,
)
from vigil.codec import dump, load
from vigil.core.effects import LogEntry, Persist
from vigil.core.model.death import Cause, Death, Intent
from vigil.core.model.launch import Launch
from vigil.core.model.reading import Axis
from vigil.core.model.restart import After, Hold, HoldReason
from vigil.core.model.session import Session, State
from vigil.errors import VigilError
from vigil.store.opening import DatabaseRefused, make_engine, migrate, open_database, read_revision
from vigil.store.revision import HEAD
from vigil.store.schema import metadata
from vigil.store.store import Store

MIGRATIONS = Path(vigil.store.__file__).parent / "migrations"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vigil.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path)
    yield opened
    opened.close()


def full_session() -> Session:
    """A session with something in every field."""
    launch = make_launch(
        started_at=1001.0,
        process=make_process(),
        root=make_process(101),
        server=make_process(102),
        pane="%0",
        ended_at=1100.5,
    )
    return make_session(
        State.CRASHED,
        spec=make_spec(command=("sh", "-c", 'echo "é\n\t世" \\ \x1b[31m')),
        why="crash: \u2028 'quoted' \x00",
        hold=Hold(HoldReason.BACKOFF, 1105.25),
        launch=launch,
        launches=1,
        charges=3,
        after=After.RELAUNCH,
        intent=make_intent(Cause.STALLED),
        last_death=make_death(intent=make_intent(), exit_code=None, signal=9),
        axes={axis: make_reading("alive", why="because") for axis in Axis},
        last_activity_at=1099.999,
        attached=2,
    )


def rows(path: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def log(kind: str = "a.note", at: float = 1000.0, session_id: str | None = None) -> LogEntry:
    return LogEntry(at, kind, session_id)


# Round trips


def test_every_field_of_a_session_comes_back_as_it_was(path: Path, store: Store) -> None:
    session = full_session()
    store.write([Persist(sessions=(session,))])
    store.close()

    reopened = Store(path)

    assert reopened.read_sessions() == [session]
    assert rows(path, "SELECT id, name, state FROM sessions") == [("s1", "alpha", "crashed")]
    reopened.close()


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_session_in_any_situation_comes_back_as_it_was(situation: str) -> None:
    session = SITUATIONS[situation]().session()

    assert load(Session, dump(session)) == session


def test_a_value_of_every_kind_comes_back_as_it_was() -> None:
    session = full_session()

    assert load(Launch, dump(session.launch)) == session.launch
    assert load(Intent, dump(make_intent())) == make_intent()
    assert load(Death, dump(make_death(intent=make_intent()))) == make_death(intent=make_intent())


def test_a_record_that_cannot_be_read_is_named_without_what_is_in_it(path: Path, store: Store) -> None:
    store.write([Persist(sessions=(make_session(),))])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE sessions SET body = json_set(body, '$.spec.cwd', 4711)")

    with pytest.raises(VigilError, match=r"cannot be read: Session\.spec\.cwd is …, not str; vigil doctor says more"):
        store.read_sessions()


def test_a_record_that_is_no_json_is_said_to_be_so(path: Path, store: Store) -> None:
    store.write([Persist(sessions=(make_session(),))])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE sessions SET body = '{'")

    with pytest.raises(VigilError, match="a stored record cannot be read: Session is no JSON; vigil doctor says more"):
        store.read_sessions()


def test_a_later_write_replaces_a_session_and_its_launch(path: Path, store: Store) -> None:
    before, after = make_session(State.RUNNING), make_session(State.STOPPED)
    store.write([Persist(sessions=(before,), launches=(make_launch(),))])

    store.write([Persist(sessions=(after,), launches=(make_launch(ended_at=1200.0),))])

    assert store.read_sessions() == [after]
    assert rows(path, "SELECT id, ended_at FROM launches") == [("s1-1", 1200.0)]


def test_several_decisions_in_one_write_count_in_their_order(store: Store) -> None:
    store.write([Persist(sessions=(make_session(state),)) for state in (State.STARTING, State.RUNNING, State.ENDING)])

    assert [session.state for session in store.read_sessions()] == [State.ENDING]


def test_a_removed_session_takes_all_that_is_keyed_by_it_and_nothing_else(path: Path, store: Store) -> None:
    other = make_session(id="s10", name="alpha10", launch=make_launch("s10"))
    for session in (make_session(), other):
        launch = make_launch(session.id)
        intent = make_intent(id=f"{launch.id}-stop", session_id=session.id, launch_id=launch.id)
        store.write([Persist(sessions=(session,), launches=(launch,), intents=(intent,))])

    store.write([Persist(removed=("s1",))])

    assert store.read_sessions() == [other]
    assert rows(path, "SELECT id FROM launches") == [("s10-1",)]
    assert rows(path, "SELECT id FROM intents") == [("s10-1-stop",)]


def test_a_namesake_can_follow_in_the_same_write(store: Store) -> None:
    store.write([Persist(sessions=(make_session(),))])

    store.write([Persist(removed=("s1",)), Persist(sessions=(make_session(id="s2"),))])

    assert [session.id for session in store.read_sessions()] == ["s2"]


def test_an_intent_that_is_recorded_twice_stays_what_it_was_first(path: Path, store: Store) -> None:
    store.write([Persist(intents=(make_intent(at=1.0),))])
    store.write([Persist(intents=(make_intent(at=2.0),))])

    assert rows(path, "SELECT at FROM intents") == [(1.0,)]


def test_deaths_are_read_newest_first_and_by_session(store: Store) -> None:
    for number in range(4):
        launch_id, session_id = f"s{number % 2}-{number}", f"s{number % 2}"
        death = make_death(id=f"d{number}", launch_id=launch_id, session_id=session_id, at=1000.0 + number)
        store.write([Persist(deaths=(death,))])

    assert [death.id for death in store.read_deaths()] == ["d3", "d2", "d1", "d0"]
    assert [death.id for death in store.read_deaths("s1")] == ["d3", "d1"]
    assert [death.id for death in store.read_deaths(limit=1)] == ["d3"]
    assert store.read_death("d2") == store.read_deaths()[1]
    assert store.read_death("d") is None


# One transaction


def test_a_write_that_fails_half_way_leaves_nothing(store: Store) -> None:
    store.write([Persist(sessions=(make_session(State.RUNNING),), deaths=(make_death(),), log=(log(),))])
    good = Persist(sessions=(make_session(id="s2", name="beta"),), log=(log("good"),))
    bad = Persist(sessions=(make_session(State.CRASHED),), deaths=(make_death(id="d-again"),), log=(log("bad"),))

    with pytest.raises(sqlite3.IntegrityError):
        store.write([good, bad])

    assert [(session.id, session.state) for session in store.read_sessions()] == [("s1", State.RUNNING)]
    assert [event.entry.kind for event in store.read_events()] == ["a.note"]
    assert len(store.read_deaths()) == 1


def test_the_store_goes_on_after_a_write_that_failed(store: Store) -> None:
    store.write([Persist(deaths=(make_death(),))])
    with pytest.raises(sqlite3.IntegrityError):
        store.write([Persist(deaths=(make_death(),), log=(log("bad"),))])

    stored = store.write([Persist(log=(log("good"),))])

    assert [event.entry.kind for event in store.read_events()] == ["good"]
    assert store.read_events() == stored


def test_a_launch_has_one_death(store: Store) -> None:
    store.write([Persist(deaths=(make_death(),))])

    with pytest.raises(sqlite3.IntegrityError):
        store.write([Persist(deaths=(make_death(id="another"),))])


def test_two_sessions_cannot_have_one_name(store: Store) -> None:
    store.write([Persist(sessions=(make_session(),))])

    with pytest.raises(sqlite3.IntegrityError):
        store.write([Persist(sessions=(make_session(id="s2"),))])


def test_what_was_written_is_seen_by_another_process_at_once(path: Path, store: Store) -> None:
    store.write([Persist(log=(log(),))])

    assert rows(path, "SELECT kind FROM events") == [("a.note",)]


# The event log


def test_events_are_numbered_in_the_order_they_were_written(store: Store) -> None:
    first = store.write([Persist(log=(log("a"), log("b"))), Persist(log=(log("c"),))])
    second = store.write([Persist(log=(log("d"),))])

    assert [(event.seq, event.entry.kind) for event in first + second] == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert store.read_events() == first + second


def test_a_sequence_number_is_never_given_twice(path: Path, store: Store) -> None:
    last = store.write([Persist(log=(log(),) * 5)])[-1].seq
    store.close()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM events")
    connection.close()

    reopened = Store(path)

    assert reopened.write([Persist(log=(log(),))])[0].seq == last + 1
    reopened.close()


def test_events_can_be_asked_for_by_number_session_time_and_end(store: Store) -> None:
    store.write([Persist(log=tuple(log(f"k{n}", 1000.0 + n, f"s{n % 2}") for n in range(10)))])

    def found(**asked: Any) -> list[str]:
        return [event.entry.kind for event in store.read_events(**asked)]

    assert found(after_seq=8) == ["k8", "k9"]
    assert found(session_id="s1") == ["k1", "k3", "k5", "k7", "k9"]
    assert found(since=1007.0) == ["k7", "k8", "k9"]
    assert found(limit=2) == ["k0", "k1"]
    assert found(limit=2, newest=True) == ["k8", "k9"]
    assert found(after_seq=3, session_id="s0", since=1005.0, limit=1, newest=True) == ["k8"]


def test_the_data_of_an_event_comes_back_as_it_was(store: Store) -> None:
    data = {"why": "é \x1b \u2028", "exit_code": None, "until": 1.5, "charged": True}
    store.write([Persist(log=(LogEntry(1.0, "k", "s1", "alpha", "s1-1", data),))])

    assert store.read_events()[0].entry == LogEntry(1.0, "k", "s1", "alpha", "s1-1", data)


# Opening


def test_a_log_that_is_written_to_does_not_grow(path: Path, store: Store) -> None:
    written = path.with_name(f"{path.name}-wal")
    length = written.stat().st_size

    for _ in range(50):
        store.write([Persist(log=(log("a"),))])

    assert written.stat().st_size == length > 50 * 4096
    assert path.stat().st_size < length, "what made it long was taken back"


def test_a_new_database_is_for_its_owner_only(path: Path) -> None:
    old_mask = os.umask(0)
    try:
        store = Store(path)
        store.write([Persist(log=(log(),))])
        modes = {found.name: stat.S_IMODE(found.stat().st_mode) for found in path.parent.iterdir()}
        store.close()
    finally:
        mask = os.umask(old_mask)

    assert mask == 0, "the caller's mask was changed"
    assert modes == dict.fromkeys(("instance.json", "vigil.db", "vigil.db-wal", "vigil.db-shm"), 0o600)


def test_what_is_written_is_on_disk_when_it_is_said_to_be(path: Path) -> None:
    engine = open_database(path)

    with engine.connect() as connection:
        found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")}
    engine.dispose()

    assert found == {"journal_mode": "wal", "synchronous": 2}  # FULL


def migrated(path: Path) -> Engine:
    engine = make_engine(path)
    migrate(engine)
    return engine


@pytest.mark.parametrize("make", [open_database, migrated], ids=["created", "migrated"])
def test_a_new_database_and_a_migrated_one_are_what_the_schema_says(path: Path, make: Callable[[Path], Engine]) -> None:
    engine = make(path)

    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
        found = inspect(connection)
        indexes = {
            table.name: sorted((str(index["name"]), tuple(index["column_names"])) for index in found.get_indexes(table.name))
            for table in metadata.sorted_tables
        }
        uniques = {
            table.name: sorted(tuple(unique["column_names"]) for unique in found.get_unique_constraints(table.name))
            for table in metadata.sorted_tables
        }
    engine.dispose()

    assert differences == []
    assert read_revision(path) == HEAD
    assert indexes == {
        table.name: sorted((str(index.name), tuple(column.name for column in index.columns)) for index in table.indexes)
        for table in metadata.sorted_tables
    }
    assert uniques == {
        table.name: sorted((column.name,) for column in table.columns if column.unique) for table in metadata.sorted_tables
    }
    assert "AUTOINCREMENT" in rows(path, "SELECT sql FROM sqlite_master WHERE name = 'events'")[0][0]
    assert "AUTOINCREMENT" in str(CreateTable(metadata.tables["events"]).compile(engine))


def test_a_database_whose_creation_was_interrupted_is_made_whole(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    connection.close()

    open_database(path).dispose()

    assert read_revision(path) == HEAD
    assert rows(path, "SELECT count(*) FROM sessions") == [(0,)]


def test_head_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)

    assert scripts.get_current_head() == HEAD
    revisions = [script.revision for script in scripts.walk_revisions()]
    assert revisions == sorted(revisions, reverse=True), "newer is told by comparing"


def test_an_empty_file_is_a_new_database(path: Path) -> None:
    path.touch()

    store = Store(path)

    assert store.read_sessions() == []
    assert read_revision(path) == HEAD
    store.close()


def test_a_database_without_tables_is_a_new_one(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("VACUUM")
    connection.close()

    Store(path).close()

    assert read_revision(path) == HEAD


def damaged_by_garbage(path: Path) -> None:
    path.write_bytes(b"this is no database, it is a note to myself\n" * 200)


def damaged_in_its_header(path: Path) -> None:
    good(path)
    data = bytearray(path.read_bytes())
    data[:16] = b"\0" * 16
    path.write_bytes(data)


def damaged_in_the_middle(path: Path) -> None:
    good(path)
    data = bytearray(path.read_bytes())
    data[4096:20480] = bytes(range(256)) * 64
    path.write_bytes(data)


def damaged_where_only_a_check_looks(path: Path) -> None:
    good(path)
    data = bytearray(path.read_bytes())
    last_row = data.rindex(b"a.note")
    page = last_row // 4096 * 4096
    data[page + 8 : page + 40] = b"\xff" * 32  # the places of its rows
    path.write_bytes(data)


def truncated_to_a_page(path: Path) -> None:
    good(path)
    os.truncate(path, 4096)


def truncated_to_half(path: Path) -> None:
    good(path)
    os.truncate(path, path.stat().st_size // 2 + 13)


def truncated_to_a_few_bytes(path: Path) -> None:
    good(path)
    os.truncate(path, 50)


def good(path: Path) -> None:
    store = Store(path)
    for number in range(50):
        store.write([Persist(sessions=(make_session(id=f"s{number}", name=f"n{number}"),), log=(log(),) * 20)])
    store.close()


@pytest.mark.parametrize(
    "damage",
    [
        damaged_by_garbage,
        damaged_in_its_header,
        damaged_in_the_middle,
        damaged_where_only_a_check_looks,
        truncated_to_a_page,
        truncated_to_half,
        truncated_to_a_few_bytes,
    ],
)
def test_a_damaged_database_is_refused_with_a_way_out_and_left_as_it_is(path: Path, damage: Any) -> None:
    damage(path)
    before = path.read_bytes()

    with pytest.raises(DatabaseRefused) as refused:
        Store(path)

    words = str(refused.value)
    assert str(path) in words
    assert "is damaged" in words
    assert f"mv {path} {path}.damaged" in words
    assert len(words.splitlines()) == 1
    assert path.read_bytes() == before


def test_a_database_that_cannot_be_read_is_not_called_damaged(path: Path) -> None:
    path.mkdir()

    with pytest.raises(DatabaseRefused) as refused:
        Store(path)

    assert str(refused.value).startswith(f"{path} cannot be read (unable to open database file). Nothing was changed")


def test_a_database_of_a_newer_vigil_is_refused_and_left_as_it_is(path: Path) -> None:
    good(path)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(DatabaseRefused, match=r"newer Vigil .* upgrade Vigil, or set VIGIL_HOME"):
        Store(path)

    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_refused_and_left_as_it_is(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(DatabaseRefused, match=r"is a database, but not Vigil's. Move it away"):
        Store(path)

    assert path.read_bytes() == before
    assert sorted(found.name for found in path.parent.iterdir()) == ["vigil.db"]


def test_a_folder_in_its_place_is_refused(path: Path) -> None:
    path.mkdir()

    with pytest.raises(DatabaseRefused, match=str(path)):
        Store(path)


@pytest.mark.parametrize("name", ["a b", "é世", "a&b=c", "a'b", "a;b", "a#b", "a?b", "a%41b", "%2e"])
def test_a_home_of_any_name_has_its_database_in_it(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()

    store = Store(folder / "vigil.db")
    store.write([Persist(deaths=(make_death(),))])
    deaths = store.read_deaths()
    store.close()

    assert deaths == [make_death()]
    assert (folder / "vigil.db").exists()
    assert [found.name for found in tmp_path.iterdir()] == [name]


def test_a_reader_cannot_write(path: Path, store: Store) -> None:
    store.write([Persist(log=(log(),))])
    reader = make_engine(path, read_only=True)

    with reader.connect() as connection, pytest.raises(Exception, match="readonly"):
        connection.exec_driver_sql("DELETE FROM events")

    reader.dispose()


def test_what_is_launched_in_the_second_that_made_a_store_is_not_older_than_it(path: Path) -> None:
    began_at = time.time()
    opened = Store(path)
    try:
        assert began_at - 1.0 < opened.created_at <= time.time()
    finally:
        opened.close()


@pytest.mark.parametrize("name", ["plain", "müde\u2028", "not\udc80text"])
def test_whatever_an_event_names_it_is_read_as_it_was_written(store: Store, name: str) -> None:
    store.write([Persist(log=(LogEntry(1.0, "found", data={"path": name}),))])

    assert [event.entry.data for event in store.read_events()] == [{"path": name}]
