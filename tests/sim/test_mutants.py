"""Mutants: every table of the core has them, each is noticed, and what nothing can notice is explained."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from tests.sim.mutants import EXPLAINED, Fate, Mutant, decide, mutant_named, mutants
from tests.sim.mutants.change import _swap
from tests.sim.mutants.trial import Unfit, noticed_by
from vigil import core
from vigil.core.rules import prompt

# Tables that decide nothing: words for people, names of fields, and how far back something is shown.
WORDS = {
    "rules.activity.HELD": "words for people",
    "rules.explain.DOUBTFUL": "which states are explained by their doubt",
    "rules.explain.HOLDS": "words for people",
    "rules.explain.SURE": "in which words a doubt is told",
    "rules.liveness.COLUMNS": "TABLE is made of it",
    "rules.liveness.ROWS": "TABLE is made of it",
    "rules.sighting.WORKS": "words for people",
    "rules.stall.remedy.LADDER": "REMEDIES are made of it",
    "rules.stall.verdict.DEAF": "ROWS are made of it",
    "rules.stall.verdict.OPPOSITE": "words for people",
    "rules.stall.verdict.SHOWN": "words for people",
    "rules.stall.verdict.UNREAD": "words for people",
    "rules.stall.verdict.UNREAD_FILES": "ROWS are made of it",
    "rules.summary.ENDED_BY": "words for people",
    "handlers.conversation.REFUSALS": "words for people",
    "handlers.doubt.WORDS": "words for people",
    "handlers.watchdog.COMPARED": "what a warning that is repeated says of what changed",
}


def modules() -> Iterator[ModuleType]:
    """Yield all modules of the core that decide or handle."""
    for found in pkgutil.walk_packages(core.__path__, "vigil.core."):
        if not found.name.startswith(("vigil.core.model", "vigil.core.events")):
            yield import_module(found.name)


def tables() -> dict[str, Any]:
    """Return all tables of the core, as they are now, by their names."""
    found = {}
    for module in modules():
        for line in ast.parse(inspect.getsource(module)).body:
            names = [line.target] if isinstance(line, ast.AnnAssign) else line.targets if isinstance(line, ast.Assign) else []
            for name in (one.id for one in names if isinstance(one, ast.Name) and one.id.strip("_").isupper()):
                value = getattr(module, name)
                if isinstance(value, tuple | frozenset | dict):
                    found[f"{module.__name__.removeprefix('vigil.core.')}.{name}"] = (
                        dict(value) if isinstance(value, dict) else value
                    )
    return found


def test_every_table_of_the_core_has_mutants_or_is_words() -> None:
    before = tables()
    untouched = set(before)

    for mutant in mutants():
        with mutant.change():
            untouched -= {name for name, rows in tables_of(untouched).items() if rows != before[name]}

    assert untouched == WORDS.keys()


def tables_of(names: set[str]) -> dict[str, Any]:
    """Return these tables as they are now."""
    found = {}
    for name in names:
        module, _, table = name.rpartition(".")
        found[name] = getattr(import_module(f"vigil.core.{module}"), table)
    return found


def test_every_mutant_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in mutants()]

    assert len(names) == len(set(names))


def test_what_is_explained_is_a_mutant() -> None:
    assert EXPLAINED.keys() <= {mutant.name for mutant in mutants()}


def test_a_mutant_that_a_test_notices_is_killed_by_it() -> None:
    found = decide(mutant_named("rules.prompt.REFUSALS: 0 is dropped"), quick=True)

    assert found.fate is Fate.KILLED_BY_TEST
    assert found.words.startswith("tests/unit/core/rules/test_prompt.py::")


def test_a_mutant_that_nothing_notices_survives() -> None:
    unchanged = _swap(prompt, "REFUSALS", prompt.REFUSALS)

    assert noticed_by(Mutant("none", "nothing is changed", unchanged, tests=("unit/core/rules/test_prompt.py",))) is None


def test_tests_that_are_not_there_say_nothing_of_a_mutant() -> None:
    unchanged = _swap(prompt, "REFUSALS", prompt.REFUSALS)

    with pytest.raises(Unfit):
        noticed_by(Mutant("none", "nothing is changed", unchanged, tests=("unit/core/rules/test_prompt.py::test_none",)))
