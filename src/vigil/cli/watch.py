"""The watched table of `vigil ls --watch`: trouble first, what does not fit is counted; it outlives the daemon."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from vigil.cli.selection import TROUBLE, trouble_first
from vigil.client import Client, connect
from vigil.errors import VigilError

Json = dict[str, Any]
EVERY_S = 1.0  # ages grow
AGAIN_S = 1.0  # after the daemon was lost
Rows = Callable[[list[Json], int], list[str]]  # a title and a line for each session


class WatchedSessions:
    """Sessions as they change, by one daemon after another."""

    def __init__(self, client: Client, choose: Callable[[Client], list[Json]]) -> None:
        self._client: Client | None = client
        self._choose = choose
        self._changed = threading.Event()
        self.sessions: list[Json] = []
        self.trouble = ""
        self._listen(client)

    def look(self) -> None:
        """Ask the daemon once more; one that is gone is found again, or started."""
        self._changed.clear()
        try:
            if self._client is None:
                self._client = connect()
                self._listen(self._client)
            self.sessions = self._choose(self._client)
            self.trouble = (
                self._client.trouble and f"what is shown may be old: the store cannot be written ({self._client.trouble})"
            )
        except VigilError as error:
            self._client = None
            self.trouble = f"what is shown may be old, trying again: {error}"

    def wait(self) -> None:
        """Wait for a change, or until ages have grown."""
        if self._client is None:
            time.sleep(AGAIN_S)
        else:
            self._changed.wait(EVERY_S)

    def _listen(self, client: Client) -> None:
        def hear() -> None:
            with contextlib.suppress(VigilError):
                for _ in client.follow_events():
                    self._changed.set()
            self._changed.set()  # the daemon is gone: say so soon

        threading.Thread(target=hear, daemon=True).start()


def watch(watched: WatchedSessions, rows: Rows) -> None:
    """Show sessions until Ctrl-C: on a terminal in place, else a table for each change."""
    draw = _draw if sys.stdout.isatty() else _print
    shown: list[str] = []
    try:
        while True:
            watched.look()
            shown = draw(watched, rows, shown)
            watched.wait()
    except KeyboardInterrupt:
        pass
    finally:
        if draw is _draw:
            sys.stdout.write("\x1b[?25h\n")


def _draw(watched: WatchedSessions, rows: Rows, _before: list[str]) -> list[str]:
    size = shutil.get_terminal_size()
    lines = screen(watched.sessions, watched.trouble, rows, size.columns, size.lines)
    sys.stdout.write("\x1b[?25l\x1b[H" + "".join(line + "\x1b[K\n" for line in lines) + "\x1b[J")
    sys.stdout.flush()
    return lines


def _print(watched: WatchedSessions, rows: Rows, before: list[str]) -> list[str]:
    """Print what has changed for a reader that is no terminal; ages alone are no change."""
    states = [f"{one['name']} {one['state']} {one['health']} {one['why']}" for one in watched.sessions] + [watched.trouble]
    if states != before:
        print("\n".join([*rows(watched.sessions, 0), *filter(None, [watched.trouble])]), end="\n\n", flush=True)
    return states


def screen(sessions: Sequence[Json], trouble: str, rows: Rows, width: int, height: int) -> list[str]:
    """Return the lines of a screen: as many sessions as fit, those in trouble first, then how the others are."""
    ordered = sorted(sessions, key=trouble_first)  # stable: within a class they stand as they came
    footer = [trouble[: max(1, width - 1)]] if trouble else []
    room = max(1, height - 2 - len(footer))  # a title, and the line where the cursor rests
    if len(ordered) > room:
        room -= 1
        footer = [more(ordered[room:])[: max(1, width - 1)], *footer]
    if not ordered:
        return ["There are no sessions. To start one: vigil run --name first -- COMMAND", *footer]
    return [*rows(ordered[:room], width), *footer]


def more(hidden: Sequence[Json]) -> str:
    """Return how many sessions are not shown, and how they are, trouble first."""
    states = Counter(session["state"] for session in hidden)
    order = sorted(states, key=lambda state: (TROUBLE.index(state) if state in TROUBLE else len(TROUBLE), state))
    return f"{len(hidden)} more: {', '.join(f'{states[state]} {state}' for state in order)}"
