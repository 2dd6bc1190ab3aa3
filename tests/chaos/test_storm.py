"""The runner: a short storm of few faults ends by itself, was looked at from every side, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import room
from tests.chaos.history import Part
from tests.chaos.place import Place
from tests.chaos.watch import part_of

FEW = "^(agent killed|daemon killed)$"


@pytest.mark.unhurried
@pytest.mark.timeout(200)
@pytest.mark.skipif(not room.can_enter(), reason="only root has a room of its own")
def test_a_short_storm_of_few_faults_breaks_nothing_and_leaves_nothing() -> None:
    words = ["--minutes", "0.3", "--seed", "7", "--sessions", "9", "--only", FEW]

    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", *words], capture_output=True, text=True, timeout=180, cwd=os.getcwd()
    )

    assert done.returncode == 0, done.stdout + done.stderr
    births = re.search(r"(\d+) births, (\d+) deaths", done.stdout)
    assert births is not None and int(births[1]) > 9
    assert "kept" not in done.stdout


@pytest.mark.parametrize(
    ("words", "part", "launch"),
    [
        (["python", "-m", "vigil.daemon", "--home", "/c/home"], Part.DAEMON, ""),
        (["python", "-m", "vigil.daemon", "--home", "/c/other"], None, ""),
        (["python", "-S", "/x/keeper/__main__.py", "/c/home/run", "lock"], Part.KEEPER, ""),
        (["/bin/sh", "/x/keeper/shim.sh", "root", "/c/home/launches/s1-2"], Part.ROOT, "s1-2"),
        (["/bin/sh", "/x/keeper/shim.sh", "recorder", "/c/home/launches/s1-2"], Part.RECORDER, "s1-2"),
        (["/bin/sh", "/x/keeper/shim.sh", "agent", "/c/home/launches/s1-2"], None, "s1-2"),
        (["/bin/sh", "/c/work/agent.sh", "worker"], Part.AGENT, ""),
        (["python3", "/c/work/hog.py"], Part.AGENT, ""),
        (["/bin/sh", "/c/work/survivor.sh"], Part.SURVIVOR, ""),
        (["sleep", "5"], None, ""),
        ([], None, ""),
    ],
)
def test_a_process_is_known_by_its_command_line(words: list[str], part: Part | None, launch: str) -> None:
    assert part_of(words, Place(Path("/c"))) == (part, launch)
