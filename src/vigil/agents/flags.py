"""Flags: what we may add to a user's command; the user's own words stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vigil.agents.contract import Beginning, Place, Start

Command = tuple[str, ...]

# An agent says its id itself, so we refuse one that could be a flag, a path or a pattern.
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")

NOT_RESUMED = "resume: the command names a conversation itself"
BAD_ID = "resume: this is no id of a conversation"
NO_HOOKS = "hooks: nothing takes them"


def left_alone(agent: str, command: Command, other_work: str, first_at: int = 1) -> Start | None:
    """Return the start of a command to which we add nothing: of a wrapper, or of work that is no session."""
    first = command[first_at] if first_at < len(command) else ""
    if not command or command[0].rpartition("/")[2] != agent:
        why = f"flags, hooks, resume: the command is not {agent} itself but {command[0] if command else ''!r}"
    elif first in other_work.split():
        why = f"flags, hooks, resume: {agent} {first} is no session"
    else:
        return None
    return Start(command, without=(why,), unresumed=why)


def unheard(beginning: Beginning, asked: bool, how: str) -> Command:
    """Say what a headless run lacks that was not asked for its stream."""
    return () if asked or not beginning.headless else (f"stream: it is not asked for with {how}",)


def given(command: Iterable[str], *flags: str) -> bool:
    """Say whether a command has one of these flags, as `--flag`, `--flag=value` or `-fvalue`."""
    return any(_is(word, flag) for word in before_end(command) for flag in flags)


def before_end(command: Iterable[str]) -> list[str]:
    """Return a command's words before `--`, where its flags end."""
    words = list(command)
    return words[: words.index("--")] if "--" in words else words


def _is(word: str, flag: str) -> bool:
    short = len(flag) == 2 and word.startswith(flag) and not word.startswith("--")
    return word == flag or word.startswith(f"{flag}=") or short


def after_program(beginning: Beginning, added: Iterable[str], words: int = 1) -> Command:
    """Return the command with words added behind its first ones."""
    return (*beginning.command[:words], *added, *beginning.command[words:])


def is_id(conversation: str) -> bool:
    """Say whether this can be the id of a conversation."""
    return ID.fullmatch(conversation) is not None


def resumed_by(flag: str, beginning: Beginning, taken: Command) -> tuple[Command, Command]:
    """Return the flag that resumes the conversation, or what is missing; a fresh one has no flag."""
    return named_by(flag, beginning, taken) if beginning.resume else ((), ())


def named_by(flag: str, beginning: Beginning, taken: Command, form: re.Pattern[str] = ID) -> tuple[Command, Command]:
    """Return the flag that names the conversation, or what is missing; the user may have `taken` it."""
    if given(beginning.command, *taken):
        return (), (NOT_RESUMED,) if beginning.resume else ()
    if not form.fullmatch(beginning.conversation):
        return (), (BAD_ID,) if beginning.resume else ()
    return (flag, beginning.conversation), ()


def folder(place: Place, variable: str, below_home: str) -> str:
    """Return an agent's own folder by its environment; empty if unknown or not absolute."""
    home = place.env.get("HOME", "")
    named = place.env.get(variable, "")
    if named.startswith("~/"):
        named = home + named[1:]
    found = named or (f"{home}/{below_home}" if home else "")
    return found.rstrip("/") if found.startswith("/") else ""
