"""Record the recordings anew, from real daemons and scripted agents: `python -m tests.replay.record [NAME…]`.

To be done when a policy was changed on purpose, after `vigil replay` has shown that nothing else changed. Takes five minutes.
"""

from __future__ import annotations

import getpass
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tests.live.instance import Instance, Json, kill, resume, wait_for
from tests.live.silent_agents import ABOUT, BASH, BASH_DONE, FOREVER, PROMPT, SILENT_SOCKET, WATCHDOG, hook, step
from vigil.kernel.process import read_boot

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

# What a scene's configuration says besides.
MORE = {
    "reaped-and-woken": """
[reaper]
enabled = false
idle_ttl = "3s"
grace = "1s"
""",
    "stalls-and-remedies": f"""
[agents.kill]
command = ["true"]
[agents.kill.watchdog]
stall_auto_kill = true
[watchdog]
{WATCHDOG}
""",
}
# An agent that has one turn of its conversation and waits; it is installed as `claude`, and knows the flags it needs.
CLAUDE = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in --session-id | --resume) id=$2 ;; esac
    shift
done
exec vigil fake-agent "$HOME/scene.toml" --set conversation="$id" --set home="$HOME"
"""
ENTRY = (
    '{"type": "user", "uuid": "u1", "sessionId": "${conversation}", "cwd": "/tmp", "timestamp": "${now}", '
    '"message": {"role": "user", "content": "x"}}'
)
TALK = {"session_id": "${conversation}"}
CONVERSES = (
    '[vars]\nconversation = ""\nhome = ""\n'
    + hook("SessionStart", source="startup", **TALK)
    + hook("UserPromptSubmit", prompt="x", **TALK)
    + step(f"append = {{ path = '${{home}}/.claude/projects/-tmp/${{conversation}}.jsonl', text = '{ENTRY}' }}")
)
LIMIT_S = 20.0
TEAM = """
workspace = "shop"
[[team]]
name = "backend"
[[team.role]]
name = "coder"
replicas = 2
agent = "claude"
runtime = "tmux"
command = ["claude"]
cwd = "/tmp"
restart = "always"
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


def reaped_and_woken(vigil: Instance) -> None:
    """An idle agent is put to sleep by the reaper and woken in its conversation, then anew; one that works is kept."""
    install_claude(vigil)
    play(vigil, CONVERSES + hook("Stop", **TALK) + FOREVER)
    run(vigil, "idle", "claude", agent="claude")
    run(vigil, "works", "vigil", "fake-agent", "works", "--set", "every=0.5")
    wait_for(lambda: classes(vigil)["idle"] == "idle" and classes(vigil)["works"] == "busy", 60, "one to be idle")
    vigil.ok("reap")
    wait_state(vigil, "idle", "parked")
    vigil.ok("wake", "idle")
    wait_activity(vigil, "idle", "idle")
    vigil.ok("hibernate", "idle")
    wait_state(vigil, "idle", "parked")
    vigil.ok("wake", "--fresh", "idle")
    wait_activity(vigil, "idle", "idle")


def limit_of_a_team(vigil: Instance) -> None:
    """An agent meets the limit of its account and exits; a team of that account waits, and comes when the first one works."""
    install_claude(vigil)
    until = datetime.fromtimestamp(int(time.time() + LIMIT_S), UTC).isoformat()
    words = f"You've hit your session limit, resets {until}"
    met = hook("StopFailure", error="rate_limit", last_assistant_message=words, **TALK)
    play(vigil, CONVERSES + met + step("wait = 1") + step("exit = 1"))
    run(vigil, "first", "claude", agent="claude", restart="always")
    wait_state(vigil, "first", "pending")
    play(vigil, CONVERSES + BASH + FOREVER)
    (vigil.path / "vigil.toml").write_text(TEAM)
    vigil.ok("up", "--yes", str(vigil.path / "vigil.toml"))
    for index in range(2):
        wait_state(vigil, f"shop/backend/coder/{index}", "pending")
    wait_state(vigil, "first", "running", within_s=90)
    for index in range(2):
        wait_state(vigil, f"shop/backend/coder/{index}", "running", within_s=90)


def stalls_and_remedies(vigil: Instance) -> None:
    """Silent agents: one leaves when it is interrupted, one goes on without the child that hung, one waits for an answer."""
    polite = step('handle = { signal = "INT", exit = 0 }') + PROMPT + SILENT_SOCKET + FOREVER
    reads = PROMPT + BASH + step('child = { argv = ["cat"], wait = true }') + BASH_DONE + hook("Stop") + FOREVER
    asks = PROMPT + hook("PermissionRequest", tool_name="Bash") + FOREVER
    for name, script in (("polite", polite), ("reads", reads), ("asks", asks)):
        (vigil.path / f"{name}.toml").write_text(ABOUT + script)
        more = {"restart": "on-failure", "backoff_base_s": 1.0} if name == "polite" else {}
        runtime = "tmux" if name == "reads" else "headless"
        run(vigil, name, "vigil", "fake-agent", str(vigil.path / f"{name}.toml"), agent="kill", runtime=runtime, **more)
    for name, kind in {"polite": "session.died", "reads": "session.stall-over", "asks": "session.reminded"}.items():
        wait_for(lambda name=name, kind=kind: logged(vigil, name, kind), 60, f"{kind} of {name}")  # type: ignore[misc]
    wait_state(vigil, "polite", "running")


SCENES: dict[str, Callable[[Instance], None]] = {
    "crash-loop": crash_loop,
    "wedged-server": wedged_server,
    "killed-below-its-shell": killed_below_its_shell,
    "operators-verbs": operators_verbs,
    "reaped-and-woken": reaped_and_woken,
    "limit-of-a-team": limit_of_a_team,
    "stalls-and-remedies": stalls_and_remedies,
}
BEFORE: dict[str, Callable[[Instance], None]] = {"operators-verbs": before_operators_verbs}


def run(vigil: Instance, name: str, *command: str, **options: object) -> None:
    """Declare a session whose command names nothing of this machine."""
    path = f"{Path(sys.executable).parent}:{vigil.env['PATH']}"
    vigil.run(name, *command, cwd="/tmp", env=vigil.env | {"PATH": path}, **options)


def install_claude(vigil: Instance) -> None:
    """Put an agent called `claude` into the path of all that is run from now on; its files are in a home of its own."""
    program = vigil.path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(CLAUDE)
    program.chmod(0o755)
    path = f"{program.parent}:{Path(sys.executable).parent}:{vigil.env['PATH']}"
    vigil.env |= {"HOME": str(vigil.path), "PATH": path}


def play(vigil: Instance, script: str) -> None:
    """Let every `claude` that starts from now on play this."""
    (vigil.path / "scene.toml").write_text(ABOUT + script)


def classes(vigil: Instance) -> dict[str, str]:
    """Return what every session is to the reaper now."""
    return {found["name"]: found["class"] for found in vigil.client.reap(dry_run=True)}


def logged(vigil: Instance, name: str, kind: str) -> list[Json]:
    """Return what the event log says of a session, of one kind."""
    return [event for event in vigil.client.events(name) if event["kind"] == kind]


def wait_activity(vigil: Instance, name: str, activity: str) -> None:
    """Wait until a running session says that it does this."""

    def find() -> bool:
        found = wait_state(vigil, name, "running")
        return bool(found["axes"]["activity"]["value"] == activity)

    wait_for(find, 30, f"{name} to be {activity}")


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
        vigil.config.write_text(CONFIG + MORE.get(name, ""))
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
    text = text.replace(read_boot(), BOOT).replace(str(vigil.path), "/tmp/vigil")
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
