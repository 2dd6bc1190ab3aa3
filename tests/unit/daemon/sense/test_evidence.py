"""A diagnosis becomes evidence: what was read is known with its source, what was not is unknown, and unknown is never idle."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.stalls import NOW, TURN, case, trail
from vigil.core.model.death import Confidence
from vigil.core.model.evidence import Evidence
from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.speech import What
from vigil.core.rules.stall.verdict import classify
from vigil.daemon.sense.evidence import evidence_of
from vigil.kernel.process import read_boot, read_start_ticks
from vigil.observe.diagnosis import diagnose, take_sample
from vigil.observe.trees import Tokens

AGENT = (
    "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print(1, flush=True); sys.stdin.read()"
)


def launch_of(pid: int) -> Launch:
    ticks = read_start_ticks(pid)
    assert ticks is not None
    return Launch("s1-1", "s1", 1, 0.0, started_at=0.0, process=ProcessId(pid, ticks, read_boot()))


@pytest.fixture
def agent() -> Iterator[Launch]:
    """An agent with one connection, which waits for input."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        argv = [sys.executable, "-c", AGENT, str(listener.getsockname()[1])]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            ours, _ = listener.accept()
            assert process.stdout is not None
            process.stdout.readline()
            try:
                yield launch_of(process.pid)
            finally:
                process.kill()
                ours.close()


def read(launch: Launch, proc: str = "/proc") -> Evidence:
    tokens = Tokens(proc)
    before = take_sample(launch, tokens, thorough=False, proc=proc)
    found = diagnose(launch, before, take_sample(launch, tokens, proc=proc))
    return evidence_of(found, found.cpu, NOW)


def test_what_was_read_of_a_real_process_is_known_with_its_source(agent: Launch) -> None:
    found = read(agent)

    assert found.state.value in ("S", "R")
    assert (found.sockets.value, found.sockets.source) == (1, "sock_diag")
    assert found.received_s.value is not None and found.received_s.value < 60
    assert found.main_cpu.source == found.tree_cpu.source == "procfs"
    assert found.traced.value is False


def test_without_proc_nothing_is_known_and_nobody_is_sure(agent: Launch, tmp_path: Path) -> None:
    found = read(agent, str(tmp_path))
    judged = classify(case(silent_s=7200, doing=TURN, trail=trail(What.TOOL_ENDED), evidence=found))

    assert (found.state.value, found.tree_cpu.value, found.sockets.value, found.descendants.value) == (None,) * 4
    assert found.state.why
    assert (judged.verdict, judged.confidence, judged.independent) == ("unknown", Confidence.UNKNOWN, 0)
    assert any("could not be read" in reason for reason in judged.reasons)
