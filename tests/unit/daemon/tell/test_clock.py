"""The clock apart keeps its time whatever its calls and the loop do, and says when the loop stands still (P6)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from vigil.daemon.base.lateness import BEATS, Beats
from vigil.daemon.tell.clock import BLOCKED_S, STACK_LINES, Heartbeat, where_is

WAIT_S = 20.0


@pytest.fixture
def heartbeat() -> Iterator[Heartbeat]:
    beating = Heartbeat()
    beating.start()
    yield beating
    beating.close()
    assert "heartbeat" not in {thread.name for thread in threading.enumerate()}


def call_at(heartbeat: Heartbeat, key: str, after_s: float, call: Callable[[], None]) -> float:
    """Plan a call; return its moment."""
    due = time.monotonic() + after_s
    heartbeat.at(key, due, call)
    return due


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


# Calls


def test_a_call_comes_at_its_moment_and_not_before(heartbeat: Heartbeat) -> None:
    called_at: list[float] = []
    called = threading.Event()

    def call() -> None:
        called_at.append(time.monotonic())
        called.set()

    due = call_at(heartbeat, "a", 0.2, call)

    assert called.wait(WAIT_S)
    assert 0 <= called_at[0] - due < 1


def test_calls_come_in_the_order_of_their_moments(heartbeat: Heartbeat) -> None:
    seen: list[str] = []
    done = threading.Event()

    call_at(heartbeat, "last", 0.3, done.set)
    call_at(heartbeat, "second", 0.2, lambda: seen.append("second"))
    call_at(heartbeat, "first", 0.1, lambda: seen.append("first"))

    assert done.wait(WAIT_S)
    assert seen == ["first", "second"]


def test_a_call_planned_anew_replaces_the_earlier_one(heartbeat: Heartbeat) -> None:
    seen: list[str] = []
    done = threading.Event()

    call_at(heartbeat, "a", 0.1, lambda: seen.append("old"))
    call_at(heartbeat, "a", 0.2, lambda: seen.append("new"))
    call_at(heartbeat, "done", 0.3, done.set)

    assert done.wait(WAIT_S)
    assert seen == ["new"]


def test_a_call_that_was_cancelled_does_not_come(heartbeat: Heartbeat) -> None:
    seen: list[str] = []
    done = threading.Event()

    call_at(heartbeat, "a", 0.1, lambda: seen.append("a"))
    call_at(heartbeat, "done", 0.2, done.set)
    heartbeat.cancel("a")
    heartbeat.cancel("never planned")

    assert done.wait(WAIT_S)
    assert seen == []


def test_a_call_may_plan_the_next_one(heartbeat: Heartbeat) -> None:
    seen: list[int] = []
    done = threading.Event()

    def call() -> None:
        seen.append(len(seen))
        if len(seen) == 5:
            done.set()
        else:
            call_at(heartbeat, "a", 0.01, call)

    call_at(heartbeat, "a", 0.0, call)

    assert done.wait(WAIT_S)
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), asyncio.CancelledError()])
def test_a_call_that_raises_is_logged_and_ends_nothing(error: BaseException) -> None:
    def fail() -> None:
        raise error

    done = threading.Event()
    with capture_logs() as lines:
        heartbeat = Heartbeat()
        heartbeat.start()
        call_at(heartbeat, "bad", 0.0, fail)
        call_at(heartbeat, "good", 0.05, done.set)
        assert done.wait(WAIT_S)
        wait_until(lambda: len(lines) == 1)
        heartbeat.close()

    assert (lines[0]["event"], lines[0]["key"], lines[0]["why"]) == ("heartbeat call failed", "bad", repr(error))


def test_a_log_that_hangs_delays_no_call(heartbeat: Heartbeat) -> None:
    hanging, disk = threading.Event(), threading.Event()

    def hang(_logger: Any, _name: str, _event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        hanging.set()
        disk.wait(WAIT_S)
        raise structlog.DropEvent

    def fail() -> None:
        raise ValueError("no")

    done = threading.Event()
    before = structlog.get_config()["processors"]
    structlog.configure(processors=[hang])
    try:
        call_at(heartbeat, "bad", 0.0, fail)
        assert hanging.wait(WAIT_S)
        due = call_at(heartbeat, "good", 0.05, done.set)

        assert done.wait(WAIT_S)
        assert time.monotonic() - due < 1
    finally:
        disk.set()
        heartbeat.close()
        structlog.configure(processors=before)


def test_what_was_planned_before_the_start_is_called_after_it() -> None:
    heartbeat, called = Heartbeat(), threading.Event()
    heartbeat.at("a", time.monotonic() - 1, called.set)

    heartbeat.start()

    assert called.wait(WAIT_S)
    heartbeat.close()


def test_nothing_is_called_after_the_close() -> None:
    heartbeat, seen = Heartbeat(), []
    heartbeat.start()
    due = call_at(heartbeat, "a", 0.2, lambda: seen.append("a"))

    heartbeat.close()

    wait_until(lambda: time.monotonic() > due + 0.1)
    assert seen == []


def test_a_heartbeat_closes_whether_or_not_it_ever_started() -> None:
    Heartbeat().close()


def test_a_call_may_close_its_own_heartbeat() -> None:
    heartbeat = Heartbeat()
    heartbeat.start()

    call_at(heartbeat, "a", 0.0, heartbeat.close)

    wait_until(lambda: "heartbeat" not in {thread.name for thread in threading.enumerate()})


def test_calls_come_in_time_while_the_loop_is_blocked(heartbeat: Heartbeat) -> None:
    called_at: list[float] = []

    async def block() -> float:
        due = call_at(heartbeat, "a", 0.2, lambda: called_at.append(time.monotonic()))
        time.sleep(1.5)  # noqa: ASYNC251 - the blockage itself
        return due

    due = asyncio.run(block())

    assert 0 <= called_at[0] - due < 1


# The loop


class Turned:
    """A heartbeat whose clock the test turns, and what it said of the loop."""

    def __init__(self, refuses: bool = False) -> None:
        self.now = 1000.0
        self.said: list[str] = []
        self._refuses = refuses
        self.heartbeat = Heartbeat(
            self._blocked, lambda lasted_s: self.said.append(f"unblocked {lasted_s:g}"), lambda: self.now
        )
        self.heartbeat.start()

    def _blocked(self, so_far_s: float, _where: str) -> None:
        if self._refuses:
            raise ValueError("no")
        self.said.append(f"blocked {so_far_s:g}")

    def _unblocked(self, lasted_s: float) -> None:
        self.said.append(f"unblocked {lasted_s:g}")

    def turn(self, by_s: float) -> None:
        """Let time pass, and wait until the heartbeat has looked at the loop."""
        self.now += by_s
        for _ in range(2):  # it looks after each call, so the second one comes after a look
            called = threading.Event()
            self.heartbeat.at("turned", self.now, called.set)
            assert called.wait(WAIT_S)


@pytest.fixture
def turned() -> Iterator[Turned]:
    made = Turned()
    yield made
    made.heartbeat.close()


def test_a_loop_that_stands_still_is_told_once_and_again_only_after_it_recovered(turned: Turned) -> None:
    turned.heartbeat.beat()
    for _ in range(7):
        turned.turn(1.0)
    turned.heartbeat.beat()
    for _ in range(6):
        turned.turn(1.0)
    turned.heartbeat.beat()
    turned.turn(0.5)

    assert turned.said == ["blocked 5", "unblocked 7", "blocked 5", "unblocked 6"]


def test_a_loop_that_beats_is_not_called_blocked(turned: Turned) -> None:
    for _ in range(20):
        turned.heartbeat.beat()
        turned.turn(BLOCKED_S)

    assert turned.said == []


def test_a_loop_that_has_not_begun_to_beat_is_not_called_blocked(turned: Turned) -> None:
    turned.turn(3600.0)

    assert turned.said == []


def test_a_loop_that_recovered_and_stands_still_again_between_two_looks_is_told_of_both(turned: Turned) -> None:
    turned.heartbeat.beat()
    turned.turn(5.0)
    turned.now += 1.0
    turned.heartbeat.beat()
    turned.turn(6.0)

    assert turned.said == ["blocked 5", "unblocked 6", "blocked 6"]


def test_a_loop_that_stands_still_is_told_with_its_place() -> None:
    places: list[tuple[float, str]] = []
    heartbeat = Heartbeat(lambda so_far_s, where: places.append((so_far_s, where)))
    heartbeat.start()

    async def stand_still() -> None:
        heartbeat.beat()
        wait_until(lambda: len(places) > 0)

    asyncio.run(stand_still())
    heartbeat.close()

    so_far_s, where = places[0]
    assert so_far_s > BLOCKED_S
    assert "test_clock.py" in where
    assert " stand_still" in where
    assert len(where.splitlines()) <= STACK_LINES


def test_a_report_that_raises_ends_nothing() -> None:
    turned = Turned(refuses=True)
    with capture_logs() as lines:
        turned.heartbeat.beat()
        turned.turn(5.0)
        turned.heartbeat.beat()
        turned.turn(0.0)
        wait_until(lambda: [line["key"] for line in lines] == ["blocked"])
    turned.heartbeat.close()

    assert turned.said == ["unblocked 5"]


def test_a_place_is_a_few_lines_of_file_line_and_function_with_the_innermost_last() -> None:
    def dig(depth: int) -> str:
        return dig(depth - 1) if depth else where_is(threading.get_ident())

    lines = dig(50).splitlines()

    assert len(lines) == STACK_LINES
    assert lines[-1].startswith("vigil/daemon/tell/clock.py:")
    assert lines[-1].endswith(" where_is")
    assert lines[0].startswith("unit/daemon/tell/test_clock.py:")
    assert lines[0].endswith(" dig")


def test_a_thread_that_is_gone_is_nowhere() -> None:
    assert where_is(-1) == ""


# Lateness


def test_a_call_planned_for_a_moment_long_past_is_not_late_by_that(heartbeat: Heartbeat) -> None:
    called = threading.Event()

    call_at(heartbeat, "a", -3600.0, called.set)

    assert called.wait(WAIT_S)
    assert heartbeat.lateness()["max"] < 60_000


def test_a_call_that_was_held_up_by_another_is_late_by_that(heartbeat: Heartbeat) -> None:
    under_way, go_on, called = threading.Event(), threading.Event(), threading.Event()

    def hold_up() -> None:
        under_way.set()
        go_on.wait(WAIT_S)

    call_at(heartbeat, "slow", 0.0, hold_up)
    assert under_way.wait(WAIT_S)
    due = call_at(heartbeat, "a", 0.0, called.set)
    wait_until(lambda: time.monotonic() > due + 0.2)
    go_on.set()

    assert called.wait(WAIT_S)
    assert heartbeat.lateness()["now"] >= 200


def test_the_summary_shows_the_last_the_hundredth_worst_and_the_worst() -> None:
    beats = Beats()
    assert beats.summary() == {"now": 0.0, "p99": 0.0, "max": 0.0}

    for late_ms in (*range(1, 200), 1000, -5):
        beats.note(late_ms / 1000)

    assert beats.summary() == {"now": 0.0, "p99": 198.0, "max": 1000.0}


def test_only_the_last_beats_count() -> None:
    beats = Beats()

    for late_s in (9.0, *[0.001] * BEATS):
        beats.note(late_s)

    assert beats.summary() == {"now": 1.0, "p99": 1.0, "max": 1.0}
