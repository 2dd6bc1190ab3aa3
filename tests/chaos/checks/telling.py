"""P12: what opened as urgent is told, once or, around a crash, twice."""

from __future__ import annotations

from collections import Counter

from tests.chaos.checks.base import Verdict, down, touches
from tests.chaos.history import History, Part

TOLD_S = 30.0  # the last of them may be on their way
AROUND_S = 5.0
TELLS = frozenset({"opened", "again", "escalated", "reminder", "resolved", "summary"})


def check(history: History) -> Verdict:
    verdict = Verdict("P12 what is urgent is told")
    told = {incident for notice in history.notices if notice.event in TELLS for incident in notice.incidents}
    for incident in history.incidents:
        removed = "was removed" in incident.resolution or any(
            one.ended_at > incident.opened_at for one in history.about(incident.session or "", "rm", "scale")
        )
        if incident.severity != "urgent" or incident.opened_at > history.judged_at - TOLD_S or removed:
            continue
        over = f" and over at {incident.resolved_at:.2f}" if incident.resolved_at else ""
        text = f"{incident.session or 'the host'}: {incident.kind} ({incident.id}) opened{over}, and nobody was told"
        verdict.expect(incident.id in told, incident.opened_at, text)
    away = down(history, Part.DAEMON)
    for notice_id, times in Counter(notice.notice for notice in history.notices).items():
        moments = [notice.at for notice in history.notices if notice.notice == notice_id]
        crashed = touches(away, moments[0] - AROUND_S, moments[-1] + AROUND_S)
        text = f"notice {notice_id} came {times} times"
        verdict.expect(times == 1 or (times == 2 and crashed), moments[-1], text)
    return verdict
