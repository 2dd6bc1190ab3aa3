"""The contract of adapters: all that Vigil knows of one kind of agent, as one value of plain functions.

An adapter says where files lie, what to write into them, and what JSON means; it does no I/O itself.
A reading never raises: agents change, and an event of a later version is `unknown`, with its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vigil.agents.launchers import is_program, launched_by
from vigil.core.model.speech import Said

Json = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where an agent runs; its files are named after this."""

    cwd: str
    env: Mapping[str, str]  # the agent's environment: adapters take HOME and the like from here, never from ours


@dataclass(frozen=True)
class Beginning:
    """A launch that Vigil is about to make."""

    command: tuple[str, ...]  # as the user declared it, or the agent's default
    place: Place
    folder: str  # of the launch: its files lie here, and go with it
    headless: bool
    conversation: str  # the id to resume, or a fresh one that this launch may take
    resume: bool = False
    hook: tuple[str, ...] = ()  # the command that reads a hook's payload from standard input or from its last argument


@dataclass(frozen=True)
class Start:
    """How Vigil makes the launch."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)  # added to what was declared
    files: Mapping[str, str] = field(default_factory=dict)  # names below the launch's folder, and what they hold
    conversation: str = ""  # known before it starts; empty: it will say
    converses: bool = False  # headless, it reads prompts: it gets a pipe that stays open instead of /dev/null
    without: tuple[str, ...] = ()  # what could not be set up, a line each: a wrapper of one's own, a flag that is taken
    unresumed: str = ""  # the line that says why it does not go on with the conversation it was given


@dataclass(frozen=True)
class Dialog:
    """A question that an agent shows before it takes any prompt; Vigil never answers one blindly."""

    name: str  # trust, update, onboarding, login, permission, …
    signs: tuple[str, ...]  # the screen shows all of these


def _nothing(_event: Json) -> Iterable[Said]:
    return ()


@dataclass(frozen=True)
class Adapter:
    """One kind of agent."""

    name: str
    command: tuple[str, ...] = ()  # its program, which starts it by default; empty: the user must give a command
    processes: tuple[str, ...] = ()  # names of its own process, to find it in a tree
    packages: tuple[str, ...] = ()  # names by which npx, uvx and the like know it
    begin: Callable[[Beginning], Start] = lambda beginning: Start(beginning.command)
    read_hook: Callable[[Json], Iterable[Said]] = _nothing  # one payload
    read_stream: Callable[[Json], Iterable[Said]] = _nothing  # one line of what it prints when headless
    read_entry: Callable[[Json], Iterable[Said]] = _nothing  # one line of its transcript
    # glob patterns of a conversation's files, its own first
    transcripts: Callable[[Place, str], tuple[str, ...]] = lambda _place, _conversation: ()
    dialogs: tuple[Dialog, ...] = ()
    composer: tuple[str, ...] = ()  # regular expressions: a match on the screen means that it takes a typed prompt
    # A composer that holds text: a user typed it if the cursor is behind this column, else it is a mere suggestion.
    draft: tuple[str, int] | None = None  # None: the patterns above do not match a composer with text
    submits: bool = False  # it says PROMPT when it takes a prompt
    resumes: bool = False
    terminal: bool = False  # a headless run ends with RESULT: exit 0 without it is not finished
    has_hooks: bool = False
    identity: tuple[str, ...] = ()  # variables that say who it is to the model: keys, addresses, its settings folder

    def starts(self, program: str) -> bool:
        """Say whether a program or package is this agent."""
        return is_program(program, (*self.command, *self.packages))

    def start(self, beginning: Beginning) -> Start:
        """Return the start of a launch, also where another program or a script leads to the agent."""
        command = beginning.command
        found = launched_by(command, self.starts, beginning.place)
        if not self.starts(found.program) or found.words is None:
            return self.begin(beginning)  # which says what that leaves out
        start = self.begin(replace(beginning, command=(*self.command, *command[found.words :])))
        return replace(start, command=(*command[: found.words], *start.command[1:]))

    def speaks(self, headless: bool) -> bool:
        """Say whether this kind reports its activity: by hooks, or by its stream when headless."""
        return self.has_hooks or (headless and self.terminal)
