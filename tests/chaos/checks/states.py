"""P5, P10: what is shown is so, nothing waits for ever, and nobody who was declared is lost."""

from __future__ import annotations

from datetime import datetime

from tests.chaos.checks.base import Verdict, by_launch, excuses, touches
from tests.chaos.history import Command, History, Json, Life, Part

RESTS = frozenset({"running", "stopped", "parked", "failed", "succeeded"})
AWAKE = frozenset({"starting", "running", "suspect", "stuck", "ending"})
SHOWN_S = 2.0  # a death is told within milliseconds; a loaded host takes longer
WAIT_S = 2.0


def check(history: History) -> Verdict:
    verdict = Verdict("P5 P10 shown as it is, and a way out")
    alive = {life.session: life for life in history.agents() if life.ended_at is None}
    for session in history.sessions:
        _check_rest(history, verdict, session, alive.get(session["name"]))
    shown = {session["name"] for session in history.sessions}
    for name, life in alive.items():
        text = f"{name}: {life.launch} lives (pid {life.pid}) and its session is gone"
        verdict.expect(name in shown or name not in history.policies, history.judged_at, text)
    _check_lost(history, verdict, shown)
    agents = by_launch(history)
    for command in history.commands:
        if command.shown:
            _check_list(history, verdict, command, agents)
    return verdict


def _check_rest(history: History, verdict: Verdict, session: Json, life: Life | None) -> None:
    """After the calm a session is at rest, and is what it is shown as."""
    name, state, at = session["name"], session["state"], history.judged_at
    where = f"{name}: shown as {state} ({session['why']}), launch {session['launch']}"
    if life is not None:
        held = state in AWAKE and session["launch"] == life.launch and session["pid"] == life.pid
        verdict.expect(held, at, f"{where}, but {life.launch} lives as pid {life.pid}")
    else:
        verdict.expect(state not in AWAKE, at, f"{where}, but no agent of it lives")
    hold = session.get("hold")
    waits = hold is not None and hold["until"] is not None and _moment(hold["until"]) > at - WAIT_S
    rests = state in RESTS or (state == "suspect" and _is_orphan(history, life))
    verdict.expect(rests or waits, at, f"{where}, with hold {hold}, long after the last fault")


def _is_orphan(history: History, life: Life | None) -> bool:
    """Say whether an agent outlived its pane and nothing replaces it: then it waits for a person (P2)."""
    if life is None or history.policies[life.session].when != "never":
        return False
    return any(shot.launch == life.launch and shot.part is not Part.AGENT for shot in history.shots)


def _check_lost(history: History, verdict: Verdict, shown: set[str]) -> None:
    for name in history.policies:
        asked = sorted(history.about(name, "run", "rm"), key=lambda one: one.ended_at)
        if asked and asked[-1].verb == "run" and asked[-1].code == 0:
            earlier = [one for one in asked[:-1] if one.verb == "rm" and one.ended_at > asked[-1].began_at]
            verdict.expect(name in shown or bool(earlier), history.judged_at, f"{name}: was declared, and is gone")


def _check_list(history: History, verdict: Verdict, command: Command, agents: dict[str, Life]) -> None:
    """A list shows nobody as running who had ended before it was asked for, and no launch when the next one lives."""
    late = [span for span in excuses(history) if "no " not in span.what]
    if touches(late, command.began_at - SHOWN_S, command.ended_at):
        return
    newest: dict[str, Life] = {}
    for life in agents.values():
        if life.began_at < command.began_at - SHOWN_S and (life.ended_at is None or life.ended_at > command.ended_at):
            newest[life.session] = life
    for one in command.shown:
        named = agents.get(one.launch)
        if one.state == "running" and named is not None and named.ended_at is not None:
            text = (
                f"{one.name}: listed as running at {command.ended_at:.2f}, but {one.launch} had ended at {named.ended_at:.2f}"
            )
            verdict.expect(named.ended_at >= command.began_at - SHOWN_S, command.ended_at, text)
        lives = newest.get(one.name)
        if lives is not None:
            text = f"{one.name}: listed as {one.state} with {one.launch}, but {lives.launch} lives since {lives.began_at:.2f}"
            verdict.expect(one.launch == lives.launch, command.ended_at, text)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
