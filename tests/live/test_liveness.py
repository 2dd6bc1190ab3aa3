"""Axes apart: what hangs, disappears or cannot be asked is told from what is dead, and nothing else waits for it."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.live.instance import Instance, kill, resume, wait_for
from tests.live.watching import at, configure, read_notices, values

LATE_S = 1.0  # P6


@pytest.mark.soak
def test_a_stopped_tmux_server_is_wedged_then_stuck_and_nobody_else_notices(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    configure(vigil, notices)
    names = [f"s{number}" for number in range(50 if os.environ.get("VIGIL_SOAK") else 6)]
    for name in names:
        vigil.run(name, "sleep", "1000")
    hung, victim = vigil.get(names[0]), vigil.get(names[1])
    os.kill(hung["server_pid"], signal.SIGSTOP)
    try:
        session = vigil.wait_state(names[0], "suspect", within_s=35)
        assert values(session)["server"] == "wedged"
        assert (values(session)["runtime"], values(session)["process"]) == ("alive", "alive")
        kill(victim["server_pid"], signal.SIGKILL)  # arms a 2 s escalation
        wait_for(lambda: read_notices(notices), 10, "a notice")
        came_at, notice = read_notices(notices)[0]
        assert (notice["kind"], notice["session"]) == ("server-died", names[1])
        assert -0.1 < came_at - at(notice["opened_at"]) - 2.0 < LATE_S

        doubt = wait_for(lambda: (d := vigil.get(names[0])["doubt"])["attempts"] >= 2 and d, 20, "a second attempt")
        vigil.kill_daemon()
        vigil.start()
        assert vigil.get(names[0])["state"] == "suspect"
        again = wait_for(
            lambda: (d := vigil.get(names[0])["doubt"])["attempts"] > doubt["attempts"] and d, 20, "the next attempt"
        )
        assert again["kind"] == "wedged"
        assert again["attempts"] >= 3

        session = vigil.wait_state(names[0], "stuck", within_s=80)
        for name in names[2:]:
            other = next(s for s in vigil.client.sessions() if s["name"] == name)
            assert other["state"] == "running"
            assert time.time() - at(other["axes"]["process"]["observed_at"]) < 18, "others are looked at on schedule"
            assert time.time() - at(other["axes"]["server"]["observed_at"]) < 33
        assert [i["kind"] for i in vigil.client.incidents() if i["session"] == names[0]] == ["stuck"]
        wait_for(lambda: [n for _, n in read_notices(notices) if n["kind"] == "stuck"], 10, "the notice of it")
        resume(hung["server_pid"])
        healed = vigil.wait_state(names[0], "running", within_s=3)
    finally:
        resume(hung["server_pid"])
    assert (healed["pid"], healed["launch"]) == (hung["pid"], hung["launch"])
    assert vigil.deaths(names[0]) == []
    assert [i for i in vigil.client.incidents() if i["session"] == names[0]] == []
    stuck = [n for _, n in read_notices(notices) if n["kind"] == "stuck" and n["event"] == "opened"]
    assert len(stuck) == 1


@pytest.mark.soak
def test_when_all_tmux_servers_are_stopped_that_is_one_matter_of_the_host(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    configure(vigil, notices)
    count = 100 if os.environ.get("VIGIL_SOAK") else 6
    sessions = [vigil.run(f"s{number}", "sleep", "1000") for number in range(count)]
    for session in sessions:
        os.kill(session["server_pid"], signal.SIGSTOP)
    try:
        wait_for(lambda: vigil.client.incidents(), 40, "an incident")
        begun = time.monotonic()
        vigil.client.sessions()
        assert time.monotonic() - begun < 1.0
        wait_for(lambda: {s["state"] for s in vigil.client.sessions()} == {"stuck"}, 90, "all to be stuck")
        incidents = vigil.client.incidents()
        assert [(i["kind"], i["session"]) for i in incidents] == [("stuck", None)], incidents
        assert vigil.client.deaths() == []
        assert vigil.client.status()["clock_lateness_ms"]["max"] < 1000
        assert [(n["event"], n["kind"], n["session"]) for _, n in read_notices(notices)] == [("opened", "stuck", None)]
    finally:
        for session in sessions:
            resume(session["server_pid"])
    wait_for(lambda: {s["state"] for s in vigil.client.sessions()} == {"running"}, 20, "all to be well again")
    assert vigil.client.incidents() == []
    assert {s["pid"] for s in vigil.client.sessions()} == {s["pid"] for s in sessions}


@pytest.mark.soak
def test_the_lost_socket_of_a_living_server_is_made_anew(vigil: Instance, repeats: int) -> None:
    session = vigil.run("a", "sleep", "1000")
    socket = vigil.home.server_socket(session["launch"])
    for _ in range(repeats):
        socket.unlink()
        wait_for(socket.exists, 5, "the socket to be there again")
        assert vigil.tmux("a", "display-message", "-p", "#{pid}").stdout.strip() == str(session["server_pid"])
    other = vigil.path / "other"
    other.write_text("somebody put a file in its place")
    os.replace(other, socket)
    wait_for(socket.is_socket, 40, "the socket to take its place again")
    now = vigil.get("a")
    assert (now["state"], now["pid"], now["launch"]) == ("running", session["pid"], session["launch"])
    assert vigil.deaths("a") == []
    vigil.wait_event("server.socket-lost")


def test_a_stopped_agent_is_shown_as_stopped_and_left_alone(vigil: Instance) -> None:
    session = vigil.run("a", "sleep", "1000", restart="always")
    os.kill(session["pid"], signal.SIGSTOP)
    try:
        wait_for(lambda: values(vigil.get("a"))["process"] == "stopped", 5, "it to be stopped")
        stopped = vigil.get("a")
        assert (stopped["state"], stopped["health"]) == ("running", "stalled")
        assert any("stopped" in line for line in vigil.client.why("a")["ruled_out"])
    finally:
        resume(session["pid"])
    wait_for(lambda: values(vigil.get("a"))["process"] == "alive", 5, "it to go on")
    assert vigil.deaths("a") == []


STUBBORN = '#!/bin/sh\ncase "$*" in *capture-pane*) {hang} ;; esac\nexec {tmux} "$@"\n'
HANGS = {
    "ignores TERM": "trap '' TERM; while :; do /bin/sleep 0.1; done",
    "a grandchild holds its output": "/bin/sleep 987 & exit 0",
    "a grandchild left its group": "setsid /bin/sleep 987 & wait",
}


@pytest.mark.parametrize("how", HANGS)
def test_a_probe_that_hangs_is_abandoned_in_time_and_leaves_nothing(vigil: Instance, tmp_path: Path, how: str) -> None:
    tmux = tmp_path / "tmux"
    tmux.write_text(STUBBORN.format(hang=HANGS[how], tmux=shutil.which("tmux")))
    tmux.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    vigil.run_cli("daemon", "start", env={"PATH": path})
    vigil.run("a", "sleep", "1000")
    vigil.run("b", "sleep", "1000")

    begun = time.monotonic()
    vigil.client.logs("a", 10, raw=False)
    took_s = time.monotonic() - begun

    assert took_s < 3.0 + LATE_S + 1.0
    assert [s["state"] for s in vigil.client.sessions()] == ["running", "running"]
    left = [pid for pid in all_pids() if is_left(pid, tmp_path)]
    assert left == []
    abandoned = vigil.client.status()["probes"]
    assert abandoned == {"in_flight": 0, "abandoned": 0 if "output" in how else 1}


def test_probes_that_hang_again_and_again_are_an_incident_of_their_own(vigil: Instance, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    tmux = tmp_path / "tmux"
    # All of them, whoever asks: one that was answered would say that we can ask.
    tmux.write_text(f'#!/bin/sh\ntest -e {gate} && exec /bin/sleep 987\nexec {shutil.which("tmux")} "$@"\n')
    tmux.chmod(0o755)
    vigil.run_cli("daemon", "start", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    for name in ("a", "b"):
        vigil.run(name, "sleep", "1000")
    gate.touch()
    for name in ("a", "b", "a", "b", "a"):
        vigil.client.logs(name, 10, raw=False)

    wait_for(lambda: vigil.client.incidents(), 10, "an incident")
    (incident,) = vigil.client.incidents()
    gate.unlink()
    vigil.client.logs("b", 10, raw=False)

    assert (incident["kind"], incident["severity"], incident["session"]) == ("unhealthy-prober", "warning", None)
    wait_for(lambda: not vigil.client.incidents(), 10, "it to be over")


def all_pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def is_left(pid: int, folder: Path) -> bool:
    """Say whether a process is of a probe of this very test: its PATH begins with the test's own folder."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return b"VIGIL_PROBE=" in environ and bytes(folder) in environ


def test_a_daemon_that_was_stopped_for_a_while_concludes_nothing_from_it(vigil: Instance) -> None:
    session = vigil.run("a", "sleep", "1000")
    os.kill(vigil.daemon_pid, signal.SIGSTOP)
    time.sleep(4)
    resume(vigil.daemon_pid)

    event = vigil.wait_event("daemon.gap")

    assert event["data"]["lasted_s"] > 1
    now = vigil.get("a")
    assert (now["state"], now["pid"], vigil.deaths("a")) == ("running", session["pid"], [])


def test_many_that_die_in_one_moment_are_one_matter_of_the_host(vigil: Instance) -> None:
    sessions = [vigil.run(f"s{number}", "sleep", "1000") for number in range(8)]
    for session in sessions:
        os.kill(session["server_pid"], signal.SIGKILL)

    wait_for(lambda: len(vigil.client.deaths()) == 8, 20, "all deaths")

    incidents = wait_for(lambda: [i for i in vigil.client.incidents() if i["session"] is None], 5, "the host's incident")
    assert [i["kind"] for i in incidents] == ["mass-death"]
    assert {d["cause"] for d in vigil.client.deaths()} == {"server-died"}
    told = [i for i in vigil.client.incidents() if i["kind"] == "server-died"]
    assert len(told) < 5, "those that came before it was clear, not one for each"


@pytest.mark.parametrize("command", ["logs", "attach"])
def test_a_screen_that_cannot_be_read_is_said_and_not_shown_empty(vigil: Instance, command: str) -> None:
    session = vigil.run("a", "sleep", "1000")
    os.kill(session["server_pid"], signal.SIGSTOP)
    try:
        done = vigil.run_cli(command, "a")
    finally:
        resume(session["server_pid"])

    assert done.returncode == 1
    assert "its tmux server does not answer" in done.stderr
