"""What cannot be read is never a reason to act: without /proc, or where nobody may look, a silent agent is told of and lives.

Also a pid that belongs to somebody else now is nobody's agent, and nobody's heir.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.live.instance import Instance, alive, kill, wait_for
from tests.live.silent_agents import (
    ABOUT,
    AGENT,
    FOREVER,
    HOOKS,
    PROMPT,
    SILENT_SOCKET,
    SOON_S,
    WATCHDOG,
    outlive,
    told,
)

CONFIG = f"[watchdog]{WATCHDOG}stall_auto_kill = true\n"
START = "import sys; from pathlib import Path; from vigil.client.starting import start_daemon; from vigil.home import home_at\n"
START += "start_daemon(home_at(Path(sys.argv[1])), Path(sys.argv[2]))"

# Nobody but the kernel may look at it, as with what holds keys in its memory.
HIDDEN = (
    HOOKS
    + """
PR_SET_DUMPABLE = 4
assert ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
hook(hook_event_name="UserPromptSubmit", prompt="x")
time.sleep(600)
"""
)

# A process with a pid of our choice, as one gets it that was born long after another one of it ended.
CLONE = """
import ctypes, os, struct, sys
SYS_clone3, SIGCHLD = 435, 17
wanted = (ctypes.c_int * 1)(int(sys.argv[1]))
arguments = ctypes.create_string_buffer(struct.pack("11Q", 0, 0, 0, 0, SIGCHLD, 0, 0, 0, ctypes.addressof(wanted), 1, 0))
libc = ctypes.CDLL(None, use_errno=True)
pid = libc.syscall(SYS_clone3, arguments, len(arguments) - 1)
if pid == 0:
    os.execvp("sleep", ["sleep", "600"])
if pid < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print(pid, flush=True)
os.waitpid(pid, 0)
"""


def start_under(vigil: Instance, *words: str) -> None:
    """Start the daemon under a command that takes something away from it; skipped where that cannot be done here."""
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        pytest.skip(f"{words[0]} may not do this here")
    subprocess.run([*words, sys.executable, "-c", START, str(vigil.path), str(vigil.config)], check=True, timeout=60)


@contextmanager
def bystander(pid: int) -> Iterator[None]:
    """Somebody else who is given a pid that is free."""
    clone = subprocess.Popen([sys.executable, "-c", CLONE, str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert clone.stdout is not None and clone.stderr is not None
    try:
        if not clone.stdout.readline():
            pytest.skip(f"no pid can be chosen here: {clone.stderr.read().strip()}")
        yield
        assert alive(pid), "it was no business of ours"
        os.kill(pid, signal.SIGKILL)
    finally:
        clone.wait(timeout=20)
        clone.stdout.close()
        clone.stderr.close()


def test_without_proc_a_silent_agent_is_told_of_and_lives(vigil: Instance, tmp_path: Path) -> None:
    vigil.config.write_text(CONFIG)
    (tmp_path / "a.toml").write_text(ABOUT + PROMPT + SILENT_SOCKET + FOREVER)
    for name, runtime in (("a", "headless"), ("b", "tmux")):
        vigil.run(name, *AGENT, str(tmp_path / "a.toml"), runtime=runtime)
        wait_for(lambda name=name: vigil.get(name)["open"]["turn"], SOON_S, "its turn")  # type: ignore[misc]
    pids = [vigil.get(name)["pid"] for name in "ab"]
    vigil.kill_daemon()
    start_under(vigil, "unshare", "--mount", "--propagation", "private")
    inside = ["nsenter", "--target", str(vigil.daemon_pid), "--mount"]
    subprocess.run([*inside, "mount", "-t", "tmpfs", "none", "/proc"], check=True)
    blind_at = time.time()

    wait_for(lambda: time.time() - blind_at > 18, SOON_S, "every threshold to have passed, and a sweep")

    for name, pid in zip("ab", pids, strict=True):
        session = vigil.get(name)
        assert (session["state"], session["pid"], alive(pid)) == ("running", pid, True), vigil.client.events(name)
        assert {one["data"]["confidence"] for one in told(vigil, name)} == {"unknown"}, told(vigil, name)
        assert (told(vigil, name, "session.remedy"), vigil.deaths(name)) == ([], [])
    assert "nothing is known of its processes" in vigil.ok("diag", "a")
    refused = vigil.run_cli("stop", "a")
    assert (refused.returncode, "cannot be read" in refused.stderr, alive(pids[0])) == (4, True, True), refused

    subprocess.run([*inside, "umount", "/proc"], check=True)
    vigil.ok("stop", "a")
    assert not alive(pids[0])


def test_where_nobody_may_look_a_silent_agent_is_told_of_and_lives(vigil: Instance, tmp_path: Path) -> None:
    vigil.config.write_text(CONFIG)
    start_under(vigil, "setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace")
    (tmp_path / "hidden.py").write_text(HIDDEN)
    vigil.run("a", sys.executable, str(tmp_path / "hidden.py"), runtime="headless")

    outlive(vigil, "a")

    session, warnings = vigil.get("a"), told(vigil, "a")
    assert {one["data"]["confidence"] for one in warnings} == {"unknown"}, warnings
    assert (told(vigil, "a", "session.remedy"), session["state"]) == ([], "running")
    assert any("ermission" in line for line in vigil.json("diag", "a")["unknown"])


def test_a_pid_that_is_somebody_elses_by_now_is_left_alone(vigil: Instance) -> None:
    vigil.run("heir", "sh", "-c", "setsid sleep 1000 & exit 0", runtime="headless")
    vigil.run("agent", "sleep", "1000", runtime="headless")
    vigil.wait_state("heir", "succeeded")
    (left,) = [one["pid"] for one in vigil.json("diag", "heir")["processes"]]
    agent = vigil.get("agent")["pid"]
    kill(left, signal.SIGKILL)
    wait_for(lambda: not os.path.exists(f"/proc/{left}"), SOON_S, "its pid to be free")

    with bystander(left):
        vigil.client.rm("heir")

    vigil.kill_daemon()
    vigil.kill_keeper()
    kill(agent, signal.SIGKILL)
    wait_for(lambda: not os.path.exists(f"/proc/{agent}"), SOON_S, "its pid to be free")
    with bystander(agent):
        vigil.start()
        death = vigil.wait_death("agent")
        assert (death["cause"], vigil.get("agent")["state"]) == ("unobserved", "failed")
        vigil.client.rm("agent")
