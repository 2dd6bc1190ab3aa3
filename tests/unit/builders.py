"""Values to begin a test with: what a test does not care about has a plain default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vigil.core.effects import Amend, Effect, Examine, LogEntry, Persist, SetTimer, Spawn, Tell, TimerKind
from vigil.core.events import (
    Asked,
    Declared,
    Ended,
    Event,
    Exited,
    Hooked,
    Launched,
    LaunchFailed,
    Observed,
    Orphaned,
    Resumed,
    Swept,
    TimerFired,
)
from vigil.core.handlers.admission import PACE
from vigil.core.machine import Machine
from vigil.core.model.death import Cause, Confidence, Death, EvidenceLine, Exit, Intent, IntentVerb
from vigil.core.model.incident import Incident
from vigil.core.model.launch import Launch, ProcessId
from vigil.core.model.reading import Axis, AxisValue, Doubt, DoubtKind, Fact, Reading
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.session import Session, Spec, State, with_changes
from vigil.core.model.speech import Activity, Hook, Said, What
from vigil.core.model.team import Role
from vigil.core.rules.death import ExitFacts

BOOT = "b00t:1"
ALWAYS = RestartPolicy(RestartWhen.ALWAYS)
ON_FAILURE = RestartPolicy(RestartWhen.ON_FAILURE)
NEVER = RestartPolicy(RestartWhen.NEVER)


def make_process(pid: int = 100, start_ticks: int = 7, boot: str = BOOT) -> ProcessId:
    return ProcessId(pid, start_ticks, boot)


def make_launch(session_id: str = "s1", number: int = 1, **changes: Any) -> Launch:
    values: dict[str, Any] = {"id": f"{session_id}-{number}", "session_id": session_id, "number": number, "created_at": 1000.0}
    return Launch(**(values | changes))


def make_spec(policy: RestartPolicy = NEVER, command: tuple[str, ...] = ("sleep", "60")) -> Spec:
    return Spec(command, "/work", restart=policy)


def make_session(state: State = State.RUNNING, **changes: Any) -> Session:
    values: dict[str, Any] = {
        "id": "s1",
        "name": "alpha",
        "spec": make_spec(),
        "created_at": 1000.0,
        "state": state,
        "state_since": 1000.0,
        "why": "a test wants it",
    }
    return with_changes(Session(**values), **changes)


def make_intent(cause: Cause = Cause.OPERATOR, **changes: Any) -> Intent:
    values: dict[str, Any] = {
        "id": "s1-1-stop",
        "session_id": "s1",
        "launch_id": "s1-1",
        "verb": IntentVerb.STOP,
        "cause": cause,
        "actor": "alice",
        "reason": "",
        "at": 1000.0,
        "target": make_process(),
        "until": 1600.0,
    }
    return Intent(**(values | changes))


def make_exit(launch_id: str = "s1-1", at: float = 1100.0, **changes: Any) -> Exit:
    values: dict[str, Any] = {"launch_id": launch_id, "at": at, "observed_by": "daemon", "status_source": "pidfd"}
    return Exit(**(values | changes))


def make_case(
    intent: Intent | None = None, uptime_s: float | None = 100.0, when: RestartWhen = RestartWhen.NEVER, **exit_: Any
) -> ExitFacts:
    return ExitFacts(make_exit(**exit_), intent, uptime_s, when)


def make_death(cause: Cause = Cause.CRASH, **changes: Any) -> Death:
    values: dict[str, Any] = {
        "id": "d-s1-1",
        "session_id": "s1",
        "session": "alpha",
        "launch_id": "s1-1",
        "at": 1100.0,
        "observed_by": "daemon",
        "cause": cause,
        "exit_code": 1,
        "signal": None,
        "charged": True,
        "intent": None,
        "uptime_s": 100.0,
        "evidence": (EvidenceLine("pidfd", "the agent exited with 1"),),
        "confidence": Confidence.CERTAIN,
    }
    return Death(**(values | changes))


def axis_value(word: str) -> AxisValue | Activity:
    return AxisValue(word) if word in set(AxisValue) else Activity(word)


def make_reading(value: str = "alive", **changes: Any) -> Reading:
    values: dict[str, Any] = {"source": "pidfd", "conclusive": True, "observed_at": 1000.0, "since": 1000.0}
    return Reading(axis_value(value), **(values | changes))


def make_doubt(kind: DoubtKind = DoubtKind.CONFIRM, axis: Axis = Axis.PROCESS, **changes: Any) -> Doubt:
    values: dict[str, Any] = {"since": 1000.0, "attempts": 1, "evidence": "a test wants it", "sampled_at": 1000.0}
    return Doubt(kind, axis, **(values | changes))


def make_launched(launch_id: str = "s1-1", at: float = 1001.0, adopted: bool = False, names: tuple[str, ...] = ()) -> Launched:
    facts = tuple(
        Fact(axis, AxisValue.ALIVE, "pidfd", at, conclusive=True) for axis in (Axis.PROCESS, Axis.RUNTIME, Axis.SERVER)
    )
    root, server = make_process(101), make_process(102)
    return Launched(launch_id, at, make_process(100), root, server, "%0", facts, adopted, names)


def make_observed(launch_id: str = "s1-1", at: float = 1100.0, /, **axes: str) -> Observed:
    """Return a whole reading, as a look gives it: axes that are not named are alive, `ended` is dead as the kernel saw it."""
    words = {"server": "alive", "runtime": "alive", "process": "alive"} | axes
    return Observed(launch_id, tuple(make_fact(Axis(axis), word, at) for axis, word in words.items()))


def make_fact(axis: Axis = Axis.PROCESS, word: str = "alive", at: float = 1100.0) -> Fact:
    return Fact(axis, AxisValue.DEAD if word == "ended" else axis_value(word), "probe", at, conclusive=word == "ended")


def make_hook(activity: str = "working", at: float = 1100.0, launch_id: str = "s1-1") -> Hook:
    return Hook(launch_id, "Hook", at, (Said(What.DOES, name=activity),) if activity else ())


class Stage:
    """A machine, its clock and all it asked for; every answer is checked for its order."""

    def __init__(self, sessions: Iterable[Session] = (), now: float = 1000.0) -> None:
        self.machine = Machine(sessions)
        self.now = now
        self.deaths: list[Death] = []
        self.intents: list[Intent] = []
        self.log: list[str] = []
        self.entries: list[LogEntry] = []
        self.durable: dict[str, Session] = {}
        self.roles: dict[str, Role] = {}
        self.incidents: dict[str, Incident] = {}  # as they were last made durable, by id

    def tell(self, *events: Event) -> list[Effect]:
        """Tell the machine what happened; return what it asks for, without what is made durable and what is examined then."""
        asked: list[Effect] = []
        for event in events:
            recorded = len(self.deaths)
            effects = self.machine.handle(event, self.now)
            for number, effect in enumerate(effects):
                if isinstance(effect, Persist):
                    assert number == 0, "what must be durable comes first, and once"
                    self._persist(effect)
                elif not isinstance(effect, Examine | Amend):
                    asked.append(effect)
            examined = [effect.death for effect in effects if isinstance(effect, Examine)]
            assert examined == self.deaths[recorded:], "what is recorded as dead is examined, and nothing else"
        return asked

    def _persist(self, change: Persist) -> None:
        self.deaths += change.deaths
        self.intents += change.intents
        self.log += [entry.kind for entry in change.log]
        self.entries += change.log
        self.incidents |= {incident.id: incident for incident in change.incidents}
        for session_id in change.removed:
            self.durable.pop(session_id, None)
        for key in change.removed_roles:
            self.roles.pop(key, None)
        self.roles |= {role.key: role for role in change.roles}
        self.durable |= {session.id: session for session in change.sessions}

    def session(self, session_id: str = "s1") -> Session:
        return self.machine.sessions[session_id]

    def state(self, session_id: str = "s1") -> str:
        """Return a session's state, with what it waits for."""
        session = self.machine.sessions.get(session_id)
        if session is None:
            return "removed"
        return session.state.value + (f" ({session.hold.reason})" if session.hold else "")

    def declare(self, policy: RestartPolicy = NEVER, session_id: str = "s1", name: str = "alpha") -> list[Effect]:
        return self.tell(Declared(session_id, name, make_spec(policy), "alice"))

    def ask(self, verb: str, session_id: str = "s1") -> list[Effect]:
        return self.tell(Asked(IntentVerb(verb), session_id, "alice"))

    def launch(self, session_id: str = "s1") -> Launch:
        launch = self.session(session_id).launch
        assert launch is not None
        return launch

    def see(self, session_id: str = "s1", /, **axes: str) -> list[Effect]:
        """All axes of the current launch are read now."""
        return self.tell(make_observed(self.launch(session_id).id, self.now, **axes))

    def sweep(self, session_ids: Iterable[str], looked_at: int, /, **axes: str) -> list[Effect]:
        """A pass over so many launches finds that these are not plainly well."""
        seen = (make_observed(self.launch(session_id).id, self.now, **axes) for session_id in session_ids)
        return self.tell(Swept(tuple(seen), looked_at))

    def hear(self, activity: str, session_id: str = "s1") -> list[Effect]:
        """The agent of the current launch says what it is doing."""
        launch_id = self.launch(session_id).id
        return self.tell(Hooked(launch_id, (make_hook(activity, self.now, launch_id),)))

    def restart(self) -> list[Effect]:
        """The daemon is killed; another one begins with what was durable."""
        self.machine = Machine(self.durable.values(), self.incidents.values(), self.roles.values())
        return self.tell(Resumed())

    def exit(self, **found: Any) -> list[Effect]:
        """The agent of the current launch ends."""
        return self.tell(Exited(make_exit(self.launch().id, self.now, **found)))

    def end_launch(self, session_id: str) -> list[Effect]:
        """What there was of a session's current launch is verified gone."""
        return self.tell(Ended(self.launch(session_id).id, True, ""))

    def end(self, ok: bool = True) -> list[Effect]:
        """What there was of the current launch is verified gone, or is not."""
        return self.tell(Ended(self.launch().id, ok, "" if ok else "pid 100 lives on after KILL"))


def kinds(effects: Iterable[Effect]) -> list[str]:
    """Return what is asked for, by its kind; that humans are told is asked for in tests of its own."""
    return [type(effect).__name__ for effect in effects if not isinstance(effect, Tell)]


def told_kinds(effects: Iterable[Effect]) -> list[str]:
    """Return what is asked for beside what is looked at again."""
    return [kind for kind in kinds(effects) if kind != "SetTimer"]


def only_timer(effects: Iterable[Effect]) -> SetTimer:
    (timer,) = (effect for effect in effects if isinstance(effect, SetTimer))
    return timer


def only_spawn(effects: Iterable[Effect]) -> Spawn:
    (spawn,) = (effect for effect in effects if isinstance(effect, Spawn))
    return spawn


# Situations: how a session comes into each of its states, by what happened to it.


def starting(policy: RestartPolicy = NEVER) -> Stage:
    stage = Stage()
    stage.declare(policy)
    return stage


def running(policy: RestartPolicy = NEVER) -> Stage:
    stage = starting(policy)
    stage.now = 1001.0
    stage.tell(make_launched())
    stage.now = 1100.0
    return stage


def fleet(count: int, policy: RestartPolicy = NEVER) -> tuple[Stage, list[str]]:
    """Return a stage on which so many sessions run, and their ids."""
    stage, session_ids = Stage(), [f"s{number}" for number in range(1, count + 1)]
    for session_id in session_ids:
        stage.declare(policy, session_id, f"n-{session_id}")
        stage.tell(make_launched(f"{session_id}-1", stage.now))
    stage.now = 1100.0
    return stage, session_ids


def waiting_for_its_turn(policy: RestartPolicy = NEVER) -> Stage:
    stage = Stage()
    for number in range(PACE):
        stage.declare(session_id=f"other{number}", name=f"other{number}")
    stage.declare(policy)
    return stage


def suspect(policy: RestartPolicy = NEVER) -> Stage:
    stage = running(policy)
    stage.tell(Orphaned("s1-1", stage.now, "pane"))
    return stage


def being_stopped(policy: RestartPolicy = NEVER) -> Stage:
    stage = running(policy)
    stage.ask("stop")
    return stage


def being_stopped_while_it_starts(policy: RestartPolicy = NEVER) -> Stage:
    stage = starting(policy)
    stage.ask("stop")
    return stage


def being_restarted(policy: RestartPolicy = NEVER) -> Stage:
    stage = running(policy)
    stage.ask("restart")
    return stage


def being_parked(policy: RestartPolicy = NEVER) -> Stage:
    stage = running(policy)
    stage.ask("hibernate")
    return stage


def being_removed(policy: RestartPolicy = NEVER) -> Stage:
    stage = running(policy)
    stage.ask("rm")
    return stage


def being_replaced(policy: RestartPolicy = ALWAYS) -> Stage:
    stage = running(policy)
    stage.tell(Orphaned("s1-1", stage.now, "server"))
    return stage


def stuck(policy: RestartPolicy = NEVER) -> Stage:
    stage = being_stopped(policy)
    stage.end(ok=False)
    return stage


def finished_and_coming_back(policy: RestartPolicy = ALWAYS) -> Stage:
    stage = running(policy)
    stage.exit(exit_code=0)
    return stage


def coming_back(policy: RestartPolicy = ALWAYS) -> Stage:
    stage = finished_and_coming_back(policy)
    stage.now += policy.base_s
    stage.tell(TimerFired("s1", TimerKind.HOLD))
    return stage


def crashed(policy: RestartPolicy = ALWAYS) -> Stage:
    stage = running(policy)
    stage.exit(exit_code=1)
    return stage


def crashed_and_coming_back(policy: RestartPolicy = ALWAYS) -> Stage:
    stage = crashed(policy)
    stage.now += 2 * policy.base_s
    stage.tell(TimerFired("s1", TimerKind.HOLD))
    return stage


def stopped(policy: RestartPolicy = NEVER) -> Stage:
    stage = being_stopped(policy)
    stage.exit(signal=15)
    stage.end()
    return stage


def parked(policy: RestartPolicy = NEVER) -> Stage:
    stage = being_parked(policy)
    stage.exit(signal=15)
    stage.end()
    return stage


def failed(policy: RestartPolicy = NEVER) -> Stage:
    stage = running(policy)
    stage.exit(exit_code=1)
    return stage


def saturated(policy: RestartPolicy = RestartPolicy(RestartWhen.ALWAYS, max_restarts=1)) -> Stage:  # noqa: B008
    stage = crashed_and_coming_back(policy)
    stage.end()
    stage.tell(make_launched("s1-2", stage.now))
    stage.exit(exit_code=1)
    return stage


def launch_failed(policy: RestartPolicy = NEVER) -> Stage:
    stage = starting(policy)
    stage.tell(LaunchFailed("s1-1", stage.now, "no such file"))
    return stage


def succeeded(policy: RestartPolicy = NEVER) -> Stage:
    stage = running(policy)
    stage.exit(exit_code=0)
    return stage


SITUATIONS = {
    builder.__name__: builder
    for builder in (
        starting,
        waiting_for_its_turn,
        running,
        suspect,
        stuck,
        being_stopped,
        being_stopped_while_it_starts,
        being_restarted,
        being_parked,
        being_removed,
        being_replaced,
        finished_and_coming_back,
        coming_back,
        crashed,
        crashed_and_coming_back,
        parked,
        stopped,
        failed,
        launch_failed,
        saturated,
        succeeded,
    )
}


def situations(*states: State) -> list[str]:
    """Return the names of the situations in these states; without any, of all."""
    return [name for name, build in SITUATIONS.items() if not states or build().session().state in states]
