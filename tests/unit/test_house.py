"""The house: what a stranger finds by its name, and what calls what (HOUSE, rules 1, 2 and 8)."""

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


def test_only_the_machine_has_the_incidents_of_sessions_follow() -> None:
    handlers = (SOURCE / "core" / "handlers").glob("*.py")

    assert [path.stem for path in handlers if "session_incident" in _imported(path)] == []


def _imported(path: Path) -> set[str]:
    """Return every part of what a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            found |= {*(node.module or "").split("."), *(name.name for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {word for name in node.names for word in name.name.split(".")}
    return found


def test_the_page_a_reader_starts_from_lists_every_decision() -> None:
    rules = SOURCE / "core" / "rules"
    paths = [path.relative_to(rules).with_suffix("") for path in rules.rglob("*.py") if path.name != "__init__.py"]
    lines = (ast.get_docstring(ast.parse((rules / "__init__.py").read_text())) or "").splitlines()
    listed = [line.partition(":")[0].strip() for line in lines if line.startswith("    ")]

    assert sorted(listed) == sorted(".".join(path.parts) for path in paths)
