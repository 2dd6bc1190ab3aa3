"""`vigil get`: all there is about one session."""

from __future__ import annotations

import json
from typing import Any

import click

from vigil.cli.options import name_argument, output_option
from vigil.client import connect
from vigil.text import one_line


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


def shown(part: Any) -> str:
    """Return one of several: a process with its pid, what is open with since when."""
    if not isinstance(part, dict):
        return str(part)
    return f"{part['name'] or part.get('id') or 'something'} ({part['pid'] if 'pid' in part else part.get('since')})"


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
            rows.append((f"{prefix}{key}", " ".join(map(shown, item)) or "-"))
        else:
            rows.append((f"{prefix}{key}", "-" if item is None else str(item)))
    return rows
