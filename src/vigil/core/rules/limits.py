"""Limits: which of a launch's limits its cgroup can keep; one that it cannot refuses the launch, unless told otherwise."""

from __future__ import annotations

from collections.abc import Collection

from vigil.core.model.limits import LaunchLimits

FILES = {  # a limit: the controller that keeps it, and its file
    "memory_max": ("memory", "memory.max"),
    "pids_max": ("pids", "pids.max"),
    "cpu_weight": ("cpu", "cpu.weight"),
}
HINT = "vigil doctor says how to get it; best_effort = true in [isolation] launches all the same"


def files_of(limits: LaunchLimits, controllers: Collection[str]) -> dict[str, str]:
    """Return the files to write for a launch's limits that its cgroup can keep."""
    wanted = {name: getattr(limits, name) for name in FILES}
    return {
        file: str(wanted[name])
        for name, (controller, file) in FILES.items()
        if wanted[name] is not None and controller in controllers
    }


def why_not_kept(limits: LaunchLimits, controllers: Collection[str], why: str = "") -> str | None:
    """Return why a launch's limits refuse it; `why` says why there is no cgroup."""
    wanted = {name: controller for name, (controller, _) in FILES.items() if getattr(limits, name) is not None}
    missing = {name: controller for name, controller in wanted.items() if controller not in controllers}
    if not missing:
        return None
    lacks = f"its cgroup has no {' nor '.join(dict.fromkeys(missing.values()))} controller"
    return f"{' and '.join(missing)} cannot be kept: {why or lacks}. {HINT}"
