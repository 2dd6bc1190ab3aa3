"""The house: what a stranger finds by its name, and reads in one go (HOUSE, rules 1 and 2)."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import vigil

SOURCE = Path(vigil.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
NOUNS = {"reading", "sighting", "wiring"}  # these end like a gerund and are none
LINES = 350
FUNCTION_LINES = 50
STILL_LONG = ("daemon/daemon.py", "daemon/supervisor.py", "daemon/sense/death.py")


def test_a_class_name_is_defined_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(SOURCE)))

    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("part", ["core", "daemon"])
def test_a_module_is_named_by_its_topic(part: str) -> None:
    names = {word for path in (SOURCE / part).rglob("*.py") for word in path.relative_to(SOURCE).with_suffix("").parts}

    assert {name for name in names if name.endswith("ing")} - NOUNS == set()


def test_no_file_is_longer_than_a_reader_keeps_in_mind() -> None:
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in MODULES}

    assert {name: lines for name, lines in lengths.items() if lines > LINES and name not in STILL_LONG} == {}


def test_a_file_that_was_split_is_no_exception_any_more() -> None:
    assert [name for name in STILL_LONG if len((SOURCE / name).read_text().splitlines()) <= LINES] == []


def test_no_function_is_longer_than_a_screen() -> None:
    found: dict[str, int] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                found[f"{path.relative_to(SOURCE)}:{node.name}:{node.lineno}"] = node.end_lineno - node.lineno + 1

    assert {name: lines for name, lines in found.items() if lines > FUNCTION_LINES} == {}
