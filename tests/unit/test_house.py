"""The house: what a stranger finds by its name (HOUSE, rules 1 and 2)."""

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
