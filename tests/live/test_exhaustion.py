"""Exhaustion: descriptors, processes, threads and room run out; nothing told as durable is lost, and all goes on by itself."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

from tests.live.instance import Instance, Json, alive, wait_for
from tests.live.shortages import cpu_s, crowd, small_disk, without_descriptors
from vigil.kernel.processes import read_pids

RESTARTS = {"restart": "on-failure", "backoff_base_s": 0.5}


def exhausted(vigil: Instance) -> Json | None:
    return next((one for one in vigil.client.incidents(True) if one["kind"] == "exhausted"), None)


def test_a_keeper_without_descriptors_rests_and_records(vigil: Instance) -> None:
    one, other = vigil.run("one", "sleep", "1000", runtime="headless"), vigil.run("other", "sleep", "1000")
    keeper = vigil.keeper_pid
    with without_descriptors(keeper), ExitStack() as held:
        for _ in range(12):  # peers that take what is left
            peer = held.enter_context(socket.socket(socket.AF_UNIX))
            peer.connect(str(vigil.home.keeper_socket))
        began, used = time.monotonic(), cpu_s(keeper)

        waits = vigil.run_cli("run", "--name", "more", "--", "sleep", "1000")
        os.kill(one["pid"], signal.SIGKILL)
        os.kill(other["pid"], signal.SIGSEGV)
        deaths = [vigil.wait_death(name) for name in ("one", "other")]
        vigil.kill_daemon()
        vigil.ok("ls")  # a new daemon is let in all the same
        doctor = vigil.run_cli("doctor").stdout

        assert (waits.returncode, waits.stderr.count("\n")) == (0, 1), waits
        assert "more is pending: launched again after Too many open files" in waits.stderr
        assert f"descriptors of the keeper (pid {keeper}): " in doctor, doctor
        assert [(death["cause"], death["signal"]) for death in deaths] == [("killed-by-unknown", 9), ("crash", 11)]
        for death in deaths:
            wait_for((vigil.home.launch(death["launch"]) / "exit.json").exists, 10, "the keeper's record")
        assert cpu_s(keeper) - used < 0.3 * (time.monotonic() - began), "it waits for descriptors with its whole core"
    assert vigil.keeper_pid == keeper and alive(keeper)
    vigil.wait_state("more", "running")


def test_a_daemon_without_descriptors_tells_deaths_and_answers(vigil: Instance) -> None:
    told = vigil.path / "told"
    vigil.config.write_text(f'[routes.me]\nexec = ["/bin/sh", "-c", "cat >>{told}"]\n')
    one = vigil.run("one", "sleep", "1000", runtime="headless")
    other = vigil.run("other", "sleep", "1000", **RESTARTS)
    daemon = vigil.daemon_pid
    with without_descriptors(daemon), ExitStack() as held:
        for _ in range(12):
            peer = held.enter_context(socket.socket(socket.AF_UNIX))
            peer.connect(str(vigil.home.api_socket))

        os.kill(one["pid"], signal.SIGKILL)
        os.kill(other["server_pid"], signal.SIGKILL)
        done = vigil.run_cli("ls")

        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done
        wait_for(lambda: "server-died" in told.read_text(), 20, "a notice by the reserve")
    assert vigil.daemon_pid == daemon and alive(daemon)
    vigil.wait_state("other", "running")
    assert [death["cause"] for death in vigil.deaths("one")] == ["killed-by-unknown"]
    assert [death["cause"] for death in vigil.deaths("other") if death["charged"]] == ["server-died"]


def test_a_host_without_processes_charges_nobody_and_all_comes_back(vigil: Instance) -> None:
    told = vigil.path / "told"
    vigil.config.write_text(f'[routes.me]\nexec = ["/bin/sh", "-c", "cat >>{told}"]\ntimeout = "20s"\n')
    one = vigil.run("one", "sleep", "1000", runtime="headless", **RESTARTS)
    vigil.run("other", "sleep", "1000", **RESTARTS)
    daemon, keeper = vigil.daemon_pid, vigil.keeper_pid
    with crowd(daemon, keeper) as host:
        host.fill()

        waits = vigil.run_cli("run", "--name", "more", "--", "sleep", "1000")
        os.kill(one["pid"], signal.SIGKILL)
        wait_for(lambda: len(vigil.deaths("one")) >= 3, 20, "two launches that fail")  # its own death, and two tries
        opened = wait_for(lambda: exhausted(vigil), 10, "the incident")
        doctor = vigil.run_cli("doctor").stdout

        assert "processes of the cgroup: 0 left" in doctor, doctor
        assert (waits.returncode, waits.stderr.count("\n")) == (0, 1), waits
        assert "Resource temporarily unavailable" in waits.stderr
        assert "Resource temporarily unavailable" in opened["why"]
        assert vigil.get("other")["state"] == "running"
        host.free()
        vigil.wait_state("one", "running")
        wait_for(lambda: told.exists() and "exhausted" in told.read_text(), 40, "people to be told")
    assert (vigil.daemon_pid, vigil.keeper_pid) == (daemon, keeper)
    assert [death["cause"] for death in vigil.deaths("one") if death["charged"]] == ["killed-by-unknown"]
    assert {death["cause"] for death in vigil.deaths("one") if not death["charged"]} == {"launch-failed"}
    wait_for(lambda: (exhausted(vigil) or {}).get("resolved_at"), 20, "the incident to be over")


def test_a_storm_of_forks_delays_no_other_death(vigil: Instance, scripts: Path) -> None:
    storm = scripts / "storm.sh"
    storm.write_text("i=0\nwhile [ $i -lt 2000 ]; do (exit 1) & i=$((i + 1)); done\nwait\necho calm\nsleep 1000\n")
    other = vigil.run("other", "sleep", "1000")
    stormy = vigil.run("stormy", "/bin/sh", str(storm), runtime="headless")

    os.kill(other["pid"], signal.SIGKILL)
    death = vigil.wait_death("other")

    assert death["cause"] == "killed-by-unknown"
    output = vigil.home.launch(stormy["launch"]) / "stdout.jsonl"
    wait_for(lambda: "calm" in output.read_text(), 60, "the storm to be over")
    assert vigil.get("stormy")["state"] == "running"
    assert not [pid for pid in read_pids() if _is_zombie_of(pid, vigil.keeper_pid)]


def _is_zombie_of(pid: int, parent: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] == "Z" and int(fields[1]) == parent


def test_a_full_disk_loses_no_death_though_the_daemon_is_killed_meanwhile() -> None:
    with small_disk() as (vigil, disk):
        one = vigil.run("one", "sleep", "1000", runtime="headless")
        other = vigil.run("other", "sleep", "1000")
        disk.fill()

        os.kill(one["pid"], signal.SIGKILL)
        wait_for(lambda: vigil.client.status()["store_trouble"], 10, "the store's trouble")
        shown = vigil.run_cli("ls")
        refused = vigil.run_cli("run", "--name", "more", "--", "sleep", "1000")
        doctor = vigil.run_cli("doctor")
        vigil.kill_daemon()
        started = vigil.run_cli("ls")
        disk.free()

        assert "may be old" in shown.stderr
        assert (refused.returncode, "No space left" in refused.stderr, refused.stderr.count("\n")) == (1, True, 1), refused
        assert doctor.returncode == 1 and "cannot write the database" in doctor.stdout
        assert started.returncode == 0, started
        death = vigil.wait_death("one")
        assert (death["cause"], death["signal"], death["observed_by"]) == ("killed-by-unknown", 9, "keeper")
        assert vigil.get("other")["pid"] == other["pid"]
        wait_for((vigil.home.launch(death["launch"]) / "exit.json").exists, 10, "the keeper's record")
        wait_for(lambda: death["id"] in (vigil.home.log / "exits.log").read_text(), 20, "its line")
        wait_for(lambda: (exhausted(vigil) or {}).get("resolved_at"), 20, "the incident to be over")


def test_what_the_keeper_could_not_record_is_said(vigil: Instance) -> None:
    one = vigil.run("one", "sleep", "1000", runtime="headless")
    record = vigil.home.launch(one["launch"]) / "exit.json"
    record.mkdir()  # a rename onto a folder fails

    os.kill(one["pid"], signal.SIGKILL)
    vigil.wait_death("one")
    opened = wait_for(lambda: exhausted(vigil), 10, "the incident")

    assert "the keeper cannot record ends" in opened["why"]
    assert vigil.wait_event("keeper.unrecorded")["data"]["launch"] == one["launch"]
    record.rmdir()
    wait_for(record.is_file, 10, "the record")
    assert json.loads(record.read_text())["status"] == signal.SIGKILL
    wait_for(lambda: (exhausted(vigil) or {}).get("resolved_at"), 20, "the incident to be over")
