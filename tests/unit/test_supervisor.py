"""Everything the machine is told passes one place, so that a recording misses nothing."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tests.unit.builders import make_spec
from vigil.core.effects import Persist
from vigil.core.events import Asked, Declared, Event, Gap, Resumed, Withdrawn
from vigil.core.machine import HANDLERS, Machine
from vigil.daemon.clock import Clock
from vigil.daemon.feed import Feed
from vigil.daemon.supervisor import Supervisor
from vigil.errors import VigilError
from vigil.store.store import Store


class FullStore:
    """A store on a full disk."""

    def write(self, _changes: list[Persist]) -> None:
        raise OSError("database or disk is full")


@pytest.fixture
def heard() -> list[tuple[Event, Any]]:
    return []


def make_supervisor(heard: list[tuple[Event, Any]]) -> Supervisor:
    store = cast(Store, FullStore())
    supervisor = Supervisor(Machine(), store, Feed(store), Clock())
    supervisor.on_handled = lambda _now, event, answer: heard.append((event, answer))
    return supervisor


async def test_a_declaration_that_is_taken_back_and_a_gap_are_told_too(heard: list[tuple[Event, Any]]) -> None:
    supervisor = make_supervisor(heard)
    supervisor.missed_s = iter((7.0, 0.0)).__next__
    running = asyncio.create_task(supervisor.run())
    event = Declared("s1", "alpha", make_spec(), "alice")

    with pytest.raises(VigilError, match="disk is full"):
        await supervisor.done(event)

    assert [event for event, _ in heard] == [Gap(7.0), event, Withdrawn("s1")]
    assert all(isinstance(answer, list) for _, answer in heard)
    running.cancel()
    await supervisor.close()


async def test_the_event_that_broke_the_machine_is_told_with_what_it_raised(
    heard: list[tuple[Event, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("s1")

    monkeypatch.setitem(HANDLERS, Asked, broken)
    supervisor = make_supervisor(heard)
    supervisor.feed(Asked("stop", "s1", "alice"))
    supervisor.feed(Resumed())

    with pytest.raises(KeyError):
        await supervisor.run()

    assert heard == [(Asked("stop", "s1", "alice"), "KeyError: 's1'")]
    await supervisor.close()
