"""Mutants: every row of every decision table of the core, dropped or turned into its opposite. The promises must notice.

A check that cannot fail says nothing; so each mutant is lived with until a promise breaks. What no world can tell from the
original yet is listed with its reason: rows for causes and conditions that nothing produces so far.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tests.sim.run import Outcome, live_through
from tests.sim.scenarios import draw_plan
from vigil.core import machine
from vigil.core.events import (
    Adopted,
    Applied,
    Condition,
    Configured,
    Diagnosed,
    Heard,
    Interrupted,
    KeeperHeard,
    Measured,
    MemoryRead,
    MessageQueued,
    MessageSent,
    MessageTyped,
    Noted,
    Reached,
    ReactionEnded,
    Recovered,
    RuntimeEnded,
    ShiftAborted,
    ShiftAsked,
    Sighted,
    Stepped,
    Unordered,
    WatchdogsSet,
    Weighed,
    Withdrawn,
)
from vigil.core.handlers import account, admission, charge, doubt, hold, intent, operator, shift, takeover, team
from vigil.core.model.death import Cause
from vigil.core.model.incident import IncidentKind, NoticeState, Severity
from vigil.core.model.progress import IDLE
from vigil.core.model.reading import DoubtKind
from vigil.core.model.restart import RestartWhen
from vigil.core.model.session import State
from vigil.core.model.sighting import ReapClass
from vigil.core.model.speech import Activity, What
from vigil.core.rules import (
    activity,
    death,
    escalation,
    heartbeat,
    liveness,
    notice,
    quiet_hours,
    reap,
    restart,
    storm,
    wake,
    wall,
)
from vigil.core.rules import incident as incident_rules
from vigil.core.rules.liveness import Cell, DoubtPatience, LifeVerdict
from vigil.core.rules.stall import schedule

SEEDS = 60  # a mutant that none of them notices has survived
UNMET = {Cause.STALLED}  # where agents hang nobody comes at the last moment: unit/core/handlers/test_watchdog has that
# A line in the log, for people; transcripts, which no simulated agent writes yet; messages, which nobody sends there; a
# configuration without reactions, what people type to try a route, and memory; nobody loses the store there,
# or adopts anything. Who hangs is simulated in test_silences: see `of_silence`.
UNTOLD = {Noted, Heard, MessageQueued, MessageTyped, MessageSent, Weighed, Reached, Configured, ReactionEnded}
UNTOLD |= {Recovered, Adopted}
UNTOLD |= {WatchdogsSet, Measured, Diagnosed, Stepped}
UNASKED = ("archive", "release")
HEARD_IN = {
    Condition: "killed",
    Interrupted: "killed",
    KeeperHeard: "killed",
    Unordered: "killed",
    RuntimeEnded: "tmux",
    Withdrawn: "disk",
    Applied: "teams",
    MemoryRead: "teams",
    ShiftAsked: "shifts",
    ShiftAborted: "shifts",
    Sighted: "people",
}
# No simulated agent says these: streams and transcripts do; what a sub-agent does is a sign of life before the table is asked.
UNSAID = {What.ERROR, What.RESULT, What.WAITS, What.RETRIES, What.SUBAGENT_STARTED, What.SUBAGENT_ENDED}
NO_HARM = {"TRIAL_S"}  # how many are tried at once is no promise
SAID_WHILE_BUSY = {Activity.WAITING_HUMAN, Activity.THROTTLED}  # a turn or a tool that is open keeps too
PLAINLY_SAID = {"waiting-timer", "throttled", "idle"}  # the others are told apart by what is open
# What cannot be read is in doubt from the first such reading on, and that keeps it already.
SECOND_LOCKS = {"its process cannot be read", "its tmux server does not answer"}
QUIET_KINDS = {
    IncidentKind.TAINTED,
    IncidentKind.UNHEALTHY_PROBER,
    IncidentKind.UNDELIVERED,
    IncidentKind.STORE_LOST,  # nobody loses the store there
}


@dataclass(frozen=True)
class Mutant:
    """One row changed."""

    table: str
    row: str
    change: Callable[[], Any]  # a context in which the row is changed
    scenario: str | None = None

    @property
    def name(self) -> str:
        """The table and its row."""
        return f"{self.table}: {self.row}"


def hunt(mutant: Mutant, seeds: int = SEEDS) -> Outcome | None:
    """Live with a mutant until a promise breaks that holds without it; None if it survives."""
    for seed in range(seeds):
        scenario = mutant.scenario if seed % 2 == 0 else None
        with mutant.change():
            outcome = live_through(draw_plan(seed, scenario))
        if outcome.broken and not breaks_anyway(seed, scenario):
            return outcome
    return None


@cache
def breaks_anyway(seed: int, scenario: str | None) -> bool:
    """Say whether a world breaks a promise as it is: what it says of a mutant then is nothing."""
    return bool(live_through(draw_plan(seed, scenario)).broken)


def mutants() -> Iterator[Mutant]:
    """Yield all of them, table by table."""
    yield from _cells()
    yield from _patience()
    yield from _deaths()
    yield from _charges()
    yield from _incidents()
    yield from _notices()
    yield from _handlers()
    yield from _keepers()
    yield from _teams()
    yield from _shifts()
    yield from _words()
    yield from _wakes()
    yield from _reaps()


def _cells() -> Iterator[Mutant]:
    """DESIGN 4.2: each cell as if all were well, and as if it were dead."""
    for (runtime, process), cell in liveness.TABLE.items():
        for instead in {Cell.LIVE, Cell.DEAD} - {cell}:
            row = f"{runtime}/{process} is {instead.name.lower()}"
            yield Mutant("liveness", row, _set(liveness.TABLE, (runtime, process), instead), "confused")
    for verdict in LifeVerdict:
        if verdict is not LifeVerdict.LIVE:
            yield Mutant("verdicts", f"{verdict} is live", _set(doubt.VERDICTS, verdict, doubt.live), "confused")


def _patience() -> Iterator[Mutant]:
    for kind, patience in liveness.PATIENCE.items():
        hasty = DoubtPatience(0.0, 1, 1.0, samples=min(1, patience.samples))
        yield Mutant(
            "patience", f"{kind} is hasty", _set(liveness.PATIENCE, kind, hasty), "tmux" if kind == "wedged" else "blind"
        )
        if kind in (DoubtKind.WEDGED, DoubtKind.UNREADABLE, DoubtKind.ORACLE):
            endless = replace(patience, stuck_attempts=liveness.NEVER)
            yield Mutant("patience", f"{kind} is endless", _set(liveness.PATIENCE, kind, endless), "confused")
    for kind in sorted(doubt.UNMOVED):
        moved = doubt.UNMOVED - {kind}
        yield Mutant("doubts", f"a word ends {kind}", _swap(doubt, "UNMOVED", moved), "tmux")
    for cell in (Cell.BLIND, Cell.PANE, Cell.CONFIRM, Cell.ORPHANED):
        instead = DoubtKind.UNREADABLE
        yield Mutant("doubts", f"{cell.name} is {instead}", _set(liveness.DOUBT_OF, cell, instead), "confused")
    for cell in (Cell.UNREADABLE, Cell.ORACLE):
        yield Mutant("doubts", f"{cell.name} is blind", _set(liveness.DOUBT_OF, cell, DoubtKind.BLIND), "confused")


def _deaths() -> Iterator[Mutant]:
    """DESIGN 4.4: each rule of what a death is called."""
    for number, rule in enumerate(death.RULES):
        rest = death.RULES[:number] + death.RULES[number + 1 :]
        yield Mutant("causes", f"{rule.cause} ({number}) is dropped", _swap(death, "RULES", rest), _scenario(rule.cause))
    for number, row in enumerate(death.RESERVES):
        left = death.RESERVES[:number] + death.RESERVES[number + 1 :]
        scenario = "walls" if number in (2, 3) else "killed"
        yield Mutant("how sure", f"{row.confidence} ({number}) is dropped", _swap(death, "RESERVES", left), scenario)


def _charges() -> Iterator[Mutant]:
    """DESIGN 4.4: what each death costs, and after which a session comes back."""
    for cause in Cause:
        if cause is Cause.OPERATOR:  # what follows an operator's word is theirs
            continue
        for instead in ("FREE", "COUNTED"):
            if cause in getattr(restart, instead):
                continue
            words = f"{cause} is {'charged' if instead == 'COUNTED' else 'free'}"
            yield Mutant("charges", words, _moved(cause, instead), _scenario(cause))
        for when in RestartWhen if cause is not Cause.POLICY else ():  # what a shift ends is removed
            back = restart.COMES_BACK[when]
            if cause is Cause.EARLY_EXIT and when is not RestartWhen.ALWAYS:
                continue  # under the others it is called finished
            row = f"{when} after {cause} is {'no' if cause in back else 'yes'}"
            yield Mutant("comes back", row, _set(restart.COMES_BACK, when, back ^ {cause}), _scenario(cause))
    for name, value in (("LIMIT_CAP_S", 3600.0), ("PASSED_S", 5.0), ("LONGEST_S", 60.0), ("TRIAL_S", 0.0)):
        if name not in NO_HARM:
            yield Mutant("walls", f"{name} is {value:g}", _swap(wall, name, value), "walls")
    yield Mutant("walls", "nobody waits for others'", _swap(account, "_of_account", lambda _book, session: [session]), "walls")


def _charge_of(cause: Cause) -> str:
    return next(name for name in ("FREE", "COUNTED", "HELD") if cause in getattr(restart, name))


def _moved(cause: Cause, instead: str) -> Callable[[], Any]:
    """Return a context in which a death costs something else."""
    before = _charge_of(cause)
    less, more = getattr(restart, before) - {cause}, getattr(restart, instead) | {cause}
    return _both(_swap(restart, before, less), _swap(restart, instead, more))


def _scenario(cause: Cause) -> str:
    """Return the kind of bad day on which there are many such deaths."""
    if cause in (Cause.OOM, Cause.LIMIT, Cause.AUTH):
        return "walls"
    by_cause = {Cause.HOST_REBOOTED: "host", Cause.SERVER_DIED: "tmux", Cause.POLICY: "shifts", Cause.UNHEALTHY: "signs"}
    return by_cause.get(cause, "crashes")


def _incidents() -> Iterator[Mutant]:
    for number, rule in enumerate(incident_rules.RULES):
        if rule.kind in QUIET_KINDS:
            continue
        rest = incident_rules.RULES[:number] + incident_rules.RULES[number + 1 :]
        scenario = "walls" if rule.kind in (IncidentKind.LIMIT, IncidentKind.AUTH) else "tmux"
        yield Mutant("incidents", f"{rule.kind} is dropped", _swap(incident_rules, "RULES", rest), scenario)
    for kind, severity in escalation.SEVERITY.items():
        if kind not in QUIET_KINDS:
            instead = Severity.WARNING if severity is not Severity.WARNING else Severity.URGENT
            by_kind = {"late-daemon": "disk", "mass-death": "many", "limit": "walls", "auth": "walls", "low-memory": "teams"}
            scenario = by_kind.get(kind, "tmux")
            yield Mutant("severity", f"{kind} is {instead}", _set(escalation.SEVERITY, kind, instead), scenario)


def _notices() -> Iterator[Mutant]:
    """P12: what was delivered is over, pauses grow, and what comes back is the same one only for a while."""
    yield Mutant("fates", "sent is tried again", _swap(notice, "FATES", notice.FATES[1:]), "disk")
    at_once = (*notice.FATES[:-1], notice.FateRow(NoticeState.FAILED, lambda _: True))
    yield Mutant("fates", "what failed is given up at once", _swap(notice, "FATES", at_once), "disk")
    yield Mutant("pauses", "pauses shrink", _swap(notice, "FACTOR", 0.5), "disk")
    for_days = _both(_swap(incident_rules, "SAME_S", 1e5), _swap(incident_rules, "LONGEST_SAME_S", 1e5))
    yield Mutant("flaps", "what comes back after hours is the same", for_days, "people")
    yield from _telling()


def _telling() -> Iterator[Mutant]:
    """Who is told when: by the ladder, not in quiet hours, not who knows of it, and of a storm in one piece."""
    never = _swap(escalation, "_repeat_at", lambda step, base, now: 0 if now >= base + step.after_s else -1)
    yield Mutant("ladder", "nobody is reminded", never, "tmux")
    early = _swap(escalation, "_moment", lambda step, base, number: base + number * (step.repeat_s or 0.0))
    yield Mutant("ladder", "every step is at once", early, "people")
    yield Mutant("ladder", "nobody hears that it is over", _swap(escalation, "_all_clears", lambda _incident, _now: []), "tmux")
    yield Mutant("reminders", "a question is told again too often", _swap(schedule, "REMINDERS", 1.0), "people")
    yield Mutant("quiet", "nothing is urgent", _swap(quiet_hours, "ALWAYS", frozenset()), "tmux")
    yield Mutant("quiet", "everything passes", _swap(quiet_hours, "ALWAYS", frozenset(Severity)), "tmux")
    yield Mutant("quiet", "it never ends", _swap(quiet_hours, "_end", lambda _rule, at: at + 3600.0), "people")
    yield Mutant("folding", "a storm is a hundred notices", _swap(storm, "STORM", 1000), "many")
    yield Mutant("folding", "a storm never calms", _both(*_calms_never()), "many")
    yield Mutant("folding", "a route gathers for a minute", _swap(storm, "GATHER_S", 60.0), "tmux")


def _calms_never() -> tuple[Callable[[], Any], Callable[[], Any]]:
    return _swap(storm, "STORM_S", 600.0), _swap(storm, "STORM_QUIET_S", 600.0)


def _handlers() -> Iterator[Mutant]:
    """Every event, every verb and every timer has an answer."""
    for event in machine.HANDLERS:
        if event not in UNTOLD:
            yield Mutant(
                "events", f"{event.__name__} is not heard", _set(machine.HANDLERS, event, _nothing), HEARD_IN.get(event)
            )
    for verb in (verb for verb in operator.VERBS if verb not in UNASKED):
        yield Mutant("verbs", f"{verb} does nothing", _set(operator.VERBS, verb, _nothing), "people")
    for reason in operator.ENDED_BY_RESET:
        left = tuple(other for other in operator.ENDED_BY_RESET if other != reason)
        scenario = {"backoff": "people", "saturated": "people", "cold-start": "teams"}.get(reason, "walls")
        yield Mutant("reset", f"{reason} goes on", _swap(operator, "ENDED_BY_RESET", left), scenario)
    for kind in machine.TIMERS.keys() - {"silence"}:  # see `of_silence`
        scenario = {"incidents": "tmux", "pulse": "signs", "memory": "teams", "drain": "shifts"}.get(kind, "everything")
        yield Mutant("timers", f"{kind} does nothing", _set(machine.TIMERS, kind, _nothing), scenario)
    for kind in machine.ROLE_TIMERS:
        scenario = "shifts" if kind == "shift" else "teams"
        yield Mutant("timers", f"{kind} of a role does nothing", _set(machine.ROLE_TIMERS, kind, _nothing), scenario)


def _keepers() -> Iterator[Mutant]:
    """P15: our own failures are charged to nobody, and who waits for a keeper gets one."""
    charged = _swap(restart, "is_ours", lambda _death: False)
    yield Mutant("ours", "what Vigil lost follows its policy", charged, "killed")
    again = _swap(restart, "is_ours", lambda death: death is not None and death.cause is Cause.LAUNCH_FAILED)
    yield Mutant("ours", "what failed by itself is launched again for nothing", again, "killed")
    unheld = _swap(admission, "wait_for_keeper", admission.begin_launch)
    yield Mutant("keeper", "launches do not wait for one", unheld, "killed")
    left = tuple(reason for reason in takeover.AT_ONCE if reason != "keeper")
    yield Mutant("keeper", "a new daemon lets them wait", _swap(takeover, "AT_ONCE", left), "killed")


def of_silence() -> Iterator[Mutant]:
    """Yield what only a fleet of silent agents notices: see test_silences."""
    for event in (Heard, WatchdogsSet, Diagnosed):
        yield Mutant("events", f"{event.__name__} is not heard", _set(machine.HANDLERS, event, _nothing))
    yield Mutant("timers", "silence does nothing", _set(machine.TIMERS, "silence", _nothing))


def _teams() -> Iterator[Mutant]:
    """DESIGN 4.3, 4.4: what a manifest asks for, one charge for an event, and when silence is no reason to end anybody."""
    for do in team.STEPS:
        yield Mutant("steps", f"{do} does nothing", _set(team.STEPS, do, _nothing), "teams")
    for seconds in (0.0, 3.0):
        yield Mutant("charging", f"an event lasts {seconds:g} s", _swap(charge, "EVENT_S", seconds), "teams")
    for number, row in enumerate(heartbeat.KEEPS):
        if row.why in SECOND_LOCKS:
            continue
        left = heartbeat.KEEPS[:number] + heartbeat.KEEPS[number + 1 :]
        yield Mutant("keeps", f"{row.why} is dropped", _swap(heartbeat, "KEEPS", left), "signs")
    for state in hold.WAITING:
        yield Mutant("waits", f"{state} waits for nothing", _swap(hold, "WAITING", hold.WAITING - {state}), "teams")


def _shifts() -> Iterator[Mutant]:
    """A shift: each of its phases, who keeps a slot, who is not disturbed, and whose intents spare people."""
    for phase in shift.PHASES:
        yield Mutant("phases", f"{phase} is for ever", _set(shift.PHASES, phase, _nothing), "shifts")
    for state in sorted(shift.KEPT - {State.PARKED}):
        yield Mutant("kept", f"{state} is replaced", _swap(shift, "KEPT", shift.KEPT - {state}), "shifts")
    for activity_ in sorted(shift.QUIET):
        yield Mutant("quiet", f"{activity_} is disturbed", _swap(shift, "QUIET", shift.QUIET - {activity_}), "shifts")
    for cause in sorted(intent.BY_POLICY - UNMET):
        left = intent.BY_POLICY - {cause}
        yield Mutant("intents", f"{cause} spares nobody", _swap(intent, "BY_POLICY", left), _scenario(cause))


def _words() -> Iterator[Mutant]:
    """DESIGN 4.1: what agents' words mean."""
    for what, rule in activity.RULES.items():
        if what not in UNSAID:
            instead = activity._ends if rule is activity._signs else activity._signs
            row = f"{what} {'ends a turn' if rule is activity._signs else 'is a sign of life'}"
            yield Mutant("words", row, _set(activity.RULES, what, instead), "people")
    for said_plainly, meant in activity.PLAIN.items():
        instead_of = IDLE if meant != IDLE else activity.PLAIN["working"]
        if said_plainly in PLAINLY_SAID:
            yield Mutant("plain words", f"{said_plainly} is another", _set(activity.PLAIN, said_plainly, instead_of), "people")
    for what in sorted(
        activity.OF_SUBAGENTS & {What.ASKED}
    ):  # there its answers come with the end of a tool, and that answers too
        yield Mutant(
            "sub-agents", f"{what} is theirs", _swap(activity, "OF_SUBAGENTS", activity.OF_SUBAGENTS - {what}), "people"
        )


def _wakes() -> Iterator[Mutant]:
    """DESIGN 4.6: who is to blame, and who is not woken."""
    for ended in (wake.PARKED, Cause.OPERATOR, Cause.KILLED_BY_UNKNOWN):
        blamed = _both(
            _swap(wake, "BLAMELESS", wake.BLAMELESS - {ended}),
            _swap(wake, "BROKEN", wake.BROKEN | {ended}),
        )
        yield Mutant("wake", f"{ended} is to blame", blamed, "people")
    for cause in (Cause.CRASH, Cause.UNOBSERVED):
        trusted = _both(
            _swap(wake, "BLAMELESS", wake.BLAMELESS | {cause}),
            _swap(wake, "BROKEN", wake.BROKEN - {cause}),
        )
        yield Mutant("wake", f"{cause} is not to blame", trusted, "people")
    for number, row in ((1, "what is stopped"), (2, "a crash loop")):
        left = wake.ROWS[:number] + wake.ROWS[number + 1 :]
        yield Mutant("wake", f"{row} is woken", _swap(wake, "ROWS", left), "people")


def _reaps() -> Iterator[Mutant]:
    """DESIGN 4.5: each row that keeps, dropped; and what counts as busy."""
    for number, rule in enumerate(reap.RULES):
        if rule.kind in (ReapClass.ATTACHED, ReapClass.BUSY, ReapClass.UNKNOWN):
            left = reap.RULES[:number] + reap.RULES[number + 1 :]
            yield Mutant("reap", f"{rule.kind} is no reason", _swap(reap, "RULES", left), "people")
    for said in sorted(set(reap.BUSY) & SAID_WHILE_BUSY):
        left_ = {known: words for known, words in reap.BUSY.items() if known is not said}
        yield Mutant("reap", f"{said} is not busy", _swap(reap, "BUSY", left_), "people")


def _nothing(*_: object) -> None:
    """Answer nothing."""


def _set(table: MutableMapping[Any, Any], key: Any, value: Any) -> Callable[[], Any]:
    """Return a context in which one row of a mapping says something else."""

    @contextmanager
    def change() -> Iterator[None]:
        before = table[key]
        table[key] = value
        try:
            yield
        finally:
            table[key] = before

    return change


def _swap(module: Any, name: str, value: Any) -> Callable[[], Any]:
    """Return a context in which a table is another one, wherever the core has it by that name."""

    @contextmanager
    def change() -> Iterator[None]:
        before = getattr(module, name)
        core = [found for key, found in sys.modules.items() if key.startswith("vigil.core.")]
        holders = [found for found in core if getattr(found, name, None) is before]
        for found in holders:
            setattr(found, name, value)
        try:
            yield
        finally:
            for found in holders:
                setattr(found, name, before)

    return change


def _both(one: Callable[[], Any], other: Callable[[], Any]) -> Callable[[], Any]:
    @contextmanager
    def change() -> Iterator[None]:
        with one(), other():
            yield

    return change
