"""A name is checked at the door, and means exactly itself."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.core.model.identity import stem_of, why_not_a_name, why_not_an_identity

GOOD = ("a", "0", "coder-1", "a_b", "7-", "x" * 64)
BAD = (
    "",
    "A",
    "-a",
    "_a",
    "a b",
    "a.b",
    "a/b",
    "a\n",
    "\na",
    "a\0",
    "é",
    "ａ",
    "٣",
    "a" * 65,
    "..",
    "~",
    "%41",
    "a:b",
    "a*",
    " a",
)


@pytest.mark.parametrize("name", GOOD)
def test_letters_digits_dashes_and_underscores_make_a_name(name: str) -> None:
    assert why_not_a_name(name) is None
    assert why_not_an_identity(name) is None


@pytest.mark.parametrize("name", BAD)
def test_anything_else_is_refused_with_the_rule(name: str) -> None:
    why = why_not_a_name(name)

    assert why is not None
    assert "lower-case letters, digits, - and _" in why
    assert "\n" not in why


@pytest.mark.parametrize("name", [name for name in BAD if "/" not in name])
def test_a_part_of_an_identity_obeys_the_same_rule(name: str) -> None:
    for position in range(4):
        parts = ["shop", "backend", "coder", "0"]
        parts[position] = name
        assert why_not_an_identity("/".join(parts)) is not None, parts


def test_an_identity_has_one_part_or_four() -> None:
    verdicts = {count: why_not_an_identity("/".join(["a"] * count)) for count in range(1, 7)}

    assert [count for count, why in verdicts.items() if why is None] == [1, 4]
    assert "workspace/team/role/index" in (verdicts[2] or "")


def test_a_very_long_name_does_not_fill_the_screen() -> None:
    assert len(why_not_a_name("x" * 10_000) or "") < 250
    assert len(why_not_an_identity("x/" * 10_000) or "") < 250


@given(st.text())
def test_only_what_the_rule_says_is_a_name(text: str) -> None:
    assert (why_not_a_name(text) is None) == bool(re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", text, re.ASCII))


@given(st.text())
def test_a_name_is_made_of_any_command(command: str) -> None:
    assert why_not_a_name(f"{stem_of(command)}-x7f2") is None


def test_a_name_made_of_a_command_is_the_programs() -> None:
    assert stem_of("/usr/bin/claude") == "claude"
    assert stem_of("./My Agent.py") == "my-agent-py"
    assert stem_of("dir/") == "dir"
    assert stem_of("...") == "session"
