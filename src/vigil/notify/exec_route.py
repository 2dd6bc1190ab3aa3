"""A route that is a command: the incident on its standard input, its exit code the receipt."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from vigil.command import Answer, run_command
from vigil.notify.contract import WHY_CHARACTERS, Delivery
from vigil.redact import Redactor, secrets_of
from vigil.text import decode, one_line, plain


@dataclass(frozen=True, slots=True)
class ExecRoute:
    """Runs a command for each notice; exit 0 within the deadline means that it was delivered."""

    argv: Sequence[str]
    deadline_s: float = 30.0

    def deliver(self, body: bytes) -> Delivery:
        """Give the notice to the command, as one line."""
        answer = run_command(self.argv, self.deadline_s, stdin=body + b"\n", limit_bytes=0)
        if answer.status == 0:
            return Delivery(True)
        why = ": ".join(part for part in (_ending(answer), _last_line(answer.errors)) if part)
        return Delivery(False, Redactor(secrets_of(self.argv, os.environ)).text(why)[:WHY_CHARACTERS])


def _ending(answer: Answer) -> str:
    if answer.status is None:
        return answer.abandoned
    if answer.status > 0:
        return f"exit {answer.status}"
    try:
        return f"ended by {signal.Signals(-answer.status).name}"
    except ValueError:  # a real-time signal has no name
        return f"ended by signal {-answer.status}"


def _last_line(errors: bytes) -> str:
    lines = [one_line(line) for line in plain(decode(errors)).splitlines()]
    return next((line for line in reversed(lines) if line), "")
