"""Every key of a TOML document has its line, or none at all."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.manifest.lines import Place, line_at, lines_of

EVERYTHING = '''# a comment = [ "not", { a = key } ]
workspace = "w"  # and [another]

[[team]]  # one
"name" = "a"
text = """
fake = 1
[[fake]]
\\""" ends in two quotes"""""
literal = \'\'\'
fake = 'x'
\'\'\'\'
[[team.role]]
name = 'has # and = and ]'
command = [
  "a",  # with ] in a comment
  # fake = 1
  "b\\"]",

  """c
d""", [1,
  2], { deep = [
    3 ], x.y = 4 },
]
env = { A = "1", "B C" = '2', 'D' = """
3""", E.F = 4 }
when = 1979-05-27 07:32:00
backoff.base = 1
backoff . "cap" = 2
[[team.role]]

  [team.role.watchdog] # indented
  tool_timeout = 1

  [team.role."health"]
  heartbeat = 2
[[team]]
role = [{ name = "x" },
  { name = "y" }]
[other.table]
"\\u0041\\n" = +1.5e3
[other]
z = inf
'''


def places_of(text: str) -> dict[Place, int]:
    return lines_of(text, tomllib.loads(text))


def test_every_kind_of_place_has_its_line() -> None:
    assert places_of(EVERYTHING) == {
        ("workspace",): 2,
        ("team",): 4,
        ("team", 0): 4,
        ("team", 0, "name"): 5,
        ("team", 0, "text"): 6,
        ("team", 0, "literal"): 10,
        ("team", 0, "role"): 13,
        ("team", 0, "role", 0): 13,
        ("team", 0, "role", 0, "name"): 14,
        ("team", 0, "role", 0, "command"): 15,
        ("team", 0, "role", 0, "command", 0): 16,
        ("team", 0, "role", 0, "command", 1): 18,
        ("team", 0, "role", 0, "command", 2): 20,
        ("team", 0, "role", 0, "command", 3): 21,
        ("team", 0, "role", 0, "command", 3, 0): 21,
        ("team", 0, "role", 0, "command", 3, 1): 22,
        ("team", 0, "role", 0, "command", 4): 22,
        ("team", 0, "role", 0, "command", 4, "deep"): 22,
        ("team", 0, "role", 0, "command", 4, "deep", 0): 23,
        ("team", 0, "role", 0, "command", 4, "x"): 23,
        ("team", 0, "role", 0, "command", 4, "x", "y"): 23,
        ("team", 0, "role", 0, "env"): 25,
        ("team", 0, "role", 0, "env", "A"): 25,
        ("team", 0, "role", 0, "env", "B C"): 25,
        ("team", 0, "role", 0, "env", "D"): 25,
        ("team", 0, "role", 0, "env", "E"): 26,
        ("team", 0, "role", 0, "env", "E", "F"): 26,
        ("team", 0, "role", 0, "when"): 27,
        ("team", 0, "role", 0, "backoff"): 28,
        ("team", 0, "role", 0, "backoff", "base"): 28,
        ("team", 0, "role", 0, "backoff", "cap"): 29,
        ("team", 0, "role", 1): 30,
        ("team", 0, "role", 1, "watchdog"): 32,
        ("team", 0, "role", 1, "watchdog", "tool_timeout"): 33,
        ("team", 0, "role", 1, "health"): 35,
        ("team", 0, "role", 1, "health", "heartbeat"): 36,
        ("team", 1): 37,
        ("team", 1, "role"): 38,
        ("team", 1, "role", 0): 38,
        ("team", 1, "role", 0, "name"): 38,
        ("team", 1, "role", 1): 39,
        ("team", 1, "role", 1, "name"): 39,
        ("other",): 40,
        ("other", "table"): 40,
        ("other", "table", "A\n"): 41,
        ("other", "z"): 43,
    }


def test_lines_end_as_they_do_elsewhere() -> None:
    assert places_of(EVERYTHING.replace("\n", "\r\n")) == places_of(EVERYTHING)


def test_an_inline_table_over_several_lines_is_understood_where_the_parser_allows_it() -> None:
    text = "a = {\n  b = 1, # one\n  c = { d = 2 },\n}\n"

    assert lines_of(text, {"a": {"b": 1, "c": {"d": 2}}}) == {("a",): 1, ("a", "b"): 2, ("a", "c"): 3, ("a", "c", "d"): 3}


@pytest.mark.parametrize("text", ["", "# nothing", "\n\n"])
def test_an_empty_document_has_no_lines(text: str) -> None:
    assert places_of(text) == {}


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("a = 1", {"b": 1}),
        ("a = 1", {"a": 1, "b": 2}),
        ("a = 1\nb = 2", {"a": 1}),
        ("a = [1, 2]", {"a": [1]}),
        ("a = ", {"a": 1}),
        ("a ? 1", {"a": 1}),
        ("[a", {"a": {}}),
        ("a = [1 2]", {"a": [1, 2]}),
        ('"\\q" = 1', {"q": 1}),
        ("?", {}),
        (f"a = {'[' * 5000}", {}),
    ],
)
def test_who_disagrees_with_the_parser_tells_no_line(text: str, document: dict[str, Any]) -> None:
    assert lines_of(text, document) == {}


def test_what_is_missing_has_the_line_of_its_table() -> None:
    lines: dict[Place, int] = {("a",): 1, ("a", 0): 2, ("a", 0, "b"): 3}

    assert line_at(lines, ("a", 0, "b")) == 3
    assert line_at(lines, ("a", 0, "c", "d")) == 2
    assert line_at(lines, ("b",)) is None
    assert line_at(lines, ()) is None


# Each has one key of its own, named K, and stands for some lines.
STATEMENTS = st.sampled_from(
    [
        "K = 1  # K = 2",
        "",
        "  # [[K]]",
        "[K]",
        "[[K]]",
        "[[many]]\nK = 1",
        "[[many.K]]",
        "[many.K.'a b']",
        'K.sub . "q\\"u" = \'#\'',
        "'K' = [ # ]\n  1,\n\n  { sub = \"}\" }, # {\n  ]",
        '"K" = """\n[no]\nno = 1 \\"""""\n"""',
        "K = '''\n[no]\nno = 1 \\'''",
        'K = { a = [\n 1 ], b.c = "" }',
        "K = 1979-05-27 07:32:00 #",
        "K = '' # '",
    ]
)


@given(st.lists(STATEMENTS, max_size=12))
def test_every_key_of_any_document_stands_where_it_is_written(statements: list[str]) -> None:
    text = "\n".join(statement.replace("K", f"k{number}") for number, statement in enumerate(statements))
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return

    found = lines_of(text, document)

    assert bool(found) == bool(document)
    for where, line in found.items():
        if str(where[-1]).startswith("k"):
            assert str(where[-1]) in text.split("\n")[line - 1], (where, line)


@given(st.text(alphabet="ab.=[]{}\"'\\#,\n 1-", max_size=40))
def test_any_text_has_lines_or_none(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        document = {}

    assert bool(lines_of(text, document)) == bool(document)
