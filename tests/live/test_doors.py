"""Doors: other users and agents that were talked into it, each with the real exploit; what they offer is never executed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import VIGIL, Instance, alive, wait_for
from tests.live.strangers import OTHER_UID, need_root, obeyed, stranger
from vigil.api.access import ACCESS, ANY
from vigil.cli.attach import client_argv
from vigil.errors import Unreachable, UsageError
from vigil.home import Home, home_at
from vigil.kernel.process import read_start_ticks

SECRET = "Tr0ub4dor-and-3"


# Another user listens where a command would look for its daemon


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home whose name is so long that its sockets lie in a folder of /tmp that others can foretell."""
    need_root()
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    home = home_at(tmp_path / ("x" * 100))
    assert home.run.parent == Path("/tmp")
    yield home
    if home.run.is_symlink():
        home.run.unlink()
    shutil.rmtree(home.run, ignore_errors=True)


def foreign(run: Path, elsewhere: Path) -> None:  # noqa: ARG001
    run.mkdir(0o755)
    os.chown(run, OTHER_UID, OTHER_UID)


def linked(run: Path, elsewhere: Path) -> None:
    foreign(elsewhere, elsewhere)
    run.symlink_to(elsewhere)


def open_to_all(run: Path, elsewhere: Path) -> None:  # noqa: ARG001
    run.mkdir()
    run.chmod(0o777)


@pytest.mark.parametrize("make", [foreign, linked, open_to_all, None], ids=["foreign", "linked", "open", "listener alone"])
def test_a_command_sends_nothing_to_another_users_daemon_and_executes_nothing_of_it(
    far: Home, scripts: Path, make: Any
) -> None:
    elsewhere = Path(tempfile.mkdtemp(prefix="vge-", dir="/tmp"))  # the other user must reach it
    os.rmdir(elsewhere)
    (make or open_to_all)(far.run, elsewhere)
    evil = Path(tempfile.mkdtemp(prefix="vge-", dir="/tmp"))
    evil.chmod(0o755)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("VIGIL_", "XDG_RUNTIME"))}
    env |= {"VIGIL_HOME": str(far.path), "MY_DB_PASSWORD": SECRET, "VIGIL_CONFIG": str(scripts / "none.toml")}
    try:
        with (
            stranger("daemon", far.api_socket, evil / "api", OTHER_UID) as api,
            stranger("daemon", far.keeper_socket, evil / "keeper", OTHER_UID) as keeper,
        ):
            if make is None:
                far.run.chmod(0o700)
            for words in ("run -- true", "attach x", "ls", "daemon start", "daemon stop", "adopt x"):
                done = as_victim(env, *words.split())
                assert (done.returncode, len(done.stderr.splitlines()), done.stdout) == (5, 1, ""), (words, done)
                assert "Nothing was sent" in done.stderr
            done = as_victim(env, "doctor")
            assert done.returncode != 0 and str(far.run) in done.stdout + done.stderr, done

            assert (sum(api.sent()), sum(keeper.sent())) == (0, 0)
            assert not api.executed() and not keeper.executed()
    finally:
        shutil.rmtree(evil)
        shutil.rmtree(elsewhere, ignore_errors=True)


def as_victim(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [*VIGIL, *words]
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def test_attach_executes_no_command_that_came_over_the_socket(vigil: Instance, scripts: Path) -> None:
    vigil.run("a", "sleep", "1000")
    facts = vigil.client.terminal("a")
    assert "argv" not in facts
    argv = client_argv(vigil.home, facts)
    assert (argv[:3], argv[4:]) == (["tmux", "-u", "-S"], ["attach-session", "-t", "%0"])
    assert os.readlink(argv[3]) == vigil.home.server_path(facts["launch"])
    os.close(int(os.path.basename(argv[3])))

    own = scripts / "own"
    with stranger("tmux", own, scripts / "fake") as fake:
        assert obeyed(fake)
        lies: list[dict[str, Any]] = [
            {"argv": [str(fake.payload)]},
            {**facts, "pane": f"%0; run-shell {fake.payload}"},
            {**facts, "launch": "../../x-1"},
            {**facts, "socket": str(own)},
            {**facts, "server": {"pid": fake.process.pid, "start_ticks": 7}},
            {**facts, "socket": "a\0b"},
            {**facts, "server": None},
        ]
        for lie in lies:
            with pytest.raises(Unreachable):
                client_argv(vigil.home, lie)
        assert not fake.executed()


# Another user's tmux server


@pytest.fixture
def sticky() -> Iterator[Path]:
    """A folder for all users, as /tmp is."""
    need_root()
    folder = Path(tempfile.mkdtemp(prefix="vgs-", dir="/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("make", [foreign, linked, open_to_all, None], ids=["foreign", "linked", "open", "listener alone"])
def test_no_tmux_client_is_started_on_another_users_server(vigil: Instance, sticky: Path, make: Any) -> None:
    vigil.start()
    folder = sticky / f"tmux-{os.getuid()}"
    (make or open_to_all)(folder, sticky / "elsewhere")
    evil = sticky / "evil"
    with stranger("tmux", folder / "default", evil, OTHER_UID) as fake:
        assert obeyed(fake)
        if make is None:
            folder.chmod(0o700)
        for words in (["--list"], ["--list", "--socket", "default"], ["a"], ["a", "--socket", str(folder / "default")]):
            done = vigil.run_cli("adopt", *words, env={"TMUX_TMPDIR": str(sticky)})
            assert (done.returncode, len(done.stderr.splitlines())) == (4, 1), (words, done)

        assert not fake.executed()
        assert sum(fake.sent()) == 0


def test_a_socket_in_a_folder_for_all_is_asked_if_it_is_ours_and_not_if_it_is_not(vigil: Instance, sticky: Path) -> None:
    vigil.start()
    own = str(sticky / "own")
    subprocess.run(["tmux", "-S", own, "-f", "/dev/null", "new-session", "-d", "-s", "mine", "sleep 1000"], check=True)
    try:
        assert [one["name"] for one in vigil.client.candidates([own])] == ["mine"]
        with stranger("tmux", sticky / "theirs", sticky / "evil", OTHER_UID) as fake:
            done = vigil.run_cli("adopt", "--list", "--socket", fake.path)
            assert (done.returncode, f"uid {OTHER_UID}" in done.stderr) == (4, True), done
            assert not fake.executed()
    finally:
        subprocess.run(["tmux", "-S", own, "kill-server"], check=True)


def test_a_listener_that_never_accepts_holds_nobody_up(vigil: Instance, scripts: Path) -> None:
    vigil.start()
    path = str(scripts / "full")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(path)
        done = vigil.run_cli("adopt", "--list", "--socket", path, timeout_s=30)
        for one in waiting:
            one.close()

    assert (done.returncode, "gave no answer" in done.stderr) == (1, True), done


def test_a_name_of_a_session_is_quoted_in_a_command_to_paste(vigil: Instance, scripts: Path) -> None:
    vigil.start()
    name, own = "x'; touch pwned; echo '", str(scripts / "it's own")
    tmux = ["tmux", "-S", own]
    subprocess.run([*tmux, "-f", "/dev/null", "new-session", "-d", "-s", name, "sleep 1000"], check=True)
    try:
        subprocess.run([*tmux, "set-option", "-t", f"={name}:", "@vigil_launch", "other-1"], check=True)
        done = vigil.run_cli("adopt", name, "--socket", own, "--name", "x")
        assert done.returncode == 4, done

        subprocess.run(["sh", "-c", done.stderr.partition("if that is gone: ")[2]], cwd=scripts, check=True)

        assert not (scripts / "pwned").exists()
        assert vigil.json("adopt", name, "--socket", own, "--name", "x")["name"] == "x"
        vigil.ok("release", "x")
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)


@pytest.mark.parametrize("path", ["/tmp/a\0b", "relative", ""])
def test_a_path_that_is_none_is_a_wrong_request(shared: Instance, path: str) -> None:
    shared.start()
    for ask in (lambda: shared.client.candidates([path]), lambda: shared.client.adopt("a", [path])):
        with pytest.raises(UsageError):
            ask()


# An agent acts as if it were a person


def test_a_command_sends_nothing_to_a_process_in_the_daemons_place(vigil: Instance, scripts: Path) -> None:
    vigil.run("a", "sleep", "1000")
    aside = vigil.home.run / "aside"
    os.link(vigil.home.api_socket, aside)
    with stranger("daemon", vigil.home.api_socket, scripts / "fake") as fake:
        for words in ("ls", "attach a", "run -- true", "daemon stop"):
            done = vigil.run_cli(*words.split())
            assert (done.returncode, f"in the place of pid {vigil.daemon_pid}" in done.stderr) == (5, True), done
        assert (sum(fake.sent()), fake.executed()) == (0, False)
        os.rename(aside, vigil.home.api_socket)
        assert vigil.get("a")["state"] == "running"
        fake.path = str(scripts / "none")  # the daemon's own stays


def as_agent(vigil: Instance, program: str, *words: str, name: str = "intruder") -> list[Any]:
    """Have an agent run a Python program, and return what it printed: a JSON value."""
    script, out = vigil.path / f"{name}.py", vigil.path / f"{name}.out"
    script.write_text(program)
    argv = shlex.join([sys.executable, str(script), *words])
    vigil.run(name, "sh", "-c", f"{argv} >{out}.new 2>{out}.err; mv {out}.new {out}; sleep 1000", runtime="headless")
    wait_for(lambda: out.exists() and out.read_text(), 60, "the agent's try", lambda: Path(f"{out}.err").read_text())
    found = json.loads(out.read_text())
    assert isinstance(found, list)
    return found


ASK = """
import json, os, socket, sys, time
def connect(path):
    sock = socket.socket(socket.AF_UNIX); sock.settimeout(20); sock.connect(path); return sock
def ask(sock, method, target, body=b""):
    sock.settimeout(20)  # also one that was handed on
    sock.sendall(b"%s %s HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %d\\r\\nConnection: close\\r\\n\\r\\n%s"
                 % (method.encode(), target.encode(), len(body), body))
    return int(sock.makefile("rb").readline().split()[1])
"""
HANDED_ON = """
found = []
for reaped in (True, False):
    ours, theirs = socket.socketpair()
    if (pid := os.fork()) == 0:
        made = connect(sys.argv[1])
        socket.send_fds(theirs, [b"x"], [made.fileno()])
        os._exit(0)
    _, (fd,), _, _ = socket.recv_fds(ours, 1, 1)
    if reaped:
        os.waitpid(pid, 0)
    else:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    found.append(ask(socket.socket(fileno=fd), "POST", "/v1/sessions/victim:restart"))
    if not reaped:
        os.waitpid(pid, 0)
print(json.dumps(found))
"""


def test_a_connection_whose_maker_is_gone_is_in_nobodys_name(vigil: Instance) -> None:
    victim = vigil.run("victim", "sleep", "1000")

    assert as_agent(vigil, ASK + HANDED_ON, str(vigil.home.api_socket)) == [403, 403]

    assert vigil.get("victim")["pid"] == victim["pid"]
    assert not [one for one in vigil.client.events("victim") if "restart" in json.dumps(one["data"])]


KEEPER = """
found = []
for request in ({"do": "quit"}, {"do": "upgrade"}, {"do": "spawn", "launch": "x-1", "folder": sys.argv[2]}, {"do": "ping"}):
    sock = connect(sys.argv[1])
    sock.sendall(json.dumps({"id": 1, **request}).encode() + b"\\n")
    found.append(json.loads(sock.makefile("rb").readline())["ok"])
print(json.dumps(found))
"""


def test_the_keeper_obeys_its_daemon_and_no_agent(vigil: Instance) -> None:
    victim = vigil.run("victim", "sleep", "1000")
    folder = vigil.home.launch(victim["launch"])

    assert as_agent(vigil, ASK + KEEPER, str(vigil.home.keeper_socket), str(folder)) == [False, False, False, True]

    assert vigil.client.status()["keeper_pid"] == vigil.keeper_pid and alive(vigil.keeper_pid)
    assert vigil.run("after", "true")["name"] == "after"
    assert "keeper" in vigil.run_cli("doctor").stdout


def test_a_daemon_that_an_agent_started_is_obeyed_as_any_other(vigil: Instance) -> None:
    """The next command starts a daemon, also an agent's: it holds the lock, wherever it runs."""
    script = f"while :; do read word; {' '.join(VIGIL)} ls; done"
    session = vigil.run("starter", "sh", "-c", script)
    keeper = vigil.keeper_pid
    vigil.kill_daemon()

    vigil_tmux = ["tmux", "-S", vigil.home.server_path(session["launch"]), "send-keys", "-t", "%0", "go", "Enter"]
    subprocess.run(vigil_tmux, check=True, timeout=10)

    wait_for(lambda: vigil.get("starter")["state"] == "running", 30, "a daemon by an agent")
    assert vigil.client.status()["keeper_pid"] == keeper
    assert vigil.run("new", "sleep", "1000")["state"] in ("starting", "running")


EVERY = """
print(json.dumps([ask(connect(sys.argv[1]), method, target) for method, target in json.loads(sys.argv[2])]))
"""


def test_an_agent_is_refused_wherever_the_table_does_not_let_it_in(vigil: Instance, scripts: Path) -> None:
    victim = vigil.run("victim", "sleep", "1000")
    guarded = {route for route, callers in ACCESS.items() if callers is not ANY}
    with stranger("tmux", scripts / "own", scripts / "fake") as fake:
        assert obeyed(fake)
        targets = [(method, _filled(path, "victim") + _query(path, fake.path)) for method, path in sorted(guarded)]

        found = as_agent(vigil, ASK + EVERY, str(vigil.home.api_socket), json.dumps(targets))

        assert dict(zip(map(tuple, targets), found, strict=True)) == dict.fromkeys(targets, 403)
        assert not fake.executed()
    assert vigil.get("victim")["pid"] == victim["pid"]


def _filled(path: str, name: str) -> str:
    words = {"{name:whole}": name, "{name}": name, "{verb}": "restart", "{incident_id:whole}": "i1", "{team:whole}": "t"}
    for key, value in words.items():
        path = path.replace(key, value)
    assert "{" not in path
    return path


def _query(path: str, own: str) -> str:
    return f"?socket={own}" if path == "/v1/adopt" else "?replicas=0" if path.endswith(":scale") else ""


def test_a_person_is_not_led_to_a_server_that_an_agent_started(vigil: Instance, scripts: Path) -> None:
    from tests.live import strangers

    own, payload = scripts / "own", scripts / "payload"
    payload.write_text(f"#!/bin/sh\ntouch {scripts}/executed\n")
    payload.chmod(0o755)
    program = scripts / "fake.py"
    program.write_text(strangers.SERVER)
    argv = [sys.executable, str(program), "tmux", str(own), str(payload), str(scripts / "noted"), "-1"]
    vigil.run("intruder", *argv, runtime="headless")
    wait_for(own.exists, 20, "the agent's server")

    done = vigil.run_cli("adopt", "--list", "--socket", str(own))

    assert (done.returncode, "an agent that Vigil watches" in done.stderr) == (4, True), done
    assert not (scripts / "executed").exists()


# A stranger in the place of a launch's own server


def test_a_stranger_on_a_launchs_socket_is_never_asked_and_the_server_takes_its_place_back(
    vigil: Instance, scripts: Path
) -> None:
    session = vigil.run("a", "sh", "-c", "echo hello; exec sleep 1000")
    path = vigil.home.server_path(session["launch"])
    wait_for(lambda: b"hello" in vigil.client.logs("a", 10, raw=False), 10, "its word")
    with stranger("tmux", path, scripts / "fake", insists=True) as fake:
        assert obeyed(fake)
        wait_for(lambda: "another process listens on its socket" in vigil.ok("why", "a"), 20, "why to tell it")
        wait_for(lambda: _is_refused(vigil.home, session), 20, "a client to be refused")
        for words in (["logs", "a"], ["get", "a"], ["send", "a", "x"], ["attach", "a"], ["reap"]):
            vigil.run_cli(*words)
        assert not fake.executed()

    wait_for(lambda: os.path.exists(path) or vigil.client.why("a") is None, 20, "its server to make its socket anew")
    wait_for(lambda: b"hello" in vigil.client.logs("a", 10, raw=False), 20, "its screen")
    assert vigil.get("a")["pid"] == session["pid"]


def _is_refused(home: Home, session: dict[str, Any]) -> bool:
    """Say whether `vigil attach` refuses to become a client now, whatever its daemon says."""
    server = {"pid": session["server_pid"], "start_ticks": read_start_ticks(session["server_pid"])}
    try:
        client_argv(home, {"launch": session["launch"], "pane": "%0", "socket": None, "server": server})
    except Unreachable as error:
        return "not to its tmux server" in str(error)
    return False


def test_a_server_without_a_launch_that_is_no_tmux_is_not_asked(vigil: Instance, scripts: Path) -> None:
    vigil.start()
    with stranger("tmux", vigil.home.run / "sstranger-1.tmux", scripts / "fake") as fake:
        assert obeyed(fake)

        found = vigil.client.reap(dry_run=True)
        vigil.client.reap()

        assert [one["action"] for one in found] == ["keep"], found
        assert "not the tmux that Vigil runs" in json.dumps(found)
        assert not fake.executed()
        assert fake.process.poll() is None


def test_a_stranger_that_waits_for_the_next_launch_is_not_its_server(vigil: Instance, scripts: Path) -> None:
    session = vigil.run("a", "sleep", "1000")
    after = session["launch"].removesuffix("-1") + "-2"
    with stranger("tmux", vigil.home.server_path(after), scripts / "fake") as fake:
        vigil.client.ask("restart", "a")

        again = vigil.wait_state("a", "running")
        assert (again["launch"], again["server_pid"] != fake.process.pid, fake.executed()) == (after, True, False)
        vigil.client.rm("a")


def test_an_adopted_server_that_its_owner_started_anew_is_another(vigil: Instance, scripts: Path) -> None:
    """The new one was not adopted: Vigil tells the death of the old one, and types nothing into the new."""
    own = str(scripts / "own")
    tmux = ["tmux", "-S", own, "-f", "/dev/null"]
    subprocess.run([*tmux, "new-session", "-d", "-s", "a", "sleep 1000"], check=True)
    vigil.start()
    session = vigil.json("adopt", "a", "--socket", own)

    os.kill(session["server_pid"], signal.SIGKILL)
    vigil.wait_death("a")
    subprocess.run([*tmux, "new-session", "-d", "-s", "a", "cat"], check=True)

    assert vigil.run_cli("send", "a", "typed").returncode != 0
    assert "typed" not in subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True).stdout
    vigil.ok("rm", "a")
    assert vigil.json("adopt", "a", "--socket", own)["name"] == "a"
    vigil.ok("release", "a")
    subprocess.run([*tmux, "kill-server"], check=True)
