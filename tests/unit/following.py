"""Files to follow, and somebody who is told of their lines."""

from __future__ import annotations

import asyncio
import glob
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from vigil.daemon.sense.tail.turns import Following
from vigil.observe.lines import Position, ReadOutcome, TakenLines

SOON_S = 20.0
OFTEN_S = 0.02


class Told:
    """What was told, and a way to wait for more."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, TakenLines]] = []
        self.at: list[float] = []
        self._more = asyncio.Event()

    def __call__(self, key: str, path: str, taken: TakenLines) -> None:
        self.calls.append((key, os.path.basename(path), taken))
        self.at.append(time.monotonic())
        self._more.set()

    def lines(self, key: str | None = None) -> list[bytes]:
        return [line for whose, _, taken in self.calls if key in (None, whose) for line in taken.lines]

    def outcomes(self, name: str | None = None) -> list[ReadOutcome]:
        return [taken.outcome for _, whose, taken in self.calls if name in (None, whose)]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON_S):
            while not holds():
                self._more.clear()
                await self._more.wait()

    async def until_told(self, *lines: bytes) -> None:
        await self.until(lambda: set(lines) <= set(self.lines()))


@asynccontextmanager
async def following(look_s: float = OFTEN_S) -> AsyncIterator[Following]:
    subject = Following(look_s)
    task = asyncio.create_task(subject.run())
    try:
        yield subject
    finally:
        subject.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def append(path: Path, *lines: bytes) -> None:
    with open(path, "ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))


def literal(path: Path) -> str:
    return glob.escape(str(path))


def stored(positions: dict[str, Position]) -> dict[str, Position]:
    """Return positions as they are after they were kept on disk."""
    kept = json.loads(json.dumps({path: position.as_json() for path, position in positions.items()}))
    read = {path: Position.from_json(value) for path, value in kept.items()}
    return {path: position for path, position in read.items() if position is not None}


async def quiet(seconds: float) -> None:
    """Let time pass in which nothing is written."""
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, passed.set)
    await passed.wait()
