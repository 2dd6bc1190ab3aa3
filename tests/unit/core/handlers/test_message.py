"""Messages wait for a session, wake it, and are settled one after the other; all of it by the machine, in one change each."""

from __future__ import annotations

import pytest

from tests.unit.builders import SITUATIONS, Stage, make_launched, parked, running
from vigil.core.effects import Answer, Persist
from vigil.core.events import Ended, Heard, MessageQueued, MessageSent, MessageTyped
from vigil.core.handlers.message import MOST_CHARS, MOST_MESSAGES
from vigil.core.model.conversation import Message, Wake
from vigil.core.model.incident import IncidentKind
from vigil.core.model.launch import Mode
from vigil.core.model.speech import Said, What


def queue(stage: Stage, name: str = "m1", characters: int = 5) -> Wake:
    """Give a message, and return the answer."""
    message = Message(name, stage.now, "alice", characters)
    (answer,) = [effect.wake for effect in stage.tell(MessageQueued("s1", message, ticket="t")) if isinstance(effect, Answer)]
    return answer


def waiting(stage: Stage) -> list[str]:
    return [message.id for message in stage.session().queue]


def test_a_message_and_the_wake_it_causes_are_one_change() -> None:
    stage = parked()

    effects = stage.machine.handle(MessageQueued("s1", Message("m1", 1.0, "alice", 5), ticket="t"), stage.now)

    persist = effects[0]
    assert isinstance(persist, Persist)
    assert [entry.kind for entry in persist.log] == ["message.queued", "session.wake", "session.state"]
    assert [message.id for message in persist.sessions[0].queue] == ["m1"]
    assert stage.state() == "pending (survivor)"


@pytest.mark.parametrize(
    ("situation", "answer"),
    [
        ("parked", "fresh"),
        ("being_parked", "fresh"),
        ("running", "nothing"),
        ("starting", "nothing"),
        ("crashed", "nothing"),  # it comes back by itself
        ("finished_and_coming_back", "nothing"),
        ("being_stopped", "refused"),
        ("being_removed", "refused"),
        ("stopped", "refused"),
        ("failed", "refused"),
        ("saturated", "refused"),
        ("succeeded", "refused"),
    ],
)
def test_what_is_not_coming_back_takes_no_message(situation: str, answer: str) -> None:
    stage = SITUATIONS[situation]()

    assert queue(stage).mode.value == answer
    assert waiting(stage) == ([] if answer == "refused" else ["m1"])


def test_messages_stay_in_order_through_a_wake_and_a_new_daemon() -> None:
    stage = parked()
    for name in ("m1", "m2", "m3"):
        queue(stage, name)

    stage.restart()
    stage.tell(Ended("s1-1", True))
    stage.tell(make_launched("s1-2", stage.now))

    assert stage.state() == "running"
    assert waiting(stage) == ["m1", "m2", "m3"]
    assert stage.session().launches == 2


def test_that_one_is_being_typed_is_durable_and_taken_back_if_nothing_was() -> None:
    stage = running()
    queue(stage)

    stage.tell(MessageTyped("s1", "m1", "s1-1"))
    assert (stage.durable["s1"].queue[0].launch_id, stage.durable["s1"].queue[0].typed_at) == ("s1-1", stage.now)
    stage.tell(MessageTyped("s1", "m1", ""))

    assert (stage.durable["s1"].queue[0].launch_id, stage.durable["s1"].queue[0].typed_at) == ("", None)


def test_a_settled_message_is_logged_once_and_what_is_told_twice_changes_nothing() -> None:
    stage = running()
    queue(stage, "m1")
    queue(stage, "m2")
    stage.tell(MessageTyped("s1", "m2", "s1-1"))  # not the first: nothing is typed out of order

    for _ in range(2):
        stage.tell(MessageSent("s1", "m1", "submitted", "its agent says that it took it"))

    assert waiting(stage) == ["m2"]
    assert stage.session().queue[0].typed_at is None
    assert [dict(entry.data)["outcome"] for entry in stage.entries if entry.kind == "message.sent"] == ["submitted"]


def test_the_queue_is_bounded_by_number_and_by_length() -> None:
    many, long = running(), running()
    for number in range(MOST_MESSAGES):
        assert queue(many, f"m{number}").mode is Mode.NOTHING
    queue(long, characters=MOST_CHARS)

    for stage in (many, long):
        refused = queue(stage, "one-more")
        assert (refused.mode, refused.cause) == (Mode.REFUSED, "full")
        assert "one-more" not in waiting(stage)


def test_messages_for_what_nothing_brings_back_are_told_to_a_person() -> None:
    stage = running()
    queue(stage)

    stage.exit(exit_code=1)
    assert [one.kind for one in stage.machine.incidents.values()] == [IncidentKind.UNDELIVERED]
    stage.ask("start")
    stage.tell(Ended("s1-1", True))
    stage.tell(make_launched("s1-2", stage.now))

    assert not stage.machine.incidents
    assert waiting(stage) == ["m1"]


def test_a_removed_session_takes_its_messages_along() -> None:
    stage = parked()
    queue(stage)

    stage.ask("rm")
    stage.tell(Ended("s1-1", True))

    assert stage.state() == "removed"
    stage.tell(MessageSent("s1", "m1", "submitted", ""))
    stage.tell(Heard("s1-1", (Said(What.ALIVE),), "hook"))
