"""Facts from the kernel and from files about a silent agent's work. Pure: each is true, false or unknown (P7)."""

from __future__ import annotations

from collections.abc import Iterable

from vigil.core.rules.stall.case import Silence

ASSUMED_IDLE = 0.05  # cores of a waiting agent until Vigil has learned them: 3 to 5 % is usual
ABOVE_IDLE = 0.05  # so much more is work
SPINS = 0.8  # of a core, by the agent's own process
BURST_S = 0.01  # a process that computes so long at a time takes all the CPU it gets; a timer needs a tenth
MOVES_BYTES = 1024.0  # a second
LATE_S = 2.0  # a later reading is void


def any_of(values: Iterable[bool | None]) -> bool | None:
    """Return whether any fact of work holds; unknown if none does and one is unknown."""
    found = list(values)
    return True if any(found) else None if None in found else False


def late(case: Silence) -> bool | None:
    late_s = case.evidence.late_s.value
    return None if late_s is None else late_s > LATE_S


def in_state(case: Silence, states: str) -> bool | None:
    state = case.evidence.state.value
    return None if state is None else state in states


def starved(waited: float | None, burst_s: float | None) -> float:
    """Return the cores that work missed on a busy host; short bursts miss none."""
    return waited if waited is not None and burst_s is not None and burst_s >= BURST_S else 0.0


def main_starved(case: Silence) -> float:
    return starved(case.evidence.main_waited.value, case.evidence.main_burst_s.value)


def busy(case: Silence) -> bool | None:
    """Say whether a silent agent works: it uses more CPU than idle, or would."""
    rate = case.rate(case.evidence.tree_cpu)
    if rate is None:
        return None
    rate += main_starved(case) + sum(starved(child.waited, child.burst_s) for child in case.evidence.children)
    return rate > (ASSUMED_IDLE if case.idle_cpu is None else case.idle_cpu) + ABOVE_IDLE


def spins(case: Silence) -> bool | None:
    """Say whether a silent agent works with a whole core, or would if it could."""
    rate, least = case.rate(case.evidence.main_cpu), max(SPINS, (case.idle_cpu or 0.0) + ABOVE_IDLE)
    if rate is None or rate >= least:
        return None if rate is None else True
    if case.evidence.main_waited.value is None:
        return None if in_state(case, "R") is not False else False
    return rate + main_starved(case) >= least


def _if_all_was_seen(case: Silence, value: bool | None) -> bool | None:
    """Return a fact of all processes' work: false is unknown while one is hidden."""
    return None if value is False and case.evidence.hidden.value else value


def moves_bytes(case: Silence) -> bool | None:
    rate = case.rate(case.evidence.io)
    return None if rate is None else _if_all_was_seen(case, rate >= MOVES_BYTES)


def is_connected(case: Silence) -> bool | None:
    count = case.evidence.sockets.value
    return None if count is None else _if_all_was_seen(case, count >= 1)


def bytes_come(case: Silence) -> bool | None:
    connected = is_connected(case)
    return _if_all_was_seen(case, case.is_fresh(case.evidence.received_s)) if connected else connected


def network_dead(case: Silence) -> bool | None:
    """Say whether the kernel shows no connection of a silent agent, or no acknowledging peer."""
    connected, unacked = is_connected(case), case.evidence.unacked.value
    if connected is False:
        return True
    if connected is None or unacked is None:
        return connected and None
    return unacked > 0 and bytes_come(case) is False and case.is_fresh(case.evidence.sent_s) is False


def writes(case: Silence) -> bool | None:
    numbers = (case.evidence.printed_s, case.evidence.transcript_s, case.evidence.subagents_s)
    known = [case.is_fresh(number) for number in numbers if number.value is not None]
    return any_of(known) if known else None


def files_unread(case: Silence) -> bool:
    """Say whether a file of the agent's work was unreadable; missing ones do not count."""
    numbers = (case.evidence.printed_s, case.evidence.transcript_s, case.evidence.subagents_s)
    return any(number.value is None and number.why for number in numbers)


def background_lives(case: Silence) -> bool | None:
    """Say whether a finished agent's work goes on: files grow, processes work, or bytes move."""
    return any_of((bool(writes(case)), busy(case), moves_bytes(case)))
