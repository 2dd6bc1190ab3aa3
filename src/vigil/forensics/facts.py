"""Facts: what the records in a launch's folder say of its death, and what they leave unknown.

Any key of a record may be missing or of another type: one unreadable fact does not cost the others."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vigil.core.model.death import Death
from vigil.keeper.records import FILES, read_shim_exit
from vigil.kernel.files import CORE_PATTERN, read_core_pattern
from vigil.kernel.process import split_status
from vigil.kernel.theirs import read_object, why_of

CORE_BIT = 0x80  # of a wait status
# Of the keeper's snapshot: what is taken over as it is, and its type.
SECTIONS: dict[str, type] = {
    "host": dict,
    "armed": dict,
    "samples": list,
    "agent_samples": list,
    "tree": dict,
    "survivors": list,
    "top": list,
    "kernel": dict,
    "cgroup": dict,
}
NO_COUNTER = re.compile(r"avg|^load|^at$|^boot_s$|^version$|mem_total|swap_total|max_bytes")  # their difference says nothing


def read_facts(folder: Path, death: Death, core_pattern: Path = CORE_PATTERN) -> tuple[dict[str, Any], list[str]]:
    """Return the facts from all records of a launch, and what is unknown and why."""
    unknown: list[str] = []
    exits = _read_exits(folder, unknown)
    snapshot = _read_snapshot(folder, death, unknown)
    facts: dict[str, Any] = {"exits": exits, "core": _read_core(exits, core_pattern, unknown)}
    facts |= {name: snapshot[name] if isinstance(snapshot.get(name), kind) else None for name, kind in SECTIONS.items()}
    facts["memory"] = memory_of(facts, ended_at(exits, death)) if snapshot else None
    facts["changes"] = changes_of(facts)
    return facts, unknown


def ended_at(exits: Mapping[str, Any], death: Death) -> float:
    """Return the end by the wall clock, which the keeper's samples and the files' times follow."""
    for role in ("inner", "agent", "server"):
        at = number(exits.get(role, {}).get("at"))
        if at is not None:
            return at
    return death.at


def _read_exits(folder: Path, unknown: list[str]) -> dict[str, Any]:
    exits: dict[str, Any] = {}
    for role, name in FILES.items():
        try:
            exits[role] = _with_words(read_object(folder / name))
        except FileNotFoundError:
            pass  # most launches lack some role, or one has not ended
        except (OSError, ValueError) as error:
            unknown.append(f"{name}: {why_of(error)}")
    if _is_written(folder / "shim-exit"):
        shim = read_shim_exit(str(folder))
        if shim is None:
            unknown.append("shim-exit: it is broken")
        else:
            exits["shim"] = {"status": shim[0], "at": shim[1]}
    if not exits:
        unknown.append("exit: nobody recorded how it ended")
    return exits


def _is_written(path: Path) -> bool:
    """Say whether a file holds anything; the shim's exists, empty, from its launch on."""
    try:
        return os.path.isfile(path) and os.path.getsize(path) > 0
    except OSError:
        return False


def _with_words(record: dict[str, Any]) -> dict[str, Any]:
    status = record.get("status")
    if isinstance(status, int) and 0 <= status <= 0xFFFF:
        record["exit_code"], record["signal"] = split_status(status)
    return record


def _read_snapshot(folder: Path, death: Death, unknown: list[str]) -> dict[str, Any]:
    try:
        snapshot = read_object(folder / "snapshot.json")
    except (OSError, ValueError) as error:
        unknown.append(f"snapshot.json: {why_of(error)}")
        return {}
    if snapshot.get("launch") not in (None, death.launch_id):
        unknown.append("snapshot.json: it speaks of another launch")
        return {}
    unread = strings_in(snapshot.get("unknown"))
    unknown += [f"{what}: the keeper could not read it" for what in unread]
    unknown += [f"{what}: the keeper kept only a part of it" for what in strings_in(snapshot.get("cut"))]
    untold = [name for name, kind in SECTIONS.items() if not isinstance(snapshot.get(name), kind)]
    unknown += [f"{name}: the snapshot does not say" for name in untold if name not in unread]
    return snapshot


def _read_core(exits: Mapping[str, Any], core_pattern: Path, unknown: list[str]) -> dict[str, Any] | None:
    """Return where a dumped core went; None if there was none."""
    roles = [role for role, record in exits.items() if role != "shim" and _dumped(record)]
    if not roles:
        return None
    try:
        pattern = read_core_pattern(core_pattern)
    except OSError as error:
        pattern = None
        unknown.append(f"core_pattern: {why_of(error)}")
    return {"of": roles, "pattern": pattern}


def _dumped(record: Mapping[str, Any]) -> bool:
    status = record.get("status")
    return record.get("core") is True or (isinstance(status, int) and status & CORE_BIT != 0)


def memory_of(facts: Mapping[str, Any], at: float) -> dict[str, Any]:
    """Return the memory of host and agent at the end, and the worst sample before it."""
    host = facts.get("host") or {}
    samples = records_in(facts.get("samples"))
    sizes = [(number(sample.get("at")), number(sample.get("rss_kb"))) for sample in records_in(facts.get("agent_samples"))]
    known = [(when, rss) for when, rss in sizes if rss is not None]
    last_at, last_rss = known[-1] if known else (None, None)
    available = [value for sample in samples if (value := number(sample.get("mem_available_kb"))) is not None]
    return {
        "total_kb": number(host.get("mem_total_kb")),
        "available_kb": number(host.get("mem_available_kb")),
        "swap_total_kb": number(host.get("swap_total_kb")),
        "swap_free_kb": number(host.get("swap_free_kb")),
        "least_available_kb": min(available, default=None),
        "agent_rss_kb": last_rss,
        "agent_rss_age_s": None if last_at is None else round(max(0.0, at - last_at), 3),
        "agent_peak_kb": max((rss for _, rss in known), default=None),
    }


def changes_of(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return by how much each counter changed since the keeper armed the launch."""
    host, armed = facts.get("host"), facts.get("armed")
    if host is None or armed is None:
        return None
    before = armed["host"] if isinstance(armed.get("host"), dict) else armed
    changes = _differences(before, host)
    cgroup, cgroup_before = facts.get("cgroup"), armed.get("cgroup")
    if isinstance(cgroup, dict) and isinstance(cgroup_before, dict) and cgroup.get("path") == cgroup_before.get("path"):
        changes |= {f"cgroup.{name}": value for name, value in _differences(cgroup_before, cgroup).items()}
    return changes


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    known = dict(_numbers(before))
    return {name: round(value - known[name], 3) for name, value in _numbers(after) if name in known}


def _numbers(value: Mapping[str, Any], prefix: str = "", depth: int = 4) -> Iterator[tuple[str, float]]:
    """Yield every number of a nested record by its dotted name."""
    for name, entry in value.items():
        if isinstance(entry, dict) and depth > 0:
            yield from _numbers(entry, f"{prefix}{name}.", depth - 1)
        elif (found := number(entry)) is not None and NO_COUNTER.search(name) is None:
            yield f"{prefix}{name}", found


def strings_in(value: Any) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def records_in(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def number(value: Any) -> float | None:
    """Return a value if it is a finite number below 2**63, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 1 << 63 and math.isfinite(value) else None
