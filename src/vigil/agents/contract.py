"""The contract of adapters: all that Vigil knows of one kind of agent, as one value of plain functions.

An adapter reads and writes nothing itself: it says where things lie, what is to be written, and what JSON means. Whatever it is
given, a reading never raises: agents change, and an event from the future is `unknown`, with its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vigil.core.model.speech import Said

Json = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where an agent runs: what its files are named after."""

    cwd: str
    env: Mapping[str, str]  # what the agent is launched with; HOME and the like are asked of this, never of our own


@dataclass(frozen=True)
class Beginning:
    """A launch that is about to be made."""

    command: tuple[str, ...]  # as the user declared it, or the agent's default
    place: Place
    folder: str  # of the launch: files that are to be written lie here, and go with it
    headless: bool
    conversation: str  # a fresh id that this launch may have, or the one that is resumed
    resume: bool = False
    hook: tuple[str, ...] = ()  # the command that takes a hook's payload on its standard input, or as its last argument


@dataclass(frozen=True)
class Start:
    """How a launch is made."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)  # added to what was declared
    files: Mapping[str, str] = field(default_factory=dict)  # names below the launch's folder, and what they hold
    conversation: str = ""  # known before it starts; empty: it will say
    converses: bool = False  # headless, it reads prompts: it gets a pipe that stays open instead of /dev/null
    without: tuple[str, ...] = ()  # what could not be set up, a line each: a wrapper of one's own, a flag that is taken
    unresumed: str = ""  # the line that says why it does not go on with the conversation it was given


@dataclass(frozen=True)
class Dialog:
    """A question that an agent puts on the screen before it takes any prompt: never answered blindly."""

    name: str  # trust, update, onboarding, login, permission, …
    signs: tuple[str, ...]  # all of these stand on the screen


def _nothing(_event: Json) -> Iterable[Said]:
    return ()


def _nowhere(_place: Place, _conversation: str) -> tuple[str, ...]:
    return ()


def _as_it_is(beginning: Beginning) -> Start:
    return Start(beginning.command)


@dataclass(frozen=True)
class Adapter:
    """One kind of agent."""

    name: str
    command: tuple[str, ...] = ()  # what starts it when nothing else is said; empty: a command must be given
    processes: tuple[str, ...] = ()  # names its own process may have, for finding it in a tree
    programs: tuple[str, ...] = ()  # basenames of a command that this adapter may add flags to
    begin: Callable[[Beginning], Start] = _as_it_is
    read_hook: Callable[[Json], Iterable[Said]] = _nothing  # one payload
    read_stream: Callable[[Json], Iterable[Said]] = _nothing  # one line of what it prints when headless
    read_entry: Callable[[Json], Iterable[Said]] = _nothing  # one line of its transcript
    transcripts: Callable[[Place, str], tuple[str, ...]] = _nowhere  # glob patterns of a conversation's files, its own first
    dialogs: tuple[Dialog, ...] = ()
    composer: tuple[str, ...] = ()  # patterns (regular expressions): one on the screen means that a prompt can be typed
    # A composer that holds text, which was typed if the cursor is behind this column: what is only suggested stands behind it.
    draft: tuple[str, int] | None = None  # None: such a composer is none by the patterns above
    submits: bool = False  # it says PROMPT when a prompt was taken
    resumes: bool = False
    terminal: bool = False  # a headless run ends with RESULT: without it exit 0 is not finished
    has_hooks: bool = False
    identity: tuple[str, ...] = ()  # variables that say who it is to the model: keys, addresses, its folder of settings

    def speaks(self, headless: bool) -> bool:
        """Say whether one of these says what it does: by hooks, or by the stream it prints when headless."""
        return self.has_hooks or (headless and self.terminal)
