"""Any agent: what it says plainly, and in the words of those we know."""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples.golden import agents, sample_files, samples
from vigil.agents.contract import Beginning, Place
from vigil.agents.generic import ADAPTER
from vigil.core.model.progress import IDLE
from vigil.core.model.speech import Activity, Said, What
from vigil.core.rules.activity import activity_of, take_in

SHOWN = set(Activity) - {Activity.STARTING, Activity.UNKNOWN}  # these two change nothing


def read(payload: dict[str, Any]) -> list[Said]:
    return list(ADAPTER.read_hook(payload))


@pytest.mark.parametrize("activity", sorted(SHOWN))
def test_an_activity_that_is_said_plainly_is_shown(activity: str) -> None:
    (said,) = read({"activity": activity})

    assert activity_of(take_in(IDLE, said, 0.0))[0] == activity


def test_a_heartbeat_is_a_sign_of_life() -> None:
    assert [said.what for said in read({"event": "heartbeat"})] == [What.ALIVE]


def test_an_activity_nobody_knows_is_an_unknown_event() -> None:
    assert [said.what for said in read({"activity": "dreaming", "event": "dream"})] == [What.UNKNOWN]


@pytest.mark.parametrize("agent", agents())
def test_the_hooks_of_every_agent_we_know_are_known(agent: str) -> None:
    events = [event for path in sample_files(agent) if path.stem.startswith("hooks") for _, event in samples(path)]

    assert [event for event in events if any(said.what is What.UNKNOWN for said in read(event))] == []


@pytest.mark.parametrize(
    ("payload", "what"),
    [
        ({"hook_event_name": "UserPromptSubmit"}, What.PROMPT),
        ({"hook_event_name": "BeforeAgent"}, What.PROMPT),
        ({"type": "agent-turn-complete"}, What.TURN_ENDED),
        ({"hook_event_name": "Notification", "notification_type": "ToolPermission"}, What.ASKED),
        ({"type": "permission.asked", "id": "1"}, What.ASKED),
        ({"type": "agent_start"}, What.TURN_STARTED),
    ],
)
def test_hooks_have_the_meaning_they_have_at_home(payload: dict[str, Any], what: What) -> None:
    assert [said.what for said in read(payload)] == [what]


def test_it_has_no_stream_and_no_transcript_and_nothing_is_added() -> None:
    place = Place("/work", {"HOME": "/home/me"})
    start = ADAPTER.begin(Beginning(("claude", "-p"), place, "/launch", True, "1", hook=("sh", "hook.sh")))

    assert list(ADAPTER.read_stream({"type": "result"})) == list(ADAPTER.read_entry({"type": "user"})) == []
    assert (start.command, dict(start.env), dict(start.files)) == (("claude", "-p"), {}, {})
    assert ADAPTER.transcripts(place, "1") == ()
