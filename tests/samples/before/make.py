"""Make a database of this version, and what its loader returns: `python -m tests.samples.before.make`.

The real machine decides and the real store writes; only the world is played. Every scene leaves a session in another situation.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from tests.unit.stalls import child, evidence
from tests.unit.test_before import DUMP, LOADED, RECORDING, load, loaded

from vigil import __version__
from vigil.core.effects import Effect, Persist
from vigil.core.events import (
    Acked,
    Adopted,
    Applied,
    Asked,
    Closed,
    Condition,
    Configured,
    Declared,
    Diagnosed,
    Ended,
    Event,
    Exited,
    Found,
    Gap,
    Heard,
    Launched,
    LaunchFailed,
    MemoryRead,
    MessageQueued,
    MessageTyped,
    Notified,
    Observed,
    Reached,
    ReactionEnded,
    Resumed,
    ShiftAsked,
    Sighted,
    Swept,
    TimerFired,
    WatchdogsSet,
    Weighed,
)
from vigil.core.evidence import Evidence
from vigil.core.incident import Incident, IncidentKind, Notice
from vigil.core.machine import Machine
from vigil.core.model import (
    Axis,
    Cause,
    Exit,
    Fact,
    Host,
    Kept,
    Launch,
    Message,
    Oom,
    ProcessId,
    RestartPolicy,
    RestartWhen,
    RuntimeKind,
    Session,
    Spec,
    State,
    Transcript,
    Words,
)
from vigil.core.patience import Watchdogs
from vigil.core.reactions import Reaction
from vigil.core.reap import Glimpse, Guard, Policy
from vigil.core.roles import Health, Manifest, RoleSpec, Watchdog
from vigil.core.said import Said, Usage, What
from vigil.recording.codec import dump
from vigil.recording.lines import STOPPED, begin_line, end_line, entry_line
from vigil.store.opening import BIRTHS_FROM
from vigil.store.store import Store

T0 = 1_790_000_000.0  # in September 2026
BOOT = "00000000-0000-0000-0000-000000000000:1"
MIN, HOUR = 60.0, 3600.0
EVENTS_KEPT = 12
ALWAYS = RestartPolicy(RestartWhen.ALWAYS, base_s=10.0, factor=3.0, cap_s=600.0, jitter=0.2, reset_after_s=900.0)
FEW = replace(ALWAYS, max_restarts=1)
ON_FAILURE = RestartPolicy(RestartWhen.ON_FAILURE)
NEVER = RestartPolicy()
CLAUDE = ("claude", "--verbose")
KILLS = Watchdog(stall_auto_kill=True)


class Past:
    """A machine, its store and its clock: what it decides is durable before the next thing happens."""

    def __init__(self, path: Path) -> None:
        self.store = Store(path)
        self.machine = Machine()
        self.now = T0
        self._pid = 2000

    def tell(self, *events: Event) -> list[Effect]:
        """Tell the machine what happened, and write what it decides."""
        asked: list[Effect] = []
        for event in events:
            effects = self.machine.handle(event, self.now)
            self.store.write([effect for effect in effects if isinstance(effect, Persist)])
            asked += effects
        return asked

    def session(self, name: str) -> Session:
        """Return a session by its name."""
        found = self.machine.find(name)
        assert found is not None, name
        return found

    def launch(self, name: str) -> Launch:
        """Return the current launch of a session."""
        launch = self.session(name).launch
        assert launch is not None, name
        return launch

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def declare(self, name: str, spec: Spec, account: str = "", **more: Any) -> None:
        """Declare a session and let it come to life."""
        self.tell(Declared(f"s{name}", name, spec, "alice", account))
        self.come_up(name, **more)

    def come_up(self, name: str, **more: Any) -> None:
        """Let a session's launch come to life."""
        self.later(1.0)
        pane = self.session(name).spec.runtime is RuntimeKind.TMUX
        axes = (Axis.PROCESS, Axis.RUNTIME, *((Axis.SERVER,) if pane else ()))
        facts = tuple(Fact(axis, "alive", "pidfd", self.now, conclusive=True) for axis in axes)
        root, server = (self.process(), self.process()) if pane else (None, None)
        launch_id = self.launch(name).id
        self.tell(Launched(launch_id, self.now, self.process(), root, server, "%0" if pane else None, facts, **more))

    def process(self) -> ProcessId:
        """Return a process that was never there before."""
        self._pid += 1
        return ProcessId(self._pid, 10 * self._pid, BOOT)

    def ask(self, verb: str, name: str, reason: str = "", **more: Any) -> None:
        """An operator asks for something."""
        self.tell(Asked(verb, self.session(name).id, "alice", reason, **more))

    def hear(self, name: str, *said: Said, source: str = "hook", **more: Any) -> None:
        """An agent says something, a second later."""
        self.later(1.0)
        words = tuple(replace(one, at=self.now) for one in said)
        self.tell(Heard(self.launch(name).id, words, source, **more))

    def exit(self, name: str, observed_by: str = "keeper", source: str = "keeper", **found: Any) -> None:
        """The agent of a session ends."""
        self.tell(Exited(Exit(self.launch(name).id, self.now, observed_by, status_source=source, **found)))

    def end(self, name: str, ok: bool = True, **more: Any) -> None:
        """All that there was of a launch is verified gone, or is not."""
        self.tell(Ended(self.launch(name).id, ok, **more))

    def close(self, name: str, **more: Any) -> None:
        """What a dead launch left is gone."""
        facts = (Fact(Axis.RUNTIME, "dead", "verified", self.now, conclusive=True),)
        self.tell(Closed(self.launch(name).id, facts, **more))

    def fire(self, name: str, kind: str) -> list[Effect]:
        """A moment that a session, role or incident waits for has come."""
        found = self.machine.find(name)
        return self.tell(TimerFired(name if found is None else found.id, kind))

    def come_back(self, name: str, **more: Any) -> None:
        """The wait of a session is over, and its next launch comes to life."""
        hold = self.session(name).hold
        assert hold is not None and hold.until is not None
        self.now = max(self.now, hold.until)
        self.fire(name, "hold")
        self.end(name)
        self.come_up(name, **more)

    def end_wall(self, name: str) -> None:
        """The moment comes at which a session's wall is to end."""
        wall = self.session(name).wall
        assert wall is not None and wall.until is not None
        self.now = max(self.now, wall.until)
        self.fire(name, "wall")

    def see(self, name: str, **axes: str) -> None:
        """All axes of a session are read."""
        words = {"server": "alive", "runtime": "alive", "process": "alive"} | axes
        facts = tuple(Fact(Axis(axis), word, "probe", self.now, why="read so") for axis, word in words.items())
        self.tell(Swept((Observed(self.launch(name).id, facts),), len(self.machine.sessions)))

    def diagnose(self, name: str, seen: Evidence | None = None) -> list[Effect]:
        """The patience with a session is over, and this is read of it."""
        self.fire(name, "silence")
        return self.tell(Diagnosed(self.launch(name).id, replace(seen or evidence(), at=self.now)))

    def incident(self, kind: IncidentKind, name: str | None = None) -> Incident:
        """Return an open incident, of a session, of the host, or of what several have in common."""
        found = [one for one in self.machine.incidents.values() if one.kind is kind and (name is None or one.session == name)]
        return found[0]

    def notify(self, incident: Incident, route: str, state: str, number: int = 0, **more: Any) -> None:
        """A notice of an incident was tried."""
        step = ("chat", "mail", "pager").index(route)
        notice = Notice(f"{incident.id}/{step}/{number}", route, state, self.now, **more)
        self.tell(Notified(incident.id, notice))


def plain(command: tuple[str, ...] = ("sh", "-c", "make watch"), policy: RestartPolicy = NEVER) -> Spec:
    """Return a plain command in a pane."""
    return Spec(command, "/work/shop", restart=policy)


def agent(kind: str = "claude", policy: RestartPolicy = NEVER, runtime: RuntimeKind = RuntimeKind.TMUX) -> Spec:
    """Return an agent that says what it does."""
    return Spec((kind, "--verbose"), "/work/shop", kind, runtime, policy)


def turn(conversation: str, **usage: Any) -> tuple[Said, ...]:
    """Return one whole turn of a conversation."""
    spent = Usage(**({"input_tokens": 1200, "output_tokens": 80, "cached_tokens": 900, "cost_usd": 0.02} | usage))
    return Said(What.PROMPT, conversation=conversation), Said(What.TURN_ENDED, usage=spent)


def kept(conversation: str, found: Kept = Kept.THERE, why: str = "", at: float = T0) -> Transcript:
    """Return what was read of a conversation."""
    return Transcript(conversation, found, at, why)


# Scenes: what happened to each session


def at_work(past: Past) -> None:
    """An agent in the middle of a turn: tools, a sub-agent, two people who watch; its second launch."""
    past.declare("coder", agent(policy=ALWAYS), "claude/team", conversation="c-coder", speaks=True)
    past.hear("coder", Said(What.STARTED, name="opus"), *turn("c-coder"))
    past.exit("coder", exit_code=1)
    past.close("coder", transcript=kept("c-coder"))
    past.come_back("coder", conversation="c-coder-2", speaks=True)
    past.hear("coder", Said(What.STARTED, name="opus"), *turn("c-coder-2", so_far=True), read_to=(("talk.jsonl", "4711:9"),))
    past.hear("coder", Said(What.PROMPT), Said(What.THINKS), Said(What.TOOL_STARTED, name="Bash", id="t1"))
    past.hear("coder", Said(What.TOOL_ENDED, id="t1", failed=True, text="exit 2"))
    past.hear("coder", Said(What.SUBAGENT_STARTED, name="Explore", id="a1"))
    past.hear("coder", Said(What.TOOL_STARTED, name="Grep", id="t9", subagent="a1"), source="stream")
    past.hear("coder", Said(What.UNKNOWN, name="a-new-event"), Said(What.UNKNOWN, name="a-new-event"))
    past.hear("coder", Said(What.TOOL_STARTED, name="Bash", id="t2", until=past.now + 3 * HOUR))
    past.hear("coder", Said(What.TOOL_STARTED, name="Bash", id="t3"), Said(What.TICKS))
    past.tell(Weighed(past.launch("coder").id, 734_003_200))
    past.tell(Observed(past.launch("coder").id, (), attached=2, printed_at=past.now, delivered_at=past.now))
    past.hear("coder", Said(What.THINKS))


def asks(past: Past) -> None:
    """An agent that was adopted waits for an answer, and a person was reminded of it twice."""
    host = Host("/run/other/tmux.sock", "$3", "their work")
    launch = Launch("sadopted-1", "sadopted", 1, past.now, past.now, past.process(), past.process(), past.process(), "%4")
    session = Session("sadopted", "adopted", agent("codex"), past.now, State.RUNNING, past.now, "adopted by alice")
    session = replace(session, launch=replace(launch, host=host), launches=1, account="openai/team")
    past.tell(Adopted(session, (Fact(Axis.PROCESS, "alive", "pidfd", past.now, conclusive=True),), "alice"))
    past.hear("adopted", Said(What.STARTED, conversation="c-adopted"), Said(What.PROMPT))
    past.hear("adopted", Said(What.ASKED, name="permission for Bash", id="q1", request="r1", text="rm -r build"))
    for wait_s in (10 * MIN, 30 * MIN):
        past.later(wait_s)
        past.fire("adopted", "silence")
    opened = past.incident(IncidentKind.NEEDS_INPUT, "adopted")
    past.notify(opened, "chat", "sent", took=("#ops",))
    past.notify(opened, "chat", "sent", 1, event="reminder")


def waits(past: Past) -> None:
    """A headless agent said that it failed, was asked again, and waits for a moment it named."""
    spec = agent(runtime=RuntimeKind.HEADLESS)
    past.declare("sleeper", spec, "claude/batch", speaks=True, reads_input=True)
    failed = Said(What.RESULT, failed=True, text="it went wrong")
    past.hear("sleeper", Said(What.STARTED), Said(What.PROMPT), failed, source="stream")
    past.hear("sleeper", Said(What.PROMPT), Said(What.COMPACTED), Said(What.COMPACTED), source="stream")
    past.tell(Gap(5.0))
    past.hear("sleeper", Said(What.WAITS, until=past.now + 9 * HOUR), source="stream")


def walls(past: Past) -> None:
    """Limits: one that a team waits for, one that was met twice and is a session's own; and an agent that is not let in."""
    past.declare("limited", agent(policy=ALWAYS), "claude/shop", conversation="c-limited")
    past.declare("beside", agent(policy=ALWAYS), "claude/shop", conversation="c-beside")
    resets_at = past.now + 50 * HOUR
    past.hear("limited", Said(What.STARTED), Said(What.PROMPT), Said(What.LIMIT, text="weekly limit", until=resets_at))
    past.exit("beside", exit_code=1, words=Words(Cause.LIMIT, "weekly limit", resets_at))
    past.close("beside", transcript=kept("c-beside"))
    for name in ("works-on", "own"):
        past.declare(name, agent(), "claude/shop-two", conversation=f"c-{name}")
        past.hear(name, Said(What.STARTED), Said(What.PROMPT))
    past.hear("own", Said(What.LIMIT, text="limit of one model"))
    past.end_wall("own")
    past.hear("own", Said(What.LIMIT, text="limit of one model, once more"))
    past.later(5 * MIN)
    past.hear("own", Said(What.PROMPT))
    past.hear("works-on", Said(What.TOOL_STARTED, name="Edit", id="t1"))
    past.end_wall("own")
    past.ask("rm", "works-on")
    past.end("works-on")
    past.declare("stranger", agent("gemini", ON_FAILURE), "google/nobody")
    past.hear("stranger", Said(What.STARTED), Said(What.AUTH, text="log in first"))
    past.exit("stranger", exit_code=41, result=False)
    past.ask("rm", "stranger")
    past.end("stranger")


def ends(past: Past) -> None:
    """Deaths of several causes, of sessions that were removed since."""
    past.declare("finished", plain(("make", "test")))
    past.later(30.0)
    past.exit("finished", exit_code=0)
    past.tell(Declared("sunborn", "unborn", plain(("no-such-program",)), "alice"))
    past.tell(LaunchFailed(past.launch("unborn").id, past.now, "No such file or directory (exec)"))
    past.declare("eaten", plain(("sh", "-c", "leak"), ON_FAILURE))
    past.later(40.0)
    past.exit("eaten", signal=9, oom=Oom(True, "/user.slice/vigil.scope", 1, 2), full_disk="/work")
    for name in ("finished", "unborn", "eaten"):
        past.ask("rm", name)
        past.end(name)


def silences(past: Past) -> None:
    """A stall with a remedy that was tried; the next one waits for a person to leave."""
    past.tell(WatchdogsSet(Watchdogs(Watchdog(), {"claude": KILLS})))
    past.declare("stalled", agent(policy=ALWAYS), "claude/stalls", conversation="c-stalled", speaks=True)
    past.hear("stalled", Said(What.STARTED), *turn("c-stalled"), Said(What.PROMPT))
    past.hear("stalled", Said(What.TOOL_STARTED, name="Bash", id="t1"))
    began = past.now
    for wait_s in (300.0, 600.0, 660.0, 720.0, 780.0):
        past.now = began + wait_s
        if wait_s == 660.0:
            past.tell(Observed(past.launch("stalled").id, (), attached=1))
        past.diagnose("stalled", evidence((child(age_s=wait_s, wchan="pipe_read", waits_for_input=True),)))
    past.tell(MessageQueued("sstalled", Message("m9", past.now, "bob", 12)))  # durable with what was found of it
    past.tell(Acked(past.incident(IncidentKind.STALLED, "stalled").id, "alice"))


def wakes(past: Past) -> None:
    """Sessions that sleep and wake; one stalled when its conversation was resumed, and then it said nothing."""
    for name in ("parked", "woken", "tainted"):
        past.declare(name, agent(), "claude/wakes", conversation=f"c-{name}", speaks=True)
        past.hear(name, Said(What.STARTED), *turn(f"c-{name}"))
        past.ask("hibernate", name, "for the night")
        past.exit(name, signal=15)
        past.end(name, transcript=kept(f"c-{name}", at=past.now))
    unread = kept("c-woken", Kept.UNKNOWN, "nobody may read it", past.now)
    past.tell(MessageQueued("swoken", Message("m1", past.now, "alice", 212), unread))
    past.end("woken")
    past.come_up("woken", speaks=True)
    past.hear("woken", Said(What.STARTED), Said(What.PROMPT), Said(What.RESULT, usage=Usage()))
    past.tell(MessageQueued("swoken", Message("m2", past.now, "bob", 40)))
    past.tell(MessageTyped("swoken", "m1", past.launch("woken").id))
    for number in range(2):
        past.ask("wake", "tainted", transcript=kept("c-tainted", at=past.now))
        past.end("tainted")
        past.come_up("tainted", speaks=True)
        past.hear("tainted", Said(What.STARTED))
        if number == 0:
            past.hear("tainted", Said(What.PROMPT))
            past.later(5 * MIN)
            past.diagnose("tainted")
        past.exit("tainted", signal=None if number else 9, exit_code=0 if number else None)
        past.close("tainted", transcript=kept("c-tainted", at=past.now))
    opened = past.incident(IncidentKind.TAINTED, "tainted")
    past.notify(opened, "mail", "retrying", attempts=2, unsure=1, retry_at=past.now + 20.0, why="no answer in 10 s")


def doubts(past: Past) -> None:
    """A server that hangs, and an agent that could not be ended."""
    past.declare("wedged", agent("codex", ALWAYS), "openai/team")
    past.hear("wedged", Said(What.STARTED), Said(What.PROMPT), Said(What.RETRIES, until=past.now + 9 * HOUR))
    past.later(2 * MIN)
    for _ in range(3):
        past.see("wedged", server="wedged")
        past.later(6.0)
    past.declare("unkillable", plain())
    past.ask("stop", "unkillable", "it eats the disk")
    past.end("unkillable", ok=False, why="pid 2041 lives on after KILL")


def endings(past: Past) -> None:
    """Sessions that are over or being ended, each for another reason; one was put away."""
    past.declare("stopped", plain())
    past.tell(MessageQueued("sstopped", Message("m3", past.now, "alice", 17)))
    past.ask("stop", "stopped", "enough for today")
    past.exit("stopped", signal=15)
    past.end("stopped")
    past.declare("archived", plain())
    past.ask("archive", "archived")
    past.exit("archived", "shim", "shim", exit_code=143, ambiguous=True)
    past.end("archived")
    past.declare("idle", agent(), "claude/ends", conversation="c-idle")
    past.hear("idle", Said(What.STARTED), *turn("c-idle"))
    past.later(2 * HOUR)
    glimpse = Glimpse(past.launch("idle").id, past.now, cpu=0.0, guard=Guard("$0", int(past.now) - 1))
    past.tell(Sighted((glimpse,), (), Policy(idle_ttl_s=HOUR), "policy"))
    past.ask("wake", "idle", transcript=kept("c-idle", Kept.MISSING, "its file is gone", past.now))


def make_role(name: str, **more: Any) -> RoleSpec:
    """Return a role of one team."""
    spec = Spec(CLAUDE, "/work/shop", "claude", restart=FEW)
    return RoleSpec("shop", "backend", name, 1, spec, speaks=True, **more)


def team(past: Past) -> None:
    """Roles: one in the middle of a shift, one that waits for it, one that was given up and was tried in vain."""
    watchdog = Watchdog(120.0, 240.0, 300.0, 360.0, 420.0, 90.0, 480.0, False)
    health = Health(30.0, 4, 45.0)
    coder = make_role("coder", autostart=True, after_crash="resume", idle_ttl_s=7200.0, health=health, watchdog=watchdog)
    tester, trial = make_role("tester"), make_role("trial", retry_saturated_s=600.0)
    roles = (coder, tester, trial)
    accounts = tuple((role.key, "claude/backend") for role in roles)
    past.tell(Applied(Manifest("shop", roles), "alice", accounts=accounts))
    for role in roles:
        past.come_up(role.slot(0), speaks=True)
        past.hear(role.slot(0), Said(What.STARTED))
    past.tell(ShiftAsked((tester.key,), "bob", 300.0))
    past.come_up(tester.slot(1), speaks=True)
    past.later(301.0)
    past.fire(tester.key, "shift")
    past.exit(tester.slot(1), signal=15)
    past.end(tester.slot(1))
    for _ in range(2):
        past.later(5.0)
        past.exit(trial.slot(0), exit_code=1)
        past.close(trial.slot(0))
        past.come_back(trial.slot(0), speaks=True)
    past.later(5.0)
    past.exit(trial.slot(0), exit_code=1)
    past.close(trial.slot(0))
    past.later(35.0)
    past.fire(coder.slot(0), "pulse")
    past.tell(ShiftAsked((coder.key, tester.key), "bob", 900.0))


def troubles(past: Past) -> None:
    """Incidents of the host and of routes: open, over, come back, escalated, given up and revived."""
    run = Reaction(IncidentKind.LATE_DAEMON, "run", budget=2, every_s=60.0, command=("uptime",))
    past.tell(Configured(("chat", "mail", "pager"), (run,)))
    for number in range(2):
        past.tell(Condition(IncidentKind.LATE_DAEMON, True, f"it is {5 + number} s late", past.now))
        opened = past.incident(IncidentKind.LATE_DAEMON)
        past.fire(opened.key, "react")
        past.tell(ReactionEnded(opened.id, 0, "failed", "exit 1"))
        if number == 0:
            past.notify(opened, "chat", "sent")
            past.later(30.0)
            past.tell(Condition(IncidentKind.LATE_DAEMON, False, "it is in time", past.now))
            past.later(30.0)
    past.later(5 * MIN)
    past.fire(opened.key, "react")
    past.notify(opened, "pager", "sending")
    past.tell(Condition(IncidentKind.KEEPER_LOST, True, "the keeper does not answer", past.now))
    lost = past.incident(IncidentKind.KEEPER_LOST)
    past.notify(lost, "mail", "failed", attempts=8, why="refused")
    past.notify(lost, "chat", "retrying", retry_at=past.now + 5.0, why="busy")
    past.tell(Reached("mail"))
    past.later(3.0)
    past.tell(Condition(IncidentKind.KEEPER_LOST, False, "the keeper answers", past.now))
    past.later(2.0)
    past.tell(Condition(IncidentKind.KEEPER_LOST, True, "the keeper does not answer again", past.now))
    past.notify(lost, "pager", "failed", attempts=3, why="no such number")


def last_moments(past: Past) -> None:
    """What does not last: a backoff, and a launch that waits for memory."""
    past.declare("crashing", plain(("sh", "-c", "exec claude"), ALWAYS), names=("claude",))
    past.later(3.0)
    past.exit("crashing", exit_code=1)
    past.close("crashing")
    past.ask("reset", "crashing")
    past.end("crashing")
    past.come_up("crashing", names=("claude",))
    fact = Fact(Axis.PROCESS, "alive", "procfs", past.now, conclusive=True)
    past.tell(Found(past.launch("crashing").id, past.process(), fact))
    past.later(3.0)
    past.exit("crashing", "daemon", "pidfd", server_ended=True, server_signal=11, root_signal=1, signal=1)
    past.close("crashing")
    past.tell(MemoryRead(0, "180 MB are left"), Declared("slow", "low-memory", plain(), "alice"))


SCENES = (
    at_work, asks, waits, walls, ends, silences, wakes, doubts, endings, team, troubles, last_moments,
)  # fmt: skip


# What comes of it


def dump_of(path: Path) -> str:
    """Return a database as SQL, with the newest lines of its event log."""
    connection = sqlite3.connect(path)
    newest = connection.execute("SELECT max(seq) FROM events").fetchone()[0]
    connection.execute("DELETE FROM events WHERE seq <= ?", (newest - EVENTS_KEPT,))
    connection.commit()
    text = "\n".join([*connection.iterdump(), f"PRAGMA user_version = {int(T0) - BIRTHS_FROM};"])
    connection.close()
    return text + "\n"


def text_of(values: dict[str, dict[str, Any]]) -> str:
    """Return values as JSON, one on a line."""
    lines = {table: [f"{json.dumps(key)}:{dump(one)}" for key, one in rows.items()] for table, rows in values.items()}
    tables = [f"{json.dumps(table)}: {{\n" + ",\n".join(rows) + "\n}" for table, rows in lines.items()]
    return "{\n" + ",\n".join(tables) + "\n}\n"


def recording_of(store: Store, now: float) -> Iterator[str]:
    """Yield the lines of a recording of the start of a daemon on a database."""
    sessions, roles = store.read_sessions(), store.read_roles()
    incidents = [*store.read_incidents(), *store.read_untold(now - HOUR)]
    machine = Machine(sessions, incidents, roles)
    yield begin_line(__version__, now, sessions, incidents, roles)
    for event in (Configured(("chat", "mail", "pager")), WatchdogsSet(Watchdogs()), Resumed()):
        yield entry_line(now, event, machine.handle(event, now))
    yield end_line(STOPPED)


def untouched(values: Iterable[object]) -> dict[str, set[str]]:
    """Return the fields of each class that have their default, or nothing, in every value there is."""
    seen: dict[str, set[str]] = {}
    told: dict[str, set[str]] = {}

    def walk(value: Any) -> None:
        if is_dataclass(value) and not isinstance(value, type):
            kind = type(value).__name__
            for field in fields(value):
                found = getattr(value, field.name)
                default = field.default_factory() if field.default_factory is not MISSING else field.default
                seen.setdefault(kind, set()).add(field.name)
                if found != default and found not in (None, "", (), {}):
                    told.setdefault(kind, set()).add(field.name)
                walk(found)
        elif isinstance(value, dict):
            for one in value.values():
                walk(one)
        elif isinstance(value, tuple | list):
            for one in value:
                walk(one)

    walk(list(values))
    return {kind: names - told.get(kind, set()) for kind, names in seen.items() if names - told.get(kind, set())}


def main() -> None:
    """Play every scene and write dump, values and recording; say what stays at its default."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vigil.db"
        past = Past(path)
        for scene in SCENES:
            scene(past)
            past.later(MIN)
        past.store.close()
        DUMP.write_text(dump_of(path), "utf-8")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vigil.db"
        store = load(path)
        LOADED.write_text(text_of(loaded(path, store)), "utf-8")
        RECORDING.write_text("\n".join(recording_of(store, past.now)) + "\n", "ascii")
        found = store.read_sessions(), store.read_roles(), store.read_incidents(everything=True), store.read_deaths()
        store.close()
    for session in found[0]:
        print(f"{session.name:24} {session.state:10} {session.hold.reason if session.hold else ''}")
    for one in found[2]:
        print(f"{one.key:40} {'open' if one.resolved_at is None else 'over'} {len(one.notices)} notices")
    for file in (DUMP, LOADED, RECORDING):
        print(f"{file.name}: {file.stat().st_size} bytes")
    for kind, names in sorted(untouched(found).items()):
        print(f"at its default everywhere: {kind}: {', '.join(sorted(names))}")


if __name__ == "__main__":
    main()
