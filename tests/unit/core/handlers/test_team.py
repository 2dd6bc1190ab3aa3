"""A manifest is carried out step by step; what each step does to a replica that is there."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.builders import Stage, kinds, make_launched, make_spec
from vigil.core.events import Applied
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import State
from vigil.core.model.team import Manifest, RoleSpec

OLD, NEW = ("sleep", "60"), ("sleep", "61")


def make_role(command: tuple[str, ...] = OLD) -> RoleSpec:
    return RoleSpec("shop", "backend", "coder", 1, make_spec(command=command))


def apply(stage: Stage, role: RoleSpec, at_once: bool = False) -> list[str]:
    return kinds(stage.tell(Applied(Manifest("shop", (role,)), "alice", at_once)))


def serving() -> tuple[Stage, str]:
    """Return a stage on which the one replica of a role runs, and its id."""
    stage = Stage()
    apply(stage, make_role())
    (session,) = stage.machine.sessions.values()
    stage.tell(make_launched(f"{session.id}-1", stage.now))
    return stage, session.id


def test_what_a_new_boot_left_waiting_is_started_by_the_next_up() -> None:
    stage, sid = serving()
    waits = replace(stage.session(sid), state=State.PENDING, hold=Hold(HoldReason.COLD_START, None))
    stage.machine.sessions[sid] = waits

    asked = apply(stage, make_role())

    assert (asked, stage.state(sid)) == (["EndLaunch"], "pending (survivor)")


def test_what_runs_an_old_command_is_restarted_with_the_new_one_if_that_was_asked_for() -> None:
    stage, sid = serving()

    assert apply(stage, make_role(NEW)) == []
    assert (stage.state(sid), stage.session(sid).spec.command) == ("running", OLD)
    assert apply(stage, make_role(NEW), at_once=True) == ["EndLaunch"]

    assert (stage.state(sid), stage.session(sid).spec.command) == ("ending", NEW)
