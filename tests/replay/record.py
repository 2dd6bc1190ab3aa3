"""Record the recordings anew, from real daemons and scripted agents: `python -m tests.replay.record [NAME…]`.

To be done when a policy was changed on purpose, after `vigil replay` has shown that nothing else changed. Takes two minutes.
"""

from __future__ import annotations

import getpass
import os
import re
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from tests.live.instance import Instance, Json, kill, resume, wait_for
from vigil.kernel import process

FOLDER = Path(__file__).parent / "recordings"
BOOT = "00000000-0000-0000-0000-000000000000:1"
CONFIG = """
[agents.inner]
process = ["vigil"]

[routes.me]
exec = ["/bin/true"]

[[ladder]]
severity = "urgent"
steps = [{ route = "me", after = "0s" }]
"""


def crash_loop(vigil: Instance) -> None:
    """An agent crashes until its restarts are used up; another one finishes."""
    run(vigil, "loop", "vigil", "fake-agent", "exits-at-birth", restart="always", max_restarts=2, backoff_base_s=1.0)
    run(vigil, "done", "vigil", "fake-agent", "finishes", "--set", "lines=1", runtime="headless")
    wait_state(vigil, "loop", "failed")
    wait_state(vigil, "done", "succeeded")
    vigil.ok("reset", "loop")
    wait_state(vigil, "loop", "crashed")
    vigil.ok("stop", "loop")


def wedged_server(vigil: Instance) -> None:
    """A tmux server is stopped until its session is stuck, and goes on."""
    run(vigil, "hung", "vigil", "fake-agent", "silent", restart="on-failure")
    server = wait_state(vigil, "hung", "running")["server_pid"]
    os.kill(server, signal.SIGSTOP)
    try:
        wait_state(vigil, "hung", "suspect", within_s=60)
        wait_state(vigil, "hung", "stuck", within_s=120)
    finally:
        resume(server)
    wait_state(vigil, "hung", "running", within_s=30)


def killed_below_its_shell(vigil: Instance) -> None:
    """An agent below a shell is killed; the shell is ended before its replacement. A server is killed with its agent."""
    command = ("sh", "-c", "vigil fake-agent silent; exec sleep 1000")
    run(vigil, "inner", *command, agent="inner", restart="on-failure", backoff_base_s=1.0)
    run(vigil, "served", "vigil", "fake-agent", "silent")
    first = wait_state(vigil, "inner", "running")
    kill(first["pid"], signal.SIGKILL)
    wait_state(vigil, "inner", "crashed")
    wait_state(vigil, "inner", "running")
    kill(wait_state(vigil, "served", "running")["server_pid"], signal.SIGKILL)
    vigil.wait_death("served")


def operators_verbs(vigil: Instance) -> None:
    """What an operator can ask for, of sessions that the daemon met when it started."""
    for verb in ("stop", "start", "restart"):
        vigil.ok(verb, "kept")
        wait_state(vigil, "kept", "stopped" if verb == "stop" else "running")
    run(vigil, "stubborn", "vigil", "fake-agent", "works", runtime="headless")
    vigil.ok("rm", "stubborn")
    vigil.ok("rm", "kept")
    vigil.ok("rm", "over")


def before_operators_verbs(vigil: Instance) -> None:
    """Leave one session that lives and one that is over to the daemon that records."""
    run(vigil, "kept", "vigil", "fake-agent", "silent")
    run(vigil, "over", "vigil", "fake-agent", "exits-at-birth")
    wait_state(vigil, "over", "failed")
    vigil.ok("daemon", "stop")


SCENES: dict[str, Callable[[Instance], None]] = {
    "crash-loop": crash_loop,
    "wedged-server": wedged_server,
    "killed-below-its-shell": killed_below_its_shell,
    "operators-verbs": operators_verbs,
}
BEFORE: dict[str, Callable[[Instance], None]] = {"operators-verbs": before_operators_verbs}


def run(vigil: Instance, name: str, *command: str, **options: object) -> None:
    """Declare a session whose command names nothing of this machine."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    vigil.run(name, *command, cwd="/tmp", env=vigil.env | {"PATH": path}, **options)


def wait_state(vigil: Instance, name: str, *states: str, within_s: float = 30.0) -> Json:
    """Wait until a session is in one of these states, without having it looked at: each look would be recorded."""

    def find() -> Json | None:
        found = vigil.client.sessions(everything=True)
        return next((one for one in found if one["name"] == name and one["state"] in states), None)

    return wait_for(find, within_s, f"{name} to be {' or '.join(states)}")


def record(name: str) -> None:
    """Play one scene before a daemon that records, and keep the recording."""
    vigil = Instance()
    file = vigil.path / "recording"
    try:
        vigil.config.write_text(CONFIG)
        if name in BEFORE:
            BEFORE[name](vigil)
        vigil.ok("daemon", "start", "--record", str(file))
        SCENES[name](vigil)
        vigil.ok("daemon", "stop", "--kill-sessions")
        (FOLDER / f"{name}.jsonl").write_text(scrubbed(file.read_text("ascii"), vigil))
    finally:
        vigil.destroy()


def scrubbed(text: str, vigil: Instance) -> str:
    """Return a recording without what names this machine; refuse one that still does."""
    text = text.replace(process.read_boot(), BOOT).replace(str(vigil.path), "/tmp/vigil")
    # A launch has a `root`, whoever records it.
    ours = {str(Path.home()), str(Path(sys.prefix)), str(Path.cwd()), socket.gethostname(), getpass.getuser()}
    words = ours - {"/", "", "root"}
    found = sorted(word for word in words if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text))  # a host may be called `a`
    assert not found, f"the recording names {found}"
    return text


if __name__ == "__main__":
    for scene in sys.argv[1:] or SCENES:
        record(scene)
        print(f"{scene}: {(FOLDER / f'{scene}.jsonl').stat().st_size} bytes")
