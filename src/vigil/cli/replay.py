"""`vigil replay`: runs a recording through today's policy and shows what differs; asks no daemon, writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from vigil.cli.options import output_option
from vigil.cli.replay_view import lines_of
from vigil.recording import STOPPED, Difference, Recording, Replay, ReplayStep, open_recording
from vigil.text import one_line
from vigil.words import some

SHOWN = 10  # events, unless --all


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-a", "--all", "everything", is_flag=True, help="Show every event that differs, not only first causes.")
@output_option
def replay(file: Path, everything: bool, output: str) -> int:
    """Run a recording through today's policy and show what differs.

    Every recorded event is told to today's core at its recorded time. Shown are the events at which a session first gets
    another answer than it got then; later ones often follow from them. The exit code is 1 if anything differs.

    Example: vigil replay /tmp/today.jsonl"""
    recording = open_recording(file)
    run = Replay(recording)
    if output == "json":
        print(json.dumps(json_of(recording, run)))
        return int(run.differ > 0)
    show(run, everything, wide=output == "wide")
    for line in remarks(recording, run):
        print(line)
    print(summary(run))
    return int(run.differ > 0)


def show(run: Replay, everything: bool, wide: bool) -> None:
    """Print the events that differ, as they come."""
    shown = 0
    for step in run.steps():
        if step.unknown:
            print(one_line(f"event {step.number}: today's core does not know {', '.join(step.unknown)}; replayed without"))
        if step.differs and (everything or (step.cause and shown < SHOWN)):
            shown += 1
            print(f"event {step.number}  {rfc3339(step.now)}  {one_line(heading(step))}")
            for line in lines_of(step, run.names, wide):
                print(f"    {line}")
    if run.differ > shown:
        what = "later ones of the same sessions" if shown < SHOWN else "those not shown"
        print(f"{some(run.differ - shown, 'more event')} differ, {what}: --all shows them")


def heading(step: ReplayStep) -> str:
    """Return what happened, and to which session."""
    return f"{step.session}: {step.what}" if step.session else step.what


def remarks(recording: Recording, run: Replay) -> Iterable[str]:
    """Yield what a user should know of the recording itself."""
    if recording.unknown:
        yield one_line(f"What it began with holds what today's core does not know: {', '.join(recording.unknown)}")
    if recording.torn:
        yield f"Its last line is torn: the daemon was killed while it wrote, or still writes. {replayed(run)}"
    elif recording.ended is None:
        yield f"It has no end: the daemon was killed, still records, or its disk was full. {replayed(run)}"
    elif recording.ended != STOPPED:
        yield one_line(f"It ended early: {recording.ended}. {replayed(run)}")


def replayed(run: Replay) -> str:
    """Return how far it was replayed."""
    return f"All {some(run.events, 'event')} before that were replayed."


def summary(run: Replay) -> str:
    sessions, deaths = some(len(run.names), "session"), some(run.deaths, "death")
    words = f"{some(run.events, 'event')}, {sessions}, {deaths}: "
    if run.first is None:
        return words + "today's policy answers the same."
    return words + f"{some(run.differ, 'differs', 'differ')}, the first is event {run.first}."


def json_of(recording: Recording, run: Replay) -> dict[str, Any]:
    """Replay a recording, and return all its results."""
    steps = [step_json(step, run.names) for step in run.steps() if step.differs or step.unknown]
    return {
        "file": str(recording.path),
        "version": recording.version,
        "recorded_at": rfc3339(recording.at),
        "events": run.events,
        "sessions": len(run.names),
        "deaths": run.deaths,
        "differ": run.differ,
        "first": run.first,
        "torn": recording.torn,
        "ended": recording.ended,
        "unknown": recording.unknown,
        "steps": steps,
    }


def step_json(step: ReplayStep, names: dict[str, str]) -> dict[str, Any]:
    """Return one event that differs, with both answers."""
    return {
        "event": step.number,
        "at": rfc3339(step.now),
        "kind": step.kind,
        "session": step.session,
        "what": step.what,
        "cause": step.cause,
        "problem": step.problem,
        "unknown": list(step.unknown),
        "differences": [difference_json(difference, names) for difference in step.differences],
    }


def difference_json(difference: Difference, names: dict[str, str]) -> dict[str, Any]:
    """Return one thing that differs."""
    session = None if difference.session is None else names.get(difference.session, difference.session)
    return {
        "of": difference.of,
        "id": difference.id,
        "session": session,
        "field": difference.field or None,
        "then": difference.then,
        "now": difference.now,
    }


def rfc3339(at: float) -> str:
    """Return a moment as the interface writes it; an impossible one as its number."""
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
    except (ValueError, OverflowError, OSError):
        return str(at)
