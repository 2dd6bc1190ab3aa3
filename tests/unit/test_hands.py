"""A call that hangs is left alone after its deadline, and said; so many threads at once and no more."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from vigil.hands import KEPT, Hands, Hangs
from vigil.threads import POOLS, Pool, ask, begin, in_thread

WAIT_S = 20.0


class Hanging:
    """Calls that hang until they are let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.begun = 0
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            self.begun += 1
        assert self.let_go.wait(WAIT_S)
        return "late"


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.let_go.set()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def threads(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


def test_a_call_returns_what_it_returns_and_raises_what_it_raises() -> None:
    def fail() -> None:
        raise ValueError("no")

    hands = Hands("a")

    assert hands.call(lambda: 7, WAIT_S) == 7
    with pytest.raises(ValueError, match="no"):
        hands.call(fail, WAIT_S)
    assert hands.call(threading.get_ident, WAIT_S) == hands.call(threading.get_ident, WAIT_S)
    hands.close()


def test_a_call_that_hangs_is_given_up_after_its_deadline_and_when_all_hang_no_thread_is_spent_any_more(
    hanging: Hanging,
) -> None:
    hands = Hands("b", most=2)
    for _ in range(2):
        with pytest.raises(Hangs, match=r"no answer in 0\.05 s"):
            hands.call(hanging, 0.05)

    began = time.monotonic()
    with pytest.raises(Hangs, match="2 earlier calls have not come back") as refused:
        hands.call(lambda: 7, WAIT_S)

    assert time.monotonic() - began < WAIT_S / 2
    assert (refused.value.earlier, hands.hung, hanging.begun, threads("b")) == (2, 2, 2, 2)
    hanging.let_go.set()
    until(lambda: hands.hung == 0)
    assert hands.call(lambda: 7, WAIT_S) == 7
    hands.close()


def test_what_comes_while_all_are_busy_waits_in_line_and_is_not_begun_once_it_was_given_up(hanging: Hanging) -> None:
    hands, order = Hands("c"), list[str]()
    settled = threading.Event()
    hands.begin(hanging, lambda _result, _error: order.append("first"))
    given_up = hands.begin(lambda: order.append("given up"), lambda *_: None)
    hands.begin(lambda: order.append("second"), lambda *_: settled.set())

    assert hands.give_up(given_up)
    assert hands.hung == 0
    hanging.let_go.set()
    assert settled.wait(WAIT_S)

    assert order == ["first", "second"]
    hands.close()


def test_only_a_few_threads_are_kept_and_none_after_the_close(hanging: Hanging) -> None:
    hands = Hands("d", most=8)
    for _ in range(8):
        hands.begin(hanging, lambda *_: None)
    until(lambda: hanging.begun == 8)
    hanging.let_go.set()

    until(lambda: threads("d") == KEPT)
    hands.close()
    until(lambda: threads("d") == 0)


def test_many_callers_at_once_each_get_their_own_answer() -> None:
    hands, answers = Hands("e", most=3), dict[int, int]()

    def ask_one(number: int) -> None:
        answers[number] = hands.call(lambda: number * 2, WAIT_S)

    callers = [threading.Thread(target=ask_one, args=(number,)) for number in range(50)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(WAIT_S)

    assert answers == {number: number * 2 for number in range(50)}
    assert threads("e") <= 3
    hands.close()


async def test_the_loop_waits_no_longer_than_the_deadline_and_what_comes_late_is_taken_all_the_same(hanging: Hanging) -> None:
    hands = Hands("f", most=2)

    with pytest.raises(Hangs):
        await ask(hands, hanging, 0.05)
    job, done = begin(hands, hanging)
    while hanging.begun < 2:
        await asyncio.sleep(0.001)
    assert hands.give_up(job)
    assert hands.hung == 2
    hanging.let_go.set()

    assert await asyncio.wait_for(done, WAIT_S) == "late"
    assert await ask(hands, lambda: 7, WAIT_S) == 7
    hands.close()


async def test_who_was_cancelled_leaves_a_call_that_counts_until_it_comes_back(hanging: Hanging) -> None:
    hands = Hands("g")
    asking = asyncio.create_task(ask(hands, hanging, WAIT_S))
    while not hanging.begun:
        await asyncio.sleep(0.001)

    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    assert hands.hung == 1
    hanging.let_go.set()
    while hands.hung:
        await asyncio.sleep(0.001)
    hands.close()


def test_what_hangs_takes_one_thread_and_is_asked_again_only_when_it_came_back(hanging: Hanging) -> None:
    hands = Hands("i", most=4)
    with pytest.raises(Hangs, match="no answer"):
        threading.Thread(target=lambda: hands.begin(hanging, lambda *_: None, "disk")).start()
        until(lambda: hanging.begun == 1)
        hands.call(hanging, 0.05, "disk")  # it waits in line: another call about the same is under way

    assert (hanging.begun, hands.hung) == (1, 0)
    hanging.let_go.set()
    assert hands.call(lambda: 7, WAIT_S, "disk") == 7
    hanging.let_go.clear()
    with pytest.raises(Hangs, match="no answer"):
        hands.call(hanging, 0.05, "disk")
    for _ in range(10):
        with pytest.raises(Hangs, match="an earlier call has not come back"):
            hands.call(hanging, WAIT_S, "disk")
    assert hands.call(lambda: 8, WAIT_S, "other") == 8
    assert (hanging.begun, hands.hung) == (2, 1)
    hanging.let_go.set()
    until(lambda: hands.hung == 0)
    assert hands.call(lambda: 9, WAIT_S, "disk") == 9
    hands.close()


async def test_a_purpose_whose_threads_all_hang_delays_no_other(hanging: Hanging) -> None:
    full, other = Pool("full", 2, 0.05), Pool("other", 1, WAIT_S)
    for _ in range(3):
        with pytest.raises(Hangs):
            await in_thread(full, hanging)

    assert await in_thread(other, lambda: 7) == 7
    assert hanging.begun == 2
    for pool in (full, other):
        pool.hands.close()


def test_every_purpose_has_threads_of_its_own_and_a_deadline() -> None:
    assert len({pool.purpose for pool in POOLS}) == len({id(pool.hands) for pool in POOLS}) == len(POOLS)
    assert all(pool.most > 0 and 0 < pool.within_s <= 75 for pool in POOLS)


def test_a_call_that_hangs_keeps_no_process_from_ending() -> None:
    code = """
import threading
from vigil.hands import Hands, Hangs
try:
    Hands("h").call(threading.Event().wait, 0.01)
except Hangs as error:
    print(error)
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_S)

    assert (done.returncode, done.stdout) == (0, "no answer in 0.01 s\n")


def test_a_thread_that_began_early_does_calls_when_the_host_has_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    hands = Hands("ready", most=4, ready=True)
    monkeypatch.setattr(threading.Thread, "start", no_thread)

    assert [hands.call(lambda: 7, 5.0), hands.call(lambda: 8, 5.0)] == [7, 8]
    hands.close()


def test_without_any_thread_a_caller_hears_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", no_thread)

    with pytest.raises(RuntimeError, match="new thread"):
        Hands("late").call(lambda: 7, 5.0)


def no_thread(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
