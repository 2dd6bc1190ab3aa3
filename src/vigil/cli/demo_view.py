"""What the demo shows: on a terminal a table redrawn in place, elsewhere a line for each change."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from vigil.cli import ls
from vigil.cli.death_page import status_of
from vigil.cli.table import Column, format_table, use_colour
from vigil.demo.fleet import DemoAgent
from vigil.text import one_line

NEWS = 8  # how many of the newest changes stand below the table
OWN = "(demo)"  # in place of a state: what the demo itself does
CAUSE_COLOURS = {"finished": "blue", "crash": "red", "server-died": "magenta"}
NEWS_COLUMNS = (
    Column("AFTER"),
    Column("NAME", shrink=True),
    Column("NOW", colour=(ls.STATE_COLOURS | {OWN: "magenta"}).get),
    Column("WHY", shrink=True),
)
DEATH_COLUMNS = (
    Column("AFTER"),
    Column("NAME", shrink=True),
    Column("CAUSE", colour=CAUSE_COLOURS.get),
    Column("STATUS"),
    Column("LIVED"),
    Column("WHY", shrink=True),
)
Json = dict[str, Any]


class View:
    """For a file or a pipe: a line for each change, without escape codes."""

    def __init__(self) -> None:
        self._began_at: float | None = None  # the first change: starting an instance is not part of the story
        self._coloured = use_colour()
        self._width: int | None = None

    def open(self, fleet: Sequence[DemoAgent]) -> None:
        """Print a title, and what each agent is going to do."""
        self.say(self._bold("Vigil demo: five scripted agents, and what Vigil sees of them"))
        self.say("They have an instance of their own, which goes with the demo. Ctrl-C ends it.")
        self.say()
        for agent in fleet:
            self.say(f"  {agent.name:<14}  {agent.plan}")
        self.say()

    def say(self, text: str = "") -> None:
        print(text, flush=True)

    def news(self, at: float, name: str, state: str, why: str) -> None:
        """Print one change."""
        self.say(f"{self._after(at):>6}  {name:<14}  {state:<9}  {one_line(why)}")

    def draw(self, sessions: list[Json]) -> None:
        """Show the present state of all sessions; printed lines have said it."""

    def close(self) -> None:
        """Leave the terminal as it was."""

    def deaths(self, deaths: list[Json]) -> None:
        """Print each death with its cause, the first one first."""
        self.say()
        self.say(self._bold(f"What Vigil recorded: {len(deaths)} deaths, each with its cause"))
        rows = [self._row_of(death) for death in reversed(deaths)]
        for line in format_table(DEATH_COLUMNS, rows, self._width, self._coloured):
            self.say(line)

    def _row_of(self, death: Json) -> list[str]:
        why = death["evidence"][0]["text"] if death["evidence"] else ""
        lived = f"{death['uptime_s']:.1f} s" if death["uptime_s"] is not None else "-"
        return [self._after(moment(death["at"])), death["session"], death["cause"], status_of(death), lived, why]

    def _after(self, at: float) -> str:
        self._began_at = at if self._began_at is None else self._began_at
        return f"{max(0.0, at - self._began_at):4.1f} s"

    def _bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self._coloured else text


class Live(View):
    """For a terminal: the table of `vigil ls` and the newest changes, redrawn in place."""

    def __init__(self) -> None:
        super().__init__()
        self._news: list[list[str]] = []
        self._height = 0
        self._opened = False

    def open(self, fleet: Sequence[DemoAgent]) -> None:
        """Print the introduction, then hide the cursor."""
        self._width = shutil.get_terminal_size().columns
        super().open(fleet)
        self._opened = True
        sys.stdout.write("\x1b[?25l")

    def news(self, at: float, name: str, state: str, why: str) -> None:
        """Keep one change for the next drawing."""
        self._news.append([self._after(at), name, state, why])

    def draw(self, sessions: list[Json]) -> None:
        """Draw over the last drawing."""
        size = shutil.get_terminal_size()
        self._width = size.columns
        lines = self._frame(sessions, size.columns, size.lines - 1)
        up = f"\x1b[{self._height}A" if self._height else ""
        # Erase each line before writing it: erasing afterwards would take the last character of a full one.
        sys.stdout.write(f"{up}\r" + "".join(f"\x1b[2K{line}\n" for line in lines) + "\x1b[J")
        sys.stdout.flush()
        self._height = len(lines)

    def close(self) -> None:
        """Show the cursor again."""
        if self._opened:
            sys.stdout.write("\x1b[?25h")
            sys.stdout.flush()

    def _frame(self, sessions: list[Json], width: int, height: int) -> list[str]:
        rows = [ls.row_of(session, wide=False, now=time.time()) for session in sessions]
        table = format_table(ls.COLUMNS, rows, width, self._coloured)
        room = min(NEWS, height - len(table) - 2)
        if room < 1:
            return table[:height]
        news = format_table(NEWS_COLUMNS, self._news[-room:], width, self._coloured)
        news += [""] * (room + 1 - len(news))  # keeps the lines below in place
        return [self._bold(table[0]), *table[1:], "", self._bold(news[0]), *news[1:]]


def make_view() -> View:
    """Return the view that suits the output."""
    return Live() if sys.stdout.isatty() and os.environ.get("TERM") != "dumb" else View()


def moment(text: str) -> float:
    """Return a moment of the interface in seconds."""
    return datetime.fromisoformat(text).timestamp()
