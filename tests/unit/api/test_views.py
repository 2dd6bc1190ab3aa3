"""Subscribers get the same JSON as the view, of an event just written and of one read again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vigil.api.event_routes import sse_text
from vigil.api.views import event_view
from vigil.core.effects import LogEntry, Persist
from vigil.store.store import Store

TEXT = st.text(st.characters(), max_size=20)  # also what is no character, as names of files have it
KEYS = st.text(st.characters(codec="utf-8"), max_size=20)  # names that we give: the store writes half a character as another
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
ENTRIES = st.builds(
    LogEntry,
    st.floats(1, 4e9).map(lambda at: round(at, 3)),
    st.sampled_from(["session.died", "session.state", "daemon.started"]),
    st.none() | st.just("s1"),
    st.none() | st.just("worker-1"),
    st.none() | st.just("s1-1"),
    st.dictionaries(KEYS, VALUES, max_size=4) | st.just({"hold": "backoff", "until": 1_800_000_000.0}),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "vigil.db")
    yield opened
    opened.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=st.lists(ENTRIES, min_size=1, max_size=3))
def test_what_is_sent_is_what_is_shown_of_an_event_just_written_and_of_one_read_again(
    store: Store, entries: list[LogEntry]
) -> None:
    written = store.write([Persist(log=tuple(entries))])
    read = store.read_events(newest=True, limit=len(entries))

    for stored in (*written, *read):
        first, second, data, *rest = sse_text(stored).split("\n")
        assert (first, second, rest) == (f"id: {stored.seq}", f"event: {stored.entry.kind}", ["", ""])
        assert json.loads(data.removeprefix("data: ")) == json.loads(json.dumps(event_view(stored)))
    assert list(map(sse_text, written)) == list(map(sse_text, read))
