"""P11: what was removed leaves no row, no file and no process; a namesake has an id of its own."""

from __future__ import annotations

from tests.chaos.checks.base import Verdict
from tests.chaos.history import History, Part, session_of

KEYED = ("sessions", "launches", "intents")
PARTS = (Part.AGENT, Part.SURVIVOR, Part.SERVER, Part.ROOT, Part.RECORDER)


def check(history: History) -> Verdict:
    verdict = Verdict("P11 removed is gone")
    kept = {session["id"] for session in history.sessions}
    names = {session_of(life.launch): life.session for life in history.agents()}
    known = set(names) | {death.session_id for death in history.deaths}
    for gone in sorted(known - kept):
        name = names.get(gone, "")
        for table in KEYED:
            verdict.expect(
                gone not in history.tables.get(table, []), history.judged_at, f"{name}: {gone} left a row in {table}"
            )
        for folder, ids in history.files.items():
            verdict.expect(gone not in ids, history.judged_at, f"{name}: {gone} left something in {folder}")
        left = [life for life in history.parts(*PARTS) if session_of(life.launch) == gone and life.ended_at is None]
        verdict.expect(not left, history.judged_at, f"{name}: {gone} left processes: {[(one.part, one.pid) for one in left]}")
    return verdict
