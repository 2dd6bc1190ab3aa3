"""Death: the cause of an exit, how sure it is, and the evidence for it (DESIGN 4.4).

Pure, and tables: the first row that holds decides. Intents stand first, so our own kills are never crashes (P8); server and
pane stand before the agent's status, because a hangup kills the agent by a signal that explains nothing."""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from vigil.core.model.death import Cause, Confidence, EvidenceLine, Exit, Intent, Oom
from vigil.core.model.restart import RestartWhen
from vigil.words import few

CRASH_SIGNALS = frozenset(
    {signals.SIGSEGV, signals.SIGBUS, signals.SIGILL, signals.SIGFPE, signals.SIGABRT, signals.SIGSYS, signals.SIGTRAP}
)
EARLY_S = 10.0
# A shell, and an agent that handles the signal, answer these with 128+n: without an intent they count as that signal.
SIGNAL_EXITS = {128 + n: n for n in (signals.SIGHUP, signals.SIGINT, signals.SIGTERM)}
FOR_A_REASON = frozenset({Cause.UNHEALTHY, Cause.STALLED})  # our reason says more than the signal
OF_ITS_RUNTIME = frozenset({Cause.SERVER_DIED, Cause.PANE_CLOSED})  # whatever the agent answered
NAMED = 5  # so many others of the same second are named, the rest counted


@dataclass(frozen=True, slots=True)
class ExitFacts:
    exit: Exit
    intent: Intent | None
    uptime_s: float | None
    when: RestartWhen
    beside: tuple[str, ...] = ()  # sessions that ended within the second before
    server_told: bool = False  # its server's end was known before any intent

    @property
    def signal(self) -> int | None:
        """The signal that an agent died of, known or assumed."""
        if self.exit.signal is not None:
            return self.exit.signal
        return SIGNAL_EXITS.get(self.exit.exit_code) if self.exit.exit_code is not None else None

    @property
    def intended(self) -> Intent | None:
        """The intent that meant this death; neither a later one nor one given up before."""
        if self.intent is None or self.exit.rebooted:
            return None
        if self.intent.void_from is not None and self.exit.at > self.intent.void_from:
            return None
        # A shim's time is its file's, by the coarse wall clock: it cannot say which came first.
        return self.intent if self.exit.at >= self.intent.at or self.exit.observed_by == "shim" else None

    @property
    def early(self) -> bool:
        return self.uptime_s is not None and self.uptime_s < EARLY_S

    @property
    def unfinished(self) -> bool:
        """Whether a death came before the work was done; without signs, only under `always`."""
        return self.exit.result is False or (self.exit.result is None and self.when is RestartWhen.ALWAYS)

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel caused the death for want of memory: by log, or nearest counter."""
        oom = self.exit.oom
        if oom is None or self.exit.signal != signals.SIGKILL:
            return False
        return next(rule.so for rule in MEMORY if rule.holds(oom))

    @property
    def server_to_blame(self) -> bool:
        """Whether its server's end, which we did not mean, is to blame for a death."""
        return self.exit.server_ended and (self.intended is None or self.server_told)

    @property
    def hung_up(self) -> bool:
        """Whether its pane's end, under a living server, explains a death: by the hangup, or by its answer to that."""
        found = self.exit
        known = found.exit_code is not None or found.signal is not None
        return known and found.pane_closed and not found.server_ended and found.signal in (None, signals.SIGHUP)

    @property
    def pane_to_blame(self) -> bool:
        """Whether its pane's end is to blame for a death, also of an agent that outlived it and was replaced."""
        return self.hung_up if self.intended is None else self.intended.cause is Cause.PANE_CLOSED

    def said(self, cause: Cause) -> bool:
        return self.exit.words is not None and self.exit.words.cause is cause


class MemoryRule(NamedTuple):
    so: bool
    holds: Callable[[Oom], bool]


MEMORY = (  # The first row that holds decides: what the kernel wrote down is what it did; unread, the nearest counter.
    MemoryRule(True, lambda oom: oom.named is True),
    MemoryRule(False, lambda oom: oom.named is False),
    MemoryRule(True, lambda oom: (oom.cgroup_kills or 0) > 0),
    MemoryRule(True, lambda oom: oom.cgroup_kills is None and (oom.host_kills or 0) > 0),
    # Moved to a cgroup that we do not know: the host's counter grew in that moment, and no other of ours died of it.
    MemoryRule(True, lambda oom: oom.elsewhere is not None and (oom.host_kills or 0) > oom.elsewhere),
    MemoryRule(False, lambda _: True),
)


class DeathRule(NamedTuple):
    cause: Cause
    holds: Callable[[ExitFacts], bool]


RULES = (
    DeathRule(Cause.HOST_REBOOTED, lambda c: c.exit.rebooted),
    DeathRule(Cause.LAUNCH_FAILED, lambda c: not c.exit.started),
    DeathRule(Cause.OOM, lambda c: c.out_of_memory),
    DeathRule(Cause.SERVER_DIED, lambda c: c.exit.server_ended),
    DeathRule(Cause.PANE_CLOSED, lambda c: c.hung_up),
    DeathRule(Cause.CRASH, lambda c: c.signal in CRASH_SIGNALS),
    DeathRule(Cause.KILLED_BY_UNKNOWN, lambda c: c.signal is not None),
    DeathRule(Cause.LIMIT, lambda c: c.said(Cause.LIMIT)),
    DeathRule(Cause.AUTH, lambda c: c.said(Cause.AUTH)),
    DeathRule(Cause.EARLY_EXIT, lambda c: c.exit.exit_code == 0 and c.early and c.unfinished),
    DeathRule(Cause.FINISHED, lambda c: c.exit.exit_code == 0 and c.exit.result is not False),
    DeathRule(Cause.CRASH, lambda c: c.exit.exit_code is not None),
    DeathRule(Cause.UNOBSERVED, lambda _: True),
)


class Reserve(NamedTuple):
    confidence: Confidence
    holds: Callable[[ExitFacts, Cause], bool]


RESERVES = (  # The first row that holds decides; without one it is certain.
    Reserve(Confidence.CERTAIN, lambda case, _: case.intended is not None),
    Reserve(Confidence.UNKNOWN, lambda _, cause: cause is Cause.UNOBSERVED),
    Reserve(Confidence.LIKELY, lambda case, cause: cause is Cause.OOM and not (case.exit.oom and case.exit.oom.named)),
    Reserve(Confidence.LIKELY, lambda case, cause: cause is Cause.KILLED_BY_UNKNOWN and _may_be_memory(case)),
    Reserve(Confidence.LIKELY, lambda _, cause: cause in (Cause.LIMIT, Cause.AUTH)),  # by its words alone
    Reserve(Confidence.LIKELY, lambda case, cause: case.exit.ambiguous and cause not in OF_ITS_RUNTIME),
    Reserve(Confidence.LIKELY, lambda case, cause: cause is Cause.KILLED_BY_UNKNOWN and case.exit.signal is None),
)


def _may_be_memory(case: ExitFacts) -> bool:
    """Say whether a death may be for want of memory: counters are unread or disagree."""
    oom = case.exit.oom
    if case.exit.signal != signals.SIGKILL:
        return False
    if oom is None or (oom.named, oom.cgroup_kills, oom.host_kills) == (None, None, None):
        return True
    return (oom.named is False and (oom.cgroup_kills or 0) > 0) or (oom.named is None and (oom.host_kills or 0) > 0)


def classify(case: ExitFacts) -> Cause:
    """Decide the cause of a death: its intent's, else by the first rule that holds."""
    if case.intended is not None:
        return case.intended.cause
    return next(rule.cause for rule in RULES if rule.holds(case))


def status_of(case: ExitFacts, cause: Cause) -> tuple[int | None, int | None]:
    """Return a death's exit code and signal: a dead server's own, never its agent's, and none that we gave it."""
    found = case.exit
    if cause is not Cause.SERVER_DIED:
        return found.exit_code, found.signal
    return (found.server_exit_code, found.server_signal) if case.server_to_blame else (None, None)


def confidence_of(case: ExitFacts, cause: Cause) -> Confidence:
    return next((row.confidence for row in RESERVES if row.holds(case, cause)), Confidence.CERTAIN)


def evidence_of(case: ExitFacts) -> tuple[EvidenceLine, ...]:
    """Return the evidence for a death's cause, each line with its source, the main first."""
    found = case.exit
    status = describe_status(found) + (" and left a core" if found.core else "")
    own = EvidenceLine(found.status_source or found.observed_by, status)
    first: tuple[EvidenceLine, ...] = (own,)
    if case.out_of_memory and case.intended is None:
        first = (EvidenceLine("kernel", "the agent was ended for want of memory (SIGKILL by the kernel)"), own)
    elif case.intended is not None and case.intended.cause in FOR_A_REASON:
        first = (EvidenceLine("policy", f"it was ended: {case.intended.reason}"), own)
    elif case.server_to_blame:  # before the agent's own status, which only tells of the hangup
        claim = "" if case.intended is not None else ", without an intent"
        status = _status(found.server_exit_code, found.server_signal)
        first = (EvidenceLine("keeper", f"its tmux server {status}{claim}"), own)
    elif case.pane_to_blame:
        first = (EvidenceLine("pidfd", "its pane was closed, and its tmux server lives on"), own)
    return (*first, *_circumstances(case))


def _circumstances(case: ExitFacts) -> Iterator[EvidenceLine]:
    found = case.exit
    if found.root_signal is not None and not found.server_ended:
        yield EvidenceLine("pidfd", f"the pane's root {_status(None, found.root_signal)} first: the pane was closed")
    if found.rebooted:
        yield EvidenceLine("boot-id", "the host was booted anew since the launch, or this home was copied")
    yield from _memory(case)
    if found.words is not None:
        yield EvidenceLine("last words", found.words.text)
    if found.result is False and found.exit_code == 0:
        yield EvidenceLine("stream", "it ended in the middle of its work: its stream has no result")
    if found.full_disk:
        yield EvidenceLine("disk", f"nothing more can be written to {found.full_disk}: it is full")
    if case.intent is not None:
        words = f"{case.intent.verb} by {case.intent.actor}" + (f": {case.intent.reason}" if case.intent.reason else "")
        late = case.intended is None and not found.rebooted
        yield EvidenceLine("intent", f"it had ended before this was asked for: {words}" if late else words)
    elif case.signal is not None:
        yield EvidenceLine("intent", "nobody recorded an intent to end it")
    if case.uptime_s is not None:
        most = "at most " if found.exit_code is None and found.signal is None else ""  # no sensor saw when
        yield EvidenceLine("launch", f"it had been up {most}{case.uptime_s:.1f} s")
    if case.beside:
        yield EvidenceLine("others", f"ended within the same second: {few(case.beside, NAMED)}")


def _memory(case: ExitFacts) -> Iterator[EvidenceLine]:
    """Return what the kernel's counters and log say for and against a death by memory."""
    oom = case.exit.oom
    if oom is None:
        return
    if oom.named is not None:
        says = "says that it was" if oom.named else "does not say that it was"
        yield EvidenceLine("kernel log", f"the kernel's log {says} ended for want of memory")
    for counter, kills in ((f"cgroup {oom.cgroup}", oom.cgroup_kills), ("host", oom.host_kills)):
        if kills is not None:
            yield EvidenceLine("oom_kill", f"the counter of the {counter} grew by {kills}")
    if oom.elsewhere is not None:
        yield EvidenceLine("oom_kill", f"of these, {oom.elsewhere} in the cgroups of other launches")


def describe_status(found: Exit) -> str:
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
