"""What an earlier version stored says the same today: the class of a reap, the step of a notice, an all-clear."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.unit.builders import make_death, make_intent, make_session
from vigil.core.effects import Persist
from vigil.core.events import Notified
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.incident import Incident, IncidentKind, Notice, NoticeEvent, NoticeState, Rung, Severity
from vigil.core.model.sighting import ReapClass
from vigil.core.model.upgrade import upgraded_notice, upgraded_session
from vigil.recording import Replay, begin_line, entry_line, open_recording
from vigil.store.store import Store

OLD_IDS = {
    "i1/0/0": Rung(0, 0),
    "i1/2/17": Rung(2, 17),
    "i1/u1/3": Rung(1, 3, urgent=True),
    "i1/reminded2/7": None,
    "i1/again1/ops": None,
    "i1/resolved/7": None,
}


def make_incident(notices: tuple[Notice, ...]) -> Incident:
    return Incident("i1", "s1/stuck", IncidentKind.STUCK, Severity.URGENT, "s1", "alpha", 1000.0, "it hangs", notices=notices)


@pytest.mark.parametrize(("notice_id", "rung"), OLD_IDS.items())
def test_a_notice_without_its_step_has_the_one_its_id_names(notice_id: str, rung: Rung | None) -> None:
    notice = upgraded_notice(Notice(notice_id, "ops", NoticeState.SENT, 1000.0))

    assert notice.rung == rung
    assert (notice.event is NoticeEvent.RESOLVED) is ("resolved" in notice_id)
    assert upgraded_notice(notice) == notice


def test_a_reap_without_its_class_has_the_one_its_reason_begins_with() -> None:
    old = make_intent(Cause.POLICY, verb=IntentVerb.REAP, reason="idle: last work: a: b, 2 h ago")
    session = upgraded_session(make_session(intent=old, last_death=make_death(Cause.POLICY, intent=old)))

    assert session.intent is not None and session.last_death is not None and session.last_death.intent is not None
    for intent in (session.intent, session.last_death.intent):
        assert (intent.kind, intent.why, intent.reason) == (ReapClass.IDLE, "last work: a: b, 2 h ago", old.reason)


def test_a_person_who_gives_such_a_reason_reaps_nothing() -> None:
    asked = make_intent(verb=IntentVerb.STOP, reason="idle: I need the memory")

    assert upgraded_session(make_session(intent=asked)).intent == asked


def test_a_database_of_an_earlier_version_is_read_so(tmp_path: Path) -> None:
    path = tmp_path / "vigil.db"
    intent = make_intent(Cause.POLICY, verb=IntentVerb.REAP, reason="orphan: its folder is gone, for 2 min")
    notices = (Notice("i1/0/4", "ops", NoticeState.RETRYING, 1000.0), Notice("i1/resolved/ops", "ops", NoticeState.SENT, 1.0))
    store = Store(path)
    store.write([Persist((make_session(intent=intent),), incidents=(make_incident(notices),))])
    store.close()
    forget(path, "sessions", ("intent",), ("kind", "why"))
    forget(path, "incidents", ("notices", 0), ("rung", "event"))
    forget(path, "incidents", ("notices", 1), ("rung", "event"))

    store = Store(path)
    (session,), (incident,), found = store.read_sessions(), store.read_incidents(), store.read_incident("i1")
    store.close()

    assert session.intent is not None and session.intent.kind is ReapClass.ORPHAN
    assert [notice.rung for notice in incident.notices] == [Rung(0, 4), None]
    assert [notice.event for notice in incident.notices] == [NoticeEvent.OPENED, NoticeEvent.RESOLVED]
    assert found == incident


def forget(path: Path, table: str, where: tuple[str | int, ...], names: tuple[str, ...]) -> None:
    """Take fields out of a stored value, as if they had not been there then."""
    connection = sqlite3.connect(path)
    with connection:
        ((body,),) = connection.execute(f"SELECT body FROM {table}").fetchall()
        whole = json.loads(body)
        part = whole
        for step in where:
            part = part[step]
        for name in names:
            del part[name]
        connection.execute(f"UPDATE {table} SET body = ?", (json.dumps(whole),))
    connection.close()


def test_a_recording_of_an_earlier_version_is_replayed_so(tmp_path: Path) -> None:
    path = tmp_path / "it.jsonl"
    first = Notice("i1/0/0", "ops", NoticeState.RETRYING, 1000.0, retry_at=1005.0)
    second = Notified("i1", Notice("i1/0/1", "ops", NoticeState.SENT, 1800.0))
    incident = make_incident((first,))
    path.write_text("\n".join([begin_line("0.1.0", 1000.0, [], [incident]), entry_line(1800.0, second, [])]) + "\n")
    replay = Replay(open_recording(path))

    (step,) = replay.steps()

    now = next(difference.now for difference in step.differences if difference.of == "incident")
    assert [notice["state"] for notice in now["notices"]] == ["cancelled", "sent"], "the next one took its place"
