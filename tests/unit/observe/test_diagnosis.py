"""A diagnosis says what one launch's processes do, of no other process anything, and what it could not read."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.processes import Agent, started, started_python, until
from vigil.kernel import process
from vigil.observe.diagnosis import Diagnosis, ProcessReading, diagnose, take_sample
from vigil.observe.sockets import read_sockets
from vigil.observe.survivors import read_processes
from vigil.observe.trees import Tokens

NOBODY = 65534


def look(agent: Agent, proc: str = "/proc") -> Diagnosis:
    tokens = Tokens(proc)
    before = take_sample(agent.launch, tokens, thorough=False, proc=proc)
    return diagnose(agent.launch, before, take_sample(agent.launch, tokens, proc=proc))


def of(found: Diagnosis, pid: int) -> ProcessReading:
    (reading,) = (one for one in found.processes if one.process.pid == pid)
    return reading


CONNECTS = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("connected", flush=True)
while line := sys.stdin.readline():
    connection.sendall(line.encode())
"""


def test_only_sockets_that_the_tree_itself_owns_are_shown_whatever_neighbours_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        neighbours = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
        accepted = [server.accept()[0] for _ in neighbours]
        with started(sys.executable, "-c", CONNECTS, str(port)) as agent:
            assert agent.heard() == "connected"
            theirs, peer = server.accept()
            agent.say("hello")
            assert theirs.recv(100) == b"hello\n"
            for one in accepted:
                one.sendall(b"busy")
            theirs.sendall(b"12345")

            found = until(lambda: look(agent), lambda found: found.sockets[0].socket.recv_queue == 5)

            (owned,) = found.sockets
            assert owned.pid == agent.pid
            assert (owned.socket.family, owned.socket.state) == ("inet", "ESTABLISHED")
            assert (owned.socket.local, owned.socket.peer) == (f"127.0.0.1:{peer[1]}", f"127.0.0.1:{port}")
            assert (owned.socket.bytes_received, owned.socket.bytes_sent) == (5, 6)
            assert owned.socket.last_recv_ms is not None and owned.socket.last_recv_ms < 20_000
            theirs.close()
        for one in (*neighbours, *accepted):
            one.close()


def test_the_time_since_the_last_byte_grows_until_one_comes() -> None:
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with server, socket.create_connection(server.getsockname()[:2]) as ours:
        theirs, _ = server.accept()
        inode = os.fstat(ours.fileno()).st_ino

        def age_ms() -> int:
            found = read_sockets().by_inode[inode]
            assert found.family == "inet6" and found.last_recv_ms is not None
            return found.last_recv_ms

        until(age_ms, lambda ms: ms >= 300)
        theirs.sendall(b"x")
        until(age_ms, lambda ms: ms < 300)
        theirs.close()
        until(lambda: read_sockets().by_inode[inode].state, lambda state: state == "CLOSE_WAIT")


BLOCKED = """
import subprocess, sys
reads = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
holder = subprocess.Popen(["sh", "-c", "sleep 1000 & exec true"], stdout=subprocess.PIPE)
holder.wait()
print(reads.pid, flush=True)
sys.stdin.readline()
"""
SHARES_A_CORE = """
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
ticks, computes = os.fork(), os.fork()
if not ticks:
    while True: time.sleep(0.005)
print(ticks, computes, flush=True) if computes else None
while True: pass
"""


def test_who_takes_all_the_cpu_it_gets_is_told_from_who_only_waits_for_its_turn() -> None:
    tokens = Tokens()
    with started_python(SHARES_A_CORE) as agent:
        ticks, computes = map(int, agent.heard().split())
        before = take_sample(agent.launch, tokens, thorough=False)

        def measure() -> Diagnosis:
            return diagnose(agent.launch, before, take_sample(agent.launch, tokens))

        found = until(measure, lambda found: (found.window_s or 0.0) > 1.0)

        for pid in (agent.pid, computes):
            one = of(found, pid)
            assert one.cpu is not None and one.waited is not None and one.burst_s is not None
            assert one.cpu < 0.8 < one.cpu + one.waited, one
            assert one.burst_s > 0.1
        burst_s = of(found, ticks).burst_s
        assert burst_s is not None and burst_s < 0.005


def test_who_waits_for_input_and_who_holds_a_pipe_of_the_agents_is_seen() -> None:
    with started_python(BLOCKED) as agent:
        reads = int(agent.heard())

        def both_wait(found: Diagnosis) -> bool:  # each is on its way to where it waits while we look
            left = [one for one in found.processes if one.name == "sleep"]
            holds = [(one.role, one.holds_agents_pipe, one.waits_for_input) for one in left]
            return of(found, reads).waits_for_input is True and holds == [("stray", True, False)]

        found = until(lambda: look(agent), both_wait)
        assert of(found, reads).role == "child"
        assert of(found, agent.pid).holds_agents_pipe is None
        assert of(found, agent.pid).role == "agent"
        assert found.unknown == ()


def test_a_socket_pair_is_a_pipe_of_the_agents_too() -> None:
    script = """
import socket, subprocess, sys
ours, theirs = socket.socketpair()
child = subprocess.Popen(["sleep", "1000"], stdout=theirs)
theirs.close()
print(child.pid, flush=True)
sys.stdin.readline()
"""
    with started_python(script) as agent:
        child = int(agent.heard())

        found = look(agent)

        assert of(found, child).holds_agents_pipe is True
        assert [one.socket.family for one in found.sockets if one.pid == agent.pid] == ["unix"]


WRITES = """
import sys
while line := sys.stdin.readline():
    with open("/dev/null", "wb", buffering=0) as file:
        file.write(b"x" * 100000)
    print("written", flush=True)
"""


def test_what_was_written_between_two_looks_is_told_with_threads_memory_and_command() -> None:
    with started_python(WRITES) as agent:
        agent.say()
        agent.heard()
        tokens = Tokens()
        before = take_sample(agent.launch, tokens, thorough=False)
        agent.say()
        agent.heard()

        found = diagnose(agent.launch, before, take_sample(agent.launch, tokens))

    (only,) = found.processes
    assert only.io_written is not None and 100_000 <= only.io_written < 101_000
    assert only.threads == 1 and only.rss_bytes > 1 << 20
    assert only.peak_rss_bytes is not None and only.peak_rss_bytes >= only.rss_bytes * 0.9
    assert only.command is not None and only.command[:2] == (sys.executable, "-c")
    assert only.kinds is not None and only.descriptors == sum(only.kinds.values()) >= 3 and only.kinds["pipe"] >= 2
    assert only.traced_by == 0 and only.foreground is None
    assert found.window_s is not None and found.window_s > 0


def test_a_secret_in_a_command_is_not_shown() -> None:
    with started("sh", "-c", "read -r line", "sh", "--api-key", "hunter2hunter2") as agent:
        (only,) = look(agent).processes

    assert only.command is not None and "hunter2hunter2" not in " ".join(only.command)


def test_without_a_first_look_rates_are_unknown_and_said_to_be() -> None:
    with started("sleep", "1000") as agent:
        found = diagnose(agent.launch, None, take_sample(agent.launch, Tokens()))

    assert (found.window_s, found.processes[0].cpu, found.processes[0].io_read) == (None, None, None)
    assert found.unknown == ("cpu_rate: there is nothing to compare with",)


def test_without_proc_a_diagnosis_is_empty_and_says_why(tmp_path: Path) -> None:
    with started("sleep", "1000") as agent:
        found = look(agent, str(tmp_path))

    assert (found.processes, found.sockets, found.agent) == ((), (), None)
    assert found.unknown == (f"processes: {tmp_path}: no process can be read there",)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not look")
def test_who_may_not_look_sees_states_and_cpu_and_is_told_what_is_hidden() -> None:
    with started("sleep", "1000") as agent:
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:  # no other program: nobody may read where ours lies
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            found = until(lambda: look(agent), lambda found: found.processes[0].state == "S")
            (only,) = found.processes
            told = [only.state, only.cpu is not None, only.descriptors, only.wchan, only.io_read, only.waits_for_input]
            os.write(theirs, json.dumps([told, found.unknown]).encode())
            os._exit(0)
        os.close(theirs)
        with os.fdopen(ours) as file:
            told, unknown = json.load(file)
        os.waitpid(child, 0)

    assert told == ["S", True, None, None, None, None]
    assert {line.partition(" of ")[0] for line in unknown} >= {"descriptors", "io"}
    assert all(str(agent.pid) in line for line in unknown)


def test_a_process_whose_first_thread_ended_lives_and_is_read_by_another_one() -> None:
    leaves = (
        "import ctypes, socket, threading\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "ends = socket.create_connection(server.getsockname()), server.accept()\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    with started_python(leaves) as agent:
        found = until(lambda: look(agent), lambda found: of(found, agent.pid).first_thread_ended)
        reading = of(found, agent.pid)

        assert (reading.state, reading.threads, reading.rss_bytes > 0) == ("S", 2, True), "no zombie, and not without memory"
        assert reading.command is not None and "pthread_exit" in " ".join(reading.command)
        assert [one.socket.state for one in found.sockets].count("ESTABLISHED") == 2
        assert found.unknown == ()
        (seen,) = [one for one in read_processes(process.read_boot(), "") if one.process == agent.launch.process]
        assert seen.launch_id == agent.launch.id, "it is also a survivor, should its launch end"


def test_a_zombie_and_a_stopped_child_are_told_as_they_are() -> None:
    script = """
import os, subprocess, sys
zombie = subprocess.Popen(["true"])
stopped = subprocess.Popen(["sleep", "1000"])
os.kill(stopped.pid, 19)
print(zombie.pid, stopped.pid, flush=True)
sys.stdin.readline()
"""
    with started_python(script) as agent:
        zombie, stopped = map(int, agent.heard().split())

        found = until(lambda: look(agent), lambda found: {"Z", "T"} <= {one.state for one in found.processes})

        assert (of(found, zombie).state, of(found, zombie).descriptors) == ("Z", None)
        assert f"details of pid {zombie}: it is a zombie" in found.unknown
        assert of(found, stopped).state == "T"


@pytest.mark.skipif(subprocess.run(["unshare", "-Urn", "true"], capture_output=True).returncode != 0, reason="no namespaces")
def test_sockets_of_another_network_namespace_are_unknown_and_never_a_neighbours() -> None:
    script = "import socket, sys; s = socket.create_server(('0.0.0.0', 0)); print('up', flush=True); sys.stdin.readline()"
    with started("unshare", "-Urn", sys.executable, "-c", script) as agent:
        assert agent.heard() == "up"

        found = look(agent)

        assert found.sockets == ()
        assert f"sockets of pid {agent.pid}: it is in another network namespace" in found.unknown
