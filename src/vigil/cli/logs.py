"""`vigil logs`: what an agent printed."""

from __future__ import annotations

import sys

import click

from vigil.cli.options import name_argument
from vigil.client import connect


@click.command()
@name_argument
@click.option("-f", "--follow", is_flag=True, help="Go on printing until the launch is over.")
@click.option("-n", "lines", type=click.IntRange(0, 1_000_000), default=200, help="How many of the last lines (default: 200).")
@click.option("--raw", is_flag=True, help="As it was printed, with escape sequences; may change your terminal.")
def logs(name: str, follow: bool, lines: int, raw: bool) -> None:
    """Show what NAME printed: its pane's text, or its stdout and stderr.

    Example: vigil logs -f fix-tests"""
    client = connect()
    chunks = client.follow_logs(name, lines, raw) if follow else iter([client.logs(name, lines, raw)])
    for data in chunks:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
