"""Checking: a document becomes a checked file, or the list of all its problems, in the order of its lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from vigil.agents.kinds import ConfiguredAgents
from vigil.config.checking import KEY, MOST_PROBLEMS, unknown_key, worded
from vigil.config.wording import place
from vigil.core.model.restart import RestartPolicy
from vigil.manifest.contradictions import contradictions
from vigil.manifest.lines import Place, line_at, lines_of
from vigil.manifest.models import ManifestFile

ENV = ("team", "role", "env")


def check(
    document: dict[str, Any], text: str, agents: Mapping[str, ConfiguredAgents], defaults: RestartPolicy
) -> ManifestFile | tuple[str, ...]:
    """Return the file in a document, or its problems: a line each, with its place in the text."""
    found: list[tuple[Place, ErrorDetails | str]] = list(contradictions(document, agents, defaults))
    try:
        file = ManifestFile.model_validate(document)
    except ValidationError as error:
        found += [(_place_of(mistake), mistake) for mistake in error.errors(include_url=False)]
    else:
        if not found:
            return file
    return _told(found, lines_of(text, document))


def _place_of(mistake: ErrorDetails) -> Place:
    where = mistake["loc"]
    return where[:-1] if mistake["type"] == "value_error" and where[-1] == KEY else where


def _told(found: list[tuple[Place, ErrorDetails | str]], lines: dict[Place, int]) -> tuple[str, ...]:
    """Return the first problems in words, and the number of the rest: a million would take minutes."""
    ordered = sorted(found, key=lambda problem: line_at(lines, problem[0]) or 0)
    told = [_one(where, problem, line_at(lines, where)) for where, problem in ordered[:MOST_PROBLEMS]]
    if len(ordered) > MOST_PROBLEMS:
        told.append(f"and {len(ordered) - MOST_PROBLEMS} more problems")
    return tuple(told)


def _one(where: Place, problem: ErrorDetails | str, line: int | None) -> str:
    words = problem if isinstance(problem, str) else _words_for(where, problem)
    if line is None and len(where) == 1 and not isinstance(problem, str) and problem["type"] == "missing":
        line = 1  # the file itself lacks it
    return f"{place(where)}{f' (line {line})' if line else ''}: {words}"


def _words_for(where: Place, mistake: ErrorDetails) -> str:
    if mistake["type"] == "extra_forbidden":
        return unknown_key(ManifestFile, where)
    if tuple(part for part in where if isinstance(part, str))[:3] == ENV and mistake["type"] != "value_error":
        return f"must be {'text in quotes' if len(where) > 5 else 'a table'}"  # never shows the value
    return worded(mistake["type"], where, mistake["input"], mistake.get("ctx", {}))
