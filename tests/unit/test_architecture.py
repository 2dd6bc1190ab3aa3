"""The map shows what is there: every walk of docs/architecture.md passes functions that exist, and is as short as promised."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import vigil

SOURCE = Path(vigil.__file__).parent
MAP = Path(__file__).parents[2] / "docs" / "architecture.md"
WALKS = ("a death", "a hook", "a run", "a reap", "a why")
HOP = re.compile(r"^\d+\. `([^:`]+):([^`]+)`")
MOST_HOPS = {"a death": 50, "a reap": 60}


@cache
def walk(name: str) -> list[tuple[str, str]]:
    """Return the hops of a walk: file and function."""
    sections = re.split(r"^## ", MAP.read_text(), flags=re.MULTILINE)
    section = next(text for text in sections if text.startswith(f"The walk of {name}\n"))
    return [(hop[1], hop[2]) for line in section.splitlines() if (hop := HOP.match(line))]


@cache
def functions_of(file: str) -> set[str]:
    """Return the functions of a file, methods with their class; of a shell script, its name alone."""
    path = SOURCE / file
    if path.suffix != ".py":
        return {path.stem}
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
            found |= {node.name, *(f"{node.name}.{method.name}" for method in methods)}
    return found


@pytest.mark.parametrize("name", WALKS)
def test_every_step_of_a_walk_is_there(name: str) -> None:
    hops = walk(name)

    assert len(hops) >= 5
    assert [f"{file}:{function}" for file, function in hops if not (SOURCE / file).exists()] == []
    assert [f"{file}:{function}" for file, function in hops if function not in functions_of(file)] == []


@pytest.mark.parametrize("name", MOST_HOPS)
def test_a_walk_is_short(name: str) -> None:
    assert len(walk(name)) <= MOST_HOPS[name]


def test_a_death_passes_no_module_often() -> None:
    times = Counter(file for file, _ in _visits(walk("a death")))
    del times["daemon/supervisor.py"]  # every event passes there, and a notice is one too

    assert {file: number for file, number in times.items() if number > 2} == {}


def _visits(hops: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return where a walk enters a file: hops that stay in one are one visit."""
    return [hop for number, hop in enumerate(hops) if number == 0 or hops[number - 1][0] != hop[0]]
