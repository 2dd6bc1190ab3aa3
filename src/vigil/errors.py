"""Every error a user can meet, with its exit code; its message says what to do next.

VigilError            1  it failed
├── UsageError        2  wrong usage
├── NoSuchSession     3  no session of that name
├── Refused           4  refused by policy; the line says which
└── Unreachable       5  the daemon could not be reached or started
"""

from __future__ import annotations


class VigilError(Exception):
    """It failed; the message is one line for a person."""

    exit_code = 1
    hint = "vigil doctor"  # the command that helps on
    problems: tuple[str, ...] = ()  # if there are several, a line each


class UsageError(VigilError):
    """The request itself is wrong."""

    exit_code = 2
    hint = "vigil --help"


class NoSuchSession(VigilError):
    """No session has exactly this name."""

    exit_code = 3
    hint = "vigil ls --all"


class Refused(VigilError):
    """A policy says no; the message names it."""

    exit_code = 4
    hint = "vigil why"


class Unreachable(VigilError):
    """The daemon does not answer and could not be started."""

    exit_code = 5


BY_EXIT_CODE: dict[int, type[VigilError]] = {
    kind.exit_code: kind for kind in (VigilError, UsageError, NoSuchSession, Refused, Unreachable)
}
