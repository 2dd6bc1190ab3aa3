"""What an agent says is taken in: what it does, in which conversation, what it cost; the best source counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.builders import Stage, make_exit, running
from vigil.core.events import Exited, Heard
from vigil.core.model.conversation import Spent
from vigil.core.model.incident import IncidentKind
from vigil.core.model.reading import Axis
from vigil.core.model.session import Session
from vigil.core.model.speech import Said, Usage, What

PROMPT, ENDED = Said(What.PROMPT), Said(What.TURN_ENDED)


def say(stage: Stage, *said: Said, source: str = "hook", **more: object) -> Session:
    stage.tell(Heard("s1-1", said, source, **more))  # type: ignore[arg-type]
    return stage.session()


def activity(stage: Stage) -> str:
    return stage.session().vitals.axes[Axis.ACTIVITY].value


def test_what_it_does_follows_from_what_it_said() -> None:
    stage = running()

    seen = []
    for said in (
        Said(What.STARTED),
        PROMPT,
        Said(What.TOOL_STARTED, id="1", name="Bash"),
        Said(What.ASKED, id="1", name="Bash"),
    ):
        say(stage, said)
        seen.append(activity(stage))

    assert seen == ["idle", "working", "tool", "waiting-human"]
    assert [incident.kind for incident in stage.incidents.values()] == [IncidentKind.NEEDS_INPUT]


@pytest.mark.parametrize("source", ["stream", "transcript"])
def test_that_the_model_does_not_answer_is_heard_whoever_says_it_and_until_it_speaks(source: str) -> None:
    """No hook tells of either."""
    stage = running()
    seen = []
    for what, whose in ((What.PROMPT, "hook"), (What.RETRIES, source), (What.ALIVE, source), (What.SPEAKS, source)):
        stage.now += 1.0
        say(stage, Said(what, at=stage.now), source=whose)
        seen.append(activity(stage))

    assert seen == ["working", "throttled", "throttled", "working"]


@pytest.mark.parametrize(("first", "then", "moved"), [("hook", "transcript", False), ("transcript", "hook", True)])
def test_a_prompt_of_which_a_worse_source_tells_later_is_not_the_next_one(first: str, then: str, moved: bool) -> None:
    """Whoever waits for the next one to be taken would be told so, while it still stands in the composer."""
    stage = running()
    taken_at = say(stage, Said(What.PROMPT, at=stage.now), source=first).prompted_at
    stage.now += 1.0

    told = say(stage, Said(What.PROMPT, at=stage.now), source=then)

    assert (taken_at, told.prompted_at) == (stage.now - 1.0, stage.now if moved else taken_at)


def test_a_question_that_was_answered_needs_nobody_any_more() -> None:
    stage = running()
    say(stage, PROMPT, Said(What.ASKED, id="1", name="Bash"))

    say(stage, Said(What.ANSWERED, id="1"))

    assert all(incident.resolved_at is not None for incident in stage.incidents.values())


@pytest.mark.parametrize(
    ("worse", "better"),
    [("stream", "hook"), ("transcript", "stream"), ("transcript", "hook"), ("screen", "hook"), ("screen", "transcript")],
)
def test_a_worse_source_does_not_change_what_a_better_one_said(worse: str, better: str) -> None:
    stage = running()
    say(stage, replace(PROMPT, at=stage.now), source=better)

    say(stage, Said(What.TOOL_STARTED, at=stage.now, id="1", name="Bash"), source=worse)
    assert activity(stage) == "working"
    say(stage, replace(ENDED, at=stage.now - 50.0), source=worse)
    assert activity(stage) == "working", "that was an earlier turn"


def test_a_worse_source_tells_of_an_end_that_the_better_one_missed() -> None:
    stage = running()
    say(stage, replace(PROMPT, at=stage.now))
    stage.now += 10.0

    say(stage, replace(ENDED, at=stage.now), source="transcript")

    assert activity(stage) == "idle"


def test_a_prompt_that_was_typed_during_a_turn_begins_the_next_one_of_which_no_hook_tells() -> None:
    stage = running()
    say(stage, replace(PROMPT, at=stage.now))
    say(stage, replace(PROMPT, at=stage.now + 1.0))  # queued: its hook comes when it is typed
    stage.now += 10.0
    say(stage, replace(ENDED, at=stage.now))
    say(stage, replace(PROMPT, at=stage.now - 9.0), source="transcript")
    assert activity(stage) == "idle", "that is the prompt of the turn that has ended, read late"
    stage.now += 0.1

    say(stage, replace(PROMPT, at=stage.now), source="transcript")
    assert (activity(stage), stage.session().vitals.doing.turn) == ("working", True)
    stage.now += 5.0
    say(stage, replace(ENDED, at=stage.now))

    assert (activity(stage), stage.session().spent.turns) == ("idle", 2)


@pytest.mark.parametrize(
    ("source", "at", "subagent"), [("stream", 110.0, ""), ("transcript", None, ""), ("transcript", 110.0, "a1")]
)
def test_what_does_not_tell_when_or_is_a_subagents_begins_no_turn(source: str, at: float | None, subagent: str) -> None:
    stage = running()
    stage.now = 100.0
    say(stage, replace(PROMPT, at=stage.now), replace(ENDED, at=stage.now))
    stage.now = 120.0

    say(stage, replace(PROMPT, at=at, subagent=subagent), source=source)

    assert activity(stage) == "idle"


def test_the_conversation_is_the_one_it_names_last() -> None:
    stage = running()

    say(stage, Said(What.STARTED, conversation="one"))
    session = say(stage, Said(What.STARTED, conversation="two"), Said(What.ALIVE, conversation="three", subagent="a"))

    assert session.conversation == "two"


def test_what_it_cost_is_added_up() -> None:
    stage = running()

    session = say(stage, *[PROMPT, Said(What.RESULT, usage=Usage(100, 10, 50, 0.25))] * 2, source="stream")

    assert session.spent == Spent(200, 20, 100, 0.5, 2)


def test_a_turn_that_two_sources_end_is_one_turn() -> None:
    stage = running()
    say(stage, replace(PROMPT, at=stage.now), replace(ENDED, at=stage.now + 1.0))

    session = say(stage, replace(ENDED, at=stage.now + 9.0), source="transcript")

    assert session.spent.turns == 1


def test_what_is_only_told_so_far_is_counted_once_and_begins_anew_with_a_conversation() -> None:
    stage = running()
    say(stage, Said(What.RESULT, conversation="one", usage=Usage(100, 10, cost_usd=1.0, so_far=True)), source="stream")
    say(stage, Said(What.RESULT, conversation="one", usage=Usage(150, 15, cost_usd=1.5, so_far=True)), source="stream")

    session = say(stage, Said(What.RESULT, conversation="two", usage=Usage(20, 2, cost_usd=0.5, so_far=True)), source="stream")

    assert (session.spent.input_tokens, session.spent.cost_usd) == (170, 2.0)


def test_how_far_was_read_is_durable_with_what_was_counted() -> None:
    stage = running()

    say(stage, Said(What.RESULT, usage=Usage(1)), source="stream", read_to=(("/a", "7"),))
    say(stage, Said(What.RESULT, usage=Usage(1)), source="stream", read_to=(("/b", "9"),))

    assert dict(stage.durable["s1"].vitals.read_to) == {"/a": "7", "/b": "9"}
    assert stage.durable["s1"].spent.input_tokens == 2


def test_last_words_that_are_read_after_the_death_are_counted_and_change_nothing_else() -> None:
    stage = running()
    stage.tell(Exited(make_exit("s1-1", stage.now, exit_code=0)))
    before = stage.session()

    after = say(stage, Said(What.RESULT, conversation="one", usage=Usage(5)), source="stream")

    assert (after.spent.input_tokens, after.conversation) == (5, "one")
    assert (after.state, after.vitals.axes[Axis.ACTIVITY]) == (before.state, before.vitals.axes[Axis.ACTIVITY])


def test_words_of_an_older_launch_are_dropped() -> None:
    stage = running()

    stage.tell(Heard("s1-0", (PROMPT,), "hook"))

    assert activity(stage) == "unknown"


def test_a_word_from_the_future_is_of_now_and_one_nobody_knows_is_a_sign_of_life() -> None:
    stage = running()

    session = say(stage, Said(What.UNKNOWN, at=stage.now + 1e6, name="new-kind"))

    assert session.last_activity_at == stage.now


@pytest.mark.parametrize("what", [What.TURN_ENDED, What.RESULT])
def test_that_a_turn_is_over_is_heard_from_whoever_tells_it_later(what: What) -> None:
    stage = running()
    say(stage, replace(PROMPT, at=stage.now))
    stage.now += 10.0

    say(stage, Said(what, at=stage.now), source="stream")

    assert activity(stage) == "idle"


@pytest.mark.parametrize("what", [What.LIMIT, What.AUTH, What.RETRIES])
def test_a_wall_of_which_no_hook_tells_is_heard_from_the_stream(what: What) -> None:
    stage = running()
    say(stage, replace(PROMPT, at=stage.now))
    stage.now += 10.0

    say(stage, Said(what, at=stage.now), source="stream")

    assert activity(stage) == "throttled"


@pytest.mark.parametrize(
    ("opened", "later", "closed"),
    [
        (What.TOOL_STARTED, What.ASKED, What.TOOL_ENDED),
        (What.ASKED, What.ASKED, What.ANSWERED),
    ],
)
def test_an_end_that_comes_late_still_closes_what_it_names(opened: What, later: What, closed: What) -> None:
    stage = running()
    say(stage, replace(PROMPT, at=stage.now), Said(opened, id="1", at=stage.now), Said(later, id="2", at=stage.now + 5.0))
    stage.now += 10.0
    say(stage, Said(later, id="3", at=stage.now))

    doing = say(stage, Said(closed, id="1", at=stage.now - 8.0)).vitals.doing

    assert {one.id for one in (*doing.tools, *doing.asked)} == {"2", "3"}


def test_an_answer_of_the_model_is_heard_from_the_stream_also_if_a_hook_told_of_the_wait() -> None:
    stage = running()
    say(stage, replace(PROMPT, at=stage.now), Said(What.RETRIES, at=stage.now))
    stage.now += 10.0

    say(stage, Said(What.SPEAKS, at=stage.now), source="stream")

    assert activity(stage) == "working"


@pytest.mark.parametrize("what", [What.PROMPT, What.TURN_STARTED])
def test_a_turn_that_began_by_itself_is_heard_from_the_transcript(what: What) -> None:
    stage = running()
    say(stage, replace(PROMPT, at=stage.now), replace(ENDED, at=stage.now))
    stage.now += 10.0

    say(stage, Said(what, at=stage.now), source="transcript")

    assert activity(stage) == "working"


@pytest.mark.parametrize("what", [What.ALIVE, What.UNKNOWN])
def test_a_heartbeat_is_a_sign_of_life_and_no_work(what: What) -> None:
    stage = running()

    assert "hook" not in say(stage, Said(what, name="heartbeat")).worked
    assert stage.session().last_activity_at == stage.now
    assert "hook" in say(stage, Said(what, name="SessionStart")).worked
