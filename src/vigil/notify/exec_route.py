"""A route that is a command: the incident on its standard input, its exit code the receipt."""

from __future__ import annotations

import os
import pwd
import signal
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from vigil.command import CommandAnswer, run_command
from vigil.notify.contract import DEADLINE_S, WHY_CHARACTERS, Delivery
from vigil.redact import Redactor, secrets_of
from vigil.text import decode, one_line, plain

# Exit codes that make a retry useless: not found, and from sysexits.h usage, data, user, host, permission, setup.
PERMANENT = frozenset({127, 64, 65, 67, 68, 77, 78})

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class ExecRoute:
    """Runs a command for each notice; exit 0 within the deadline means that it was delivered."""

    argv: Sequence[str]
    deadline_s: float = DEADLINE_S

    def deliver(self, body: bytes, _took: Collection[str] = ()) -> Delivery:
        """Give the command the notice as one line; a command cut off may have delivered it."""
        answer = run_command(self.argv, self.deadline_s, clean_environment(), stdin=body + b"\n", limit_bytes=0, insists=True)
        if answer.status == 0:
            return Delivery(True)
        why = ": ".join(part for part in (ending(answer), last_line(answer.errors)) if part)
        hidden = Redactor(secrets_of(self.argv, os.environ)).text(why)[:WHY_CHARACTERS]
        return Delivery(False, hidden, permanent=answer.status in PERMANENT, unsure=answer.status is None)


def clean_environment() -> dict[str, str]:
    """Return the user's plain environment, and which instance calls: nothing else of the daemon's own starter."""
    try:
        user = pwd.getpwuid(os.getuid())
        env = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": user.pw_shell or "/bin/sh"}
    except KeyError:  # a container's user without a name
        env = {"HOME": os.environ.get("HOME", "/")}
    runtime = f"/run/user/{os.getuid()}"
    known = {"VIGIL_HOME": os.environ.get("VIGIL_HOME"), "XDG_RUNTIME_DIR": runtime if os.path.isdir(runtime) else None}
    path = f"{PATH}:{os.path.dirname(sys.executable)}"  # the last is where this `vigil` lies
    return {**env, "PATH": path, "LANG": "C.UTF-8", **{name: value for name, value in known.items() if value}}


def ending(answer: CommandAnswer) -> str:
    """Return how a command ended, in words."""
    if answer.status is None:
        return answer.abandoned
    if answer.status > 0:
        return f"exit {answer.status}"
    try:
        return f"ended by {signal.Signals(-answer.status).name}"
    except ValueError:  # a real-time signal has no name
        return f"ended by signal {-answer.status}"


def last_line(errors: bytes) -> str:
    """Return the last line with words in it."""
    lines = [one_line(line) for line in plain(decode(errors)).splitlines()]
    return next((line for line in reversed(lines) if line), "")
