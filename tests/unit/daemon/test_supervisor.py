"""All that the machine is told passes one place, so that a recording misses nothing; what it decides is done in that order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from tests.unit.builders import make_spec
from vigil.core.effects import Effect, LogEntry, Persist, SetTimer, TimerKind
from vigil.core.events import Asked, Declared, Event, Gap, Noted, Resumed, Withdrawn
from vigil.core.machine import HANDLERS, Machine
from vigil.core.model.death import IntentVerb
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.feed import Feed
from vigil.daemon.base.inbox import Inbox
from vigil.daemon.base.recorder import RecordedMachine
from vigil.daemon.base.shown import Shown
from vigil.daemon.commit import Commit
from vigil.daemon.supervisor import Supervisor
from vigil.errors import VigilError
from vigil.store.store import Store, StoredEvent


class FullStore:
    """A store on a full disk."""

    def write(self, _changes: list[Persist], _whole: object = None) -> None:
        raise OSError("database or disk is full")


@pytest.fixture
def heard() -> list[tuple[Event, Any]]:
    return []


class Rig:
    """A supervisor with a commit, as the daemon has them; what is to be done is noted, and nothing is."""

    def __init__(
        self,
        machine: Machine | None = None,
        store: object = None,
        heard: list[tuple[Event, Any]] | None = None,
        missed_s: Callable[[], float] = lambda: 0.0,
        begin: Callable[[Effect], None] = lambda _effect: None,
    ) -> None:
        given, machine = cast(Store, store or FullStore()), machine or Machine()
        self.feed = Feed(given)
        self.inbox = Inbox()
        shown = Shown(machine.sessions, machine.incidents)
        asked = RecordedMachine(
            machine, Clock(), lambda _now, event, answer: None if heard is None else heard.append((event, answer))
        )
        self.commit = Commit(asked, given, self.feed, shown, begin, lambda _slow: None, lambda _why: None)
        self.supervisor = Supervisor(self.inbox, asked, self.commit, shown, missed_s)


async def test_a_declaration_that_is_taken_back_and_a_gap_are_told_too(heard: list[tuple[Event, Any]]) -> None:
    rig = Rig(heard=heard, missed_s=iter((7.0, 0.0)).__next__)
    supervisor = rig.supervisor
    running = asyncio.create_task(supervisor.run())
    event = Declared("s1", "alpha", make_spec(), "alice")

    with pytest.raises(VigilError, match="disk is full"):
        await supervisor.done(event)

    assert [event for event, _ in heard] == [Gap(7.0), event, Withdrawn("s1")]
    assert supervisor.shown == {}
    assert all(isinstance(answer, list) for _, answer in heard)
    running.cancel()
    await rig.commit.close()


async def test_the_event_that_broke_the_machine_is_told_with_what_it_raised(
    heard: list[tuple[Event, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("s1")

    monkeypatch.setitem(HANDLERS, Asked, broken)
    rig = Rig(heard=heard)
    rig.inbox.feed(Asked(IntentVerb.STOP, "s1", "alice"))
    rig.inbox.feed(Resumed())

    with pytest.raises(KeyError):
        await rig.supervisor.run()

    assert heard == [(Asked(IntentVerb.STOP, "s1", "alice"), "KeyError: 's1'")]
    await rig.commit.close()


class SlowStore:
    """A store that writes once it is let."""

    def __init__(self) -> None:
        self.may_write = threading.Event()

    def write(self, changes: list[Persist], _whole: object = None) -> list[StoredEvent]:
        assert self.may_write.wait(10)
        return [StoredEvent(seq, entry) for change in changes for seq, entry in enumerate(change.log, 1)]


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
    begun: list[tuple[str, int]] = []

    def begin(effect: Effect) -> None:
        assert isinstance(effect, SetTimer)
        begun.append((effect.session_id, rig.feed.last_seq))

    rig = Rig(Decided({"a": written, "b": [SetTimer("b", TimerKind.HOLD, 0.0)]}), store, begin=begin)
    running = asyncio.create_task(rig.supervisor.run())

    first = asyncio.create_task(rig.inbox.recorded(Noted("a")))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(rig.inbox.recorded(Noted("b")))
    await asyncio.sleep(0.01)
    store.may_write.set()
    await asyncio.wait_for(asyncio.gather(first, second), 10)

    assert begun == [("a", 1), ("b", 1)]  # and both after subscribers could read it
    running.cancel()
    await rig.commit.close()


async def test_subscribers_are_told_before_what_was_decided_is_done() -> None:
    store = SlowStore()
    decided: list[Effect] = [Persist(log=(LogEntry(1.0, "a"),)), SetTimer("a", TimerKind.HOLD, 0.0)]
    order: list[str] = []

    def begin(effect: Effect) -> None:
        assert isinstance(effect, SetTimer)
        order.append(f"done for {effect.session_id}")

    rig = Rig(Decided({"a": decided}), store, begin=begin)

    async def subscribe() -> None:
        order.extend(f"told of {stored.entry.kind}" for stored in await rig.feed.after(0, 10.0))

    store.may_write.set()
    subscriber, running = asyncio.create_task(subscribe()), asyncio.create_task(rig.supervisor.run())
    await asyncio.wait_for(rig.inbox.recorded(Noted("a")), 10)

    assert order == ["told of a", "done for a"]
    await subscriber
    running.cancel()
    await rig.commit.close()


async def test_what_happens_while_the_store_writes_is_handled_at_once_and_written_next(heard: list[tuple[Event, Any]]) -> None:
    def kinds() -> list[str]:
        return [event.kind for event, _ in heard if isinstance(event, Noted)]

    store = SlowStore()
    rig = Rig(store=store, heard=heard)
    running = asyncio.create_task(rig.supervisor.run())
    for number in range(3):
        rig.inbox.feed(Noted(f"{number}"))
        await asyncio.sleep(0.01)

    assert kinds() == ["0", "1", "2"]
    assert rig.feed.last_seq == 0
    store.may_write.set()
    await rig.supervisor.drained(10)
    assert rig.commit.is_idle
    running.cancel()
    await rig.commit.close()


async def test_who_waits_for_a_store_that_hangs_waits_no_longer_than_it_said(heard: list[tuple[Event, Any]]) -> None:
    store = SlowStore()
    rig = Rig(store=store, heard=heard)
    running = asyncio.create_task(rig.supervisor.run())
    rig.inbox.feed(Noted("a"))

    await asyncio.wait_for(rig.supervisor.drained(0.05), 10)

    assert not rig.commit.is_idle
    store.may_write.set()
    await rig.supervisor.drained(10)
    running.cancel()
    await rig.commit.close()
