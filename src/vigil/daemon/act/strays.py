"""Strays: what belongs to no launch that is known is ended, compared by its server where it has one (P9)."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Mapping

from vigil.core.effects import EndStray
from vigil.core.events import Event, Noted
from vigil.core.model.launch import Launch
from vigil.core.model.sighting import Stray
from vigil.core.rules.words import some
from vigil.daemon.act.signals import end_processes
from vigil.home import parts_of
from vigil.runtimes import Tmux
from vigil.runtimes.tmux.guard import KILLED


class Strays:
    """Ends what nobody knows."""

    def __init__(self, tmux: Tmux, feed: Callable[[Event], None]) -> None:
        self._tmux = tmux
        self._feed = feed
        self.ended: dict[str, str] = {}  # what became of those that were ended last; empty while it is not known

    async def end(self, effect: EndStray) -> None:
        """End one, verified, and keep what became of it for whoever swept."""
        launch_id = effect.stray.launch_id
        self.ended[launch_id] = ""
        try:
            self.ended[launch_id] = await self._end(effect.stray, effect.grace_s)
        finally:
            self.ended[launch_id] = self.ended[launch_id] or "failed"

    async def _end(self, stray: Stray, grace_s: float) -> str:
        glimpse = stray.glimpse
        told: dict[str, str | int | float | None] = {"launch": stray.launch_id, "session": stray.name}
        if stray.server is not None and glimpse is not None and glimpse.guard is not None:
            done, why = await self._tmux.reap(launch_of(stray), glimpse.guard)
            if done != KILLED:
                self._note("orphan.spared", stray, told | {"why": why, "outcome": done})
                return f"{done}: {why}"
        processes = [*stray.processes, *([stray.server] if stray.server is not None else [])]
        left = await end_processes(dict.fromkeys(processes), grace_s)
        if stray.socket and not left:
            remove_socket(stray.socket)
        told |= {"class": "orphan", "ended": len(processes) - len(left), "left": len(left)}
        self._note("orphan.reaped", stray, told)
        return f"failed: {some(len(left), 'process lives', 'processes live')} on after KILL" if left else "ended"

    def _note(self, kind: str, stray: Stray, told: Mapping[str, str | int | float | None]) -> None:
        self._feed(Noted(kind, tuple(told.items()), session=stray.name or None, launch_id=stray.launch_id))


def launch_of(stray: Stray) -> Launch:
    """Return a launch that stands for what is not one any more, so that its server can be asked."""
    session_id, number = parts_of(stray.launch_id) or ("", 0)
    return Launch(stray.launch_id, session_id, number, 0.0, pane=stray.pane or None)


def remove_socket(path: str) -> None:
    """Remove the socket of a server that is gone; where somebody listens by now it is theirs."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as sock:
        try:
            sock.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
