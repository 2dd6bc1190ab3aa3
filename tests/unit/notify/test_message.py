"""What a notice says to people."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.unit.core.rules.test_escalation import OPENED_AT, OPS, make_incident, make_ladders
from tests.unit.core.rules.test_owed import make_over
from vigil.core.model.incident import NoticeEvent
from vigil.core.rules.escalation import due_notices
from vigil.notify.message import message_of, summary_of, text_of, title_of


def test_a_first_notice_of_what_is_over_says_what_it_was_when_and_that_it_is_over() -> None:
    (due,) = due_notices(make_over(), make_ladders(OPS), OPENED_AT + 1)

    said = json.loads(message_of(due))

    assert (said["event"], said["opened_at"], said["resolved_at"]) == (
        "opened",
        "2023-11-14T22:13:20.000Z",
        "2023-11-14T22:13:20.300Z",
    )
    assert title_of(said) == "[vigil] over already: urgent: stuck: alpha"
    assert text_of(said).splitlines() == [
        "its server does not answer; over: alpha is running",
        "opened 2023-11-14T22:13:20.000Z",
        "over 2023-11-14T22:13:20.300Z",
        "",
        "vigil incidents i1 tells all of it",
    ]


def test_a_summary_tells_what_is_over_from_what_lasts() -> None:
    over, lasts = make_over(), make_incident(id="i2")
    dues = [due for incident in (over, lasts) for due in due_notices(incident, make_ladders(OPS), OPENED_AT + 1)]

    said = json.loads(summary_of(dues))

    assert said["kinds"] == {"over already: stuck": 1, "stuck": 1}
    assert "alpha: its server does not answer; over: alpha is running" in text_of(said)


def test_an_all_clear_says_why_it_is_over() -> None:
    (due,) = due_notices(make_over(), make_ladders(OPS), OPENED_AT + 1)

    said = json.loads(message_of(replace(due, event=NoticeEvent.RESOLVED)))

    assert title_of(said) == "[vigil] over: urgent: stuck: alpha"
    assert text_of(said).startswith("over: alpha is running\n")
