"""What a daemon finds: whether its home is the one it was, and what a copy of it knows."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.unit.builders import make_launch, make_session
from vigil.core.model.launch import ProcessId
from vigil.core.model.session import State
from vigil.daemon.start.stored import Past, estranged, is_copy, place_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


def test_a_home_that_stayed_was_moved_or_was_put_back_is_itself(home: Path) -> None:
    known = {"boot": "b", "home": place_of(home)}
    assert not is_copy(known, home)
    moved = home.rename(home.with_name("moved"))
    assert not is_copy(known, moved)
    shutil.copytree(moved, home)
    assert not is_copy(known, home)
    os.symlink(home, home.with_name("link"))
    assert not is_copy(known, home.with_name("link"))


def test_a_copy_is_one_and_so_is_a_database_that_came_alone(home: Path) -> None:
    copy = Path(shutil.copytree(home, home.with_name("copy")))

    assert is_copy({"boot": "b", "home": place_of(home)}, copy)
    assert is_copy({}, home)


def test_a_home_of_before_knows_only_its_boot(home: Path) -> None:
    assert not is_copy({"boot": "b"}, home)


def test_a_copy_means_none_of_the_processes_of_this_boot() -> None:
    session = make_session(State.RUNNING, launch=make_launch(process=ProcessId(10, 20, "this-boot:1")))

    (found,) = estranged(Past([session], [], [])).sessions

    assert found.launch is not None
    assert found.launch.process is not None
    assert (found.launch.process.pid, found.launch.process.boot) == (10, "of another home")
