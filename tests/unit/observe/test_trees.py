"""A tree holds all of a launch's processes and no other's, and its CPU rate is of what they really did."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.unit.builders import make_launch
from tests.unit.processes import Agent, launch_of, started, started_python, until
from vigil.core.model.launch import ProcessId
from vigil.kernel.process import TICKS_A_SECOND, Stat
from vigil.kernel.stats import read_scan
from vigil.observe.trees import ProcessTree, Tokens, cpu_between, scan_launch, tree_of, trees_of

A_CORE = TICKS_A_SECOND
BUSY_CHILD = """
read -r line
(i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done)
echo done
read -r line
"""


def look(agent: Agent) -> ProcessTree:
    tokens = Tokens()
    return tree_of(agent.launch, scan_launch(agent.launch, tokens), tokens)


def in_state(tree: ProcessTree, state: str) -> tuple[int, ...]:
    return tuple(stat.pid for stat in tree.members if stat.state == state)


def test_a_busy_child_that_exited_between_two_looks_counts() -> None:
    with started("sh", "-c", BUSY_CHILD) as agent:
        before = look(agent)
        agent.say()
        assert agent.heard() == "done"

        cpu = cpu_between(before, look(agent))

    assert cpu.tree is not None and cpu.window_s is not None
    assert cpu.tree * cpu.window_s > 0.1  # seconds of CPU
    assert cpu.reaped_by_pid[agent.pid] > 5 * cpu.by_pid[agent.pid]


def stat(pid: int, ppid: int = 1, own: int = 0, reaped: int = 0, start: int = 0) -> Stat:
    return Stat(pid, "x", "S", ppid, pid, pid, 0, -1, own, reaped, 1, start, 0)


def tree(at_s: float, *members: Stat) -> ProcessTree:
    return ProcessTree("s1-1", at_s, members[0], members, (0,) * len(members))


def rate(before: ProcessTree, after: ProcessTree) -> float | None:
    return cpu_between(before, after).tree


def test_what_was_seen_of_a_child_before_it_ended_is_not_counted_again() -> None:
    before = tree(100.0, stat(10, own=50), stat(11, ppid=10, own=300), stat(12, ppid=11, own=40))

    # 11 waited for 12, which had used 10 more by then, and 10 waited for 11, which had used 20 more itself.
    after = tree(110.0, stat(10, own=50, reaped=300 + 40 + 30))

    assert rate(before, after) == 30 / (10 * A_CORE)


def test_a_child_that_nobody_waited_for_never_makes_a_rate_negative_or_hides_others_work() -> None:
    before = tree(100.0, stat(10), stat(11, ppid=10, own=8000), stat(12, ppid=10, own=5))

    after = tree(110.0, stat(10), stat(12, ppid=10, own=105))

    assert rate(before, after) == 100 / (10 * A_CORE)


def test_one_tick_in_half_a_minute_is_a_rate_of_next_to_nothing() -> None:
    assert rate(tree(100.0, stat(10, own=7)), tree(130.0, stat(10, own=8))) == 1 / (30 * A_CORE)


def test_a_child_that_began_meanwhile_counts_whole_and_one_that_was_only_not_known_not_at_all() -> None:
    before = tree(100.0, stat(10))
    began = stat(11, ppid=10, own=20, start=int(105 * A_CORE))
    older = stat(12, ppid=10, own=9000, start=int(50 * A_CORE))

    assert rate(before, tree(110.0, stat(10), began, older)) == 20 / (10 * A_CORE)


def test_a_recycled_pid_is_another_process() -> None:
    before = tree(100.0, stat(10), stat(11, ppid=10, own=900))

    after = tree(110.0, stat(10), stat(11, ppid=10, own=3, start=int(105 * A_CORE)))

    assert rate(before, after) == 3 / (10 * A_CORE)


def test_there_is_no_rate_without_something_to_compare_with() -> None:
    assert rate(tree(100.0, stat(10)), tree(100.0, stat(10))) is None
    assert rate(ProcessTree("s1-1", 90.0), tree(100.0, stat(10))) is None
    assert rate(ProcessTree("s1-2", 90.0, None, (stat(10),), (0,)), tree(100.0, stat(10))) is None


FAMILY = """
import os, subprocess, sys
deep = "import subprocess, sys; n = int(sys.argv[2]); "
deep += "c = subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[1], str(n - 1)]) if n else None; "
deep += "print('deepest', flush=True) if not n else None; sys.stdin.read()"
subprocess.Popen([sys.executable, "-c", deep, deep, "6"])
left = "import os, time; os.setsid(); os.fork() and os._exit(0); print('left', os.getpid(), flush=True); time.sleep(1000)"
subprocess.Popen([sys.executable, "-c", left]).wait()
input()
"""


def test_a_tree_has_all_depths_and_who_was_left_to_another_parent_however_it_is_read() -> None:
    with started_python(FAMILY) as agent:
        lines = sorted(agent.heard() for _ in range(2))
        assert lines[0] == "deepest"
        stray = int(lines[1].split()[1])

        near, all_ = look(agent), tree_of(agent.launch, read_scan(), Tokens())

        assert near.agent is not None and near.agent.pid == agent.pid
        assert [one.pid for one in near.members] == [one.pid for one in all_.members]
        assert max(near.depths) == 7
        assert near.strays == {stray}
        assert len(near.members) == 9


def test_a_tree_is_found_below_a_process_that_leads_no_session_and_names_no_launch() -> None:
    script = "import subprocess; subprocess.Popen(['env', '-i', 'sh', '-c', 'sleep 1000 & wait']); input()"
    with started_python(script) as agent:
        seen = until(lambda: look(agent), lambda seen: [one.name for one in seen.members][1:] == ["sh", "sleep"])
        inner = launch_of(seen.members[1].pid, "inner-1")

        found = tree_of(inner, scan_launch(inner, Tokens()), Tokens())

        assert [one.name for one in found.members] == ["sh", "sleep"]


def test_a_process_of_another_launch_is_never_in_the_tree() -> None:
    with started("sleep", "1000") as one, started("sleep", "1000") as other:
        found = trees_of([one.launch, other.launch], read_scan(), Tokens())

        assert [[member.pid for member in found[launch.id].members] for launch in (one.launch, other.launch)] == [
            [one.pid],
            [other.pid],
        ]


def test_an_agent_whose_pid_was_given_to_another_is_not_there() -> None:
    launch = launch_of(os.getpid())
    assert launch.process is not None
    gone = make_launch(process=ProcessId(launch.process.pid, launch.process.start_ticks - 1, launch.process.boot))

    found = tree_of(gone, read_scan(), Tokens())

    assert (found.agent, found.members, found.why) == (None, (), "the agent is not there")


def test_stopped_and_zombie_and_uninterruptible_are_told_apart(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    script = f"""
import os, subprocess, sys
spawn = "import os; os.posix_spawn('/bin/true', ['true'], {{}}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, {str(fifo)!r}, 0, 0)])"
waits_in_vfork = subprocess.Popen([sys.executable, "-c", spawn])
stopped = subprocess.Popen(["sleep", "1000"])
zombie = subprocess.Popen(["true"])
os.kill(stopped.pid, {int(signal.SIGSTOP)})
print(waits_in_vfork.pid, stopped.pid, zombie.pid, flush=True)
input()
"""
    with started_python(script) as agent:
        asleep, stopped, zombie = map(int, agent.heard().split())

        until(lambda: look(agent), lambda seen: in_state(seen, "T") == (stopped,) and in_state(seen, "Z") == (zombie,))
        until(lambda: look(agent), lambda seen: in_state(seen, "D") == (asleep,))

        with open(fifo, "w", encoding="ascii"):  # the child it waits for opens the other end, and goes on
            until(lambda: look(agent), lambda seen: in_state(seen, "D") == ())


def test_without_proc_nothing_is_known_and_nothing_raises(tmp_path: Path) -> None:
    launch = launch_of(os.getpid())
    for proc in (tmp_path, tmp_path / "nowhere"):
        tokens = Tokens(str(proc))
        found = tree_of(launch, scan_launch(launch, tokens, str(proc)), tokens)

        assert (found.agent, found.members) == (None, ())
        assert str(proc) in found.why
