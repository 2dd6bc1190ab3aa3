"""A database of the version before is read as that version read it, and taken over as that version took it over.

`tests/samples/before` was made by the version with schema 0003: its machine decided, its store wrote, its loader read. A step
that moves a field, or adds one, says so in the tables below; nothing in that folder is ever made anew.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vigil.codec import load, plain
from vigil.core.effects import Persist
from vigil.core.model.death import Intent
from vigil.core.model.launch import Launch
from vigil.core.model.upgrade import ONCE_FLAT
from vigil.recording import Replay, open_recording
from vigil.store.opening import read_revision
from vigil.store.store import Store

FOLDER = Path(__file__).parent.parent / "samples" / "before"
DUMP = FOLDER / "database.sql"
LOADED = FOLDER / "loaded.json"
RECORDING = FOLDER / "taken-over.recording"
MOST_BYTES = 150_000

# Where a field of before is found today, from the value that held it: {"sessions.doing": "vitals.doing"}.
MOVED = {f"sessions.{name}": f"vitals.{name}" for name in ONCE_FLAT}
# Fields that the version before did not have: {"sessions.work"}.
INTENTS = ("intents", "sessions.intent", "sessions.last_death.intent", "deaths.intent")
ADDED = frozenset(
    {
        "sessions.unended",
        "sessions.spec.sandbox",
        "roles.spec.spec.sandbox",
        "incidents.notices.rung",
        "incidents.owed",
        "incidents.notices.over",
        "roles.taken",
        "launches.cgroup",
        "sessions.launch.cgroup",
        *(f"{spec}.{field}" for spec in ("sessions.spec", "roles.spec.spec") for field in ("limits", "umask")),
        *(f"{intent}.{field}" for intent in INTENTS for field in ("kind", "why", "ticket")),
    }
)

# What the samples show. Samples that show less prove less.
STATES = {"pending", "starting", "running", "suspect", "stuck", "ending", "crashed", "parked", "stopped", "failed", "succeeded"}
HOLDS = {"backoff", "saturated", "limit", "memory"}
COUNTS = {"sessions": 21, "roles": 3, "incidents": 15, "deaths": 20, "launches": 33, "intents": 9, "events": 12}


def open_before(path: Path) -> Store:
    """Make the database of before, and open it."""
    connection = sqlite3.connect(path)
    connection.executescript(DUMP.read_text("utf-8"))
    connection.close()
    assert read_revision(path) == "0003"
    return Store(path)


def loaded(path: Path, store: Store) -> dict[str, dict[str, Any]]:
    """Return all that a database holds, by table and key."""
    with sqlite3.connect(path) as connection:
        launches = [load(Launch, body) for (body,) in connection.execute("SELECT body FROM launches")]
        intents = [load(Intent, body) for (body,) in connection.execute("SELECT body FROM intents")]
    connection.close()
    return {
        "sessions": {session.id: plain(session) for session in store.read_sessions()},
        "roles": {role.key: plain(role) for role in store.read_roles()},
        "incidents": {incident.id: plain(incident) for incident in store.read_incidents(everything=True)},
        "deaths": {death.id: plain(death) for death in store.read_deaths()},
        "launches": {launch.id: plain(launch) for launch in launches},
        "intents": {intent.id: plain(intent) for intent in intents},
        "events": {str(event.seq): plain(event.entry) for event in store.read_events()},
    }


def differences(
    before: Any, today: Any, path: str, moved: dict[str, str] = MOVED, added: frozenset[str] = ADDED
) -> Iterator[str]:
    """Yield where today's value is another one than before, field by field."""
    if isinstance(before, dict) and isinstance(today, dict):
        places = {name: moved[f"{path}.{name}"].split(".") if f"{path}.{name}" in moved else [name] for name in before}
        for name, place in places.items():
            try:
                found = at(today, place)
            except KeyError:
                yield f"{path}.{name} is not there"
            else:
                yield from differences(before[name], found, f"{path}.{name}", moved, added)
        known = {place[0] for place in places.values()}
        yield from (f"{path}.{name} is new" for name in today if name not in known and f"{path}.{name}" not in added)
    elif isinstance(before, list) and isinstance(today, list) and len(before) == len(today):
        for one, other in zip(before, today, strict=True):
            yield from differences(one, other, path, moved, added)
    elif before != today or type(before) is not type(today):
        yield f"{path}: {before!r} → {today!r}"


def at(value: Any, place: list[str]) -> Any:
    """Return what is found by these names, one below the other."""
    for name in place:
        value = value[name]
    return value


def test_every_value_of_before_is_read_as_it_was(tmp_path: Path) -> None:
    store = open_before(tmp_path / "vigil.db")
    today = loaded(tmp_path / "vigil.db", store)
    store.close()

    before = json.loads(LOADED.read_text("utf-8"))

    assert today.keys() == before.keys()
    for table, values in before.items():
        assert today[table].keys() == values.keys(), table
        found = [f"{key}: {one}" for key in values for one in differences(values[key], today[table][key], table)]
        assert found == []


def test_what_is_read_is_written_and_read_again_as_it_is(tmp_path: Path) -> None:
    store, fresh = open_before(tmp_path / "vigil.db"), Store(tmp_path / "fresh.db")
    sessions, roles, incidents = store.read_sessions(), store.read_roles(), store.read_incidents(everything=True)

    fresh.write([Persist(sessions=tuple(sessions), roles=tuple(roles), incidents=tuple(incidents))])

    assert (fresh.read_sessions(), fresh.read_roles()) == (sessions, roles)
    assert {one.id: one for one in fresh.read_incidents(everything=True)} == {one.id: one for one in incidents}
    store.close()
    fresh.close()


def test_a_daemon_that_takes_over_decides_as_the_one_before() -> None:
    recording = open_recording(RECORDING)
    replay = Replay(recording)

    steps = list(replay.steps())

    assert recording.unknown == []
    assert [step for step in steps if step.differs or step.unknown] == []
    assert [step.kind for step in steps] == ["Configured", "WatchdogsSet", "Resumed"]
    assert len(recording.sessions) == COUNTS["sessions"]


def test_the_samples_show_what_they_are_there_for() -> None:
    before = json.loads(LOADED.read_text("utf-8"))

    sessions = before["sessions"].values()
    assert {table: len(values) for table, values in before.items()} == COUNTS
    assert {session["state"] for session in sessions} == STATES
    assert {session["hold"]["reason"] for session in sessions if session["hold"]} == HOLDS
    nested = ("doubt", "stall", "wall", "queue", "quarantined", "intent", "waking", "pulse", "transcript", "archived_at")
    assert [name for name in nested if not any(session[name] for session in sessions)] == []


@pytest.mark.parametrize("path", [DUMP, LOADED, RECORDING], ids=lambda path: path.name)
def test_the_samples_name_no_folder_of_anybody(path: Path) -> None:
    text = path.read_text("utf-8")

    assert re.findall(r"/home/|/root|/Users/|/tmp/|PATH=|VIGIL_", text) == []
    assert path.stat().st_size < MOST_BYTES


def test_a_difference_is_seen_wherever_it_is() -> None:
    before = {"state": "running", "doing": {"turn": True, "tools": [{"id": "t1"}]}}
    others: dict[str, dict[str, Any]] = {
        "sessions.state: 'running' → 'stuck'": before | {"state": "stuck"},
        "sessions.work is new": before | {"work": 1},
        "sessions.doing is not there": {"state": "running"},
        "sessions.doing.turn: True → 1": before | {"doing": {"turn": 1, "tools": [{"id": "t1"}]}},
        "sessions.doing.tools.id: 't1' → 't2'": before | {"doing": {"turn": True, "tools": [{"id": "t2"}]}},
        "sessions.doing.tools: [{'id': 't1'}] → []": before | {"doing": {"turn": True, "tools": []}},
    }

    assert list(differences(before, before, "sessions", {})) == []
    for words, today in others.items():
        assert list(differences(before, today, "sessions", {})) == [words]


def test_a_field_that_moved_is_compared_where_it_is_today() -> None:
    before = {"state": "running", "doing": {"turn": True}}
    moved = {"sessions.doing": "work.doing"}

    for turn, found in ((True, []), (False, ["sessions.doing.turn: True → False"])):
        today = {"state": "running", "work": {"doing": {"turn": turn}}}
        assert list(differences(before, today, "sessions", moved)) == found
