"""The demo shows five agents and their ends, and leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import DEADLINE_S, VIGIL, kill, wait_for
from vigil.kernel import process

SHOW_S = 90.0
ESCAPE = "\x1b"
COLOUR = re.compile(r"\x1b\[3[1-7]m")


class Theatre:
    """A temporary folder in which a demo makes its own, and the demo that runs there."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="vd-", dir="/tmp"))
        self.tmp = self.folder / "tmp"
        self.tmp.mkdir()
        self.own_home = self.folder / "own"  # the user's own instance, which a demo never touches
        unwanted = ("VIGIL_", "TMUX", "NO_COLOR", "COLUMNS", "LINES")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
        self.env = kept | {"TMPDIR": str(self.tmp), "VIGIL_HOME": str(self.own_home), "TERM": "xterm-256color"}
        self.seen = ""

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a demo whose output is a pipe."""
        self.demo = subprocess.Popen(
            [*VIGIL, "demo", *words],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=heed_signals,
        )
        return self.demo

    def read_until(self, pattern: str) -> None:
        """Read the demo's output until something is in it."""
        deadline = time.monotonic() + SHOW_S
        while re.search(pattern, self.seen) is None:
            assert self._read(deadline), f"{pattern!r} never came:\n{self.seen}"

    def end(self) -> int:
        """Read the rest and return the exit code."""
        deadline = time.monotonic() + SHOW_S
        while self._read(deadline):
            pass
        return self.demo.wait(DEADLINE_S)

    def left(self) -> list[str]:
        """Return what is left of a demo: files, folders, living processes."""
        found = [str(path) for path in self.tmp.rglob("*")]
        found += [str(self.own_home)] if self.own_home.exists() else []
        return found + [f"{pid} {stat.name}" for pid in self._processes() if (stat := process.read_stat(pid)) is not None]

    def lock_holder(self, name: str) -> int:
        """Return the pid in a lock of the demo's instance."""
        (lock,) = self.tmp.glob(f"vigil-demo-*/home/{name}.lock")
        return int(lock.read_text())

    def close(self) -> None:
        """End the demo and remove the folder."""
        demo = getattr(self, "demo", None)
        if demo is not None:
            if demo.poll() is None:
                demo.kill()
                demo.wait(DEADLINE_S)
            demo.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self, deadline: float) -> bool:
        assert self.demo.stdout is not None
        ready, _, _ = select.select([self.demo.stdout], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"no more output in time:\n{self.seen}"
        data = os.read(self.demo.stdout.fileno(), 65536)
        self.seen += data.decode()
        return bool(data)

    def _processes(self) -> list[int]:
        token = os.fsencode(self.tmp)
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and _names(entry, token)]


@pytest.fixture
def theatre() -> Iterator[Theatre]:
    """A place for one demo."""
    theatre = Theatre()
    yield theatre
    theatre.close()


@pytest.fixture
def tmux(theatre: Theatre) -> Iterator[list[str]]:
    """The command of a private tmux server."""
    command = ["tmux", "-S", f"{theatre.folder}/tmux", "-f", "/dev/null"]
    yield command
    subprocess.run([*command, "kill-server"], capture_output=True, timeout=10)


def test_a_demo_shows_each_agent_to_its_end_and_leaves_nothing(theatre: Theatre) -> None:
    theatre.start()

    assert theatre.end() == 0, theatre.seen

    for name, states in {
        "works": "running",
        "finishes": "running.*succeeded",
        "crashes": "running.*crashed.*running",
        "exits-at-birth": "crashed.*crashed.*failed +saturated",
        "loses-tmux": "running.*the demo kills its tmux server.*crashed.*server-died.*running",
    }.items():
        changes = " ".join(re.findall(rf"^ *[\d.]+ s  {name} (.*)", theatre.seen, re.MULTILINE))
        assert re.search(states, changes), (name, changes)
    record = theatre.seen.partition("What Vigil recorded")[2]
    for death in (
        "finishes +finished +exit 0",
        "crashes +crash +exit 3",
        "exits-at-birth +crash +exit 1",
        "loses-tmux +server-died +signal 9",
    ):
        assert re.search(death, record), record
    assert not re.search("works +", record.partition("Cleaning up")[0])
    assert ESCAPE not in theatre.seen
    assert theatre.left() == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupted_demo_cleans_up(theatre: Theatre, number: signal.Signals, code: int) -> None:
    demo = theatre.start()
    theatre.read_until("loses-tmux +running")

    demo.send_signal(number)

    assert theatre.end() == code, theatre.seen
    assert "Everything of the demo is gone" in theatre.seen
    assert theatre.left() == []


def test_a_demo_interrupted_while_it_sets_up_cleans_up(theatre: Theatre) -> None:
    demo = theatre.start()
    theatre.read_until("Vigil demo")

    demo.send_signal(signal.SIGINT)

    assert theatre.end() == 130, theatre.seen
    assert theatre.left() == []


def test_a_demo_interrupted_again_and_again_still_cleans_up(theatre: Theatre) -> None:
    demo = theatre.start()
    theatre.read_until("works +running")

    demo.send_signal(signal.SIGINT)
    theatre.read_until("Cleaning up")
    demo.send_signal(signal.SIGINT)
    demo.send_signal(signal.SIGTERM)

    assert theatre.end() == 130, theatre.seen
    assert theatre.left() == []


@pytest.mark.parametrize("victims", [("daemon",), ("keeper", "daemon")])
def test_a_demo_whose_daemon_dies_fails_and_cleans_up(theatre: Theatre, victims: tuple[str, ...]) -> None:
    theatre.start()
    theatre.read_until("loses-tmux +running")

    for victim in victims:
        kill(theatre.lock_holder(victim), signal.SIGKILL)

    assert theatre.end() == 5, theatre.seen
    assert "vigil: the daemon hung up" in theatre.seen
    # A keeper that the daemon was just starting finds no home any more and ends by itself.
    wait_for(lambda: not theatre.left(), 20, "everything to be gone", theatre.left)


def test_a_demo_whose_reader_goes_away_cleans_up(theatre: Theatre) -> None:
    demo = theatre.start()
    theatre.read_until("works +running")
    assert demo.stdout is not None

    demo.stdout.close()

    demo.wait(SHOW_S)
    assert theatre.left() == []


def test_on_a_terminal_the_table_is_redrawn_in_place(theatre: Theatre, tmux: list[str]) -> None:
    show(theatre, tmux)

    live = wait_for_screen(tmux, r"loses-tmux +crashed .*\n(.*\n)*AFTER")
    end = wait_for_screen(tmux, r"rc \d+")

    assert "NAME            STATE" in live
    assert live.count("ACTIVITY") == end.count("ACTIVITY") == 1
    assert "rc 0" in end
    assert re.search("loses-tmux +server-died +signal 9", end)
    assert COLOUR.search(capture(tmux, "-e"))
    wait_for(lambda: not theatre.left(), DEADLINE_S, "nothing to be left", theatre.left)


def test_on_a_terminal_ctrl_c_ends_it_and_no_color_is_obeyed(theatre: Theatre, tmux: list[str]) -> None:
    theatre.env["NO_COLOR"] = "1"
    show(theatre, tmux)
    wait_for_screen(tmux, r"loses-tmux +running")
    assert not COLOUR.search(capture(tmux, "-e"))

    subprocess.run([*tmux, "send-keys", "C-c"], check=True, timeout=10)

    assert "rc 130" in wait_for_screen(tmux, r"rc \d+")
    asked = subprocess.run([*tmux, "display", "-p", "#{cursor_flag}"], check=True, capture_output=True, timeout=10)
    assert asked.stdout == b"1\n", "the cursor is hidden"
    wait_for(lambda: not theatre.left(), DEADLINE_S, "nothing to be left", theatre.left)


def heed_signals() -> None:
    """Undo what a shell's `&` and nohup make a test run ignore: a demo would inherit it."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def show(theatre: Theatre, tmux: list[str]) -> None:
    """Run a demo in a terminal; its exit code is printed after it, and the screen stays."""
    script = theatre.folder / "show.sh"  # a file: the server's own command line is not to name the demo's folder
    script.write_text(f"trap : INT\nTMPDIR='{theatre.tmp}' {' '.join(VIGIL)} demo\necho rc $?\nexec cat\n")
    env = {key: value for key, value in theatre.env.items() if key != "TMPDIR"}
    command = [*tmux, "new-session", "-d", "-x", "110", "-y", "48", "sh", str(script)]
    subprocess.run(command, check=True, env=env, timeout=10)


def wait_for_screen(tmux: list[str], pattern: str) -> str:
    """Wait until something is on the screen, and return all of it."""
    return wait_for(
        lambda: text if re.search(pattern, text := capture(tmux)) else None,
        SHOW_S,
        f"{pattern!r} on the screen",
        lambda: capture(tmux),
    )


def capture(tmux: list[str], *options: str) -> str:
    """Return the screen."""
    return subprocess.run(
        [*tmux, "capture-pane", "-p", *options], check=True, capture_output=True, text=True, timeout=10
    ).stdout


def _names(entry: str, token: bytes) -> bool:
    """Say whether a living process names a folder in its command line or environment."""
    try:
        stat = process.read_stat(int(entry))
        if stat is None or stat.state in "ZX":
            return False
        return any(token in Path(f"/proc/{entry}/{name}").read_bytes() for name in ("cmdline", "environ"))
    except OSError:
        return False
