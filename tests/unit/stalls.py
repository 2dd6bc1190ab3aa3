"""Silent agents to judge: a healthy one that has said nothing for a while, and what a test changes in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vigil.core.model.evidence import Child, Evidence, Flag, Number, Text
from vigil.core.model.launch import ProcessId
from vigil.core.model.progress import Doing, Open, Trail
from vigil.core.model.speech import What
from vigil.core.rules.stall.case import Silence

NOW = 100_000.0
MIN = 60.0
TURN = Doing(turn=True, started=True)


def doing(*tools: str, since_s: float = 6 * MIN, asked: str = "", **more: Any) -> Doing:
    """Return an open turn with tools that began so long ago, and a question."""
    open_tools = tuple(Open(f"t{number}", name, NOW - since_s) for number, name in enumerate(tools))
    questions = (Open("q", asked, NOW - since_s),) if asked else ()
    return replace(TURN, tools=open_tools, asked=questions, **more)


def trail(last: What = What.THINKS, silent_s: float = 6 * MIN, **more: Any) -> Trail:
    """Return what was said last, so long ago."""
    return replace(Trail(last, NOW - silent_s, NOW - silent_s, spoke=True), **more)


def child(name: str = "sh", pid: int = 500, age_s: float = 5 * MIN, **more: Any) -> Child:
    """Return a process below an agent that does nothing; by default one that began with its tool."""
    quiet: dict[str, Any] = {"state": "S", "wchan": "do_wait", "cpu": 0.0, "io": 0.0, "sockets": 0, "holds_pipe": False}
    return Child(ProcessId(pid, 7, "b"), name, age_s=age_s, **({"waits_for_input": False} | quiet | more))


def evidence(children: tuple[Child, ...] = (), **more: Any) -> Evidence:
    """Return readings of an agent that sleeps with one connection over which nothing comes; None in `more` is unknown."""
    plain: dict[str, Any] = {
        "late_s": 0.0,
        "state": "S",
        "wchan": "ep_poll",
        "traced": False,
        "foreground": True,
        "window_s": 30.0,
        "main_cpu": 0.01,
        "main_waited": 0.0,
        "main_burst_s": 0.001,
        "tree_cpu": 0.01,
        "used_cpu_s": 20.0,
        "io": 0.0,
        "sockets": 1.0,
        "received_s": 6 * MIN,
        "sent_s": 6 * MIN,
        "unacked": 0.0,
        "transcript_s": 6 * MIN,
        "descendants": float(len(children)),
    } | more
    kinds = {"state": Text, "wchan": Text, "traced": Flag, "foreground": Flag}
    read = {name: kinds.get(name, Number)(value, "procfs", NOW) for name, value in plain.items()}
    return Evidence(NOW, pid=400, children=children, **read)


def case(silent_s: float = 6 * MIN, **more: Any) -> Silence:
    """Return an agent in the middle of a turn that has said nothing for a while."""
    given: dict[str, Any] = {
        "now": NOW,
        "evidence": evidence(),
        "doing": TURN,
        "trail": trail(silent_s=silent_s),
        "silent_from": NOW - silent_s,
        "started_at": NOW - 3600.0,
        "speaks": True,
    }
    return Silence(**(given | more))


BLIND = evidence(
    state=None, wchan=None, traced=None, main_cpu=None, main_waited=None, tree_cpu=None, io=None, sockets=None,
    received_s=None, sent_s=None, unacked=None, descendants=None, transcript_s=None,
)  # fmt: skip
