"""What is done about an incident: within its budget, never to who is attached, busy or in doubt; then somebody is called."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tests.unit.builders import Stage, fleet, make_reading, make_session, running, saturated
from vigil.core.effects import Effect, EndLaunch, React, SetTimer, TimerKind
from vigil.core.events import Acked, Configured, Ended, ReactionEnded, TimerFired
from vigil.core.handlers.incident import open_incident, resolve
from vigil.core.model.death import Confidence
from vigil.core.model.incident import (
    HIBERNATE,
    PROMPT,
    RESTART,
    RUN,
    IncidentKind,
    Ladder,
    LadderStep,
    Reaction,
    ReactionOutcome,
    Severity,
    Telling,
)
from vigil.core.model.reading import Axis
from vigil.core.model.restart import Hold, HoldReason
from vigil.core.model.session import Session, State, with_vitals
from vigil.core.model.stall import Stall
from vigil.core.rules.escalation import due_notices
from vigil.core.rules.reaction import FOR, why_not

NOW = 5000.0
PROMPTS = Reaction(IncidentKind.STALLED, PROMPT, budget=2, every_s=60.0, text="go on")
RUNS = Reaction(IncidentKind.NEEDS_INPUT, RUN, budget=2, every_s=60.0, command=("page",))
RESTARTS = Reaction(IncidentKind.SATURATED, RESTART, budget=2, every_s=60.0)


def due_timers(effects: list[Effect]) -> list[SetTimer]:
    return [effect for effect in effects if isinstance(effect, SetTimer) and effect.kind == "react"]


def reacted(effects: list[Effect]) -> list[React]:
    return [effect for effect in effects if isinstance(effect, React)]


def fire(stage: Stage, effects: list[Effect]) -> list[Effect]:
    """The moment that was asked for last has come."""
    timer = due_timers(effects)[-1]
    stage.now = max(stage.now, timer.at)
    return stage.tell(TimerFired(timer.session_id, TimerKind.REACT))


# Who is left alone


QUIET = {Axis.PROCESS: make_reading(), Axis.SERVER: make_reading()}
IDLE = make_session(axes=QUIET | {Axis.ACTIVITY: make_reading("idle", observed_at=NOW - 600)})


def at_work(activity: str) -> Session:
    return with_vitals(IDLE, axes=QUIET | {Axis.ACTIVITY: make_reading(activity, observed_at=NOW - 600)})


AT_WORK = at_work("tool")
FOUND = Stall("lost-result", Confidence.LIKELY, ("its tool is gone",), NOW, NOW, samples=2, independent=2, warned_at=NOW)
STALLED = with_vitals(AT_WORK, stall=FOUND)


@pytest.mark.parametrize(
    ("session", "why"),
    [
        (IDLE, None),
        (with_vitals(IDLE, attached=1), "a person is attached to it"),
        (replace(IDLE, state=State.ENDING), "it is being ended"),
        (replace(IDLE, state=State.STARTING), "it is starting"),
        (replace(IDLE, state=State.STUCK), "what it is cannot be told"),
        (replace(IDLE, state=State.SUSPECT), "what it is cannot be told"),
        (with_vitals(IDLE, axes=QUIET | {Axis.PROCESS: make_reading("unknown")}), "what it is cannot be told"),
        (with_vitals(IDLE, axes=QUIET | {Axis.SERVER: make_reading("wedged")}), "what it is cannot be told"),
        *((at_work(activity), "it is busy") for activity in ("starting", "working", "thinking", "tool")),
        (with_vitals(AT_WORK, stall=replace(FOUND, warned_at=None)), "it is busy"),
        (STALLED, None),
        (with_vitals(STALLED, stall=replace(FOUND, samples=1, confidence=Confidence.UNKNOWN)), None),
        (with_vitals(IDLE, axes=QUIET | {Axis.ACTIVITY: make_reading("waiting-human")}), "it waits for a person"),
        (replace(IDLE, state=State.FAILED), "it does not run"),
        (replace(IDLE, state=State.STOPPED), "it is not meant to run"),
        (replace(IDLE, state=State.SUCCEEDED), "it is not meant to run"),
        (replace(IDLE, state=State.PARKED), "it is not meant to run"),
        (None, "its session is gone"),
    ],
)
def test_a_prompt_is_typed_only_where_nobody_and_nothing_is_in_the_way(session: object, why: str | None) -> None:
    assert why_not(session, PROMPT) == why  # type: ignore[arg-type]


def test_a_restart_may_bring_back_what_failed_but_not_what_meets_a_wall_or_was_stopped() -> None:
    assert why_not(replace(IDLE, state=State.FAILED, hold=Hold(HoldReason.SATURATED, None)), RESTART) is None
    assert why_not(replace(IDLE, state=State.PENDING, hold=Hold(HoldReason.AUTH, None)), RESTART) is not None
    assert why_not(replace(IDLE, state=State.PARKED), RESTART) == "it is not meant to run"


@pytest.mark.parametrize("do", [RESTART, HIBERNATE])
@pytest.mark.parametrize(
    ("found", "why"),
    [
        (FOUND, None),
        (replace(FOUND, confidence=Confidence.UNKNOWN), "what is the matter with it is not sure enough"),
        (replace(FOUND, independent=1), "what is the matter with it is not sure enough"),
        (replace(FOUND, samples=1), "that it does not get on was found only once"),
    ],
)
def test_nobody_is_ended_for_a_stall_that_is_not_sure_or_was_found_only_once(do: str, found: Stall, why: str | None) -> None:
    assert why_not(with_vitals(STALLED, stall=found), do) == why


def test_what_was_found_only_once_is_waited_for_and_costs_nothing() -> None:
    stage = running()
    stage.see()
    stage.tell(Configured((), (replace(PROMPTS, do=RESTART),)))
    book = stage.machine._book
    book.keep(with_vitals(stage.session(), stall=replace(FOUND, samples=1, warned_at=stage.now)))

    asked = fire(stage, stalled(stage))

    assert not stage.machine.incidents["s1/stalled"].reactions
    book.keep(with_vitals(stage.session(), stall=replace(FOUND, warned_at=stage.now)))
    assert [effect for effect in fire(stage, asked) if isinstance(effect, EndLaunch)]
    assert [one.outcome for one in stage.machine.incidents["s1/stalled"].reactions] == ["done"]


def test_who_is_attached_is_never_disturbed_and_a_command_disturbs_nobody() -> None:
    for state, do in product(State, (PROMPT, RESTART, HIBERNATE)):
        assert why_not(with_vitals(replace(IDLE, state=state), attached=1), do) is not None
        assert why_not(with_vitals(replace(IDLE, state=state), attached=1), RUN) is None


def test_nothing_is_done_about_idleness_and_what_is_stuck_is_not_ended() -> None:
    assert "idle" not in {kind.value for kind in IncidentKind}
    assert all(IncidentKind.STUCK not in FOR[do] for do in (PROMPT, RESTART, HIBERNATE))


@pytest.mark.parametrize(
    ("do", "kinds"),
    [
        (PROMPT, {"stalled", "tainted"}),
        (RESTART, {"stalled", "tainted", "saturated", "server-died"}),
        (HIBERNATE, {"stalled", "tainted", "needs-input"}),
        (RUN, set(IncidentKind)),
    ],
)
def test_each_reaction_answers_what_it_can_help_with(do: str, kinds: set[str]) -> None:
    assert FOR[do] == kinds


# Budgets


def stalled(stage: Stage) -> list[Effect]:
    """Somebody found that the agent does not get on."""
    book = stage.machine._book
    book.change = type(book.change)()
    open_incident(book, IncidentKind.STALLED, stage.session(), "nothing for 5 min", stage.now)
    return book.change.effects()


def resolved(stage: Stage) -> None:
    resolve(stage.machine._book, "s1/stalled", "it goes on", stage.now)


def test_prompt_active_idle_prompt_ends_at_its_budget_and_somebody_is_called() -> None:
    stage = running()
    stage.see()
    stage.tell(Configured(("ops",), (PROMPTS,)))
    prompts, incident = 0, None
    for _ in range(10):  # each time it helps for a while, and then it is the same again
        asked = stalled(stage)
        for _ in range(2):
            if due_timers(asked):
                asked = fire(stage, asked)
                prompts += len(reacted(asked))
        incident = stage.machine.incidents["s1/stalled"]
        stage.now += 300
        resolved(stage)
        stage.now += 300

    assert prompts == 2
    assert incident is not None and incident.escalated_at is not None
    assert incident.severity is Severity.URGENT


def test_a_reaction_is_recorded_before_it_is_done_and_what_became_of_it_after() -> None:
    stage = running()
    stage.tell(Configured((), (RUNS,)))

    asked = fire(stage, stage.hear("waiting-human"))

    (react,) = reacted(asked)
    assert (react.do, react.command, react.number) == (RUN, ("page",), 0)
    assert [one.outcome for one in react.incident.reactions] == ["begun"]
    stage.tell(ReactionEnded(react.incident.id, 0, ReactionOutcome.DONE))
    assert [one.outcome for one in stage.machine.incidents["s1/needs-input"].reactions] == ["done"]


def test_a_reaction_whose_daemon_ended_is_not_made_again_and_its_budget_is_used() -> None:
    stage = running()
    stage.tell(Configured((), (RUNS,)))
    fire(stage, stage.hear("waiting-human"))

    stage.restart()
    asked = stage.tell(Configured((), (RUNS,)))

    (one,) = stage.machine.incidents["s1/needs-input"].reactions
    assert (one.outcome, one.why) == ("unknown", "the daemon ended meanwhile")
    assert due_timers(asked)[-1].at == one.at + RUNS.every_s
    assert len(reacted(fire(stage, asked))) == 1
    assert due_timers(asked)


def test_a_budget_that_is_used_up_makes_it_urgent_and_tells_at_once() -> None:
    stage = running()
    stage.tell(Configured(("ops", "phone"), (RUNS,)))
    asked = stage.hear("waiting-human")
    for _ in range(3):
        asked = fire(stage, asked)

    incident = stage.machine.incidents["s1/needs-input"]
    assert (incident.severity, incident.escalated_at, len(incident.reactions)) == (Severity.URGENT, stage.now, 2)
    assert due_timers(asked) == []
    telling = Telling((Ladder((LadderStep("ops"),), Severity.ACTION), Ladder((LadderStep("phone"),), Severity.URGENT)))
    assert [(due.route, due.event) for due in due_notices(incident, telling, stage.now)] == [("phone", "escalated")]
    assert "incident.escalated" in stage.log


def test_a_refusal_is_on_the_timeline_and_counts() -> None:
    stage = running()
    stage.see()
    stage.tell(Configured((), (PROMPTS,)))
    stage.hear("working")
    asked = stalled(stage)

    asked = fire(stage, asked)

    assert reacted(asked) == []
    (one,) = stage.machine.incidents["s1/stalled"].reactions
    assert (one.outcome, one.why) == ("refused", "it is busy")


def test_somebody_who_knows_of_it_ends_all_reactions() -> None:
    stage = running()
    stage.tell(Configured((), (RUNS,)))
    asked = stage.hear("waiting-human")
    stage.tell(Acked(stage.machine.incidents["s1/needs-input"].id, "alice"))

    assert fire(stage, asked) == []


def test_without_a_reaction_for_its_kind_nothing_is_done() -> None:
    stage = running()
    stage.tell(Configured((), (PROMPTS, replace(RUNS, team="backend"))))

    assert due_timers(stage.hear("waiting-human")) == []


def test_a_restart_by_reaction_is_policy_and_spares_who_attaches_meanwhile() -> None:
    stage, _ = fleet(1)
    stage.see("s1")
    stage.tell(Configured((), (replace(PROMPTS, do=RESTART),)))

    asked = fire(stage, stalled(stage))

    (ending,) = [effect for effect in asked if isinstance(effect, EndLaunch)]
    assert ending.unless_attended
    intent = stage.session().vitals.intent
    assert intent is not None and (intent.cause, intent.actor) == ("policy", "reaction")


def test_a_crash_loop_that_was_given_up_is_restarted_so_often_and_not_again() -> None:
    stage = saturated()
    asked = stage.tell(Configured((), (RESTARTS,)))
    tried = 0
    for _ in range(6):
        if not due_timers(asked):
            break
        asked = fire(stage, asked)
        stage.tell(Ended(stage.launch().id, ok=True))
        if stage.state() == "pending (backoff)":  # no restart follows a death at once
            stage.now += 60.0
            stage.tell(TimerFired("s1", TimerKind.HOLD), Ended(stage.launch().id, ok=True))
        if stage.state() == "starting":
            tried += 1
            asked = [*asked, *stage.exit(exit_code=1)]

    incident = stage.machine.incidents["s1/saturated"]
    assert tried == 2
    assert incident.escalated_at is not None
