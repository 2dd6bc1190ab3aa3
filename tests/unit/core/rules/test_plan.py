"""A plan is what is to be done so that a workspace is as declared, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.builders import make_session, make_spec
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import ALIVE, Session, State
from vigil.core.model.team import Manifest, Role, RoleSpec
from vigil.core.rules.plan import RESTING, Held, Plan, PlanStep, PlanVerb, make_plan

OLD, NEW = ("sleep", "60"), ("sleep", "61")


def make_role(name: str = "coder", replicas: int = 2, command: tuple[str, ...] = OLD, workspace: str = "shop") -> RoleSpec:
    return RoleSpec(workspace, "backend", name, replicas, make_spec(command=command))


def replica(role: RoleSpec, index: int, state: State = State.RUNNING, hold: Hold | None = None) -> Session:
    slot = f"{role.key}-{index}"
    return make_session(state, id=slot, name=role.slot(index), spec=role.spec, role=role.key, index=index, hold=hold)


def known(role: RoleSpec) -> Role:
    return Role(role, 1000.0, slots=tuple(range(role.replicas)))


def existing(*roles: RoleSpec) -> tuple[dict[str, Role], list[Session]]:
    sessions = [replica(role, index) for role in roles for index in range(role.replicas)]
    return {role.key: known(role) for role in roles}, sessions


def steps_of(plan: Plan) -> list[tuple[str, str]]:
    return [(step.do.value, step.slot or step.role) for step in plan.steps]


def test_a_new_role_is_declared_then_every_slot_is_created() -> None:
    plan = make_plan(Manifest("shop", (make_role(),)), {}, ())

    assert steps_of(plan) == [
        ("declare", "shop/backend/coder"),
        ("create", "shop/backend/coder/0"),
        ("create", "shop/backend/coder/1"),
    ]


def test_what_is_as_declared_needs_nothing() -> None:
    role = make_role()

    assert make_plan(Manifest("shop", (role,)), *existing(role)) == Plan()


def test_scaling_down_ends_the_newest_first() -> None:
    roles, sessions = existing(make_role(replicas=4))

    plan = make_plan(Manifest("shop", (make_role(replicas=1),)), roles, sessions)

    assert steps_of(plan) == [
        ("declare", "shop/backend/coder"),
        ("drain", "shop/backend/coder/3"),
        ("drain", "shop/backend/coder/2"),
        ("drain", "shop/backend/coder/1"),
    ]


def test_scaling_down_ends_the_newest_whatever_state_the_others_are_in() -> None:
    role = make_role(replicas=3)
    sessions = [
        replica(role, 0, State.CRASHED, Hold(HoldReason.BACKOFF, 1060.0)),
        replica(role, 1, State.STOPPED),
        replica(role, 2),
    ]

    plan = make_plan(Manifest("shop", (make_role(replicas=2),)), {role.key: known(role)}, sessions)

    assert steps_of(plan) == [("declare", "shop/backend/coder"), ("drain", "shop/backend/coder/2")]
    assert [held.reason for held in plan.held] == ["backoff", "stopped"]


def test_scaling_one_role_is_nothing_to_the_others() -> None:
    one, other = make_role("one"), make_role("other")
    roles, sessions = existing(one, other)
    wanted = replace(one, replicas=3)

    plan = make_plan(Manifest("shop", (wanted,)), roles, sessions, only=(one.key,))

    assert steps_of(plan) == [("declare", "shop/backend/one"), ("create", "shop/backend/one/2")]


def test_a_role_taken_out_is_drained_and_forgotten_and_its_neighbours_are_not() -> None:
    roles, sessions = existing(make_role("a"), make_role("aa"), make_role("a", workspace="other"))

    plan = make_plan(Manifest("shop", (make_role("aa"),)), roles, sessions)

    assert steps_of(plan) == [("drain", "shop/backend/a/1"), ("drain", "shop/backend/a/0"), ("forget", "shop/backend/a")]


def test_a_changed_command_is_held_unless_it_is_to_be_replaced_at_once() -> None:
    roles, sessions = existing(make_role(replicas=1))
    wanted = Manifest("shop", (make_role(replicas=1, command=NEW),))

    held, at_once = make_plan(wanted, roles, sessions), make_plan(wanted, roles, sessions, at_once=True)

    assert ([step.do for step in held.steps], [found.reason for found in held.held]) == ([PlanVerb.DECLARE], ["changed"])
    assert [step.do for step in at_once.steps] == [PlanVerb.DECLARE, PlanVerb.REPLACE]


def test_a_changed_policy_touches_no_replica() -> None:
    role = make_role()
    roles, sessions = existing(role)
    spec = replace(role.spec, restart=replace(role.spec.restart, max_restarts=9))

    plan = make_plan(Manifest("shop", (replace(role, spec=spec),)), roles, sessions)

    assert [(step.do, step.why) for step in plan.steps] == [(PlanVerb.DECLARE, "it changed: restart")]
    assert plan.held == ()


@pytest.mark.parametrize("state", [State.STOPPED, State.SUCCEEDED, State.PARKED, State.FAILED, State.STUCK])
def test_what_rests_keeps_its_slot_and_says_why(state: State) -> None:
    role = make_role(replicas=1)

    plan = make_plan(Manifest("shop", (role,)), {role.key: known(role)}, [replica(role, 0, state)])

    assert plan == Plan((), (Held(role.slot(0), state.value, RESTING[state]),))


def test_what_waits_says_for_what_and_until_when() -> None:
    role = make_role(replicas=1)
    session = replica(role, 0, State.CRASHED, Hold(HoldReason.BACKOFF, 2000.0))

    plan = make_plan(Manifest("shop", (role,)), {role.key: known(role)}, [session])

    assert plan == Plan((), (Held(role.slot(0), "backoff", session.why, 2000.0),))


def test_what_a_new_boot_left_waiting_is_started() -> None:
    role = make_role(replicas=1)
    session = replica(role, 0, State.PENDING, Hold(HoldReason.COLD_START, None))

    plan = make_plan(Manifest("shop", (role,)), {role.key: known(role)}, [session])

    assert steps_of(plan) == [("start", role.slot(0))]


def test_sessions_of_no_role_are_nobodys() -> None:
    lone = make_session(name="coder")

    assert make_plan(Manifest("shop", ()), {}, [lone]) == Plan()


ROLES = st.builds(make_role, st.sampled_from("abc"), st.integers(0, 5), st.sampled_from([OLD, NEW]))
MANIFESTS = st.lists(ROLES, max_size=3, unique_by=lambda role: role.name).map(lambda roles: Manifest("shop", tuple(roles)))


@given(MANIFESTS, MANIFESTS, st.booleans())
def test_after_a_plan_was_carried_out_nothing_is_left_to_do(before: Manifest, after: Manifest, at_once: bool) -> None:
    roles, sessions = existing(*before.roles)

    roles, sessions = carried_out(make_plan(after, roles, sessions, at_once), after, roles, sessions)

    assert make_plan(after, roles, sessions, at_once).steps == ()
    assert sorted(session.name for session in sessions) == sorted(
        role.slot(index) for role in after.roles for index in range(role.replicas)
    )
    assert all(session.state in ALIVE for session in sessions)


def carried_out(
    plan: Plan, manifest: Manifest, roles: dict[str, Role], sessions: list[Session]
) -> tuple[dict[str, Role], list[Session]]:
    wanted = {role.key: role for role in manifest.roles}
    by_name = {session.name: session for session in sessions}
    for step in plan.steps:
        _carry_out(step, wanted, roles, by_name)
    return roles, list(by_name.values())


def _carry_out(step: PlanStep, wanted: dict[str, RoleSpec], roles: dict[str, Role], by_name: dict[str, Session]) -> None:
    slot = step.slot or ""
    if step.do is PlanVerb.DECLARE:
        roles[step.role] = known(wanted[step.role])
    elif step.do is PlanVerb.CREATE:
        assert slot not in by_name
        by_name[slot] = replica(wanted[step.role], int(slot.rpartition("/")[2]))
    elif step.do is PlanVerb.REPLACE:
        by_name[slot] = replace(by_name[slot], spec=wanted[step.role].spec)
    elif step.do is PlanVerb.DRAIN:
        del by_name[slot]
    else:
        del roles[step.role]


def test_what_a_new_boot_left_waiting_is_started_also_when_its_command_changed() -> None:
    role = make_role(replicas=1)
    session = replica(role, 0, State.PENDING, Hold(HoldReason.COLD_START, None))
    changed = make_role(replicas=1, command=NEW)

    plan = make_plan(Manifest("shop", (changed,)), {role.key: known(role)}, [session])

    assert [do for do, _ in steps_of(plan)] == ["declare", "update", "start"]
