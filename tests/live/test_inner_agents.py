"""Agents below a command: their life is the session's, whatever the shell around them does."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.live.instance import Instance, alive, command_of, kill, wait_for
from tests.live.watching import configure, values


@pytest.fixture
def inner_agent(tmp_path: Path) -> Path:
    """An agent with a name of its own."""
    program = tmp_path / "inner-agent"
    shutil.copy("/bin/sleep", program)
    return program


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_an_agent_that_dies_below_a_living_shell_is_dead_at_once(
    vigil: Instance, tmp_path: Path, inner_agent: Path, runtime: str
) -> None:
    configure(vigil, tmp_path / "notices")
    vigil.run("a", "sh", "-c", f"{inner_agent} 1000; exec sleep 1001", agent="x", runtime=runtime)
    session = vigil.wait_state("a", "running")
    wait_for(lambda: command_of(session["pid"]).startswith(bytes(inner_agent)), 10, "its command line, which follows its name")

    kill(session["pid"], signal.SIGSEGV)

    death = vigil.wait_death("a")
    session = vigil.get("a")
    assert (death["cause"], death["signal"]) == ("crash", signal.SIGSEGV)
    assert session["state"] == "failed"
    assert values(session) | {"server": "", "activity": ""} == {
        "server": "",
        "runtime": "alive",
        "process": "dead",
        "activity": "",
    }
    assert session["axes"]["process"]["conclusive"]
    vigil.ok("stop", "a")
    wait_for(
        lambda: not [p for p in vigil.processes() if b"1001" in Path(f"/proc/{p}/cmdline").read_bytes()], 10, "its shell to end"
    )


def test_the_shell_around_a_dead_agent_is_ended_before_its_replacement(
    vigil: Instance, tmp_path: Path, inner_agent: Path
) -> None:
    configure(vigil, tmp_path / "notices")
    vigil.run("a", "sh", "-c", f"{inner_agent} 1000; exec sleep 1001", agent="x", restart="always", backoff_base_s=1.0)
    first = vigil.wait_state("a", "running")

    kill(first["pid"], signal.SIGKILL)

    second = wait_for(
        lambda: (s := vigil.get("a"))["state"] == "running" and s["pid"] != first["pid"] and s, 20, "a second agent"
    )
    assert second["launch"] != first["launch"]
    assert not alive(first["server_pid"])
    assert len(vigil.deaths("a")) == 1


def test_an_agent_below_its_shell_is_found_again_by_a_new_daemon_which_sees_how_it_died_meanwhile(
    vigil: Instance, tmp_path: Path, inner_agent: Path
) -> None:
    configure(vigil, tmp_path / "notices")
    vigil.run("a", "sh", "-c", f"{inner_agent} 1000; exec sleep 1001", agent="x")
    vigil.run("b", "sh", "-c", f"{inner_agent} 1000; exec sleep 1001", agent="x")
    a, b = vigil.wait_state("a", "running"), vigil.wait_state("b", "running")
    vigil.kill_daemon()
    kill(a["pid"], signal.SIGKILL)

    vigil.start()

    death = vigil.wait_death("a")
    assert (death["cause"], death["signal"], death["observed_by"]) == ("killed-by-unknown", 9, "keeper")
    assert (vigil.get("b")["pid"], vigil.get("b")["state"]) == (b["pid"], "running")


def test_an_agent_that_never_shows_itself_is_waited_for_and_said_so(vigil: Instance, tmp_path: Path) -> None:
    configure(vigil, tmp_path / "notices")

    vigil.run("a", "sleep", "1000", agent="x")

    session = vigil.get("a")
    assert session["state"] == "starting"
    assert "inner-agent" in session["why"]
    assert session["axes"]["process"]["value"] == "unknown"


def test_what_a_dead_agent_left_open_is_shown_and_closed_when_its_shell_ends(
    vigil: Instance, tmp_path: Path, inner_agent: Path
) -> None:
    configure(vigil, tmp_path / "notices")
    vigil.run("a", "sh", "-c", f"{inner_agent} 1000; echo looked at; read -r _", agent="x")
    session = vigil.wait_state("a", "running")
    vigil.kill_daemon()
    kill(session["pid"], signal.SIGKILL)
    vigil.start()
    vigil.wait_death("a")

    wait_for(lambda: b"looked at" in vigil.client.logs("a", 10, raw=False), 5, "its screen")
    assert values(vigil.get("a"))["runtime"] == "alive"
    vigil_socket = str(vigil.home.server_socket(session["launch"]))
    subprocess.run(["tmux", "-S", vigil_socket, "send-keys", "-t", "%0", "Enter"], check=True, timeout=10)

    wait_for(lambda: not alive(session["server_pid"]), 10, "its tmux server to go with it")
    wait_for(lambda: values(vigil.get("a"))["runtime"] == "dead", 10, "that to be shown")


def test_a_pane_in_which_another_agent_works_is_not_ended_for_a_replacement(
    vigil: Instance, tmp_path: Path, inner_agent: Path
) -> None:
    configure(vigil, tmp_path / "notices")
    script = f"while :; do {inner_agent} 1000; done"
    vigil.run("a", "sh", "-c", script, agent="x", restart="always", backoff_base_s=1.0)
    first = vigil.wait_state("a", "running")

    kill(first["pid"], signal.SIGKILL)

    session = wait_for(
        lambda: vigil.get("a") if "waits with its next launch" in vigil.get("a")["why"] else None, 15, "it to wait"
    )
    assert session["hold"]["reason"] == "survivor"
    assert alive(first["server_pid"])
    vigil.ok("restart", "a")
    assert vigil.wait_state("a", "running")["launch"] != first["launch"]
    assert not alive(first["server_pid"])


def test_a_program_that_only_reads_the_agents_file_is_not_the_agent(vigil: Instance, tmp_path: Path, inner_agent: Path) -> None:
    configure(vigil, tmp_path / "notices")

    vigil.run("a", "sh", "-c", f"tail -f {inner_agent} >/dev/null; true", agent="x", runtime="headless")

    assert vigil.get("a")["state"] == "starting"


@pytest.mark.parametrize("interpreter", ["/bin/sh", "/usr/bin/env python3"])
def test_a_script_is_found_by_its_own_name(vigil: Instance, tmp_path: Path, interpreter: str) -> None:
    configure(vigil, tmp_path / "notices")
    program = tmp_path / "inner-agent"
    body = "import time; time.sleep(1000)" if "python" in interpreter else "sleep 1000; true"
    program.write_text(f"#!{interpreter}\n{body}\n")
    program.chmod(0o755)

    vigil.run("a", "sh", "-c", f"{program}; exec sleep 1001", agent="x")

    session = vigil.wait_state("a", "running")
    kill(session["pid"], signal.SIGTERM)
    assert vigil.wait_death("a")["signal"] == signal.SIGTERM
