"""Walls: agents that meet a limit, or that nobody lets in, wait for that, all of an account together; in real panes."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.live.instance import Instance, Json, wait_for
from tests.live.test_agents import INIT, RESULT, hook, script
from tests.live.watching import at

ENDS_WHEN_TOLD = "while [ ! -e {0}/$VIGIL_LAUNCH ]; do sleep 0.05; done; exit 1"
SOON_S = 20.0


def run(vigil: Instance, folder: Path, name: str, **more: object) -> Json:
    """Start an agent in a terminal, of one account with the others, that exits with 1 when it is told to."""
    program = script(folder, ENDS_WHEN_TOLD.format(folder))
    return vigil.run(name, program, agent="claude", env=vigil.env | {"HOME": str(folder)}, **{"restart": "always"} | more)


def end(folder: Path, session: Json) -> None:
    (folder / session["launch"]).touch()


def limited(vigil: Instance, session: Json, until: float) -> None:
    words = f"You've hit your session limit, resets {datetime.fromtimestamp(until, UTC).isoformat()}"
    hook(vigil, session, hook_event_name="StopFailure", error="rate_limit", last_assistant_message=words)


def hold(vigil: Instance, name: str) -> Json:
    return wait_for(lambda: vigil.get(name)["hold"], SOON_S, f"{name} to wait", lambda: vigil.get(name))


def test_a_fleet_in_terminals_meets_a_limit_once_and_comes_back_when_one_of_it_works(vigil: Instance, tmp_path: Path) -> None:
    first, until = run(vigil, tmp_path, "first"), float(int(time.time()) + 3600)
    run(vigil, tmp_path, "running")
    limited(vigil, first, until)
    wait_for(lambda: vigil.get("first")["health"] == "throttled", SOON_S, "it to be throttled")
    end(tmp_path, first)

    assert hold(vigil, "first")["reason"] == "limit"
    assert at(vigil.get("first")["hold"]["until"]) == until
    death = vigil.wait_death("first")
    assert (death["cause"], death["charged"]) == ("limit", False)
    late = run(vigil, tmp_path, "late")
    assert (late["state"], late["hold"]["reason"], at(late["hold"]["until"])) == ("pending", "limit", until)
    assert "met by first" in late["why"]
    assert vigil.get("running")["state"] == "running"
    (incident,) = vigil.client.incidents()
    assert incident["kind"] == "limit" and incident["key"].startswith("claude-")

    vigil.kill_daemon()
    vigil.start()
    assert at(vigil.get("late")["hold"]["until"]) == until
    vigil.ok("start", "late")
    hook(vigil, vigil.get("late"), hook_event_name="PreToolUse", tool_name="Bash", tool_use_id="t", tool_input={})

    vigil.wait_state("first", "running")
    assert vigil.client.incidents() == []
    assert vigil.get("first")["restarts"]["count"] == 0


def test_who_was_locked_out_waits_for_a_person_and_another_account_does_not(vigil: Instance, tmp_path: Path) -> None:
    first = run(vigil, tmp_path, "first")
    hook(vigil, first, hook_event_name="StopFailure", error="authentication_failed", last_assistant_message="Please run /login")
    wait_for(lambda: vigil.get("first")["health"] == "throttled", SOON_S, "it to be throttled")
    end(tmp_path, first)

    assert hold(vigil, "first") == {"reason": "auth", "until": None}
    other = tmp_path / "other"
    other.mkdir()
    assert run(vigil, other, "other")["state"] == "running"
    assert run(vigil, tmp_path, "late")["hold"] == {"reason": "auth", "until": None}

    vigil.ok("reset", "first")
    vigil.wait_state("first", "running")
    assert vigil.get("late")["hold"] == {"reason": "auth", "until": None}, "that it was let in is still to be seen"
    hook(vigil, vigil.get("first"), hook_event_name="UserPromptSubmit", prompt="go on")
    hook(vigil, vigil.get("first"), hook_event_name="Stop")
    vigil.wait_state("late", "running")


PRINTED: dict[str, tuple[list[Json | str], str]] = {
    "whole": ([INIT, RESULT], "finished"),
    "cut": ([INIT], "early-exit"),
    "begun-again": ([INIT, RESULT, INIT], "early-exit"),
    "plain": (["All done, in plain words."], "finished"),  # nobody asked it for a stream
    "mute": ([], "finished"),
}


def test_exit_0_of_a_headless_run_has_finished_only_with_its_result(vigil: Instance, tmp_path: Path) -> None:
    for name, (printed, _) in PRINTED.items():
        lines = tmp_path / name
        lines.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in printed))
        vigil.run(
            name,
            script(tmp_path, f"cat {lines}", f"claude-{name}"),
            "-p",
            agent="claude",
            runtime="headless",
            cwd=str(tmp_path),
        )
    vigil.run("other-kind", "echo", json.dumps(INIT), runtime="headless")

    found = {name: vigil.wait_death(name)["cause"] for name in (*PRINTED, "other-kind")}

    assert found == {name: cause for name, (_, cause) in PRINTED.items()} | {"other-kind": "finished"}
