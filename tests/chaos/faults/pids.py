"""Pids that come back: a dead agent's number is a stranger's now, a process or only a thread."""

from __future__ import annotations

from tests.chaos.bystanders import can_aim
from tests.chaos.history import Life, Part, session_of
from tests.chaos.place import VIGIL
from tests.chaos.stage import Stage

VERBS = ("restart", "stop", "start")
DISMISSED_S = 60.0


def recycle_as_process(stage: Stage) -> str:
    """A person's shell gets the pid, and asks for something that only a person may."""
    life = _dead_one(stage)
    if life is None or not can_aim():
        return ""
    answer = stage.place.work / f"person-{life.launch}"
    words = [str(answer), *VIGIL, "reap", "--dry-run"]
    stranger = stage.bystanders.with_pid(life.pid, f"a stranger with the pid of {life.launch}", *words)
    if stranger is None:
        return ""
    stage.heal_after(DISMISSED_S, lambda: stage.bystanders.dismiss(stranger))
    return _ask_of(stage, life, "a stranger's")


def recycle_as_thread(stage: Stage) -> str:
    life = _dead_one(stage)
    if life is None or not can_aim():
        return ""
    stranger = stage.bystanders.with_thread(life.pid, f"a process whose thread has the number of {life.launch}")
    if stranger is None:
        return ""
    stage.heal_after(DISMISSED_S, lambda: stage.bystanders.dismiss(stranger))
    return _ask_of(stage, life, "a thread's")


def _ask_of(stage: Stage, life: Life, whose: str) -> str:
    verb = stage.rng.choice(VERBS)
    stage.order(verb, life.session)
    return f"pid {life.pid} of {life.launch} is {whose} now; {verb} {life.session}"


def _dead_one(stage: Stage) -> Life | None:
    """Return the last agent of a session that has none now."""
    alive = {session_of(life.launch) for life in stage.watch.alive(Part.AGENT)}
    newest: dict[str, Life] = {}
    for life in stage.watch.dead(Part.AGENT):
        if session_of(life.launch) not in alive and life.session in stage.fleet.policies:
            newest[life.session] = max(life, newest.get(life.session, life), key=lambda one: one.began_at)
    return stage.rng.choice(sorted(newest.values(), key=lambda life: life.launch)) if newest else None
