"""A fresh instance for live tests: real CLI, daemon, keeper and tmux; nothing is left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import Instance


@pytest.fixture
def vigil() -> Iterator[Instance]:
    """An instance of this test's own."""
    instance = Instance()
    yield instance
    instance.destroy()


@pytest.fixture(scope="module")
def shared() -> Iterator[Instance]:
    """One instance for all tests of a file that leave daemon and keeper alone."""
    instance = Instance()
    yield instance
    instance.destroy()


@pytest.fixture
def repeats() -> int:
    """How often a promise is tried: a sample in `make test`, all of it in `make soak-live`."""
    return 100 if os.environ.get("VIGIL_SOAK") else 5


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """A folder for an agent's scripts."""
    return tmp_path
