"""Canaries: agents say the secrets of their environment by every way they have, and none of it is in anything of ours.

What an agent printed stays as it is in its launch's folder, and `vigil logs` shows it: that is its owner's own terminal."""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.live.instance import Instance, kill, wait_for
from tests.live.receivers import WebReceiver, web_receiver

# Without these there is no next launch; and what agents wrote themselves. All of it is 0600 below 0700.
ALLOWED = ("environments/*", "launches/*/launch.json", "launches/*/agent.sh", "launches/*/settings*", "launches/*/std*")
PRINTED = ("launches/*/screen*", "launches/*/snapshot.json")  # the keeper's raw facts: names that processes gave themselves
SHOWN = (
    "ls --all",
    "deaths",
    "events",
    "events --limit 1000",
    "incidents",
    "incidents --all",
    "daemon status",
    "reap --dry-run",
)
OF_EACH = ("get", "why", "death")
AGENT = r"""
import json, os, subprocess, sys, time

words = sys.argv[1:]
mode = os.environ["CANARY_MODE"]
canaries = json.load(open(os.environ["CANARIES"]))
settings = json.load(open(words[words.index("--settings") + 1])) if "--settings" in words else {"hooks": {}}
commands = [one["command"] for groups in settings["hooks"].values() for group in groups for one in group["hooks"]]
KINDS = ["SessionStart", "UserPromptSubmit", "PreToolUse", "Notification", "SubagentStart", "PostToolUseFailure", "PreCompact"]
KINDS += ["SubagentStop", "StopFailure", "Stop", "PostToolUse", "ToDo", "Elicitation", "PermissionRequest"]
FIELDS = ["tool_name", "tool_use_id", "message", "error", "error_details", "reason", "prompt", "agent_type", "agent_id"]
FIELDS += ["notification_type", "source", "model", "last_assistant_message", "stop_reason", "teammate_name", "tool_response"]

def hook(payload):
    for command in commands[:1]:
        subprocess.run(command, shell=True, input=json.dumps(payload).encode(), check=False)

def say_all():
    for canary in canaries:
        for pad in ("", "x" * 189 + " ", " " * 795):
            everything = {field: pad + canary + " told" for field in FIELDS}
            everything["tool_input"] = {"command": "curl " + canary, "description": canary, "questions": [{"question": canary}]}
            for kind in KINDS:
                hook({"hook_event_name": kind, **everything})
                if pad:
                    break
            hook({"hook_event_name": ("x" * 65 + " " if pad else "") + canary, **everything})
            hook({"hook_event_name": "StopFailure", "error": "authentication_failed", "error_details": pad + canary})
            hook({"hook_event_name": "Notification", "notification_type": "elicitation_dialog", "message": pad + canary})
        hook({"hook_event_name": "SessionStart", "source": "startup", "session_id": canary})

def stream(event):
    print(json.dumps(event), flush=True)

def print_all():
    for canary in canaries:
        tool = {"type": "tool_use", "name": canary, "id": canary, "input": {"command": canary}}
        stream({"type": "system", "subtype": "init", "session_id": canary, "model": canary})
        stream({"type": "assistant", "message": {"content": [tool, {"type": "text", "text": canary}]}})
        stream({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": canary, "content": canary}]}})
        stream({"type": canary, "subtype": canary})
        stream({"type": "system", "subtype": "api_retry", "error": canary, "attempt": 1})
        stream({"type": "result", "subtype": "error_during_execution", "is_error": True, "result": canary, "errors": [canary]})
        print("said", canary, flush=True)
        print("complained of", canary, file=sys.stderr, flush=True)

for canary in canaries:
    print("see", canary, flush=True)
with open("/proc/self/comm", "w") as file:
    file.write(canaries[0][:15])
if mode == "asks":
    stray = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", *canaries])
    say_all()
    hook({"hook_event_name": "PermissionRequest", "tool_name": canaries[0], "tool_input": {"command": canaries[0]}})
    open(os.environ["CANARY_DONE"], "w").close()
    time.sleep(1000)
if mode == "dies":
    print_all()
    stream({"type": "result", "subtype": "success", "is_error": True, "result": "API Error: 401 " + canaries[0]})
    sys.exit("it ends with " + " ".join(canaries))
"""


class Cage:
    """An instance that records and tells, and agents with secrets."""

    def __init__(self, vigil: Instance, folder: Path, web: WebReceiver) -> None:
        self.vigil, self.folder, self.web = vigil, folder, web
        self.recording, self.notices, self.done = folder / "it.jsonl", folder / "notices", folder / "done"
        unlucky = secrets.token_hex(6)
        self.secrets = {
            "MY_DB_PASSWORD": "Tr0ub4dor" + "-and-3",
            "SERVICE_TOKEN": f"tok{unlucky}",
            "SIGNING_KEY": f'quo"te\\d-{unlucky}-k',
            "ODD_SECRET": f"two  words-{unlucky}",
            "MY_PRIVATE_KEY": f"first-line-of-it-{unlucky}\nsecond-line-of-it-{unlucky}",
        }
        self.url_password = f"pw{unlucky}url"
        self.key = "gs" + "k_" + secrets.token_hex(20)  # in no variable: by its shape alone
        (folder / "canaries").write_text(json.dumps([*self.secrets.values(), self.url_password, self.key]))
        self.program = folder / "claude"
        self.program.write_text(f"#!{sys.executable}\n{AGENT}")
        self.program.chmod(0o755)
        script = folder / "notice.sh"
        script.write_text(f"#!/bin/sh\ncat >>{self.notices}\n")
        script.chmod(0o755)
        vigil.config.write_text(
            f"[routes.script]\nexec = ['{script}']\ndetails = true\n"
            f"[routes.web]\nwebhook = '{web.url}'\ndetails = true\n"
            + "".join(
                f"[[ladder]]\nseverity = '{severity}'\nsteps = [{{ route = 'script' }}, {{ route = 'web' }}]\n"
                for severity in ("urgent", "action", "warning")
            )
        )
        vigil.ok("daemon", "start", "--record", str(self.recording))

    def env(self, mode: str) -> dict[str, str]:
        more = {"CANARY_MODE": mode, "CANARIES": str(self.folder / "canaries"), "CANARY_DONE": str(self.done)}
        more |= {"DATABASE_URL": f"postgres://me:{self.url_password}@host/db", "HOME": str(self.folder)}
        return self.vigil.env | self.secrets | more

    def run(self, name: str, mode: str, **options: object) -> None:
        self.vigil.run(name, str(self.program), agent="claude", env=self.env(mode), cwd=str(self.folder), **options)

    def forms(self) -> set[str]:
        """Return what may be nowhere: each secret as it is, and as JSON, URLs and headers have it."""
        known = [*self.secrets.values(), self.url_password, self.key]
        forms = {one for secret in known for one in (secret, json.dumps(secret)[1:-1], quote(secret, safe=""))}
        forms |= {" ".join(secret.split()) for secret in known} | {line for secret in known for line in secret.split("\n")}
        forms |= {secret[:-1] for secret in known}  # also cut off
        return forms | {base64.b64encode(secret.encode()).decode() for secret in known}

    def leaks(self, text: str) -> list[str]:
        return [text[max(0, at - 120) : at + 80] for form in self.forms() if (at := text.find(form)) >= 0]

    def leaking_files(self) -> list[str]:
        """Return the files of the home that hold a secret and may not; databases byte for byte, with their logs."""
        files = [path for path in self.vigil.path.rglob("*") if path.is_file() and not path.is_symlink()]
        assert any(path.name == "vigil.db" for path in files)
        texts = {str(path.relative_to(self.vigil.path)): path.read_bytes().decode("utf-8", "replace") for path in files}
        found = {name: self.leaks(text) for name, text in texts.items()}
        assert found[next(name for name in found if fnmatchcase(name, "launches/*/launch.json"))], "they are there to be found"
        return [
            f"{name}: {leaks[0]}"
            for name, leaks in found.items()
            if leaks and not any(fnmatchcase(name, pattern) for pattern in (*ALLOWED, *PRINTED))
        ]

    def check(self, names: list[str]) -> None:
        """Look into all that we show and keep."""
        wordings = [*SHOWN, *(f"{verb} {name}" for name in names for verb in OF_EACH)]
        wordings += [f"diag {name}" for name in names if self.vigil.get(name)["state"] == "running"]
        wordings += [f"incidents {one['id']}" for one in self.vigil.client.incidents(True)]
        for words in wordings:
            for output in ("table", "json"):
                done = self.vigil.run_cli(*words.split(), "-o", output)
                assert self.leaks(done.stdout + done.stderr) == [], words
        assert self.leaking_files() == []
        assert self.leaks(self.recording.read_text()) == []
        told = self.notices.read_text() + "".join(body.decode() for _, _, body in self.web.got)
        assert '"details"' in told
        assert self.leaks(told) == []


@contextmanager
def tmux_server(cage: Cage) -> Iterator[str]:
    """Run an agent in a tmux server that is not ours."""
    socket = str(cage.folder / "foreign.tmux")
    env = cage.env("asks")
    start = ["tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-s", "theirs", str(cage.program)]
    subprocess.run(start, env=env, check=True)
    try:
        yield socket
    finally:
        subprocess.run(["tmux", "-S", socket, "kill-server"], check=False, capture_output=True)


@pytest.fixture
def cage(vigil: Instance, tmp_path: Path) -> Iterator[Cage]:
    with web_receiver() as web:
        yield Cage(vigil, tmp_path, web)


def test_no_secret_of_an_environment_is_in_anything_we_show_keep_record_or_tell(cage: Cage) -> None:
    vigil = cage.vigil
    cage.run("asks", "asks")
    cage.run("dies", "dies", runtime="headless", restart="always", max_restarts=1, backoff_base_s=0.1)
    wait_for(cage.done.exists, 60, "it to have said all")
    wait_for(lambda: any(one["kind"] == "needs-input" for one in vigil.client.incidents(True)), 30, "its question")
    wait_for(lambda: vigil.client.status()["hooks"]["backlog"] == 0, 30, "all hooks to be read")
    wait_for(lambda: vigil.deaths("dies"), 30, "its death")
    screen = vigil.home.launch(vigil.get("asks")["launch"]) / "screen"
    wait_for(lambda: screen.exists() and cage.leaks(screen.read_text()), 30, "its screen to be kept")
    wait_for(lambda: cage.notices.exists() and len(cage.web.got) > 1, 30, "notices")
    assert cage.leaks(vigil.ok("logs", "asks")) and cage.leaks(vigil.ok("logs", "dies")), "what it printed is shown as it is"
    cage.check(["asks", "dies"])

    vigil.kill_daemon()  # another daemon knows them as well, of the living and of the dead
    vigil.start()
    agent = vigil.get("asks")["pid"]
    os.kill(agent, signal.SIGTERM)
    vigil.wait_state("asks", "failed", "stopped", within_s=30)
    vigil.ok("stop", "dies")
    vigil.ok("rm", "dies")
    wait_for(lambda: vigil.deaths("asks"), 20, "its death")
    cage.check(["asks"])
    vigil.ok("daemon", "stop")
    assert cage.leaking_files() == []
    assert '"differ": 0' in vigil.ok("replay", str(cage.recording), "-o", "json")


def test_the_secrets_of_an_adopted_agent_are_hidden_also_after_its_end_and_by_the_next_daemon(cage: Cage) -> None:
    vigil = cage.vigil
    with tmux_server(cage) as socket:
        wait_for(cage.done.exists, 60, "it to have said all")
        vigil.ok("adopt", "theirs", "--socket", socket, "--name", "mine")
        session = vigil.get("mine")
        order = json.loads((vigil.home.launch(session["launch"]) / "launch.json").read_text())
        assert set(order["env"]) >= set(cage.secrets) and "PATH" not in order["env"]
        for step in ("alive", "another daemon", "dead", "dead, another daemon"):
            if "another daemon" in step:
                vigil.kill_daemon()
                vigil.start()
            if step == "dead":
                kill(session["pid"], signal.SIGKILL)
                vigil.wait_death("mine")
            words = ["get mine", "why mine", "events", "deaths", "death mine", *(["diag mine"] if step == "alive" else [])]
            for one in words:
                done = vigil.run_cli(*one.split(), "-o", "json")
                assert cage.leaks(done.stdout + done.stderr) == [], (step, one)
        assert cage.leaking_files() == []
