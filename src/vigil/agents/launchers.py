"""Launchers: which program a command becomes, behind `env`, `npx`, `uvx`, a path, or a script that ends in `exec`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from vigil.kernel.theirs import open_regular

Command = tuple[str, ...]
Known = Callable[[str], bool]
SCRIPT_BYTES = 64 << 10
DEEPEST = 4  # scripts that lead to scripts
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
SUFFIXES = (".exe", ".cmd", ".ps1")
ALL_ARGUMENTS = ("$@", "${@}")
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
BEYOND_WORDS = re.compile(r"[;&|<>()$`\n]")  # more than one plain command


class Folder(Protocol):
    """Where a command is looked up: its folder, and the environment that names its PATH."""

    @property
    def cwd(self) -> str: ...
    @property
    def env(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Launcher:
    """A program that becomes another: what may stand between their names."""

    valued: tuple[str, ...] = ()  # options whose value is the next word
    skipped: int = 0  # words before the program, such as a duration
    assigns: bool = False  # NAME=VALUE may stand before the program
    closed: bool = False  # it takes options behind the program too, unless -- stands there


LAUNCHERS: dict[Command, Launcher] = {
    ("env",): Launcher(("-u", "--unset", "-C", "--chdir"), assigns=True),
    ("nice",): Launcher(("-n", "--adjustment")),
    ("ionice",): Launcher(("-c", "--class", "-n", "--classdata")),
    ("nohup",): Launcher(),
    ("setsid",): Launcher(),
    ("stdbuf",): Launcher(("-i", "--input", "-o", "--output", "-e", "--error")),
    ("timeout",): Launcher(("-k", "--kill-after", "-s", "--signal"), skipped=1),
    ("direnv", "exec"): Launcher(skipped=1),
    ("node",): Launcher(("-r", "--require", "--import")),
    ("bun", "x"): Launcher(),
    ("bunx",): Launcher(("-p", "--package")),
    ("npx",): Launcher(("-p", "--package", "-w", "--workspace")),
    ("npm", "exec"): Launcher(("-p", "--package", "-w", "--workspace"), closed=True),
    ("pnpm", "dlx"): Launcher(("--package",)),
    ("pnpm", "exec"): Launcher(),
    ("yarn", "dlx"): Launcher(("-p", "--package")),
    ("uvx",): Launcher(("--from", "--with", "-p", "--python", "--index-url")),
    ("uv", "tool", "run"): Launcher(("--from", "--with", "-p", "--python", "--index-url")),
    ("uv", "run"): Launcher(("--with", "-p", "--python", "--project", "--directory")),
    ("pipx", "run"): Launcher(("--spec", "--python")),
}


@dataclass(frozen=True)
class LaunchedProgram:
    """The program a command becomes, and how many words lead to it; None if it takes no more arguments of ours."""

    program: str
    words: int | None


NOTHING = LaunchedProgram("", None)


def launched_by(command: Command, known: Known, place: Folder | None, depth: int = DEEPEST) -> LaunchedProgram:
    """Return the known program that a command becomes; where none is known, the last that is found.

    Without a place it reads no scripts."""
    at, closed = _program_at(command)
    if at >= len(command):
        return NOTHING
    words: int | None = at + 1
    if closed:
        words = at + 2 if command[at + 1 : at + 2] == ("--",) else None
    if known(command[at]) or not depth:
        return LaunchedProgram(command[at], words)
    if (string := _shell_string(command[at:])) is not None:
        return LaunchedProgram(launched_by(string, known, place, depth - 1).program, None)
    inner = _exec_of(_read_script(command[at], place)) if place is not None else ()
    if not inner:
        return LaunchedProgram(command[at], words)
    handed_on = inner[-1] in ALL_ARGUMENTS
    found = launched_by(inner[:-1] if handed_on else inner, known, place, depth - 1)
    return LaunchedProgram(found.program, words if handed_on and found.words == len(inner) - 1 else None)


def is_program(word: str, names: tuple[str, ...]) -> bool:
    """Say whether a word names one of these programs or packages: by a path, with a version, inside a package's folder."""
    base = os.path.basename(word)
    for suffix in SUFFIXES:
        base = base.removesuffix(suffix)
    versionless = word[:1] + word[1:].partition("@")[0]
    return any(base == name or versionless == name or f"/node_modules/{name}/" in word for name in names)


def _program_at(command: Command) -> tuple[int, bool]:
    """Return where a command's program stands behind its launchers, and whether the last one is closed."""
    at, closed = 0, False
    while at < len(command):
        head = (os.path.basename(command[at]), *command[at + 1 : at + 3])
        found = next((head[:n] for n in (3, 2, 1) if head[:n] in LAUNCHERS), None)
        if found is None:
            break
        launcher = LAUNCHERS[found]
        at, closed = _behind(command, at + len(found), launcher), launcher.closed
    return at, closed


def _behind(command: Command, at: int, launcher: Launcher) -> int:
    """Return where the program stands behind a launcher's options, assignments and own words."""
    while at < len(command):
        word = command[at]
        if word == "--":
            at += 1
            break
        if word.startswith("-") and word != "-":
            at += 2 if word in launcher.valued else 1
        elif launcher.assigns and ASSIGNMENT.match(word):
            at += 1
        else:
            break
    return at + launcher.skipped


def _shell_string(command: Command) -> Command | None:
    """Return the one plain command of `sh -c`, () if it is more than that; None if this is no such shell."""
    if os.path.basename(command[0]) not in SHELLS or len(command) < 3 or not re.fullmatch(r"-[a-z]*c", command[1]):
        return None
    if BEYOND_WORDS.search(command[2]):
        return ()
    words = _split(command[2])
    return words[1:] if words[:1] == ("exec",) else words


def _read_script(program: str, place: Folder) -> str:
    """Return a shell script's text; nothing of any other program."""
    path = os.path.join(place.cwd, program) if "/" in program else shutil.which(program, path=place.env.get("PATH", os.defpath))
    if not path:
        return ""
    try:
        fd, _ = open_regular(path)
    except OSError:
        return ""
    try:
        text = os.pread(fd, SCRIPT_BYTES, 0).decode("utf-8", "replace")
    finally:
        os.close(fd)
    first = text.partition("\n")[0]
    is_shell = first.startswith("#!") and any(os.path.basename(word) in SHELLS for word in first[2:].split())
    return text if is_shell else ""


def _exec_of(script: str) -> Command:
    """Return the command that a script becomes in the end; () if it stays a shell."""
    lines = script.replace("\\\n", " ").splitlines()
    found = [words for line in lines if (words := _split(line))[:1] == ("exec",) and len(words) > 1]
    commands = [words[1:] for words in found if not re.match(r"[0-9]*[<>]", words[1])]
    return commands[-1] if commands else ()


def _split(line: str) -> Command:
    try:
        return tuple(shlex.split(line, comments=True))
    except ValueError:
        return ()
