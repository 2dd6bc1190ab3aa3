"""`vigil schema`: prints the JSON Schema of the manifest."""

from __future__ import annotations

import json

import click


@click.command()
def schema() -> None:
    """Print the JSON Schema of vigil.toml, for editors; no daemon is needed.

    Example: vigil schema > vigil.schema.json"""
    from vigil.manifest.schema import schema as made

    print(json.dumps(made(), indent=2))
