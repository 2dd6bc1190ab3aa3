"""What an earlier version stored says the same today: reaps, notices, and sessions with all they know in one row."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.unit.builders import make_death, make_doubt, make_intent, make_launch, make_reading, make_session
from vigil.codec import load, plain
from vigil.core.effects import Persist
from vigil.core.events import Adopted, Notified
from vigil.core.model.conversation import Spent
from vigil.core.model.death import Cause, Confidence, IntentVerb
from vigil.core.model.incident import Incident, IncidentKind, Notice, NoticeEvent, NoticeState, Rung, Severity
from vigil.core.model.progress import IDLE, Recent, Tally, Trail
from vigil.core.model.reading import Axis
from vigil.core.model.session import UNKNOWN_VITALS, Pulse, PulseState, Session, with_vitals
from vigil.core.model.sighting import ReapClass
from vigil.core.model.speech import What
from vigil.core.model.stall import Stall
from vigil.core.model.upgrade import ONCE_FLAT, nested, upgraded_notice, upgraded_session
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

    assert session.vitals.intent is not None and session.last_death is not None and session.last_death.intent is not None
    for intent in (session.vitals.intent, session.last_death.intent):
        assert (intent.kind, intent.why, intent.reason) == (ReapClass.IDLE, "last work: a: b, 2 h ago", old.reason)


def test_a_person_who_gives_such_a_reason_reaps_nothing() -> None:
    asked = make_intent(verb=IntentVerb.STOP, reason="idle: I need the memory")

    assert upgraded_session(make_session(intent=asked)).vitals.intent == asked


def test_a_database_of_an_earlier_version_is_read_so(tmp_path: Path) -> None:
    path = tmp_path / "vigil.db"
    intent = make_intent(Cause.POLICY, verb=IntentVerb.REAP, reason="orphan: its folder is gone, for 2 min")
    notices = (Notice("i1/0/4", "ops", NoticeState.RETRYING, 1000.0), Notice("i1/resolved/ops", "ops", NoticeState.SENT, 1.0))
    store = Store(path)
    store.write([Persist((make_session(intent=intent),), incidents=(make_incident(notices),))])
    store.close()
    forget(path, "sessions", ("vitals", "intent"), ("kind", "why"))
    forget(path, "incidents", ("notices", 0), ("rung", "event"))
    forget(path, "incidents", ("notices", 1), ("rung", "event"))

    store = Store(path)
    (session,), (incident,), found = store.read_sessions(), store.read_incidents(), store.read_incident("i1")
    store.close()

    assert session.vitals.intent is not None and session.vitals.intent.kind is ReapClass.ORPHAN
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


FULL = with_vitals(
    make_session(launch=make_launch(), attached=2, doubt=make_doubt(), intent=make_intent(), doing=IDLE, prompted_by="hook"),
    axes={Axis.PROCESS: make_reading()},
    pulse=Pulse(PulseState.LATE, 5.0),
    trail=Trail("speaks", 7.0, spoke=True),
    stall=Stall("limbo", Confidence.CERTAIN, ("it hangs",), 9.0, 8.0),
    spent_before=Spent(turns=3),
    read_to={"a": "1"},
    recent=(Recent(3.0, What.SPEAKS),),
    tally=Tally(words=4),
)


def flat(session: Session) -> dict[str, Any]:
    """Return the JSON of a session as versions before wrote it."""
    found: dict[str, Any] = plain(session)
    return {name: value for name, value in found.items() if name != "vitals"} | dict(found["vitals"])


def test_a_session_of_before_is_nested_and_loses_nothing() -> None:
    assert all(getattr(FULL.vitals, name) != getattr(UNKNOWN_VITALS, name) for name in ONCE_FLAT), "the test shows all of it"
    assert nested(flat(FULL)) == nested(plain(FULL)) == plain(FULL)


def test_a_field_that_an_old_session_has_not_takes_its_default() -> None:
    old = {name: value for name, value in flat(FULL).items() if name not in ("tally", "pulse")}

    assert load(Session, json.dumps(nested(old))) == with_vitals(FULL, tally=Tally(), pulse=None)


def test_an_old_recording_has_its_sessions_nested_wherever_they_are(tmp_path: Path) -> None:
    path = tmp_path / "old"
    event, purge = Adopted(FULL, (), "alice"), {"Purge": {"session": flat(FULL)}}
    first = {"vigil-recording": 1, "version": "0.1.0", "at": 1.0, "sessions": [flat(FULL)], "incidents": [], "roles": []}
    entry = {"now": 2.0, "event": {"Adopted": plain(event) | {"session": flat(FULL)}}}
    effects = [{"Persist": {"sessions": [flat(FULL)], "log": [{"session": "alpha"}]}}, purge]
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, entry | {"effects": effects})))
    recording = open_recording(path)

    (found,) = recording.entries()

    assert (recording.sessions, recording.unknown) == ((FULL,), [])
    assert found.event == {"Adopted": plain(event)}
    shown = [{"Persist": {"sessions": [plain(FULL)], "log": [{"session": "alpha"}]}}, {"Purge": {"session": plain(FULL)}}]
    assert found.effects == shown


def test_a_stored_session_that_is_no_json_does_not_stop_the_migration(tmp_path: Path) -> None:
    path = tmp_path / "vigil.db"
    store = Store(path)
    store.write([Persist((FULL,))])
    store.close()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = '0003'")
        connection.execute("INSERT INTO sessions VALUES ('s2', 'beta', 'running', 'torn{')")
        connection.execute("UPDATE sessions SET body = ? WHERE id = 's1'", (json.dumps(flat(FULL)),))
    connection.close()

    Store(path).close()

    connection = sqlite3.connect(path)
    found = dict(connection.execute("SELECT id, body FROM sessions").fetchall())
    connection.close()
    assert (load(Session, found["s1"]), found["s2"]) == (FULL, "torn{")
