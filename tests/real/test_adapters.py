"""What clients say of themselves: their conversation, what they do, what they wait for, what it cost."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable

import pytest

from tests.live.instance import Instance, Json, command_of, kill, wait_for
from tests.real.clients import Client
from tests.real.model_api.dialect import INPUT_TOKENS
from tests.real.stage import PROMPT, READY_S, Played, Stage

SAID_S = 20.0
CONVERSATION_KEYS = {
    "claude": "session_id",
    "codex": "thread_id",
    "gemini": "session_id",
    "opencode": "sessionID",
    "pi": "id",
    "qwen": "session_id",
}


def test_the_conversation_of_a_headless_client_is_known(stage: Stage, client: Client) -> None:
    played = finished(stage, client)

    key = CONVERSATION_KEYS[client.name]
    told = next(event[key] for event in played.events() if key in event)
    known = wait_for(lambda: played.session["conversation"], SAID_S, "its conversation to be known")
    assert known["id"] == told


def test_what_a_headless_run_cost_is_told(stage: Stage, client: Client) -> None:
    played = finished(stage, client)

    def told() -> bool:
        usage = played.session["usage"] or {"input_tokens": 0, "output_tokens": 0}
        return bool(usage["input_tokens"] >= INPUT_TOKENS and usage["output_tokens"] > 0)

    wait_for(told, SAID_S, "what it cost to be told", lambda: played.session["usage"])


def test_an_agent_is_seen_at_work_at_its_tool_waiting_for_a_person_and_idle(stage: Stage, claude: Client) -> None:
    command = [str(claude.path), PROMPT, "--allowedTools", "Bash(python3:*)"]
    played = stage.run(claude, "two-tools", "--runtime", "tmux", command=command)
    played.wait_asked()
    seen: list[str] = []

    def allow_and_look() -> bool:
        value = activity(played)
        if seen[-1:] != [value]:
            seen.append(value)
        if value == "waiting-human" and "Do you want to proceed?" in screen(stage.vigil, played.name):
            stage.vigil.tmux(played.name, "send-keys", "Enter")  # the choice that is marked is Yes
        return value == "idle" and (played.seat.cwd / "made-by-a-tool").exists()

    wait_for(allow_and_look, SAID_S, "it to be idle again", lambda: seen)
    assert in_order(["working", "tool", "waiting-human", "idle"], seen), seen
    assert played.session["axes"]["activity"]["source"] == "hook"


def test_a_prompt_that_was_queued_is_worked_on_and_seen_to_be(stage: Stage, claude: Client) -> None:
    played = stage.run(claude, "slow", "--runtime", "tmux", command=[str(claude.path)])
    for prompt in (PROMPT, "and then at that"):
        assert stage.vigil.json("send", played.name, prompt, "--wait", str(READY_S))["outcome"] == "submitted"

    played.wait_asked(2)  # of the second turn no hook tells that it began

    wait_for(lambda: activity(played) == "working", SAID_S, "it to be at work again")
    wait_for(lambda: activity(played) == "idle", SAID_S, "it to be idle")


@pytest.mark.parametrize("client", ["codex", "gemini", "qwen"], indirect=True)
def test_a_prompt_to_a_new_client_in_a_terminal_is_taken_and_its_answer_ends_the_turn(stage: Stage, client: Client) -> None:
    more = ["-m", "gemini-2.5-flash"] if client.name == "gemini" else []
    played = stage.run(client, "slow", "--runtime", "tmux", command=[str(client.path), *more])

    sent = stage.vigil.json("send", played.name, PROMPT, "--wait", str(READY_S))

    assert sent["outcome"] == "submitted", sent
    played.wait_asked()
    wait_for(lambda: activity(played) in ("working", "thinking"), SAID_S, "it to be at work")
    wait_for(lambda: activity(played) == "idle", SAID_S, "it to be idle again")
    assert len(played.asked) == 1


def test_the_turn_that_a_stall_leaves_open_is_known(stage: Stage, claude: Client) -> None:
    played = stage.run(claude, "stall")
    played.wait_asked()

    wait_for(lambda: activity(played) in ("working", "thinking"), SAID_S, "it to be at work")

    assert played.session["restarts"]["count"] == 0


def test_a_client_that_was_killed_is_woken_in_the_same_conversation(stage: Stage, claude: Client) -> None:
    played = stage.run(claude, "answer", "--runtime", "tmux", command=[str(claude.path), PROMPT])
    wait_for(lambda: "All done." in screen(stage.vigil, played.name), READY_S, "its answer")
    before = played.session
    assert before["conversation"]["resumable"]
    kill(before["pid"], signal.SIGKILL)
    stage.vigil.wait_death(played.name)

    stage.vigil.ok("wake", played.name, "--resume")

    after = stage.vigil.wait_state(played.name, "running")
    assert after["conversation"]["id"] == before["conversation"]["id"]
    assert str(before["conversation"]["id"]).encode() in command_of(after["pid"])
    wait_for(lambda: "All done." in screen(stage.vigil, played.name), READY_S, "what was said before on the screen")


def test_a_headless_client_that_is_woken_goes_on_with_its_conversation(stage: Stage, client: Client) -> None:
    played = finished(stage, client)
    before = wait_for(lambda: (c := played.session["conversation"]) and c["resumable"] and c, SAID_S, "it to be resumable")

    woken = stage.vigil.json("wake", played.name)

    assert (woken["mode"], woken["cause"]) == ("resume", "finished")
    wait_for(lambda: played.session["state"] == "succeeded" and played.session["launches"] == 2, READY_S, "it to finish again")
    events = stage.vigil.client.events(played.name)
    assert not [event for event in events if event["kind"] == "session.quarantined"]
    assert played.session["conversation"]["id"] == before["id"]


def test_a_message_wakes_a_client_that_sleeps_and_is_taken_in_its_conversation(stage: Stage, claude: Client) -> None:
    played = stage.run(claude, "answer", "--runtime", "tmux", command=[str(claude.path)])
    assert stage.vigil.json("send", played.name, PROMPT, "--wait", str(READY_S))["outcome"] == "submitted"
    wait_for(lambda: "All done." in screen(stage.vigil, played.name), READY_S, "its answer")
    wait_for(lambda: activity(played) == "idle", READY_S, "it to be idle")
    before = played.session["conversation"]["id"]
    asleep = stage.vigil.json("hibernate", played.name)
    assert (asleep["state"], asleep["conversation"]["resumable"]) == ("parked", True)

    told = stage.vigil.json("send", played.name, "and once more", "--wait", str(READY_S))

    assert told["outcome"] == "submitted", told
    assert played.session["conversation"]["id"] == before
    assert played.session["mode"] == {"mode": "resume", "cause": "parked"}


def test_a_persons_own_hooks_run_and_their_settings_stay_as_they_are(stage: Stage, claude: Client) -> None:
    own = stage.seat(claude, "answer").cwd / ".claude" / "settings.json"
    own.parent.mkdir(parents=True)
    hook = {"hooks": [{"type": "command", "command": "cat >>own-hook.jsonl"}]}
    own.write_text(json.dumps({"hooks": {"Stop": [hook], "SessionStart": [hook]}}, indent=3))
    before = own.read_bytes()

    played = finished(stage, claude)

    users = played.seat.home / ".claude" / "settings.json"
    heard = [json.loads(line)["hook_event_name"] for line in (played.seat.cwd / "own-hook.jsonl").read_text().splitlines()]
    assert sorted(heard) == ["SessionStart", "Stop"]
    assert own.read_bytes() == before
    assert "VIGIL" not in users.read_text()
    assert played.session["axes"]["activity"]["source"] == "hook"


def finished(stage: Stage, client: Client) -> Played:
    """Run a client that is answered, to its end."""
    played = stage.run(client, "answer")
    stage.vigil.wait_state(played.name, "succeeded", within_s=READY_S)
    return played


def activity(played: Played) -> str:
    """Return what an agent is doing, in a word."""
    reading: Json | None = played.vigil.get(played.name)["axes"]["activity"]
    return "unknown" if reading is None else str(reading["value"])


def screen(vigil: Instance, name: str) -> str:
    """Return what stands on a session's screen."""
    return vigil.tmux(name, "capture-pane", "-p").stdout


def in_order(wanted: Iterable[str], seen: Iterable[str]) -> bool:
    """Say whether all of these were seen in this order, whatever came in between."""
    rest = iter(seen)
    return all(value in rest for value in wanted)
