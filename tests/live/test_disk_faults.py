"""A disk that refuses the N-th call: what was told as done is there after a kill -9, every death once, all by itself."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.disk_faults import DiskFaults, library
from tests.live.instance import Instance, Json, wait_for

SAMPLE = (8, 27, 42, 58, 90)  # the store, the order, the birth, the end, and what follows
ALL = range(1, 160)
WIDTH = 3  # calls in a row: the first tries again at once
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)


def numbers() -> list[int]:
    return list(ALL if os.environ.get("VIGIL_SOAK") else SAMPLE)


@pytest.fixture
def faults(vigil: Instance, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[DiskFaults]:
    """The disk of an instance, with its daemon up."""
    made = DiskFaults(vigil, tmp_path, library(tmp_path_factory.getbasetemp()))
    vigil.ok("daemon", "start")
    yield made
    made.lift()


@pytest.mark.soak
@pytest.mark.parametrize("number", numbers())
def test_what_was_told_as_done_is_on_the_disk(vigil: Instance, faults: DiskFaults, number: int, tmp_path: Path) -> None:
    go = tmp_path / "go"
    runtime = ("headless", "tmux")[number % 2]
    faults.fail(number, number + WIDTH - 1, ERRORS[number % len(ERRORS)])

    ran = tell(vigil, "run", "--name", "one", "--runtime", runtime, "--", *("/bin/sh", "-c", WAITS, "sh", str(go)))
    go.touch()
    ran_other = tell(vigil, "run", "--name", "other", "--runtime", runtime, "--", "sleep", "1000")
    stopped = ran_other and tell(vigil, "stop", "other")
    removed = stopped and tell(vigil, "rm", "other")
    faults.lift()
    wait_for(lambda: vigil.client.status()["store_trouble"] is None, 20, "the store to be written again")
    vigil.kill_daemon()

    shown = {session["name"]: session for session in listed(vigil)}
    assert ("one" in shown) is ran, shown
    if ran:
        vigil.wait_state("one", "failed")
        causes = [(death["cause"], death["charged"]) for death in vigil.deaths("one")]
        assert [cause for cause, charged in causes if charged] == ["crash"], causes
        assert {cause for cause, charged in causes if not charged} <= {"launch-failed"}, causes
        launch = vigil.deaths("one")[0]["launch"]
        assert json.loads((vigil.home.launch(launch) / "exit.json").read_text())["status"] == 3 << 8
    assert not removed or "other" not in shown, shown
    assert not stopped or removed or shown["other"]["state"] == "stopped", shown
    assert ran_other or "other" not in shown, shown
    wait_for(lambda: all_is_over(vigil), 20, "every incident to be over", lambda: vigil.client.incidents(True))


WAITS = 'while [ ! -e "$1" ]; do sleep 0.05; done; exit 3'


def tell(vigil: Instance, *words: str) -> bool:
    """Run a command that may be refused, in one line and without a stack; say whether it was done."""
    done = vigil.run_cli(*words)
    if done.returncode != 0:
        assert done.stderr.startswith("vigil: ") and done.stderr.count("\n") == 1, done
        assert "nternal" not in done.stderr and "Traceback" not in done.stderr, done
    return done.returncode == 0


def listed(vigil: Instance) -> list[Json]:
    found: list[Json] = vigil.json("ls", "--all")
    return found


def all_is_over(vigil: Instance) -> bool:
    return all(one["resolved_at"] for one in vigil.client.incidents(True) if one["kind"] in ("exhausted", "late-daemon"))


@pytest.mark.parametrize("number", (1, 12, 25, 40))
def test_a_start_that_the_disk_refuses_says_so_in_a_line_and_the_next_succeeds(
    vigil: Instance, faults: DiskFaults, number: int
) -> None:
    vigil.ok("daemon", "stop")
    faults.fail(number, error=errno.EIO)

    refused = vigil.run_cli("daemon", "start")
    faults.lift()

    assert refused.returncode != 0
    assert refused.stderr.startswith("vigil: ") and refused.stderr.count("\n") == 1, refused
    vigil.ok("ls")
