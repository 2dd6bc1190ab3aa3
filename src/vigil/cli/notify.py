"""`vigil notify test`: tries a way to reach people."""

from __future__ import annotations

import json

import click
from click.shell_completion import CompletionItem

from vigil.cli.options import output_option
from vigil.client import connect
from vigil.errors import VigilError


@click.group(no_args_is_help=True)
def notify() -> None:
    """Try a way to reach people; routes are in the configuration file.

    Example: vigil notify test ops"""


def complete_route(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the routes with this beginning; none without a daemon, which it does not start."""
    try:
        found = connect(start=False).status()["routes"]
    except (VigilError, KeyError):
        return []
    return [CompletionItem(one["name"], help=one["by"]) for one in found if one["name"].startswith(incomplete)]


@notify.command()
@click.argument("route", shell_complete=complete_route)
@output_option
def test(route: str, output: str) -> None:
    """Send a test by ROUTE, now, and say whether it arrived; exit 1 if it did not.

    Example: vigil notify test ops"""
    found = connect().test_route(route)
    if output == "json":
        print(json.dumps(found))
    elif found["outcome"] == "delivered":
        print(f"{route} took the test in {found['took_s']:.1f} s")
    if found["outcome"] != "delivered":
        words = "may not have taken the test" if found["outcome"] == "unknown" else "did not take the test"
        raise VigilError(f"{route} {words}: {found['why']}")
