"""Screens are on disk before anything dies: real tmux servers, whose panes print what a test gives them."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import DEADLINE_S, kill, resume, wait_for
from tests.unit.builders import make_launch, make_session, make_spec
from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.session import Session
from vigil.daemon.sense.screens import (
    SCREEN_BYTES,
    Screens,
    SeenScreen,
    find_terminal,
    fit,
    has_printed,
    is_same,
    shown_of,
)
from vigil.home import Home
from vigil.kernel.durable import write_whole
from vigil.kernel.process import is_alive, read_boot, read_start_ticks, read_stat
from vigil.runtimes import Headless, Tmux
from vigil.runtimes.tmux.screen import ScreenRefused, capture

PRINTER = 'while :; do cat "$0"; done'
COMMAND = ("capture-pane", "-p", "-J", "-S", "-200", "-t", "%0")
LONG_AGO = 1_000_000_000


class Pane:
    """A session in a tmux server of its own, that prints what it is given."""

    def __init__(self, home: Home, name: str) -> None:
        self.folder = home.launch(name)
        self.folder.mkdir(mode=0o700)
        self.socket = home.server_path(name)
        self._fifo = home.path / f"{name}.fifo"
        os.mkfifo(self._fifo)
        words = ["-P", "-F", "#{pid} #{pane_pid} #{pane_id} #{pane_tty}", "/bin/sh", "-c", PRINTER, str(self._fifo)]
        started = self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50", *words)
        server, root, pane, self.terminal = started.decode().split()
        self.server = process(int(server))
        self.launch = make_launch(name, id=name, server=self.server, root=process(int(root)), pane=pane)
        self.session = make_session(id=name, name=name, spec=make_spec(), launch=self.launch)

    @property
    def screen(self) -> Path:
        """Where its screen is kept."""
        return self.folder / "screen"

    def tmux(self, *words: str) -> bytes:
        """Run tmux on its server, as somebody else would."""
        done = subprocess.run(["tmux", "-u", "-S", self.socket, *words], capture_output=True, timeout=10)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def print(self, data: bytes) -> None:
        """Let it print, and wait until that is on its screen."""
        end = f"end-{time.monotonic_ns()}"
        with open(self._fifo, "wb") as file:
            file.write(data + f"{end}\r\n".encode())
        wait_for(lambda: end.encode() in self.tmux("capture-pane", "-p"), DEADLINE_S, "the output to be shown")

    def shows(self, words: bytes) -> bool:
        """Say whether its kept screen has these words."""
        return self.screen.exists() and words in self.screen.read_bytes()

    def printed_long_ago(self) -> None:
        """Make its terminal look as if all was printed long ago."""
        os.utime(self.terminal, (LONG_AGO, LONG_AGO))

    def stop(self) -> None:
        """Stop its server, and wait until it is."""
        os.kill(self.server.pid, signal.SIGSTOP)
        wait_for(lambda: state_of(self.server.pid) == "T", DEADLINE_S, "the server to stop")

    def end(self) -> None:
        """End its server, and all that lives in it."""
        if is_alive(self.server.pid, self.server.start_ticks):
            resume(self.server.pid)
            kill(self.server.pid, signal.SIGKILL)
        root = self.launch.root
        assert root is not None
        wait_for(lambda: not is_alive(root.pid, root.start_ticks), DEADLINE_S, "the pane's root to end")


def process(pid: int) -> ProcessId:
    ticks = read_start_ticks(pid)
    assert ticks is not None
    return ProcessId(pid, ticks, read_boot())


def state_of(pid: int) -> str:
    stat = read_stat(pid)
    return stat.state if stat else ""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home whose sockets have short names."""
    run = Path(tempfile.mkdtemp(prefix="vgs-", dir="/tmp"))
    (tmp_path / "launches").mkdir()
    yield Home(tmp_path, run)
    shutil.rmtree(run)


@pytest.fixture
def panes(home: Home) -> Iterator[Callable[[str], Pane]]:
    """A maker of panes, which end with the test."""
    made: list[Pane] = []

    def make(name: str) -> Pane:
        made.append(Pane(home, name))
        return made[-1]

    yield make
    for pane in made:
        pane.end()


@pytest.fixture
def tmux(home: Home) -> Tmux:
    """The runtime."""
    return Tmux(home, lambda _: None, lambda _well, _why: None)


async def keep_until(screens: Screens, panes: list[Pane], look: Callable[[], bool]) -> None:
    """Keep screens, pass after pass, until something is so: on a busy machine a server may miss its second."""
    sessions = [pane.session for pane in panes]
    async with asyncio.timeout(DEADLINE_S):
        while not look():
            await screens.keep(sessions)


# What a screen says


CONTENTS = {
    "empty": b"",
    "plain": b"one\r\n\r\n  two  \r\n",
    "colours": b"\x1b[31mred\x1b[0m \x1b[48;5;22;1mgreen\x1b[0m \x1b[38;2;1;2;3mtrue\x1b[0m\r\n",
    "wide": "漢字 한글 🎉 e\u0301 ﷽ \u200b\r\n".encode() * 30,
    "wrapped": b"".join(b"%d " % number for number in range(3000)) + b"\r\n",
    "positions": b"\x1b[2J\x1b[30;60Hfar\x1b[1;1Htop\x1b[50;1H",
    "alternate": b"\x1b[?1049h\x1b[Hthe other screen\r\n",
    "no utf-8": bytes(range(0x80, 0x100)) * 3 + b"\r\n",
    "lines": b"".join(b"line %d\r\n" % number for number in range(2000)),
    "10 MB": b"".join(b"%07d %s\r\n" % (number, b"x" * 90) for number in range(100_000)),
}


@pytest.mark.parametrize("kind", CONTENTS)
async def test_a_screen_reads_as_the_command_prints_it(panes: Callable[[str], Pane], kind: str) -> None:
    pane = panes("a")
    if CONTENTS[kind]:
        pane.print(CONTENTS[kind])

    assert await capture(pane.socket, "%0", 200) == pane.tmux(*COMMAND)


async def test_a_pane_that_is_not_there_is_refused(panes: Callable[[str], Pane]) -> None:
    pane = panes("a")

    with pytest.raises(ScreenRefused):
        await capture(pane.socket, "%9", 200)

    assert await capture(pane.socket, "%0", 200)


async def test_a_hundred_readings_leave_a_server_as_it_was(panes: Callable[[str], Pane]) -> None:
    pane = panes("a")
    pane.print(b"hello\r\n")
    state = "#{session_attached} #{session_last_attached} #{window_width}x#{window_height} #{window_activity} #{pane_dead}"
    shown = (pane.tmux("display-message", "-p", state), pane.tmux("list-sessions"))
    before = files_of(pane)

    for _ in range(100):
        await capture(pane.socket, "%0", 200)

    wait_for(lambda: files_of(pane) <= before, DEADLINE_S, "the server to have closed them all")
    assert (pane.tmux("display-message", "-p", state), pane.tmux("list-sessions")) == shown
    assert pane.tmux("list-clients") == b""


def files_of(pane: Pane) -> int:
    return len(os.listdir(f"/proc/{pane.server.pid}/fd"))


# When it is kept


async def test_what_was_printed_is_on_disk_when_the_server_is_killed(
    home: Home, tmux: Tmux, panes: Callable[[str], Pane]
) -> None:
    pane = panes("a")
    pane.print(b"Error: the last thing it said\r\n")
    before = time.time()

    await keep_until(Screens(home, tmux), [pane], pane.screen.exists)
    kill(pane.server.pid, signal.SIGKILL)

    assert b"Error: the last thing it said" in await tmux.read_output(pane.launch, 50)
    found = pane.screen.stat()
    assert found.st_mode & 0o777 == 0o600
    assert before - 1 <= found.st_mtime <= time.time()
    assert sorted(path.name for path in pane.folder.iterdir()) == ["screen"]


def test_the_mtime_of_a_screen_is_the_moment_it_was_asked_for(tmp_path: Path) -> None:
    write_whole(str(tmp_path / "screen"), b"hello\n", at=1234.5)

    assert (tmp_path / "screen").stat().st_mtime == 1234.5
    assert (tmp_path / "screen").read_bytes() == b"hello\n"


async def test_what_is_quiet_is_not_read_again_until_it_prints(home: Home, tmux: Tmux, panes: Callable[[str], Pane]) -> None:
    pane, screens = panes("a"), Screens(home, tmux)
    pane.print(b"first\r\n")
    pane.printed_long_ago()
    await keep_until(screens, [pane], pane.screen.exists)
    pane.screen.write_bytes(b"untouched")

    for _ in range(3):
        await screens.keep([pane.session])
    assert pane.screen.read_bytes() == b"untouched"

    pane.print(b"second\r\n")
    await keep_until(screens, [pane], lambda: pane.shows(b"second"))


async def test_reading_is_no_printing(home: Home, tmux: Tmux, panes: Callable[[str], Pane]) -> None:
    pane = panes("a")
    pane.print(b"hello\r\n")
    pane.printed_long_ago()

    await keep_until(Screens(home, tmux), [pane], pane.screen.exists)
    pane.tmux("capture-pane", "-p")
    pane.tmux("resize-window", "-x", "100")

    assert os.stat(pane.terminal).st_mtime == LONG_AGO


async def test_a_new_daemon_begins_with_what_is_on_disk(home: Home, tmux: Tmux, panes: Callable[[str], Pane]) -> None:
    pane = panes("a")
    pane.print(b"hello\r\n")
    pane.printed_long_ago()
    await keep_until(Screens(home, tmux), [pane], pane.screen.exists)
    kept = (pane.screen.stat().st_ino, pane.screen.stat().st_mtime)

    await Screens(home, tmux).keep([pane.session])

    assert (pane.screen.stat().st_ino, pane.screen.stat().st_mtime) == kept


async def test_twenty_that_print_at_once_are_kept_without_a_process(
    home: Home, tmux: Tmux, panes: Callable[[str], Pane], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [panes(f"p{number}") for number in range(20)]
    for number, pane in enumerate(made):
        pane.print(b"hello from %d.\r\n" % number)

    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/nowhere")  # no tmux could be started
        await keep_until(Screens(home, tmux), made, lambda: all(pane.screen.exists() for pane in made))

    for number, pane in enumerate(made):
        assert pane.shows(b"hello from %d." % number)
        assert pane.tmux("display-message", "-p", "#{session_attached} #{window_width}x#{window_height}") == b"0 200x50\n"
        assert pane.tmux("list-clients") == b""


async def test_a_server_that_is_stopped_delays_nobody_and_goes_on_unharmed(
    home: Home, tmux: Tmux, panes: Callable[[str], Pane]
) -> None:
    made, screens = [panes("a"), panes("b"), panes("c")], Screens(home, tmux)
    for pane in made:
        pane.print(b"hello\r\n")
    stopped = made[1]
    stopped.stop()

    await keep_until(screens, made, lambda: made[0].shows(b"hello") and made[2].shows(b"hello"))
    assert not stopped.screen.exists()
    assert tmux.probes()[0] == 0

    resume(stopped.server.pid)
    await keep_until(screens, made, lambda: stopped.shows(b"hello"))
    wait_for(lambda: stopped.tmux("list-clients") == b"", DEADLINE_S, "nobody to be there")


async def test_a_server_that_owes_an_answer_is_not_asked_for_its_screen(
    home: Home, tmux: Tmux, panes: Callable[[str], Pane]
) -> None:
    pane = panes("a")
    pane.stop()
    tmux.ask_server(pane.launch)
    wait_for(lambda: tmux.read_server(pane.launch, 0.0), DEADLINE_S, "the server to be given up")

    with pytest.raises(StopIteration) as over:
        tmux.read_screen(pane.launch).send(None)  # it ends without having waited for anything

    assert over.value.value is None
    await Screens(home, tmux).keep([pane.session])
    assert not pane.screen.exists()
    tmux.forget(pane.launch)


def test_a_terminal_is_found_by_the_panes_root_and_by_no_other_process_of_its_pid(panes: Callable[[str], Pane]) -> None:
    pane = panes("a")
    root = pane.launch.root
    assert root is not None

    wait_for(lambda: find_terminal(root) == pane.terminal, DEADLINE_S, "the newborn to have its terminal")

    assert find_terminal(ProcessId(root.pid, root.start_ticks + 1, root.boot)) is None
    assert find_terminal(pane.server) is None


async def test_a_terminal_that_cannot_be_found_is_judged_by_what_its_server_read(
    home: Home, tmux: Tmux, panes: Callable[[str], Pane]
) -> None:
    pane, screens = panes("a"), Screens(home, tmux)
    pane.session = with_launch(pane.session, root=None)
    pane.print(b"first\r\n")
    await keep_until(screens, [pane], lambda: pane.shows(b"first"))

    pane.print(b"second\r\n")

    await keep_until(screens, [pane], lambda: pane.shows(b"second"))


def with_launch(session: Session, **changes: Any) -> Session:
    launch = session.launch
    assert launch is not None
    values: dict[str, Any] = {"server": launch.server, "pane": launch.pane, "root": launch.root} | changes
    return make_session(id=session.id, name=session.name, launch=make_launch(session.id, id=launch.id, **values))


# When it is not


async def test_a_folder_that_is_gone_stays_gone(home: Home, tmux: Tmux, panes: Callable[[str], Pane]) -> None:
    pane = panes("a")
    pane.folder.rmdir()

    await Screens(home, tmux).keep([pane.session])

    assert not pane.folder.exists()


@pytest.mark.parametrize("change", [{"ended_at": 1.0}, {"closed": True}, {"pane": None}])
async def test_a_launch_that_is_over_or_has_no_terminal_is_left_alone(
    home: Home, tmux: Tmux, panes: Callable[[str], Pane], change: dict[str, Any]
) -> None:
    pane = panes("a")

    await Screens(home, tmux).keep([with_launch(pane.session, **change)])

    assert not pane.screen.exists()


async def test_the_last_screen_is_never_replaced(home: Home, tmux: Tmux, panes: Callable[[str], Pane]) -> None:
    pane, screens = panes("a"), Screens(home, tmux)
    pane.print(CONTENTS["lines"])
    pane.stop()

    under_way = asyncio.create_task(screens.keep([pane.session]))
    await until(lambda: tmux.probes()[0] == 1)
    closing = asyncio.create_task(tmux.keep_screen(pane.launch))
    await asyncio.sleep(0)  # its first step: from now on nobody else may write
    resume(pane.server.pid)
    await asyncio.gather(under_way, closing)
    await screens.keep([pane.session])

    assert pane.shows(b"line 5\n"), "more than the screen and the lines just above it"


async def test_a_reading_that_is_overtaken_by_the_closing_says_nothing(tmux: Tmux, panes: Callable[[str], Pane]) -> None:
    pane = panes("a")
    pane.stop()
    reading = asyncio.create_task(tmux.read_screen(pane.launch))
    await until(lambda: tmux.probes()[0] == 1)

    closing = asyncio.create_task(tmux.keep_screen(pane.launch))
    await asyncio.sleep(0)
    resume(pane.server.pid)
    await asyncio.gather(reading, closing)

    assert reading.result() is None


async def test_a_screen_on_its_way_to_a_launch_that_is_forgotten_is_dropped(
    home: Home, tmux: Tmux, panes: Callable[[str], Pane]
) -> None:
    pane, screens = panes("a"), Screens(home, tmux)
    pane.stop()
    under_way = asyncio.create_task(screens.keep([pane.session]))
    await until(lambda: tmux.probes()[0] == 1)

    screens.forget(pane.launch.id)
    resume(pane.server.pid)
    await under_way

    assert not pane.screen.exists()


async def until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not look():
            await asyncio.sleep(0)


# Servers that speak otherwise


class Stranger:
    """Something that answers on a server's socket with another protocol's version."""

    def __init__(self, path: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            peer, _ = self._listener.accept()
            with peer:
                if not peer.recv(4096):
                    return
                peer.send(struct.pack("<IHHIi", 12, 16, 0, 9, -1))

    def close(self, path: str) -> None:
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(path)
        self._thread.join(DEADLINE_S)
        self._listener.close()


async def test_who_does_not_understand_is_asked_by_a_command_four_of_them_a_pass(
    home: Home, tmux: Tmux, panes: Callable[[str], Pane]
) -> None:
    made, screens = [panes(f"p{number}") for number in range(6)], Screens(home, tmux)
    sessions = [pane.session for pane in made]
    for pane in made:
        pane.print(b"hello\r\n")
        os.rename(pane.socket, f"{pane.socket}.away")
        stranger = Stranger(pane.socket)
        ours = replace(pane.launch, server=process(os.getpid()))  # its recorded server: another would not be asked
        await screens.keep([replace(pane.session, launch=ours)])
        stranger.close(pane.socket)
        os.rename(f"{pane.socket}.away", pane.socket)
    assert all(tmux.needs_command(pane.launch) for pane in made)
    assert not any(pane.screen.exists() for pane in made)

    await screens.keep(sessions)
    assert sum(pane.screen.exists() for pane in made) <= 4
    await keep_until(screens, made, lambda: all(pane.shows(b"hello") for pane in made))

    tmux.forget(made[0].launch)
    assert not tmux.needs_command(made[0].launch)


# How much, and how many


async def test_of_a_large_screen_the_last_lines_are_kept(home: Home, tmux: Tmux, panes: Callable[[str], Pane]) -> None:
    pane = panes("a")
    pane.print(b"".join(b"%03d" % number + "漢".encode() * 95 + b"\r\n" for number in range(600)) + b"the last\r\n")

    await keep_until(Screens(home, tmux), [pane], pane.screen.exists)

    kept = pane.screen.read_bytes()
    assert SCREEN_BYTES - 600 <= len(kept) <= SCREEN_BYTES
    assert pane.tmux(*COMMAND).endswith(b"\n" + kept)
    assert b"the last\n" in kept


def test_a_line_that_is_too_long_keeps_its_end_and_whole_characters() -> None:
    line = "漢".encode() * SCREEN_BYTES

    kept = fit(line + b"\n\n")

    assert SCREEN_BYTES - 4 <= len(kept) <= SCREEN_BYTES
    assert set(kept.decode()) == {"漢", "\n"}
    assert fit(b"short\n") == b"short\n"


class Counting(Headless):
    """A runtime whose launches always have a screen."""

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self.read: list[str] = []

    async def read_screen(self, launch: Launch) -> bytes | None:
        """Note who is read."""
        self.read.append(launch.id)
        return b"a screen"


async def test_no_more_than_a_hundred_are_read_in_a_pass_and_the_others_in_the_next(home: Home) -> None:
    runtime = Counting(home)
    screens = Screens(home, runtime)
    sessions = [make_session(id=f"s{number}", launch=make_launch(f"s{number}", pane="%0")) for number in range(130)]
    for session in sessions:
        assert session.launch is not None
        home.launch(session.launch.id).mkdir()

    await screens.keep(sessions)
    assert len(runtime.read) == 100
    await screens.keep(sessions)

    assert sorted(runtime.read) == sorted(session.launch.id for session in sessions if session.launch)


@pytest.mark.parametrize(
    ("captured_at", "printed"),
    [
        (0.0, True),
        (1007.9, True),
        (1008.05, True),  # the kernel's clock is a tick late
        (1008.2, False),
        (1999.0, False),
        (2001.0, True),  # the clock was set back
    ],
)
def test_a_terminal_has_printed_until_the_end_of_its_eight_seconds(tmp_path: Path, captured_at: float, printed: bool) -> None:
    terminal = tmp_path / "pts"
    terminal.touch()
    os.utime(terminal, (1003, 1003))

    assert has_printed(make_launch(), SeenScreen(captured_at, captured_at, str(terminal)), now=2000.0) == printed


def test_a_launch_of_which_nothing_tells_is_read_rarely() -> None:
    seen = SeenScreen(captured_at=1000.0, asked_at=1000.0)

    assert [has_printed(make_launch(), seen, now) for now in (1060.0, 1119.0, 1121.0)] == [False, False, True]


IDLE = ["\x1b[2m✻ Resting… (12s · ↑ 34 tokens)\x1b[0m", "────", "❯ ", "? for shortcuts"]


@pytest.mark.parametrize(
    ("after", "same"),
    [
        (IDLE, True),
        (["\x1b[1m✽ Resting… (13s · ↑ 35 tokens)\x1b[0m", *IDLE[1:]], True),  # a sign and numbers, where they stood
        (["✻ Working… (13s · ↑ 35 tokens)", *IDLE[1:]], False),  # another word
        ([*IDLE[:2], "❯ hello", IDLE[3]], False),  # somebody types
        ([*IDLE, "done"], False),  # a line more
        ([IDLE[1], IDLE[0], *IDLE[2:]], False),  # it moved
        (["✽ Resting… (1s · ↑ 3 tokens)", "═══", "❯ 1", "? for shortcuts 1"], False),  # more lines than a spinner has
    ],
)
def test_a_spinner_changes_signs_and_numbers_in_a_few_lines_and_nothing_else(after: list[str], same: bool) -> None:
    before = shown_of("\n".join(IDLE).encode())

    assert is_same(before, shown_of("\n".join(after).encode())) is same
