"""Sessions that somebody else started are watched and given back; nothing else on their server is touched."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import Instance, alive, kill, wait_for
from tests.live.recycled import process_with

SLEEP = shutil.which("sleep") or "/bin/sleep"


class Server:
    """A tmux server of a person's own, with sessions in it."""

    def __init__(self, folder: Path) -> None:
        self.socket = str(folder / "own")
        self.claude = str(folder / "claude")
        shutil.copy(SLEEP, self.claude)

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", self.socket, *words],
            env={key: value for key, value in os.environ.items() if not key.startswith("TMUX")},
            capture_output=True,
            text=True,
            timeout=10,
        )
        return done.stdout

    def add(self, name: str, command: str) -> int:
        """Start a session, and return the process of its pane."""
        return int(self.tmux("-f", "/dev/null", "new-session", "-d", "-s", name, "-P", "-F", "#{pane_pid}", command))

    def sessions(self) -> list[str]:
        return self.tmux("list-sessions", "-F", "#{session_name}").split()

    def options(self, name: str) -> str:
        return self.tmux("show-options", "-t", f"={name}:")


@pytest.fixture
def server(scripts: Path) -> Iterator[Server]:
    """A server that is ended after the test."""
    found = Server(scripts)
    yield found
    found.tmux("kill-server")


def child_of(pid: int, name: str) -> int:
    """Wait for a child of that name, and return its pid."""

    def look() -> int | None:
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")
            except OSError:
                continue
            if int(fields[2].split()[1]) == pid and f"({name}" in fields[0]:
                return int(entry)
        return None

    return wait_for(look, 10, f"{name} below {pid}")


def test_an_adopted_agents_death_is_seen_with_its_cause_and_nothing_else_is_touched(vigil: Instance, server: Server) -> None:
    shell = server.add("work", f"sh -c '{server.claude} 1000; exec sleep 2000'")
    others = {name: server.add(name, "sleep 3000") for name in ("work2", "wo")}
    agent = child_of(shell, "claude")
    vigil.start()

    (found,) = [one for one in vigil.json("adopt", "--list", "--socket", server.socket) if one["name"] == "work"]
    assert (found["agent"], found["pid"], found["adopted_as"]) == ("claude", agent, None)
    assert vigil.run_cli("adopt", "wor", "--socket", server.socket).returncode == 3, "never by a prefix"
    session = vigil.json("adopt", "=work", "--socket", server.socket)
    assert (session["name"], session["agent"], session["pid"], session["state"]) == ("work", "claude", agent, "running")
    assert vigil.run_cli("adopt", "work", "--socket", server.socket, "--name", "again").returncode == 4
    assert session["launch"] in server.options("work")

    vigil.kill_daemon()  # it is known to the next one too
    vigil.start()
    kill(agent, signal.SIGKILL)

    death = vigil.wait_death("work")
    assert (death["cause"], death["signal"], death["charged"]) == ("killed-by-unknown", 9, True)
    assert vigil.get("work")["state"] == "failed"
    assert (sorted(server.sessions()), alive(shell), all(map(alive, others.values()))) == (["wo", "work", "work2"], True, True)
    for verb in ("start", "restart", "reset", "wake"):
        assert vigil.run_cli(verb, "work").returncode == 4, verb
    wait_for(lambda: "@vigil" not in server.options("work"), 10, "its marks to be gone", lambda: server.options("work"))
    assert vigil.json("rm", "work")["name"] == "work"
    assert alive(shell)


def test_a_session_that_is_released_goes_on_without_a_mark_and_can_be_adopted_again(vigil: Instance, server: Server) -> None:
    agent = server.add("a.b", f"exec {server.claude} 1000")
    vigil.start()
    assert vigil.run_cli("adopt", "A B", "--socket", server.socket).returncode == 3
    session = vigil.json("adopt", "a_b", "--socket", server.socket, "--name", "mine")
    assert (session["pid"], session["adopted"]["name"]) == (agent, "a_b")
    vigil.client.reap()
    assert vigil.client.reap(dry_run=True)[0]["class"] in ("busy", "keep")

    assert vigil.json("release", "mine")["pid"] == agent

    assert (alive(agent), "@vigil" in server.options("a_b")) == (True, False)
    assert vigil.client.sessions(everything=True) == []
    assert not list(vigil.home.launches.iterdir())
    vigil.client.reap()
    assert vigil.client.sessions(everything=True) == [], "what was given back is not found again"
    assert vigil.json("adopt", "a_b", "--socket", server.socket)["name"] == "a_b"
    vigil.run("own", "sleep", "1000")
    assert vigil.run_cli("release", "own").returncode == 4


def test_stopping_an_adopted_session_ends_what_runs_in_it_and_no_more(vigil: Instance, server: Server, scripts: Path) -> None:
    deaf = 'trap \\"\\" HUP; echo $$ > deaf; exec sleep 1000'
    shell = server.add("a", f'cd {scripts}; sh -c "{deaf}" & {server.claude} 1000; sleep 1000')
    neighbour = server.add("ab", "sleep 1000")
    agent = child_of(shell, "claude")
    wait_for(lambda: (scripts / "deaf").exists() and (scripts / "deaf").read_text().strip(), 10, "a deaf child")
    left = int((scripts / "deaf").read_text())
    server.tmux("split-window", "-d", "-t", "=a:", "exec sleep 4000")
    second = int(server.tmux("list-panes", "-s", "-t", "=a", "-F", "#{pane_pid}").split()[-1])
    vigil.start()
    vigil.json("adopt", "a", "--socket", server.socket)

    vigil.ok("stop", "a")

    assert not any(map(alive, (agent, shell, left, second)))
    assert (server.sessions(), alive(neighbour)) == (["ab"], True)
    assert [death["cause"] for death in vigil.deaths("a")] == ["operator"]


def test_the_daemons_end_with_all_sessions_gives_adopted_ones_back(vigil: Instance, server: Server) -> None:
    agent = server.add("a", f"exec {server.claude} 1000")
    vigil.start()
    vigil.json("adopt", "a", "--socket", server.socket)

    vigil.ok("daemon", "stop", "--kill-sessions")

    assert (alive(agent), "@vigil" in server.options("a")) == (True, False)


def test_an_adopted_session_whose_server_dies_says_so(vigil: Instance, server: Server) -> None:
    agent = server.add("a", f"exec {server.claude} 1000")
    vigil.start()
    session = vigil.json("adopt", "a", "--socket", server.socket)

    os.kill(session["server_pid"], signal.SIGKILL)

    assert (vigil.wait_death("a")["cause"], alive(agent)) == ("server-died", False)


def test_an_agent_that_was_alone_on_its_server_is_not_said_to_have_died_of_the_servers_end(
    vigil: Instance, server: Server
) -> None:
    vigil.start()
    for name in ("a", "b", "c", "d"):
        agent = server.add(name, f"exec {server.claude} 1000")  # its server ends with its last pane
        vigil.json("adopt", name, "--socket", server.socket)

        kill(agent, signal.SIGKILL)

        death = vigil.wait_death(name)
        assert (death["cause"], death["signal"]) == ("killed-by-unknown", 9), death
        wait_for(lambda: server.sessions() == [], 10, "the server to end")


def test_whoever_has_the_number_of_a_dead_pane_is_not_ended_with_its_session(vigil: Instance, server: Server) -> None:
    agent = server.add("a", f"exec {server.claude} 1000")
    server.tmux("set-option", "-w", "-t", "=a:", "remain-on-exit", "on")
    server.tmux("split-window", "-d", "-t", "=a:", "exec sleep 4000")
    dead = int(server.tmux("list-panes", "-s", "-t", "=a", "-F", "#{pane_pid}").split()[-1])
    kill(dead, signal.SIGKILL)
    wait_for(
        lambda: "1" in server.tmux("list-panes", "-s", "-t", "=a", "-F", "#{pane_dead}").split(), 10, "the pane to be dead"
    )
    vigil.start()
    vigil.json("adopt", "a", "--socket", server.socket)

    with process_with(dead):
        assert vigil.run_cli("stop", "a").returncode == 0

        assert (alive(agent), alive(dead)) == (False, True)


def test_who_cannot_be_adopted_is_refused_in_words_that_are_true(vigil: Instance, server: Server) -> None:
    server.add("a", "sleep 1000")
    own = vigil.run("own", "sleep", "1000")
    refused = vigil.run_cli("adopt", "agent", "--socket", vigil.home.server_path(own["launch"]))
    assert (refused.returncode, "a server of Vigil's own" in refused.stderr) == (4, True), refused.stderr

    pid = int(server.tmux("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGSTOP)
    try:
        for words in (["a"], ["--list"]):
            silent = vigil.run_cli("adopt", *words, "--socket", server.socket)
            assert (silent.returncode, "gave no answer" in silent.stderr) == (1, True), silent.stderr
    finally:
        os.kill(pid, signal.SIGCONT)

    kill(vigil.json("adopt", "a", "--socket", server.socket)["pid"], signal.SIGKILL)
    vigil.wait_state("a", "failed")
    server.add("a", "sleep 1000")
    taken = vigil.run_cli("adopt", "a", "--socket", server.socket)
    assert (taken.returncode, "vigil rm a removes it, --name" in taken.stderr) == (1, True), taken.stderr
    vigil.ok("adopt", "a", "--name", "b", "--socket", server.socket)
    assert "start" not in vigil.ok("archive", "b"), "it is never launched"
