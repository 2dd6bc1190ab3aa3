"""`vigil fake-agent`: plays a scripted agent."""

from __future__ import annotations

import sys

import click


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def fake_agent(words: tuple[str, ...]) -> None:
    """Play a scripted agent.

    Example: vigil fake-agent works"""
    from vigil.fake_agent.main import main

    sys.exit(main(list(words)))
