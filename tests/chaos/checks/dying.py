"""P3, P8: one death record for each launch, with the truth in it; what we asked for is never a crash."""

from __future__ import annotations

import signal

from tests.chaos.checks.base import Verdict, by_launch, excuses, nobody_saw, touches
from tests.chaos.checks.ends import Why, reasons
from tests.chaos.history import DeathRow, History, Life, Part, number_of, session_of

CRASHES = frozenset(
    {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGSYS, signal.SIGTRAP}
)
AS_SIGNALS = {129: 1, 130: 2, 143: 15}
OURS = frozenset({"operator", "policy"})
CAUSES: dict[Why, frozenset[str]] = {
    Why.PANE: frozenset({"pane-closed"}),
    Why.SHIM: frozenset({"pane-closed", "killed-by-unknown"}),
    Why.SERVER: frozenset({"server-died"}),
    Why.COMMAND: OURS,
    Why.MEMORY: frozenset({"oom"}),
    Why.BIRTH: OURS | {"unobserved"},
}
ENDS_S = 3.0
TOLD_S = 2.0


def check(history: History) -> Verdict:
    verdict = Verdict("P3 P8 one true record for each death")
    agents, records = by_launch(history), _records(history)
    for launch in sorted(_ordered(history), key=lambda one: (session_of(one), number_of(one))):
        life, deaths = agents.get(launch), records.get(launch, [])
        lives = life is not None and life.ended_at is None
        at = (life.ended_at if life else None) or history.judged_at
        seen = f"its agent was pid {life.pid}" if life else "it was never seen alive"
        name = life.session if life else launch
        if lives:
            verdict.expect(not deaths, at, f"{name}: {launch} lives (pid {life.pid if life else 0}) and has a death record")
        else:
            verdict.expect(len(deaths) == 1, at, f"{name}: {launch} has {len(deaths)} death records; {seen}")
        for death in deaths:
            _check_record(history, verdict, death, life)
    return verdict


def _ordered(history: History) -> set[str]:
    """Return every launch that anybody knows of, and those with a lower number: it had them too."""
    known = {life.launch for life in history.agents()} | set(history.launches) | {death.launch for death in history.deaths}
    highest: dict[str, int] = {}
    for launch in known:
        highest[session_of(launch)] = max(highest.get(session_of(launch), 0), number_of(launch))
    return {f"{session}-{number}" for session, most in highest.items() for number in range(1, most + 1)}


def _records(history: History) -> dict[str, list[DeathRow]]:
    found: dict[str, list[DeathRow]] = {}
    for death in history.deaths:
        found.setdefault(death.launch, []).append(death)
    return found


def _check_record(history: History, verdict: Verdict, death: DeathRow, life: Life | None) -> None:
    if life is None:
        ours = not [shot for shot in history.shots if shot.launch == death.launch]
        text = f"{death.session}: {death.launch} is charged as launch-failed; nothing but Vigil's own failure kept it from life"
        verdict.expect(not (death.cause == "launch-failed" and death.charged and ours), death.at, text)
        return
    where = f"{death.session}: {death.launch} (pid {life.pid}) is recorded as {death.cause}"
    verdict.expect(death.cause != "launch-failed", death.at, f"{where}, but it ran from {life.began_at:.2f}")
    if death.cause == "launch-failed" or life.ended_at is None:
        return
    _check_status(history, verdict, death, life, where)
    outlived = death.cause in ("pane-closed", "server-died")  # its runtime's end is the one that counts
    unseen = nobody_saw(history, life)
    off_s = abs(death.at - life.ended_at)
    late = touches(excuses(history, death.launch), life.ended_at - ENDS_S, life.ended_at + ENDS_S)
    verdict.expect(outlived or unseen or late or off_s <= TOLD_S, death.at, f"{where} {off_s:.1f} s off: {life.ended_at:.2f}")
    _check_cause(history, verdict, death, life, where)


def _check_status(history: History, verdict: Verdict, death: DeathRow, life: Life, where: str) -> None:
    told = (death.exit_code, death.signal)
    if death.cause == "server-died":
        servers = [one for one in history.lives_of(death.launch, Part.SERVER) if one.ending is not None]
        if not servers:
            return
        life = servers[0]
    truth = life.ending
    if truth is None or life.ended_at is None:
        return
    if told == (None, None):
        excused = nobody_saw(history, life)
        verdict.expect(excused, death.at, f"{where} without a status, though it could be seen; it was {_shown(truth)}")
    else:
        ambiguous = truth[1] is not None and told == (128 + truth[1], None) and _is_ambiguous(death)
        verdict.expect(told == truth or ambiguous, death.at, f"{where} with {_shown(told)}; it was {_shown(truth)}")


def _is_ambiguous(death: DeathRow) -> bool:
    return any("only its shell" in text for text in death.evidence)


def _check_cause(history: History, verdict: Verdict, death: DeathRow, life: Life, where: str) -> None:
    found = reasons(history, life)
    allowed: set[str] = set()
    for why in found:
        allowed |= CAUSES.get(why, frozenset())
    if life.ending is not None and life.ending[1] == signal.SIGKILL and _may_be_memory(history, life):
        allowed.add("oom")  # somebody on this host ran out of memory then: likely, and no more is said
    if Why.SAID in found or Why.SHOT in found:
        allowed |= _causes_of(life.ending)
    assert life.ended_at is not None
    if nobody_saw(history, life):
        allowed.add("unobserved")
        if _is_ambiguous(death):  # 128+n is all that the shim could see
            allowed |= {"crash"} | _causes_of(life.ending)
    known = ", ".join(sorted(found)) or "nothing of ours"
    verdict.expect(
        not found or death.cause in allowed, death.at, f"{where}; what happened: {known}; it ended with {life.ending}"
    )


def _may_be_memory(history: History, life: Life) -> bool:
    return any(life.began_at <= at <= (life.ended_at or 0.0) + ENDS_S for at in history.out_of_memory)


def _causes_of(ending: tuple[int | None, int | None] | None) -> frozenset[str]:
    if ending is None:
        return frozenset({"crash", "killed-by-unknown", "finished", "early-exit"})
    code, number = ending
    if number is None and code in AS_SIGNALS:
        number = AS_SIGNALS[code]
    if number is not None:
        return frozenset({"crash"} if number in CRASHES else {"killed-by-unknown"})
    return frozenset({"finished", "early-exit"}) if code == 0 else frozenset({"crash"})


def _shown(status: tuple[int | None, int | None]) -> str:
    code, number = status
    return f"signal {number}" if number is not None else f"exit {code}"
