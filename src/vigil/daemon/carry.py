"""Carrying out effects: spawn, end, close, purge. Each ends in time and says what became of it, as an event."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

from vigil.agents import Agent
from vigil.agents.accounts import account_of
from vigil.agents.adapter import Adapter, Beginning, Place, Start
from vigil.core.effects import (
    CloseInput,
    CloseLaunch,
    EndChild,
    EndLaunch,
    EndStray,
    Interrupt,
    Purge,
    Release,
    RepairSocket,
    Spawn,
)
from vigil.core.events import Attended, Closed, Ended, Event, Found, Launched, LaunchFailed, Noted, Spared, Stepped
from vigil.core.intents import REAP
from vigil.core.model import Axis, Fact, Launch, Mode, ProcessId, RuntimeKind, Session, Transcript
from vigil.core.reap import Guard, Stray
from vigil.daemon.census import Census
from vigil.daemon.clock import Clock
from vigil.daemon.conversations import Conversations
from vigil.daemon.deathwatch import DeathWatch, roles_of
from vigil.daemon.environments import Environments
from vigil.daemon.finding import Finder
from vigil.daemon.keeper_link import KeeperLink, KeeperRefused, KeeperSilent
from vigil.daemon.listening import Listening
from vigil.daemon.log import log
from vigil.daemon.outputs import Outputs
from vigil.daemon.secrets import Secrets
from vigil.daemon.signals import end_processes, send
from vigil.home import Home
from vigil.keeper import kernel, records
from vigil.observe.clients import read_clients
from vigil.observe.descendants import find_named
from vigil.observe.process import read_group, read_process
from vigil.observe.spool import forget_hooks
from vigil.observe.survivors import survivors_of
from vigil.runtimes import Order, Runtime, Tmux, socket_of
from vigil.runtimes.guarding import KILLED

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
HOOK = Path(__file__).parent.parent / "agents" / "hook.sh"
END_CHILD, CLOSE_INPUT = "end-child", "close-stdin"  # what an outcome is of
SPAWN_S = 15.0
FORGET_S = 2.0
EXEC_S = 0.5
SERVER_GRACE_S = 2.0
SURVIVOR_GRACE_S = 3.0
PARKING = frozenset({"hibernate", REAP})
LAUNCHES_KEPT = 10  # folders a session keeps of its launches: a crash loop does not fill the disk
REPAIR_S = 0.1  # a server makes its socket at once
ROUNDS = 4  # survivors may start survivors while they are ended


class Carrier:
    """Does to the world what the machine asked for."""

    def __init__(
        self,
        home: Home,
        clock: Clock,
        runtimes: dict[RuntimeKind, Runtime],
        keeper: KeeperLink,
        watch: DeathWatch,
        outputs: Outputs,
        finder: Finder,
        agent_of: Callable[[str], Agent],
        adapter_of: Callable[[str], Adapter],
        is_set_up: Callable[[str], bool],
        conversations: Conversations,
        session_of: Callable[[str], Session | None],
        owner_of: Callable[[str, str, str], Session | None],
        listening: Listening,
        secrets: Secrets,
        environments: Environments,
        purge_bundles: Callable[[Session], Awaitable[list[str]]],
        purge_messages: Callable[[Session], list[str]],
        feed: Callable[[Event], None],
    ) -> None:
        self._home = home
        self._clock = clock
        self._runtimes = runtimes
        self._keeper = keeper
        self.watch = watch
        self._outputs = outputs
        self._finder = finder
        self._agent_of = agent_of
        self._adapter_of = adapter_of
        self._is_set_up = is_set_up
        self._conversations = conversations
        self._session_of = session_of
        self._owner_of = owner_of
        self._claims: dict[tuple[str, str], str] = {}  # which launch was last made into which agent's conversation
        self.listening = listening
        self._secrets = secrets
        self._environments = environments
        self._purge_bundles = purge_bundles
        self._purge_messages = purge_messages
        self._feed = feed
        self._boot = kernel.read_boot()
        self._census = Census(self._boot)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._kinds: dict[str, RuntimeKind] = {}
        self.purged: dict[str, list[str]] = {}
        self.released: set[str] = set()  # launches that were given back, until whoever asked for it knows
        self.strays: dict[str, str] = {}  # what became of those that were ended last; empty while it is not known

    def knows(self, launch: Launch, kind: RuntimeKind) -> None:
        """Remember which runtime a launch lives in."""
        self._kinds[launch.id] = kind

    def names_of(self, session: Session) -> tuple[str, ...]:
        """Return the names by which a session's agent is found below its command."""
        return self._agent_of(session.spec.agent).process

    async def spawn(self, effect: Spawn) -> None:
        """Bring a launch to life: its folder first, then the keeper does the rest."""
        session, launch = effect.session, effect.launch
        self._kinds[launch.id] = session.spec.runtime
        try:
            await self._remove_launch(f"{session.id}-{launch.number - LAUNCHES_KEPT}")
            env = await asyncio.to_thread(self._environments.read, session)
            agent = self._agent_of(session.spec.agent)
            folder = str(self._home.launch(launch.id))
            start = await asyncio.to_thread(self._begin, session, launch, env, folder)
            self._claim(session, launch, start.conversation)
            talks = replace(session, conversation=start.conversation or session.conversation)
            order = Order(talks, launch, {**env, **start.env}, start.command, start.files, agent.converses)
            await asyncio.to_thread(self._runtimes[session.spec.runtime].prepare, order)
            born = await self._keeper.ask("spawn", timeout_s=SPAWN_S, launch=launch.id, folder=folder)
        except (OSError, ValueError, KeeperRefused, KeeperSilent) as error:
            # A keeper that was only slow finds no order any more: a launch that was given up is never born late (P1).
            with contextlib.suppress(OSError):
                os.unlink(self._home.launch(launch.id) / "launch.json")
            why = self._secrets.redactor(session.id).text(_in_words(error))
            self._feed(LaunchFailed(launch.id, self._clock.now(), why))
            return
        event = replace(self.born(launch, born, names=agent.process), conversation=start.conversation, without=start.without)
        event = replace(event, account=account_of(self._adapter_of(session.spec.agent), env))
        headless = session.spec.runtime is RuntimeKind.HEADLESS
        speaks = (
            self._is_set_up(session.spec.agent) and not start.without and self._adapter_of(session.spec.agent).speaks(headless)
        )
        event = replace(event, speaks=speaks, reads_input=headless and agent.converses)
        exec_seen = session.spec.runtime is not RuntimeKind.TMUX or await self._exec_seen(event.process.pid)
        self._feed(event)
        launch = with_processes(launch, event)
        self.follow(launch, exec_seen)
        self.listening.follow(replace(session, launch=launch, conversation=event.conversation, read_to={}), launch)

    def _begin(self, session: Session, launch: Launch, env: Mapping[str, str], folder: str) -> Start:
        """Return how a launch is made: as its adapter says, unless the configuration wants it left alone."""
        spec = session.spec
        if not self._is_set_up(spec.agent):
            return Start(spec.command)
        place = Place(os.path.realpath(spec.cwd), env)
        headless, resumes = spec.runtime is RuntimeKind.HEADLESS, launch.mode is Mode.RESUME
        conversation = launch.conversation if resumes else str(uuid.uuid4())
        start = self._adapter_of(spec.agent).begin(
            Beginning(spec.command, place, folder, headless, conversation, resumes, hook=("/bin/sh", str(HOOK)))
        )
        if resumes and start.conversation != launch.conversation:
            raise ValueError(f"it cannot go on with conversation {launch.conversation}: {'; '.join(start.without)}")
        return start

    def _claim(self, session: Session, launch: Launch, conversation: str) -> None:
        """Refuse a launch into a conversation that another one is in: two agents would write into each other.

        Its command may name one itself, and two may be launched at once: whoever comes first has it while its launch lives.
        """
        if not conversation:
            return
        key = (session.spec.agent, conversation)
        other = self._session_of(self._claims.get(key, ""))
        lives = other is not None and other.launch is not None and other.launch.ended_at is None and other.id != session.id
        owner = other if lives else self._owner_of(session.spec.agent, conversation, session.id)
        if owner is not None:
            raise ValueError(f"conversation {conversation} is open in {owner.name}: two agents in one would mix it up")
        self._claims = {known: who for known, who in self._claims.items() if self._session_of(who) is not None}
        self._claims[key] = launch.id

    def follow(self, launch: Launch, exec_seen: bool = True) -> None:
        """Watch a launch that has come to life, and what it prints."""
        self.watch.watch(launch, exec_seen)
        if self._kinds[launch.id] is RuntimeKind.HEADLESS:
            self._outputs.follow(launch)
        self._finder.look_for(launch, self._found)

    def _found(self, launch: Launch, event: Found) -> None:
        """Watch an agent that was found below its command, ourselves and through the keeper."""
        launch = replace(launch, found=event.process)
        self._feed(event)
        self.watch.found(launch)
        inner = roles_of(launch).get("inner")
        if inner is not None:
            watch = {"launch": launch.id, "folder": str(self._home.launch(launch.id)), "role": "inner"}
            self._keeper.tell("watch", watches=[watch | {"pid": inner.pid, "start_ticks": inner.start_ticks}])

    def born(self, launch: Launch, born: dict[str, object], adopted: bool = False, names: tuple[str, ...] = ()) -> Launched:
        """Return the event that says who was born, from the keeper's words or its record."""
        at = self._clock.now()
        known: dict[str, ProcessId] = {}
        for role in records.ROLES:
            found = born.get(role)
            if isinstance(found, list):
                known[role] = ProcessId(found[0], found[1], self._boot)
        facts = [
            read_process(axis, known[role], self._boot, at)
            for axis, role in ((Axis.SERVER, "server"), (Axis.RUNTIME, "root"), (Axis.PROCESS, "agent"))
            if role in known
        ]
        if "root" not in known:
            facts.append(read_group(known["agent"], facts[-1], at))
        names = launch.names or names
        if names:
            facts = [fact for fact in facts if fact.axis is not Axis.PROCESS]
            facts.append(self._read_found(launch, names, at))
        pane = born.get("pane")
        return Launched(
            launch.id,
            launch.started_at or self._started_at(launch, known["agent"], at),
            known["agent"],
            known.get("root"),
            known.get("server"),
            pane if isinstance(pane, str) else None,
            tuple(facts),
            adopted,
            names,
        )

    def _started_at(self, launch: Launch, agent: ProcessId, at: float) -> float:
        """Return when an agent began, as the kernel has it: we may hear of a birth long after it."""
        return min(at, max(launch.created_at, self._clock.at(agent.start_ticks / TICKS_A_SECOND)))

    def _read_found(self, launch: Launch, names: tuple[str, ...], at: float) -> Fact:
        if launch.found is not None:
            return read_process(Axis.PROCESS, launch.found, self._boot, at)
        return Fact(Axis.PROCESS, "unknown", "procfs", at, why=f"no {' or '.join(names)} runs in it yet")

    async def repair(self, effect: RepairSocket) -> None:
        """Ask a tmux server to make its socket anew: SIGUSR1 does that, to exactly the process that was recorded (P9)."""
        server = effect.launch.server
        if server is not None and effect.launch.host is None and self._is_alive(server):
            send(server, signal.SIGUSR1)
            await asyncio.sleep(REPAIR_S)

    async def end(self, effect: EndLaunch) -> None:
        """End all there is of a launch, verified: agent, survivors, server. The intent was durable before this ran (P8)."""
        launch = effect.launch
        async with self._lock(launch.id):
            if effect.unless_attended and not effect.reap and (why := self._why_attended(launch)):
                self._feed(Attended(launch.id, why))
                return
            if effect.reap and (why := await self._why_spared(launch, effect.guard)):
                self._feed(Spared(launch.id, why))
                return
            left = await self._end_all(launch, effect.grace_s)
            transcript = await self._read_conversation(launch.id)
        if left:
            words = f"{len(left)} of its processes live on after KILL (pid {', '.join(str(p.pid) for p in left)})"
            self._feed(Ended(launch.id, ok=False, why=words))
        else:
            self._feed(Ended(launch.id, ok=True, transcript=transcript))

    async def _why_spared(self, launch: Launch, guard: Guard | None) -> str:
        """Have a launch compared once more and killed where it lives; say why it was not, and nothing if it is to end."""
        agent = launch.agent
        if agent is None or not self._is_alive(agent):
            return ""  # it died meanwhile: what is left of it is nobody's
        if guard is None:
            return "it was not compared before the daemon ended; the next sweep looks at it again"
        done, why = await self._runtimes[self._kinds[launch.id]].reap(launch, guard)
        if done == KILLED or not self._is_alive(agent):
            return ""
        return why if done == "spared" else f"unknown: {why}"

    async def end_stray(self, effect: EndStray) -> None:
        """End what belongs to no launch that is known: compared by its server where it has one, then verified (P9)."""
        stray = effect.stray
        self.strays[stray.launch_id] = ""
        try:
            self.strays[stray.launch_id] = await self._end_stray(stray, effect.grace_s)
        finally:
            self.strays[stray.launch_id] = self.strays[stray.launch_id] or "failed"

    async def _end_stray(self, stray: Stray, grace_s: float) -> str:
        glimpse = stray.glimpse
        told: dict[str, str | int | float | None] = {"launch": stray.launch_id, "session": stray.name}
        if stray.server is not None and glimpse is not None and glimpse.guard is not None:
            done, why = await self._runtimes[RuntimeKind.TMUX].reap(launch_of(stray), glimpse.guard)
            if done != KILLED:
                self._feed(Noted("orphan.spared", tuple((told | {"why": why, "outcome": done}).items())))
                return f"{done}: {why}"
        processes = [*stray.processes, *([stray.server] if stray.server is not None else [])]
        left = await end_processes(dict.fromkeys(processes), grace_s)
        if stray.socket and not left:
            remove_socket(stray.socket)
        told |= {"class": "orphan", "ended": len(processes) - len(left), "left": len(left)}
        self._feed(Noted("orphan.reaped", tuple(told.items())))
        return f"failed: {len(left)} processes live on after KILL" if left else "ended"

    async def release(self, effect: Release) -> None:
        """Take our marks off a session that was adopted, and watch it no more; all of it goes on."""
        launch = effect.launch
        try:
            async with self._lock(launch.id):
                await self._leave(launch)
        finally:
            self.released.add(launch.id)

    def adopted(self, session: Session) -> None:
        """Watch a session that was started elsewhere, ourselves and through the keeper."""
        launch = session.launch
        assert launch is not None
        self._kinds[launch.id] = session.spec.runtime
        self.follow(launch)
        folder = str(self._home.launch(launch.id))
        watches = [
            {"launch": launch.id, "folder": folder, "role": role, "pid": process.pid, "start_ticks": process.start_ticks}
            for role, process in roles_of(launch).items()
        ]
        self._keeper.tell("watch", watches=watches)

    async def mark_again(self, launch: Launch) -> None:
        """Have an adopted session bear our mark: the daemon before us may have ended before it did."""
        tmux = self._runtimes[RuntimeKind.TMUX]
        assert isinstance(tmux, Tmux)
        if not await tmux.mark(launch):
            log.warning("an adopted session could not be marked", launch=launch.id)

    async def _leave(self, launch: Launch) -> None:
        """Leave what is not ours as it was found."""
        tmux = self._runtimes[RuntimeKind.TMUX]
        assert isinstance(tmux, Tmux)
        await tmux.unmark(launch)
        await self._forget(launch)

    async def interrupt(self, effect: Interrupt) -> None:
        """Ask an agent to leave what it does, as Ctrl-C would; the intent was durable before this ran (P8)."""
        launch, agent = effect.launch, effect.launch.agent
        async with self._lock(launch.id):
            if why := self._why_attended(launch):
                self._feed(Attended(launch.id, why))
            elif agent is not None and self._is_alive(agent):
                send(agent, signal.SIGINT)

    async def end_child(self, effect: EndChild) -> None:
        """End one process below an agent, verified; the intent was durable before this ran (P8)."""
        launch = effect.launch
        async with self._lock(launch.id):
            if why := self._why_attended(launch):
                self._feed(Stepped(launch.id, END_CHILD, False, why))
                return
            left = await end_processes([effect.process], effect.grace_s)
        words = f"pid {effect.process.pid} {'lives on after KILL' if left else 'is gone'}"
        self._feed(Stepped(launch.id, END_CHILD, not left, words))

    async def close_input(self, effect: CloseInput) -> None:
        """Let a headless agent read the end of its input: the keeper holds the other end."""
        try:
            await self._keeper.ask("close-input", timeout_s=FORGET_S, launch=effect.launch.id)
        except (KeeperSilent, KeeperRefused) as error:
            self._feed(Stepped(effect.launch.id, CLOSE_INPUT, False, str(error)))
        else:
            self._feed(Stepped(effect.launch.id, CLOSE_INPUT, True))

    def _why_attended(self, launch: Launch) -> str:
        """Say who uses what a dead agent left open; nothing if nobody does."""
        if launch.host is None and read_clients().get(socket_of(self._home, launch), 0):
            return "a person is attached to its pane"
        if (
            launch.ended_at is not None
            and launch.process is not None
            and launch.names
            and find_named(launch.process, launch.names) is not None
        ):
            return f"{' or '.join(launch.names)} runs in the pane of its last one"
        return ""

    async def close(self, effect: CloseLaunch) -> None:
        """The agent is dead: keep its last screen, end its server; children it left behind stay."""
        launch = effect.launch
        async with self._lock(launch.id):
            gone = await self._end_server(launch)
            transcript = await self._read_conversation(launch.id)
        now = self._clock.now()
        facts = [read_process(Axis.RUNTIME, launch.root, self._boot, now)] if launch.root else []
        if launch.root is None and launch.process is not None:
            facts = [read_group(launch.process, Fact(Axis.PROCESS, "dead", "pidfd", now, conclusive=True), now)]
        if launch.server:
            facts.append(read_process(Axis.SERVER, launch.server, self._boot, now))
        self._feed(Closed(launch.id, tuple(facts), gone, transcript))

    async def _read_conversation(self, launch_id: str) -> Transcript | None:
        """Read what a launch that is over left of its conversation."""
        session = self._session_of(launch_id)
        return None if session is None else await self._conversations.read(session)

    async def purge(self, effect: Purge) -> None:
        """Remove the files of a session: exactly the names its launches had."""
        session = effect.session
        gone = [f"session {session.name}"]
        death = session.last_death
        if (
            session.launch is not None
            and death is not None
            and death.launch_id == session.launch.id
            and death.intent is not None
        ):
            gone += ["park mark"] if death.intent.verb in PARKING else []
        launch_ids = [f"{session.id}-{number}" for number in range(1, session.launches + 1)]
        for launch_id in launch_ids:
            if await self._remove_launch(launch_id):
                gone.append(f"launch {launch_id}")
        hooks = await asyncio.to_thread(forget_hooks, self._home.spool, frozenset(launch_ids))
        gone += [f"{hooks} hook events that nobody had read"] if hooks else []
        gone += [f"bundle {death_id}" for death_id in await self._purge_bundles(session)]
        gone += await asyncio.to_thread(self._purge_messages, session)
        if self._environments.forget(session.id):
            gone.append("environment")
        self.purged[session.id] = gone

    def _lock(self, launch_id: str) -> asyncio.Lock:
        """Return the lock of a launch: it is ended or closed by one at a time."""
        return self._locks.setdefault(launch_id, asyncio.Lock())

    async def _remove_launch(self, launch_id: str) -> bool:
        """Remove a launch's folder; say whether there was one."""
        self._kinds.pop(launch_id, None)
        folder = self._home.launch(launch_id)
        if not folder.exists():
            return False
        await self._keeper_forgets(launch_id)  # or it writes a last record into what is being removed
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return True

    async def _keeper_forgets(self, launch_id: str) -> None:
        """Have the keeper watch nothing of a launch any more, and wait until it does not."""
        if self._keeper.wedged:
            self._keeper.tell("forget", launch=launch_id, removing=True)
            return
        with contextlib.suppress(KeeperSilent, KeeperRefused):
            await self._keeper.ask("forget", timeout_s=FORGET_S, launch=launch_id, removing=True)

    async def _end_all(self, launch: Launch, grace_s: float) -> list[ProcessId]:
        if launch.host is not None:
            return await self._end_adopted(launch, grace_s)
        agent = launch.process or self._find_agent(launch)
        agents = [process for process in (launch.found, agent) if process is not None]
        if launch.ended_at is not None:  # what is left is no agent that would have to finish something
            grace_s = min(grace_s, SURVIVOR_GRACE_S)
        left = await end_processes(dict.fromkeys(agents), grace_s)
        if launch.process is not None and not left:
            await self.watch.reported(launch.id, within_s=5.0)
        spare = [launch.server] if launch.server else []
        for _ in range(ROUNDS):
            found = survivors_of(launch, spare, await self._census.take(), self._ticks(launch.ended_at))
            if not found:
                break
            log.info("ending survivors", launch=launch.id, pids=[process.pid for process in found])
            left = await end_processes(found, min(grace_s, SURVIVOR_GRACE_S))
        else:
            return left or found
        if not await self._end_server(launch):
            return [launch.server] if launch.server else []
        return left

    async def _end_adopted(self, launch: Launch, grace_s: float) -> list[ProcessId]:
        """End what an adopted session runs, and nothing else of its server; after its agent's end nothing of it is ours."""
        tmux = self._runtimes[RuntimeKind.TMUX]
        assert isinstance(tmux, Tmux) and launch.host is not None
        if launch.ended_at is not None:
            await self._leave(launch)
            return []
        agents = [launch.agent] if launch.agent is not None else []
        panes = await tmux.read_panes(launch)
        leaders = [ProcessId(pid, ticks, self._boot) for pid in panes if (ticks := kernel.read_start_ticks(pid)) is not None]
        left = await end_processes(agents, grace_s)
        await self.watch.reported(launch.id, within_s=5.0)
        await tmux.kill_marked(launch)
        found = [one.process for one in await self._census.take() if any(one.sid == leader.pid for leader in leaders)]
        left += await end_processes([*leaders, *found], min(grace_s, SURVIVOR_GRACE_S))
        if not left:
            await self._forget(launch)
        return left

    async def survivors(self, launch: Launch) -> list[ProcessId]:
        """Return the processes of a launch that is over which live on; the pane it ran in is none of them."""
        if launch.host is not None:
            return []  # whatever else runs there is not ours
        spare = [process for process in (launch.server, launch.root, launch.process) if process is not None]
        return survivors_of(launch, spare, await self._census.take(), self._ticks(launch.ended_at))

    def _is_alive(self, process: ProcessId) -> bool:
        return process.boot == self._boot and kernel.is_alive(process.pid, process.start_ticks)

    def _ticks(self, at: float | None) -> float | None:
        """Return a moment as the kernel counts the starts of processes, a little late rather than early."""
        if at is None:
            return None
        booted_at = self._clock.now() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return (at - booted_at + 1.0) * TICKS_A_SECOND

    async def _end_server(self, launch: Launch) -> bool:
        """End a launch's tmux server, its screen kept first; say whether it is gone."""
        if launch.host is not None:
            await self._leave(launch)
            return True
        gone = True
        if launch.server is not None and self._is_alive(launch.server):
            kind = self._kinds.get(launch.id)
            if kind is not None:
                with contextlib.suppress(OSError):
                    await self._runtimes[kind].keep_screen(launch)
            gone = not await end_processes([launch.server], SERVER_GRACE_S)
        if gone:
            await self._forget(launch)
            remove_socket(self._home.server_path(launch.id))
        return gone

    async def _forget(self, launch: Launch) -> None:
        """Ask for nothing of a launch any more."""
        for runtime in self._runtimes.values():
            runtime.forget(launch)
        self.watch.forget(launch.id)
        self._outputs.forget(launch.id)
        await self.listening.finish(launch.id)
        self._keeper.tell("forget", launch=launch.id)

    def _find_agent(self, launch: Launch) -> ProcessId | None:
        """Look for an agent whose birth was not told to us."""
        born = records.read_json(str(self._home.launch(launch.id) / "born.json"))
        if born is None or kernel.is_other_boot(str(born.get("boot", self._boot)), self._boot):
            return None
        return self.born(launch, born).process

    async def _exec_seen(self, pid: int) -> bool:
        """Wait for the shim to become the agent; say whether it was seen to."""
        deadline = asyncio.get_running_loop().time() + EXEC_S
        while asyncio.get_running_loop().time() < deadline:
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read(4096).split(b"\0")
            except OSError:
                return False
            if words == [b""]:
                return False  # a zombie has none
            if len(words) < 3 or not words[1].endswith(b"/keeper/shim.sh") or words[2] != b"agent":
                return True
            await asyncio.sleep(0.002)
        return False


def remove_socket(path: str) -> None:
    """Remove the socket of a server that is gone; where somebody listens by now it is theirs."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as sock:
        try:
            sock.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)


def launch_of(stray: Stray) -> Launch:
    """Return a launch that stands for what is not one any more, so that its server can be asked."""
    session_id, _, number = stray.launch_id.rpartition("-")
    return Launch(stray.launch_id, session_id, int(number) if number.isdigit() else 0, 0.0, pane=stray.pane or None)


def with_processes(launch: Launch, event: Launched) -> Launch:
    """Return a launch with the processes that were born."""
    return replace(
        launch,
        started_at=event.at,
        process=event.process,
        root=event.root,
        server=event.server,
        pane=event.pane,
        names=event.names,
    )


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}{': ' + str(error.filename) if error.filename else ''}"
    return str(error)
