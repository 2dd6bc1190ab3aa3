"""The case of a silent agent: who is watched, what it has open, and how long it may be silent with that."""

from __future__ import annotations

import pytest

from tests.unit.builders import make_launch, make_process, make_session
from tests.unit.stalls import MIN, case, child, doing, evidence
from vigil.core.model.progress import SAID_NOTHING
from vigil.core.model.session import State
from vigil.core.model.stall import DEFAULTS
from vigil.core.rules.stall.case import is_watched, what_is_open
from vigil.core.rules.stall.tool import blocked


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("Bash", "tool"),
        ("mcp__jira__search", "mcp tool"),
        ("mcp_tool_call", "mcp tool"),
        ("mcp:jira", "mcp tool"),
        ("Task", "sub-agent"),
        ("Agent", "sub-agent"),
        ("task", "sub-agent"),
        ("agent", "sub-agent"),
        ("collab_tool_call", "sub-agent"),
    ],
)
def test_a_tool_is_waited_for_as_its_kind_needs_it(tool: str, kind: str) -> None:
    patience = {
        "tool": DEFAULTS.tool_timeout_s,
        "mcp tool": DEFAULTS.mcp_tool_timeout_s,
        "sub-agent": DEFAULTS.subagent_timeout_s,
    }

    assert what_is_open(doing(tool), SAID_NOTHING, DEFAULTS) == (kind, patience[kind])


@pytest.mark.parametrize("state", ["Z", "X"])
def test_a_process_that_is_gone_is_none_of_its_tool(state: str) -> None:
    lives, gone = child("make", 501), child("sh", 502, state=state)

    assert case(doing=doing("Bash", since_s=6 * MIN), evidence=evidence((lives, gone))).own == (lives,)


@pytest.mark.parametrize("state", State)
def test_whoever_has_a_turn_open_and_lives_undoubted_is_watched(state: State) -> None:
    session = make_session(state, launch=make_launch(process=make_process(), started_at=1000.0), doing=doing())

    assert is_watched(session) == (state in (State.STARTING, State.RUNNING))


@pytest.mark.parametrize("wchan", ["do_wait", "wait4", "do_sigtimedwait", "sigsuspend", "__do_sys_rt_sigsuspend"])
def test_a_shell_that_waits_for_its_child_does_not_hide_what_that_waits_for(wchan: str) -> None:
    shell, asks = child("bash", wchan=wchan), child("passwd", 501, waits_for_input=True)

    assert blocked(case(doing=doing("Bash"), evidence=evidence((shell, asks)))) == (asks,)
    assert blocked(case(doing=doing("Bash"), evidence=evidence((child("make", wchan="ep_poll"), asks)))) == ()
