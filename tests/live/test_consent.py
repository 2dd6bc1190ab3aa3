"""`vigil up` shows and asks, once for each thing that a manifest runs; in a pipe it refuses."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

from tests.live.instance import VIGIL, Instance
from tests.live.manifests import manifest, role
from vigil.errors import VigilError

ROLE: dict[str, Any] = {"replicas": 1, "runtime": "headless"}
SECRET = "hunter2hunter2"
MORE = f'env = {{ API_TOKEN = "{SECRET}" }}\n'


def typed(vigil: Instance, answer: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command on a terminal, and answer."""
    command = ["script", "-qec", shlex.join([*VIGIL, *words]), "/dev/null"]
    return subprocess.run(command, env=vigil.env, input=answer, capture_output=True, text=True, timeout=60)


def write(vigil: Instance, text: str) -> Path:
    path = vigil.path / "project" / "vigil.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_in_a_pipe_it_refuses_and_applies_nothing(vigil: Instance) -> None:
    path = write(vigil, manifest(role(**ROLE, more=MORE)))

    refused = vigil.run_cli("up", str(path))

    assert refused.returncode == 4
    assert "sleep 1000" in refused.stderr and "in /" in refused.stderr and "API_TOKEN=…" in refused.stderr
    assert SECRET not in refused.stdout + refused.stderr
    assert refused.stderr.splitlines()[-1].startswith("vigil: ") and "vigil up --yes" in refused.stderr.splitlines()[-1]
    in_json = vigil.run_cli("up", str(path), "-o", "json")
    assert (in_json.returncode, in_json.stdout, in_json.stderr.count("\n")) == (4, "", 1)
    assert vigil.json("ls", "--all") == []
    for words in (("plan", str(path)), ("up", "--dry-run", str(path))):
        assert vigil.run_cli(*words).returncode == 0, "a plan asks nothing"


def test_a_yes_is_remembered_until_something_changes_and_only_that_is_shown_again(vigil: Instance) -> None:
    coder, tests = role(**ROLE, more=MORE), role("tests", **ROLE)
    path = write(vigil, manifest(coder, tests))

    assert typed(vigil, "n\n", "up", str(path)).returncode == 4
    assert vigil.json("ls", "--all") == []
    asked = typed(vigil, "y\n", "up", str(path))
    assert asked.returncode == 0, asked.stdout
    assert "shop/backend/coder" in asked.stdout and "shop/backend/tests" in asked.stdout and "[y/N]" in asked.stdout
    again = vigil.run_cli("up", str(path))
    assert (again.returncode, again.stderr) == (0, "")

    path.write_text(manifest(coder, role("tests", **ROLE, command='["sleep", "2000"]')))
    changed = vigil.run_cli("up", str(path))
    assert changed.returncode == 4
    assert "sleep 2000" in changed.stderr and "shop/backend/coder" not in changed.stderr
    path.write_text(manifest(coder.replace(SECRET, "other"), tests))
    assert vigil.run_cli("up", str(path)).returncode == 4, "another value of a variable is asked for too"
    path.write_text(manifest(coder.replace("replicas = 1", "replicas = 2"), tests))
    assert vigil.run_cli("up", str(path)).returncode == 0, "another number of the same is not"

    elsewhere = vigil.path / "vigil.toml"
    elsewhere.write_text(path.read_text())
    assert vigil.run_cli("up", str(elsewhere)).returncode == 4, "another file is asked for by itself"


def test_the_daemon_itself_applies_nothing_without_a_yes(vigil: Instance) -> None:
    path = write(vigil, manifest(role(**ROLE)))
    vigil.start()
    wanted = {"text": path.read_text(), "path": str(path), "folder": str(path.parent), "env": {}}

    for agreed in ([], ["", "0" * 64]):
        try:
            vigil.client.apply({**wanted, "agreed": agreed})
            raise AssertionError("it was applied")
        except VigilError as error:
            assert error.exit_code == 4
    assert not (vigil.path / "agreed.json").exists()

    vigil.ok("up", "--yes", str(path))
    assert (vigil.path / "agreed.json").stat().st_mode & 0o777 == 0o600
    assert list(json.loads((vigil.path / "agreed.json").read_text())) == [str(path)]
