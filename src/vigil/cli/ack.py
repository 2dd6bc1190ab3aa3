"""`vigil ack`: marks an incident as known."""

from __future__ import annotations

import json

import click

from vigil.cli.incidents import complete_incident
from vigil.cli.options import output_option
from vigil.client import connect


@click.command()
@click.argument("incident_id", metavar="ID", shell_complete=complete_incident)
@output_option
def ack(incident_id: str, output: str) -> None:
    """Say that you know of incident ID: nobody is told of it again until it is over. Only its end resolves it.

    Example: vigil ack i-sabcdefgh-stuck-5f3a9c0e12345
    """
    found = connect().ack(incident_id)
    if output == "json":
        print(json.dumps(found))
    else:
        print(f"{found['id']} is acknowledged: {found['kind']} of {found['session'] or 'the host'}; it resolves by itself")
