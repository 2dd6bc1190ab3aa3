"""What an agent is doing follows from all it said: what is open stays open until it is closed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.core.model.progress import SAID_NOTHING, Doing
from vigil.core.model.speech import Activity, Said, What
from vigil.core.rules.activity import OF_SUBAGENTS, OPEN_KEPT, RULES, activity_of, extend_trail, take_in

START, PROMPT, STOP = Said(What.STARTED), Said(What.PROMPT), Said(What.TURN_ENDED)


def tool(call: str, name: str = "Bash", **more: str) -> Said:
    return Said(What.TOOL_STARTED, id=call, name=name, **more)  # type: ignore[arg-type]


def done(call: str) -> Said:
    return Said(What.TOOL_ENDED, id=call)


def ask(call: str, name: str = "Bash") -> Said:
    return Said(What.ASKED, id=call, name=name)


def after(*said: Said) -> tuple[str, str]:
    doing = Doing()
    for number, word in enumerate(said):
        doing = take_in(doing, word, float(number))
    return activity_of(doing)


def test_every_kind_of_word_has_one_row() -> None:
    assert sorted(RULES) == sorted(What)


@pytest.mark.parametrize(
    ("said", "activity"),
    [
        ((), "unknown"),
        ((START,), "idle"),
        ((START, PROMPT), "working"),
        ((PROMPT, tool("1")), "tool"),
        ((PROMPT, tool("1"), done("1")), "working"),
        ((PROMPT, tool("1"), tool("2"), done("1")), "tool"),
        ((PROMPT, tool("1"), tool("2"), done("1"), done("2")), "working"),
        ((PROMPT, tool("1"), ask("1")), "waiting-human"),
        ((PROMPT, tool("1"), ask("1"), tool("2")), "waiting-human"),
        ((PROMPT, tool("1"), ask("1"), Said(What.ANSWERED, id="1")), "tool"),
        ((PROMPT, tool("1"), ask("1"), done("1")), "working"),
        ((PROMPT, ask("1"), ask("2"), Said(What.ANSWERED, id="1")), "waiting-human"),
        ((PROMPT, ask("1"), STOP), "idle"),
        ((PROMPT, ask("1"), PROMPT), "working"),
        ((PROMPT, tool("1"), STOP), "idle"),
        ((PROMPT, Said(What.RETRIES, until=9.0)), "throttled"),
        ((PROMPT, Said(What.RETRIES, until=9.0), Said(What.TURN_STARTED)), "working"),
        ((PROMPT, Said(What.LIMIT)), "throttled"),
        ((PROMPT, ask("1"), Said(What.LIMIT)), "waiting-human"),
        ((PROMPT, ask("1"), Said(What.DOES, name="throttled")), "waiting-human"),
        ((PROMPT, Said(What.DOES, name="waiting-human"), Said(What.DOES, name="throttled")), "throttled"),
        ((PROMPT, Said(What.WAITS, until=9.0)), "waiting-timer"),
        ((PROMPT, Said(What.TOOL_STARTED, id="1", name="Monitor", until=9.0), done("1")), "waiting-timer"),
        ((PROMPT, Said(What.TOOL_STARTED, id="1", name="ScheduleWakeup", until=9.0), done("1")), "waiting-timer"),
        ((PROMPT, Said(What.TOOL_STARTED, id="1", name="Monitor", until=9.0), done("1"), Said(What.THINKS)), "thinking"),
        ((PROMPT, Said(What.TOOL_STARTED, id="1", name="TaskOutput", until=9.0), done("1")), "working"),
        ((PROMPT, Said(What.ASKED, id="1", request="r"), Said(What.ANSWERED, id="r")), "working"),
        ((PROMPT, Said(What.WAITS, until=9.0), tool("1")), "tool"),
        ((PROMPT, Said(What.RESULT)), "idle"),
        ((PROMPT, Said(What.THINKS)), "thinking"),
        ((PROMPT, Said(What.THINKS), tool("1")), "tool"),
        ((PROMPT, Said(What.WAITS)), "waiting-timer"),
        ((PROMPT, Said(What.UNKNOWN, name="new")), "working"),
        ((Said(What.ALIVE),), "unknown"),
        ((START, Said(What.ALIVE)), "idle"),
        ((PROMPT, Said(What.RETRIES), Said(What.ALIVE)), "throttled"),
        ((PROMPT, Said(What.RETRIES), Said(What.SPEAKS)), "working"),
        ((PROMPT, Said(What.RETRIES), Said(What.SPEAKS, subagent="a")), "throttled"),
        ((PROMPT, Said(What.LIMIT), Said(What.SPEAKS)), "throttled"),
        ((START, Said(What.SPEAKS)), "idle"),
        ((PROMPT, tool("1"), Said(What.TICKS)), "tool"),
        ((PROMPT, Said(What.COMPACTED)), "working"),
        ((PROMPT, Said(What.ERROR, text="overloaded")), "working"),
        ((PROMPT, Said(What.SUBAGENT_STARTED, id="a")), "working"),
        ((PROMPT, Said(What.SUBAGENT_STARTED, id="a"), Said(What.SUBAGENT_ENDED, id="a")), "working"),
        ((PROMPT, tool("1", subagent="a")), "working"),
        ((PROMPT, Said(What.ASKED, id="1", name="Bash", subagent="a")), "waiting-human"),
        (
            (PROMPT, Said(What.ASKED, id="1", subagent="a"), Said(What.ANSWERED, id="1", subagent="a")),
            "working",
        ),
        ((PROMPT, Said(What.ASKED, id="1", subagent="a"), Said(What.TOOL_ENDED, id="1", subagent="a")), "working"),
        (
            (PROMPT, tool("1", "Task"), Said(What.TOOL_ENDED, id="1", subagent="a")),
            "working",
        ),
        ((PROMPT, STOP, Said(What.TURN_ENDED, subagent="a")), "idle"),
        ((PROMPT, Said(What.TURN_ENDED, subagent="a")), "working"),
    ],
)
def test_what_is_open_decides(said: tuple[Said, ...], activity: str) -> None:
    assert after(*said)[0] == activity


def test_it_is_said_in_words_which_tools_run() -> None:
    assert after(PROMPT, tool("1", "Bash"), tool("2", "Read"))[1] == "Bash, Read"


def test_the_same_call_told_twice_is_open_once() -> None:
    assert after(PROMPT, tool("1"), tool("1"), done("1"))[0] == "working"


def test_a_call_without_an_id_is_closed_by_the_next_end() -> None:
    assert after(PROMPT, Said(What.TOOL_STARTED, name="x"), Said(What.TOOL_ENDED))[0] == "working"


WORDS = st.builds(
    Said,
    st.sampled_from(What),
    id=st.sampled_from(("", "1", "2", "3")),
    name=st.sampled_from(("", "Bash")),
    subagent=st.sampled_from(("", "", "a")),
    until=st.sampled_from((None, 5.0)),
)


@given(st.lists(WORDS, max_size=80))
def test_whatever_was_said_something_is_shown_and_nothing_grows_without_bound(said: list[Said]) -> None:
    doing = Doing()
    for number, word in enumerate(said):
        doing = take_in(doing, word, float(number))

    activity, why = activity_of(doing)

    assert activity in frozenset(Activity) and why
    assert len(doing.tools) <= OPEN_KEPT and len(doing.asked) <= OPEN_KEPT
    assert activity_of(take_in(doing, Said(What.TURN_ENDED), 100.0))[0] == "idle"
    assert set(What) > OF_SUBAGENTS


@pytest.mark.parametrize("what", [What.ALIVE, What.SPEAKS, What.TICKS, What.UNKNOWN, What.ERROR])
def test_a_sign_of_life_takes_an_agent_no_further(what: What) -> None:
    trail = extend_trail(extend_trail(SAID_NOTHING, tool("1"), 10.0), Said(what), 20.0)

    assert (trail.last, trail.further_at) == (What.TOOL_STARTED, 10.0)


@pytest.mark.parametrize("what", [What.STARTED, What.PROMPT, What.ANSWERED])
def test_new_work_ends_a_run_in_circles(what: What) -> None:
    trail = SAID_NOTHING
    for said in (tool("1"), tool("2"), Said(What.THINKS)):
        trail = extend_trail(trail, said, 10.0)
    assert (trail.again, trail.times) == ("Bash", 2)

    trail = extend_trail(trail, Said(what), 20.0)

    assert (trail.again, trail.times) == ("", 0)


@pytest.mark.parametrize(
    ("activity", "turn"),
    [
        ("working", True),
        ("thinking", True),
        ("tool", True),
        ("waiting-human", True),
        ("throttled", True),
        ("waiting-timer", False),
        ("idle", False),
    ],
)
def test_what_an_agent_says_plainly_is_shown_and_opens_a_turn_or_ends_it(activity: str, turn: bool) -> None:
    doing = take_in(Doing(turn=not turn), Said(What.DOES, name=activity), 10.0)

    assert (activity_of(doing)[0], doing.turn) == (activity, turn)
