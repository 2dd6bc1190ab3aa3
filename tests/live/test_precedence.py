"""The daemon comes before those it watches, where the kernel has it so and we may; none of them inherits that."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.instance import Instance
from vigil.kernel.precedence import NICE, come_first

TRY = "import sys; from vigil.kernel.precedence import come_first; sys.exit(not come_first())"


def nice_of(pid: int) -> int:
    """Return the precedence of a process's session."""
    found = re.search(r"nice (-?\d+)", Path(f"/proc/{pid}/autogroup").read_text())
    assert found is not None
    return int(found[1])


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this kernel has no autogroups")
def test_a_daemon_that_a_command_started_comes_first_and_neither_keeper_nor_agents_do(vigil: Instance) -> None:
    may = subprocess.run([sys.executable, "-c", TRY], start_new_session=True, timeout=30).returncode == 0

    vigil.ok("run", "--name", "pane", "--", "sleep", "1000")
    vigil.ok("run", "--name", "plain", "--runtime", "headless", "--", "sleep", "1000")

    assert nice_of(vigil.daemon_pid) == (NICE if may else 0)
    pane, plain = vigil.get("pane"), vigil.get("plain")
    others = (vigil.keeper_pid, pane["pid"], pane["server_pid"], plain["pid"])
    assert [nice_of(pid) for pid in others] == [0, 0, 0, 0]


def test_where_that_cannot_be_said_nothing_else_changes(tmp_path: Path) -> None:
    assert come_first(str(tmp_path / "absent" / "autogroup")) is False
