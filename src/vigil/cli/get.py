"""`vigil get`: all there is about one session."""

from __future__ import annotations

import json
from typing import Any

import click

from vigil.cli.options import name_argument, output_option
from vigil.client import connect
from vigil.text import one_line

SHOWN = 8  # of a list of records, the last ones


@click.command()
@name_argument
@output_option
def get(name: str, output: str) -> None:
    """Show all there is about NAME.

    Example: vigil get fix-tests -o json
    """
    session = connect().session(name)
    if output == "json":
        print(json.dumps(session))
    else:
        for key, value in flat(session):
            print(f"{key + ':':<26} {one_line(value)}")


def _listed(items: list[Any]) -> str:
    """Return a list in one line: of records the last ones."""
    if any(isinstance(item, dict) for item in items):
        return ", ".join(map(_words, items[-SHOWN:]))
    return " ".join(map(str, items)) or "-"


def _words(part: dict[str, Any]) -> str:
    """Return what a record is about, and since when."""
    first = next((part[key] for key in ("name", "what", "path", "id") if part.get(key)), "?")
    if part.get("pid"):
        return f"{first} ({part['pid']})"
    at = str(part.get("at") or part.get("since") or part.get("grown_at") or "")[11:19]
    more = [str(part[key]) for key in ("tool", "text") if part.get(key)]
    return " ".join([*([at] if at else []), str(first), *more])


def flat(value: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return a nested value as lines of key and text."""
    rows: list[tuple[str, str]] = []
    for key, item in value.items():
        if isinstance(item, dict) and prefix != "axes.":
            rows += flat(item, f"{prefix}{key}.")
        elif isinstance(item, dict):
            sure = "conclusive" if item["conclusive"] else "inferred"
            rows.append((f"{prefix}{key}", f"{item['value']}  ({item['source']}, {sure}, since {item['since']})"))
        elif isinstance(item, list):
            rows.append((f"{prefix}{key}", _listed(item)))
        else:
            rows.append((f"{prefix}{key}", "-" if item is None else str(item)))
    return rows
