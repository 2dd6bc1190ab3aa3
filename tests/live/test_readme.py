"""What the README shows is run: its first session, command by command."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.live.instance import Instance

ROOT = Path(__file__).parent.parent.parent
NEEDS_A_TERMINAL = ("vigil attach",)


def test_the_first_session_of_the_readme_works_as_shown(vigil: Instance) -> None:
    (block,) = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    commands = [line[2:].partition("  #")[0].strip() for line in block.splitlines() if line.startswith("$ ")]
    shown = {line for line in block.splitlines() if not line.startswith("$ ")}
    assert len(commands) >= 8

    printed = ""
    for command in commands:
        if not command.startswith(NEEDS_A_TERMINAL):
            real = command.replace("vigil ", f"{sys.executable} -m vigil.cli ", 1)
            done = subprocess.run(["sh", "-c", real], env=vigil.env, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, (command, done.stderr)
            printed += done.stdout

    for line in shown:
        pattern = re.sub(r"\\ (\\ )*", r"\\s+", re.escape(line))
        pattern = re.sub(r"\d+", r"\\d+", pattern)
        assert re.search(f"^{pattern}$", printed, re.MULTILINE), (line, printed)


def test_every_make_target_the_readme_names_exists() -> None:
    named = set(re.findall(r"`?make ([a-z-]+)", (ROOT / "README.md").read_text("utf-8")))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))

    assert {"demo", "test"} <= named <= targets
