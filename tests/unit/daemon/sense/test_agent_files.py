"""What a headless agent prints: words are told, all else it prints shows that it works; a tick of its clock shows nothing."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.builders import make_launch, make_session, make_spec
from vigil.agents.adapters import adapter_of
from vigil.core.events import Event, Heard, Observed
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.speech import What
from vigil.daemon.sense.agent_files import Listening
from vigil.home import Home

SOON_S = 20.0
LAUNCH = make_launch()
TICK = json.dumps({"type": "tool_progress", "tool_name": "mcp__x__y", "heartbeat": True, "elapsed_time_seconds": 30})
WORD = json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "Well"}]}})


class Printer:
    """A launch that prints, and what was told of it."""

    def __init__(self, home: Home, off_s: float) -> None:
        self.events: list[Event] = []
        self.path = home.launch(LAUNCH.id) / "stdout.jsonl"
        self.path.parent.mkdir(parents=True)
        self.path.touch()
        self.listening = Listening(home, adapter_of, lambda _session: {}, self.events.append, lambda: off_s)
        spec = replace(make_spec(), agent="claude", runtime=RuntimeKind.HEADLESS)
        self.listening.follow(make_session(spec=spec, launch=LAUNCH), LAUNCH)

    async def prints(self, text: str, holds: Callable[[], bool]) -> None:
        with self.path.open("a") as file:
            file.write(text)
        async with asyncio.timeout(SOON_S):
            while not holds():
                await asyncio.sleep(0.01)

    def words(self) -> list[What]:
        return [said.what for event in self.events if isinstance(event, Heard) for said in event.said]

    def growth(self) -> list[float]:
        return [event.active_at for event in self.events if isinstance(event, Observed) and event.active_at is not None]


@asynccontextmanager
async def printer(folder: Path, off_s: float = 0.0) -> AsyncIterator[Printer]:
    subject = Printer(Home(folder, folder), off_s)
    task = asyncio.create_task(subject.listening.run())
    try:
        yield subject
    finally:
        subject.listening.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("text", ["...\n", "no end yet", f"{TICK}\n...\n", '{"broken": \n'])
async def test_what_nobody_understands_shows_that_it_works(tmp_path: Path, text: str) -> None:
    async with printer(tmp_path) as one:
        before = await one.listening.printed_at(LAUNCH.id)
        await one.prints(text, lambda: bool(one.growth()))

        after = await one.listening.printed_at(LAUNCH.id)
        assert before is not None and after is not None and after > before
        assert one.growth() == [after]


async def test_a_word_is_told_as_a_word_alone(tmp_path: Path) -> None:
    async with printer(tmp_path) as one:
        before = await one.listening.printed_at(LAUNCH.id)
        await one.prints(f"{WORD}\n{TICK}\n", lambda: bool(one.words()))

        assert (one.words(), one.growth()) == ([What.SPEAKS, What.TICKS], [])
        assert before is not None and (await one.listening.printed_at(LAUNCH.id) or 0.0) > before


async def test_the_ticks_of_its_clock_are_told_and_show_no_work(tmp_path: Path) -> None:
    async with printer(tmp_path) as one:
        before = await one.listening.printed_at(LAUNCH.id)
        for count in (1, 2):
            await one.prints(f"{TICK}\n{TICK}\n", lambda count=count: len(one.words()) == count)  # type: ignore[misc]

        assert (one.words(), one.growth()) == ([What.TICKS] * 2, []), "many in a row are one"
        assert await one.listening.printed_at(LAUNCH.id) == before


async def test_what_is_not_read_by_now_is_read_before_anybody_is_told_when_it_printed(tmp_path: Path) -> None:
    async with printer(tmp_path) as one:
        await one.prints("a\n", lambda: len(one.growth()) == 1)
        await one.prints("b\n", lambda: True)  # a file is looked at once a second

        await one.listening.printed_at(LAUNCH.id)
        assert len(one.growth()) == 2


async def test_of_a_launch_that_nobody_follows_nothing_is_known(tmp_path: Path) -> None:
    async with printer(tmp_path) as one:
        one.listening.forget(LAUNCH.id)

        assert await one.listening.printed_at(LAUNCH.id) is None


async def test_moments_are_by_our_clock_although_the_walls_was_set(tmp_path: Path) -> None:
    """A wall that is an hour behind makes no word an hour old."""
    async with printer(tmp_path, off_s=-3600.0) as one:
        retry = {"type": "system", "subtype": "api_retry", "retry_delay_ms": 1000, "attempt": 1, "max_retries": 2}
        await one.prints(f"...\n{json.dumps(retry)}\n", lambda: bool(one.words() and one.growth()))

        (said,) = (said for event in one.events if isinstance(event, Heard) for said in event.said)
        assert said.until is not None and said.until > time.time() + 3590
        assert said.at is None or said.at > time.time() + 3590
        assert one.growth()[0] > time.time() + 3590
