"""Adoption of a launch whose birth nobody was told of."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.builders import make_launch, make_session
from vigil.core.events import Exited, Interrupted, LaunchFailed
from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.session import State
from vigil.daemon.act.order import Orders
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.ground import Ground
from vigil.daemon.sense.census import Census
from vigil.daemon.start.takeover import Adopter
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


def make_adopter(folder: Path, copied: bool = False, hangs: bool = False) -> Adopter:
    custody: Any = SimpleNamespace(knows=lambda _launch, _kind: None)  # a launch that is not followed needs no more of it
    unused: Any = None
    ground = Ground(home_at(folder.parent.parent), Clock(), process.read_boot(), unused)
    keeper: Any = SimpleNamespace(wedged=hangs, pid=None)

    async def nothing_to_end(_launch: Launch) -> list[ProcessId]:
        return []

    orders = Orders(ground, Census(ground.boot, str(ground.home.spool), lambda: None), nothing_to_end)
    return Adopter(ground, custody, unused, copied, unused, keeper, orders)


async def test_of_a_copy_nothing_is_taken_for_alive_not_even_a_birth_of_this_boot(folder: Path) -> None:
    record_json(str(folder / "born.json"), {"agent": [1, 7], "boot": process.read_boot()})

    event = await make_adopter(folder, copied=True).adopt(make_session(State.STARTING, launch=make_launch()))

    assert isinstance(event, Exited)
    assert event.exit.rebooted


async def test_a_birth_of_another_boot_is_a_reboot_and_nothing_of_it_is_taken_for_alive(folder: Path) -> None:
    record_json(str(folder / "born.json"), {"agent": [1, 7], "boot": "another-boot:1"})
    (folder / "began").touch()

    event = await make_adopter(folder).adopt(make_session(State.STARTING, launch=make_launch()))

    assert isinstance(event, Exited)
    assert event.exit.rebooted


async def test_an_order_that_no_keeper_took_up_is_given_again(folder: Path) -> None:
    event = await make_adopter(folder).adopt(make_session(State.STARTING, launch=make_launch()))

    assert event == Interrupted("s1-1")
    assert not folder.exists()


async def test_a_launch_that_was_never_ordered_is_ordered_now(folder: Path) -> None:
    (folder / "launch.json").unlink()

    assert await make_adopter(folder, hangs=True).adopt(make_session(State.STARTING, launch=make_launch())) == Interrupted(
        "s1-1"
    )


@pytest.mark.parametrize("touched", ["", "shim-exit"])
async def test_an_order_that_a_keeper_may_have_is_void_before_another_launch_is_made(folder: Path, touched: str) -> None:
    if touched:
        (folder / touched).touch()

    event = await make_adopter(folder, hangs=not touched).adopt(make_session(State.STARTING, launch=make_launch()))

    assert isinstance(event, LaunchFailed)
    assert event.ours
    assert not (folder / "launch.json").exists()


async def test_an_order_that_the_last_daemon_took_back_has_its_record(folder: Path) -> None:
    (folder / "launch.json").rename(folder / "withdrawn.json")

    event = await make_adopter(folder).adopt(make_session(State.STARTING, launch=make_launch()))

    assert isinstance(event, LaunchFailed)


async def test_an_agent_that_began_and_is_gone_untold_ended_unobserved(folder: Path) -> None:
    record_json(str(folder / "launch.json"), {"runtime": "headless"})
    (folder / "began").touch()

    event = await make_adopter(folder).adopt(make_session(State.STARTING, launch=make_launch()))

    assert isinstance(event, Exited)
    assert (event.exit.exit_code, event.exit.signal, event.exit.started) == (None, None, True)


@pytest.mark.parametrize(("began", "expected"), [(True, Exited), (False, Interrupted)])
async def test_an_order_of_another_boot_ended_with_it_or_is_given_again(folder: Path, began: bool, expected: type) -> None:
    record_json(str(folder / "launch.json"), {"boot": "another-boot:1"})
    if began:
        (folder / "began").touch()

    event = await make_adopter(folder).adopt(make_session(State.STARTING, launch=make_launch()))

    assert isinstance(event, expected)
