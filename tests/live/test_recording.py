"""A daemon records what it met: the recording replays without a difference, also one that was cut off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import VIGIL, Instance, kill, wait_for

SECRET = "s3cret-of-the-environment"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where to record."""
    return tmp_path / "it.jsonl"


def start(vigil: Instance, file: Path) -> subprocess.CompletedProcess[str]:
    return vigil.run_cli("daemon", "start", "--record", str(file))


def replay(vigil: Instance, file: Path) -> dict[str, Any]:
    """Replay a recording that must show no difference."""
    done = vigil.run_cli("replay", str(file), "-o", "json")
    assert (done.returncode, done.stderr) == (0, ""), done
    found: dict[str, Any] = json.loads(done.stdout)
    assert (found["differ"], found["steps"]) == (0, [])
    return found


def live_a_little(vigil: Instance) -> None:
    """Have sessions run, crash, be killed, stopped, restarted and removed."""
    env = dict(vigil.env) | {"TOKEN": SECRET}
    for name, runtime in (("one", "tmux"), ("two", "headless")):
        vigil.run(name, "sleep", "1000", runtime=runtime, env=env)
    vigil.run("loop", "sh", "-c", "exit 3", restart="always", max_restarts=1, backoff_base_s=1.0, env=env)
    kill(vigil.get("one")["pid"], signal.SIGKILL)
    vigil.wait_death("one")
    vigil.ok("restart", "two")
    vigil.ok("stop", "two")
    vigil.ok("rm", "two")
    vigil.wait_state("loop", "failed")


def test_a_recording_of_a_daemon_replays_without_a_difference(vigil: Instance, file: Path) -> None:
    done = start(vigil, file)
    assert done.returncode == 0, done.stderr
    assert f"it records into {file}" in done.stdout

    live_a_little(vigil)
    status = vigil.json("daemon", "status")["recording"]
    assert (status["file"], status["ended"]) == (str(file), None)
    assert status["events"] > 10
    assert f"recording into {file}, " in vigil.ok("daemon", "status")
    vigil.ok("daemon", "stop")

    found = replay(vigil, file)
    assert (found["sessions"], found["deaths"], found["torn"]) == (3, 5, False)
    assert found["ended"] == "the daemon stopped"
    assert file.stat().st_mode & 0o777 == 0o600
    assert SECRET not in file.read_text()
    assert vigil.run_cli("daemon", "status").returncode == 5, "a replay starts no daemon"


def test_a_daemon_that_takes_over_records_what_it_was_given(vigil: Instance, file: Path) -> None:
    live_a_little(vigil)
    vigil.run("here", "sleep", "1000")
    vigil.ok("daemon", "stop")

    start(vigil, file)
    vigil.ok("stop", "here")
    vigil.ok("daemon", "stop")

    found = replay(vigil, file)
    assert (found["sessions"], found["deaths"]) == (3, 1)
    assert len(json.loads(file.read_text().splitlines()[0])["sessions"]) == 3


def test_a_recording_that_a_kill_cut_off_is_replayed_as_far_as_it_goes(vigil: Instance, file: Path) -> None:
    start(vigil, file)
    live_a_little(vigil)
    vigil.kill_daemon()

    whole = replay(vigil, file)
    assert whole["ended"] is None
    assert whole["events"] > 10
    printed = vigil.ok("replay", str(file))
    assert "It has no end: the daemon was killed" in printed or "torn" in printed

    file.write_bytes(file.read_bytes().rstrip(b"\n")[:-20])
    torn = replay(vigil, file)
    assert (torn["torn"], torn["events"]) == (True, whole["events"] - (not whole["torn"]))
    assert "Its last line is torn: " in vigil.ok("replay", str(file))


def test_a_file_that_is_there_and_a_folder_that_is_not_are_refused_and_no_daemon_starts(vigil: Instance, file: Path) -> None:
    file.write_text("mine\n")

    for path, words in ((file, "is there already"), (file.parent / "no" / "it", "is not a folder")):
        done = start(vigil, path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("vigil: ")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1

    assert file.read_text() == "mine\n"
    assert vigil.run_cli("daemon", "status").returncode == 5


def test_a_daemon_that_runs_already_is_said_and_what_to_do(vigil: Instance, file: Path) -> None:
    vigil.start()

    done = start(vigil, file)

    assert (done.returncode, done.stdout) == (1, "")
    assert "runs already" in done.stderr
    assert "vigil daemon stop" in done.stderr
    assert not file.exists()
    assert vigil.json("daemon", "status")["recording"] is None


def test_a_relative_file_is_where_the_caller_stands(vigil: Instance, tmp_path: Path) -> None:
    words = [*VIGIL, "daemon", "start", "--record", "here.jsonl"]

    done = subprocess.run(words, env=vigil.env, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "here.jsonl").exists()


def test_a_daemon_that_could_not_start_leaves_no_recording_behind(vigil: Instance, file: Path) -> None:
    vigil.home.path.mkdir(exist_ok=True)
    vigil.home.database.write_text("no database")

    done = start(vigil, file)

    assert done.returncode != 0
    assert not file.exists()


def test_a_recording_that_ends_costs_nothing_else_and_is_said(vigil: Instance, tmp_path: Path) -> None:
    """A file may not grow beyond a limit here, as on a disk that is full."""
    file = tmp_path / "it.jsonl"
    assert start(vigil, file).returncode == 0
    size = file.stat().st_size
    limit_file_size(vigil.daemon_pid, size + 1)
    try:
        vigil.ok("ls")
        Path(vigil.path, "config.toml").write_text("nonsense = 1\n")  # is noted in the log: one more event
        status = wait_for(lambda: (s := vigil.json("daemon", "status")["recording"])["ended"] and s, 20, "the recording to end")
    finally:
        limit_file_size(vigil.daemon_pid, None)

    assert "File too large" in status["ended"]
    assert "has ended after" in vigil.ok("daemon", "status")
    ended = vigil.wait_event("recording.ended")
    assert ended["data"]["file"] == str(file)
    Path(vigil.path, "config.toml").unlink()
    vigil.run("after", "sleep", "1000")
    assert vigil.get("after")["state"] == "running"
    assert replay(vigil, file)["torn"] in (True, False)


def limit_file_size(pid: int, size: int | None) -> None:
    import resource

    infinity = resource.RLIM_INFINITY
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (infinity if size is None else size, infinity))
    assert os.path.exists(f"/proc/{pid}")
