"""A launch's token is its own, outlives the daemon, and is asked only of launches that were given one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.builders import make_launch
from vigil.daemon.base.hook_key import HookKey


def test_a_token_is_of_one_launch_and_of_one_home(tmp_path: Path) -> None:
    one, other = HookKey(tmp_path / "a", now=10.0), HookKey(tmp_path / "b", now=10.0)
    launch = replace(make_launch(), created_at=11.0)
    token = one.token_of(launch.id)

    assert one.fits(launch, token)
    assert not one.fits(launch, one.token_of("another-1"))
    assert not one.fits(launch, other.token_of(launch.id))
    assert not any(one.fits(launch, word) for word in ("", "\ud800", token[:-1], token.upper() + "x"))


def test_the_next_daemon_knows_the_tokens_of_the_last(tmp_path: Path) -> None:
    token = HookKey(tmp_path / "key", now=10.0).token_of("s1-1")

    assert HookKey(tmp_path / "key", now=99.0).token_of("s1-1") == token
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("lost", [None, "", "[]", "{}", '{"key": 1, "made_at": 2.0}', '{"key": "ab"}'])
def test_launches_from_before_the_key_are_believed_without_a_token(tmp_path: Path, lost: str | None) -> None:
    if lost is not None:
        (tmp_path / "key").write_text(lost)
    key = HookKey(tmp_path / "key", now=10.0)

    assert key.fits(replace(make_launch(), created_at=9.9), "")
    assert not key.fits(replace(make_launch(), created_at=10.1), "")
