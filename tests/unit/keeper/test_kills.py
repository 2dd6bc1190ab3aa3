"""Kills for want of memory: a count is one death's, and one in a neighbour's cgroup is the neighbour's."""

from __future__ import annotations

from pathlib import Path

import pytest

from vigil.keeper.kills import Kills
from vigil.kernel.cgroups import Cgroups
from vigil.kernel.kernel_log import KernelLog


class Fake(Cgroups):
    """Cgroups whose counters a test sets."""

    def __init__(self) -> None:
        self.version = 1
        self.kills: dict[str, int] = {"/own": 0, "/neighbour": 0}

    def read_kills(self, path: str) -> int | None:
        return self.kills.get(path)


class Scene:
    """A host, two launches' cgroups, and a clock."""

    def __init__(self, proc: Path) -> None:
        self.proc, self.now, self.groups = proc, 0.0, Fake()
        self.count(0)
        self.kills = Kills(KernelLog("/nonexistent"), self.groups, str(proc), lambda: self.now)
        self.sample()

    def count(self, kills: int) -> None:
        (self.proc / "vmstat").write_text(f"pgfault 1\noom_kill {kills}\n")

    def sample(self) -> None:
        self.kills.note_host(0)
        self.kills.sample(["/own", "/neighbour"])
        self.now += 10.0

    def account(self) -> tuple[int | None, int | None, int | None]:
        facts = self.kills.account(1 << 30, 0, "/own", None)
        return facts.cgroup_kills, facts.host_kills, facts.elsewhere


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_kill_in_no_cgroup_that_is_known_is_counted_for_the_one_that_died(scene: Scene) -> None:
    scene.count(1)

    assert scene.account() == (0, 1, 0)
    assert scene.account() == (0, 0, None), "it was that one's: who is killed by hand just after is not asked for"


def test_a_kill_in_a_neighbours_cgroup_is_not_counted_for_the_one_that_died(scene: Scene) -> None:
    scene.count(1)
    scene.groups.kills["/neighbour"] = 1

    assert scene.account() == (0, 1, 1)


def test_a_kill_in_its_own_cgroup_needs_no_look_at_others(scene: Scene) -> None:
    scene.count(1)
    scene.groups.kills["/own"] = 1

    assert scene.account() == (1, 1, None)
