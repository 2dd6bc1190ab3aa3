"""Sleep and wake, for real: a stand-in for Claude Code with its hooks, transcripts and composer, real tmux, real kills."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import Instance, command_of, kill, wait_for
from tests.live.manifests import up
from tests.live.stand_in import install

Json = dict[str, Any]
NAME = "a"


class Scene:
    """One session of the stand-in, and the folder it works in."""

    def __init__(self, vigil: Instance, folder: Path) -> None:
        self.vigil = vigil
        self.cwd = folder / "work"
        self.cwd.mkdir()
        self.program = install(folder)
        self.home = folder
        self.env = vigil.env | {"HOME": str(folder), "PYTHONIOENCODING": "utf-8"}

    def run(self, *words: str, name: str = NAME, **options: Any) -> Json:
        """Launch it, and wait until it can take a prompt."""
        self.vigil.run(name, self.program, *words, agent="claude", cwd=str(self.cwd), env=self.env, **options)
        return self.ready(name)

    def ready(self, name: str = NAME) -> Json:
        return wait_for(lambda: self._is_ready(name), 20, f"{name} to be idle", lambda: self.vigil.get(name))

    def _is_ready(self, name: str) -> Json | None:
        session = self.vigil.get(name)
        return session if session["state"] == "running" and session["axes"]["activity"]["value"] == "idle" else None

    def say(self, text: str, name: str = NAME) -> None:
        """Give it a prompt that it takes, and wait for its answer."""
        assert self.vigil.client.send(name, text)["outcome"] == "submitted"
        self.ready(name)

    @property
    def prompts(self) -> list[str]:
        """What it was told, without the conversations."""
        return [line.split(" ", 1)[1] for line in self._lines()]

    @property
    def conversations(self) -> list[str]:
        return [line.split(" ", 1)[0] for line in self._lines()]

    def _lines(self) -> list[str]:
        path = self.cwd / "prompts"
        return path.read_text().splitlines() if path.exists() else []

    def events(self, kind: str) -> list[Json]:
        return [event["data"] for event in self.vigil.client.events(NAME) if event["kind"] == kind]

    def transcript(self, conversation: str) -> Path:
        (path,) = (self.home / ".claude" / "projects").glob(f"*/{conversation}.jsonl")
        return path


@pytest.fixture
def scene(vigil: Instance, tmp_path: Path) -> Scene:
    return Scene(vigil, tmp_path)


def test_what_sleeps_costs_nothing_and_wakes_where_it_was(scene: Scene) -> None:
    vigil = scene.vigil
    scene.run(restart="always")
    scene.say("hello")
    conversation = wait_for(lambda: vigil.get(NAME)["conversation"], 10, "its conversation")
    assert conversation["resumable"]

    asleep = vigil.json("hibernate", NAME)

    assert (asleep["state"], asleep["restarts"]["count"], asleep["pid"]) == ("parked", 0, None)
    assert "wakes in its conversation" in asleep["why"]
    assert vigil.deaths(NAME)[0]["intent"]["verb"] == "hibernate"
    assert not [pid for pid in vigil.processes() if b"claude" in command_of(pid) or b"tmux" in command_of(pid)]
    assert vigil.get(NAME)["conversation"] == conversation
    woken = vigil.json("wake", NAME)
    assert (woken["name"], woken["mode"], woken["cause"]) == (NAME, "resume", "parked")
    assert conversation["id"].encode() in command_of(scene.ready()["pid"])
    scene.say("and on")
    assert scene.conversations == [conversation["id"]] * 2
    assert vigil.json("wake", NAME)["mode"] == "nothing"

    assert vigil.client.send(NAME, "crash")["outcome"] == "submitted"  # the park mark died with the wake
    wait_for(lambda: vigil.get(NAME)["launches"] == 3, 20, "it to come back")
    scene.ready()
    assert [(one["mode"], one["cause"]) for one in scene.events("session.wake")][-1] == ("fresh", "crashed")
    assert vigil.get(NAME)["conversation"]["id"] != conversation["id"]


def test_a_crash_is_not_woken_inside_its_backoff_and_a_stop_not_at_all(scene: Scene) -> None:
    vigil = scene.vigil
    scene.run(restart="always", backoff_base_s=60)
    vigil.client.send(NAME, "crash")
    vigil.wait_state(NAME, "crashed")

    refused = vigil.run_cli("wake", NAME, "--resume")
    assert refused.returncode == 4
    assert f"a is not woken until {vigil.get(NAME)['hold']['until']}: it is in a crash-loop (" in refused.stderr
    vigil.ok("stop", NAME)
    refused = vigil.run_cli("wake", NAME, "-o", "json")
    assert refused.returncode == 4
    assert '"cause": "stopped"' in refused.stdout and "vigil start a" in refused.stderr
    asleep = vigil.run_cli("hibernate", NAME)
    assert (asleep.returncode, "it is stopped" in asleep.stderr) == (4, True)

    assert "running" in vigil.ok("start", NAME)


def test_a_killed_agent_is_woken_in_its_conversation_unless_that_is_gone_or_open_elsewhere(scene: Scene) -> None:
    vigil = scene.vigil
    conversation = _killed(scene)
    named = [scene.program, "--resume", conversation]
    vigil.run("b", *named, agent="claude", cwd=str(scene.cwd), env=scene.env)
    scene.ready("b")

    for words in (["wake", NAME, "--resume"], ["wake", NAME]):
        refused = vigil.run_cli(*words)
        assert (refused.returncode, f"{conversation} is open in b" in refused.stderr) == (4, True), refused.stderr
    third = vigil.run_cli(
        "run", "--name", "c", "--agent", "claude", "--cwd", str(scene.cwd), "--", *named, env={"HOME": str(scene.home)}
    )
    assert (third.returncode, "is open in b" in third.stderr) == (4, True), third.stderr
    vigil.ok("stop", "b")
    assert vigil.json("wake", NAME, "--resume")["cause"] == "asked"
    assert conversation.encode() in command_of(scene.ready()["pid"])
    refused = vigil.run_cli("start", "b")  # its command names the conversation itself
    assert (refused.returncode, "is open in a" in refused.stderr) == (1, True), refused.stderr

    kill(vigil.get(NAME)["pid"], signal.SIGKILL)
    vigil.wait_state(NAME, "failed")
    scene.transcript(conversation).unlink()
    assert not vigil.get(NAME)["conversation"]["resumable"]
    refused = vigil.run_cli("wake", NAME, "--resume")
    assert (refused.returncode, "(nothing-to-resume): there is no transcript" in refused.stderr) == (4, True), refused.stderr
    assert vigil.json("wake", NAME)["cause"] == "nothing-to-resume"


def _killed(scene: Scene) -> str:
    """Run it, have a turn, kill it; return its conversation."""
    scene.run()
    scene.say("hello")
    session = scene.vigil.get(NAME)
    kill(session["pid"], signal.SIGKILL)
    scene.vigil.wait_state(NAME, "failed")
    return str(session["conversation"]["id"])


@pytest.mark.unhurried
@pytest.mark.parametrize(
    ("prompt", "verdicts", "mode"),
    [
        ("hang after a tool", ["wedged-after-tool", "resume-poisoned"], "fresh"),
        ("hang in an outage", ["network-dead", "network-dead"], "resume"),
    ],
)
def test_two_stalls_set_a_conversation_aside_unless_it_told_of_an_outage(
    scene: Scene, prompt: str, verdicts: list[str], mode: str
) -> None:
    vigil = scene.vigil
    vigil.config.write_text("[watchdog]\nstall_after = 2\nstall_repeat_seconds = 2\n")
    scene.run()
    scene.say("hello")
    for verdict in verdicts:
        vigil.client.send(NAME, prompt)
        wait_for(partial(is_stalled, vigil, verdict), 30, verdict, lambda: vigil.client.why(NAME))
        vigil.ok("restart", NAME)
        scene.ready()

    told = [one["kind"] for one in vigil.client.incidents(everything=True)]
    assert vigil.get(NAME)["mode"]["mode"] == mode
    assert ("tainted" in told) == (mode == "fresh")


def is_stalled(vigil: Instance, verdict: str) -> bool:
    session = vigil.get(NAME)
    return bool(session["health"] == "stalled" and vigil.client.why(NAME)["verdict"] == verdict)


def test_a_resume_that_comes_to_nothing_is_quarantined_and_the_next_wake_is_fresh(scene: Scene) -> None:
    vigil = scene.vigil
    scene.run()
    scene.say("hello")
    vigil.ok("hibernate", NAME)
    (scene.cwd / "comes-to-nothing").touch()

    vigil.run_cli("wake", NAME)
    vigil.wait_state(NAME, "succeeded")

    wait_for(lambda: [one["kind"] for one in vigil.client.incidents()] == ["tainted"], 10, "a person to be told")
    assert not vigil.get(NAME)["conversation"]["resumable"]
    vigil.kill_daemon()
    vigil.start()
    assert vigil.run_cli("wake", NAME, "--resume").returncode == 4
    assert vigil.json("wake", NAME)["cause"] == "quarantined"
    scene.ready()
    wait_for(lambda: not vigil.client.incidents(), 10, "nobody to be needed")


def test_two_wakes_at_once_are_one_session(scene: Scene) -> None:
    vigil = scene.vigil
    scene.run()
    scene.say("hello")
    vigil.ok("hibernate", NAME)
    answers: list[Json] = []
    threads = [threading.Thread(target=lambda: answers.append(vigil.client.wake(NAME))) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(one["mode"] for one in answers) == ["nothing", "nothing", "nothing", "resume"]
    scene.ready()
    assert vigil.get(NAME)["launches"] == 2
    assert len([pid for pid in vigil.processes() if scene.program.encode() in command_of(pid).split(b"\0")[1:3]]) == 1


TEAM = """
workspace = "shop"

[[team]]
name = "backend"

[[team.role]]
name = "coder"
replicas = 2
agent = "claude"
command = ["{program}"]
cwd = "{cwd}"
env = {{ HOME = "{home}", PYTHONIOENCODING = "utf-8" }}
restart = "always"
after_crash = "resume"
backoff = {{ base = "1s", cap = "2s" }}
"""


def test_a_manifest_applied_again_leaves_a_sleeper_asleep_in_its_own_slot(scene: Scene) -> None:
    vigil = scene.vigil
    text = TEAM.format(program=scene.program, cwd=scene.cwd, home=scene.home)
    up(vigil, text)
    slots = ["shop/backend/coder/0", "shop/backend/coder/1"]
    for slot in slots:
        scene.ready(slot)
        scene.say("hello", slot)
    before = vigil.json("hibernate", slots[0])

    up(vigil, text)
    vigil.kill_daemon()
    vigil.start()
    up(vigil, text.replace('base = "1s"', 'base = "2s"'))

    asleep = vigil.get(slots[0])
    assert (asleep["state"], asleep["id"], asleep["conversation"]) == ("parked", before["id"], before["conversation"])
    assert sorted(one["name"] for one in vigil.client.sessions()) == slots
    woken = vigil.json("wake", slots[0])
    assert (woken["mode"], woken["cause"]) == ("resume", "parked")
    scene.ready(slots[0])
    vigil.client.send(slots[0], "crash")  # after_crash = resume: once
    wait_for(lambda: vigil.get(slots[0])["mode"] == {"mode": "resume", "cause": "crashed"}, 20, "it to come back")
    scene.ready(slots[0])
    assert vigil.get(slots[0])["conversation"]["id"] == before["conversation"]["id"]
    vigil.client.send(slots[0], "crash")
    wait_for(lambda: vigil.get(slots[0])["mode"] == {"mode": "fresh", "cause": "crashed"}, 30, "it to come back")


def test_ten_messages_wake_a_sleeper_and_each_comes_once_in_order_although_the_daemon_is_killed(scene: Scene) -> None:
    vigil = scene.vigil
    scene.run()
    scene.say("hello")
    conversation = vigil.get(NAME)["conversation"]["id"]
    vigil.ok("hibernate", NAME)
    (scene.cwd / "not-ready").touch()
    wanted = [f"message {number}" for number in range(10)]

    answers = [vigil.client.send(NAME, text) for text in wanted]
    assert [one["outcome"] for one in answers] == ["queued"] * 10
    assert len(vigil.get(NAME)["queue"]) == 10
    vigil.kill_daemon()
    vigil.start()
    (scene.cwd / "not-ready").unlink()
    wait_for(lambda: len(scene.prompts) >= 4, 30, "some to arrive")
    vigil.kill_daemon()
    vigil.start()
    wait_for(
        lambda: not vigil.get(NAME)["queue"], 60, "all to be dealt with", lambda: (scene.prompts, vigil.get(NAME)["queue"])
    )

    sent = scene.events("message.sent")
    arrived = scene.prompts[1:]
    assert arrived == [text for text in wanted if text in arrived], (arrived, sent)  # once, in order
    assert len(sent) == 10
    told = sum(one["outcome"] == "unknown" for one in sent)
    assert len(arrived) >= 10 - told
    assert told <= 1
    assert set(scene.conversations) == {conversation}
    assert not list(vigil.home.messages.rglob("*.json"))


def test_a_daemon_that_is_killed_before_enter_does_not_join_two_messages(vigil: Instance, tmp_path: Path) -> None:
    wrapper = tmp_path / "tmux"
    dies = f'{{ mkdir {tmp_path}/died 2>/dev/null && kill -9 "$PPID" && exit; }}'
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *" Enter "*) {dies};; esac\nexec {shutil.which("tmux")} "$@"\n')
    wrapper.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert vigil.run_cli("daemon", "start", env=path).returncode == 0
    vigil.run(NAME, "sh", "-c", 'while read -r line; do echo "$line" >> got; done', cwd=str(tmp_path))
    vigil.ok("hibernate", NAME)

    vigil.run_cli("send", NAME, "one")
    wait_for((tmp_path / "died").exists, 20, "the daemon to be killed")
    for text in ("two", "three"):
        vigil.run_cli("send", NAME, text)  # starts the next daemon

    got = tmp_path / "got"
    wait_for(lambda: got.exists() and len(got.read_text().splitlines()) == 3, 20, "all to arrive", lambda: got.read_text())
    assert got.read_text().splitlines() == ["one", "two", "three"]


def test_whoever_waits_is_told_what_became_of_a_message_and_removing_a_session_takes_them_along(scene: Scene) -> None:
    vigil = scene.vigil
    scene.run()
    scene.say("hello")
    wait_for(lambda: [one["outcome"] for one in scene.events("session.sent")] == ["submitted"], 10, "it to be in its log")
    vigil.ok("hibernate", NAME)
    told = vigil.run_cli("send", NAME, "wake up", "--wait", "30")
    assert (told.returncode, told.stdout.startswith("submitted")) == (0, True), told.stdout + told.stderr
    scene.ready()
    vigil.ok("hibernate", NAME)
    (scene.cwd / "not-ready").touch()
    assert vigil.ok("send", NAME, "a secret").startswith("queued")
    (path,) = vigil.home.messages.rglob("*.json")
    assert path.stat().st_mode & 0o777 == 0o600

    gone = vigil.json("rm", NAME)

    assert any(one.startswith("message m") for one in gone["purged"]), gone
    assert not list(vigil.home.messages.iterdir())
    assert "a secret" not in str(vigil.client.events())
    assert scene.prompts == ["hello", "wake up"]
    assert not os.path.exists(path)
