"""`vigil diag` shows what a session's processes do now, whatever runtime they have, and what there is of one that is over."""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial

import pytest

from tests.live.instance import Instance, Json, wait_for

TREE = """
import os, signal, socket, subprocess, sys
server = socket.create_server(("127.0.0.1", 0))
ours = socket.create_connection(server.getsockname())
theirs, _ = server.accept()
theirs.sendall(b"12345")
reads = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
stopped = subprocess.Popen(["sleep", "1000"])
stopped.send_signal(signal.SIGSTOP)
subprocess.Popen(["sh", "-c", "while :; do :; done"])
print("up", flush=True)
signal.pause()
"""


def test_a_tree_is_shown_with_rates_states_and_the_sockets_it_owns(vigil: Instance) -> None:
    for runtime in ("headless", "tmux"):
        session = vigil.run(runtime, sys.executable, "-c", TREE, runtime=runtime)
        wait_for(partial(has_processes, vigil, runtime, 4), 20, "all four processes")

        found = vigil.json("diag", runtime)

        assert found["name"] == runtime and found["pid"] == session["pid"] and found["window_s"] >= 0.5
        agent, *children = found["processes"]
        assert (agent["role"], agent["ppid"] > 0, agent["tty"]) == ("agent", True, runtime == "tmux")
        assert all(child["ppid"] == agent["pid"] and child["depth"] == 1 for child in children)
        by_name = {child["name"]: child for child in children}
        assert by_name["cat"]["waits_for_input"] is True
        assert by_name["sleep"]["state"] == "T"
        assert by_name["sh"]["cpu_rate"] > 0.02 and found["totals"]["cpu_rate"] >= by_name["sh"]["cpu_rate"]
        tcp = {one["state"]: one for one in found["sockets"] if one["family"] == "inet"}
        assert tcp["ESTABLISHED"]["pid"] == agent["pid"] and tcp["ESTABLISHED"]["last_recv_ms"] is not None
        assert found["totals"]["stopped"] == 1 and found["unknown"] == []

    shown = vigil.run_cli("diag", "tmux", env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert shown.returncode == 0 and "\x1b" not in shown.stdout
    assert all(len(line) <= 100 for line in shown.stdout.splitlines() if line[:1] in "├└P")
    assert f"pid {by_name['sleep']['pid']} (sleep) is stopped" in shown.stdout


def has_processes(vigil: Instance, name: str, count: int) -> bool:
    return len(vigil.client.diag(name, 0.1)["processes"]) == count


def test_of_a_session_that_is_over_what_outlived_it_is_shown_or_why_there_is_nothing(vigil: Instance) -> None:
    vigil.run("left", "sh", "-c", "setsid sleep 1000 & exit 3", runtime="headless")
    vigil.run("gone", "sh", "-c", "exit 3", runtime="headless")
    for name in ("left", "gone"):
        vigil.wait_state(name, "failed")

    left = vigil.json("diag", "left")
    gone = vigil.run_cli("diag", "gone")
    nobody = vigil.run_cli("diag", "nobody")

    assert [(one["name"], one["role"]) for one in left["processes"]] == [("sleep", "stray")]
    assert (gone.returncode, nobody.returncode) == (1, 3)
    assert gone.stderr == "vigil: gone is failed: nothing of its last launch runs; vigil death gone shows how it ended\n"
    os.kill(left["processes"][0]["pid"], signal.SIGKILL)


def test_one_summary_of_each_launch_is_written_also_when_the_daemon_dies_with_it(vigil: Instance) -> None:
    words = [
        {"type": "system", "subtype": "init", "session_id": "c1"},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": True}]}},
        {"type": "result", "subtype": "success", "num_turns": 1, "total_cost_usd": 0.25, "usage": {"output_tokens": 7}},
    ]
    printed = "; ".join(f"printf '%s\\n' '{json.dumps(word)}'" for word in words)
    script = f"sleep 0.5; {printed}; echo why >&2; exit 7"
    session = vigil.run("one", "sh", "-c", script, runtime="headless", agent="claude", restart="never")
    vigil.kill_daemon()
    pid = session["pid"]
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), 20, "the agent to end")
    vigil.start()
    vigil.wait_state("one", "failed")

    def summaries() -> list[dict[str, object]]:
        return [event for event in vigil.client.events("one") if event["kind"] == "session.summary"]

    wait_for(lambda: len(summaries()) == 1, 20, "the summary")
    vigil.kill_daemon()
    vigil.start()
    death = vigil.client.death("one")
    (told,) = summaries()

    assert told["data"] == {"death": death["id"], **death["summary"]}
    assert death["summary"]["exit_code"] == 7 and death["summary"]["ended_by"] == "itself"
    assert (death["summary"]["turns"], death["summary"]["tools"], death["summary"]["failed_tools"]) == (1, 1, 1)
    assert (death["summary"]["cost_usd"], death["summary"]["output_tokens"]) == (0.25, 7)
    got = vigil.get("one")
    assert got["stderr_tail"] == ["why"]
    assert [(one["what"], one["tool"]) for one in got["recent"] if one["tool"]] == [
        ("tool-started", "Bash"),
        ("tool-ended", "Bash"),
    ]
    kinds = [event["kind"] for event in death["last_events"]]
    assert "agent.tool-started" in kinds and "agent.result" in kinds


TAKES_50_MIB = "held = b'1' * (50 << 20)"


@pytest.mark.parametrize("runtime", ["headless", "tmux"])
def test_a_short_launch_has_its_peak_of_memory_and_not_that_of_whoever_started_it(shared: Instance, runtime: str) -> None:
    for number in range(4):  # tmux before 3.6 overlooks the end of a pane now and then
        shared.run(f"{runtime}-large-{number}", sys.executable, "-c", TAKES_50_MIB, runtime=runtime)
    shared.run(f"{runtime}-small", "sleep", "0.1", runtime=runtime)

    large = [peak_of(shared, f"{runtime}-large-{number}") for number in range(4)]
    small = peak_of(shared, f"{runtime}-small")

    assert all(peak is not None and 50 << 20 < peak < 100 << 20 for peak in large)
    assert small is None
    assert "peak memory" in shared.ok("death", f"{runtime}-large-0")


def test_a_short_launch_that_ended_while_there_was_no_daemon_has_its_peak_of_memory(vigil: Instance) -> None:
    session = vigil.run("large", sys.executable, "-c", f"import time; {TAKES_50_MIB}; time.sleep(1)", runtime="headless")
    vigil.kill_daemon()
    wait_for(lambda: not os.path.exists(f"/proc/{session['pid']}"), 20, "the agent to end")
    vigil.start()

    peak = peak_of(vigil, "large")

    assert peak is not None and 50 << 20 < peak < 100 << 20


def peak_of(vigil: Instance, name: str) -> int | None:
    def told() -> list[Json]:
        return [event for event in vigil.client.events(name) if event["kind"] == "session.summary"]

    (summary,) = wait_for(told, 20, f"the summary of {name}")
    peak: int | None = summary["data"]["peak_rss_bytes"]
    return peak
