"""A confined agent: what it cannot reach, by trying; what works as for any other: deaths, stop, restart, hooks, adoption."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

import vigil as package
from tests.live.instance import Instance, alive, kill, wait_for
from tests.live.manifests import manifest, role, slots, up
from vigil.kernel.process import read_stat
from vigil.runtimes.sandbox import HOOK, why_no_sandbox

WHY_NOT = why_no_sandbox()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"no sandbox on this host: {WHY_NOT}")
RUNTIMES = pytest.mark.parametrize("runtime", ["tmux", "headless"])
PYTHON = os.path.realpath(sys.executable)
READ = sorted({sys.base_prefix, sys.prefix, str(Path(package.__file__).parents[1])})
EXPLOITS = """
import json, os, signal, socket, sys
wanted, found = json.load(open("wanted.json")), {}
def attempt(name, do):
    try: found[name] = repr(do())
    except OSError as error: found[name] = type(error).__name__
def speak(path):
    with socket.socket(socket.AF_UNIX) as sock: sock.connect(path)
for path in wanted["files"]: attempt(path, lambda: open(path, "rb").read(10))
for path in wanted["folders"]: attempt(path, lambda: sorted(os.listdir(path)))
for path in wanted["sockets"]: attempt(path, lambda: speak(path))
for pid in wanted["pids"]:
    attempt(f"environ {pid}", lambda: open(f"/proc/{pid}/environ", "rb").read(10))
    attempt(f"signal {pid}", lambda: os.kill(pid, 0))
attempt("write /usr", lambda: open("/usr/vigil-was-here", "w"))
attempt("write /etc", lambda: open("/etc/vigil-was-here", "w"))
attempt("mount", lambda: __import__("ctypes").CDLL(None).mount(b"none", b"/tmp", b"tmpfs", 0, None))
environs = [open(f"/proc/{name}/environ", "rb").read() for name in os.listdir("/proc") if name.isdigit()]
words = {word.decode() for environ in environs for word in environ.split(b"\\0")}
found["marks"] = [word for word in words if word.startswith("VIGIL_SESSION=")]
json.dump(found, open("found.tmp", "w"))
os.rename("found.tmp", "found.json")
signal.pause()
"""


def confined(vigil: Instance, work: Path, name: str, *command: str, **options: Any) -> dict[str, Any]:
    sandbox = {"read": READ, **options.pop("sandbox", {})}
    return vigil.run(name, *command, cwd=str(work), sandbox=sandbox, **options)


@RUNTIMES
def test_it_reaches_nothing_of_vigil_nor_of_others(vigil: Instance, tmp_path: Path, runtime: str) -> None:
    other = vigil.run("other", "sleep", "1000", runtime="tmux")
    beside = vigil.home.launch(other["launch"])
    forbidden = {
        "files": [str(path) for path in (vigil.home.database, beside / "launch.json", vigil.home.lock("daemon"))],
        "folders": [str(path) for path in (vigil.home.launches, vigil.home.environments, vigil.home.log, beside)],
        "sockets": [str(vigil.home.api_socket), str(vigil.home.keeper_socket), str(vigil.home.server_socket(other["launch"]))],
        "pids": [other["pid"], vigil.daemon_pid, vigil.keeper_pid],
    }
    (tmp_path / "wanted.json").write_text(json.dumps(forbidden))
    (tmp_path / "exploit.py").write_text(EXPLOITS)

    confined(vigil, tmp_path, "a", PYTHON, "-I", "exploit.py", runtime=runtime)

    wait_for((tmp_path / "found.json").exists, 20, "all exploits to be tried", lambda: vigil.client.logs("a", 50, raw=False))
    found = json.loads((tmp_path / "found.json").read_text())
    for path in forbidden["files"] + forbidden["folders"] + forbidden["sockets"]:
        assert found[path] == "FileNotFoundError", (path, found[path])
    for pid in forbidden["pids"]:
        assert found[f"environ {pid}"] == "FileNotFoundError"
        assert found[f"signal {pid}"] == "ProcessLookupError"
    assert found["write /usr"] == found["write /etc"] == "OSError"
    assert found["mount"] == "-1"
    assert found["marks"] == ["VIGIL_SESSION=a"], "it sees no process but its own"


@RUNTIMES
@pytest.mark.parametrize(
    ("script", "code", "number"), [("exit 3", 3, None), ("kill -SEGV $$", None, 11), ("kill -KILL $$", None, 9)]
)
def test_its_death_is_told_as_it_was(
    shared: Instance, tmp_path: Path, runtime: str, script: str, code: int, number: int
) -> None:
    name = f"{runtime}-{script.split()[1].strip('-').lower()}"

    confined(shared, tmp_path, name, "sh", "-c", script, runtime=runtime)

    death = shared.wait_death(name)
    assert (death["exit_code"], death["signal"]) == (code, number)


@RUNTIMES
def test_stop_lets_it_finish_and_ends_what_hides_in_it(vigil: Instance, tmp_path: Path, runtime: str) -> None:
    script = "trap 'exit 7' TERM; env -i setsid -f sleep 4321; touch ready; while :; do sleep 0.05; done"
    confined(vigil, tmp_path, "a", "sh", "-c", script, runtime=runtime)
    wait_for((tmp_path / "ready").exists, 20, "it to be ready")
    hidden = wait_for(lambda: sleepers("4321", vigil.get("a")["pid"]), 10, "what hides")

    vigil.ok("stop", "a")

    death = vigil.wait_death("a")
    assert (death["cause"], death["exit_code"]) == ("operator", 7)
    assert not [pid for pid in hidden if alive(pid)]


def sleepers(seconds: str, agent: int) -> list[int]:
    """Return the `sleep` of that length in the agent's own pid namespace."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            inside = entry.isdigit() and os.readlink(f"/proc/{entry}/ns/pid") == os.readlink(f"/proc/{agent}/ns/pid")
            if inside and Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")[:2] == [b"sleep", seconds.encode()]:
                found.append(int(entry))
        except OSError:
            continue
    return found


@RUNTIMES
def test_it_comes_back_and_is_taken_over_by_the_next_daemon(vigil: Instance, tmp_path: Path, runtime: str) -> None:
    first = confined(vigil, tmp_path, "a", "sleep", "1000", runtime=runtime, restart="always", backoff_base_s=0.1)
    assert Path(f"/proc/{first['pid']}/cmdline").read_bytes().split(b"\0")[0] == b"sleep", "its pid is the agent's, not bwrap's"

    kill(first["pid"], signal.SIGKILL)
    second = wait_for(lambda: (s := vigil.get("a"))["state"] == "running" and s["pid"] != first["pid"] and s, 20, "a restart")
    vigil.kill_daemon()
    vigil.start()

    assert vigil.get("a")["pid"] == second["pid"]
    assert [one["command"] for one in vigil.client.diag("a")["processes"]] == ["sleep 1000"]
    assert vigil.client.why("a")["verdict"]
    kill(second["pid"], signal.SIGTERM)
    death = vigil.wait_death("a", count=2)
    assert death["signal"] == signal.SIGTERM


def bwrap_of(agent: int) -> int:
    """Return the bwrap outside; its first process inside stands between the two."""
    stat = read_stat(agent)
    assert stat is not None
    first = read_stat(stat.ppid)
    assert first is not None and first.name == "bwrap"
    return first.ppid


def test_in_a_pane_an_agent_whose_bwrap_is_killed_is_hung_up(vigil: Instance, tmp_path: Path) -> None:
    session = confined(vigil, tmp_path, "a", "sleep", "1000")

    kill(bwrap_of(session["pid"]), signal.SIGKILL)

    assert vigil.wait_death("a")["signal"] == signal.SIGHUP


def test_a_headless_agent_whose_bwrap_is_killed_is_an_orphan_and_stop_ends_it(vigil: Instance, tmp_path: Path) -> None:
    session = confined(vigil, tmp_path, "a", "sleep", "1000", runtime="headless")

    kill(bwrap_of(session["pid"]), signal.SIGKILL)

    vigil.wait_state("a", "suspect")
    assert alive(session["pid"])
    vigil.ok("stop", "a")
    wait_for(lambda: not alive(session["pid"]), 10, "the agent to end")


@RUNTIMES
def test_its_hooks_arrive_and_those_of_others_are_not_seen(vigil: Instance, tmp_path: Path, runtime: str) -> None:
    confined(vigil, tmp_path, "a", sys.executable, "-m", "vigil.fake_agent", "asks", runtime=runtime)

    wait_for(lambda: vigil.get("a")["axes"]["activity"]["value"] == "waiting-human", 20, "it to wait for a human")

    vigil.kill_daemon()
    vigil.start()
    launch = vigil.get("a")["launch"]
    new = vigil.home.launch(launch) / "spool" / "new"
    (new / ".x").write_text(
        json.dumps({"launch": launch, "token": vigil.token(launch), "payload": {"hook_event_name": "Stop"}})
    )
    (new / ".x").rename(new / "x.json")
    wait_for(lambda: vigil.get("a")["axes"]["activity"]["value"] == "idle", 20, "the next daemon to hear it")
    wait_for(lambda: not [*(vigil.home.spool / "new").iterdir(), *new.iterdir()], 20, "its file to be gone")


def test_the_files_of_its_adapter_are_there_and_its_hook_works(vigil: Instance, tmp_path: Path) -> None:
    (tmp_path / "claude").write_text(
        "#!/bin/sh\n"
        'while [ "$1" != --settings ]; do shift; done\n'
        f'grep -c "{HOOK}" "$2" >hooks.txt\n'
        f"""echo '{{"hook_event_name":"PermissionRequest","tool_name":"Bash"}}' | sh "{HOOK}"\n"""
        "exec sleep 1000\n"
    )
    (tmp_path / "claude").chmod(0o700)

    confined(vigil, tmp_path, "a", "./claude", agent="claude", sandbox={"read": []})

    wait_for(lambda: vigil.get("a")["health"] == "needs-input", 20, "its question", lambda: vigil.client.logs("a", 50, False))
    assert int((tmp_path / "hooks.txt").read_text()) > 5


def test_a_role_is_confined_as_its_manifest_says(vigil: Instance, tmp_path: Path) -> None:
    (tmp_path / "listed").mkdir()
    (tmp_path / "work").mkdir()
    more = f"""sandbox = "bwrap"\nsandbox_write = ["{tmp_path}/listed"]\nsandbox_network = false\n"""
    text = manifest(role(replicas=1, command='["sh", "-c", "ls /sys/class/net /proc/net >listed/net; exec sleep 1000"]'))
    text = text.replace('cwd = "/"', f'cwd = "{tmp_path}/work"\n{more}').replace(">listed", f">{tmp_path}/listed")

    up(vigil, text)

    (name,) = slots(1)
    assert vigil.wait_state(name, "running")["sandbox"] == "bwrap"
    wait_for((tmp_path / "listed" / "net").exists, 10, "it to write")
    changed = vigil.json("plan", str(vigil.path / "vigil.toml"))
    assert changed["steps"] == []


def test_without_the_network_a_listener_of_the_host_is_not_reached(vigil: Instance, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        script = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=5)"
        confined(vigil, tmp_path, "on", PYTHON, "-I", "-c", script, runtime="headless")
        confined(vigil, tmp_path, "off", PYTHON, "-I", "-c", script, runtime="headless", sandbox={"network": False})

        assert vigil.wait_death("on")["exit_code"] == 0
        assert vigil.wait_death("off")["exit_code"] == 1


def test_a_program_that_is_not_seen_inside_is_refused_with_the_way_out(vigil: Instance, tmp_path: Path) -> None:
    elsewhere, work = tmp_path / "bin", tmp_path / "work"
    elsewhere.mkdir()
    work.mkdir()
    shutil.copy("/bin/true", elsewhere / "agent")

    refused = vigil.run_cli("run", "--sandbox", "--cwd", str(work), "--", str(elsewhere / "agent"))

    assert refused.returncode == 1
    assert f"{elsewhere}/agent is not seen inside: name its folder in sandbox_read" in refused.stderr
    assert vigil.json("ls", "--all") == []
    shown = vigil.run_cli(
        "run", "--sandbox", "--sandbox-read", str(elsewhere), "--cwd", str(work), "--", str(elsewhere / "agent")
    )
    assert shown.returncode == 0, shown.stderr


def test_where_bwrap_is_missing_a_sandbox_is_refused_with_the_way_out(vigil: Instance, tmp_path: Path) -> None:
    path = {"PATH": str(tmp_path)}
    command = ("run", "--runtime", "headless", "--sandbox", "--cwd", str(tmp_path), "--", "/bin/sleep", "1000")

    refused = vigil.run_cli(*command, env=path)

    assert refused.returncode == 1
    assert "apt-get install bubblewrap" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert vigil.json("ls", "--all") == []
    assert vigil.run_cli(*(word for word in command if word != "--sandbox"), env=path).returncode == 0
