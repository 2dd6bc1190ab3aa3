"""Silent agents of every sort, side by side under one daemon: each gets its verdict, and only those that hang are ended.

Scripted agents, real sockets, pipes and signals; thresholds of seconds. What lives on has outlived every one of them.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import Instance, Json, alive, wait_for

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
CONFIG = f"""
[watchdog]
{WATCHDOG}
[agents.keep]
command = ["true"]
[agents.kill]
command = ["true"]
[agents.kill.watchdog]
stall_auto_kill = true
[agents.claude.watchdog]
stall_auto_kill = true
"""
SOON_S = 60.0
OUTLIVED_S = 15.0  # longer than any threshold and two windows


def hook(name: str, **more: str) -> str:
    fields = "".join(f', {key} = "{value}"' for key, value in more.items())
    return f'[[step]]\nhook = {{ hook_event_name = "{name}"{fields} }}\n'


def step(act: str) -> str:
    return f"[[step]]\n{act}\n"


PROMPT = hook("UserPromptSubmit", prompt="x")
BASH = hook("PreToolUse", tool_name="Bash", tool_use_id="t1")
BASH_DONE = hook("PostToolUse", tool_name="Bash", tool_use_id="t1")
FOREVER = step('wait = "forever"')
SILENT_SOCKET = step("listen = 1") + step("connect = {}")
FED_SOCKET = step("listen = 1") + step('connect = { send = "x", every = 0.2 }')
DEAF_TO_INT = step('ignore = ["INT"]')
RESULT = step('event = { type = "system", subtype = "init", session_id = "c1", model = "m" }') + step(
    'event = { type = "result", subtype = "success", is_error = false, session_id = "c1", num_turns = 1, result = "done" }'
)
CHILDREN = step('child = { argv = ["sleep", "600"], count = 12 }') + step("wait = 3")
POLITE = step('handle = { signal = "INT", exit = 0 }')
UNTIL = "until = ${until}"
BUSY = f'argv = ["{sys.executable}", "-c", "import time; e = time.time() + 0.15\\nwhile time.time() < e: pass"]'

# The script of an agent in Python, where a scenario cannot say it: its tool's shell is gone, and a grandchild has the pipe.
LEAK = """
import json, os, subprocess, sys, time
def hook(**event):
    body = {"session": os.environ["VIGIL_SESSION"], "launch": os.environ["VIGIL_LAUNCH"], "event": event}
    name = f"{time.time_ns()}-{os.getpid()}.json"
    path = os.path.join(os.environ["VIGIL_SPOOL"], "new")
    open(os.path.join(path, "." + name), "w").write(json.dumps(body))
    os.rename(os.path.join(path, "." + name), os.path.join(path, name))
hook(hook_event_name="UserPromptSubmit", prompt="x")
hook(hook_event_name="PreToolUse", tool_name="Bash", tool_use_id="t1")
tool = subprocess.Popen(["sh", "-c", "sleep 600 & echo started"], stdout=subprocess.PIPE)
tool.wait()
tool.stdout.read()
hook(hook_event_name="PostToolUse", tool_name="Bash", tool_use_id="t1")
hook(hook_event_name="Stop")
time.sleep(600)
"""
SECOND = f"""
if [ -e "$0.ran" ]; then exec sleep 600; fi
touch "$0.ran"
exec {" ".join(AGENT)} "$1"
"""

# A name, the kind of agent, what it plays; the verdict, and whether it is ended for it.
SCENES: list[tuple[str, str, str, str, bool]] = [
    ("thinks", "kill", PROMPT + FED_SOCKET + FOREVER, "thinking", False),
    ("wedged", "kill", DEAF_TO_INT + PROMPT + BASH + BASH_DONE + SILENT_SOCKET + FOREVER, "wedged-after-tool", True),
    ("network", "keep", PROMPT + FOREVER, "network-dead", False),
    ("ticks", "keep", PROMPT + SILENT_SOCKET + '[[step]]\nwait = 0.2\nrepeat = "forever"\n', "upstream-stall", False),
    ("builds", "kill", PROMPT + f'[[step]]\nchild = {{ {BUSY}, wait = true }}\nrepeat = "forever"\n', "working", False),
    (
        "tests",
        "kill",
        CHILDREN + PROMPT + BASH + step("child = { scenario = 'busy', set = { fraction = 0.3 } }") + FOREVER,
        "tool-running",
        False,
    ),
    ("asks", "kill", PROMPT + hook("PermissionRequest", tool_name="Bash") + step("wait = 0.5")
     + hook("Notification", notification_type="auth_success") + FOREVER, "waiting-human", False),
    ("waits", "kill", PROMPT + step(f'hook = {{ activity = "waiting-timer", {UNTIL} }}') + FOREVER, "waiting-timer", False),
    ("limited", "kill", PROMPT + step(f'hook = {{ activity = "throttled", {UNTIL} }}') + FOREVER, "throttled", False),
    ("spins", "kill", step('ignore = ["INT", "TERM"]') + PROMPT + step('burn = "forever"'), "spinning", True),
    ("mcp", "keep", PROMPT + hook("PreToolUse", tool_name="mcp__jira__search", tool_use_id="m1")
     + step('burn = { seconds = "forever", fraction = 0.3 }'), "tool-overrun", False),
    ("stopped", "kill", PROMPT + SILENT_SOCKET + FOREVER, "stopped", False),
    ("lost", "kill", PROMPT + hook("PreToolUse", tool_name="Read", tool_use_id="r1") + FOREVER, "lost-result", True),
    ("polite", "kill", POLITE + PROMPT + SILENT_SOCKET + FOREVER, "upstream-stall", True),
]  # fmt: skip


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Instance]:
    """One daemon with all of them, started together."""
    vigil = Instance()
    folder = tmp_path
    vigil.config.write_text(CONFIG)
    try:
        with neighbour():
            until = time.time() + 600
            for name, kind, script, _, _ in SCENES:
                path = folder / f"{name}.toml"
                path.write_text(ABOUT + script.replace("${until}", str(until)))
                vigil.run(name, *AGENT, str(path), agent=kind, runtime="headless")
            for name, script in (
                ("lingers", RESULT + FOREVER),
                ("goes-on", RESULT + step('burn = "forever"')),
            ):
                path = folder / f"{name}.toml"
                path.write_text(ABOUT + script)
                vigil.run(name, *AGENT, str(path), agent="claude", runtime="headless")
            path = folder / "reads.toml"
            child = step('child = { argv = ["cat"], wait = true }')
            path.write_text(ABOUT + PROMPT + BASH + child + BASH_DONE + hook("Stop") + FOREVER)
            vigil.run("reads", *AGENT, str(path), agent="kill", runtime="tmux")
            (folder / "leak.py").write_text(LEAK)
            vigil.run("leaks", sys.executable, str(folder / "leak.py"), agent="kill", runtime="headless")
            (folder / "second").write_text(SECOND)
            (folder / "first.toml").write_text(ABOUT + PROMPT + step("wait = 1") + step("exit = 3"))
            vigil.run(
                "again", "sh", str(folder / "second"), str(folder / "first.toml"), agent="keep", runtime="headless",
                restart="on-failure", backoff_base_s=0.1,
            )  # fmt: skip
            os.kill(vigil.get("stopped")["pid"], signal.SIGSTOP)
            yield vigil
    finally:
        vigil.destroy()


class neighbour:
    """A process beside them with fifty busy connections: this one."""

    def __enter__(self) -> None:
        self.pairs = []
        with socket.create_server(("127.0.0.1", 0)) as listener:
            for _ in range(50):
                ours = socket.create_connection(listener.getsockname())
                self.pairs.append((ours, listener.accept()[0]))
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._talk)
        self.thread.start()

    def _talk(self) -> None:
        while not self.over.wait(0.2):
            for ours, theirs in self.pairs:
                ours.send(b"x")
                theirs.recv(1)

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        for pair in self.pairs:
            for one in pair:
                one.close()


def told(vigil: Instance, name: str, kind: str = "session.stalled") -> list[Json]:
    return [event for event in vigil.client.events(name) if event["kind"] == kind]


def outlive(vigil: Instance, name: str) -> None:
    """Wait until a session has lived through every threshold."""
    started = vigil.get(name)["started_at"]
    wait_for(lambda: time.time() - _seconds(started) > OUTLIVED_S, SOON_S, f"{name} to have lived on")


def _seconds(moment: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(moment).timestamp()


SICK = [(name, verdict) for name, _, _, verdict, killed in SCENES if killed]
WARNED = [("network", "network-dead"), ("ticks", "upstream-stall"), ("mcp", "tool-overrun"), ("stopped", "stopped")]
WELL = [("thinks", "thinking"), ("builds", "working"), ("tests", "tool-running"), ("waits", "waiting-timer")]


def check_who_works_thinks_or_waits_is_left_alone(stage: Instance, name: str, verdict: str) -> None:
    outlive(stage, name)
    why = stage.client.why(name)

    assert why["verdict"] == verdict, why
    assert told(stage, name) == []
    assert stage.get(name)["health"] == "ok"


def check_who_hangs_is_told_again_and_again_and_not_touched_unless_that_is_wanted(
    stage: Instance, name: str, verdict: str
) -> None:
    warnings = wait_for(lambda: told(stage, name) if len(told(stage, name)) >= 2 else None, SOON_S, f"two warnings of {name}")
    session = stage.get(name)
    incidents = [one for one in stage.client.incidents() if one["session"] == name]

    assert {warning["data"]["verdict"] for warning in warnings} == {verdict}, warnings
    assert warnings[1]["data"]["changed"]
    assert [one["kind"] for one in incidents] == ["stalled"], "one incident for one condition"
    assert (session["health"], session["state"]) == ("stalled", "running")
    assert alive(session["pid"])
    assert told(stage, name, "session.remedy") == []


def check_who_hangs_is_ended_where_that_is_wanted_from_the_cheapest_remedy_up(stage: Instance, name: str, verdict: str) -> None:
    death = stage.wait_death(name, within_s=SOON_S)
    steps = [event["data"]["step"] for event in told(stage, name, "session.remedy")]

    assert told(stage, name)[0]["data"]["verdict"] == verdict
    assert (death["cause"], death["charged"]) == ("stalled", True), death
    assert steps[0] == "interrupt"
    assert death["intent"] is not None
    if name == "polite":
        assert steps == ["interrupt"], "one that leaves when it is asked to is not killed"
    if name == "spins":
        assert (steps, death["signal"]) == (["interrupt", "end"], signal.SIGKILL)


def check_a_question_has_a_clock_of_its_own_and_is_no_stall(stage: Instance) -> None:
    reminded = wait_for(lambda: told(stage, "asks", "session.reminded"), SOON_S, "a reminder")
    session = stage.get("asks")

    assert reminded[0]["data"]["asked"] == "Bash"
    assert told(stage, "asks") == []
    assert session["health"] == "needs-input"
    assert stage.client.why("asks")["verdict"] == "waiting-human"


def check_who_is_limited_is_shown_so_until_that_is_over(stage: Instance) -> None:
    outlive(stage, "limited")

    assert stage.get("limited")["health"] == "throttled"
    assert told(stage, "limited") == []


def check_an_agent_that_finished_and_lingers_is_ended_and_counts_as_finished(stage: Instance) -> None:
    death = stage.wait_death("lingers", within_s=SOON_S)

    assert (death["cause"], death["charged"]) == ("finished", False)
    assert told(stage, "lingers")[0]["data"]["verdict"] == "limbo"
    assert stage.get("lingers")["state"] == "succeeded"


def check_an_agent_that_goes_on_after_its_result_is_left_alone(stage: Instance) -> None:
    outlive(stage, "goes-on")

    assert told(stage, "goes-on") == []
    assert stage.get("goes-on")["state"] == "running"


def check_the_process_that_hangs_is_ended_and_its_agent_goes_on(stage: Instance, name: str, verdict: str) -> None:
    over = wait_for(
        lambda: told(stage, name, "session.stall-over"), SOON_S, f"{name} to go on", lambda: stage.client.events(name)
    )
    remedies = told(stage, name, "session.remedy")

    assert told(stage, name)[0]["data"]["verdict"] == verdict
    assert [event["data"]["step"] for event in remedies] == ["end-child"]
    assert over[0]["data"]["after"] == "end-child"
    session = wait_for(lambda: stage.get(name) if not stage.get(name)["open"]["turn"] else None, SOON_S, "the end of its turn")
    assert (session["state"], session["health"], session["incidents"]) == ("running", "ok", [])


def check_a_second_run_that_hangs_before_its_first_word_is_told_of_the_right_process(stage: Instance) -> None:
    warning = wait_for(lambda: told(stage, "again"), SOON_S, "a warning")[0]

    assert warning["data"]["verdict"] == "start-blocked"
    assert warning["launch"] == stage.get("again")["launch"]
    assert len(stage.deaths("again")) == 1


def check_why_shows_the_verdict_its_evidence_what_was_ruled_out_and_what_follows(stage: Instance) -> None:
    wait_for(lambda: told(stage, "ticks"), SOON_S, "a warning")
    found = stage.json("why", "ticks")
    facts = {proof["fact"]: proof for proof in found["evidence"]}

    assert (found["verdict"], found["confidence"]) == ("upstream-stall", "likely")
    assert facts["own connections"]["source"] == "sock_diag"
    assert facts["own connections"]["value"] == "2", "and not those of its neighbour"
    assert facts["cpu of all below"]["age_s"] is not None
    assert any("stall_auto_kill" in step["what"] for step in found["next"]), found["next"]
    assert "upstream-stall" in stage.ok("why", "ticks")


ONCE: list[tuple[str, str]] = [()]  # type: ignore[list-item]
CHECKS: list[tuple[Callable[..., None], list[tuple[str, str]]]] = [
    (check_who_hangs_is_told_again_and_again_and_not_touched_unless_that_is_wanted, WARNED),
    (check_the_process_that_hangs_is_ended_and_its_agent_goes_on, [("reads", "blocked-child"), ("leaks", "leaked-pipe")]),
    (check_a_question_has_a_clock_of_its_own_and_is_no_stall, ONCE),
    (check_a_second_run_that_hangs_before_its_first_word_is_told_of_the_right_process, ONCE),
    (check_why_shows_the_verdict_its_evidence_what_was_ruled_out_and_what_follows, ONCE),
    (check_an_agent_that_finished_and_lingers_is_ended_and_counts_as_finished, ONCE),
    (check_who_hangs_is_ended_where_that_is_wanted_from_the_cheapest_remedy_up, SICK),
    (check_who_works_thinks_or_waits_is_left_alone, WELL),
    (check_who_is_limited_is_shown_so_until_that_is_over, ONCE),
    (check_an_agent_that_goes_on_after_its_result_is_left_alone, ONCE),
]


def test_silent_agents_of_every_sort_get_each_its_verdict_and_only_those_that_hang_are_ended(stage: Instance) -> None:
    failures = []
    for check, scenes in CHECKS:
        for scene in scenes:
            try:
                check(stage, *scene)
            except AssertionError as error:  # the others are told too
                failures.append(f"{check.__name__}{scene}: {error}")
    assert not failures, "\n\n".join(failures)


def test_a_configuration_holds_at_once_and_a_wrong_one_is_refused_with_its_bounds(vigil: Instance, tmp_path: Path) -> None:
    scene = tmp_path / "a.toml"
    scene.write_text(ABOUT + PROMPT + FOREVER)
    vigil.run("a", *AGENT, str(scene), runtime="headless")
    wait_for(lambda: vigil.get("a")["open"]["turn"], SOON_S, "its turn")

    vigil.config.write_text("[watchdog]\nstall_after = 0.5\n")
    refused = vigil.wait_event("config.refused")
    vigil.config.write_text(f"[watchdog]{WATCHDOG}")
    warning = wait_for(lambda: told(vigil, "a"), SOON_S, "a warning")[0]

    assert "0.5 is out of range: 1 s to 24 h" in json.dumps(refused)
    assert warning["data"]["verdict"] == "network-dead"


def test_a_daemon_that_was_stopped_concludes_nothing_from_that_and_says_that_it_was_late(
    vigil: Instance, tmp_path: Path
) -> None:
    vigil.config.write_text(f"[watchdog]{WATCHDOG}".replace("stall_after = 3", "stall_after = 6"))
    scene = tmp_path / "a.toml"
    scene.write_text(ABOUT + PROMPT + FOREVER)
    vigil.run("a", *AGENT, str(scene), runtime="headless")
    wait_for(lambda: vigil.get("a")["open"]["turn"], SOON_S, "its turn")
    daemon = vigil.daemon_pid

    os.kill(daemon, signal.SIGSTOP)
    began = time.monotonic()
    wait_for(lambda: time.monotonic() - began > 8, SOON_S, "every threshold to have passed")
    os.kill(daemon, signal.SIGCONT)

    gap = vigil.wait_event("daemon.gap")
    warning = wait_for(lambda: told(vigil, "a"), SOON_S, "the warning that comes in the end")[0]
    assert gap["data"]["lasted_s"] > 6
    assert _seconds(warning["at"]) - _seconds(gap["at"]) > 2, "the time it missed is nobody's silence"
    said: Any = warning["data"]["silent_s"]
    assert said < 8
