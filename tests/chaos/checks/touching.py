"""P2, P9: nobody outside is signalled, and no agent is ended by anybody but us, itself or what we asked for."""

from __future__ import annotations

from tests.chaos.checks.base import Verdict
from tests.chaos.checks.ends import reasons
from tests.chaos.history import History


def check(history: History) -> Verdict:
    verdict = Verdict("P2 P9 nobody else touched")
    for one in history.bystanders:
        words = f"{one.what} (pid {one.pid}) "
        verdict.expect(not one.signals, history.judged_at, words + f"was signalled: {', '.join(one.signals)}")
        verdict.expect(one.alive or one.ended_by_us, history.judged_at, words + "is gone")
    for life in history.agents():
        if life.ended_at is not None:
            text = f"{life.session}: {life.launch} (pid {life.pid}) ended with {life.ending}, and nothing of ours did that"
            verdict.expect(bool(reasons(history, life)), life.ended_at, text)
    return verdict
