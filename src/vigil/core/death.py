"""Death: from the facts of an exit to its cause, with the evidence that speaks for it (DESIGN 4.4).

Pure, and a table: the first row that holds decides. An intent stands first, so our own kills are never mistaken for crashes
(P8); the server stands before the agent's own status, because a hangup kills the agent by a signal that explains nothing.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Callable
from dataclasses import dataclass

from vigil.core.model import Cause, Evidence, Exit, Intent, RestartWhen

CRASH_SIGNALS = frozenset(
    {signals.SIGSEGV, signals.SIGBUS, signals.SIGILL, signals.SIGFPE, signals.SIGABRT, signals.SIGSYS, signals.SIGTRAP}
)
EARLY_S = 10.0
# A shell, and an agent that handles the signal, answer these with 128+n: without an intent they count as that signal.
SIGNAL_EXITS = {128 + n: n for n in (signals.SIGHUP, signals.SIGINT, signals.SIGTERM)}


@dataclass(frozen=True, slots=True)
class Case:
    """What the rules look at."""

    exit: Exit
    intent: Intent | None
    uptime_s: float | None
    when: RestartWhen

    @property
    def signal(self) -> int | None:
        """The signal that ended it, as far as it is known or must be assumed."""
        if self.exit.signal is not None:
            return self.exit.signal
        return SIGNAL_EXITS.get(self.exit.exit_code) if self.exit.exit_code is not None else None

    @property
    def intended(self) -> Intent | None:
        """The intent that ended it; one recorded after the end explains nothing."""
        if self.intent is None or self.exit.rebooted:
            return None
        # A shim's time is its file's: of the wall's clock and coarse, so it cannot say what came first.
        return self.intent if self.exit.at >= self.intent.at or self.exit.observed_by == "shim" else None

    @property
    def early(self) -> bool:
        """It ended within its first seconds."""
        return self.uptime_s is not None and self.uptime_s < EARLY_S


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: a cause, and when it holds."""

    cause: Cause
    holds: Callable[[Case], bool]


RULES = (
    Rule(Cause.HOST_REBOOTED, lambda c: c.exit.rebooted),
    Rule(Cause.LAUNCH_FAILED, lambda c: not c.exit.started),
    Rule(Cause.SERVER_DIED, lambda c: c.exit.server_ended),
    Rule(Cause.CRASH, lambda c: c.signal in CRASH_SIGNALS),
    Rule(Cause.KILLED_BY_UNKNOWN, lambda c: c.signal is not None),
    Rule(Cause.EARLY_EXIT, lambda c: c.exit.exit_code == 0 and c.early and c.when is RestartWhen.ALWAYS),
    Rule(Cause.FINISHED, lambda c: c.exit.exit_code == 0),
    Rule(Cause.CRASH, lambda c: c.exit.exit_code is not None),
    Rule(Cause.UNOBSERVED, lambda _: True),
)


def classify(case: Case) -> Cause:
    """Return the cause of a death: its intent's where one was recorded, else the first rule that holds."""
    if case.intended is not None:
        return case.intended.cause
    return next(rule.cause for rule in RULES if rule.holds(case))


def evidence_of(case: Case) -> tuple[Evidence, ...]:
    """Return what the cause rests on, each line with the one who said it."""
    found = case.exit
    lines = [Evidence(found.status_source or found.observed_by, describe_status(found))]
    if found.server_ended:  # first: the agent's own status only says that it was hung up
        status = _status(found.server_exit_code, found.server_signal)
        lines.insert(0, Evidence("keeper", f"its tmux server {status}, without an intent"))
    elif found.root_signal is not None:
        lines.append(Evidence("pidfd", f"the pane's root {_status(None, found.root_signal)} first: the pane was closed"))
    if found.rebooted:
        lines.append(Evidence("boot-id", "the host was booted anew since the launch"))
    if case.intent is not None:
        intent = case.intent
        words = f"{intent.verb} by {intent.actor}" + (f": {intent.reason}" if intent.reason else "")
        late = case.intended is None and not found.rebooted
        lines.append(Evidence("intent", f"it had ended before this was asked for: {words}" if late else words))
    elif found.signal is not None or case.signal is not None:
        lines.append(Evidence("intent", "nobody recorded an intent to end it"))
    if case.uptime_s is not None:
        lines.append(Evidence("launch", f"it had been up {case.uptime_s:.1f} s"))
    return tuple(lines)


def describe_status(found: Exit) -> str:
    """Return how the agent ended, in words."""
    if found.ambiguous and found.exit_code is not None:
        return f"ended by {_signal_name(found.exit_code - 128)} or by exit {found.exit_code}: only its shell's $? is known"
    if found.exit_code is None and found.signal is None:
        return "nobody saw how it ended"
    return f"the agent {_status(found.exit_code, found.signal)}"


def _status(exit_code: int | None, signal: int | None) -> str:
    if signal is not None:
        return f"was ended by {_signal_name(signal)}"
    return "ended, its status is unknown" if exit_code is None else f"exited with {exit_code}"


def _signal_name(number: int) -> str:
    try:
        return f"{signals.Signals(number).name} ({number})"
    except ValueError:
        return f"signal {number}"
