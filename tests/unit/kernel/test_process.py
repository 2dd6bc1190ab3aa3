"""What the kernel says of real processes: who they are, whether they live, how they ended."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.processes import a_thread
from vigil.kernel.process import (
    has_ended,
    has_left,
    is_alive,
    is_dying,
    is_thread,
    number_in,
    open_pidfd,
    parse_stat,
    read_boot,
    read_start_ticks,
    read_stat,
    read_wait_status,
    split_status,
)
from vigil.kernel.processes import read_pids
from vigil.kernel.stats import read_living, read_scan

STATUSES = [0, 1, 7, 126, 127, 129, 137, 143, 255]
SIGNALS = [signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR1]


@contextmanager
def process(*argv: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of this test's own, ended and reaped when the test is over."""
    started = subprocess.Popen(argv or ("sleep", "60"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def ticks_of(pid: int) -> int:
    ticks = read_start_ticks(pid)
    assert ticks is not None
    return ticks


def wait_until_ended(pidfd: int) -> None:
    assert select.select([pidfd], [], [], 10)[0], "it did not end"


def dead_pid() -> int:
    with process("true") as ended:
        ended.wait()
        return ended.pid


# Identity


def test_a_process_is_itself() -> None:
    with process() as agent:
        stat = read_stat(agent.pid)

        assert stat is not None
        assert (stat.name, stat.ppid, stat.sid, stat.threads) == ("sleep", os.getpid(), os.getsid(0), 1)
        assert stat.state in "SRD"
        assert read_start_ticks(agent.pid) == stat.start_ticks
        assert is_alive(agent.pid, stat.start_ticks)


@pytest.mark.parametrize("name", ["a b", "x) S 1 1", "(((", "))))", "a\nb", "é"])
def test_a_name_with_brackets_and_spaces_confuses_nobody(name: str) -> None:
    code = "import sys; open('/proc/self/comm', 'w').write(sys.argv[1]); print(flush=True); sys.stdin.read()"
    with process(sys.executable, "-c", code, name) as agent:
        assert agent.stdout is not None
        agent.stdout.readline()

        stat = read_stat(agent.pid)

        assert stat is not None
        assert (stat.name.replace("\\n", "\n"), stat.ppid) == (name, os.getpid())


def test_a_name_may_hold_anything() -> None:
    line = b"12 (a) R (b) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 99 1000 50 rest"

    found = parse_stat(line)

    assert found is not None
    assert (found.pid, found.name, found.state, found.own_ticks, found.reaped_ticks, found.threads) == (
        12,
        "a) R (b",
        "S",
        11,
        15,
        3,
    )
    assert parse_stat(b"12 (half") is None


def test_there_is_nothing_to_say_of_a_process_that_is_not_there() -> None:
    pid = dead_pid()

    assert read_stat(pid) is None
    assert read_start_ticks(pid) is None
    assert not is_alive(pid, 1)
    assert open_pidfd(pid, 1) is None


def test_a_recycled_pid_is_another_process() -> None:
    with process() as agent:
        another = ticks_of(agent.pid) - 1

        assert not is_alive(agent.pid, another)
        before = len(os.listdir("/proc/self/fd"))
        assert open_pidfd(agent.pid, another) is None
        assert len(os.listdir("/proc/self/fd")) == before, "a descriptor was left open"


def test_a_number_that_is_a_threads_now_is_no_process_whatever_its_start() -> None:
    with a_thread() as number:
        own = parse_stat(Path(f"/proc/{number}/stat").read_bytes())
        assert own is not None, "/proc answers for a thread"

        assert read_stat(number) is None
        assert read_living(number) is None
        assert not is_alive(number, own.start_ticks)
        assert open_pidfd(number, own.start_ticks) is None
        assert (has_left(number), is_dying(number)) == (True, False)
        assert number not in read_scan().stats


def test_the_line_of_a_thread_says_the_same_as_its_tgid() -> None:
    with a_thread():
        for pid in read_pids():
            for number in os.listdir(f"/proc/{pid}/task"):
                try:
                    line = Path(f"/proc/{number}/stat").read_bytes()
                    status = Path(f"/proc/{number}/status").read_bytes()
                except OSError:
                    continue  # it ended
                assert is_thread(line) == (number_in(status, b"Tgid") != int(number)), line
            if pid > os.getpid():
                break


def test_this_boot_is_the_same_whenever_it_is_asked() -> None:
    boot = read_boot()

    assert boot == read_boot()
    assert boot.endswith(f":{read_start_ticks(1)}")
    assert len(boot.split(":")[0]) == 36


# Life


def test_a_zombie_is_dead() -> None:
    with process("true") as agent:
        ticks = ticks_of(agent.pid)
        pidfd = os.pidfd_open(agent.pid)
        wait_until_ended(pidfd)

        stat = read_stat(agent.pid)

        assert stat is not None
        assert stat.state == "Z"
        assert not is_alive(agent.pid, ticks)
        assert has_ended(pidfd)
        os.close(pidfd)


def test_a_zombie_whose_threads_live_is_alive() -> None:
    code = """
import ctypes, threading, sys, time
threading.Thread(target=lambda: (print(flush=True), time.sleep(60))).start()
ctypes.CDLL(None).pthread_exit(None)
"""
    with process(sys.executable, "-c", code) as agent:
        assert agent.stdout is not None
        agent.stdout.readline()
        ticks = ticks_of(agent.pid)
        for _ in range(2000):
            stat = read_stat(agent.pid)
            assert stat is not None
            if stat.state == "Z":
                break
            select.select([], [], [], 0.005)
        else:
            pytest.fail("its first thread did not end")

        assert is_alive(agent.pid, ticks)


def test_a_stopped_process_is_alive() -> None:
    with process() as agent:
        ticks = ticks_of(agent.pid)
        agent.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, agent.pid, os.WSTOPPED)

        assert is_alive(agent.pid, ticks)


def test_a_pidfd_is_of_this_very_process_and_says_when_it_ended() -> None:
    with process() as agent:
        pidfd = open_pidfd(agent.pid, ticks_of(agent.pid))

        assert pidfd is not None
        assert not has_ended(pidfd)
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        wait_until_ended(pidfd)
        assert has_ended(pidfd)
        os.close(pidfd)


# How it ended: of a grandchild, which is nobody's of ours to wait for

PARENT = """
import os, signal, subprocess, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)  # nohup and a shell's `&` have us ignore them
child = subprocess.Popen(["sh", "-c", sys.argv[1]], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.readline()                     # told to let it end: it becomes a zombie
child.stdin.close()
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
print(flush=True)
sys.stdin.readline()                     # told to reap it
child.wait()
print(flush=True)
sys.stdin.readline()
"""


def statuses_of_a_grandchild(script: str) -> dict[str, tuple[int | None, str]]:
    """Return how a process ended that is no child of ours, asked before, as a zombie, and once it was reaped."""
    with process(sys.executable, "-c", PARENT, f"read x; {script}") as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        pid = int(parent.stdout.readline())
        ticks = ticks_of(pid)
        pidfd = open_pidfd(pid, ticks)
        assert pidfd is not None
        found = {"alive": read_wait_status(pidfd, pid, ticks)}
        for moment in ("zombie", "reaped"):
            parent.stdin.write(b"\n")
            parent.stdin.flush()
            parent.stdout.readline()
            found[moment] = read_wait_status(pidfd, pid, ticks)
        os.close(pidfd)
    return found


def kernel_tells_of_the_reaped() -> bool:
    major, minor = (int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    return (major, minor) >= (6, 15)


@pytest.mark.parametrize("code", STATUSES)
def test_the_exit_code_of_a_process_that_is_no_child_is_known(code: int) -> None:
    found = statuses_of_a_grandchild(f"exit {code}")

    assert found["alive"] == (None, "")
    assert (split_status(found["zombie"][0]), found["zombie"][1]) == ((code, None), "zombie")
    if kernel_tells_of_the_reaped():
        assert (split_status(found["reaped"][0]), found["reaped"][1]) == ((code, None), "pidfd")
    else:
        assert found["reaped"] == (None, "")


@pytest.mark.parametrize("number", SIGNALS)
def test_the_signal_that_ended_a_process_that_is_no_child_is_known(number: signal.Signals) -> None:
    found = statuses_of_a_grandchild(f"ulimit -c 0; kill -{number.value} $$")

    assert split_status(found["zombie"][0]) == (None, number)
    if kernel_tells_of_the_reaped():
        assert split_status(found["reaped"][0]) == (None, number)


def test_exit_137_is_not_mistaken_for_a_signal() -> None:
    exited, killed = (statuses_of_a_grandchild(script)["zombie"][0] for script in ("exit 137", "kill -9 $$"))

    assert split_status(exited) == (137, None)
    assert split_status(killed) == (None, 9)


def test_the_status_of_somebody_else_with_that_pid_is_not_taken() -> None:
    with process("true") as agent:
        ticks = ticks_of(agent.pid)
        pidfd = os.pidfd_open(agent.pid)
        wait_until_ended(pidfd)

        assert read_wait_status(pidfd, agent.pid, ticks - 1) == (None, "")
        os.close(pidfd)


@pytest.mark.parametrize("status", range(0, 65536, 251))
def test_every_wait_status_is_split_as_the_system_does(status: int) -> None:
    code, number = split_status(status)

    if os.WIFSIGNALED(status):
        assert (code, number) == (None, os.WTERMSIG(status))
    else:
        assert (code, number) == (os.WEXITSTATUS(status), None)


def test_a_status_nobody_knows_is_neither() -> None:
    assert split_status(None) == (None, None)
