"""Strays: ends what belongs to no known launch, compared by its server where it has one (P9)."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from functools import partial

from vigil.core.effects import EndStray
from vigil.core.events import Event, StrayEnded
from vigil.core.model.launch import Launch
from vigil.core.model.sighting import ReapOutcome, Stray
from vigil.daemon.act.signals import end_processes
from vigil.home import parts_of
from vigil.runtimes import Tmux
from vigil.runtimes.tmux.guard import KILLED, SPARED
from vigil.words import some


class Strays:
    def __init__(self, tmux: Tmux, feed: Callable[[Event], None]) -> None:
        self._tmux = tmux
        self._feed = feed

    async def end(self, effect: EndStray) -> None:
        """End one stray, verified, and feed the outcome."""
        stray, glimpse = effect.stray, effect.stray.glimpse
        ended = partial(StrayEnded, stray, ticket=effect.ticket)
        if stray.server is not None and glimpse is not None and glimpse.guard is not None:
            done, why = await self._tmux.reap(launch_of(stray), glimpse.guard)
            if done != KILLED:
                self._feed(ended(ReapOutcome.SPARED if done == SPARED else ReapOutcome.UNKNOWN, why=why))
                return
        processes = [*stray.processes, *([stray.server] if stray.server is not None else [])]
        left = await end_processes(dict.fromkeys(processes), effect.grace_s)
        if stray.socket and not left:
            remove_socket(stray.socket)
        outcome = ReapOutcome.FAILED if left else ReapOutcome.ENDED
        words = f"{some(len(left), 'process lives', 'processes live')} on after KILL" if left else ""
        self._feed(ended(outcome, ended=len(processes) - len(left), left=len(left), why=words))


def launch_of(stray: Stray) -> Launch:
    """Return a launch that stands for a stray, so that its server can be asked."""
    session_id, number = parts_of(stray.launch_id) or ("", 0)
    return Launch(stray.launch_id, session_id, number, 0.0, server=stray.server, pane=stray.pane or None)


def remove_socket(path: str) -> None:
    """Remove a stray socket whose server is gone, unless another listens there by now."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as sock:
        try:
            sock.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
