"""Silent agents of every sort, side by side under one daemon: each gets its verdict, and only those that hang are ended.

Scripted agents, real sockets, pipes and signals; thresholds of seconds. What lives on has outlived every one of them.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import Instance, alive, wait_for
from tests.live.silent_agents import (
    ABOUT,
    AGENT,
    BASH,
    BASH_DONE,
    BUSY_CHILD,
    CHILDREN,
    FED_SOCKET,
    FOREVER,
    HOOKS,
    INIT,
    PROMPT,
    RESULT,
    SILENT_SOCKET,
    SOON_S,
    WATCHDOG,
    hook,
    outlive,
    seconds,
    step,
    told,
)

pytestmark = pytest.mark.unhurried
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
DEAF_TO_INT = step('ignore = ["INT"]')
POLITE = step('handle = { signal = "INT", exit = 0 }')
UNTIL = "until = ${until}"
TOOL_USE = step(
    'event = { type = "assistant", message = { content = [{ type = "tool_use", id = "t1", name = "Bash", input = {} }] } }'
)
ASKS = step(
    'event = { type = "control_request", request_id = "r1",'
    ' request = { subtype = "can_use_tool", tool_name = "Bash", tool_use_id = "t1" } }'
)
LIMIT_NEAR = step('event = { type = "rate_limit_event", rate_limit_info = { status = "allowed_warning" } }')
CAUSE = step('print = { text = "FATAL: no space left on /var", stderr = true }')
BUSY = f'argv = ["{sys.executable}", "-c", "import time; e = time.time() + 0.15\\nwhile time.time() < e: pass"]'

# The script of an agent in Python: its tool's shell is gone, and a grandchild has the pipe.
LEAK = (
    HOOKS
    + """
hook(hook_event_name="UserPromptSubmit", prompt="x")
hook(hook_event_name="PreToolUse", tool_name="Bash", tool_use_id="t1")
tool = subprocess.Popen(["sh", "-c", "sleep 600 & echo started"], stdout=subprocess.PIPE)
tool.wait()
tool.stdout.read()
hook(hook_event_name="PostToolUse", tool_name="Bash", tool_use_id="t1")
hook(hook_event_name="Stop")
time.sleep(600)
"""
)
# It is in the background of its terminal and reads from that: the kernel stops it (tmux has it ignored in its panes, a shell
# with job control does not). Whoever lets it go on is written down.
TTIN = (
    HOOKS
    + """
signal.signal(signal.SIGTTIN, signal.SIG_DFL)
signal.signal(signal.SIGCONT, lambda *_: open(sys.argv[1], "a").write("x"))
hook(hook_event_name="UserPromptSubmit", prompt="x")
os.setpgid(0, 0)
os.read(0, 1)
time.sleep(600)
"""
)
# It reads prompts, is deaf to an interruption, and leaves at the end of its input.
TALKS = (
    HOOKS
    + """
signal.signal(signal.SIGINT, signal.SIG_IGN)
hook(hook_event_name="UserPromptSubmit", prompt="x")
server = socket.create_server(("127.0.0.1", 0))
ends = socket.create_connection(server.getsockname()), server.accept()
while sys.stdin.readline(): pass
sys.exit(0)
"""
)
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
        CHILDREN + PROMPT + BASH + BUSY_CHILD + FOREVER,
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
            run_others(vigil, folder)
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


def run_others(vigil: Instance, folder: Path) -> None:
    """Run those that are not only silent: they ask in a stream, leave early, leave something behind, are in the background."""
    scripts = {
        "asks-on": INIT + ASKS + step("wait = 0.5") + LIMIT_NEAR + FOREVER,
        "shouts": step("print = { size = 99, stderr = true }", repeat=2000) + CAUSE + step("exit = 1"),
        "gives-up": INIT + TOOL_USE + step("wait = 0.3") + step("exit = 0"),
        "heir": step('child = { argv = ["sleep", "600"], new_session = true }') + step("wait = 1") + step("exit = 0"),
    }
    for name, script in scripts.items():
        (folder / f"{name}.toml").write_text(ABOUT + script)
        more = {"restart": "on-failure", "max_restarts": 4, "backoff_base_s": 0.1} if name == "gives-up" else {}
        kind = "kill" if name == "heir" else "claude"
        vigil.run(name, *AGENT, str(folder / f"{name}.toml"), agent=kind, runtime="headless", **more)
    (folder / "ttin.py").write_text(TTIN)
    vigil.run("ttin", sys.executable, str(folder / "ttin.py"), str(folder / "continued"), agent="kill", runtime="tmux")
    talks = folder / "claude"
    talks.write_text(f"#!{sys.executable}\n{TALKS}")
    talks.chmod(0o755)
    wanted = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"]
    vigil.run("talks", str(talks), *wanted, agent="claude", runtime="headless")


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


def check_a_question_has_a_clock_of_its_own_and_is_no_stall_whatever_is_said_after_it(stage: Instance, name: str) -> None:
    outlive(stage, name)
    reminded = told(stage, name, "session.reminded")
    session = stage.get(name)

    assert reminded[0]["data"]["asked"] == "Bash"
    moments = [seconds(one["at"]) for one in reminded]
    assert all(later - earlier > 5 for earlier, later in pairwise(moments)), "after 2 s, then every 6"
    assert told(stage, name) == []
    assert (session["health"], session["state"]) == ("needs-input", "running")
    assert stage.client.why(name)["verdict"] == "waiting-human"


def check_the_last_line_of_much_that_was_printed_is_in_the_death_record(stage: Instance) -> None:
    death = stage.client.death(stage.wait_death("shouts", within_s=SOON_S)["id"])

    assert (death["cause"], death["exit_code"]) == ("crash", 1)
    wait_for(lambda: stage.client.death(death["id"])["stderr_tail"], SOON_S, "its bundle")
    assert stage.client.death(death["id"])["stderr_tail"][-1] == "FATAL: no space left on /var"


def check_who_leaves_without_a_result_again_and_again_is_given_up(stage: Instance) -> None:
    session = stage.wait_state("gives-up", "failed", within_s=SOON_S)
    deaths = stage.deaths("gives-up")

    assert (session["restarts"]["saturated"], session["hold"]["reason"]) == (True, "saturated")
    assert [(one["cause"], one["exit_code"], one["charged"]) for one in deaths] == [("early-exit", 0, True)] * 5


def check_what_outlives_its_agent_in_a_session_of_its_own_is_kept_shown_and_ended_with_it(stage: Instance) -> None:
    stage.wait_state("heir", "succeeded", within_s=SOON_S)
    (left,) = stage.json("diag", "heir")["processes"]
    assert (left["name"], left["role"]) == ("sleep", "stray")

    stage.client.rm("heir")

    assert not alive(left["pid"])


def check_who_reads_from_the_background_is_stopped_and_nobody_lets_it_go_on(stage: Instance, continued: Path) -> None:
    outlive(stage, "ttin")

    assert {one["data"]["verdict"] for one in told(stage, "ttin")} == {"stopped"}
    assert told(stage, "ttin", "session.remedy") == []
    assert stage.get("ttin")["axes"]["process"]["value"] == "stopped"
    assert not continued.exists()


def check_who_reads_prompts_is_told_by_the_end_of_its_input_before_it_is_ended(stage: Instance) -> None:
    death = stage.wait_death("talks", within_s=SOON_S)

    assert [one["data"]["step"] for one in told(stage, "talks", "session.remedy")] == ["interrupt", "close-stdin"]
    assert told(stage, "talks")[0]["data"]["verdict"] == "upstream-stall"
    assert (death["cause"], death["exit_code"], death["signal"]) == ("stalled", 0, None)


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


Scenes = Sequence[tuple[Any, ...]]
ONCE: Scenes = [()]
CHECKS: list[tuple[Callable[..., None], Scenes]] = [
    (check_who_hangs_is_told_again_and_again_and_not_touched_unless_that_is_wanted, WARNED),
    (check_the_process_that_hangs_is_ended_and_its_agent_goes_on, [("reads", "blocked-child"), ("leaks", "leaked-pipe")]),
    (check_the_last_line_of_much_that_was_printed_is_in_the_death_record, ONCE),
    (check_who_leaves_without_a_result_again_and_again_is_given_up, ONCE),
    (check_what_outlives_its_agent_in_a_session_of_its_own_is_kept_shown_and_ended_with_it, ONCE),
    (check_a_second_run_that_hangs_before_its_first_word_is_told_of_the_right_process, ONCE),
    (check_why_shows_the_verdict_its_evidence_what_was_ruled_out_and_what_follows, ONCE),
    (check_an_agent_that_finished_and_lingers_is_ended_and_counts_as_finished, ONCE),
    (check_who_hangs_is_ended_where_that_is_wanted_from_the_cheapest_remedy_up, SICK),
    (check_who_works_thinks_or_waits_is_left_alone, WELL),
    (check_who_reads_prompts_is_told_by_the_end_of_its_input_before_it_is_ended, ONCE),
    (check_a_question_has_a_clock_of_its_own_and_is_no_stall_whatever_is_said_after_it, [("asks",), ("asks-on",)]),
    (check_who_is_limited_is_shown_so_until_that_is_over, ONCE),
    (check_an_agent_that_goes_on_after_its_result_is_left_alone, ONCE),
]


def test_silent_agents_of_every_sort_get_each_its_verdict_and_only_those_that_hang_are_ended(
    stage: Instance, tmp_path: Path
) -> None:
    failures = []
    background: Scenes = [(tmp_path / "continued",)]
    checks = [*CHECKS, (check_who_reads_from_the_background_is_stopped_and_nobody_lets_it_go_on, background)]
    for check, scenes in checks:
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


def test_a_stall_is_treated_soon_after_the_person_who_looked_at_it_has_left(vigil: Instance, tmp_path: Path) -> None:
    vigil.config.write_text("[watchdog]\nstall_after = 2\nliveness_timeout = 4\nstall_auto_kill = true\n")
    (tmp_path / "a.toml").write_text(ABOUT + DEAF_TO_INT + PROMPT + FOREVER)
    socket = str(vigil.home.server_socket(vigil.run("a", *AGENT, str(tmp_path / "a.toml"))["launch"]))
    person = subprocess.Popen(["tmux", "-S", socket, "-C", "attach"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: told(vigil, "a"), SOON_S, "a warning")
        spared = "is not touched: a person is attached"
        wait_for(lambda: spared in str(vigil.client.why("a")["next"]), 40, spared, lambda: vigil.client.why("a"))
        passes = vigil.client.status()["sweep"]["count"]
        wait_for(lambda: vigil.client.status()["sweep"]["count"] > passes, 20, "a sweep, of which the next is far away")
        before = remedies(vigil)  # one may have been tried before they were seen, and spared
    finally:
        person.communicate(b"detach\n", timeout=10)
    left_at = time.monotonic()
    wait_for(lambda: len(remedies(vigil)) > len(before), SOON_S, "a remedy")

    assert time.monotonic() - left_at < 6


def remedies(vigil: Instance) -> list[dict[str, Any]]:
    return [event for event in vigil.client.events("a") if event["kind"] == "session.remedy"]


def test_a_daemon_that_was_stopped_concludes_nothing_from_that_and_says_that_it_was_late(
    vigil: Instance, tmp_path: Path
) -> None:
    vigil.config.write_text(f"[watchdog]{WATCHDOG}stall_auto_kill = true\n".replace("stall_after = 3", "stall_after = 6"))
    opened = {"turn": "", "tool": BASH, "mcp": hook("PreToolUse", tool_name="mcp__jira__search", tool_use_id="m1")}
    for name, tool in opened.items():
        (tmp_path / f"{name}.toml").write_text(ABOUT + DEAF_TO_INT + PROMPT + tool + FOREVER)
        vigil.run(name, *AGENT, str(tmp_path / f"{name}.toml"), runtime="headless")
    for name in opened:
        wait_for(lambda name=name: vigil.get(name)["open"]["turn"], SOON_S, "its turn")  # type: ignore[misc]
    daemon = vigil.daemon_pid

    os.kill(daemon, signal.SIGSTOP)
    began = time.monotonic()
    wait_for(lambda: time.monotonic() - began > 12, SOON_S, "every threshold to have passed, and two windows")
    os.kill(daemon, signal.SIGCONT)

    gap = vigil.wait_event("daemon.gap")
    assert gap["data"]["lasted_s"] > 10
    (late,) = wait_for(
        lambda: [one for one in vigil.client.incidents() if one["kind"] == "late-daemon"], 5, "the incident of it"
    )
    assert (late["severity"], late["session"]) == ("warning", None) and "stood still for 1" in late["why"]
    found = {stall["verdict"] for name in opened if (stall := vigil.get(name)["stall"]) is not None}
    assert found <= {"supervisor-late", "tool-running"}, "late itself, or silent for no longer than a tool may be"
    assert all(told(vigil, name) == [] for name in opened)
    for name in opened:
        warning = wait_for(lambda name=name: told(vigil, name), SOON_S, "the warning that comes in the end")[0]  # type: ignore[misc]
        assert seconds(warning["at"]) - seconds(gap["at"]) > 2, "the time it missed is nobody's silence"
        assert warning["data"]["silent_s"] < 10, warning
        treated = told(vigil, name, "session.remedy")
        assert all(seconds(one["at"]) - seconds(gap["at"]) > 5 for one in treated), "and nothing was done for it"
    assert vigil.json("incidents", late["id"])["resolution"].startswith("the ")
