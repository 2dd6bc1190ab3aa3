"""The keyboard of a pane: a bracketed paste, then Enter, each guarded inside the tmux server itself.

A pane can die between a look and an act, and a paste into a dead pane ends tmux 3.3a: so the server looks and acts in one
command, and says which it did. Without an answer we type nothing twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

FIELDS = ("pane_dead", "pane_in_mode", "pane_pid", "cursor_x")
UNFIT = "#{||:#{pane_dead},#{pane_in_mode}}"
REFUSED, PASTED, ENTERED = "refused", "pasted", "entered"
Call = Callable[..., Awaitable[bytes | None]]  # one tmux command to one server, with its standard input


@dataclass(frozen=True, slots=True)
class Pane:
    """What a server says of a pane."""

    dead: bool
    in_mode: bool
    cursor_x: int = 0


async def read_pane(call: Call, pane: str) -> Pane | None:
    """Return a pane's state; None if the server gave no valid answer."""
    found = await call("display-message", "-p", "-t", pane, " ".join(f"#{{{field}}}" for field in FIELDS))
    words = found.decode("ascii", "replace").split() if found is not None else []
    if len(words) < 4 or not words[3].isdecimal() or words[0] not in ("0", "1") or words[1] not in ("0", "1"):
        return None
    return Pane(words[0] == "1", words[1] == "1", int(words[3]))


async def read_visible(call: Call, pane: str) -> bytes | None:
    """Return what a pane shows now, without its history; None if the server gave no answer."""
    return await call("capture-pane", "-p", "-t", pane)


async def read_typed(call: Call, pane: str) -> str | None:
    """Return the cursor's line up to its row, with the rows it wraps from; None if unknown."""
    row = await call("display-message", "-p", "-t", pane, "#{cursor_y}")
    if row is None or not row.strip().isdigit():
        return None
    found = await call("capture-pane", "-p", "-J", "-t", pane, "-E", row.decode("ascii").strip())
    return None if found is None else found.decode("utf-8", "replace").removesuffix("\n").rpartition("\n")[2]


async def paste(call: Call, pane: str, buffer: str, text: str) -> str | None:
    """Paste a text, bracketed where the program takes that; return `pasted`, `refused`, or None if unknown."""
    loaded = await call("load-buffer", "-b", buffer, "-", stdin=text.encode("utf-8", "replace"))
    if loaded is None:
        return None
    drop = f"delete-buffer -b {buffer} ; display-message -p {REFUSED}"
    act = f"paste-buffer -p -d -b {buffer} -t {pane} ; display-message -p {PASTED}"
    return _answer(await call("if-shell", "-F", "-t", pane, UNFIT, drop, act), PASTED)


async def enter(call: Call, pane: str) -> str | None:
    """Press Enter; return `entered`, `refused`, or None if unknown."""
    act = f"send-keys -t {pane} Enter ; display-message -p {ENTERED}"
    return _answer(await call("if-shell", "-F", "-t", pane, UNFIT, f"display-message -p {REFUSED}", act), ENTERED)


def _answer(found: bytes | None, done: str) -> str | None:
    said = found.decode("ascii", "replace").strip() if found is not None else ""
    return said if said in (done, REFUSED) else None
