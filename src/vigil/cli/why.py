"""`vigil why`: explains a session's state to a person."""

from __future__ import annotations

import json

import click

from vigil.cli.options import name_argument, output_option
from vigil.client import connect
from vigil.text import one_line


@click.command()
@name_argument
@output_option
def why(name: str, output: str) -> None:
    """Explain why NAME is as it is: verdict, evidence, what was ruled out, what happens next.

    Example: vigil why fix-tests"""
    found = connect().why(name)
    if output == "json":
        print(json.dumps(found))
        return
    print(one_line(f"{found['name']}: {found['verdict']} ({found['confidence']})"))
    for reason in found["reasons"]:
        print(one_line(f"because {reason}"))
    if found["evidence"]:
        print("\nevidence")
        width = max(11, *(len(proof["fact"]) for proof in found["evidence"]))
        for proof in found["evidence"]:
            age = "" if proof["age_s"] is None else f", {proof['age_s']:.0f} s ago"
            print(f"  {proof['fact']:<{width}} {one_line(proof['value'])}  ({proof['source']}{age})")
    if found["ruled_out"]:
        print("\nruled out")
        for line in found["ruled_out"]:
            print(f"  {one_line(line)}")
    print("\nnext")
    for step in found["next"]:
        when = f" at {step['at']}" if step["at"] else ""
        print(f"  {one_line(step['what'])}{when}")
