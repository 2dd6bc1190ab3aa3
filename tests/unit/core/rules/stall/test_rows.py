"""Each fact that a row of the verdicts asks for matters: the same agent with that one fact otherwise is judged otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.core.rules.stall.test_verdict import CATALOGUE
from tests.unit.stalls import MIN, NOW, TURN, child, doing
from vigil.core.model.death import Confidence
from vigil.core.model.evidence import Child, Number
from vigil.core.model.progress import IDLE, Open
from vigil.core.model.speech import What
from vigil.core.rules.stall.case import Silence
from vigil.core.rules.stall.verdict import classify

FAILURE = {name.split()[0]: failure for name, failure, *_ in CATALOGUE}
LOOK_ALIKE = {name.split()[0]: look_alike for name, _, _, look_alike, _ in CATALOGUE}
PIPE = child("uvicorn", 803, below=False, holds_pipe=True)
TOLD = (Open("a", "explore", NOW - 10 * MIN),)


def read(case: Silence, **values: Any) -> Silence:
    """Return the same agent with other readings; None could not be read."""
    known = {name: replace(getattr(case.evidence, name), value=value, at=NOW) for name, value in values.items()}
    return replace(case, evidence=replace(case.evidence, **known))


def below(case: Silence, *more: Child) -> Silence:
    """Return the same agent with more processes below it."""
    children = (*case.evidence.children, *more)
    return replace(case, evidence=replace(case.evidence, children=children, descendants=Number(len(children), "procfs", NOW)))


def said(case: Silence, **trail: Any) -> Silence:
    return replace(case, trail=replace(case.trail, **trail))


def silent(case: Silence, seconds: float) -> Silence:
    return replace(case, silent_from=NOW - seconds)


def open_now(case: Silence, does: Any) -> Silence:
    return replace(case, doing=does)


def uncounted(case: Silence) -> Silence:
    """Return the same agent, and nobody could list what is below it."""
    return read(case, descendants=None)


CPU: dict[str, Any] = {"tree_cpu": 0.9}
BYTES: dict[str, Any] = {"io": 1e6}
ROWS: list[tuple[str, Silence, str]] = [
    ("it poisons only what was resumed", said(FAILURE["26"], empty=True), "working"),
    ("it poisons only what is over", open_now(FAILURE["46"], TURN), "working"),
    ("limbo needs a result", replace(LOOK_ALIKE["26"], runs_to_its_end=False), "unknown"),
    ("a result of just now is no limbo", said(LOOK_ALIKE["26"], result_at=NOW - 5, last=What.RESULT), "working"),
    ("who goes in circles has a turn open", open_now(FAILURE["17"], IDLE), "working"),
    ("a result is not lost while bytes come", read(FAILURE["14"], received_s=1.0), "tool-running"),
    ("a result is not lost while it computes", read(FAILURE["2"], **CPU), "tool-running"),
    ("a result is not lost while it reads and writes", read(FAILURE["2"], **BYTES), "tool-running"),
    ("a result is not lost while the model answers", open_now(LOOK_ALIKE["1"], doing("Bash")), "tool-running"),
    ("a pipe is held of a tool only", below(FAILURE["1"], PIPE), "wedged-after-tool"),
    ("a pipe is held where its tool is gone", below(LOOK_ALIKE["2"], PIPE), "tool-running"),
    ("a pipe is not that of an MCP server", below(LOOK_ALIKE["3"], PIPE), "tool-running"),
    ("a pipe is held once its tool's time is over", silent(FAILURE["11"], MIN), "tool-running"),
    ("a child waits once its tool's time is over", silent(FAILURE["12"], MIN), "tool-running"),
    ("the kernel holds a tool once its time is over", below(FAILURE["2"], child("dd", 804, state="D")), "tool-running"),
    ("the kernel holds an agent once its time is over", open_now(read(LOOK_ALIKE["14"], state="D"), IDLE), "working"),
    ("after an hour no byte excuses a tool", silent(LOOK_ALIKE["16"], 61 * MIN), "unknown"),
    ("a tool without processes or bytes is no running one", uncounted(FAILURE["11"]), "unknown"),
    ("a tool that cannot be read is not calm", below(FAILURE["13"], child("sudo", 805, cpu=None, io=None)), "unknown"),
    ("a turn with sub-agents that speak is well", said(LOOK_ALIKE["1"], subagents=TOLD), "working"),
    ("who thinks has a turn open", read(FAILURE["33"], received_s=1.0), "unknown"),
    ("a start is not blocked while bytes are moved", read(FAILURE["33"], **BYTES), "working"),
    ("a start is blocked once its time is over", silent(FAILURE["33"], MIN), "working"),
    ("a conversation is poisoned where it was resumed", replace(FAILURE["1"], stalled_before=True), "wedged-after-tool"),
    (
        "a conversation is not blamed for a tool",
        replace(uncounted(FAILURE["11"]), resumed=True, stalled_before=True),
        "unknown",
    ),
    ("a conversation is not poisoned while it computes", read(FAILURE["51"], **CPU), "working"),
    ("a conversation is not poisoned without a turn", open_now(FAILURE["51"], IDLE), "unknown"),
    ("that no byte came must be read", read(FAILURE["51"], received_s=None), "unknown"),
    ("who spins has a turn open", open_now(FAILURE["9"], IDLE), "working"),
    ("a network is not dead while it computes", read(FAILURE["7"], **CPU), "working"),
    ("a network is not dead while bytes are moved", read(FAILURE["7"], **BYTES), "working"),
    ("a network is missed in a turn", open_now(FAILURE["7"], IDLE), "unknown"),
    ("a network is not blamed for a tool", uncounted(read(FAILURE["11"], sockets=0.0, received_s=None)), "unknown"),
    ("nothing is wedged while bytes are moved", read(FAILURE["1"], **BYTES), "working"),
    ("nothing is wedged after a tool while one is open", uncounted(said(FAILURE["11"], last=What.TOOL_ENDED)), "unknown"),
]


@pytest.mark.parametrize(("case", "verdict"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_row_asks_for_what_makes_it_true(case: Silence, verdict: str) -> None:
    assert classify(case).verdict == verdict, classify(case)


@pytest.mark.parametrize("number", ["1", "3", "5", "7", "9", "11", "12", "13", "14", "16", "26", "33", "51"])
def test_no_failure_is_sure_while_what_it_writes_could_not_be_read(number: str) -> None:
    failure = FAILURE[number] if number != "26" else LOOK_ALIKE[number]
    nowhere = Number(None, "files", NOW, "no answer in 2 s")
    unread = replace(failure, evidence=replace(failure.evidence, subagents_s=nowhere))

    assert classify(failure).confidence is not Confidence.UNKNOWN
    assert (classify(unread).verdict, classify(unread).confidence) == (classify(failure).verdict, Confidence.UNKNOWN)


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        (uncounted(FAILURE["15"]), "tool-overrun"),
        (read(FAILURE["9"], received_s=None), "spinning"),
        (uncounted(read(LOOK_ALIKE["7"], main_cpu=0.99, tree_cpu=0.99)), "spinning"),
        (read(LOOK_ALIKE["26"], tree_cpu=None), "limbo"),
        (said(LOOK_ALIKE["26"], subagents=TOLD), "limbo"),
    ],
)
def test_what_would_exclude_a_failure_and_cannot_be_told_leaves_it_in_doubt(case: Silence, verdict: str) -> None:
    found = classify(case)

    assert (found.verdict, found.confidence) == (verdict, Confidence.UNKNOWN), found


def test_a_finished_agent_whose_work_goes_on_is_well_for_that_reason() -> None:
    found = classify(read(LOOK_ALIKE["26"], **CPU))

    assert (found.verdict, found.reasons) == ("working", ("it has said that it is done", "something of its work goes on"))


@pytest.mark.parametrize(
    ("number", "sensors"),
    [("9", 4), ("11", 5), ("13", 4), ("23", 1), ("17", 0)],
    ids=["bytes", "pipes", "processes", "state", "words"],
)
def test_each_sensor_of_the_kernel_counts_once_and_words_do_not(number: str, sensors: int) -> None:
    assert classify(FAILURE[number]).independent == sensors


@pytest.mark.parametrize(("sockets", "received_s", "deaf"), [(0, None, True), (1, 600.0, True), (1, 5.0, False)])
def test_a_server_of_an_mcp_tool_that_receives_nothing_speaks_for_an_overrun(
    sockets: int, received_s: float | None, deaf: bool
) -> None:
    server = child("node", command="node jira.js", sockets=sockets, received_s=received_s)

    found = classify(below(FAILURE["4"], server))

    assert found.verdict == "tool-overrun"
    assert any("receives nothing" in reason for reason in found.reasons) is deaf, found.reasons
