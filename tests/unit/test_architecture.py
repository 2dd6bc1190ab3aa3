"""The map shows what is there: every walk of docs/architecture.md passes functions that exist, and is as short as promised."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import vigil

SOURCE = Path(vigil.__file__).parent
MAP = Path(__file__).parents[2] / "docs" / "architecture.md"
WALKS = ("a death", "a hook", "a run", "a reap", "a why")
HOP = re.compile(r"^\d+\. `([^:`]+):([^`]+)`")
AGAIN = re.compile(r"(\d+) to (\d+)")  # of a line that says which steps its event passes too
MOST_HOPS = {"a death": 50, "a reap": 60}


@cache
def walk(name: str) -> list[tuple[str, str]]:
    """Return the hops of a walk, file and function, with those that it passes twice."""
    sections = re.split(r"^## ", MAP.read_text(), flags=re.MULTILINE)
    section = next(text for text in sections if text.startswith(f"The walk of {name}\n"))
    found = [match for line in section.splitlines() if (match := HOP.match(line))]
    own = [(match[1], match[2]) for match in found]
    walked: list[tuple[str, str]] = []
    for match, hop in zip(found, own, strict=True):
        again = AGAIN.findall(match.string) if " passes steps " in match.string else []
        walked += [hop, *(passed for first, last in again for passed in own[int(first) - 1 : int(last)])]
    return walked


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


def test_the_steps_that_a_notice_passes_too_count_again() -> None:
    hops = [function for _, function in walk("a death")]

    assert hops.count("Machine.handle") == hops.count("Commit.put") == hops.count("Store.write") == 2


def test_a_death_passes_no_module_often() -> None:
    times = Counter(file for file, _ in _visits(walk("a death")))
    del times["daemon/supervisor.py"]  # every event passes there, and a notice is one too

    assert {file: number for file, number in times.items() if number > 2} == {}


def _visits(hops: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return where a walk enters a file: hops that stay in one are one visit."""
    return [hop for number, hop in enumerate(hops) if number == 0 or hops[number - 1][0] != hop[0]]


def test_every_module_stands_on_the_page_of_modules_as_it_says_of_itself() -> None:
    root = MAP.parents[1]
    made = subprocess.run([sys.executable, root / "scripts" / "modules"], capture_output=True, text=True, check=True).stdout

    assert (root / "docs" / "modules.md").read_text("utf-8") == made, "scripts/modules > docs/modules.md"
