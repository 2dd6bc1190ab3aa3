"""Mutated requests of an agent and of the operator: no error of ours, nothing of another session changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import Instance, wait_for

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.soak
@pytest.mark.parametrize("role", ["agent", "operator"])
def test_mutated_requests_are_answered_and_change_nothing(
    vigil: Instance, tmp_path: Path, role: str, record_property: Any
) -> None:
    count = 50_000 if os.environ.get("VIGIL_SOAK") else 1_500
    vigil.run("victim", "sleep", "1000", runtime="headless")
    vigil.run("bystander", "sleep", "1000", runtime="headless")
    spared = "victim" if role == "agent" else "bystander"  # an operator may do anything with the one it names
    before = vigil.wait_state(spared, "running")
    out = tmp_path / "found.json"
    argv = [sys.executable, "-m", "tests.live.fuzz_requests", str(vigil.home.api_socket), "7", str(count), role, str(out)]
    if role == "agent":
        vigil.run("fuzz", *argv, runtime="headless", cwd=str(ROOT))
        wait_for(out.exists, 1200, "the requests to be sent")
    else:
        subprocess.run(argv, cwd=ROOT, check=True, timeout=1200)

    found = json.loads(out.read_text())
    record_property("found", found)
    print(role, {key: found[key] for key in ("statuses", "took_s", "slowest_s")}, vigil.client.status()["lateness_ms"])
    assert found["bad_count"] == 0, found["bad"]
    assert found["statuses"].get("200", 0) > count / 50
    after = vigil.get(spared)
    assert (after["pid"], after["launch"], after["state"]) == (before["pid"], before["launch"], before["state"])
    assert _resident_kb(vigil) < 200_000
    assert "Traceback" not in (vigil.home.log / "daemon.log").read_text()


def _resident_kb(vigil: Instance) -> int:
    with open(f"/proc/{vigil.daemon_pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
