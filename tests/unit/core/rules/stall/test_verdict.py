"""Why an agent that lives says nothing: real failures, each beside the look-alike that must get the other verdict."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.stalls import BLIND, MIN, NOW, TURN, case, child, doing, evidence, trail
from vigil.core.model.death import Confidence
from vigil.core.model.evidence import Evidence, Flag, Number, Text
from vigil.core.model.progress import IDLE, Open
from vigil.core.model.speech import What
from vigil.core.model.stall import Thresholds
from vigil.core.rules.stall.case import Silence
from vigil.core.rules.stall.facts import FACTS
from vigil.core.rules.stall.remedy import REMEDIES
from vigil.core.rules.stall.verdict import ROWS, SICK, VOID, WELL, StallVerdict, classify

LONG: dict[str, Any] = {"silent_s": 16 * MIN}
FINISHED: dict[str, Any] = {"runs_to_its_end": True, "doing": IDLE, "started_at": NOW - 3600}
AFTER_TOOL = trail(What.TOOL_ENDED)
BASH = doing("Bash", since_s=11 * MIN)
BASH_11: dict[str, Any] = {"silent_s": 11 * MIN, "doing": BASH}
LONG_BASH = doing("Bash", since_s=45 * MIN)
MCP = doing("mcp__jira__search", since_s=82 * MIN)
SHELL = child("bash", age_s=11 * MIN)
ADAPTERS = tuple(child("node", pid=600 + number, age_s=60 * MIN, wchan="ep_poll") for number in range(12))
RESUMED: dict[str, Any] = {"resumed": True, "stalled_before": True}


def result(ago_s: float, **more: Any) -> Any:
    return trail(What.RESULT, ago_s, result_at=NOW - ago_s, **more)


# Number and name of the failure, the failure, its verdict; the look-alike beside it, and what that is.
CATALOGUE: list[tuple[str, Silence, str, Silence, str]] = [
    (
        "1 wedge after a tool's result; long thinking after one",
        case(trail=AFTER_TOOL),
        "wedged-after-tool",
        case(trail=AFTER_TOOL, evidence=evidence(received_s=20.0)),
        "thinking",
    ),
    (
        "2 a result that never arrives; a real tool",
        case(doing=doing("Read")),
        "lost-result",
        case(doing=doing("Bash"), evidence=evidence((child("bash"), child("cc", 501, cpu=0.9)), tree_cpu=0.9)),
        "tool-running",
    ),
    (
        "3 an MCP tool in a retry loop, its CPU ticking; a slow query within its time",
        case(silent_s=82 * MIN, doing=MCP, evidence=evidence(ADAPTERS, tree_cpu=0.4, main_cpu=0.3, received_s=9 * MIN)),
        "tool-overrun",
        case(silent_s=13 * MIN, doing=doing("mcp__jira__search", since_s=13 * MIN), evidence=evidence(ADAPTERS)),
        "tool-running",
    ),
    (
        "4 an MCP adapter whose stream went quiet; the model's own stream",
        case(silent_s=16 * MIN, doing=doing("mcp__jira__search", since_s=16 * MIN)),
        "tool-overrun",
        case(silent_s=16 * MIN),
        "upstream-stall",
    ),
    (
        "5 the answer stops in the middle; thought at length",
        case(),
        "upstream-stall",
        case(silent_s=8 * MIN, evidence=evidence(received_s=45.0)),
        "thinking",
    ),
    (
        "6 no answer from the first request on; a first answer that comes slowly",
        case(trail=trail(What.PROMPT)),
        "upstream-stall",
        case(trail=trail(What.PROMPT), evidence=evidence(received_s=5.0)),
        "thinking",
    ),
    (
        "7 the connection died without a word; a tool that needs none",
        case(evidence=evidence(sockets=0.0, received_s=None)),
        "network-dead",
        case(**BASH_11, evidence=evidence((SHELL, child("cc", 501, cpu=0.9)), sockets=0.0, received_s=None, tree_cpu=0.9)),
        "tool-running",
    ),
    (
        "8 nobody acknowledges after a change of network; a reading made too late",
        case(evidence=evidence(unacked=4096.0)),
        "network-dead",
        case(evidence=evidence(unacked=4096.0, late_s=3600.0)),
        "supervisor-late",
    ),
    (
        "9 a busy loop; a build in a child",
        case(evidence=evidence(state="R", main_cpu=0.99, tree_cpu=0.99)),
        "spinning",
        case(doing=doing("Bash"), evidence=evidence((SHELL, child("cc", 501, cpu=0.95)), tree_cpu=0.95)),
        "tool-running",
    ),
    (
        "9b a busy loop; a kind of agent that burns as much while it waits for input",
        case(evidence=evidence(state="R", main_cpu=0.9, tree_cpu=0.9)),
        "spinning",
        case(evidence=evidence(state="R", main_cpu=0.9, tree_cpu=0.9, received_s=9.0), idle_cpu=0.9),
        "thinking",
    ),
    (
        "10 collecting garbage without end; reading a huge context",
        case(evidence=evidence(state="R", main_cpu=1.0, tree_cpu=3.8, memory_bytes=4e9)),
        "spinning",
        case(evidence=evidence(state="R", main_cpu=1.0, tree_cpu=1.0, io=5e6)),
        "working",
    ),
    (
        "11 a descendant holds the pipe of a tool whose shell is gone; a long command",
        case(**BASH_11, evidence=evidence((child("uvicorn", 777, below=False, holds_pipe=True),))),
        "leaked-pipe",
        case(doing=doing("Bash"), evidence=evidence((child("bash"), child("make", 501, cpu=0.4)), tree_cpu=0.4)),
        "tool-running",
    ),
    (
        "12 a child waits for input; a quiet job that loads a model",
        case(doing=doing("Bash"), evidence=evidence((child("bash"), child("passwd", 501, waits_for_input=True)))),
        "blocked-child",
        case(doing=doing("Bash"), evidence=evidence((child("bash"), child("python", 501, io=2e7, wchan="-")))),
        "tool-running",
    ),
    (
        "12b a child waits for input; the last of a pipeline that works",
        case(doing=doing("Bash"), evidence=evidence((child("cat", 501, waits_for_input=True),))),
        "blocked-child",
        case(
            doing=doing("Bash"),
            evidence=evidence((child("bash"), child("make", 501, cpu=0.3), child("tee", 502, waits_for_input=True))),
        ),
        "tool-running",
    ),
    (
        "13 a command that never ends; a deployment whose log flows",
        case(**BASH_11, evidence=evidence((SHELL, child("curl", 501, sockets=1, received_s=11 * MIN, wchan="ep_poll")))),
        "tool-overrun",
        case(**BASH_11, evidence=evidence((SHELL, child("deploy", 501, sockets=1, received_s=4.0, wchan="ep_poll")))),
        "tool-running",
    ),
    (
        "14 a zombie nobody waits for; one that is waited for in a moment",
        case(doing=doing("Bash"), evidence=evidence((child("bash", state="Z"),), tree_cpu=0.78, main_cpu=0.78, state="R")),
        "lost-result",
        case(silent_s=2.0, doing=doing("Bash", since_s=3.0), evidence=evidence((child("bash", age_s=2.5, state="Z"),))),
        "tool-running",
    ),
    (
        "15 a sub-agent that never answers; one that writes",
        case(**LONG, doing=doing("Task", since_s=16 * MIN), evidence=evidence(subagents_s=13 * MIN)),
        "lost-result",
        case(**LONG, doing=doing("Task", since_s=16 * MIN), evidence=evidence(subagents_s=8.0)),
        "working",
    ),
    (
        "16 a sub-agent that is told to run and does nothing; one whose connection brings bytes",
        case(**LONG, doing=doing("Task", since_s=16 * MIN), trail=trail(subagents=(Open("a", "Explore", NOW - 900),))),
        "tool-overrun",
        case(
            **LONG,
            doing=doing("Task", since_s=16 * MIN),
            trail=trail(subagents=(Open("a", "Explore", NOW - 900),)),
            evidence=evidence(received_s=3.0),
        ),
        "tool-running",
    ),
    (
        "17 compaction without end; one",
        case(silent_s=5.0, trail=trail(What.COMPACTED, 5.0, again="compaction", times=40)),
        "livelock",
        case(silent_s=4 * MIN, trail=trail(What.COMPACTED, 4 * MIN, again="compaction", times=1)),
        "working",
    ),
    (
        "18 output stops and the session goes on; both stand still",
        case(evidence=evidence(printed_s=9 * MIN, transcript_s=4.0)),
        "working",
        case(evidence=evidence(printed_s=9 * MIN, transcript_s=9 * MIN)),
        "upstream-stall",
    ),
    (
        "19 lines that nobody understands; true silence",
        case(evidence=evidence(printed_s=2.0)),
        "working",
        case(evidence=evidence(printed_s=6 * MIN)),
        "upstream-stall",
    ),
    (
        "21 signs of life for an hour that lead nowhere; the same for a while",
        case(silent_s=9.0, trail=trail(What.TOOL_STARTED, 45 * MIN, understood_at=NOW - 9), doing=TURN),
        "livelock",
        case(silent_s=9.0, trail=trail(What.TOOL_STARTED, 12 * MIN, understood_at=NOW - 9), doing=TURN),
        "working",
    ),
    (
        "21a the same; lines that nobody understands for as long",
        case(silent_s=9.0, trail=trail(What.TOOL_STARTED, 45 * MIN, understood_at=NOW - 9), doing=TURN),
        "livelock",
        case(silent_s=9.0, trail=trail(What.TOOL_STARTED, 45 * MIN), doing=TURN, evidence=evidence(printed_s=9.0)),
        "working",
    ),
    (
        "21c the same with a tool that does nothing; with one that computes for as long",
        case(silent_s=9.0, trail=trail(What.ALIVE, 45 * MIN, understood_at=NOW - 9), doing=LONG_BASH),
        "livelock",
        case(
            silent_s=9.0,
            trail=trail(What.ALIVE, 45 * MIN, understood_at=NOW - 9),
            doing=LONG_BASH,
            evidence=evidence((child("bash", age_s=45 * MIN), child("pytest", 501, cpu=0.9)), tree_cpu=0.9),
        ),
        "tool-running",
    ),
    (
        "21b the same tool 1794 times; a few times",
        case(silent_s=1.0, trail=trail(What.TOOL_ENDED, 1.0, again="Glob", times=1794)),
        "livelock",
        case(silent_s=1.0, trail=trail(What.TOOL_ENDED, 1.0, again="Glob", times=40)),
        "working",
    ),
    (
        "22 uninterruptible; a connection that is only slow",
        case(evidence=evidence(state="D", wchan="nfs_wait", tree_cpu=0.0)),
        "uninterruptible",
        case(evidence=evidence(state="S", received_s=2.0)),
        "thinking",
    ),
    (
        "22b a process of its tool that no signal reaches; one that waits for its disk and gets on",
        case(**BASH_11, evidence=evidence((SHELL, child("npm", 501, state="D", wchan="nfs_wait")))),
        "uninterruptible",
        case(**BASH_11, evidence=evidence((SHELL, child("npm", 501, state="D", wchan="io_schedule", io=2e7)))),
        "tool-running",
    ),
    (
        "23 stopped; held by a debugger",
        case(evidence=evidence(state="T")),
        "stopped",
        case(evidence=evidence(state="t", traced=True)),
        "working",
    ),
    (
        "24 a question, and other words after it; the answer was lost",
        case(silent_s=5 * 3600, doing=doing(asked="Bash", since_s=5 * 3600)),
        "waiting-human",
        case(silent_s=5 * 3600, evidence=evidence(received_s=5 * 3600.0)),
        "upstream-stall",
    ),
    (
        "25 a declared wait; the same after its end",
        case(silent_s=26 * MIN, doing=replace(TURN, waits=True, until=NOW + 4 * MIN)),
        "waiting-timer",
        case(silent_s=32 * MIN, doing=replace(TURN, waits=True, until=NOW - 2 * MIN)),
        "upstream-stall",
    ),
    (
        "25b a tool that is to wait; the same after its end",
        case(silent_s=26 * MIN, doing=replace(TURN, tools=(Open("m1", "Monitor", NOW - 26 * MIN, until=NOW + 4 * MIN),))),
        "waiting-timer",
        case(silent_s=32 * MIN, doing=replace(TURN, tools=(Open("m1", "Monitor", NOW - 32 * MIN, until=NOW - 2 * MIN),))),
        "lost-result",
    ),
    (
        "25c a tool that is to wait, beside one that is not and has no process; both are to wait",
        case(doing=replace(TURN, tools=(Open("m1", "Monitor", NOW - 6 * MIN, NOW + MIN), Open("r1", "Read", NOW - 6 * MIN)))),
        "lost-result",
        case(doing=replace(TURN, tools=(Open("m1", "Monitor", NOW - 6 * MIN, NOW), Open("m2", "Monitor", NOW - 5, NOW + MIN)))),
        "waiting-timer",
    ),
    (
        "26 background work after the result; nothing after it",
        case(**FINISHED, silent_s=5 * MIN, trail=result(5 * MIN), evidence=evidence(subagents_s=3.0)),
        "working",
        case(**FINISHED, silent_s=5 * MIN, trail=result(5 * MIN)),
        "limbo",
    ),
    (
        "27 a wakeup that nothing will ever keep; one whose time has not come",
        case(silent_s=58 * MIN, doing=replace(TURN, waits=True)),
        "upstream-stall",
        case(silent_s=20 * MIN, doing=replace(TURN, waits=True)),
        "waiting-timer",
    ),
    (
        "28 throttled until its reset; silent long after it",
        case(silent_s=90 * MIN, doing=replace(TURN, retries=True, until=NOW + 3600)),
        "throttled",
        case(silent_s=90 * MIN, doing=replace(TURN, retries=True, until=NOW - 3600)),
        "upstream-stall",
    ),
    (
        "29 tries again after an overload; hangs without a word of that",
        case(silent_s=3 * MIN, doing=replace(TURN, retries=True, until=NOW + 30)),
        "throttled",
        case(silent_s=6 * MIN),
        "upstream-stall",
    ),
    (
        "31 thinks with little CPU and fourteen children; as many children and nothing comes",
        case(evidence=evidence((*ADAPTERS, child("npm", 700), child("node", 701)), tree_cpu=0.017, received_s=30.0)),
        "thinking",
        case(evidence=evidence((*ADAPTERS, child("npm", 700), child("node", 701)), tree_cpu=0.017)),
        "upstream-stall",
    ),
    (
        "33 never begins, reads its input for ever; a slow boot",
        case(doing=replace(TURN, turn=False, started=False), trail=replace(trail(), spoke=False, last="")),
        "start-blocked",
        case(
            doing=replace(TURN, turn=False, started=False),
            trail=replace(trail(), spoke=False, last=""),
            evidence=evidence(tree_cpu=0.6, main_cpu=0.6),
        ),
        "working",
    ),
    (
        "35 a hook hangs at the start; a kind of agent that never says anything",
        case(doing=replace(TURN, turn=False), trail=replace(trail(), spoke=False), evidence=evidence((child("hook"),))),
        "start-blocked",
        case(doing=replace(TURN, turn=False), trail=replace(trail(), spoke=False), speaks=False),
        "unknown",
    ),
    (
        "38 finished and still there; busy after its result",
        case(**FINISHED, silent_s=2 * MIN, trail=result(2 * MIN), evidence=evidence(ADAPTERS)),
        "limbo",
        case(**FINISHED, silent_s=2 * MIN, trail=result(2 * MIN), evidence=evidence(tree_cpu=0.6)),
        "working",
    ),
    (
        "46 a resume that came to nothing; a run that ended well",
        case(**FINISHED, silent_s=5.0, resumed=True, trail=result(5.0, empty=True)),
        "resume-poisoned",
        case(**FINISHED, silent_s=5.0, resumed=True, trail=result(5.0)),
        "working",
    ),
    (
        "51 a conversation that stalls again; one that stalls for the first time",
        case(**RESUMED, trail=AFTER_TOOL),
        "resume-poisoned",
        case(resumed=True, trail=AFTER_TOOL),
        "wedged-after-tool",
    ),
]


@pytest.mark.parametrize("row", CATALOGUE, ids=[row[0] for row in CATALOGUE])
def test_a_failure_and_its_look_alike_get_each_its_own_verdict(row: tuple[str, Silence, str, Silence, str]) -> None:
    _, failure, verdict, look_alike, other = row

    assert classify(failure).verdict == verdict, classify(failure)
    assert classify(look_alike).verdict == other, classify(look_alike)


def test_every_verdict_has_a_row_and_is_of_one_sort() -> None:
    assert {row.verdict for row in ROWS} | {StallVerdict.UNKNOWN} == set(StallVerdict)
    assert sorted([*WELL, *SICK, *VOID]) == sorted(StallVerdict)
    assert set(REMEDIES) <= SICK - {
        StallVerdict.UNKNOWN,
        StallVerdict.LIVELOCK,
        StallVerdict.STOPPED,
        StallVerdict.UNINTERRUPTIBLE,
    }


def test_every_fact_is_used_and_every_row_names_facts_that_there_are() -> None:
    named = {name for row in ROWS for name in (*row.needs, *row.excludes, *row.doubts, *row.supports)}

    assert named == set(FACTS)


def test_every_verdict_that_has_a_remedy_rests_on_two_sensors_when_all_can_be_read() -> None:
    for name, failure, verdict, _, _ in CATALOGUE:
        found = classify(failure)
        if verdict in REMEDIES and verdict != "resume-poisoned" and found.confidence is not Confidence.UNKNOWN:
            assert found.independent >= 2, (name, found)


def test_who_can_read_nothing_knows_nothing_and_is_never_sure() -> None:
    for open_now, last in product((TURN, doing("Bash"), doing("mcp__a__b"), doing("Task")), (What.TOOL_ENDED, What.THINKS)):
        found = classify(case(silent_s=3600, doing=open_now, trail=trail(last), evidence=BLIND))
        assert found.confidence is Confidence.UNKNOWN, found
        assert found.independent < 2, found
        assert found.reasons


def test_what_could_not_be_read_leaves_a_verdict_in_doubt() -> None:
    found = classify(case(evidence=evidence(io=None)))

    assert (found.verdict, found.confidence) == ("upstream-stall", Confidence.UNKNOWN)
    assert any(reason.startswith("in doubt") for reason in found.reasons)


def test_whoever_may_write_where_nobody_could_look_is_not_surely_sick() -> None:
    unread = replace(evidence(), subagents_s=Number(None, "files", NOW, "no answer in 2 s"))
    for open_now in (TURN, doing("Read"), doing("Task", since_s=16 * MIN)):
        found = classify(case(silent_s=16 * MIN, doing=open_now, evidence=unread))
        assert (found.verdict in SICK, found.confidence) == (True, Confidence.UNKNOWN), found
        assert classify(case(silent_s=16 * MIN, doing=open_now)).confidence is Confidence.LIKELY, "there are none to read"


@pytest.mark.parametrize("sockets", [0.0, 1.0])
def test_who_has_a_child_that_nobody_may_look_at_is_not_known_to_be_cut_off(sockets: float) -> None:
    seen = evidence((child("sudo", sockets=None, io=None),), sockets=sockets, received_s=None if not sockets else 6 * MIN)
    found = classify(case(evidence=replace(seen, hidden=Number(1.0, "procfs", NOW))))

    assert (found.verdict, found.confidence) == ("unknown", Confidence.UNKNOWN)
    assert classify(case(evidence=seen)).verdict in ("network-dead", "upstream-stall")


def test_a_tool_that_works_beside_one_of_an_mcp_server_that_hangs_leaves_that_in_doubt() -> None:
    both: dict[str, Any] = {"silent_s": 16 * MIN, "doing": doing("mcp__jira__search", "Bash", since_s=16 * MIN)}
    server, works = child("node", command="node jira.js", cpu=0.4), child("cc", 501, cpu=0.9)

    assert classify(case(**both, evidence=evidence((server, works)))).confidence is Confidence.UNKNOWN
    assert classify(case(**both, evidence=evidence((server,)))).confidence is Confidence.LIKELY, "its own CPU is no excuse"


def test_what_the_kernel_keeps_from_working_is_said_of_a_tools_process() -> None:
    found = classify(case(**BASH_11, evidence=evidence((child("vim", 501, age_s=11 * MIN, state="T"),))))

    assert found.verdict == "tool-overrun"
    assert any("vim (pid 501, stopped)" in reason for reason in found.reasons), found.reasons


def test_an_hour_without_a_word_is_not_thinking_whatever_comes_in() -> None:
    assert classify(case(silent_s=59 * MIN, evidence=evidence(received_s=5.0))).verdict == "thinking"
    assert classify(case(silent_s=61 * MIN, evidence=evidence(received_s=5.0))).verdict == "unknown"


def test_a_timer_that_ticks_once_a_second_is_idle() -> None:
    assert classify(case(evidence=evidence(tree_cpu=0.0003, main_cpu=0.0003))).verdict == "upstream-stall"


def test_a_rate_over_too_short_a_time_says_nothing() -> None:
    assert classify(case(evidence=evidence(window_s=0.01, tree_cpu=0.0))).verdict == "unknown"


STARVED: dict[str, Any] = {"main_cpu": 0.1, "tree_cpu": 0.1, "main_waited": 0.8}


def test_on_a_busy_host_one_that_never_sleeps_spins_however_little_it_gets() -> None:
    found = classify(case(evidence=evidence(state="R", **STARVED, main_burst_s=3.0)))

    assert found.verdict == "spinning"
    assert "its own process uses 10.0 % of a core, and waits 80% of the time for more" in found.reasons


def test_on_a_busy_host_a_timer_that_waits_for_its_turn_is_idle() -> None:
    assert classify(case(evidence=evidence(state="R", **STARVED | {"tree_cpu": 0.01}, main_burst_s=0.002))).verdict == (
        "upstream-stall"
    )


def test_on_a_busy_host_a_tool_that_hardly_gets_any_cpu_works() -> None:
    starved = child("pytest", 501, cpu=0.01, waited=0.5, burst_s=0.05)
    seen = evidence((*ADAPTERS, SHELL, starved))

    assert classify(case(silent_s=11 * MIN, doing=BASH, evidence=seen)).verdict == "tool-running"


def test_whether_one_spins_that_hardly_gets_any_cpu_is_unknown_if_nobody_counts_its_waiting() -> None:
    found = classify(case(evidence=evidence(state="R", main_cpu=0.3, tree_cpu=0.3, main_waited=None)))

    assert found.verdict == "working"


def test_idle_children_do_not_choose_the_threshold() -> None:
    ten_min = case(silent_s=11 * MIN, doing=BASH, evidence=evidence((*ADAPTERS, SHELL)))
    assert ten_min.patience_s == 600.0
    assert classify(ten_min).verdict == "tool-overrun"
    busy = case(silent_s=11 * MIN, doing=BASH, evidence=evidence((*ADAPTERS, SHELL, child("pytest", 501, cpu=0.9))))
    assert classify(busy).verdict == "tool-running"


def test_bytes_that_come_to_a_finished_agent_leave_limbo_in_doubt() -> None:
    finished = case(**FINISHED, silent_s=5 * MIN, trail=result(5 * MIN))
    assert (classify(finished).verdict, classify(finished).confidence) == ("limbo", Confidence.LIKELY)

    found = classify(replace(finished, evidence=evidence(received_s=3.0)))

    assert (found.verdict, found.confidence) == ("limbo", Confidence.UNKNOWN), "a sub-agent of it may think"


def test_a_server_that_a_finished_agent_left_leaves_limbo_in_doubt() -> None:
    server = child("vite", age_s=10 * MIN)
    found = classify(case(**FINISHED, silent_s=5 * MIN, trail=result(5 * MIN), evidence=evidence((*ADAPTERS, server))))

    assert (found.verdict, found.confidence) == ("limbo", Confidence.UNKNOWN)


def test_a_verdict_says_what_spoke_against_the_others() -> None:
    found = classify(case(trail=AFTER_TOOL, evidence=evidence(received_s=20.0)))

    assert any(line.startswith("wedged-after-tool") for line in found.ruled_out), found.ruled_out


def test_the_evidence_is_shown_with_sources_and_what_is_unknown_says_why() -> None:
    blind = replace(evidence(), sockets=Number(None, "sock_diag", NOW, "permission denied"))
    signs = {sign.fact: sign for sign in classify(case(evidence=blind)).signs}

    assert signs["own connections"].value == "unknown: permission denied"
    assert signs["cpu of all below"].source == "procfs"
    assert signs["silence"].value == "360 s of 300 s (turn)"


PROGRESS: list[dict[str, Any]] = [
    {"evidence": {"received_s": 1.0}},
    {"evidence": {"transcript_s": 1.0}},
    {"evidence": {"tree_cpu": 0.5, "io": 1e6}},
    {"silent_s": 1.0},
]


@pytest.mark.parametrize("progress", PROGRESS)
@pytest.mark.parametrize("last", [What.TOOL_ENDED, What.THINKS, What.PROMPT])
@pytest.mark.parametrize("state", ["S", "R"])
def test_whoever_shows_progress_in_a_plain_turn_is_well(progress: dict[str, Any], last: What, state: str) -> None:
    silent_s = progress.get("silent_s", 6 * MIN)
    found = classify(
        case(silent_s, trail=trail(last, silent_s), evidence=evidence(**{"state": state} | progress.get("evidence", {})))
    )

    assert found.verdict in WELL, found


NUMBERS = st.one_of(st.none(), st.floats(0, 5000))
KINDS = {
    "Number": st.builds(Number, NUMBERS, st.just("x"), st.just(NOW)),
    "Text": st.builds(Text, st.sampled_from([None, "R", "S", "D", "T", "t", "Z", "?"]), st.just("x"), st.just(NOW)),
    "Flag": st.builds(Flag, st.sampled_from([None, True, False]), st.just("x"), st.just(NOW)),
}
READ = {field.name: KINDS[str(field.type)] for field in fields(Evidence) if str(field.type) in KINDS}
CHILDREN = st.lists(
    st.builds(
        child,
        st.sampled_from(["sh", "jira", "node"]),
        st.integers(1, 5),
        st.floats(0, 9000),
        state=st.sampled_from([None, "S", "R", "Z"]),
        below=st.booleans(),
        cpu=NUMBERS,
        io=NUMBERS,
        received_s=NUMBERS,
        sockets=st.sampled_from([None, 0, 1]),
        waits_for_input=st.sampled_from([None, True, False]),
    ),
    max_size=4,
)
DOINGS = st.sampled_from([TURN, IDLE, doing("Bash"), doing("mcp__jira__x"), doing("Task"), doing(asked="x"), MCP])


@given(st.builds(Evidence, st.just(NOW), children=CHILDREN.map(tuple), **READ), DOINGS, st.floats(0, 1e5), st.booleans())
def test_whatever_was_read_there_is_a_verdict_with_words_and_only_one_that_is_sick_is_sure_enough_to_act_on(
    seen: Evidence, open_now: Any, silent_s: float, finished: bool
) -> None:
    said = result(silent_s) if finished else trail(What.TOOL_ENDED, silent_s)
    found = classify(case(silent_s, evidence=seen, doing=open_now, trail=said, runs_to_its_end=finished, limits=Thresholds()))

    assert found.verdict in StallVerdict
    assert all(reason.strip() for reason in found.reasons)
    if found.verdict is StallVerdict.UNKNOWN:
        assert found.confidence is Confidence.UNKNOWN
