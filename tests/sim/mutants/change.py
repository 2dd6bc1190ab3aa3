"""A mutant: one row of a table of the core, dropped or turned into its opposite for as long as a context lasts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Mutant:
    """One row changed, and who is to notice that: simulated worlds, tests, or first the one and then the other."""

    table: str
    row: str
    change: Callable[[], Any]  # a context in which the row is changed
    scenario: str | None = None  # the kind of bad day that asks for this row
    tests: tuple[str, ...] = ()  # below tests/, as pytest names them

    @property
    def name(self) -> str:
        """The table and its row."""
        return f"{self.table}: {self.row}"


def _rules(*names: str) -> tuple[str, ...]:
    """Return the unit tests of these decisions."""
    return tuple(f"unit/core/rules/test_{name}.py" for name in names)


def _handled(*names: str) -> tuple[str, ...]:
    """Return the unit tests of these handlers."""
    return tuple(f"unit/core/handlers/test_{name}.py" for name in names)


def _nothing(*_: object) -> None:
    """Answer nothing."""


def _set(table: MutableMapping[Any, Any], key: Any, value: Any) -> Callable[[], Any]:
    """Return a context in which one row of a mapping says something else."""

    @contextmanager
    def change() -> Iterator[None]:
        before = table[key]
        table[key] = value
        try:
            yield
        finally:
            table[key] = before

    return change


def _drop(table: MutableMapping[Any, Any], key: Any) -> Callable[[], Any]:
    """Return a context in which a mapping lacks one row."""

    @contextmanager
    def change() -> Iterator[None]:
        before = dict(table)
        del table[key]
        try:
            yield
        finally:
            table.clear()
            table.update(before)  # in the order of before

    return change


def _swap(module: Any, name: str, value: Any) -> Callable[[], Any]:
    """Return a context in which a table is another one, wherever the core has it by that name."""

    @contextmanager
    def change() -> Iterator[None]:
        before = getattr(module, name)
        core = [found for key, found in sys.modules.items() if key.startswith(("vigil.core.", "tests.sim.host"))]
        holders = [found for found in core if getattr(found, name, None) is before]
        for found in holders:
            setattr(found, name, value)
        try:
            yield
        finally:
            for found in holders:
                setattr(found, name, before)

    return change


def _both(one: Callable[[], Any], other: Callable[[], Any]) -> Callable[[], Any]:
    @contextmanager
    def change() -> Iterator[None]:
        with one(), other():
            yield

    return change
