"""Golden files: what each sample says, a line each. `python -m tests.samples.golden` writes them anew, for review.

A folder has the name of its adapter; the first word of a file says which of its readings the lines are for.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from vigil.agents.adapters import adapter_of
from vigil.core.model.speech import Said, Usage

Read = Callable[[dict[str, Any]], Iterable[Said]]
FOLDER = Path(__file__).parent
READINGS = {"hooks": "read_hook", "stream": "read_stream", "control": "read_stream", "transcript": "read_entry"}
SOON_S = 3600.0  # what is nearer counts from the moment of reading


def sample_files(agent: str) -> list[Path]:
    """Return the files of one kind of agent."""
    return sorted((FOLDER / agent).glob("*.jsonl"))


def agents() -> list[str]:
    """Return the kinds of agents that have samples."""
    return sorted(path.name for path in FOLDER.iterdir() if any(path.glob("*.jsonl")))


def reading_of(path: Path) -> Read:
    """Return what reads a file's lines."""
    read: Read = getattr(adapter_of(path.parent.name), READINGS[path.stem.split("-")[0]])
    return read


def samples(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the events of a file, each with where it came from."""
    for line in path.read_text("utf-8").splitlines():
        sample = json.loads(line)
        yield sample.get("_scenario") or sample.get("_dir") or "", sample.get("_event", sample)


def golden(path: Path) -> str:
    """Return what a file says, as lines for people."""
    read = reading_of(path)
    return "".join(
        f"{scenario} | {_kind(event)} -> {' ; '.join(map(shown, read(event)))}\n" for scenario, event in samples(path)
    )


def _kind(event: dict[str, Any]) -> str:
    detail = event.get("subtype") or event.get("source") or event.get("notification_type") or event.get("tool_name")
    name = event.get("hook_event_name") or event.get("type")
    return f"{name}/{detail}" if detail else str(name)


def shown(said: Said) -> str:
    """Return one thing that was said, in one line; what is empty is left out."""
    parts = [
        said.what,
        said.name and f"name={said.name}",
        said.id and f"id={said.id}",
        said.subagent and f"subagent={said.subagent}",
        said.failed and "failed",
        said.text and f"“{said.text}”",
        said.until is not None and f"until={_moment(said.until, said.at)}",
        said.conversation and f"conversation={said.conversation}",
        said.usage is not None and _usage(said.usage),
        said.at is not None and f"at={said.at:.3f}",
    ]
    return " ".join(part for part in parts if part)


def _moment(until: float, at: float | None) -> str:
    left = until - (time.time() if at is None else at)
    return f"in {math.ceil(left)} s" if 0 <= left < SOON_S else f"{until:.0f}"


def _usage(usage: Usage) -> str:
    tokens = f"{usage.input_tokens}+{usage.output_tokens} tokens, {usage.cached_tokens} cached"
    cost = "" if usage.cost_usd is None else f", ${usage.cost_usd:.6f}"
    return f"({tokens}{cost}{', so far' if usage.so_far else ''})"


if __name__ == "__main__":
    for agent in agents():
        for file in sample_files(agent):
            file.with_suffix(".golden").write_text(golden(file), "utf-8")
