"""A silent session is looked at when its patience ends, told of with its reasons, and treated; whoever speaks is well again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.builders import Stage, make_exit, make_launched, make_spec
from tests.unit.stalls import BLIND, child, evidence
from vigil.core.effects import CloseInput, Diagnose, Effect, EndChild, EndLaunch, Interrupt, Look, SetTimer, TimerKind
from vigil.core.events import (
    Applied,
    Attended,
    Declared,
    Diagnosed,
    Exited,
    Gap,
    Heard,
    Measured,
    Observed,
    Stepped,
    TimerFired,
    WatchdogsSet,
)
from vigil.core.model.death import Cause
from vigil.core.model.evidence import Evidence
from vigil.core.model.incident import Incident, IncidentKind, Ladder, LadderStep, Notice, NoticeState, Rung, Severity, Telling
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.session import State
from vigil.core.model.speech import Said, Usage, What
from vigil.core.model.stall import Thresholds, Watchdog, Watchdogs
from vigil.core.model.team import Manifest, RoleSpec
from vigil.core.rules.escalation import due_notices
from vigil.core.rules.explain import explain
from vigil.core.rules.health import health_of
from vigil.core.rules.stall.remedy import KEEPS, next_step
from vigil.core.rules.stall.schedule import thresholds_of
from vigil.core.rules.stall.verdict import StallVerdict

START, MIN = 1000.0, 60.0
KILLS = Watchdog(stall_auto_kill=True)
ALWAYS = RestartPolicy(RestartWhen.ALWAYS, base_s=10.0, jitter=0.0)


def silent(watchdog: Watchdog | None = None, *said: What) -> Stage:
    """Return a stage on which an agent took a prompt and says nothing more."""
    stage = Stage(now=START)
    if watchdog is not None:
        stage.tell(WatchdogsSet(Watchdogs(watchdog)))
    stage.tell(Declared("s1", "alpha", make_spec(ALWAYS), "alice"), make_launched(at=START))
    say(stage, What.STARTED, What.PROMPT, *said)
    return stage


def say(stage: Stage, *words: What, **more: Any) -> list[Effect]:
    said = tuple(Said(word, at=stage.now, **more) for word in words)
    return stage.tell(Heard(stage.launch().id, said, "hook"))


def wake(stage: Stage, at: float) -> list[Effect]:
    stage.now = at
    return stage.tell(TimerFired("s1", TimerKind.SILENCE))


def look(stage: Stage, at: float, seen: Evidence | None = None) -> list[Effect]:
    """The moment comes, and this is read then."""
    asked = wake(stage, at)
    if not any(isinstance(effect, Diagnose) for effect in asked):
        return asked
    return stage.tell(Diagnosed(stage.launch().id, replace(seen or evidence(), at=at)))


def due(effects: list[Effect]) -> float:
    return max(effect.at for effect in effects if isinstance(effect, SetTimer) and effect.kind == "silence")


def warnings(stage: Stage) -> list[str]:
    return [entry.data["verdict"] for entry in stage.entries if entry.kind == "session.stalled"]


def kept(stage: Stage) -> str:
    stall = stage.session().vitals.stall
    return "" if stall is None else stall.kept


def open_kinds(stage: Stage) -> list[str]:
    return [incident.kind.value for incident in stage.machine.incidents.values()]


def test_whoever_has_nothing_open_is_not_watched() -> None:
    stage = silent()
    say(stage, What.TURN_ENDED)

    assert look(stage, START + 3600) == []
    assert health_of(stage.session()) == "ok"


def test_a_silent_turn_is_looked_at_when_its_patience_ends_and_not_before() -> None:
    stage = silent()

    early = wake(stage, START + 299)
    assert due(early) == START + 300
    assert [type(effect) for effect in early] == [SetTimer]
    assert any(isinstance(effect, Diagnose) for effect in wake(stage, START + 300))


def test_a_stall_is_one_incident_told_again_with_what_changed_and_over_with_its_next_word() -> None:
    stage = silent()
    look(stage, START + 300)
    assert warnings(stage) == ["upstream-stall"]
    assert open_kinds(stage) == ["stalled"]
    assert health_of(stage.session()) == "stalled"

    look(stage, START + 360)
    assert warnings(stage) == ["upstream-stall"], "not before it is time"
    look(stage, START + 480, evidence(sockets=0.0, received_s=None))
    assert warnings(stage) == ["upstream-stall", "network-dead"]
    assert "connections: 0" in stage.entries[-1].data["changed"] or "connections: 0" in str(stage.entries)
    assert open_kinds(stage) == ["stalled"]

    say(stage, What.ALIVE)
    assert open_kinds(stage) == []
    assert stage.session().vitals.stall is None
    assert stage.log[-2:] == ["session.stall-over", "incident.resolved"]


def test_the_ticks_of_a_clock_neither_end_a_silence_nor_a_stall() -> None:
    stage = silent(None, What.TOOL_STARTED)
    tool, spoke_at = stage.session().vitals.doing, stage.session().last_activity_at
    for at in range(30, 300, 30):
        stage.now = START + at
        say(stage, What.TICKS)
    assert (stage.session().vitals.doing, stage.session().last_activity_at) == (tool, spoke_at)
    assert (stage.session().worked, stage.session().vitals.tally.words) == ({"hook": START}, 3)

    for at in (300, 600):
        look(stage, START + at, evidence((child(age_s=at),)))
    assert warnings(stage) == ["tool-overrun"]
    say(stage, What.TICKS)

    assert open_kinds(stage) == ["stalled"]
    assert stage.session().vitals.tally.longest_silence_s == 0.0, "it goes on"


def test_a_stall_that_ends_with_its_launch_is_told_by_the_death_and_by_nothing_after_it() -> None:
    stage = silent()
    look(stage, START + 300)
    stage.tell(Exited(make_exit(at=START + 301, exit_code=1)))
    assert open_kinds(stage) == []

    wake(stage, START + 302)

    assert "session.stall-over" not in stage.log
    assert stage.session().vitals.stall is None


def test_warnings_go_on_for_as_long_as_it_does_with_one_incident() -> None:
    stage, at = silent(), START + 300
    while at < START + 3600:
        at = max(due(look(stage, at)), at + 1)

    assert len(warnings(stage)) == 1 + int(3300 / 180)
    assert len([kind for kind in stage.log if kind == "incident.opened"]) == 1


@pytest.mark.parametrize(
    ("tool", "first_s"), [("Bash", 600.0), ("mcp__jira__search", 900.0), ("Task", 900.0)], ids=["tool", "mcp", "sub-agent"]
)
def test_a_tool_has_the_patience_of_its_kind(tool: str, first_s: float) -> None:
    stage = silent()
    say(stage, What.TOOL_STARTED, name=tool, id="t1")
    busy = evidence((child("sh", cpu=0.0),))

    look(stage, START + 300, busy)
    look(stage, START + first_s - 1, busy)
    assert warnings(stage) == []
    look(stage, START + first_s, busy)
    assert warnings(stage) == ["tool-overrun"]


def test_a_question_is_reminded_of_after_ten_minutes_then_every_thirty_and_is_never_a_stall() -> None:
    stage = silent()
    say(stage, What.ASKED, name="Bash", id="q")
    say(stage, What.RETRIES)
    at = START + 300
    while at < START + 5 * 3600:
        at = due(wake(stage, at))

    told = [entry.at - START for entry in stage.entries if entry.kind == "session.reminded"]
    assert told == [600.0 + 1800.0 * number for number in range(len(told))]
    assert len(told) == 10
    assert warnings(stage) == []
    assert open_kinds(stage) == ["needs-input"]
    assert health_of(stage.session()) == "needs-input"


def test_an_agent_that_speaks_while_it_waits_is_reminded_of_no_sooner() -> None:
    stage = silent()
    say(stage, What.ASKED, name="Bash", id="q")
    at = START + 300
    for number in range(8):
        at = due(wake(stage, at))
        say(stage, What.ASKED, name="Edit", id=f"q{number}")

    told = [(entry.at - START, entry.data["count"]) for entry in stage.entries if entry.kind == "session.reminded"]
    assert told == [(600.0 + 1800.0 * number, number + 1) for number in range(7)]


def test_a_reminder_reaches_those_who_were_told_once_each() -> None:
    ladders = Telling((Ladder((LadderStep("ops"),), Severity.ACTION),), routes=("ops",))
    sent = Notice("i/0/0", "ops", NoticeState.SENT, 1.0, rung=Rung(0, 0))
    incident = Incident("i", "k", IncidentKind.NEEDS_INPUT, Severity.ACTION, "s1", "alpha", 0.0, "why", notices=(sent,))

    assert due_notices(incident, ladders, 700.0) == []
    (again,) = due_notices(replace(incident, reminders=1), ladders, 700.0)
    assert (again.event, again.route) == ("reminder", "ops")
    told = replace(incident, reminders=1, notices=(sent, Notice(again.notice_id, "ops", NoticeState.SENT, 2.0)))
    assert due_notices(told, ladders, 700.0) == []
    assert due_notices(replace(told, acked_at=3.0, reminders=2), ladders, 700.0) == []


def test_who_is_throttled_is_left_until_its_reset() -> None:
    stage = silent()
    stage.tell(Heard("s1-1", (Said(What.LIMIT, at=START, until=START + 7200),), "hook"))

    assert due(wake(stage, START + 300)) == START + 7260
    assert health_of(stage.session()) == "throttled"
    look(stage, START + 7260)
    assert warnings(stage) == ["upstream-stall"]


def test_a_gap_is_nobodys_silence() -> None:
    stage = silent()
    stage.now = START + 3600
    effects = stage.tell(Gap(3590.0))

    assert due(effects) == START + 3600 + 300
    assert explain(stage.session()).verdict == "supervisor-late"
    assert wake(stage, START + 3700) and warnings(stage) == []
    look(stage, START + 3900)
    assert warnings(stage) == ["upstream-stall"]


def test_a_short_gap_only_puts_it_off_by_itself() -> None:
    stage = silent()
    stage.now = START + 200

    assert due(stage.tell(Gap(10.0))) == START + 310


def test_what_was_read_before_a_gap_or_before_its_last_word_is_void() -> None:
    stage = silent(KILLS)
    wake(stage, START + 300)
    stage.now = START + 310
    stage.tell(Gap(5.0))
    stage.tell(Diagnosed("s1-1", replace(evidence(), at=START + 304)))
    assert warnings(stage) == []
    say(stage, What.ALIVE)
    stage.tell(Diagnosed("s1-1", replace(evidence(), at=START + 309)))
    assert warnings(stage) == []


def test_a_reading_that_was_made_late_concludes_nothing() -> None:
    stage = silent(KILLS)
    for at in (300, 400, 700, 800):
        look(stage, START + at, evidence(late_s=60.0))

    assert warnings(stage) == []
    assert explain(stage.session()).verdict == "supervisor-late"


def test_automatic_remedies_are_off_unless_somebody_wants_them() -> None:
    stage = silent()
    for at in range(300, 7200, 60):
        look(stage, START + at)

    assert "session.remedy" not in stage.log
    assert "stall_auto_kill" in kept(stage)


def test_what_was_told_of_a_stall_stands_when_the_next_reading_is_void() -> None:
    stage = silent()
    look(stage, START + 300)
    before = stage.machine.incidents.copy()
    assert open_kinds(stage) == ["stalled"]

    look(stage, START + 480, evidence(late_s=60.0))

    assert stage.machine.incidents == before, "nothing is concluded from our own lateness"
    look(stage, START + 540)
    assert (warnings(stage), stage.log.count("incident.opened")) == (["upstream-stall"] * 2, 1)


def drive(stage: Stage, until: float, seen: Evidence | None = None) -> list[Effect]:
    """Let time pass, with the same reading at every look; return what was done."""
    done: list[Effect] = []
    at = START + 300
    while at < until:
        effects = look(stage, at, seen)
        done += [effect for effect in effects if isinstance(effect, Interrupt | EndLaunch | EndChild)]
        if stage.session().state is State.ENDING:
            break
        at = max(due(effects), at + 1)
    return done


def test_a_stall_is_treated_after_its_timeout_in_two_windows_from_the_cheapest_up_and_charged() -> None:
    stage = silent(KILLS)
    done = drive(stage, START + 3600)
    remedies = [entry for entry in stage.entries if entry.kind == "session.remedy"]

    assert [type(effect) for effect in done] == [Interrupt, EndLaunch]
    assert remedies[0].at >= START + 600
    assert remedies[1].at - remedies[0].at >= MIN
    assert [intent.verb for intent in stage.intents] == ["stall-interrupt", "stall"], "each with its intent (P8)"
    assert stage.state() == "ending"
    stage.tell(Exited(make_exit(at=stage.now, signal=15)))
    assert (stage.deaths[0].cause, stage.deaths[0].charged) == (Cause.STALLED, True)
    assert open_kinds(stage) == []


def test_the_process_that_hangs_is_ended_first_and_whoever_goes_on_then_is_well() -> None:
    stage = silent(KILLS)
    say(stage, What.TOOL_STARTED, name="Bash", id="t1")
    hangs = evidence((child("passwd", 501, waits_for_input=True),))
    at = START + 300
    while not (done := [e for e in look(stage, at, hangs) if isinstance(e, EndChild)]):
        at += 30
    assert done[0].process.pid == 501
    assert stage.state() == "running"
    stage.tell(Stepped("s1-1", "end-child", True, "pid 501 is gone"))
    assert stage.entries[-1].kind == "session.remedied"
    assert stage.entries[-1].data == {"step": "end-child", "ok": True, "why": "pid 501 is gone"}
    stage.now += 5
    say(stage, What.TOOL_ENDED, id="t1")

    assert open_kinds(stage) == []
    assert health_of(stage.session()) == "ok"
    stage.now += 60
    stage.tell(Exited(make_exit(at=stage.now, exit_code=1)))
    assert stage.deaths[0].cause is Cause.CRASH, "what ends it later is not our doing"


@pytest.mark.parametrize("seen", [BLIND, evidence(io=None), evidence(sockets=None), evidence(state="D"), evidence(state="T")])
def test_what_is_unknown_or_has_no_remedy_is_only_told(seen: Evidence) -> None:
    stage = silent(KILLS)

    assert drive(stage, START + 7200, seen) == []
    assert warnings(stage)


def test_a_person_who_is_attached_is_never_disturbed() -> None:
    stage = silent(KILLS)
    stage.tell(Observed("s1-1", (), attached=1))

    assert drive(stage, START + 7200) == []
    assert kept(stage) == "a person is attached"


def test_a_person_who_leaves_is_seen_to_leave_and_the_stall_is_treated_then_with_all_its_proofs() -> None:
    stage = silent(KILLS)
    stage.tell(Observed("s1-1", (), attached=1))
    drive(stage, START + 900)
    seen = stage.tell(TimerFired("s1", TimerKind.PEOPLE))
    assert [type(effect) for effect in seen] == [Look, SetTimer]
    assert [effect.at for effect in seen if isinstance(effect, SetTimer)] == [stage.now + 2]

    stage.now += 2
    left = stage.tell(Observed("s1-1", (), attached=0))
    done = stage.tell(Diagnosed("s1-1", replace(evidence(), at=stage.now)))

    assert [type(effect) for effect in left if isinstance(effect, Diagnose)] == [Diagnose]
    assert [type(effect) for effect in done if isinstance(effect, Interrupt)] == [Interrupt]
    assert stage.tell(TimerFired("s1", TimerKind.PEOPLE)) == []


@pytest.mark.parametrize("seen", [evidence(tree_cpu=0.9), BLIND])
def test_a_person_who_leaves_an_agent_that_works_or_cannot_be_read_changes_nothing(seen: Evidence) -> None:
    stage = silent(KILLS)
    stage.tell(Observed("s1-1", (), attached=1))
    drive(stage, START + 900)

    stage.tell(Observed("s1-1", (), attached=0))
    done = stage.tell(Diagnosed("s1-1", replace(seen, at=stage.now + 2)))

    assert not [effect for effect in done if isinstance(effect, Interrupt | EndLaunch | EndChild)]


def test_who_attaches_where_no_remedy_is_wanted_is_not_waited_for() -> None:
    stage = silent()
    stage.tell(Observed("s1-1", (), attached=1))
    drive(stage, START + 900)

    assert stage.tell(TimerFired("s1", TimerKind.PEOPLE)) == []
    assert not [effect for effect in stage.tell(Observed("s1-1", (), attached=0)) if isinstance(effect, Diagnose)]


@pytest.mark.parametrize("state", [State.RUNNING, State.STARTING])
def test_a_person_who_came_before_an_interruption_is_spared_it(state: State) -> None:
    stage = silent(KILLS)
    at = START + 300
    while not any(isinstance(effect, Interrupt) for effect in look(stage, at)):
        at += 60
    stage.machine.sessions["s1"] = replace(stage.session(), state=state)
    stage.tell(Attended("s1-1", "a person is attached to its pane"))

    assert (stage.log[-1], kept(stage)) == ("session.spared", "a person is attached to its pane")
    assert drive(stage, at + 3600) == []


def test_a_person_who_comes_at_the_last_moment_is_spared_and_it_is_tried_again_when_they_leave() -> None:
    stage = silent(KILLS)
    drive(stage, START + 3600)
    stage.tell(Attended("s1-1", "a person is attached to its pane"))
    assert stage.state() == "running"
    stage.tell(Observed("s1-1", (), attached=0))

    at = stage.now
    while stage.session().state is State.RUNNING and at < stage.now + 3600:
        at += 60
        look(stage, at)
    assert stage.state() == "ending"


def test_a_finished_agent_that_lingers_is_ended_and_counts_as_finished() -> None:
    stage = Stage(now=START)
    spec = replace(make_spec(RestartPolicy(RestartWhen.ON_FAILURE)), runtime=RuntimeKind.HEADLESS)
    stage.tell(WatchdogsSet(Watchdogs(KILLS)), Declared("s1", "alpha", spec, "alice"), make_launched(at=START))
    say(stage, What.STARTED, What.PROMPT)
    effects = say(stage, What.RESULT, conversation="c", usage=Usage(10, 10))
    at = due(effects)
    assert at == START + 60
    while stage.session().state is State.RUNNING:
        look(stage, at)
        at += 30
    stage.tell(Exited(make_exit(at=stage.now, signal=15)))

    assert warnings(stage)[0] == "limbo"
    assert (stage.deaths[0].cause, stage.deaths[0].charged, stage.state()) == (Cause.FINISHED, False, "succeeded")


def test_a_headless_agent_that_reads_prompts_waits_for_the_next_and_does_not_linger() -> None:
    stage = Stage(now=START)
    spec = replace(make_spec(RestartPolicy(RestartWhen.ON_FAILURE)), runtime=RuntimeKind.HEADLESS)
    stage.tell(WatchdogsSet(Watchdogs(KILLS)), Declared("s1", "alpha", spec, "alice"))
    stage.tell(replace(make_launched(at=START), reads_input=True))
    say(stage, What.STARTED, What.PROMPT)
    say(stage, What.RESULT, conversation="c", usage=Usage(10, 10))

    assert not any(isinstance(effect, Diagnose) for effect in wake(stage, START + 3600))
    assert (stage.state(), warnings(stage)) == ("running", [])


def test_an_agent_that_says_nothing_at_all_is_late_only_if_its_kind_speaks() -> None:
    plain, speaks = Stage(now=START), Stage(now=START)
    for stage, launched in ((plain, make_launched(at=START)), (speaks, replace(make_launched(at=START), speaks=True))):
        stage.tell(Declared("s1", "alpha", make_spec(), "alice"), launched)
        look(stage, START + 300)

    assert (warnings(plain), warnings(speaks)) == ([], ["start-blocked"])


def test_a_second_run_that_never_begins_to_speak_is_told_of() -> None:
    stage = silent()
    stage.now = START + 5
    stage.tell(Exited(make_exit(at=stage.now, exit_code=1)))
    stage.now = START + 20
    stage.tell(TimerFired("s1", TimerKind.HOLD))
    stage.end()
    stage.tell(make_launched("s1-2", at=stage.now))
    look(stage, stage.now + 300)

    assert warnings(stage) == ["start-blocked"]
    assert stage.entries[-2].launch_id == "s1-2"


def test_what_an_agent_uses_while_it_waits_for_input_is_learned_and_is_no_work() -> None:
    burns = evidence(tree_cpu=0.3, main_cpu=0.3)
    stage, other = silent(), silent()
    say(stage, What.TURN_ENDED)
    for _ in range(5):
        stage.tell(Measured((("s1-1", 0.28),)))
    say(stage, What.PROMPT)
    other.tell(Measured((("s1-1", 0.28),)))  # it works: nothing is learned

    look(stage, START + 300, burns)
    look(other, START + 300, burns)
    assert (warnings(stage), warnings(other)) == (["upstream-stall"], [])


def test_a_configuration_holds_at_once_also_for_what_is_silent_already() -> None:
    stage = silent()
    stage.now = START + 30

    assert due(stage.tell(WatchdogsSet(Watchdogs(Watchdog(stall_after_s=10.0))))) == START + 10
    assert stage.tell(WatchdogsSet(Watchdogs(Watchdog(stall_after_s=10.0)))) == []


def test_a_role_goes_before_its_agent_which_goes_before_all() -> None:
    configured = Watchdogs(Watchdog(stall_after_s=1.0, tool_timeout_s=2.0), {"claude": Watchdog(tool_timeout_s=3.0)})

    assert thresholds_of("codex", Watchdog(), Watchdogs()) == Thresholds()
    assert thresholds_of("codex", Watchdog(), configured) == Thresholds(stall_after_s=1.0, tool_timeout_s=2.0)
    assert thresholds_of("claude", Watchdog(), configured) == Thresholds(stall_after_s=1.0, tool_timeout_s=3.0)
    own = Watchdog(tool_timeout_s=4.0, stall_auto_kill=True)
    assert thresholds_of("claude", own, configured) == Thresholds(stall_after_s=1.0, tool_timeout_s=4.0, stall_auto_kill=True)


def test_what_a_role_says_of_silence_holds_for_its_replicas() -> None:
    stage = Stage(now=START)
    role = RoleSpec("shop", "backend", "coder", 1, make_spec(), watchdog=Watchdog(stall_after_s=7.0))
    stage.tell(Applied(Manifest("shop", (role,)), "alice"))
    session_id = stage.machine.by_name["shop/backend/coder/0"]
    stage.tell(make_launched(f"{session_id}-1", START))
    effects = stage.tell(Heard(f"{session_id}-1", (Said(What.PROMPT, at=START),), "hook"))

    assert due(effects) == START + 7


def test_what_a_role_says_anew_of_silence_holds_at_once_for_what_is_silent_already() -> None:
    stage = Stage(now=START)
    role = RoleSpec("shop", "backend", "coder", 1, make_spec(), watchdog=Watchdog(stall_after_s=600.0))
    stage.tell(Applied(Manifest("shop", (role,)), "alice"))
    session_id = stage.machine.by_name["shop/backend/coder/0"]
    stage.tell(make_launched(f"{session_id}-1", START), Heard(f"{session_id}-1", (Said(What.PROMPT, at=START),), "hook"))
    changed = replace(role, watchdog=Watchdog(stall_after_s=30.0))

    assert due(stage.tell(Applied(Manifest("shop", (changed,)), "alice"))) == START + 30


def test_words_that_lead_nowhere_are_told_of_though_they_come() -> None:
    stage, at = silent(), START
    while at < START + 3600 and not warnings(stage):
        at += 10
        stage.now = at
        say(stage, What.ALIVE)
        if at >= (stage.machine.checked_at("s1") or 0.0):
            look(stage, at, evidence(received_s=1.0))

    assert warnings(stage) == ["livelock"]
    assert START + 1800 <= at <= START + 2400


@pytest.mark.parametrize("verdict", list(StallVerdict))
def test_every_ladder_ends(verdict: StallVerdict) -> None:
    tried, step = [], ""
    while (found := next_step(verdict, step, True, child())) is not None and found not in tried:
        tried.append(found)
        step = found

    assert len(tried) <= 4
    assert found is None or found == tried[-1] == "end", "the last one is tried again"


def test_people_come_first_among_what_keeps() -> None:
    assert KEEPS[0].why(None) == "a person is attached"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "seen", "verdict"),
    [
        ({"words": (What.THINKS,)}, evidence(received_s=1.0), "thinking"),
        ({"words": (What.RETRIES,), "until": START + 7200}, evidence(), "throttled"),
        ({"words": (What.WAITS,), "until": START + 7200}, evidence(), "waiting-timer"),
        ({"words": (What.TOOL_STARTED,), "name": "Bash", "id": "t1"}, evidence((child("cc", cpu=0.9),)), "tool-running"),
        ({"words": (What.THINKS,)}, evidence(io=1e6), "working"),
    ],
)
def test_nobody_is_warned_of_one_that_is_found_to_be_well(said: dict[str, Any], seen: Evidence, verdict: str) -> None:
    stage = silent()
    words = said.pop("words")
    say(stage, *words, **said)
    stage.now = START + 660

    stage.tell(Diagnosed(stage.launch().id, replace(seen, at=stage.now)))

    stall = stage.session().vitals.stall
    assert stall is not None and stall.verdict == verdict
    assert (warnings(stage), open_kinds(stage)) == ([], [])


def test_every_remedy_is_intended_by_its_name_before_it_is_tried() -> None:
    stage = silent(KILLS)
    stage.machine.sessions["s1"] = replace(stage.session(), launch=replace(stage.launch(), reads_input=True))
    done: list[str] = []
    at = START + 300
    while stage.session().state is State.RUNNING:
        done += [type(effect).__name__ for effect in look(stage, at) if isinstance(effect, Interrupt | CloseInput | EndLaunch)]
        at += 60

    assert done == ["Interrupt", "CloseInput", "EndLaunch"]
    assert [intent.verb.value for intent in stage.intents] == ["stall-interrupt", "stall-close-stdin", "stall"]


def test_the_end_of_a_child_that_hangs_is_intended_as_that() -> None:
    stage = silent(KILLS)
    say(stage, What.TOOL_STARTED, name="Bash", id="t1")
    at = START + 300
    while not stage.intents:
        look(stage, at, evidence((child("passwd", 501, waits_for_input=True),)))
        at += 30

    assert [intent.verb.value for intent in stage.intents] == ["stall-end-child"]
