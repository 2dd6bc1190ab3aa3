"""A limit that cannot be kept refuses its launch; which files keep the others is a table."""

from __future__ import annotations

from dataclasses import fields
from itertools import combinations

from vigil.core.model.limits import UNLIMITED, LaunchLimits
from vigil.core.rules.limits import FILES, files_of, why_not_kept
from vigil.kernel.cgroups import CONTROLLERS

ALL = LaunchLimits(memory_max=2 << 30, pids_max=200, cpu_weight=50)


def test_every_limit_has_a_controller_and_a_file() -> None:
    assert set(FILES) == {field.name for field in fields(LaunchLimits)}
    assert {controller for controller, _ in FILES.values()} == set(CONTROLLERS)


def test_without_limits_nothing_is_written_or_refused() -> None:
    assert files_of(UNLIMITED, CONTROLLERS) == {}
    assert why_not_kept(UNLIMITED, (), "there is no cgroup2") is None


def test_what_can_be_kept_is_written_and_the_rest_is_named() -> None:
    for count in range(4):
        for controllers in combinations(CONTROLLERS, count):
            files, why = files_of(ALL, controllers), why_not_kept(ALL, controllers)
            assert {name.partition(".")[0] for name in files} == set(controllers)
            assert (why is None) == (count == 3)
            for name, (controller, _) in FILES.items():
                assert (name in (why or "").partition(" cannot")[0]) == (controller not in controllers)


def test_a_refusal_says_why_and_the_way_out() -> None:
    assert files_of(ALL, CONTROLLERS) == {"memory.max": "2147483648", "pids.max": "200", "cpu.weight": "50"}
    why = why_not_kept(LaunchLimits(memory_max=1 << 30), (), "no cgroup2 is mounted") or ""
    assert why.startswith("memory_max cannot be kept: no cgroup2 is mounted. vigil doctor says how")
    lacks = why_not_kept(ALL, ("memory",)) or ""
    assert lacks.startswith("pids_max and cpu_weight cannot be kept: its cgroup has no pids nor cpu controller")
