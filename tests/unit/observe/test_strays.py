"""What agents left to the keeper without any sign of their launch is found, and nothing else."""

from __future__ import annotations

from tests.unit.builders import make_launch
from vigil.core.model.launch import ProcessId
from vigil.observe.strays import left_to
from vigil.observe.survivors import SeenProcess

KEEPER = 400
LAUNCH = make_launch(process=ProcessId(502, 102, "b"), root=ProcessId(500, 100, "b"), server=ProcessId(499, 99, "b"))


def seen(pid: int, ppid: int, launch_id: str | None = None, sid: int = 0) -> SeenProcess:
    return SeenProcess(ProcessId(pid, pid - 400, "b"), sid or pid, launch_id, ppid)


def test_a_child_of_the_keeper_without_a_launch_is_found_with_all_below_it() -> None:
    left = [seen(600, KEEPER), seen(601, 600), seen(602, 601)]

    assert left_to(KEEPER, left[::-1], [LAUNCH]) == [one.process for one in left]


def test_what_belongs_to_a_launch_or_to_another_parent_is_not() -> None:
    others = [
        seen(499, KEEPER),  # the launch's server, by its pid and start time
        seen(510, KEEPER, LAUNCH.id),
        seen(511, KEEPER, sid=500),  # in the launch's terminal session
        seen(700, 1),
        seen(701, 700),
    ]

    assert left_to(KEEPER, others, [LAUNCH]) == []


def test_without_a_keeper_nothing_is_said() -> None:
    assert left_to(None, [seen(600, KEEPER)], []) == []
