"""What an agent plants in its launch or in the spool stops neither the loop, nor the keeper, nor a thread.

Each exploit is played by files alone, as an agent in a sandbox could; another session is watched all the while."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.live.instance import VIGIL, Instance, wait_for
from vigil.client.client import Client
from vigil.errors import VigilError
from vigil.kernel.process import read_boot, read_start_ticks

LATE_MS = 100.0 if os.environ.get("VIGIL_SOAK") else 1000.0  # beside a whole suite every loop is late
TRIES = 3  # a busy machine is late by itself, though not three times in a row
MEMORY_KB = 200 << 10
KINDS = ("fifo", "zero", "folder", "sparse", "link", "deep", "changing")
IN_LAUNCH = (
    "born.json",
    "exit.json",
    "inner-exit.json",
    "launch.json",
    "pid",
    "root-exit.json",
    "screen",
    "screen.tmp",
    "server-exit.json",
    "shim-exit",
    "snapshot.json",
    "stderr.log",
    "stdout.jsonl",
    "stdin.fifo",
)
pytestmark = pytest.mark.timeout(240)


def plant(kind: str, path: Path) -> None:
    """Put something under a name, whatever has that name."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
        path.chmod(0o700)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        (path / "inner").mkdir(parents=True)
    elif kind == "sparse":
        with open(path, "wb") as file:
            file.truncate(1 << 40)
    elif kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "deep":
        path.write_bytes(b'{"a":' * 100_000)


class Lateness(threading.Thread):
    """Asks all the while how late the daemon's loop is, and how much memory it has."""

    def __init__(self, vigil: Instance) -> None:
        super().__init__(daemon=True)
        self._client = Client(vigil.home)
        self._pid = vigil.daemon_pid
        self._over = threading.Event()
        self.worst_ms = 0.0
        self.worst_kb = 0
        self.silent_s = 0.0

    def run(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            try:
                self.worst_ms = max(self.worst_ms, self._client.status()["lateness_ms"]["now"])
            except (VigilError, OSError):
                pass
            self.silent_s = max(self.silent_s, time.monotonic() - began)
            words = Path(f"/proc/{self._pid}/status").read_text().split()
            self.worst_kb = max(self.worst_kb, int(words[words.index("VmRSS:") + 1]))
            self._over.wait(0.2)

    def end(self) -> None:
        self._over.set()
        self.join()


@contextmanager
def watched(vigil: Instance) -> Iterator[Lateness]:
    """Measure from before something until two beats of the loop after it."""
    lateness = Lateness(vigil)
    lateness.start()
    try:
        yield lateness
        time.sleep(2.2)
    finally:
        lateness.end()


def stays_in_time(vigil: Instance, play: Callable[[], None]) -> Lateness:
    """Play an exploit; its loop must be in time in one of a few tries, and answer in each."""
    seen = []
    for _ in range(TRIES):
        with watched(vigil) as lateness:
            play()
        assert lateness.silent_s < 10, "it answers all the while"
        assert lateness.worst_kb < MEMORY_KB
        seen.append(lateness.worst_ms)
        if lateness.worst_ms < LATE_MS:
            assert "bystander" in vigil.ok("ls")
            return lateness
    raise AssertionError(f"the loop was late by {seen} ms")


@pytest.fixture(scope="module")
def fleet() -> Iterator[Instance]:
    """An instance with a session that no exploit is about; its daemon could not take more than 2 GB."""
    vigil = Instance()
    vigil.run("bystander", "sleep", "1000")
    resource.prlimit(vigil.daemon_pid, resource.RLIMIT_AS, (4 << 30, 4 << 30))
    yield vigil
    try:
        assert vigil.get("bystander")["state"] == "running"
        assert Path(f"/proc/{vigil.get('bystander')['pid']}").exists()
    finally:
        vigil.destroy()


def folder_of(vigil: Instance, name: str) -> Path:
    return vigil.home.launch(vigil.get(name)["launch"])


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_lies_at_any_name_of_a_launch_the_loop_is_in_time_and_everybody_is_served(fleet: Instance, kind: str) -> None:
    for name, runtime in (("pane", "tmux"), ("plain", "headless")):
        fleet.run(f"{name}-{kind}", "sh", "-c", "while :; do echo hello; sleep 0.1; done", runtime=runtime)
    names = [f"pane-{kind}", f"plain-{kind}"]
    stop = threading.Event()

    def change(path: Path) -> None:
        while not stop.is_set():
            path.write_bytes(b'{"a":1}' * 100_000)
            os.truncate(path, 3)
            time.sleep(0.001)

    threads = []
    for name in names:
        for entry in IN_LAUNCH:
            path = folder_of(fleet, name) / entry
            plant("file" if kind == "changing" else kind, path)
            if kind == "changing" and entry in ("stderr.log", "screen", "exit.json"):
                threads.append(threading.Thread(target=change, args=(path,)))
    for thread in threads:
        thread.start()

    def play() -> None:
        for name in names:
            for command in (("logs", name), ("get", name), ("why", name)):
                fleet.run_cli(*command, timeout_s=20)

    try:
        stays_in_time(fleet, play)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for name in names:
        fleet.ok("stop", name)
        assert fleet.wait_death(name)["cause"] == "operator"
        fleet.ok("rm", name)
    wait_for(lambda: fleet.run("next", "true") and True, 10, "the keeper to launch on")
    fleet.ok("rm", "next")


def test_a_pipe_where_the_keeper_would_begin_its_record_costs_nobody_a_launch(fleet: Instance) -> None:
    for number in range(3):
        fleet.run("dies", "sh", "-c", "sleep 0.5; exit 3", restart="never")
        folder = folder_of(fleet, "dies")
        for name in ("exit.json", "root-exit.json", "server-exit.json", "snapshot.json", "born.json"):
            plant("fifo", folder / f"{name}.{fleet.keeper_pid}.tmp")
            plant("fifo", folder / f"{name}.tmp")

        assert fleet.wait_death("dies")["exit_code"] == 3
        assert fleet.run(f"after{number}", "true", restart="never")["state"] in ("running", "starting", "exited", "finished")
        fleet.ok("rm", "dies")
        fleet.ok("rm", f"after{number}")


def test_eight_looks_at_a_pipe_leave_every_thread_free(fleet: Instance) -> None:
    fleet.run("loud", "sh", "-c", "echo hello; sleep 1000", runtime="headless")
    plant("fifo", folder_of(fleet, "loud") / "stderr.log")

    lookers = [
        subprocess.Popen([*VIGIL, "logs", "loud"], env=fleet.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(8)
    ]

    for looker in lookers:
        out, _ = looker.communicate(timeout=60)
        assert (looker.returncode, out) == (0, b"hello\n")
    fleet.ok("events")
    fleet.ok("rm", "loud")


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_whatever_lies_in_the_spool_anything_can_be_removed_and_the_daemon_stops(vigil: Instance, kind: str) -> None:
    vigil.run("bystander", "sleep", "1000")
    vigil.run("a", "sleep", "1000")
    resource.prlimit(vigil.daemon_pid, resource.RLIMIT_AS, (4 << 30, 4 << 30))
    (vigil.home.spool / "bad").mkdir(exist_ok=True)

    def play() -> None:
        for place in ("new", "tmp", "bad"):
            plant(kind, vigil.home.spool / place / "z.json")
            plant(kind, vigil.home.spool / place / ".z.json")

    stays_in_time(vigil, play)
    play()
    vigil.ok("rm", "a")

    vigil.ok("daemon", "stop")
    wait_for(lambda: not vigil.home.api_socket.exists(), 20, "the daemon to stop")


@pytest.mark.parametrize("where", ["launch", "spool", "inside"])
def test_rm_never_follows_a_link_out_of_the_launches(vigil: Instance, tmp_path: Path, where: str) -> None:
    precious = tmp_path / "precious"
    for name in ("new", "tmp", "bad", "deep"):
        (precious / name).mkdir(parents=True)
        (precious / name / "words.json").write_text("mine")
        os.utime(precious / name / "words.json", (1, 1))
    before = {path: path.lstat().st_mtime_ns for path in precious.rglob("*")}
    vigil.run("a", "sleep", "1000")
    folder = folder_of(vigil, "a")
    if where == "launch":
        folder.rename(tmp_path / "aside")
        folder.symlink_to(precious)
    elif where == "spool":
        for name in ("tmp", "new"):
            (vigil.home.spool / name).rename(tmp_path / name)
            (vigil.home.spool / name).symlink_to(precious / name)
        (vigil.home.spool / "bad").symlink_to(precious / "bad")
    else:
        (folder / "spool").symlink_to(precious)
        (folder / "link").symlink_to("/")

    vigil.run_cli("rm", "a")

    assert vigil.client.sessions(everything=True) == []
    assert {path: path.lstat().st_mtime_ns for path in precious.rglob("*")} == before
    if where == "inside":
        assert not folder.exists()


def test_a_pipe_as_the_command_is_refused_at_once(fleet: Instance, tmp_path: Path) -> None:
    plant("fifo", tmp_path / "agent")

    with watched(fleet) as lateness:
        refused = fleet.run_cli("run", "--name", "x", "--cwd", str(tmp_path), "--", "./agent", timeout_s=20)
        path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        by_path = fleet.run_cli("run", "--name", "x", "--", "agent", env=path, timeout_s=20)

    assert (refused.returncode, refused.stderr) == (1, "vigil: ./agent is not executable\n")
    assert (by_path.returncode, by_path.stderr) == (1, f"vigil: {tmp_path}/agent is not executable\n")
    assert lateness.silent_s < 10


@pytest.mark.parametrize("kind", KINDS[:4])
@pytest.mark.parametrize("command", ["plan", "up"])
def test_whatever_is_called_a_manifest_is_refused_in_one_line(fleet: Instance, tmp_path: Path, kind: str, command: str) -> None:
    plant(kind, tmp_path / "vigil.toml")

    refused = limited(fleet, command, str(tmp_path / "vigil.toml"))

    assert refused.returncode in (1, 2) and len(refused.stderr.splitlines()) <= 4, refused.stderr
    assert "Traceback" not in refused.stderr and "vigil.toml" in refused.stderr


@pytest.mark.parametrize("kind", KINDS[:4])
def test_whatever_is_called_a_configuration_is_refused_in_one_line(vigil: Instance, kind: str) -> None:
    vigil.start()
    plant(kind, vigil.config)

    refused = limited(vigil, "run", "--", "true")

    assert refused.returncode == 2 and refused.stderr.startswith("vigil: config.toml: "), refused.stderr
    assert len(refused.stderr.splitlines()) == 2


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_whatever_is_called_a_recording_is_refused_in_one_line(fleet: Instance, tmp_path: Path, kind: str) -> None:
    plant(kind, tmp_path / "x")

    refused = limited(fleet, "replay", str(tmp_path / "x"))

    assert refused.returncode == 2 and "Traceback" not in refused.stderr, refused.stderr


def limited(vigil: Instance, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command that may take no more than 1 GB."""
    argv = ["sh", "-c", 'ulimit -v 1048576; exec "$@"', "sh", *VIGIL, *words]
    return subprocess.run(argv, env=vigil.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def test_a_hook_in_anothers_name_is_set_aside_and_nothing_of_the_other_changes(vigil: Instance) -> None:
    victim, forger = (vigil.run(name, "sleep", "1000") for name in ("victim", "forger"))
    wall = {"hook_event_name": "StopFailure", "error": "authentication_failed", "message": "go to http://evil.example"}
    tokens = ["", vigil.token(forger["launch"]), "0" * 32]
    for number, token in enumerate(tokens):
        body = {"session": "victim", "launch": victim["launch"], "token": token, "payload": wall}
        (vigil.home.spool / "tmp" / f"{number}.json").write_text(json.dumps(body))
        os.rename(vigil.home.spool / "tmp" / f"{number}.json", vigil.home.spool / "new" / f"{number}.json")

    wait_for(lambda: vigil.client.status()["hooks"]["bad"] == len(tokens), 10, "all to be set aside")

    assert vigil.client.incidents() == []
    assert vigil.get("victim")["axes"]["activity"]["value"] == "unknown"
    assert sorted(os.listdir(vigil.home.spool / "bad")) == ["0.json", "1.json", "2.json"]


def test_an_agent_of_the_version_before_is_heard_without_a_token(vigil: Instance) -> None:
    session = vigil.run("old", "sleep", "1000")
    vigil.kill_daemon()
    vigil.home.hook_key.unlink()  # as a home is that never had one
    vigil.start()
    body = {"session": "old", "launch": session["launch"], "payload": {"hook_event_name": "PermissionRequest"}}
    (vigil.home.spool / "tmp" / "x").write_text(json.dumps(body))
    os.rename(vigil.home.spool / "tmp" / "x", vigil.home.spool / "new" / "x")

    wait_for(lambda: vigil.get("old")["axes"]["activity"]["value"] == "waiting-human", 10, "it to be heard")


@pytest.mark.parametrize("forged", ["pid", "pane"])
def test_a_launch_that_was_made_up_neither_takes_over_a_process_nor_stops_a_sweep(vigil: Instance, forged: str) -> None:
    victim = vigil.run("victim", "sleep", "1000")
    mine = subprocess.Popen(["sleep", "1000"])
    try:
        pid = mine.pid if forged == "pid" else victim["pid"]
        folder = vigil.home.launches / ("smadeup00-1" if forged == "pid" else f"{victim['id']}-9")
        folder.mkdir()
        born = {"agent": [pid, read_start_ticks(pid)], "root": None, "server": None, "pane": "../../x", "boot": read_boot()}
        order = {"runtime": "tmux", "argv": ["x"], "cwd": "/", "session": "made-up", "launch": folder.name}
        (folder / "born.json").write_text(json.dumps(born | ({"pane": "%0"} if forged == "pid" else {})))
        (folder / "launch.json").write_text(json.dumps(order))
        vigil.ok("reap")
        vigil.kill_daemon()
        vigil.start()
        vigil.ok("reap")

        assert [session["name"] for session in vigil.client.sessions(everything=True)] == ["victim"]
        assert vigil.get("victim")["launch"] == victim["launch"]
        vigil.ok("daemon", "stop", "--kill-sessions")
        assert mine.poll() is None, "what is not ours lives on"
    finally:
        mine.kill()
        mine.wait()
