"""The death bundle: one small folder with all that was seen around a death.

`report.json` holds the facts, `screen.txt`, `stderr.txt` and `stdout.txt` the last output. The report's `unknown` names
what is missing or broken, its `cut` what did not fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vigil.core.model.death import Death
from vigil.forensics.disks import read_disks
from vigil.forensics.facts import SECTIONS, ended_at, number, read_facts, records_in, strings_in
from vigil.forensics.fitting import BUNDLE_BYTES, Parts, clean, dump, encode, fit
from vigil.forensics.folders import BUNDLE_NAME, write_folder
from vigil.forensics.tails import Tail, read_tail
from vigil.kernel.theirs import read_end, read_object, why_of
from vigil.text import decode

FORMAT = 1
REPORT = "report.json"
TEXTS = {"screen": "screen.txt", "stderr": "stderr.txt", "stdout": "stdout.txt"}
SOURCES = {"screen": "screen", "stderr": "stderr.log", "stdout": "stdout.jsonl"}
PRINTED = {"tmux": ("screen",), "headless": ("stderr", "stdout")}  # what a runtime's launch leaves
REFILLED = ("exits", "core", *SECTIONS, "memory", "changes", "open_tool", "events", "disk")
EMPTY_IS_UNKNOWN = ("exits", "events")  # elsewhere an empty list is a fact: no process survived
EVENTS = 50
EVIDENCE = 10
UNKNOWN = 50
UNKNOWN_CHARS = 200
TAIL_LINES = 50
Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a bundle shows; None or empty where it knows nothing."""

    path: Path
    last_events: list[dict[str, Any]]
    stderr_tail: list[str]
    stdout_tail: list[str]
    pane_tail: list[str]
    screen_age_s: float | None
    memory: dict[str, Any] | None
    changes: dict[str, Any] | None
    survivors: list[dict[str, Any]]
    kernel_lines: list[str]
    disk: list[dict[str, Any]]
    tree: dict[str, Any] | None
    unknown: list[str]


def assemble(
    home_deaths: Path,
    launch_folder: Path,
    death: Death,
    events: Sequence[dict[str, Any]],
    activity: str | None,
    disk_paths: Iterable[Path],
    redact: Redact,
    now: float,
) -> Path:
    """Write the bundle of a death, whole or (OSError) not at all, and return its folder.

    A second call adds what is known now, and keeps of the first bundle what has gone since."""
    assert BUNDLE_NAME.fullmatch(death.id), death.id
    folder = home_deaths / death.id
    facts, unknown = read_facts(launch_folder, death)
    disk, unread = read_disks(disk_paths)
    told = {"open_tool": activity, "events": list(events)[-EVENTS:], "disk": disk, "written_at": now}
    parts = _gather(launch_folder, death, facts | told, [*unknown, *unread], redact)
    _refill(parts, _read_parts(folder), redact)
    fit(parts)
    home_deaths.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = {TEXTS[name]: encode(text) for name, text in parts.texts.items() if text}
    write_folder(folder, {REPORT: dump(parts.report), **files})
    return folder


def _gather(folder: Path, death: Death, facts: dict[str, Any], unknown: list[str], redact: Redact) -> Parts:
    """Return the report of a death and its last output, clean and bounded."""
    tails, missing = _read_tails(folder, redact)
    ended = ended_at(facts["exits"], death)
    record = asdict(death)
    record["evidence"] = record["evidence"][:EVIDENCE]
    described = {name: _describe(tails[name], ended) if name in tails else None for name in TEXTS}
    cut = [f"{SOURCES[name]}: its last lines are kept" for name, tail in tails.items() if tail.cut]
    lists = {"cut": cut, "kept": [], "unknown": [*unknown, *missing][:UNKNOWN]}
    report = clean({"format": FORMAT, "death": record, **facts, **described, **lists}, redact)
    report["unknown"] = [line[:UNKNOWN_CHARS] for line in report["unknown"]]  # after redaction, which finds only whole secrets
    return Parts(report, {name: tails[name].text if name in tails else "" for name in TEXTS})


def _read_tails(folder: Path, redact: Redact) -> tuple[dict[str, Tail], list[str]]:
    tails: dict[str, Tail] = {}
    errors: dict[str, OSError] = {}
    for name, source in SOURCES.items():
        try:
            tails[name] = read_tail(folder / source, redact)
        except OSError as error:
            errors[name] = error
    expected = PRINTED.get(_runtime_of(folder), () if tails else tuple(SOURCES))
    told = {name: error for name, error in errors.items() if name in expected or not isinstance(error, FileNotFoundError)}
    return tails, [f"{SOURCES[name]}: {why_of(error)}" for name, error in told.items()]


def _runtime_of(folder: Path) -> str:
    try:
        return str(read_object(folder / "launch.json").get("runtime"))
    except (OSError, ValueError):
        return ""


def _describe(tail: Tail, ended: float) -> dict[str, Any]:
    return {"at": tail.at, "age_s": round(max(0.0, ended - tail.at), 3), "size_bytes": tail.size_bytes}


def _refill(parts: Parts, earlier: Parts, redact: Redact) -> None:
    """Take from the earlier bundle what is gone now, redacted again: we may know more secrets by now."""
    for name in TEXTS:
        if not parts.texts[name].strip() and earlier.texts[name].strip():
            parts.texts[name] = redact(earlier.texts[name])
            parts.report[name] = clean(_record(earlier.report.get(name)) or {}, redact)
            parts.report["kept"].append(name)
    for name in REFILLED:
        before, found = earlier.report.get(name), parts.report[name]
        if before and (found is None or (name in EMPTY_IS_UNKNOWN and not found)):
            parts.report[name] = clean(before, redact)
            parts.report["kept"].append(name)


def _read_parts(folder: Path) -> Parts:
    """Read as much of a bundle as is readable."""
    try:
        report = read_object(folder / REPORT)
    except (OSError, ValueError):
        report = {}
    return Parts(report, {name: _read_text(folder / file) for name, file in TEXTS.items()})


def _read_text(path: Path) -> str:
    try:
        return decode(read_end(path, BUNDLE_BYTES).data).rstrip("\n")
    except OSError:
        return ""


def read_bundle(folder: Path) -> Bundle | None:
    """Return a bundle, even an incomplete one; None if there is none."""
    if not os.path.isdir(folder):
        return None
    parts = _read_parts(folder)
    report = clean(parts.report, str)  # we wrote it clean; a file that changed since must still fit into an answer
    kernel = _record(report.get("kernel")) or {}
    return Bundle(
        path=folder,
        last_events=records_in(report.get("events")),
        stderr_tail=_last_lines(parts.texts["stderr"]),
        stdout_tail=_last_lines(parts.texts["stdout"]),
        pane_tail=[line for line in map(str.rstrip, parts.texts["screen"].split("\n")) if line][-TAIL_LINES:],
        screen_age_s=number((_record(report.get("screen")) or {}).get("age_s")),
        memory=_record(report.get("memory")),
        changes=_record(report.get("changes")),
        survivors=records_in(report.get("survivors")),
        kernel_lines=strings_in(kernel.get("lines")),
        disk=records_in(report.get("disk")),
        tree=_record(report.get("tree")),
        unknown=strings_in(report.get("unknown")),
    )


def _last_lines(text: str) -> list[str]:
    return text.split("\n")[-TAIL_LINES:] if text else []


def _record(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None
