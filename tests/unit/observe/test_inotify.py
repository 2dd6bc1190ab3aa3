"""Watches of files and folders are told, until they are forgotten."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.following import SOON_S, append
from vigil.observe.inotify import IN_MODIFY, Watches


async def test_a_watch_that_fires_before_the_loop_knows_of_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.touch()
    loop = asyncio.get_running_loop()
    fired = loop.create_future()
    watches: Watches[str] = Watches(fired.set_result)
    real = loop.call_soon_threadsafe
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *about: real(lambda: loop.call_later(0.1, *about)))

    watches.ask(str(path), IN_MODIFY, "who")
    append(path, b"x")

    assert await asyncio.wait_for(fired, SOON_S) == "who"
    watches.close()


async def test_whoever_is_forgotten_is_told_nothing_and_others_are(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    fired: list[str] = []
    told = asyncio.Event()

    def note(who: str) -> None:
        fired.append(who)
        told.set()

    watches = Watches(note)
    for who in ("forgotten", "kept"):
        watches.ask(str(path), IN_MODIFY, who)
    await asyncio.sleep(0)
    watches.forget(["forgotten"])
    append(path, b"x")
    await asyncio.wait_for(told.wait(), SOON_S)
    watches.close()

    assert fired == ["kept"]
    with pytest.raises(OSError, match="nothing is watched"):
        watches.ask(str(path), IN_MODIFY, "late")
