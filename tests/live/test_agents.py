"""What agents say reaches whoever asks: by streams, hooks and transcripts, each line once; scripted agents, real files."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import Instance, wait_for

Json = dict[str, Any]
CONVERSATION = "6f1f6c62-1111-4222-8333-abcdefabcdef"
INIT = {"type": "system", "subtype": "init", "session_id": CONVERSATION, "model": "m"}
TOOL = {
    "type": "assistant",
    "session_id": CONVERSATION,
    "message": {"content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "s3cr3t words"}}]},
}
DONE = {
    "type": "user",
    "session_id": CONVERSATION,
    "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
}
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "session_id": CONVERSATION,
    "num_turns": 1,
    "result": "all done",
    "total_cost_usd": 0.5,
    "usage": {"input_tokens": 100, "output_tokens": 20},
}


def script(folder: Path, text: str, name: str = "claude") -> str:
    """Write a program that plays an agent, and return its path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def say(path: Path, *events: Json) -> None:
    """Add lines to the file that a scripted agent prints from."""
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


def play(vigil: Instance, folder: Path, **more: Any) -> tuple[Json, Path]:
    """Start a headless agent that prints what a test writes into a file."""
    lines = folder / "lines"
    lines.touch()
    session = vigil.run(
        "a", script(folder, f"exec tail -n +1 -f {lines}"), "--settings={}", agent="claude", runtime="headless", **more
    )
    return session, lines


def activity(vigil: Instance) -> str:
    return str(vigil.get("a")["axes"]["activity"]["value"])


def wait_activity(vigil: Instance, value: str) -> None:
    wait_for(lambda: activity(vigil) == value, 20, f"activity {value}", lambda: activity(vigil))


def test_a_stream_tells_what_an_agent_does_its_conversation_and_its_cost(vigil: Instance, tmp_path: Path) -> None:
    _, lines = play(vigil, tmp_path)

    say(lines, INIT, TOOL)
    wait_activity(vigil, "tool")
    found = vigil.get("a")
    assert found["open"]["tools"][0]["name"] == "Bash"
    assert "s3cr3t" not in json.dumps(found["axes"]) + json.dumps(vigil.client.events())
    say(lines, DONE, RESULT)
    wait_activity(vigil, "idle")

    found = wait_for(lambda: (s := vigil.get("a"))["usage"] and s, 10, "what it cost")
    assert found["conversation"]["id"] == CONVERSATION
    assert (found["usage"]["input_tokens"], found["usage"]["output_tokens"]) == (100, 20)


def test_nothing_is_counted_twice_when_the_daemon_is_killed(vigil: Instance, tmp_path: Path) -> None:
    _, lines = play(vigil, tmp_path)
    say(lines, INIT, RESULT)
    wait_for(lambda: vigil.get("a")["usage"], 10, "the first cost")

    vigil.kill_daemon()
    say(lines, INIT, {**RESULT, "total_cost_usd": 1.0})
    vigil.start()

    wait_for(lambda: vigil.get("a")["usage"]["input_tokens"] == 200, 20, "the second cost", lambda: vigil.get("a")["usage"])
    assert vigil.get("a")["usage"]["launch"]["input_tokens"] == 200


def test_what_an_agent_printed_last_is_read_after_its_end(vigil: Instance, tmp_path: Path) -> None:
    words = " ".join(f"'{json.dumps(event)}'" for event in (INIT, RESULT))
    vigil.run("a", script(tmp_path, f"printf '%s\\n' {words}"), agent="claude", runtime="headless")

    vigil.wait_state("a", "succeeded")

    found = wait_for(lambda: (s := vigil.get("a"))["usage"] and s, 10, "what it cost")
    assert (found["usage"]["input_tokens"], found["conversation"]["id"]) == (100, CONVERSATION)


def test_an_event_from_the_future_is_a_sign_of_life_and_shown_by_the_doctor(vigil: Instance, tmp_path: Path) -> None:
    _, lines = play(vigil, tmp_path)

    say(lines, {"type": "brand-new", "session_id": CONVERSATION})

    wait_for(lambda: vigil.client.status()["unknown_events"], 10, "the event to be counted")
    assert "brand-new" in vigil.run_cli("doctor").stdout
    assert vigil.get("a")["last_activity_at"] is not None


def test_broken_lines_stop_nothing(vigil: Instance, tmp_path: Path) -> None:
    _, lines = play(vigil, tmp_path)
    with open(lines, "ab") as file:
        file.write(b'{"type": "assist\n\xff\xfe\n[1]\n{"type": 5}\n' + b'{"x":"' + b"y" * 10_000_000 + b'"}\n')

    say(lines, INIT, TOOL)

    wait_activity(vigil, "tool")


HOOK = {"session_id": CONVERSATION, "hook_event_name": ""}


def hook(vigil: Instance, session: Json, **payload: Any) -> None:
    """Let a session's agent say something by a hook."""
    body = {"launch": session["launch"], "token": vigil.token(session["launch"]), "payload": {**HOOK, **payload}}
    new = vigil.home.spool / "new"
    temporary = vigil.home.spool / "tmp" / "x"
    temporary.write_text(json.dumps(body))
    temporary.rename(new / f"{len(list(new.iterdir()))}-{os.urandom(4).hex()}.json")


def test_two_tools_at_once_and_a_question_are_kept_apart(vigil: Instance, tmp_path: Path) -> None:
    session = vigil.run("a", script(tmp_path, "exec sleep 1000"), agent="claude")

    hook(vigil, session, hook_event_name="UserPromptSubmit", prompt="do it")
    hook(vigil, session, hook_event_name="PreToolUse", tool_name="Bash", tool_use_id="t1", tool_input={})
    hook(vigil, session, hook_event_name="PreToolUse", tool_name="Read", tool_use_id="t2", tool_input={})
    wait_for(lambda: len(vigil.get("a")["open"]["tools"]) == 2, 10, "two open tools")
    hook(vigil, session, hook_event_name="PostToolUse", tool_name="Bash", tool_use_id="t1", tool_input={})
    wait_for(lambda: [one["name"] for one in vigil.get("a")["open"]["tools"]] == ["Read"], 10, "one open tool")
    assert activity(vigil) == "tool"
    hook(vigil, session, hook_event_name="PermissionRequest", tool_name="Read", tool_input={})
    wait_activity(vigil, "waiting-human")
    assert vigil.client.incidents()[0]["kind"] == "needs-input"
    hook(vigil, session, hook_event_name="Stop")

    wait_activity(vigil, "idle")
    wait_for(lambda: not vigil.client.incidents(), 10, "nobody to be needed")


def test_a_transcript_tells_what_hooks_do_not_and_only_of_this_launch(vigil: Instance, tmp_path: Path) -> None:
    project = tmp_path / ".claude" / "projects" / "-"
    project.mkdir(parents=True)
    old = {"type": "user", "uuid": "1", "sessionId": CONVERSATION, "message": {"role": "user", "content": "before"}}
    (project / f"{CONVERSATION}.jsonl").write_text(json.dumps(old) + "\n")
    session = vigil.run("a", script(tmp_path, "exec sleep 1000"), agent="claude", env=vigil.env | {"HOME": str(tmp_path)})

    hook(vigil, session, hook_event_name="SessionStart", source="startup")
    wait_activity(vigil, "idle")
    hook(vigil, session, hook_event_name="UserPromptSubmit", prompt="do it")
    wait_activity(vigil, "working")
    interrupted = {"type": "text", "text": "[Request interrupted by user]"}
    message = {"type": "user", "uuid": "2", "sessionId": CONVERSATION, "message": {"role": "user", "content": [interrupted]}}
    wait_for(lambda: vigil.get("a")["conversation"], 10, "its conversation")
    os.utime(project, None)
    with open(project / f"{CONVERSATION}.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps({**message, "timestamp": "2099-01-01T00:00:00Z"}) + "\n")

    wait_activity(vigil, "idle")


def entry(text: str, **more: Any) -> str:
    """Return a line of a transcript: the model was given something to do."""
    return json.dumps({"type": "user", "sessionId": CONVERSATION, "message": {"role": "user", "content": text}, **more}) + "\n"


def test_a_transcript_that_is_replaced_cut_removed_or_leads_elsewhere_is_read_on_or_left_alone(
    vigil: Instance, tmp_path: Path
) -> None:
    project = tmp_path / ".claude" / "projects" / "-"
    project.mkdir(parents=True)
    path, elsewhere = project / f"{CONVERSATION}.jsonl", tmp_path / "somebody-elses.jsonl"
    path.touch()
    session = vigil.run("a", script(tmp_path, "exec sleep 1000"), agent="claude", env=vigil.env | {"HOME": str(tmp_path)})
    hook(vigil, session, hook_event_name="SessionStart", source="startup")
    wait_activity(vigil, "idle")

    def tells(write: Callable[[str], object], number: int) -> None:
        """Let the transcript say that something was spent, and wait until that was heard."""
        usage = {"input_tokens": number, "output_tokens": 1}
        message = {"id": f"m{number}", "stop_reason": "end_turn", "content": [{"type": "text", "text": "x"}], "usage": usage}
        before = spent()
        line = json.dumps({"type": "assistant", "sessionId": CONVERSATION, "apiBlockIndex": 0, "message": message}) + "\n"
        write(line)
        wait_for(lambda: spent() == before + number, 20, f"what was spent ({number})", spent)

    def spent() -> int:
        usage = vigil.get("a")["usage"]
        return int(usage["input_tokens"]) if usage else 0

    def add(line: str) -> None:
        with open(path, "a", encoding="utf-8") as file:
            file.write(line)

    def replace_whole(line: str) -> None:
        (project / "new").write_text(entry("another beginning") + line)
        (project / "new").rename(path)

    tells(add, 1)
    tells(lambda line: path.write_text(entry("another beginning, longer than what was read before") * 9 + line), 2)
    tells(lambda line: path.write_text(line), 4)
    tells(replace_whole, 8)
    path.unlink()
    tells(lambda line: path.write_text(entry("made anew") + line), 16)

    path.unlink()
    elsewhere.write_text(entry("never to be read") * 3)
    path.symlink_to(elsewhere)
    with open(elsewhere, "a", encoding="utf-8") as file:
        file.write(json.dumps({"type": "a-kind-nobody-knows", "sessionId": CONVERSATION}) + "\n")
    said = vigil.home.log / "daemon.log"
    wait_for(lambda: "file not read" in said.read_text(), 20, "it to say that it does not read it")
    assert vigil.client.status()["unknown_events"] == [], "what lies elsewhere is not the agent's"
    assert (spent(), vigil.get("a")["state"]) == (31, "running")


def test_an_agent_can_be_left_alone(vigil: Instance, tmp_path: Path) -> None:
    words = tmp_path / "words"
    program = script(tmp_path, f'printf "%s\\n" "$@" > {words}; exec sleep 1000')
    vigil.run("a", program, "mine", agent="claude")
    wait_for(words.exists, 10, "its words")
    assert "--session-id" in words.read_text().split()
    assert words.read_text().split()[-1] == "mine"
    words.unlink()
    vigil.config.write_text("[agents.claude]\ninstrument = false\n")

    vigil.run("b", program, "mine", agent="claude")

    wait_for(words.exists, 10, "its words")
    assert words.read_text() == "mine\n"


def test_a_prompt_is_typed_once_and_whole(vigil: Instance, tmp_path: Path) -> None:
    got = tmp_path / "got"
    vigil.run("a", "sh", "-c", f"exec cat > {got}")
    text = "first; $(id) `x` \x1b[201~ ünïcode\nsecond -- 'quoted'\n" + "long " * 40_000

    sent = vigil.client.send("a", text)

    assert sent["outcome"] == "unknown"
    wait_for(lambda: got.exists() and "long long" in got.read_text(), 10, "the text to arrive")
    arrived = got.read_text()
    assert arrived.count("first; $(id) `x`  ünïcode") == 1
    assert "\x1b" not in arrived


@pytest.mark.parametrize("way", ["stopped", "dead", "copy mode", "shell", "headless"])
def test_a_prompt_is_refused_where_it_would_do_harm(vigil: Instance, tmp_path: Path, way: str) -> None:
    typed = tmp_path / "typed"
    runtime = "headless" if way == "headless" else "tmux"
    command = ["bash", "-i"] if way == "shell" else ["sleep", "1000"]
    session = vigil.run("a", *command, runtime=runtime)
    if way == "stopped":
        os.kill(session["pid"], signal.SIGSTOP)  # no sweep has seen it when the prompt comes
    elif way == "dead":
        os.kill(session["pid"], signal.SIGKILL)
        vigil.wait_state("a", "failed")
    elif way == "copy mode":
        vigil.tmux("a", "copy-mode")
    elif way == "shell":
        vigil.client.send("a", "sleep 500")
        running = ("display-message", "-p", "#{pane_current_command}")
        wait_for(lambda: vigil.tmux("a", *running).stdout.strip() == "sleep", 10, "the shell to run something else")

    sent = vigil.run_cli("send", "a", f"touch {typed}", "--wait", "1")

    assert (sent.returncode, "was not sent anything" in sent.stderr) == (4, True), sent.stderr
    assert not typed.exists()
    if way == "stopped":
        os.kill(session["pid"], signal.SIGCONT)


def test_a_prompt_whose_agent_ends_of_it_was_not_sent(vigil: Instance) -> None:
    vigil.run("a", "sh", "-c", "stty -icanon; echo ready; exec head -c 1")
    wait_for(lambda: "ready" in vigil.ok("logs", "a"), 10, "it to read")

    sent = vigil.client.send("a", "the first character ends it")

    assert (sent["outcome"], "before Enter" in sent["why"]) == ("unsubmitted", True), sent


def test_an_enter_that_was_lost_is_pressed_again_and_nothing_is_typed_twice(vigil: Instance, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    shows = "clear; echo '>   Type your message or @path/to/file'"
    loses = 'read -r first; clear; echo " > $first"'  # as one that is not ready yet: the prompt still stands in its composer
    takes = f'read -r second; echo "$first|$second" > {taken}'
    tells = 'cp "$0.hook" "$VIGIL_SPOOL/new/told.json"; exec sleep 1000'
    program = script(tmp_path, f"stty -echo; {shows}; {loses}; {takes}; {tells}", name="gemini")
    session = vigil.run("a", program, agent="gemini", env=vigil.env | {"TERM": "screen"})
    payload = {"hook_event_name": "BeforeAgent", "prompt": "ours"}
    body = {"launch": session["launch"], "token": vigil.token(session["launch"]), "payload": payload}
    (tmp_path / "gemini.hook").write_text(json.dumps(body))

    sent = vigil.client.send("a", "look at it; all of it", wait_s=10)

    assert sent["outcome"] == "submitted", sent
    assert taken.read_text() == "look at it; all of it|\n"


COMPOSER = "printf '\\n────────────────────\\n❯ %s'"


def test_what_somebody_has_begun_to_type_is_not_sent_with_ours_also_while_they_look(vigil: Instance, tmp_path: Path) -> None:
    got = tmp_path / "got"
    shows = f"clear; {COMPOSER} ''; stty -echo; exec cat > {got}"
    session = vigil.run("a", script(tmp_path, shows), agent="claude", env=vigil.env | {"TERM": "screen"})
    socket = str(vigil.home.server_socket(session["launch"]))
    person = subprocess.Popen(
        ["script", "-qec", f"tmux -u -S {socket} attach", "/dev/null"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm"},
    )
    try:
        wait_for(lambda: vigil.get("a")["attached"] == 1, 10, "a person to be attached")
        pty = vigil.tmux("a", "display-message", "-p", "#{pane_tty}").stdout.strip()
        Path(pty).write_text("half a draft")

        refused = vigil.run_cli("send", "a", "ours", "--wait", "0.5")

        assert (refused.returncode, "somebody has begun to type there" in refused.stderr) == (4, True), refused.stderr
        Path(pty).write_text("\b \b" * len("half a draft"))
        sent = vigil.client.send("a", "ours; whole", wait_s=10)
        assert sent["outcome"] == "unknown", sent
        wait_for(lambda: "ours; whole" in got.read_text(), 10, "it to arrive")
    finally:
        os.killpg(person.pid, signal.SIGKILL)
        person.communicate()


def test_a_permission_that_is_gone_from_the_screen_was_given(vigil: Instance, tmp_path: Path) -> None:
    answered = tmp_path / "answered"
    asks = "printf 'Do you want to proceed?\\n❯ 1. Yes\\n  2. No\\nEsc to cancel\\n'"
    waits = f"while [ ! -e {answered} ]; do sleep 0.1; done; clear; exec sleep 1000"
    session = vigil.run("a", script(tmp_path, f"{asks}; {waits}"), agent="claude", env=vigil.env | {"TERM": "screen"})
    call = {"tool_name": "Bash", "tool_input": {"command": "make"}}
    hook(vigil, session, hook_event_name="PreToolUse", tool_use_id="t1", **call)
    hook(vigil, session, hook_event_name="PermissionRequest", **call)
    wait_activity(vigil, "waiting-human")
    wait_for(lambda: "Esc to cancel" in vigil.ok("logs", "a"), 10, "its question on the screen")
    seen_at = time.monotonic()
    wait_for(lambda: time.monotonic() - seen_at > 3, 10, "its screen to be looked at")
    assert activity(vigil) == "waiting-human"

    answered.touch()

    wait_activity(vigil, "tool")
    assert vigil.client.incidents() == []


def test_a_dialog_at_the_start_is_told_to_a_person_and_over_when_it_is_gone(vigil: Instance, tmp_path: Path) -> None:
    answered = tmp_path / "answered"
    shows = "printf 'Accessing workspace:\\n /x\\n > No, exit\\n   Yes, I trust this folder\\n'"
    waits = f"while [ ! -e {answered} ]; do sleep 0.1; done; clear; exec sleep 1000"
    vigil.run("a", script(tmp_path, f"{shows}; {waits}"), agent="claude", env=vigil.env | {"TERM": "screen"})

    incident = wait_for(lambda: next(iter(vigil.client.incidents()), None), 20, "a person to be told")
    assert incident["kind"] == "needs-input"
    assert "dialog trust: Accessing workspace: /x" in incident["why"]
    refused = vigil.run_cli("send", "a", "yes", "--wait", "0")
    assert (refused.returncode, "dialog trust" in refused.stderr) == (4, True), refused.stderr
    answered.touch()

    wait_for(lambda: not vigil.client.incidents(), 20, "nobody to be needed")
