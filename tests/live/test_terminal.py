"""What a person sees: attaching, watching, completing; on a real terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import VIGIL, Instance, wait_for


class Terminal:
    """A terminal of a person's own: a private tmux server that runs one command."""

    def __init__(self, env: dict[str, str], command: str, width: int = 120) -> None:
        self.folder = tempfile.mkdtemp(prefix="vgt-", dir="/tmp")
        self.socket = os.path.join(self.folder, "s")
        self.env = {key: value for key, value in env.items() if not key.startswith("TMUX")} | {"TERM": "screen-256color"}
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", "30", command)

    def tmux(self, *words: str) -> str:
        """Run tmux on this terminal."""
        return subprocess.run(
            ["tmux", "-u", "-S", self.socket, *words], env=self.env, capture_output=True, text=True, timeout=10
        ).stdout

    def screen(self) -> str:
        """Return what it shows."""
        return self.tmux("capture-pane", "-p")

    def type(self, *keys: str) -> None:
        """Press keys."""
        self.tmux("send-keys", *keys)

    def close(self) -> None:
        """End the terminal."""
        self.tmux("kill-server")
        Path(self.socket).unlink(missing_ok=True)
        os.rmdir(self.folder)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    """Terminals that are closed after the test."""
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def test_a_person_attaches_sees_the_agent_and_leaves_it_running(shared: Instance, terminals: list[Terminal]) -> None:
    session = shared.run("seen", "sh", "-c", "echo hello from the agent; sleep 1000")

    terminals.append(Terminal(shared.env, f"{' '.join(VIGIL)} attach seen; echo left with $?; sleep 1000"))
    terminal = terminals[0]

    wait_for(lambda: "hello from the agent" in terminal.screen(), 10, "the agent's screen", terminal.screen)
    assert "vigil: seen" in terminal.screen()
    wait_for(lambda: shared.get("seen")["attached"] == 1, 10, "the person to be counted")
    terminal.type("C-b", "d")
    wait_for(lambda: "left with 0" in terminal.screen(), 10, "the person to have left", terminal.screen)
    wait_for(lambda: shared.get("seen")["attached"] == 0, 10, "nobody to be there")
    assert shared.get("seen")["pid"] == session["pid"]


def test_inside_a_tmux_of_ones_own_the_status_line_says_the_keys_that_leave_the_inner_one(
    shared: Instance, terminals: list[Terminal]
) -> None:
    shared.run("nested", "sleep", "1000")

    terminals.append(Terminal(shared.env, f"{' '.join(VIGIL)} attach nested; echo left with $?; sleep 1000"))
    wait_for(lambda: "Ctrl-b Ctrl-b d leaves" in terminals[0].screen(), 15, "the keys", terminals[0].screen)
    client = [*VIGIL[:1], "-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))", *VIGIL, "attach", "nested"]
    outside = shared.env | {"TERM": "xterm-256color"}
    with subprocess.Popen(client, env=outside, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as attached:
        assert attached.stdin is not None and attached.stdout is not None
        seen = b""
        while b" leaves " not in seen and (data := os.read(attached.stdout.fileno(), 65536)):
            seen += data
        attached.stdin.write(b"\x02d")
        attached.stdin.flush()

        assert b"Ctrl-b d leaves" in seen and b"Ctrl-b Ctrl-b" not in seen
        assert attached.wait(15) == 0


def test_run_with_attach_shows_the_terminal_at_once(shared: Instance, terminals: list[Terminal]) -> None:
    command = f"{' '.join(VIGIL)} run --name now --attach -- sh -c 'echo here I am; sleep 1000'; sleep 1000"

    terminals.append(Terminal(shared.env, command))

    wait_for(lambda: "here I am" in terminals[0].screen(), 20, "the agent's screen", terminals[0].screen)


def test_attaching_without_a_terminal_or_to_a_headless_session_is_refused(shared: Instance) -> None:
    shared.run("quiet", "sleep", "1000", runtime="headless")
    shared.run("loud", "sleep", "1000")

    headless, piped = shared.run_cli("attach", "quiet"), shared.run_cli("attach", "loud")

    assert (headless.returncode, piped.returncode) == (4, 1)
    assert "vigil logs --follow quiet" in headless.stderr
    assert "needs a terminal" in piped.stderr


def test_a_run_that_cannot_attach_makes_no_session(shared: Instance) -> None:
    piped = shared.run_cli("run", "--name", "unseen", "--attach", "--", "sleep", "1000")
    headless = shared.run_cli("run", "--name", "unseen", "--attach", "--runtime", "headless", "--", "sleep", "1000")

    assert (piped.returncode, piped.stdout, headless.returncode, headless.stdout) == (1, "", 2, "")
    assert shared.run_cli("get", "unseen").returncode == 3


def test_attaching_without_tmux_in_the_path_is_one_line(shared: Instance, terminals: list[Terminal]) -> None:
    shared.run("near", "sleep", "1000")

    terminals.append(Terminal(shared.env, f"PATH=/no/such/folder {' '.join(VIGIL)} attach near; sleep 1000", width=120))

    wait_for(lambda: "vigil: tmux cannot be run from here" in terminals[0].screen(), 20, "the words", terminals[0].screen)
    assert "Traceback" not in terminals[0].screen()


def test_ls_watch_shows_changes_as_they_happen(shared: Instance, terminals: list[Terminal]) -> None:
    shared.run("mayfly", "sleep", "1000")
    terminals.append(Terminal(shared.env, f"{' '.join(VIGIL)} ls --watch; echo over; sleep 1000", width=100))
    terminal = terminals[0]
    wait_for(lambda: "mayfly  running" in terminal.screen(), 10, "the session", terminal.screen)

    shared.client.ask("stop", "mayfly")

    wait_for(lambda: "mayfly  stopped" in terminal.screen(), 10, "the change", terminal.screen)
    assert all(len(line) <= 100 for line in terminal.screen().splitlines())
    terminal.type("C-c")
    wait_for(lambda: "over" in terminal.screen(), 10, "it to end", terminal.screen)


def test_ls_fits_a_narrow_terminal_and_is_coloured_only_on_one(shared: Instance, terminals: list[Terminal]) -> None:
    shared.run("a-rather-long-name-for-a-session-that-does-not-fit", "sh", "-c", "exit 3")
    terminals.append(Terminal(shared.env, f"{' '.join(VIGIL)} ls; sleep 1000", width=72))
    terminal = terminals[0]
    wait_for(lambda: "NAME" in terminal.screen(), 10, "the table", terminal.screen)

    coloured = terminal.tmux("capture-pane", "-p", "-e")

    assert "\x1b[" in coloured
    assert terminal.screen().splitlines()[0].startswith("NAME")
    assert all("STATE" in line or len(line) <= 72 for line in terminal.screen().splitlines())
    assert "\x1b" not in shared.ok("ls")


def test_a_terminal_without_utf8_gets_marks_and_no_traceback(shared: Instance) -> None:
    shared.run("plain", "sleep", "1000")

    done = shared.run_cli("events", "plain", env={"PYTHONIOENCODING": "ascii"})

    assert (done.returncode, done.stderr) == (0, "")
    assert "pending ? starting" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_exists_for_each_shell(shared: Instance, shell: str) -> None:
    done = shared.run_cli(env={"_VIGIL_COMPLETE": f"{shell}_source"})

    assert "_VIGIL_COMPLETE" in done.stdout
    assert "vigil" in done.stdout


def test_names_of_sessions_are_completed(shared: Instance) -> None:
    shared.run("complete-me", "sleep", "1000")

    done = shared.run_cli(env={"_VIGIL_COMPLETE": "bash_complete", "COMP_WORDS": "vigil stop com", "COMP_CWORD": "2"})

    assert "complete-me" in done.stdout


def test_every_command_has_help_with_an_example(shared: Instance) -> None:
    listing = shared.ok("--help")
    names = [line.split()[0] for line in listing.split("Run:")[1].splitlines() if line.startswith("  ")]
    assert {
        "run",
        "ls",
        "get",
        "why",
        "events",
        "logs",
        "attach",
        "stop",
        "start",
        "restart",
        "rm",
        "daemon",
        "doctor",
        "demo",
    } <= set(names)
    assert not {"top", "web", "service"} & set(names)
    for name in names:
        if name != "fake-agent":
            assert "Example:" in shared.ok(name, "--help"), name
    for name in ("start", "stop", "status", "logs"):
        assert "Example:" in shared.ok("daemon", name, "--help"), name


def test_a_command_for_people_imports_only_what_it_needs() -> None:
    heavy = ("asyncio", "sqlalchemy", "pydantic", "fastapi", "rich", "alembic", "structlog", "uvicorn")
    script = f"import sys; import vigil.cli.main, vigil.cli.ls; print([m for m in {heavy!r} if m in sys.modules])"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)

    assert done.stdout == "[]\n", done.stderr
