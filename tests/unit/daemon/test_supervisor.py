"""All that the machine is told passes one place, so that a recording misses nothing; what it decides is done in that order."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import pytest

from tests.unit.builders import make_spec
from vigil.core.effects import Effect, LogEntry, Persist, SetTimer
from vigil.core.events import Asked, Declared, Event, Gap, Noted, Resumed, Withdrawn
from vigil.core.machine import HANDLERS, Machine
from vigil.core.model.death import IntentVerb
from vigil.core.model.timer import TimerKind
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.feed import Feed
from vigil.daemon.supervisor import Supervisor
from vigil.errors import VigilError
from vigil.store.store import Store, StoredEvent


class FullStore:
    """A store on a full disk."""

    def write(self, _changes: list[Persist]) -> None:
        raise OSError("database or disk is full")


@pytest.fixture
def heard() -> list[tuple[Event, Any]]:
    return []


def make_supervisor(heard: list[tuple[Event, Any]], given: object = None) -> Supervisor:
    store = cast(Store, given or FullStore())
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
    assert supervisor.shown == {}
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
    supervisor.feed(Asked(IntentVerb.STOP, "s1", "alice"))
    supervisor.feed(Resumed())

    with pytest.raises(KeyError):
        await supervisor.run()

    assert heard == [(Asked(IntentVerb.STOP, "s1", "alice"), "KeyError: 's1'")]
    await supervisor.close()


class SlowStore:
    """A store that writes once it is let."""

    def __init__(self) -> None:
        self.may_write = threading.Event()

    def write(self, changes: list[Persist]) -> list[StoredEvent]:
        assert self.may_write.wait(10)
        return [StoredEvent(seq, entry, "{}") for change in changes for seq, entry in enumerate(change.log, 1)]


class Decided(Machine):
    """A machine that decided beforehand."""

    def __init__(self, effects: dict[str, list[Effect]]) -> None:
        super().__init__()
        self._effects = effects

    def handle(self, event: Event, now: float) -> list[Effect]:  # noqa: ARG002
        assert isinstance(event, Noted)
        return self._effects[event.kind]


async def test_what_was_decided_first_is_done_first_also_if_what_follows_need_not_be_written() -> None:
    store = SlowStore()
    written: list[Effect] = [Persist(log=(LogEntry(1.0, "a"),)), SetTimer("a", TimerKind.HOLD, 0.0)]
    feed = Feed(cast(Store, store))
    supervisor = Supervisor(
        Decided({"a": written, "b": [SetTimer("b", TimerKind.HOLD, 0.0)]}), cast(Store, store), feed, Clock()
    )
    begun: list[tuple[str, int]] = []
    supervisor._set_timer = lambda effect: begun.append((effect.session_id, feed.last_seq))  # type: ignore[method-assign]
    running = asyncio.create_task(supervisor.run())

    first = asyncio.create_task(supervisor.recorded(Noted("a")))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(supervisor.recorded(Noted("b")))
    await asyncio.sleep(0.01)
    store.may_write.set()
    await asyncio.wait_for(asyncio.gather(first, second), 10)

    assert begun == [("a", 1), ("b", 1)]  # and both after subscribers could read it
    running.cancel()
    await supervisor.close()


async def test_a_death_is_handled_at_once_unless_others_are_before_it_and_what_it_breaks_ends_us_all_the_same(
    heard: list[tuple[Event, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("s1")

    def kinds() -> list[str]:
        return [event.kind for event, _ in heard if isinstance(event, Noted)]

    store = SlowStore()
    supervisor = make_supervisor(heard, store)
    supervisor.at_once(Noted("before it runs"))
    assert kinds() == []
    running = asyncio.create_task(supervisor.run())
    await asyncio.sleep(0.01)
    supervisor.at_once(Noted("while the store writes"))
    assert kinds() == ["before it runs"]
    store.may_write.set()
    await asyncio.wait_for(supervisor.recorded(Noted("after that")), 10)
    supervisor.at_once(Noted("at once"))

    assert kinds() == ["before it runs", "while the store writes", "after that", "at once"]
    await supervisor.drained(10)
    monkeypatch.setitem(HANDLERS, Asked, broken)
    supervisor.at_once(Asked(IntentVerb.STOP, "s1", "alice"))
    with pytest.raises(KeyError):
        await asyncio.wait_for(running, 10)
    await supervisor.close()
