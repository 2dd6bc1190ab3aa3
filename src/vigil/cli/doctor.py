"""`vigil doctor`: what is missing or wrong here, what it means, and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from vigil.cli.options import output_option
from vigil.cli.table import COLOURS, use_colour
from vigil.doctor import Level, Result, examine_instance, examine_machine, problem
from vigil.errors import VigilError
from vigil.home import find_home
from vigil.text import one_line
from vigil.words import some

LEVEL_COLOURS = {Level.OK: "green", Level.NOTE: "cyan", Level.WARNING: "yellow", Level.PROBLEM: "red"}
INDENT = " " * 22


@click.command()
@click.option("--fix", is_flag=True, help="Mend what is safely mendable, and say what was done.")
@output_option
def doctor(fix: bool, output: str) -> int:
    """Say what is missing or wrong on this machine and for this instance, and what it means.

    Nothing is changed without --fix. The exit code is 1 if there is a problem.

    Example: vigil doctor --fix"""
    results = []
    for result in examine(fix):
        results.append(result)
        if output != "json":
            show(result)
    if output == "json":
        print(json.dumps([json_of(result) for result in results]))
    else:
        print(f"\n{summary(results, fix)}")
    return int(any(result.finding.level is Level.PROBLEM for result in results))


def examine(fix: bool) -> Iterator[Result]:
    """Yield all findings, the machine first; an instance without a home is one too."""
    yield from examine_machine()
    try:
        home = find_home()
    except VigilError as error:
        yield Result("home", problem(str(error), "correct VIGIL_HOME, then ask again"))
    else:
        yield from examine_instance(home, fix)


def show(result: Result) -> None:
    """Print one finding: a line, what to do about it, and what was done."""
    finding = result.finding
    level = f"{finding.level:<8}"
    if use_colour():
        level = f"\x1b[{COLOURS[LEVEL_COLOURS[finding.level]]}m{level}\x1b[0m"
    print(f"{level} {result.check:<12} {one_line(finding.says)}", flush=True)
    if finding.todo:
        print(f"{INDENT}to do: {one_line(finding.todo)}", flush=True)
    if result.done:
        print(f"{INDENT}done: {one_line(result.done)}", flush=True)


def json_of(result: Result) -> dict[str, str | bool | None]:
    """Return one finding for the interface."""
    finding = result.finding
    return {
        "check": result.check,
        "level": finding.level.value,
        "says": finding.says,
        "todo": finding.todo or None,
        "fixable": finding.mend is not None,
        "done": result.done or None,
    }


def summary(results: list[Result], fix: bool) -> str:
    """Return the last line: how many problems and warnings, and what --fix could mend."""
    levels = [result.finding.level for result in results]
    problems, warnings = levels.count(Level.PROBLEM), levels.count(Level.WARNING)
    if not problems and not warnings:
        return "All is well."
    words = f"{some(problems, 'problem', none='no')}, {some(warnings, 'warning', none='no')}."
    fixable = sum(result.finding.mend is not None and bool(result.finding.todo) for result in results)
    return f"{words} vigil doctor --fix mends {fixable} of them." if fixable and not fix else words
