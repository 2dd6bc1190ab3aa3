"""The demo's fleet and story: what must be seen before it is over."""

from __future__ import annotations

from typing import Any

from vigil.demo.fleet import FLEET, DemoAgent
from vigil.demo.story import Story, in_order


def test_states_count_in_their_order_whatever_comes_between() -> None:
    assert in_order(("running", "crashed", "running"), ["starting", "running", "crashed", "starting", "running"])
    assert not in_order(("running", "crashed", "running"), ["running", "running", "crashed"])


def test_a_story_nobody_told_yet_misses_every_agent() -> None:
    assert len(Story(FLEET).missing()) == len(FLEET)


def test_a_story_is_told_when_states_and_cause_were_seen() -> None:
    story = Story([DemoAgent("a", "", (), states=("running", "crashed"), cause="crash")])

    story.hear(state("a", "running"))
    story.hear(state("a", "crashed"))
    assert story.missing() == ["a left no death of cause crash"]

    story.hear({"kind": "session.died", "session": "a", "data": {"cause": "crash"}})
    assert story.missing() == []


def test_another_agents_events_tell_nothing() -> None:
    story = Story([DemoAgent("a", "", (), states=("running",))])

    story.hear(state("ab", "running"))

    assert story.missing() == ["a did not go through running"]


def test_exactly_one_agent_loses_its_server() -> None:
    assert [agent.cause for agent in FLEET if agent.server_killed_after_s is not None] == ["server-died"]


def state(name: str, to: str) -> dict[str, Any]:
    return {"kind": "session.state", "session": name, "data": {"to": to}}
