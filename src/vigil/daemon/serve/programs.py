"""Programs: says whether a command can be executed in its folder, before anything is made for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping

from vigil.errors import UsageError, VigilError
from vigil.kernel.theirs import open_regular
from vigil.redact import redact_command

FIRST_LINE_BYTES = 256  # of a script: what the kernel reads of it


def check_command(command: tuple[str, ...], cwd: str, env: Mapping[str, str]) -> None:
    """Refuse a command whose program cannot be executed, with the reason a shell would give."""
    for error in why_not_executable(command, cwd, env):
        raise error


def why_not_executable(command: tuple[str, ...], cwd: str, env: Mapping[str, str]) -> Iterator[VigilError]:
    """Return everything that keeps a command from being executed: its folder and its program."""
    if any("\0" in word for word in command):
        yield UsageError("a command cannot hold a NUL byte")
    elif not os.path.isabs(cwd):
        yield UsageError(f"--cwd must be an absolute path here, not {cwd!r}")
    else:
        folder = _why_not_a_folder(cwd)
        if folder is not None:
            yield VigilError(folder)
        if folder is None or os.path.isabs(command[0]) or "/" not in command[0]:  # else only that folder is known
            yield from _why_not_a_program(command, cwd, env)


def _why_not_a_folder(cwd: str) -> str | None:
    if not os.path.isdir(cwd):
        return f"{cwd} is not a folder, and cwd names where the agent works"
    return None if os.access(cwd, os.X_OK) else f"{cwd} may not be entered by you"


def _why_not_a_program(command: tuple[str, ...], cwd: str, env: Mapping[str, str]) -> Iterator[VigilError]:
    program = command[0]
    shown = redact_command(command)[0]  # a caller who forgets `env` before NAME=VALUE names a secret here
    if not program:
        yield UsageError("the command is empty")
    elif "/" in program:
        path = os.path.join(cwd, program)
        if not os.path.exists(path):
            yield VigilError(f"{shown} does not exist")
        elif not os.path.isfile(path) or not os.access(path, os.X_OK):
            yield VigilError(f"{shown} is not executable")
        elif missing := missing_interpreter(path):
            yield VigilError(f"{shown} is a script for {missing}, which does not exist")
    elif (path := shutil.which(program, path=env.get("PATH", os.defpath)) or "") == "":
        found = shutil.which(program, mode=os.F_OK, path=env.get("PATH", os.defpath))
        missing = f"{shown} was not found in PATH" + (
            "; for a line of the shell: vigil run -- sh -c '…'" if " " in program else ""
        )
        yield VigilError(f"{found} is not executable" if found else missing)
    elif not os.path.isfile(os.path.join(cwd, path)):
        yield VigilError(f"{path} is not executable")
    elif missing := missing_interpreter(os.path.join(cwd, path)):
        yield VigilError(f"{shown} is a script for {missing}, which does not exist")


def missing_interpreter(script: str) -> str:
    """Return a script's missing interpreter: the kernel would call the program itself missing."""
    try:
        fd, _ = open_regular(script)
        with open(fd, "rb") as file:
            line = file.read(FIRST_LINE_BYTES).partition(b"\n")[0]
    except OSError:
        return ""  # an executable file need not be readable
    words = line.removeprefix(b"#!").split() if line.startswith(b"#!") else []
    # The kernel looks for a relative one in the agent's folder.
    return os.fsdecode(words[0]) if words and words[0].startswith(b"/") and not os.path.exists(words[0]) else ""
