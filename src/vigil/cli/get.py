"""`vigil get`: all there is about one session."""

from __future__ import annotations

from typing import Any

import click

from vigil.cli.options import name_argument, output_option, show
from vigil.client import connect
from vigil.text import one_line

SHOWN = 8  # how many words of an agent


@click.command()
@name_argument
@output_option
def get(name: str, output: str) -> None:
    """Show all there is about NAME.

    Example: vigil get fix-tests -o json"""
    session = connect().session(name)
    show(session, output, (f"{key + ':':<26} {one_line(value)}" for key, value in flat(session)))


def _listed(items: list[Any]) -> str:
    """Return a list in one line; of an agent's words the last ones."""
    if any(isinstance(item, dict) and "what" in item for item in items):
        return ", ".join(map(_said, items[-SHOWN:]))
    return " ".join(map(_shown, items)) or "-"


def _shown(item: Any) -> str:
    """Return one item: a process with its pid, an open thing with its start."""
    if not isinstance(item, dict):
        return str(item)
    name = next((item[key] for key in ("name", "path", "id") if item.get(key)), "something")
    more = next((item[key] for key in ("pid", "since", "grown_at", "at") if item.get(key)), None)
    return f"{name} ({more})"


def _said(word: dict[str, Any]) -> str:
    """Return one word of an agent."""
    parts = (str(word["at"])[11:19], word["what"], word.get("tool"), word.get("text"))
    return " ".join(part for part in parts if part)


def flat(value: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return a nested value as rows of key and text."""
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
