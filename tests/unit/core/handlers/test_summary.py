"""Each launch that ended leaves one line that says what it did, what it cost, and how and by whom it ended."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.builders import (
    ALWAYS,
    Stage,
    make_death,
    make_fact,
    make_intent,
    make_launched,
    make_process,
    make_session,
    running,
)
from vigil.core.effects import Amend, SetTimer, TimerKind
from vigil.core.events import Closed, Found, Gap, Heard, Observed, TimerFired, Weighed
from vigil.core.model.death import Cause
from vigil.core.model.progress import NOTHING_COUNTED
from vigil.core.model.reading import Axis
from vigil.core.model.speech import Said, Usage, What
from vigil.core.rules.summary import ENDED_BY, VERDICTS, count_stall, ended_by, summary_of


def say(stage: Stage, *said: Said, source: str = "stream") -> None:
    stage.tell(Heard(stage.launch().id, said, source))


def close(stage: Stage) -> None:
    stage.tell(closed(stage))


def closed(stage: Stage) -> Closed:
    return Closed(stage.launch().id, (make_fact(Axis.RUNTIME, "dead", stage.now),))


def summaries(stage: Stage) -> list[dict[str, Any]]:
    return [dict(entry.data) for entry in stage.entries if entry.kind == "session.summary"]


WORK = (
    Said(What.STARTED),
    Said(What.PROMPT),
    Said(What.TOOL_STARTED, id="1", name="Bash"),
    Said(What.TOOL_ENDED, id="1", failed=True),
    Said(What.TOOL_STARTED, id="2", name="Read"),
    Said(What.TOOL_ENDED, id="2"),
)
RESULT = Said(What.RESULT, usage=Usage(100, 20, 50, 0.5))


def test_words_that_were_read_after_a_death_are_put_into_its_bundle_once() -> None:
    stage, plain = running(), running()
    for one in (stage, plain):
        say(one, *WORK)
        one.exit(exit_code=0)
    say(stage, RESULT)

    amended = [effect for effect in stage.machine.handle(closed(stage), stage.now) if isinstance(effect, Amend)]

    assert [word.what for word in amended[0].death.said][-1] is What.RESULT
    assert len(amended) == 1
    assert not any(isinstance(effect, Amend) for effect in plain.machine.handle(closed(plain), plain.now))


def test_what_an_agent_wrote_last_is_in_its_summary_though_it_was_read_after_its_death() -> None:
    stage = running()
    say(stage, *WORK)
    stage.tell(Weighed("s1-1", 5 << 20), Weighed("s1-1", 3 << 20))
    stage.now += 30.0
    stage.exit(exit_code=0)

    say(stage, RESULT)
    assert summaries(stage) == []
    close(stage)

    (told,) = summaries(stage)
    assert told["death"] == "d-s1-1"
    assert (told["turns"], told["tools"], told["failed_tools"]) == (1, 2, 1)
    assert (told["input_tokens"], told["output_tokens"], told["cached_tokens"], told["cost_usd"]) == (100, 20, 50, 0.5)
    assert told["peak_rss_bytes"] == 5 << 20
    assert (told["cause"], told["exit_code"], told["ended_by"]) == ("finished", 0, "itself")
    assert told["longest_silence_s"] == 30.0


def test_memory_that_is_known_only_after_the_death_is_in_the_summary() -> None:
    stage = running()
    stage.exit(exit_code=0)

    stage.tell(Weighed("s1-1", 50 << 20))
    close(stage)

    (told,) = summaries(stage)
    assert told["peak_rss_bytes"] == 50 << 20


def test_it_is_written_once_whatever_is_told_again_and_whoever_restarts() -> None:
    stage = running(ALWAYS)
    say(stage, *WORK)
    stage.exit(exit_code=1)
    stage.restart()
    close(stage)
    close(stage)
    stage.restart()
    stage.now += 1000.0
    stage.tell(TimerFired("s1", TimerKind.HOLD))
    stage.end()

    assert stage.launch().number == 2
    assert [told["death"] for told in summaries(stage)] == ["d-s1-1"]
    assert stage.session().vitals.recent == () and stage.session().vitals.tally == NOTHING_COUNTED


def test_a_launch_that_is_followed_by_another_before_it_is_closed_has_its_own() -> None:
    stage = running(ALWAYS)
    say(stage, *WORK)
    stage.exit(exit_code=1)

    stage.ask("restart")
    stage.end()

    assert [(told["death"], told["tools"]) for told in summaries(stage)] == [("d-s1-1", 2)]


def test_a_session_that_is_removed_leaves_it_too() -> None:
    stage = running()
    stage.ask("rm")
    stage.exit(signal=15)
    stage.end()

    (told,) = summaries(stage)
    assert stage.state() == "removed"
    assert (told["cause"], told["ended_by"]) == ("operator", "alice (rm)")


def test_an_agent_that_says_nothing_has_no_turns_and_no_cost_rather_than_none() -> None:
    stage = running()
    stage.exit(exit_code=3)
    close(stage)

    (told,) = summaries(stage)
    unknown = ("turns", "tools", "input_tokens", "cost_usd", "longest_silence_s", "peak_rss_bytes")
    assert {key: told[key] for key in unknown} == dict.fromkeys(unknown)
    assert (told["exit_code"], told["words"]) == (3, 0)


def test_silence_counts_while_a_turn_is_open_and_somebody_listened() -> None:
    stage = running()
    say(stage, Said(What.PROMPT))
    stage.now += 100.0
    say(stage, Said(What.ALIVE))
    stage.now += 500.0
    stage.tell(Gap(490.0))
    stage.now += 40.0
    stage.tell(Observed("s1-1", (), active_at=stage.now))
    say(stage, Said(What.TURN_ENDED))
    stage.now += 5000.0
    say(stage, Said(What.PROMPT))

    assert stage.session().vitals.tally.longest_silence_s == 100.0


def test_one_that_lives_has_a_summary_so_far() -> None:
    stage = running()
    say(stage, *WORK)

    so_far = summary_of(stage.session(), stage.now + 60.0)

    assert so_far is not None
    assert (so_far.tools, so_far.cause, so_far.ended_by, so_far.longest_silence_s) == (2, None, None, 60.0)
    assert summary_of(make_session(), 1.0) is None


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_says_who_ended_it(cause: Cause) -> None:
    assert ended_by(make_death(cause)) == ENDED_BY[cause]
    ours = ended_by(make_death(cause, intent=make_intent(cause)))
    assert (ours == "alice (stop)") == (cause in (Cause.OPERATOR, Cause.POLICY, Cause.UNHEALTHY, Cause.STALLED))


def test_stalls_are_counted_by_their_verdicts_and_bounded() -> None:
    tally = NOTHING_COUNTED
    for verdict in ("upstream-stall", "spinning", "upstream-stall"):
        tally = count_stall(tally, verdict)
    assert [(one.verdict, one.count) for one in tally.stalls] == [("upstream-stall", 2), ("spinning", 1)]

    for number in range(100):
        tally = count_stall(tally, f"v{number}")
    assert len(tally.stalls) == VERDICTS


def test_an_agent_that_left_its_pane_open_is_summarised_after_a_while() -> None:
    stage = Stage()
    stage.declare()
    stage.tell(make_launched(names=("claude",)))
    stage.tell(Found("s1-1", make_process(200), make_fact(Axis.PROCESS, "alive", stage.now)))
    effects = stage.exit(exit_code=0)

    (timer,) = (effect for effect in effects if isinstance(effect, SetTimer) and effect.kind == "summary")
    stage.tell(TimerFired(timer.session_id, timer.kind))
    assert len(summaries(stage)) == 1
