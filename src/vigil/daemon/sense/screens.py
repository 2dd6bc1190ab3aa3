"""Screens: keeps on disk what each terminal last showed: a dead tmux server shows nothing.

A quiet terminal costs one look at its pty; one that printed costs one question to its server, and nothing waits for it."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from zlib import crc32

from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.session import Session
from vigil.daemon.base.log import log
from vigil.home import Home
from vigil.kernel.durable import write_whole
from vigil.kernel.process import read_start_ticks, read_stat
from vigil.kernel.theirs import read_start
from vigil.kernel.usage import read_io
from vigil.runtimes import Runtime

A_PASS = 100
COMMANDS_A_PASS = 4
SCREEN_BYTES = 1 << 16
RARELY_S = 120.0  # between looks at a terminal without a sign of printing
# The kernel moves a terminal's mtime once in eight seconds of the clock, and a tick late: so an mtime says that something was
# printed until the end of its eight seconds, or just after.
STEP_S = 8
LATE_S = 0.1
SPINNER_LINES = 3  # that a spinner and the words beside it change
SPINS_S = 60.0
ESCAPES = re.compile(rb"\x1b\[[0-9;:?]*[A-Za-z]|\x1b[()][0-9A-Za-z]|[\x0e\x0f]")
CONTINUED = bytes(range(0x80, 0xC0))  # the bytes of a UTF-8 character after its first
OnChanged = Callable[[Launch, float], None]  # the picture changed, not only by a spinner, at least so many seconds ago
Shown = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class SeenScreen:
    """What we remember of one launch's screen, in the kernel's time, which stamps files."""

    captured_at: float  # when the screen on disk was asked for; 0 without one
    asked_at: float  # the last question, whatever came of it
    terminal: str | None = None  # once it was found
    server_read: int | None = None  # how much its server had read by then, where no terminal is found
    shown: Shown | None = None  # what it showed then
    same_since: float | None = None  # it prints all the time, and shows the same since then


class Screens:
    def __init__(self, home: Home, runtime: Runtime, on_changed: OnChanged = lambda *_: None) -> None:
        self._home = home
        self._runtime = runtime
        self._on_changed = on_changed
        self._seen: dict[str, SeenScreen] = {}

    async def keep(self, sessions: Iterable[Session]) -> None:
        """Keep the screens of sessions that printed; forget launches that are not among `sessions`."""
        alive = {session.launch.id: session.launch for session in sessions if session.launch and has_terminal(session.launch)}
        self._seen = {launch.id: self._seen.get(launch.id) or self._meet(launch) for launch in alive.values()}
        now = time.time()
        due = [launch for launch in alive.values() if has_printed(launch, self._seen[launch.id], now)]
        due.sort(key=lambda launch: self._seen[launch.id].asked_at)
        dear = [launch for launch in due if self._runtime.needs_command(launch)]
        cheap = [launch for launch in due if not self._runtime.needs_command(launch)]
        chosen = (dear[:COMMANDS_A_PASS] + cheap)[:A_PASS]
        found = await asyncio.gather(*(self._keep(launch, self._seen[launch.id]) for launch in chosen))
        failures = [why for why in found if why is not None]
        if failures:
            log.warning("screens not kept", count=len(failures), why=failures[0])

    def forget(self, launch_id: str) -> None:
        """Forget a launch's screen; one that is still on its way is not kept."""
        self._seen.pop(launch_id, None)

    def spins(self, launch_id: str) -> bool:
        """Say whether a terminal always prints while its screen stays: a spinner, no work."""
        seen = self._seen.get(launch_id)
        return seen is not None and seen.same_since is not None and seen.captured_at - seen.same_since >= SPINS_S

    async def refresh(self, launch: Launch) -> None:
        """Keep a terminal's screen now, whether or not it seems to have printed."""
        if (seen := self._seen.get(launch.id)) is not None:
            await self._keep(launch, seen)

    def _compare(self, launch: Launch, seen: SeenScreen, text: bytes) -> None:
        """Tell that a screen changed; a spinner alone is no change."""
        shown = shown_of(text)
        if seen.shown is not None and is_same(seen.shown, shown):
            seen.same_since = seen.same_since or seen.asked_at
        else:
            seen.same_since = None
            self._on_changed(launch, printed_s(seen))
        seen.shown = shown

    def _meet(self, launch: Launch) -> SeenScreen:
        """Begin with the screen on disk: an earlier daemon may have kept it."""
        try:
            captured_at = os.lstat(self._path(launch)).st_mtime
        except OSError:
            captured_at = 0.0
        return SeenScreen(captured_at, captured_at, shown=self._read_shown(launch) if captured_at else None)

    def _read_shown(self, launch: Launch) -> Shown | None:
        try:
            return shown_of(read_start(self._path(launch), SCREEN_BYTES))
        except OSError:
            return None

    async def _keep(self, launch: Launch, seen: SeenScreen) -> str | None:
        """Read one screen and write it to disk; return why the disk refused it."""
        seen.asked_at = asked_at = time.time()
        server_read = None if seen.terminal or launch.server is None else read_by(launch.server)
        text = await self._runtime.read_screen(launch)
        # No await from here on: no last screen can come in between and be overwritten.
        if text is None or self._seen.get(launch.id) is not seen:
            return None
        text = fit(text)
        self._compare(launch, seen, text)
        try:
            write_whole(self._path(launch), text, asked_at)  # its mtime is the moment it was asked for
        except FileNotFoundError:
            return None  # its folder is gone, and so is the launch
        except OSError as error:
            return error.strerror or str(error)
        seen.captured_at, seen.server_read = asked_at, server_read
        return None

    def _path(self, launch: Launch) -> str:
        return str(self._home.launch(launch.id) / "screen")


def shown_of(text: bytes) -> Shown:
    """Return a screen as sums of each line: of all in it, of its letters."""
    lines = ESCAPES.sub(b"", text).rstrip().splitlines()
    letters = ("".join(filter(str.isalpha, line.decode("utf-8", "replace"))) for line in lines)
    return tuple((crc32(line), crc32(words.encode())) for line, words in zip(lines, letters, strict=True))


def is_same(before: Shown, after: Shown) -> bool:
    """Say whether two screens differ only as a spinner does: few lines, same letters."""
    if len(before) != len(after):
        return False
    moved = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    return len(moved) <= SPINNER_LINES and all(one[1] == other[1] for one, other in moved)


def has_terminal(launch: Launch) -> bool:
    """Say whether a launch has a screen: it lives in a pane."""
    return launch.pane is not None and launch.ended_at is None and not launch.closed


def has_printed(launch: Launch, seen: SeenScreen, now: float) -> bool:
    """Say whether a launch may have printed since its screen was kept."""
    if seen.captured_at > now:  # the clock was set back: nothing can be compared
        return True
    if seen.terminal is None and launch.root is not None:
        seen.terminal = find_terminal(launch.root)  # a newborn has none for a moment
    if seen.terminal is not None:
        try:
            printed_at = os.stat(seen.terminal).st_mtime
        except OSError:
            seen.terminal = None
        else:
            return seen.captured_at < (printed_at // STEP_S + 1) * STEP_S + LATE_S
    read = read_by(launch.server) if launch.server else None
    if read is not None:
        return read != seen.server_read
    return now - seen.asked_at >= RARELY_S


def printed_s(seen: SeenScreen) -> float:
    """Return for how long at least a screen's terminal has printed nothing."""
    try:
        printed_at = os.stat(seen.terminal).st_mtime if seen.terminal is not None else time.time()
    except OSError:
        return 0.0
    return max(0.0, time.time() - ((printed_at // STEP_S + 1) * STEP_S + LATE_S))


def find_terminal(root: ProcessId) -> str | None:
    """Find the terminal behind a screen, by its pane's root; None if unknown."""
    try:
        stat = read_stat(root.pid)
        if stat is None or stat.start_ticks != root.start_ticks:
            return None
        path = f"/dev/pts/{os.minor(stat.tty)}"
        if os.stat(path).st_rdev == stat.tty:
            return path
    except OSError:
        pass
    return None


def read_by(server: ProcessId) -> int | None:
    """Read how many bytes a server took in for its screens, without what clients send."""
    try:
        read = read_io(server.pid).read
        return read if read_start_ticks(server.pid) == server.start_ticks else None
    except (OSError, ValueError):
        return None


def fit(text: bytes) -> bytes:
    """Return the last lines of a screen that fit, or the end of its last."""
    if len(text) <= SCREEN_BYTES:
        return text
    text = text[-SCREEN_BYTES:]
    lines = text.partition(b"\n")[2]
    return lines if lines.strip() else text.lstrip(CONTINUED)
