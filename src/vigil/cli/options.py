"""Arguments and options that several commands share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])
LIMITS = (
    ("--memory-max", "SIZE", "How much memory it may use, such as 2G; needs a cgroup2 (vigil doctor), as the next two."),
    ("--pids-max", "N", "How many processes and threads it may have."),
    ("--cpu-weight", "N", "Its share when cores are short; others have 100."),
)


def output_option(command: F) -> F:
    """Add `-o`: json for programs; table and wide for people."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "wide", "json"]),
        default="table",
        help="How to print: table (default), wide or json.",
    )(command)


def show(found: object, output: str, lines: Iterable[str]) -> None:
    """Print an answer: as JSON for programs, in these lines for people."""
    print(json.dumps(found) if output == "json" else "\n".join(lines))


def reason_option(command: F) -> F:
    """Add `--reason`, kept with the intent and in the record of the death that follows."""
    return click.option("--reason", metavar="TEXT", help="Why: kept in the record of the death that follows.")(command)


def limit_options(command: F) -> F:
    """Add the limits of a launch's cgroup; the daemon reads them."""
    for option, unit, means in reversed(LIMITS):
        command = click.option(option, metavar=unit, help=means)(command)
    return command


def name_argument(command: F) -> F:
    """Add NAME, completed from the existing sessions."""
    return click.argument("name", shell_complete=complete_name)(command)


def complete_name(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the session names with this beginning; none without a daemon, which it does not start."""
    from vigil.client import connect
    from vigil.errors import VigilError

    try:
        sessions = connect(start=False).sessions(everything=True)
    except VigilError:
        return []
    return [CompletionItem(s["name"], help=s["state"]) for s in sessions if s["name"].startswith(incomplete)]


def duration(text: str) -> float:
    """Return seconds from a number or from words like 90s, 10m, 2h; a day at most."""
    seconds = seconds_of(text)
    if not 0 < seconds <= 86400:
        raise click.BadParameter(f"{text!r} is out of range: more than 0, at most 24h")
    return seconds


def seconds_of(text: str) -> float:
    """Return seconds from a number or from words like 90s, 10m, 2h, 7d."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    unit = units.get(text[-1:], 0)
    try:
        seconds = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise click.BadParameter(f"{text!r} is no duration; use seconds, or 90s, 10m, 2h")
    return seconds
