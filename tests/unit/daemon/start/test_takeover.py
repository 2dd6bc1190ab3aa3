"""Adoption of a launch whose birth nobody was told of."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.builders import make_launch, make_process, make_session
from vigil.core.events import Exited, Interrupted
from vigil.core.model.session import State
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.ground import Ground
from vigil.daemon.start import takeover as adopt
from vigil.daemon.start.takeover import BIRTH_S, Adopter
from vigil.home import home_at, make_home
from vigil.kernel import process
from vigil.kernel.durable import record_json


@pytest.fixture
def folder(short: Path) -> Path:
    home = home_at(short)
    make_home(home)
    home.launch("s1-1").mkdir()
    record_json(str(home.launch("s1-1") / "launch.json"), {})
    return home.launch("s1-1")


def make_adopter(folder: Path, copied: bool = False, begun: bool = True) -> Adopter:
    custody: Any = SimpleNamespace(knows=lambda _launch, _kind: None)  # a launch that is not followed needs no more of it
    unused: Any = None
    ground = Ground(home_at(folder.parent.parent), Clock(), process.read_boot(), unused)

    async def is_begun(_launch_id: str) -> bool:
        return begun

    return Adopter(ground, custody, unused, copied, unused, is_begun)


async def test_of_a_copy_nothing_is_taken_for_alive_not_even_a_birth_of_this_boot(folder: Path) -> None:
    record_json(str(folder / "born.json"), {"agent": [1, 7], "boot": process.read_boot()})

    event = await make_adopter(folder, copied=True).adopt(make_session(State.STARTING, launch=make_launch()))

    assert isinstance(event, Exited)
    assert event.exit.rebooted


async def test_a_birth_of_another_boot_is_a_reboot_and_nothing_of_it_is_taken_for_alive(folder: Path) -> None:
    record_json(str(folder / "born.json"), {"agent": [1, 7], "boot": "another-boot:1"})

    event = await make_adopter(folder).adopt(make_session(State.STARTING, launch=make_launch()))

    assert isinstance(event, Exited)
    assert event.exit.rebooted


async def test_an_order_that_nobody_carried_out_is_void_before_another_launch_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adopt, "BIRTH_S", 0.1)

    event = await make_adopter(folder).adopt(make_session(State.STARTING, launch=make_launch()))

    assert event == Interrupted("s1-1")
    assert not (folder / "launch.json").exists()


async def test_a_launch_of_which_nothing_lives_is_interrupted_at_once_and_waits_for_no_birth(folder: Path) -> None:
    began = time.monotonic()

    event = await make_adopter(folder, begun=False).adopt(make_session(State.STARTING, launch=make_launch()))

    assert event == Interrupted("s1-1")
    assert time.monotonic() - began < BIRTH_S / 2
    assert not (folder / "launch.json").exists()


def test_only_what_is_not_born_yet_is_taken_over_beside_the_start(folder: Path) -> None:
    adopter, born = make_adopter(folder), make_launch(process=make_process(100))

    awaited = [
        adopter.awaits_birth(make_session(state, launch=launch))
        for state, launch in (
            (State.STARTING, make_launch()),
            (State.STARTING, born),
            (State.RUNNING, born),
            (State.CRASHED, make_launch(ended_at=1.0)),
        )
    ]

    assert awaited == [True, False, False, False]
