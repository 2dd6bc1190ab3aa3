"""Deaths explain themselves: the right cause, once, with its evidence, in the record, the log and the bundle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import Instance, alive, wait_for
from tests.live.watching import at
from vigil.forensics import parse

Json = dict[str, Any]
BUNDLE_S = 2.0
BUNDLE_BYTES = 256 << 10

SERVER_ENDS = {  # what is done to a tmux server from outside: exit code and signal of the record
    "KILL": (None, 9),
    "SEGV": (None, 11),
    "TERM": (0, None),
    "kill-server": (0, None),
}


def end_server(vigil: Instance, session: Json, how: str) -> None:
    if how == "kill-server":
        vigil.tmux(session["name"], how)
    else:
        os.kill(session["server_pid"], getattr(signal, f"SIG{how}"))


def wait_bundle(vigil: Instance, death_id: str, within_s: float = 10.0) -> Json:
    """Wait for a death whose bundle is there."""
    return wait_for(lambda: _with_bundle(vigil, death_id), within_s, f"the bundle of {death_id}")


def _with_bundle(vigil: Instance, death_id: str) -> Json | None:
    found = vigil.client.death(death_id)
    return found if found["bundle"] else None


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*"))


def exit_lines(vigil: Instance) -> list[dict[str, str | None]]:
    path = vigil.home.log / "exits.log"
    return [parse(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


@pytest.mark.soak
@pytest.mark.parametrize("how", SERVER_ENDS)
def test_a_server_that_dies_leaves_one_record_with_its_bundle_within_two_seconds(
    shared: Instance, repeats: int, how: str
) -> None:
    for n in range(repeats):
        session = shared.run(f"server-{how.lower()}-{n}", "sleep", "1000")
        name = session["name"]

        began = time.monotonic()
        end_server(shared, session, how)
        death = wait_bundle(shared, shared.wait_death(name)["id"])
        took_s = time.monotonic() - began

        assert took_s < BUNDLE_S, took_s
        assert (death["cause"], death["exit_code"], death["signal"]) == ("server-died", *SERVER_ENDS[how]), death
        assert (death["intent"], death["server_pid"], death["pid"]) == (None, session["server_pid"], session["pid"])
        assert "without an intent" in death["evidence"][0]["text"]
        kinds = [event["kind"] for event in shared.client.events(name)]
        assert (kinds.count("server.died"), kinds.count("session.died")) == (1, 1), kinds
        assert size_of(Path(death["bundle"])) < BUNDLE_BYTES
        assert len(shared.deaths(name)) == 1
        shared.client.rm(name)


@pytest.mark.soak
@pytest.mark.parametrize("runtime", ["tmux", "headless"])
@pytest.mark.parametrize("verb", ["stop", "restart", "rm"])
def test_what_somebody_ended_is_claimed_by_its_intent(shared: Instance, repeats: int, verb: str, runtime: str) -> None:
    for n in range(repeats):
        name = f"claimed-{verb}-{runtime}-{n}"
        shared.run(name, "sleep", "1000", runtime=runtime)

        if verb == "rm":
            shared.client.rm(name, reason="out of the way")
        else:
            shared.client.ask(verb, name, reason="out of the way")

        (death,) = shared.deaths(name)
        assert (death["cause"], death["confidence"], death["charged"]) == ("operator", "certain", False), death
        assert (death["intent"]["verb"], death["intent"]["reason"]) == (verb, "out of the way")
        if verb != "rm":
            kinds = {event["kind"] for event in shared.client.events(name)}
            assert "server.died" not in kinds
            shared.client.rm(name)


def test_an_agent_that_takes_its_server_with_it_is_an_agents_death(shared: Instance) -> None:
    for n, (command, cause) in enumerate((("exit 3", "crash"), ("exit 0", "finished"), ("kill -9 $$", "killed-by-unknown"))):
        name = f"takes-{n}"
        server = shared.run(name, "sh", "-c", f"sleep 0.3; {command}")["server_pid"]

        assert shared.wait_death(name)["cause"] == cause
        wait_for(lambda pid=server: not alive(pid), 10, "its server to be closed")  # type: ignore[misc]
        assert "server.died" not in {event["kind"] for event in shared.client.events(name)}
        assert len(shared.deaths(name)) == 1


@pytest.mark.soak
def test_a_successor_on_the_same_socket_does_not_hide_the_death(shared: Instance, repeats: int) -> None:
    for n in range(repeats):
        name = f"successor-{n}"
        session = shared.run(name, "sleep", "1000")
        path = str(shared.home.server_socket(session["launch"]))

        os.kill(session["server_pid"], signal.SIGKILL)
        time.sleep(0.05)  # the successor is born this much later: that is what is tried
        subprocess.run(["tmux", "-S", path, "new-session", "-d", "sleep", "1000"], timeout=10, check=True, env=shared.env)
        successor = int(
            subprocess.run(["tmux", "-S", path, "display-message", "-p", "#{pid}"], timeout=10, capture_output=True).stdout
        )

        try:
            death = shared.wait_death(name)
            assert (death["cause"], death["signal"], death["server_pid"]) == ("server-died", 9, session["server_pid"]), death
            assert alive(successor), "nobody signals a server that is not ours"
            assert len(shared.deaths(name)) == 1
        finally:
            os.kill(successor, signal.SIGKILL)
        shared.client.rm(name)


def test_the_last_line_of_much_stderr_is_in_the_record(shared: Instance) -> None:
    script = "i=0; while [ $i -lt 4000 ]; do echo 'a line of fifty characters that explains nothing...' >&2; i=$((i+1)); done"
    shared.run("talks", "sh", "-c", f"{script}; echo 'the cause' >&2; exit 7", runtime="headless")

    death = wait_bundle(shared, shared.wait_death("talks")["id"])

    assert death["stderr_tail"][-1] == "the cause"
    assert size_of(Path(death["bundle"])) < BUNDLE_BYTES
    assert "the cause" in shared.ok("death", death["id"])


def test_a_last_line_without_its_end_is_kept_too(shared: Instance) -> None:
    shared.run("cut", "sh", "-c", "printf 'one\\ntwo without end' >&2; exit 1", runtime="headless")

    assert wait_bundle(shared, shared.wait_death("cut")["id"])["stderr_tail"] == ["one", "two without end"]


def test_the_last_screen_of_an_agent_is_in_its_record(shared: Instance) -> None:
    shared.run("screen", "sh", "-c", "echo 'what it said last'; sleep 0.5; exit 4")

    death = wait_bundle(shared, shared.wait_death("screen")["id"])

    assert "what it said last" in death["pane_tail"]


def test_what_outlives_its_agent_is_listed_kept_after_a_finish_and_ended_by_stop(shared: Instance) -> None:
    shared.run("parent", "sh", "-c", "setsid sleep 1000 & exit 0", runtime="headless")

    death = wait_bundle(shared, shared.wait_death("parent")["id"])
    (left,) = [process for process in death["survivors"] if process["name"] == "sleep"]
    assert alive(left["pid"])
    assert shared.get("parent")["survivors"] == [{"pid": left["pid"], "name": "sleep"}]
    assert f"pid {left['pid']}" in shared.ok("death", death["id"])

    shared.client.ask("stop", "parent")

    assert not alive(left["pid"])


def test_what_outlives_its_agent_is_ended_before_a_replacement(shared: Instance) -> None:
    script = "setsid sleep 1000 & sleep 0.2; exit 1"
    shared.run("again", "sh", "-c", script, runtime="headless", restart="on-failure", backoff_base_s=1.0, max_restarts=1)

    death = wait_bundle(shared, shared.wait_death("again")["id"])
    (left,) = [process for process in death["survivors"] if process["name"] == "sleep"]
    wait_for(lambda: shared.get("again")["launch"].endswith("-2"), 20, "the replacement")

    assert not alive(left["pid"])
    shared.client.rm("again")


@pytest.mark.parametrize("down", ["daemon", "daemon and keeper"])
def test_a_death_while_nobody_listened_has_its_line_and_its_bundle_once(vigil: Instance, down: str) -> None:
    session = vigil.run("alone", "sleep", "1000")
    vigil.kill_daemon()
    if "keeper" in down:
        vigil.kill_keeper()
    os.kill(session["pid"], signal.SIGSEGV)
    wait_for(lambda: not alive(session["pid"]), 5, "the agent to end")
    ended_at = time.time()

    vigil.start()
    death = wait_bundle(vigil, vigil.wait_death("alone")["id"])

    assert death["cause"] == "crash"
    if down == "daemon":
        assert (death["observed_by"], death["signal"]) == ("keeper", 11)
        assert abs(at(death["at"]) - ended_at) < 1.0
    lines = wait_for(lambda: exit_lines(vigil), 5, "its line")
    assert [line["death"] for line in lines] == [death["id"]]


def test_what_a_killed_daemon_did_not_get_to_is_done_by_the_next(vigil: Instance) -> None:
    vigil.run("gone", "sh", "-c", "exit 5", runtime="headless")
    death_id = vigil.wait_death("gone")["id"]
    wait_bundle(vigil, death_id)
    vigil.kill_daemon()
    (vigil.home.log / "exits.log").unlink()
    for path in sorted((vigil.home.deaths / death_id).iterdir()):
        path.unlink()
    (vigil.home.deaths / death_id).rmdir()

    vigil.start()

    wait_bundle(vigil, death_id)
    assert [line["death"] for line in exit_lines(vigil)] == [death_id]


def test_a_line_of_the_exit_log_is_one_line_whatever_is_in_it(shared: Instance) -> None:
    reason = 'a\nb\r"c" \\ \x1b[31m= \u2028end'
    shared.run("odd", "sleep", "1000")

    shared.client.ask("stop", "odd", reason=reason)

    (line,) = wait_for(lambda: [line for line in exit_lines(shared) if line["session"] == "odd"], 5, "its line")
    assert (line["cause"], line["intent"], line["reason"]) == ("operator", "stop", reason)
    raw = (shared.home.log / "exits.log").read_bytes()
    assert b"\x1b" not in raw
    assert "\n" not in shared.ok("deaths", "odd").splitlines()[1]


def test_sessions_that_die_together_each_have_their_own_death(shared: Instance) -> None:
    names = [f"herd{'x' * (n % 3)}-{n}" for n in range(20)] + ["herd", "herdx"]
    pids = {
        name: shared.run(name, "sleep", "1000", runtime="headless" if n % 2 else "tmux")["pid"] for n, name in enumerate(names)
    }

    for number, pid in enumerate(pids.values()):
        os.kill(pid, (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)[number % 3])

    for number, name in enumerate(names):
        death = wait_bundle(shared, shared.wait_death(name)["id"])
        assert (death["session"], death["pid"], death["signal"]) == (name, pids[name], (9, 11, 15)[number % 3])
        assert len(shared.deaths(name)) == 1
        report = json.loads((Path(death["bundle"]) / "report.json").read_text("utf-8"))
        assert report["death"]["session"] == name
    lines = [line["session"] for line in exit_lines(shared)]
    assert all(lines.count(name) == 1 for name in names)
    assert set(shared.client.death(names[-1])["beside"]) & set(names[:-1])
    assert any(line["source"] == "others" for name in names for line in shared.deaths(name)[0]["evidence"])


def test_a_removed_session_keeps_its_record_and_nothing_it_printed(shared: Instance) -> None:
    shared.run("removed", "sh", "-c", "echo secretive >&2; exit 3", runtime="headless")
    death = wait_bundle(shared, shared.wait_death("removed")["id"])

    gone = shared.client.rm("removed")

    assert f"bundle {death['id']}" in gone["purged"]
    assert not Path(death["bundle"]).exists()
    assert [found["id"] for found in shared.deaths("removed")] == [death["id"]]
    assert shared.client.death(death["id"])["bundle"] is None


def test_a_death_is_found_by_its_id_or_its_sessions_name(shared: Instance) -> None:
    shared.run("named", "sh", "-c", "exit 3", runtime="headless")
    death_id = shared.wait_death("named")["id"]

    assert shared.client.death("named")["id"] == shared.client.death(death_id)["id"] == death_id
    shared.run("unhurt", "sleep", "1000", runtime="headless")
    assert "unhurt has not died yet" in shared.run_cli("death", "unhurt").stderr
    missing = shared.run_cli("death", "d-nobody-1")
    assert (missing.returncode, "there is no death record d-nobody-1" in missing.stderr) == (3, True)


def test_a_secret_in_a_reason_is_in_no_record(shared: Instance) -> None:
    shared.run("reasoned", "sleep", "1000", env=dict(shared.env) | {"API_TOKEN": "hunter2Zq9Xv"})

    shared.client.ask("stop", "reasoned", reason="rotate hunter2Zq9Xv")

    shown = shared.ok("death", "reasoned") + shared.ok("events", "reasoned") + shared.ok("deaths", "reasoned", "-o", "json")
    assert "rotate [redacted]" in shown
    assert "hunter2Zq9Xv" not in shown


def test_a_server_of_somebody_else_on_the_same_path_is_left_alone(shared: Instance) -> None:
    session = shared.run("usurped", "sleep", "1000")
    path = str(shared.home.server_socket(session["launch"]))
    os.kill(session["server_pid"], signal.SIGKILL)
    shared.wait_death("usurped")
    subprocess.run(["tmux", "-S", path, "new-session", "-d", "sleep", "1000"], timeout=10, check=True, env=shared.env)

    shared.client.rm("usurped")

    subprocess.run(["tmux", "-S", path, "kill-server"], timeout=10, check=True, env=shared.env)


def test_a_death_while_the_disk_is_full_is_told_when_it_is_not(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(small)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no small disk can be made here")
    vigil = Instance(small / "home")
    try:
        session = vigil.run("starved", "sleep", "1000", runtime="headless")
        with open(small / "fill", "wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(b"x" * 65536)
        vigil.kill_daemon()
        os.kill(session["pid"], signal.SIGSEGV)
        ended_at = time.time()
        wait_for(lambda: not alive(session["pid"]), 5, "the agent to end")
        (small / "fill").unlink()

        vigil.start()

        death = vigil.wait_death("starved")
        assert (death["cause"], death["signal"], death["observed_by"]) == ("crash", 11, "keeper"), death
        assert abs(at(death["at"]) - ended_at) < 1.0
    finally:
        vigil.destroy()
        subprocess.run(["umount", str(small)], check=True)


def test_whatever_an_agent_printed_last_its_death_is_recorded(shared: Instance) -> None:
    body = r'{"type":"result","is_error":true,"api_error_status":429,"result":"x \ud83d y"}'
    shared.run("odd-words", "sh", "-c", f"printf '%s\\n' '{body}'; exit 1", runtime="headless", agent="claude")

    death = shared.wait_death("odd-words")

    assert death["cause"] == "limit"
    assert "x y" in [line["text"] for line in death["evidence"]]
    assert shared.get("odd-words")["state"] == "failed"


def test_an_agent_that_outlived_its_server_has_a_bundle_of_its_own_end(shared: Instance) -> None:
    script = "trap '' HUP; echo ready; sleep 4; exit 3"
    session = shared.run("late", "sh", "-c", script)
    wait_for(lambda: "ready" in shared.ok("logs", "late"), 10, "the agent to be ready")
    os.kill(session["server_pid"], signal.SIGKILL)
    shared.wait_state("late", "suspect")

    death = wait_bundle(shared, shared.wait_death("late")["id"])

    assert session["pid"] not in [process["pid"] for process in death["survivors"]]
    report = json.loads((Path(death["bundle"]) / "report.json").read_text("utf-8"))
    assert "agent" in report["exits"]
