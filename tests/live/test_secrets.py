"""A secret of an agent's environment or command is in nothing we show, record, log or run; the agent has it again and again."""

from __future__ import annotations

import os
import secrets
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.live.instance import Instance, command_of, kill, wait_for
from vigil.cli.main import app
from vigil.redact import MARK

ALLOWED = ("vigil.db*", "environments/*", "launches/*/launch.json", "launches/*/agent.sh")  # 0700: without them no relaunch
PRINTED = ("launches/*/stdout.jsonl", "launches/*/stderr.log", "launches/*/screen*")  # what the agent said itself
RUNTIMES = ("tmux", "headless")
SCRIPTS = {
    "on": "while :; do sleep 1; done",
    "crash": "exit 3",
    "stop": "while :; do sleep 1; done",
    "talk": 'echo "failed with $2 and $API_TOKEN" >&2; exit 4',
}
SHOWN = ("ls", "ls --all", "deaths", "events", "incidents", "daemon status")
SHOWN_OF_EACH = ("get", "why")


class Stage:
    """An instance that records, and the secrets of its agents."""

    def __init__(self, vigil: Instance, scripts: Path) -> None:
        self.vigil = vigil
        self.scripts = scripts
        self.recording = scripts / "it.jsonl"
        self.token = f"token{secrets.token_hex(12)}"
        self.password = f"pass{secrets.token_hex(12)}"
        vigil.ok("daemon", "start", "--record", str(self.recording))

    def run(self, kind: str, runtime: str, *more: str) -> str:
        """Run an agent that has both secrets and return its name."""
        name = f"{kind}-{runtime}"
        self.vigil.ok("run", "--name", name, *self.options(runtime), *more, "--", *self.command(self.script(kind)))
        return name

    def options(self, runtime: str) -> list[str]:
        return ["--runtime", runtime, "--cwd", str(self.scripts), "--env", f"API_TOKEN={self.token}"]

    def command(self, *words: str) -> list[str]:
        return [*words, "--password", self.password]

    def script(self, kind: str, first: str = "#!/bin/sh") -> str:
        path = self.scripts / kind
        if not path.exists():
            path.write_text(f"{first}\n{SCRIPTS.get(kind, '')}\n")
            path.chmod(0o700)
        return str(path)

    def shown(self, *words: str) -> str:
        """Return what a command prints; without a process of its own, of which there would be dozens."""
        env = {"VIGIL_HOME": str(self.vigil.path), "VIGIL_CONFIG": str(self.vigil.config)}
        done = CliRunner().invoke(app, words, env=env)
        assert done.exit_code == 0, done.output
        assert done.output.strip(), words
        return done.output

    def in_text(self, text: str) -> list[str]:
        return [secret for secret in (self.token, self.password) if secret in text]

    def in_file(self, path: Path) -> bool:
        data = path.read_bytes()
        return self.token.encode() in data or self.password.encode() in data

    def in_home(self, allowed: list[str]) -> list[str]:
        """Return the files below the home that hold a secret, and may not."""
        files = [path for path in self.vigil.path.rglob("*") if path.is_file() and not path.is_symlink()]
        found = [str(path.relative_to(self.vigil.path)) for path in files if self.in_file(path)]
        assert [name for name in found if fnmatchcase(name, "launches/*/launch.json")], "the secrets are there to be found"
        return [name for name in found if not any(fnmatchcase(name, pattern) for pattern in allowed)]

    def allowed(self) -> list[str]:
        """Return the files that may hold a secret; what an agent printed is its own affair, and only one of them did."""
        talkers = [self.vigil.get(f"talk-{runtime}")["id"] for runtime in RUNTIMES]
        printed = [pattern.replace("*", f"{talker}-*", 1) for talker in talkers for pattern in PRINTED]
        return [*ALLOWED, *printed]

    def in_processes(self) -> list[str]:
        """Return every process that shows a secret to the world, but for the agents themselves."""
        agents = {self.vigil.get(f"{kind}-{runtime}")["pid"] for kind in ("on", "stop") for runtime in RUNTIMES}
        pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
        shown = {pid: (command_of(pid) + comm_of(pid)).decode("utf-8", "replace") for pid in pids if pid not in agents}
        return [f"{pid}: {text}" for pid, text in shown.items() if self.in_text(text)]


def comm_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/comm").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def stage(vigil: Instance, scripts: Path) -> Stage:
    return Stage(vigil, scripts)


def test_a_secret_is_nowhere_but_where_the_agent_needs_it(stage: Stage) -> None:
    vigil = stage.vigil
    names = [stage.run(kind, runtime) for kind in SCRIPTS for runtime in RUNTIMES]
    for name in names:
        if name.startswith(("crash", "talk")):
            vigil.wait_state(name, "failed")
        if name.startswith("stop"):
            vigil.ok("stop", name)

    deaths = [f"death {death['id']}" for name in names for death in vigil.deaths(name)]
    assert len(deaths) == 6
    for words in (*SHOWN, *deaths, *(f"{verb} {name}" for verb in SHOWN_OF_EACH for name in names)):
        for output in ("table", "json"):
            assert stage.in_text(stage.shown(*words.split(), "-o", output)) == [], words
    assert stage.in_processes() == []
    allowed = stage.allowed()
    assert stage.in_home(allowed) == []
    vigil.ok("daemon", "stop")
    assert stage.recording.stat().st_size > 1000
    assert not stage.in_file(stage.recording)
    assert '"differ": 0' in vigil.ok("replay", str(stage.recording), "-o", "json")
    assert stage.in_home(allowed) == []


def test_what_is_shown_of_a_command_is_all_but_its_secret(stage: Stage) -> None:
    name = stage.run("on", "headless")

    assert stage.vigil.json("get", name)["command"] == [stage.script("on"), "--password", MARK]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_agent_has_its_secrets_again_after_a_restart_and_under_another_daemon(stage: Stage, runtime: str) -> None:
    vigil = stage.vigil
    name = stage.run("on", runtime, "--restart", "always", "--backoff-base", "1s")
    first = vigil.get(name)["pid"]

    kill(first, 9)
    second = wait_for(lambda: (pid := vigil.get(name)["pid"]) != first and pid, 20, "a new launch")
    vigil.kill_daemon()
    vigil.start()
    vigil.ok("restart", name)
    third = vigil.get(name)["pid"]

    assert len({first, second, third}) == 3
    wait_for(lambda: stage.password.encode() in command_of(third), 20, "the shim to become the agent")
    assert f"API_TOKEN={stage.token}".encode() in Path(f"/proc/{third}/environ").read_bytes().split(b"\0")


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_launch_that_fails_says_no_secret(stage: Stage, runtime: str) -> None:
    vigil = stage.vigil
    program = stage.script("broken", first="#!/etc/passwd")

    done = vigil.run_cli("run", "--name", "broken", *stage.options(runtime), "--", *stage.command(program))

    assert stage.in_text(done.stdout + done.stderr) == []
    for words in ("events", "deaths", "ls --all"):
        assert stage.in_text(vigil.ok(*words.split(), "-o", "json")) == []
    assert "broken" in vigil.ok("events", "-o", "json")


def test_a_command_that_is_refused_at_the_door_says_no_secret(stage: Stage) -> None:
    for first in (f"API_TOKEN={stage.token}", f"API_TOKEN={stage.token}/x"):
        done = stage.vigil.run_cli("run", *stage.options("tmux"), "--", *stage.command(first, "agent"))

        assert done.returncode == 1
        assert f"API_TOKEN={MARK} " in done.stderr
        assert stage.in_text(done.stdout + done.stderr) == []
