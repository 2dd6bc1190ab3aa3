"""Real failures, each beside the look-alike that must get the other verdict, played side by side before one daemon.

The numbers are those of the catalogue in `tests/unit/core/rules/stall/test_verdict.py`, where all of it is judged as values;
here is what can be played. What only looks like a failure may be ended, and is not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
    step,
    told,
)
from vigil.core.rules.stall.verdict import WELL

pytestmark = pytest.mark.unhurried

CONFIG = f"""
[watchdog]
{WATCHDOG}
stall_auto_kill = true
[agents.keep]
command = ["true"]
watchdog = {{ stall_auto_kill = false }}
[agents.patient]
command = ["true"]
watchdog = {{ mcp_tool_timeout = 600, subagent_timeout = 600 }}
"""
# Agents in Python, where a scenario cannot say what they do; the first argument says which.
PLAYS = (
    HOOKS
    + r"""
def prompt():
    hook(hook_event_name="UserPromptSubmit", prompt="x")
def tool(command):
    hook(hook_event_name="PreToolUse", tool_name="Bash", tool_use_id="t1")
    return subprocess.Popen(command, shell=True)
def say(**event):
    print(json.dumps(event), flush=True)
libc = ctypes.CDLL(None)

def chews():  # it reads a huge context
    prompt()
    with open("/dev/zero", "rb", buffering=0) as zeros:
        while True:
            sum(zeros.read(1_000_000))
            time.sleep(0.05)
def loads():  # its tool loads a model, and computes nothing
    prompt()
    tool("while :; do head -c 50000 /dev/zero >/dev/null; sleep 0.2; done")
    time.sleep(600)
def pipes():  # the last of a pipeline waits for input, and the first works
    prompt()
    tool("while :; do head -c 20000 /dev/zero | sha256sum; sleep 0.1; done | cat >/dev/null").wait()
def sleeps_in_kernel():  # the parent of a vfork that never ends cannot be interrupted
    prompt()
    libc.vfork()
    time.sleep(600)
def is_traced():  # its own child is its debugger
    libc.prctl(0x59616D61, -1, 0, 0, 0)  # PR_SET_PTRACER, anybody
    prompt()
    parent = os.getpid()
    if os.fork() == 0:
        assert libc.ptrace(16, parent, 0, 0) == 0  # PTRACE_ATTACH
        time.sleep(600)
    time.sleep(600)
def call(id, name):
    say(type="assistant", message={"content": [{"type": "tool_use", "id": id, "name": name, "input": {}}]})
    say(type="user", message={"content": [{"type": "tool_result", "tool_use_id": id}]})
def calls(times):  # the same tool again and again
    for number in range(int(times)):
        call(f"t{number}", "Glob")
    if int(times) > 200:
        time.sleep(600)
    for number in range(10_000):  # then others, one after the other
        call(f"o{number}", ("Read", "Grep")[number % 2])
        time.sleep(0.3)
def boots():  # slowly
    while True:
        sum(range(2_000_000))
        time.sleep(0.05)

if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:3])
"""
)
HANGS_AT_START = '#!/bin/sh\nsh -c "sleep 600; :"\n'
BOOTS = f"#!{sys.executable}\n{PLAYS.partition('if __name__')[0]}boots()\n"
MUTE = "#!/bin/sh\nexec sleep 600\n"


@dataclass(frozen=True)
class Scene:
    """What one agent plays: a scenario, one of the plays above, or a program that is called `claude`."""

    verdict: str
    script: str = ""
    kind: str = "kill"
    play: str = ""
    program: str = ""
    runtime: str = "headless"


def failure(verdict: str, script: str = "", kind: str = "keep", **more: str) -> Scene:
    return Scene(verdict, script, kind, **more)


def event(text: str, **more: object) -> str:
    return step(f"event = {{ {text} }}", **more)


def declared(activity: str, until_s: float) -> str:
    """Return a step that says plainly what it does, until so long from now."""
    return step(f'hook = {{ activity = "{activity}", until = {time.time() + until_s} }}')


READ = hook("PreToolUse", tool_name="Read", tool_use_id="r1")
MCP = hook("PreToolUse", tool_name="mcp__jira__search", tool_use_id="m1")
MCP_DONE = hook("PostToolUse", tool_name="mcp__jira__search", tool_use_id="m1")
TASK = hook("PreToolUse", tool_name="Task", tool_use_id="a1")
EXPLORES = TASK + hook("SubagentStart", agent_id="x1", agent_type="Explore")
ADAPTER = "child = { argv = ['${python}', '-m', 'vigil.fake_agent', '${folder}/jira.toml'], wait = true }"
TALKS = event('type = "assistant", message = { content = [{ type = "text", text = "Well" }] }')
CALLS_TASK = event('type = "assistant", message = { content = [{ type = "tool_use", id = "a1", name = "Task", input = {} }] }')
CALLS_READ = CALLS_TASK.replace("Task", "Read")
CALLS_MONITOR = CALLS_TASK.replace("Task", "Monitor").replace("input = {}", "input = { timeout_ms = 1800000 }")
CALLS_MCP = CALLS_TASK.replace("Task", "mcp__jira__search")
CALLS_BASH = CALLS_TASK.replace("Task", "Bash")
TICKS = event(
    'type = "tool_progress", tool_use_id = "a1-heartbeat-0", parent_tool_use_id = "a1", heartbeat = true',
    repeat='"forever"',
    every=0.2,
)
COMPACTS = 'type = "system", subtype = "compact_boundary", compact_metadata = { trigger = "auto" }'
RETRIES = event(
    'type = "system", subtype = "api_retry", attempt = 1, max_retries = 10, retry_delay_ms = 600000, error_status = 529'
)
CODEX = event('type = "thread.started", thread_id = "c1"') + event('type = "turn.started"')
RECONNECTS = event('type = "error", message = "Reconnecting... 1/5"', repeat=2, every=0.2)
PROJECT = "${folder}/home/.claude/projects/-"
OWN = f"append = {{ path = '{PROJECT}/c1.jsonl', text = 'more' }}"
SUBAGENTS = f"append = {{ path = '{PROJECT}/c1/subagents/agent-1.jsonl', text = 'more' }}"
GROWS = {"repeat": '"forever"', "every": 0.2}
ALIVE = 'hook = { hook_event_name = "Notification", notification_type = "auth_success" }'
CHILD_SOCKET = "child = { argv = ['${python}', '-m', 'vigil.fake_agent', '${folder}/"
DENIED = hook("PermissionRequest", tool_name="Bash", tool_use_id="t1")
SHELL_READS = step('child = { argv = ["sh", "-c", "cat; :"], wait = true }')
PAIRS: dict[str, tuple[Scene, Scene]] = {
    "1 wedge after a tool's result; long thinking after one": (
        failure("wedged-after-tool", PROMPT + BASH + BASH_DONE + SILENT_SOCKET + FOREVER),
        Scene("thinking", PROMPT + BASH + BASH_DONE + FED_SOCKET + FOREVER),
    ),
    "2 a result that never arrives; a real tool, which needs no connection (7)": (
        failure("lost-result", PROMPT + READ + SILENT_SOCKET + FOREVER),
        Scene("tool-running", PROMPT + BASH + BUSY_CHILD + FOREVER),
    ),
    "3 an MCP tool in a retry loop; a slow query within its time": (
        failure("tool-overrun", PROMPT + MCP + step('burn = { seconds = "forever", fraction = 0.3 }')),
        Scene("tool-running", PROMPT + MCP + step('burn = { seconds = "forever", fraction = 0.1 }'), "patient"),
    ),
    "3b an MCP tool that hangs while its agent's clock ticks on; a command that works meanwhile": (
        failure("tool-overrun", INIT + CALLS_MCP + SILENT_SOCKET + TICKS, "claude"),
        Scene("tool-running", INIT + CALLS_BASH + BUSY_CHILD + TICKS, "claude"),
    ),
    "4 an MCP adapter whose stream went quiet; the model's own stream": (
        failure("tool-overrun", PROMPT + MCP + step(ADAPTER) + MCP_DONE + FED_SOCKET + FOREVER, "kill"),
        failure("upstream-stall", PROMPT + SILENT_SOCKET + FOREVER),
    ),
    "5 the answer stops in the middle; thought at length": (
        failure("upstream-stall", INIT + TALKS + SILENT_SOCKET + FOREVER, "claude"),
        Scene("thinking", INIT + TALKS + FED_SOCKET + FOREVER, "claude"),
    ),
    "7 the connection died without a word; a first answer that comes slowly (6)": (
        failure("network-dead", PROMPT + FOREVER),
        Scene("thinking", PROMPT + FED_SOCKET + FOREVER),
    ),
    "10 computes without end; reads a huge context": (
        failure("spinning", PROMPT + step('burn = "forever"')),
        Scene("working", play="chews"),
    ),
    "12 a child waits for input; a quiet job that loads a model": (
        failure("blocked-child", PROMPT + BASH + step('child = { argv = ["cat"], wait = true }'), runtime="tmux"),
        Scene("tool-running", play="loads"),
    ),
    "12b a child waits for input; the last of a pipeline that works": (
        failure("blocked-child", PROMPT + BASH + SHELL_READS, runtime="tmux"),
        Scene("tool-running", play="pipes"),
    ),
    "13 a command that never ends; a deployment whose log flows": (
        failure("tool-overrun", PROMPT + BASH + step(f"{CHILD_SOCKET}quiet.toml'] }}") + FOREVER),
        Scene("tool-running", PROMPT + BASH + step(f"{CHILD_SOCKET}flows.toml'] }}") + FOREVER),
    ),
    "14 a zombie nobody waits for; one beside a process that works": (
        failure("lost-result", PROMPT + BASH + step('child = { argv = ["true"] }') + SILENT_SOCKET + FOREVER),
        Scene("tool-running", PROMPT + BASH + step('child = { argv = ["true"] }') + BUSY_CHILD + FOREVER),
    ),
    "15 a sub-agent that never answers; one that writes": (
        failure("lost-result", PROMPT + TASK + SILENT_SOCKET + FOREVER),
        Scene("working", INIT + CALLS_TASK + step(SUBAGENTS, **GROWS), "claude"),
    ),
    "16 a sub-agent that runs and does nothing; one whose connection brings bytes": (
        failure("tool-overrun", PROMPT + EXPLORES + SILENT_SOCKET + FOREVER),
        Scene("tool-running", PROMPT + EXPLORES + FED_SOCKET + FOREVER),
    ),
    "17 compaction without end; one": (
        failure("livelock", INIT + event(COMPACTS, repeat=12, every=0.1) + FED_SOCKET + FOREVER, "claude"),
        Scene("thinking", INIT + event(COMPACTS) + FED_SOCKET + FOREVER, "claude"),
    ),
    "18 both its output and its transcript stand still; its transcript grows": (
        failure("upstream-stall", INIT + step(OWN) + SILENT_SOCKET + FOREVER, "claude"),
        Scene("working", INIT + SILENT_SOCKET + step(OWN, **GROWS), "claude"),
    ),
    "19 prints lines that nobody understands; true silence": (
        failure("upstream-stall", PROMPT + step('print = "..."') + SILENT_SOCKET + FOREVER),
        Scene("working", PROMPT + SILENT_SOCKET + step('print = "..."', **GROWS)),
    ),
    "21 signs of life that lead nowhere; the same for a while": (
        failure("livelock", PROMPT + step(ALIVE, **GROWS)),
        Scene("working", PROMPT + step(ALIVE, **GROWS), "patient"),
    ),
    "21b the same tool 210 times; a few times": (
        failure("livelock", kind="claude", play="calls 210"),
        Scene("working", kind="claude", play="calls 40"),
    ),
    "22 cannot be interrupted in the kernel; held by a debugger (23)": (
        failure("uninterruptible", play="sleeps_in_kernel"),
        Scene("working", play="is_traced"),
    ),
    "24 the answer to its question was lost; the question stands": (
        failure("wedged-after-tool", PROMPT + DENIED + BASH_DONE + SILENT_SOCKET + FOREVER),
        Scene("waiting-human", PROMPT + DENIED + SILENT_SOCKET + FOREVER),
    ),
    "25 silent after the end of a wait; in the middle of it": (
        failure("unknown", PROMPT + declared("waiting-timer", -90) + SILENT_SOCKET + FOREVER),
        Scene("waiting-timer", PROMPT + declared("waiting-timer", 600) + SILENT_SOCKET + FOREVER),
    ),
    "25b a tool without a process; one whose call says for how long it waits": (
        failure("lost-result", INIT + CALLS_READ + SILENT_SOCKET + FOREVER, "claude"),
        Scene("waiting-timer", INIT + CALLS_MONITOR + SILENT_SOCKET + FOREVER, "claude"),
    ),
    "26 nothing after its result; its sub-agent writes on": (
        failure("limbo", RESULT + FOREVER, "claude"),
        Scene("working", RESULT + step(SUBAGENTS, **GROWS), "claude"),
    ),
    "28 silent long after its limit was over; limited, and (27) a wakeup without a time": (
        failure("upstream-stall", PROMPT + declared("throttled", -3600) + SILENT_SOCKET + FOREVER),
        Scene("waiting-timer", PROMPT + step('hook = { activity = "waiting-timer" }') + SILENT_SOCKET + FOREVER),
    ),
    "29 hangs without a word of it; tries again after an overload": (
        failure("upstream-stall", INIT + SILENT_SOCKET + FOREVER, "claude"),
        Scene("throttled", INIT + RETRIES + SILENT_SOCKET + FOREVER, "claude"),
    ),
    "30 hangs without a word of it; says that it connects again": (
        failure("upstream-stall", CODEX + SILENT_SOCKET + FOREVER, "codex"),
        Scene("throttled", CODEX + RECONNECTS + SILENT_SOCKET + FOREVER, "codex"),
    ),
    "31 twelve children and nothing comes; as many, and it thinks": (
        failure("upstream-stall", CHILDREN + PROMPT + SILENT_SOCKET + FOREVER),
        Scene("thinking", CHILDREN + PROMPT + FED_SOCKET + FOREVER),
    ),
    "33 never begins; boots slowly": (
        failure("start-blocked", program=MUTE, kind="claude"),
        Scene("working", program=BOOTS, kind="claude"),
    ),
    "35 a hook hangs at its start; a kind of agent that never says anything": (
        failure("start-blocked", program=HANGS_AT_START, kind="claude"),
        Scene("", FOREVER),
    ),
}  # fmt: skip


def name_of(row: str, sort: str) -> str:
    return f"r{row.partition(' ')[0]}-{sort}"


SCENES = {name_of(row, sort): scene for row, pair in PAIRS.items() for sort, scene in zip("ab", pair, strict=True)}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Instance]:
    """One daemon with all of them, started together."""
    vigil = Instance()
    vigil.config.write_text(CONFIG + '[agents.kill]\ncommand = ["true"]\n')
    (tmp_path / "plays.py").write_text(PLAYS)
    for name, script in (("jira", SILENT_SOCKET), ("quiet", SILENT_SOCKET), ("flows", FED_SOCKET)):
        (tmp_path / f"{name}.toml").write_text(ABOUT + script + FOREVER)
    try:
        for name, scene in SCENES.items():
            command = command_of(name, scene, tmp_path)
            env = vigil.env | {"HOME": str(tmp_path / "home")}
            vigil.run(name, *command, agent=scene.kind, runtime=scene.runtime, env=env)
        yield vigil
    finally:
        vigil.destroy()


def command_of(name: str, scene: Scene, folder: Path) -> list[str]:
    if scene.program:
        (folder / name).mkdir()
        program = folder / name / "claude"
        program.write_text(scene.program)
        program.chmod(0o755)
        return [str(program), "-p", "--output-format", "stream-json"]
    if scene.play:
        return [sys.executable, str(folder / "plays.py"), *scene.play.split()]
    script = scene.script.replace("c1", name).replace("${python}", sys.executable).replace("${folder}", str(folder))
    (folder / f"{name}.toml").write_text(ABOUT + script)
    return [*AGENT, str(folder / f"{name}.toml")]


def check_failure(vigil: Instance, name: str, scene: Scene) -> None:
    warning = wait_for(lambda: told(vigil, name), SOON_S, "a warning", lambda: vigil.client.why(name))[0]

    assert warning["data"]["verdict"] == scene.verdict, warning["data"]
    if scene.kind == "keep":
        assert (told(vigil, name, "session.remedy"), alive(vigil.get(name)["pid"])) == ([], True)


def check_look_alike(vigil: Instance, name: str, scene: Scene) -> None:
    outlive(vigil, name)

    if scene.verdict:
        assert vigil.client.why(name)["verdict"] == scene.verdict, vigil.client.why(name)
    assert told(vigil, name) == []
    assert (vigil.get(name)["state"], alive(vigil.get(name)["pid"])) == ("running", True)


def test_a_failure_and_its_look_alike_get_each_its_own_verdict_side_by_side(fleet: Instance) -> None:
    failures = []
    for sick in (True, False):
        for name, scene in SCENES.items():
            is_sick = bool(scene.verdict) and scene.verdict not in WELL
            if is_sick is sick:
                try:
                    (check_failure if sick else check_look_alike)(fleet, name, scene)
                except AssertionError as error:  # the others are told too
                    failures.append(f"{name}: {error}")
    remedies = told(fleet, "r4-a", "session.remedy")
    if [one["data"]["step"] for one in remedies] != ["end-child"] or "python" not in remedies[0]["data"]["what"]:
        failures.append(f"r4-a: its adapter is to be ended, and nothing else: {remedies}")
    assert not failures, "\n\n".join(failures)
