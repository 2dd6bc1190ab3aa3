"""A session from its first command to its removal."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor

from tests.live.instance import VIGIL, Instance, alive, command_of, is_of_session, wait_for
from vigil.errors import VigilError


def test_a_new_user_runs_and_looks_at_a_session(vigil: Instance) -> None:
    assert vigil.ok("run", "--name", "a", "--", "sleep", "1000") == "a\n"

    session = vigil.json("get", "a")

    assert session["state"] == "running"
    with open(f"/proc/{session['pid']}/cmdline", "rb") as file:
        assert file.read() == b"sleep\x001000\x00"
    for axis in ("server", "runtime", "process"):
        reading = session["axes"][axis]
        assert (reading["value"], reading["conclusive"]) == ("alive", True), axis
        assert reading["source"]
    assert set(session) >= {
        "name", "id", "state", "hold", "health", "why", "agent", "runtime", "cwd", "launch", "pid", "server_pid", "created_at",
        "state_since", "last_activity_at", "axes", "restarts", "last_death", "conversation", "attached", "incidents",
    }  # fmt: skip
    assert set(session["restarts"]) == {"count", "max", "policy", "backoff_until", "next_attempt_at", "saturated"}


def test_a_headless_session_has_no_server(shared: Instance) -> None:
    session = shared.run("bare", "sleep", "1000", runtime="headless")

    shown = shared.get("bare")

    assert (shown["server_pid"], shown["axes"]["server"]) == (None, None)
    assert shown["axes"]["runtime"]["value"] == shown["axes"]["process"]["value"] == "alive"
    assert os.readlink(f"/proc/{session['pid']}/fd/0") == "/dev/null"
    shared.client.rm("bare")


def test_removing_a_session_leaves_the_one_whose_name_it_begins(shared: Instance) -> None:
    short, long = shared.run("a", "sleep", "1000"), shared.run("ab", "sleep", "1000")

    gone = shared.json("rm", "a")

    assert gone["name"] == "a"
    assert f"launch {short['launch']}" in gone["purged"]
    assert not alive(short["pid"])
    assert shared.get("ab")["pid"] == long["pid"]
    assert alive(long["pid"])
    assert not shared.home.launch(short["launch"]).exists()
    assert shared.home.launch(long["launch"]).exists()
    assert shared.run_cli("get", "a").returncode == 3
    shared.client.rm("ab")


def test_a_namesake_is_born_clean(shared: Instance) -> None:
    shared.run("again", "sh", "-c", "exit 3")
    shared.wait_death("again")
    shared.client.rm("again")

    reborn = shared.run("again", "sleep", "1000")

    assert (reborn["last_death"], reborn["launches"], reborn["restarts"]["count"]) == (None, 1, 0)
    assert shared.deaths("again") == []
    shared.client.rm("again")


def test_stop_start_and_restart_are_never_charged(shared: Instance) -> None:
    first = shared.run("verbs", "sleep", "1000", restart="always")

    assert "stopped" in shared.ok("stop", "verbs")
    assert not alive(first["pid"])
    assert not alive(first["server_pid"])
    shared.ok("start", "verbs")
    second = shared.get("verbs")
    shared.ok("restart", "verbs")
    third = shared.get("verbs")

    assert [s["launch"].rpartition("-")[2] for s in (first, second, third)] == ["1", "2", "3"]
    assert (third["state"], third["restarts"]["count"]) == ("running", 0)
    assert [(d["cause"], d["charged"], d["intent"]["verb"]) for d in shared.deaths("verbs")] == [
        ("operator", False, "restart"),
        ("operator", False, "stop"),
    ]
    shared.client.rm("verbs")


def test_what_an_agent_started_goes_with_it_when_it_is_stopped(shared: Instance) -> None:
    script = "setsid sleep 1001 & nohup sleep 1002 >/dev/null 2>&1 & (trap '' HUP TERM; exec sleep 1003) & wait"
    for runtime in ("tmux", "headless"):
        shared.run("family", "sh", "-c", script, runtime=runtime)
        children = wait_for(lambda: found if len(found := _sleepers(shared)) == 3 else None, 10, "three children")

        shared.ok("stop", "family")

        assert not any(map(alive, children))
        shared.client.rm("family")


def test_an_agent_that_ignores_term_is_killed_after_its_grace(shared: Instance) -> None:
    session = shared.run("stubborn", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    wait_for(lambda: "ready" in shared.ok("logs", "stubborn"), 10, "the agent to be ready")

    shared.ok("stop", "stubborn")

    assert not alive(session["pid"])
    death = shared.wait_death("stubborn")
    assert (death["cause"], death["signal"]) == ("operator", 9)


def test_an_agent_that_runs_kill_server_in_its_pane_harms_no_session(shared: Instance) -> None:
    other = shared.run("bystander", "sleep", "1000")
    shared.run("careless", "sh", "-c", "tmux kill-server; echo TMUX=$TMUX; tmux ls; echo done; sleep 1000")

    text = wait_for(lambda: t if "done" in (t := shared.ok("logs", "careless")) else None, 10, "the agent to have tried")

    assert "TMUX=\n" in text
    assert shared.get("careless")["state"] == shared.get("bystander")["state"] == "running"
    assert shared.get("bystander")["pid"] == other["pid"]


def test_nothing_secret_stands_in_any_command_line_but_the_agents_own(shared: Instance) -> None:
    env = shared.env | {"TOKEN": "s3cr3t-in-env"}
    prompt = "s3cr3t-prompt with 'quotes' and $dollars\nand lines"
    session = shared.run("secret", "sh", "-c", "sleep 1000", prompt, env=env)

    lines = {pid: command_of(pid) for pid in shared.processes()}

    assert [pid for pid, line in lines.items() if b"s3cr3t" in line] == [session["pid"]]
    assert not any(b"s3cr3t-in-env" in line for line in lines.values())
    for folder, _, files in os.walk(shared.path):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700, folder
        for name in files:
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.stat(path).st_mode):
                with open(path, "rb") as file:
                    assert b"s3cr3t-in-env" not in file.read() or stat.S_IMODE(os.stat(path).st_mode) == 0o600, path
    assert "s3cr3t-in-env" not in json.dumps(shared.client.session("secret")) + json.dumps(shared.client.events())
    shared.client.rm("secret")
    assert not any("s3cr3t-in-env" in _read(path) for path in shared.path.rglob("*") if path.is_file())


def test_an_agent_gets_the_declared_environment_and_who_it_is(shared: Instance) -> None:
    env = shared.env | {"TMUX": "x", "CLAUDECODE": "1", "CLAUDE_CODE_X": "1", "VIGIL_LAUNCH": "other", "MINE": "yes it's\nmine"}
    for runtime in ("tmux", "headless"):
        session = shared.run("environ", "sleep", "1000", runtime=runtime, env=env)
        with open(f"/proc/{session['pid']}/environ", "rb") as file:
            got = dict(entry.split("=", 1) for entry in file.read().decode().split("\0") if entry)

        assert (got["MINE"], got["VIGIL_SESSION"], got["VIGIL_LAUNCH"]) == ("yes it's\nmine", "environ", session["launch"])
        assert got["VIGIL_SPOOL"] == str(shared.home.spool)
        assert not {"TMUX", "TMUX_PANE", "CLAUDECODE", "CLAUDE_CODE_X", "VIGIL_HOME"} & set(got)
        assert got["TMUX_TMPDIR"] == str(shared.home.launch(session["launch"]))
        shared.client.rm("environ")


def test_arguments_reach_the_agent_exactly(shared: Instance, tmp_path: object) -> None:
    words = ["-x", "--", "a b", "it's", '"q"', "$HOME", "`id`", "\\", "*", "", "line\nbreak", "ü", ";", "#{pane_id}", "-"]
    for runtime in ("tmux", "headless"):
        out = os.path.join(str(tmp_path), f"args-{runtime}")
        script = f"import sys, json; json.dump(sys.argv[1:], open({out!r}, 'w'))"
        shared.run("args", "python3", "-c", script, *words, runtime=runtime)
        shared.wait_state("args", "succeeded")

        with open(out, encoding="utf-8") as file:
            assert json.load(file) == words
        shared.client.rm("args")


def test_twenty_runs_at_once_make_one_daemon_and_twenty_sessions(vigil: Instance) -> None:
    def run(n: int) -> int:
        return vigil.run_cli("run", "--name", f"s{n}", "--", "sleep", "1000", timeout_s=120).returncode

    with ThreadPoolExecutor(20) as pool:
        codes = list(pool.map(run, range(20)))

    assert codes == [0] * 20
    sessions = vigil.client.sessions()
    assert len({session["pid"] for session in sessions}) == 20
    assert {session["state"] for session in sessions} == {"running"}
    daemons = [pid for pid in vigil.processes() if b"vigil.daemon" in command_of(pid)]
    keepers = [pid for pid in vigil.processes() if b"keeper/__main__" in command_of(pid)]
    assert (daemons, keepers) == ([vigil.daemon_pid], [vigil.keeper_pid])


def test_two_daemons_started_at_once_are_one(vigil: Instance) -> None:
    command = [*VIGIL[:1], "-m", "vigil.daemon", "--home", str(vigil.path)]
    both = [subprocess.Popen(command, env=vigil.env, stdout=subprocess.DEVNULL) for _ in range(2)]

    wait_for(lambda: vigil.client.status(), 20, "a daemon")
    loser = wait_for(lambda: next((p for p in both if p.poll() is not None), None), 20, "the other to give way")

    assert loser.returncode == 0
    winner = next(p for p in both if p is not loser)
    assert vigil.client.status()["pid"] == winner.pid
    vigil.client.stop_daemon()
    assert winner.wait(20) == 0


def test_the_same_name_asked_for_in_one_moment_is_one_session(shared: Instance) -> None:
    shared.start()
    wanted = {"name": "moment", "runtime": "headless", "command": ["sleep", "1000"], "cwd": "/", "env": dict(os.environ)}

    def run(_: int) -> str:
        try:
            return str(shared.client.run(wanted)["state"])
        except VigilError as error:
            return str(error)

    with ThreadPoolExecutor(10) as pool:
        said = sorted(pool.map(run, range(10)))

    taken = "moment exists already; vigil rm moment removes it, vigil start moment starts it again"
    assert said == [taken] * 9 + ["running"]


def test_the_same_name_asked_for_by_ten_at_once_is_one_session(shared: Instance) -> None:
    shared.start()

    def run(_: int) -> tuple[int, str]:
        done = shared.run_cli("run", "--name", "contested", "--", "sleep", "1000")
        return done.returncode, done.stderr

    with ThreadPoolExecutor(10) as pool:
        ends = sorted(pool.map(run, range(10)))

    assert [code for code, _ in ends] == [0] + [1] * 9, ends
    assert len([p for p in shared.processes() if command_of(p) == b"sleep\x001000\x00" and is_of_session(p, "contested")]) == 1
    assert len(list(shared.home.environments.iterdir())) == len(shared.client.sessions(everything=True))


def _sleepers(vigil: Instance) -> list[int]:
    return [
        pid
        for pid in vigil.processes()
        if command_of(pid).startswith(b"sleep\x00100") and command_of(pid) != b"sleep\x001000\x00"
    ]


def _read(path: object) -> str:
    with open(str(path), "rb") as file:
        return file.read().decode("utf-8", "replace")


def test_a_removal_that_somebody_else_overtook_does_not_say_that_it_removed(shared: Instance) -> None:
    shared.run("fought-over", "sh", "-c", "trap 'sleep 1; exit 0' TERM; while :; do sleep 0.1; done")
    with ThreadPoolExecutor() as pool:
        removal = pool.submit(shared.run_cli, "rm", "fought-over")
        shared.wait_state("fought-over", "ending")
        shared.client.ask("restart", "fought-over")

        done = removal.result(timeout=30)

    assert (done.returncode, done.stdout) == (1, "")
    assert "fought-over is running: somebody had it started meanwhile. To try again: vigil rm fought-over" in done.stderr
    assert shared.get("fought-over")["state"] == "running"
