"""Every kind of incident: what opens it, how soon a human should know, and what ends it; a row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.unit.builders import ALWAYS, Stage, fleet, running, saturated
from tests.unit.core.handlers import test_conversation as waking
from tests.unit.core.handlers import test_wall as walls
from tests.unit.core.handlers import test_watchdog as watching
from tests.unit.incidents import die, hang, relaunched, told, waits
from vigil.core.effects import TimerKind
from vigil.core.events import Closed, Condition, Configured, Notified, Reached, TimerFired
from vigil.core.model.incident import IncidentKind, Notice, NoticeState, Severity
from vigil.core.model.speech import What

URGENT, ACTION, WARNING = Severity.URGENT, Severity.ACTION, Severity.WARNING


def stuck() -> Stage:
    stage = running()
    hang(stage, ["s1"])
    return stage


def asking() -> Stage:
    stage = running()
    waits(stage, True)
    return stage


def stalled() -> Stage:
    stage = watching.silent()
    watching.look(stage, watching.START + 6 * watching.MIN)
    return stage


def without_its_server() -> Stage:
    stage = running(ALWAYS)
    die(stage, "s1", server_ended=True, server_signal=9)
    return stage


def many_dead() -> Stage:
    stage, sessions = fleet(6, ALWAYS)
    for session_id in sessions:
        die(stage, session_id, exit_code=1)
    return stage


def all_up_again(stage: Stage) -> None:
    for session_id in list(stage.machine.sessions):
        hold = stage.session(session_id).hold
        stage.now = max(stage.now, (hold.until or 0.0) if hold is not None else 0.0) + 10
        stage.tell(TimerFired(session_id, TimerKind.HOLD))
        relaunched(stage, session_id)


def poisoned() -> Stage:
    stage = waking.resumed()
    stage.exit(exit_code=0)
    stage.tell(Closed(stage.launch().id, (), transcript=waking.there()))
    waking.end(stage)
    return stage


def begun_anew(stage: Stage) -> None:
    waking.wake(stage)
    waking.come_up(stage)


def at_a_wall(said: object) -> Callable[[], Stage]:
    def opens() -> Stage:
        stage = walls.fleet(1)
        walls.say(stage, "s1", said)  # type: ignore[arg-type]
        return stage

    return opens


def past_it(stage: Stage) -> None:
    stage.now += 7200
    stage.ask("reset")
    walls.say(stage, "s1", walls.PROMPT, walls.TOOL, walls.STOP)


def given_up_by_a_route() -> Stage:
    stage = running()
    stage.tell(Configured(("ops", "phone")))
    (incident,) = [one for one in told(waits(stage, True)) if one.kind is IncidentKind.NEEDS_INPUT]
    stage.tell(Notified(incident.id, Notice(f"{incident.id}/0/0", "ops", NoticeState.FAILED, stage.now, attempts=8)))
    waits(stage, False)
    return stage


def of_the_host(kind: IncidentKind) -> tuple[Callable[[], Stage], Callable[[Stage], object]]:
    def opens() -> Stage:
        stage = running()
        stage.tell(Condition(kind, True, "it is so", stage.now))
        return stage

    return opens, lambda stage: stage.tell(Condition(kind, False, "it is over", stage.now))


@dataclass(frozen=True)
class Row:
    """A kind, its severity by the manual, how it comes about, and how it ends."""

    kind: IncidentKind
    severity: Severity
    opens: Callable[[], Stage]
    ends: Callable[[Stage], object]
    of_session: bool = True


K = IncidentKind
HOST = {
    K.KEEPER_LOST: URGENT,
    K.STORE_LOST: URGENT,
    K.EXHAUSTED: URGENT,
    K.UNHEALTHY_PROBER: WARNING,
    K.LATE_DAEMON: WARNING,
    K.LOW_MEMORY: WARNING,
}
ROWS = (
    Row(K.STUCK, URGENT, stuck, lambda stage: stage.see()),
    Row(K.SATURATED, URGENT, saturated, lambda stage: stage.ask("reset")),
    Row(K.SERVER_DIED, URGENT, without_its_server, all_up_again),
    Row(K.MASS_DEATH, URGENT, many_dead, all_up_again, of_session=False),
    Row(K.NEEDS_INPUT, ACTION, asking, lambda stage: waits(stage, False)),
    Row(K.STALLED, ACTION, stalled, lambda stage: watching.say(stage, What.THINKS)),
    Row(K.AUTH, ACTION, at_a_wall(walls.LOCKED_OUT), past_it),
    Row(K.TAINTED, ACTION, poisoned, begun_anew),
    Row(K.UNDELIVERED, ACTION, given_up_by_a_route, lambda stage: stage.tell(Reached("ops")), of_session=False),
    Row(K.LIMIT, WARNING, at_a_wall(walls.limit(2000.0)), past_it),
    *(Row(kind, severity, *of_the_host(kind), of_session=False) for kind, severity in HOST.items()),
)


def test_every_kind_has_its_row() -> None:
    assert sorted(row.kind for row in ROWS) == sorted(IncidentKind)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.kind))
def test_a_kind_opens_once_with_its_severity_and_resolves_when_its_condition_ends(row: Row) -> None:
    stage = row.opens()

    (incident,) = stage.machine.incidents.values()
    assert (incident.kind, incident.severity, incident.resolved_at) == (row.kind, row.severity, None)
    assert (incident.session_id is not None) is row.of_session
    assert incident.why
    stage.restart()
    assert [one.id for one in stage.machine.incidents.values()] == [incident.id], "a new daemon opens nothing anew"

    row.ends(stage)

    assert [one.kind for one in stage.machine.incidents.values()] == []
    over = stage.machine._book.find_incident(incident.id)
    assert over is not None and over.resolved_at is not None and over.resolution
