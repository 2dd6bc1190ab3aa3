"""P15 and the contract: sockets come back, commands answer in time with a code of the contract, and no traceback is left."""

from __future__ import annotations

from tests.chaos.checks.base import Verdict, down, excuses, touches
from tests.chaos.history import Command, History, Part, unexcused_s

BACK_S = 5.0
SLACK_S = 1.0
CODES = frozenset(range(7))
ANSWER_S = 15.0  # and what ends a stubborn agent takes its grace
LONGEST_S = 60.0
AS_AGENT = "an agent that Vigil watches"


def check_sockets(history: History) -> Verdict:
    verdict = Verdict("P15 sockets come back")
    for absence in history.absences:
        part = Part.DAEMON if absence.socket == "api.sock" else Part.KEEPER
        late = [span for span in history.spans if "late" in span.what or "store" in span.what]
        gone_s = unexcused_s(absence.since, absence.until, [*down(history, part), *late])
        text = f"{absence.socket} was gone for {absence.until - absence.since:.1f} s while its {part} lived"
        verdict.expect(gone_s <= BACK_S + SLACK_S, absence.since, text)
    return verdict


def check_commands(history: History) -> Verdict:
    verdict = Verdict("P15 commands answer as the contract says")
    for command in history.commands:
        _check(history, verdict, command)
    return verdict


def _check(history: History, verdict: Verdict, command: Command) -> None:
    words, at = f"vigil {' '.join(command.words[:4])}", command.began_at
    said = (command.err or command.out).strip().splitlines()[-1:] or [""]
    text = f"{words}: exit {command.code} after {command.took_s:.1f} s: {said[0][:200]}"
    verdict.expect(command.code in CODES, at, text)
    verdict.expect("Traceback (most recent call last)" not in command.out + command.err, at, f"{words}: a traceback: {said[0]}")
    verdict.expect(AS_AGENT not in command.err, at, text)
    excused = excuses(history)
    waited_s = unexcused_s(command.began_at, command.ended_at, excused)
    verdict.expect(waited_s <= ANSWER_S and command.took_s <= LONGEST_S, at, text)
    verdict.expect(command.code != 5 or touches(excused, command.began_at, command.ended_at), at, text)


def check_words(history: History) -> Verdict:
    verdict = Verdict("no tracebacks in the logs", 1)
    for words in history.words:
        verdict.expect(False, history.judged_at, words)
    return verdict
