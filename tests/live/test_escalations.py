"""The clock apart: humans are told on time, whatever hangs, and once."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from pathlib import Path

from tests.live.instance import Instance, Json, command_of, kill, resume, wait_for
from tests.live.watching import at, configure, read_notices

LATE_S = 1.0  # P6
GIGABYTE = 1_000_000_000


def test_an_escalation_that_was_due_while_the_daemon_was_down_fires_at_its_start_once(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    configure(vigil, notices)
    vigil.run("a", "sleep", "1000")
    kill(vigil.get("a")["server_pid"], signal.SIGKILL)
    vigil.wait_death("a")
    wait_for(lambda: vigil.client.incidents(), 5, "the incident")
    vigil.kill_daemon()
    time.sleep(3)
    assert read_notices(notices) == []

    vigil.start()

    wait_for(lambda: [n["state"] for n in vigil.client.incidents()[0]["notices"]] == ["sent"], 5, "the notice and its record")
    vigil.kill_daemon()
    vigil.start()
    time.sleep(1)  # in which nothing may come
    assert [n["event"] for _, n in read_notices(notices)] == ["opened"]


def test_a_store_that_hangs_holds_up_no_notice_and_no_new_incident(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    configure(vigil, notices)
    armed, late = vigil.run("armed", "sleep", "1000"), vigil.run("late", "sleep", "1000")
    kill(armed["server_pid"], signal.SIGKILL)
    opened = wait_for(lambda: vigil.client.incidents(), 5, "the incident")[0]
    database = sqlite3.connect(vigil.home.database, isolation_level=None)
    try:
        database.execute("BEGIN EXCLUSIVE")  # nobody writes now
        kill(late["server_pid"], signal.SIGKILL)
        wait_for(lambda: len(read_notices(notices)) == 2, 10, "both notices")
        vigil.client.sessions()
    finally:
        database.rollback()
        database.close()

    (first_at, first), (second_at, second) = read_notices(notices)
    assert first["id"] == opened["id"]
    assert first_at - at(first["opened_at"]) - 2.0 < LATE_S
    assert (second["kind"], second["session"]) == ("server-died", "late")
    assert second_at - at(second["opened_at"]) - 2.0 < LATE_S
    wait_for(lambda: len(vigil.client.deaths()) == 2, 10, "what happened to be recorded after all")


def test_a_notifier_that_hangs_and_one_that_does_not_exist_hold_up_nobody_else(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    configure(vigil, notices)
    text = vigil.config.read_text().partition("[[ladder]]")[0]
    steps = ", ".join(f"{{ route = '{name}', after = '1s' }}" for name in ("hangs", "missing", "floods", "script"))
    vigil.config.write_text(
        f"{text}[routes.hangs]\nexec = ['sleep', '100023']\n[routes.missing]\nexec = ['/nowhere/at-all']\n"
        f"[routes.floods]\nexec = ['yes']\n[[ladder]]\nseverity = 'urgent'\nsteps = [{steps}]\n"
    )
    vigil.run("a", "sleep", "1000")

    kill(vigil.get("a")["server_pid"], signal.SIGKILL)

    wait_for(lambda: read_notices(notices), 10, "the good one")
    came_at, notice = read_notices(notices)[0]
    assert came_at - at(notice["opened_at"]) - 1.0 < LATE_S

    def told() -> dict[str, str]:
        (died,) = [one for one in vigil.client.incidents() if one["kind"] == "server-died"]
        return {n["route"]: n["state"] for n in died["notices"]}

    wanted = {"script": "sent", "missing": "failed", "hangs": "sending", "floods": "sending"}
    wait_for(lambda: told() == wanted, 10, "the missing one to be recorded", told)
    vigil.ok("daemon", "stop")
    wait_for(lambda: not [pid for pid in all_pids() if is_notifier(pid)], 10, "the notifiers to end with the daemon")


def test_a_notifier_that_prints_a_gigabyte_costs_no_memory_and_holds_up_nobody(vigil: Instance, tmp_path: Path) -> None:
    notices, began, done = tmp_path / "notices", tmp_path / "began", tmp_path / "done"
    configure(vigil, notices)
    text = vigil.config.read_text().partition("[[ladder]]")[0]
    flood = f"head -c {GIGABYTE} /dev/zero"
    script = f"touch {began}; {flood} && {flood} >&2 && touch {done}; echo; echo no paper left >&2; exit 1"
    vigil.config.write_text(
        f"{text}[routes.prints]\nexec = ['sh', '-c', '{script}']\ntimeout = '2m'\nattempts = 1\n"
        "[[ladder]]\nseverity = 'urgent'\nsteps = [{ route = 'prints' }, { route = 'script', after = '1s', repeat = '1s' }]\n"
    )
    vigil.run("a", "sleep", "1000")
    before = memory_of(vigil.daemon_pid, "VmHWM")

    kill(vigil.get("a")["server_pid"], signal.SIGKILL)

    wait_for(began.exists, 10, "it to begin")
    (died,) = wait_for(lambda: vigil.client.incidents(), 10, "the incident")
    fate = wait_for(lambda: fate_by(vigil, died["id"], "prints"), 120, "it to have printed all of it")
    assert done.exists() and (fate["state"], fate["why"]) == ("failed", "exit 1: no paper left")
    assert memory_of(vigil.daemon_pid, "VmHWM") - before < 50_000_000
    came = [(came_at, said) for came_at, said in read_notices(notices) if said["kind"] == "server-died"]
    assert came
    for came_at, said in came:
        repeat = int(said["notice"].rpartition("/")[2])
        assert came_at - at(said["opened_at"]) - 1.0 - repeat < LATE_S + 0.5  # for a process to start, on a busy machine


def memory_of(pid: int, what: str) -> int:
    """Return a number of bytes that the kernel counts of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{what}:"))


def fate_by(vigil: Instance, incident: str, route: str) -> Json | None:
    """Return a notice by a route that is neither on its way nor tried again."""
    found = vigil.json("incidents", incident)["notices"]
    return next((one for one in found if one["route"] == route and one["state"] not in ("sending", "retrying")), None)


def test_of_a_keeper_that_was_killed_somebody_is_told_also_if_the_next_one_is_there_at_once(
    vigil: Instance, tmp_path: Path
) -> None:
    notices = tmp_path / "notices"
    configure(vigil, notices, "[[ladder]]\nkind = 'keeper-lost'\nsteps = [{ route = 'script' }]\n")
    vigil.run("a", "sleep", "1000")
    kill(vigil.keeper_pid, signal.SIGKILL)

    wait_for(lambda: read_notices(notices), 10, "the notice")
    wait_for(lambda: not vigil.client.incidents(), 20, "it to be over")

    ((_, said),) = read_notices(notices)
    assert (said["event"], said["kind"], said["severity"]) == ("opened", "keeper-lost", "urgent")
    (incident,) = vigil.client.incidents(everything=True)
    assert "a keeper answers" in incident["resolution"]


def test_a_keeper_that_hangs_is_one_incident_also_across_daemons(vigil: Instance) -> None:
    vigil.run("a", "sleep", "1000")
    keeper = vigil.keeper_pid
    os.kill(keeper, signal.SIGSTOP)
    try:
        opened = wait_for(lambda: vigil.client.incidents(), 20, "the incident")
        vigil.kill_daemon()
        vigil.start()
        assert [i["id"] for i in vigil.client.incidents()] == [i["id"] for i in opened]
        vigil.kill_daemon()
    finally:
        resume(keeper)
    vigil.start()

    wait_for(lambda: not vigil.client.incidents(), 20, "it to be over")
    assert [i["kind"] for i in vigil.client.incidents(everything=True)] == ["keeper-lost"]


def test_a_crash_loop_that_was_given_up_is_an_incident_until_somebody_resets_it(vigil: Instance) -> None:
    vigil.run("a", "false", restart="always", max_restarts=1, backoff_base_s=0.2)
    vigil.wait_state("a", "failed")

    (incident,) = wait_for(lambda: vigil.client.incidents() or None, 5, "the incident")
    assert (incident["kind"], incident["severity"], incident["session"]) == ("saturated", "urgent", "a")
    assert vigil.get("a")["incidents"] == [incident["id"]]
    vigil.ok("stop", "a")
    wait_for(lambda: not vigil.client.incidents(), 5, "it to be over")


def all_pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def is_notifier(pid: int) -> bool:
    """Say whether a process is one of the bad notifiers above; what has no parent but init was left behind."""
    words = command_of(pid)
    return words in (b"sleep\x00100023\x00", b"yes\x00")
