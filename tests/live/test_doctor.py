"""The doctor on real instances: what it says, what it mends, and that it changes nothing unasked."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import time
from pathlib import Path
from typing import Any

from tests.live.instance import Instance, alive, kill, resume, wait_for

Findings = dict[str, list[dict[str, Any]]]
HOUR_S = 3600


def examine(vigil: Instance, *words: str, expect: int) -> Findings:
    """Run the doctor and return its findings by check."""
    done = vigil.run_cli("doctor", *words, "-o", "json")
    assert done.returncode == expect, done.stdout + done.stderr
    findings: Findings = {}
    for finding in json.loads(done.stdout):
        findings.setdefault(finding["check"], []).append(finding)
    return findings


def stop(vigil: Instance) -> None:
    """Stop the daemon, and keep the sessions."""
    pid = vigil.daemon_pid
    vigil.ok("daemon", "stop")
    wait_for(lambda: not alive(pid), 10, "the daemon to end")


def forget_database(vigil: Instance) -> None:
    """Remove what no daemon would start with, so that the instance can be ended as usual."""
    for path in vigil.path.glob("vigil.db*"):
        path.unlink()


def test_without_a_home_nothing_is_wrong_and_nothing_is_created(vigil: Instance) -> None:
    vigil.path.rmdir()

    found = examine(vigil, expect=0)

    assert "does not exist yet" in found["home"][0]["says"]
    assert found["daemon"][0]["level"] == "note"
    assert not vigil.path.exists()


def test_fix_creates_a_home_and_starts_its_daemon(vigil: Instance) -> None:
    vigil.path.rmdir()

    found = examine(vigil, "--fix", expect=0)

    assert found["home"][0]["done"] == f"created {vigil.path}"
    assert found["daemon"][0]["done"] == "started the daemon"
    assert alive(vigil.daemon_pid)
    assert vigil.path.stat().st_mode & 0o777 == 0o700


def test_a_running_instance_is_well_and_says_so_in_words(vigil: Instance) -> None:
    vigil.run("a", "sleep", "1000")

    words = vigil.ok("doctor")

    assert f"pid {vigil.daemon_pid}, version" in words
    assert f"pid {vigil.keeper_pid}, processes watched: 3" in words
    assert "\x1b" not in words
    assert words.endswith("All is well.\n")


def test_without_fix_no_file_changes(vigil: Instance) -> None:
    vigil.start()
    stop(vigil)
    wait_for(lambda: not alive(vigil.keeper_pid), 30, "the keeper to end")
    vigil.path.chmod(0o755)
    before = snapshot(vigil.path)

    examine(vigil, expect=1)

    assert snapshot(vigil.path) == before


def test_a_folder_open_to_others_is_a_problem_that_fix_mends(vigil: Instance) -> None:
    vigil.start()
    for folder in (vigil.path, vigil.home.run, vigil.home.environments):
        folder.chmod(0o755)

    found = examine(vigil, expect=1)
    assert [f["level"] for f in (*found["home"], *found["sockets"])] == ["problem", "problem", "problem"]
    assert found["home"][0]["todo"] == f"chmod 700 {vigil.path}"

    examine(vigil, "--fix", expect=0)
    assert vigil.path.stat().st_mode & 0o777 == 0o700
    assert vigil.home.run.stat().st_mode & 0o777 == 0o700
    assert vigil.home.environments.stat().st_mode & 0o777 == 0o700


def test_a_damaged_database_is_moved_aside_by_fix_and_kept(vigil: Instance) -> None:
    vigil.start()
    stop(vigil)
    garbage = b"garbage " * 1000
    vigil.home.database.write_bytes(garbage)

    found = examine(vigil, expect=1)
    assert "is damaged" in found["database"][0]["says"]
    assert vigil.home.database.read_bytes() == garbage

    found = examine(vigil, "--fix", expect=0)
    assert "moved the damaged database aside" in found["database"][0]["done"]
    (aside,) = vigil.path.glob("vigil.db.damaged-*")
    assert aside.read_bytes() == garbage
    assert alive(vigil.daemon_pid)


def test_a_damaged_database_that_a_daemon_has_open_is_not_moved(vigil: Instance) -> None:
    vigil.start()
    connection = sqlite3.connect(vigil.home.database)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with vigil.home.database.open("r+b") as file:
        file.write(b"garbage " * 512)

    found = examine(vigil, "--fix", expect=1)

    assert "a daemon has it open" in found["database"][0]["done"]
    assert vigil.home.database.exists()
    vigil.kill_daemon()
    forget_database(vigil)


def test_a_newer_database_is_a_problem_that_fix_leaves_alone(vigil: Instance) -> None:
    vigil.start()
    stop(vigil)
    connection = sqlite3.connect(vigil.home.database)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    before = vigil.home.database.read_bytes()

    found = examine(vigil, "--fix", expect=1)

    assert "written by a newer Vigil" in found["database"][0]["says"]
    assert "could not be mended" in found["daemon"][0]["done"]
    assert vigil.home.database.read_bytes() == before
    forget_database(vigil)


def test_a_stopped_daemon_is_found_within_seconds(vigil: Instance) -> None:
    vigil.start()
    os.kill(vigil.daemon_pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        found = examine(vigil, expect=1)
        assert time.monotonic() - began < 20
    finally:
        resume(vigil.daemon_pid)

    assert found["daemon"][0]["says"] == f"pid {vigil.daemon_pid} is stopped"
    assert found["daemon"][0]["todo"] == f"kill -CONT {vigil.daemon_pid}"


def test_a_stopped_keeper_is_found(vigil: Instance) -> None:
    vigil.start()
    os.kill(vigil.keeper_pid, signal.SIGSTOP)
    try:
        found = examine(vigil, expect=1)
    finally:
        resume(vigil.keeper_pid)

    assert found["keeper"][0]["says"] == f"pid {vigil.keeper_pid} is stopped"


def test_sessions_without_a_daemon_are_a_warning_and_fix_starts_it(vigil: Instance) -> None:
    pid = vigil.run("a", "sleep", "1000")["pid"]
    vigil.kill_daemon()

    found = examine(vigil, expect=0)
    assert found["daemon"][0]["level"] == "warning"

    found = examine(vigil, "--fix", expect=0)
    assert found["daemon"][0]["done"] == "started the daemon"
    assert vigil.get("a")["pid"] == pid


def test_stale_sockets_and_temporary_files_are_removed_by_fix_and_nothing_else(vigil: Instance) -> None:
    launch = vigil.run("a", "sleep", "1000")["launch"]
    stale = vigil.home.server_socket("snobody-1")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(stale))
    temporary = vigil.home.launch(launch) / "born.json.99.tmp"
    temporary.touch()
    young = vigil.home.launch(launch) / "exit.json.99.tmp"
    young.touch()
    for path in (stale, temporary):
        os.utime(path, (time.time() - HOUR_S,) * 2)

    found = examine(vigil, expect=0)
    assert [finding["level"] for finding in found["leftovers"]] == ["warning", "warning"]
    assert "snobody-1.tmux" in found["leftovers"][0]["says"]

    found = examine(vigil, "--fix", expect=0)
    assert found["leftovers"][0]["done"] == "removed 1 stale sockets; removed 1 temporary files"
    assert not stale.exists()
    assert not temporary.exists()
    assert young.exists()
    assert vigil.tmux("a", "list-panes").returncode == 0


def test_a_launch_that_no_session_knows_is_named_and_left_alone(vigil: Instance) -> None:
    launch = vigil.run("a", "sleep", "1000")["launch"]
    lost = vigil.home.launch("slost-1")
    shutil.copytree(vigil.home.launch(launch), lost)

    found = examine(vigil, "--fix", expect=0)

    assert "launch slost-1 (a) lives" in found["leftovers"][0]["says"]
    assert lost.exists()
    assert vigil.get("a")["state"] == "running"


def test_an_empty_vigil_home_is_a_finding_too(vigil: Instance) -> None:
    done = vigil.run_cli("doctor", env={"VIGIL_HOME": ""})

    assert done.returncode == 1
    assert "VIGIL_HOME is empty" in done.stdout


def test_without_tmux_that_is_the_problem(vigil: Instance, tmp_path: Path) -> None:
    done = vigil.run_cli("doctor", "-o", "json", env={"PATH": str(tmp_path)})

    found = {finding["check"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 1
    assert found["tmux"]["says"] == "not installed"


def test_a_keeper_that_is_gone_with_its_daemon_is_a_warning(vigil: Instance) -> None:
    vigil.run("a", "sleep", "1000")
    vigil.kill_daemon()
    kill(vigil.keeper_pid, signal.SIGKILL)

    found = examine(vigil, expect=0)

    assert found["keeper"][0]["level"] == "warning"


def snapshot(folder: Path) -> dict[str, tuple[int, int, float]]:
    """Return name, mode, size and time of all there is."""
    found = {path: path.lstat() for path in (folder, *folder.rglob("*"))}
    return {str(path): (stat.st_mode, stat.st_size, stat.st_mtime) for path, stat in found.items()}
