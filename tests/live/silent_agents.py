"""Silent agents to play before a real daemon: hooks and steps of scenarios, thresholds of seconds, what is asked of them."""

from __future__ import annotations

import sys
import time
from datetime import datetime

from tests.live.instance import Instance, Json, wait_for

ABOUT = 'about = "one of many"\n'
AGENT = [sys.executable, "-m", "vigil.fake_agent"]
WATCHDOG = """
stall_after = 3
tool_timeout = 4
mcp_tool_timeout = 5
subagent_timeout = 5
approval_reminder = 2
stall_repeat_seconds = 3
liveness_timeout = 4
"""
SOON_S = 60.0
OUTLIVED_S = 15.0  # longer than any threshold and two windows


def hook(name: str, **more: str) -> str:
    """Return a step that says something as a hook."""
    fields = "".join(f', {key} = "{value}"' for key, value in more.items())
    return f'[[step]]\nhook = {{ hook_event_name = "{name}"{fields} }}\n'


def step(act: str, **more: object) -> str:
    """Return a step."""
    return f"[[step]]\n{act}\n" + "".join(f"{key} = {value}\n" for key, value in more.items())


PROMPT = hook("UserPromptSubmit", prompt="x")
BASH = hook("PreToolUse", tool_name="Bash", tool_use_id="t1")
BASH_DONE = hook("PostToolUse", tool_name="Bash", tool_use_id="t1")
FOREVER = step('wait = "forever"')
SILENT_SOCKET = step("listen = 1") + step("connect = {}")
FED_SOCKET = step("listen = 1") + step('connect = { send = "x", every = 0.2 }')
CHILDREN = step('child = { argv = ["sleep", "600"], count = 12 }') + step("wait = 3")
BUSY_CHILD = step("child = { scenario = 'busy', set = { fraction = 0.3 } }")
INIT = step('event = { type = "system", subtype = "init", session_id = "c1", model = "m" }')
RESULT = INIT + step(
    'event = { type = "result", subtype = "success", is_error = false, session_id = "c1", num_turns = 1, result = "done" }'
)

# For an agent in Python, where a scenario cannot say what it does.
HOOKS = """
import ctypes, json, os, signal, socket, subprocess, sys, time
def hook(**event):
    body = {"session": os.environ["VIGIL_SESSION"], "launch": os.environ["VIGIL_LAUNCH"], "token": os.environ["VIGIL_TOKEN"]}
    body |= {"event": event}
    name = f"{time.time_ns()}-{os.getpid()}.json"
    path = os.path.join(os.environ["VIGIL_SPOOL"], "new")
    open(os.path.join(path, "." + name), "w").write(json.dumps(body))
    os.rename(os.path.join(path, "." + name), os.path.join(path, name))
"""


def told(vigil: Instance, name: str, kind: str = "session.stalled") -> list[Json]:
    """Return what was logged of a session of one kind."""
    return [event for event in vigil.client.events(name) if event["kind"] == kind]


def outlive(vigil: Instance, name: str) -> None:
    """Wait until a session has lived through every threshold."""
    started = vigil.get(name)["started_at"]
    wait_for(lambda: time.time() - seconds(started) > OUTLIVED_S, SOON_S, f"{name} to have lived on")


def seconds(moment: str) -> float:
    """Return a moment of the interface in seconds."""
    return datetime.fromisoformat(moment).timestamp()
