"""Fixtures of the real clients: one model for all, an instance with a clean environment for each test, skips with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import Instance
from tests.real.clients import CLIENTS, Client
from tests.real.model_api import ModelApi
from tests.real.stage import Stage

KEPT = ("PATH", "LANG", "VIGIL_HOME", "VIGIL_CONFIG")  # whoever runs the tests may have keys of their own


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelApi]:
    """The scripted model."""
    server = ModelApi(tmp_path_factory.mktemp("model") / "requests.jsonl")
    yield server
    server.stop()


@pytest.fixture
def vigil() -> Iterator[Instance]:
    """An instance of this test's own; nothing may be left of it."""
    instance = Instance()
    instance.env = {key: value for key, value in instance.env.items() if key in KEPT}
    yield instance
    instance.destroy()


@pytest.fixture
def stage(vigil: Instance, api: ModelApi, tmp_path: Path) -> Stage:
    """Where clients are played."""
    return Stage(vigil, api, tmp_path)


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> Client:
    """Every client in turn; those that are not installed are skipped."""
    return _installed(request.param)


@pytest.fixture
def claude() -> Client:
    """Claude Code."""
    return _installed("claude")


def _installed(name: str) -> Client:
    found = CLIENTS[name]
    if found.missing:
        pytest.skip(found.missing)
    return found
