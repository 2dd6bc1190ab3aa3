"""tmux: each session has a server of its own, on a private socket, with a configuration of its own.

Targets are the pane's id and the server's generation (pid and start time): tmux matches names by prefix. Every call has
a deadline: a stopped server hangs its clients for ever. No library gives us these deadlines, and a ping without a process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

from vigil.core.model.launch import Launch
from vigil.core.model.reading import Axis, AxisValue, Fact
from vigil.core.model.sighting import Guard
from vigil.home import Home
from vigil.keeper.protocol import LaunchOrder
from vigil.keeper.wire import as_json
from vigil.kernel import process
from vigil.kernel.durable import record_json, write_whole
from vigil.kernel.theirs import read_end
from vigil.runtimes.contract import Order, RuntimeAnswer, agent_command, agent_env, declared_of, inherited, make_folder
from vigil.runtimes.sandbox import SHIM, script_of
from vigil.runtimes.tmux import guard as tmux_guard
from vigil.runtimes.tmux.commands import Calls
from vigil.runtimes.tmux.keyboard import Call
from vigil.runtimes.tmux.ping import Pinger, Pong
from vigil.runtimes.tmux.screen import NotSpoken, ScreenRefused, capture, capture_words

PING_S = 1.0
CALL_S = 3.0
FOLLOW_S = 1.0
HISTORY_LINES = 5000
KEPT_BYTES = 16 << 20  # of a saved screen with its history
SCREEN_LINES = 200  # above the screen
CONFIGURATION = """\
set -g remain-on-exit on
set -gq remain-on-exit-format ""
set -g exit-empty off
set -g destroy-unattached off
set -g history-limit {history}
set -g default-shell /bin/sh
set -g default-terminal screen-256color
set -g update-environment ""
set -s escape-time 10
set -g allow-rename off
set -g automatic-rename off
set -g status-left " vigil: {name} "
set -g status-left-length 80
set -g status-right " Ctrl-b d leaves "
set -g window-status-format ""
set -g window-status-current-format ""
set -g @vigil_launch {launch}
"""


class Tmux:
    """Agents in a terminal of their own."""

    def __init__(self, home: Home, on_late_answer: Callable[[str], None], on_health: Callable[[bool, str], None]) -> None:
        self._home = home
        self._calls = Calls(CALL_S, on_health)
        self._early: dict[str, Pong | None] = {}  # what was clear at once
        self._foreign: set[str] = set()  # servers whose screens only a command can read
        self._reading: set[str] = set()  # launches whose screen is being read
        self._closing: set[str] = set()  # launches whose last screen is saved: nothing may replace it
        self.pinger = Pinger(lambda path: on_late_answer(Path(path).stem))

    def why_unusable(self) -> str | None:
        """Return the way out if tmux is missing."""
        if shutil.which("tmux") is None:
            return (
                "tmux is not installed, or not in the PATH this daemon was started with: install it (apt-get install tmux), "
                "have the daemon started anew from here (vigil daemon stop), or use --runtime headless"
            )
        return None

    def prepare(self, order: Order) -> None:
        """Write configuration, agent script and launch order; argv names only our own files."""
        folder = self._home.launch(order.launch.id)
        make_folder(order, folder)
        configuration = CONFIGURATION.format(history=HISTORY_LINES, name=order.session.name, launch=order.launch.id)
        (folder / "tmux.conf").write_text(configuration, "utf-8")
        spec, env = order.session.spec, agent_env(order, self._home)
        (folder / "agent.sh").write_bytes(script_of(spec.cwd, agent_command(order, self._home, folder, env)))
        server = self._socket(order.launch)
        Path(server).unlink(missing_ok=True)  # a server that waits under a new launch's name is not ours
        argv = ["tmux", "-u", "-S", server, "-f", str(folder / "tmux.conf"), "new-session", "-d", "-s", "agent"]
        argv += ["-x", "200", "-y", "50", "-P", "-F", "#{pid} #{pane_pid} #{pane_id}"]
        argv += ["/bin/sh", str(SHIM), "root", str(folder)]
        launch = {
            **as_json(LaunchOrder("tmux", tuple(argv), env, spec.cwd, None, **inherited(order, str(self._home.spool)))),
            "launch": order.launch.id,
            "session_id": order.session.id,
            "session": order.session.name,
            "created_at": order.launch.created_at,
            "boot": process.read_boot(),
            "declared": declared_of(order.session),
        }
        record_json(str(folder / "launch.json"), launch)

    def ask_server(self, launch: Launch) -> None:
        """Ping the server, unless a ping is open."""
        path = self._socket(launch)
        self._early[path] = self.pinger.ask(path, _pid_of(launch))

    def read_server(self, launch: Launch, now: float) -> RuntimeAnswer | None:
        """Return the answer: alive, wedged (it hangs), or unknown (unreachable: only its process can tell)."""
        path = self._socket(launch)
        pong = self._early.pop(path, None) or self.pinger.answer(path, _pid_of(launch))
        if pong is None:
            if self.pinger.waited_s(path) < PING_S:
                return None
            self.pinger.abandon(path)
            pong = Pong.SILENT
        if pong is Pong.ANSWERED:
            return RuntimeAnswer(Fact(Axis.SERVER, AxisValue.ALIVE, "ping", now, conclusive=True))
        if pong is Pong.SILENT:
            return RuntimeAnswer(Fact(Axis.SERVER, AxisValue.WEDGED, "ping", now, why=f"no answer in {PING_S:g} s"))
        lost = pong in (Pong.NO_SOCKET, Pong.FOREIGN)  # its server makes it anew, over a stranger's
        return RuntimeAnswer(Fact(Axis.SERVER, AxisValue.UNKNOWN, "ping", now, why=pong.value), lost)

    def probes(self) -> tuple[int, int]:
        """Return the pings and commands under way, and those given up."""
        under_way = self.pinger.in_flight + self._calls.in_flight + len(self._reading)
        return under_way, self.pinger.abandoned + self._calls.abandoned

    def forget(self, launch: Launch) -> None:
        """Drop the open ping, and all that is known of the server."""
        path = self._socket(launch)
        self.pinger.forget(path)
        self._foreign.discard(path)
        self._reading.discard(launch.id)
        self._closing.discard(launch.id)

    async def read_output(self, launch: Launch, lines: int) -> bytes:
        """Return the last lines of pane and history; after the launch's end, of its saved screen."""
        if launch.pane is None:
            return b""
        if not launch.closed:
            found = await self._capture(launch, lines)
            if found is not None:
                return _last_lines(found, lines)
        try:
            kept = read_end(self._home.launch(launch.id) / "screen", KEPT_BYTES).data
        except OSError:
            kept = b""
        return _last_lines(kept, lines)

    async def follow_output(self, launch: Launch, lines: int) -> AsyncIterator[bytes]:
        """Read the pane once a second, and yield its new lines."""
        before = await self.read_output(launch, max(lines, 1))
        yield before if lines else b""
        while True:
            await asyncio.sleep(FOLLOW_S)
            now = await self.read_output(launch, HISTORY_LINES)
            yield new_part(before.splitlines(keepends=True), now.splitlines(keepends=True))
            before = now

    async def read_screen(self, launch: Launch) -> bytes | None:
        """Read screen and recent history without a process; by a command once the server did not understand us."""
        if launch.pane is None or launch.id in self._closing or self._hangs(launch):
            return None
        self._reading.add(launch.id)
        try:
            found = await self._read_screen(launch, launch.pane)
            return found if launch.id in self._reading else None  # closed meanwhile
        finally:
            self._reading.discard(launch.id)

    async def _read_screen(self, launch: Launch, pane: str) -> bytes | None:
        path = self._socket(launch)
        if path in self._foreign:
            return await self._call(launch, *capture_words(pane, SCREEN_LINES))
        try:
            return await capture(path, pane, SCREEN_LINES, _pid_of(launch))
        except NotSpoken:
            if launch.id in self._reading:  # else the server hung up because it is gone, and we forgot it
                self._foreign.add(path)
        except (ScreenRefused, TimeoutError, OSError):
            pass  # the next read asks again
        return None

    def needs_command(self, launch: Launch) -> bool:
        """Say whether the launch's server does not speak our protocol."""
        return self._socket(launch) in self._foreign

    async def keep_screen(self, launch: Launch) -> None:
        """Save the last screen and history beside the launch's other records."""
        if launch.pane is None:
            return
        self._closing.add(launch.id)
        self._reading.discard(launch.id)
        if self._hangs(launch):
            return  # it would not answer
        self._keep_screen(launch, await self._capture(launch, HISTORY_LINES))

    def _keep_screen(self, launch: Launch, text: bytes | None) -> None:
        if text is not None:
            with contextlib.suppress(FileNotFoundError):  # the launch is gone
                write_whole(str(self._home.launch(launch.id) / "screen"), text)

    async def read_use(self, launch: Launch) -> tmux_guard.Use | None:
        """Return who is attached to a session and when it printed last; None if that is unknown."""
        call = self.commands_to(launch)
        pane = launch.pane or await self._first_pane(launch)
        return None if pane is None else await tmux_guard.read_use(call, pane, launch.host is None)

    def read_printed(self, launch: Launch) -> tuple[int, float] | None:  # noqa: ARG002
        """Return None: its server says when it printed."""
        return None

    async def reap(self, launch: Launch, guard: Guard) -> tuple[str, str]:
        """Have the server compare and kill; return `killed`, `spared` or `unknown`, and why.

        Without an answer, wait until the order's own deadline has passed: after it, the server does nothing.
        """
        pane = launch.pane or await self._first_pane(launch)
        if pane is None:
            return "unknown", "its tmux server gave no answer"
        screen = await self._capture(replace(launch, pane=pane), HISTORY_LINES)
        asked_at = asyncio.get_running_loop().time()
        done, said = await tmux_guard.compare_and_kill(self.commands_to(launch), pane, launch.id, guard, launch.host is None)
        if done == tmux_guard.KILLED:
            self._closing.add(launch.id)
            self._reading.discard(launch.id)
            self._keep_screen(launch, screen)
        elif done == tmux_guard.SPARED:
            said = tmux_guard.why_spared(said, launch.id, guard)
        else:
            await asyncio.sleep(max(0.0, asked_at + tmux_guard.ORDER_S - asyncio.get_running_loop().time()))
        return done, said

    async def mark(self, launch: Launch) -> bool:
        """Tag an adopted session; say whether it bears our mark now."""
        assert launch.host is not None
        return await tmux_guard.tag_session(self.commands_to(launch), launch.host.target, launch.id)

    async def unmark(self, launch: Launch) -> bool:
        """Remove our mark from an adopted session."""
        assert launch.host is not None and launch.pane is not None
        return await tmux_guard.untag_session(self.commands_to(launch), launch.host.target, launch.pane, launch.id)

    async def read_panes(self, launch: Launch) -> list[int]:
        """Return the pids of an adopted session's panes, without those that another session shows too."""
        assert launch.host is not None
        words = ("list-panes", "-s", "-t", launch.host.target, "-F", "#{window_linked} #{pane_pid} #{" + tmux_guard.TAG + "}")
        found = (await self.commands_to(launch)(*words) or b"").decode("utf-8", "replace").splitlines()
        rows = [line.split(" ", 2) for line in found]
        return [int(row[1]) for row in rows if len(row) == 3 and row[0] == "0" and row[1].isdigit() and row[2] == launch.id]

    async def kill_marked(self, launch: Launch) -> bool:
        """Kill an adopted session, if it still bears our mark; say whether its server did."""
        assert launch.host is not None and launch.pane is not None
        return await tmux_guard.kill_tagged(self.commands_to(launch), launch.host.target, launch.id)

    async def _first_pane(self, launch: Launch) -> str | None:
        """Return a server's first pane, where we know only its socket."""
        found = await self.commands_to(launch)("list-panes", "-a", "-F", "#{pane_id}")
        panes = (found or b"").decode("ascii", "replace").split()
        return panes[0] if panes and re.fullmatch(r"%\d+", panes[0]) else None

    def _socket(self, launch: Launch) -> str:
        return socket_of(self._home, launch)

    def _hangs(self, launch: Launch) -> bool:
        return self.pinger.waited_s(self._socket(launch)) >= PING_S

    async def _capture(self, launch: Launch, lines: int) -> bytes | None:
        assert launch.pane is not None
        return await self._call(launch, "capture-pane", "-p", "-e", "-J", "-S", f"-{lines}", "-t", launch.pane)

    def commands_to(self, launch: Launch) -> Call:
        """Return a function that runs commands on the launch's own server."""

        async def call(*command: str, stdin: bytes = b"") -> bytes | None:
            hangs = self._hangs(launch) or _is_stopped(launch)  # a command would only be abandoned, and count as our fault
            return None if hangs else await self._call(launch, *command, stdin=stdin)

        return call

    def commands_at(self, server: str) -> Call:
        """Return a function that runs commands on a server of our user that Vigil did not start."""

        async def call(*command: str, stdin: bytes = b"") -> bytes | None:
            return await self._call_at(server, *command, stdin=stdin)

        return call

    async def _call(self, launch: Launch, *command: str, stdin: bytes = b"") -> bytes | None:
        """Run one command on the launch's recorded server within its deadline; None if it gave no answer."""
        server = launch.server
        known = None if server is None else (server.pid, server.start_ticks)
        return None if known is None else await self._call_at(self._socket(launch), *command, stdin=stdin, process=known)

    async def _call_at(
        self, server: str, *command: str, stdin: bytes = b"", process: tuple[int, int] | None = None
    ) -> bytes | None:
        env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
        return await self._calls.run(server, command, env, stdin, process)


def _pid_of(launch: Launch) -> int | None:
    return None if launch.server is None else launch.server.pid


def _is_stopped(launch: Launch) -> bool:
    """Say whether the kernel has stopped a launch's server."""
    server = launch.server
    return server is not None and process.is_stopped(server.pid, server.start_ticks)


def socket_of(home: Home, launch: Launch) -> str:
    """Return the socket of a launch's tmux server: our own, or the one it was adopted on."""
    return home.server_path(launch.id) if launch.host is None else launch.host.socket


def new_part(before: list[bytes], now: list[bytes]) -> bytes:
    """Return what is new on a screen: the lines after the longest overlap."""
    while before and not before[-1].strip():
        before = before[:-1]
    while now and not now[-1].strip():
        now = now[:-1]
    for start in range(max(0, len(before) - len(now)), len(before)):
        if now[: len(before) - start] == before[start:]:
            return b"".join(now[len(before) - start :])
    # The last line may have grown in place: the lines before it tell where.
    if len(before) > 1:
        return new_part(before[:-1], now)
    return b"".join(now)


def _last_lines(text: bytes, lines: int) -> bytes:
    kept = text.rstrip().splitlines(keepends=True)[-lines:] if lines > 0 else []
    return b"".join(kept) + (b"\n" if kept else b"")
