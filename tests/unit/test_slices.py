"""A thread that a death waits for asks for short slices; what it starts does not have them."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vigil.daemon.slices import SLICE_NS, shorten_slices


def slice_in(text: str) -> int:
    found = re.search(r"^se\.slice\s*:\s*(\d+)", text, re.MULTILINE)
    if found is None:
        pytest.skip("this kernel does not tell the slices of a thread")
    return int(found[1])


def slices() -> tuple[bool, int, int]:
    """Ask for short slices; return whether they were given, what this thread has then, and what a process it starts has."""
    taken = shorten_slices()
    child = subprocess.run(["cat", "/proc/self/sched"], capture_output=True, text=True, check=True)
    return taken, slice_in(Path("/proc/thread-self/sched").read_text()), slice_in(child.stdout)


def test_short_slices_are_for_the_thread_that_asks_and_not_for_what_it_starts() -> None:
    usual = slice_in(Path("/proc/self/sched").read_text())

    with ThreadPoolExecutor(1) as thread:
        taken, own, childs = thread.submit(slices).result()

    if not taken or own == usual:
        pytest.skip("this kernel gives everybody the same slices")
    assert (own, childs) == (SLICE_NS, usual)
    assert slice_in(Path("/proc/self/sched").read_text()) == usual
