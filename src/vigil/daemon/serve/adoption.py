"""Adopting: watches a tmux session that another program started, and may give it back; it is never restarted.

Found by its exact name, held by its id, server process and pane. The rest of its server is listed, never touched."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from vigil.agents.adapters import ADAPTERS
from vigil.core.events import Adopted
from vigil.core.handlers.spawn import unheard
from vigil.core.model.identity import why_not_a_name
from vigil.core.model.launch import ForeignSession, Launch, ProcessId
from vigil.core.model.reading import Axis
from vigil.core.model.session import ALIVE, Session, Spec, State
from vigil.daemon.act import born_of
from vigil.daemon.act.adopted import AdoptedLaunches
from vigil.daemon.base.clock import Clock
from vigil.daemon.serve.sessions import Operations, new_session_id
from vigil.daemon.supervisor import Supervisor
from vigil.errors import NoSuchSession, Refused, UsageError, VigilError
from vigil.home import Home
from vigil.keeper.wire import as_json
from vigil.kernel.durable import record_json
from vigil.kernel.process import read_boot, read_stat
from vigil.kernel.processes import read_command, read_cwd, read_owner
from vigil.observe.descendants import find_named
from vigil.observe.process import read_process
from vigil.observe.strays import read_listener
from vigil.redact import redact_command
from vigil.runtimes import Tmux
from vigil.runtimes.contract import declared_of
from vigil.runtimes.tmux.guard import END, TAG

PANE = " ".join(
    f"#{{{field}}}"
    for field in (
        "session_id",
        "pane_id",
        "pane_pid",
        "pid",
        "window_active",
        "pane_active",
        "session_attached",
        "pane_dead",
        "session_name",
    )
)
ROW = re.compile(r"pane (\$\d+) (%\d+) (\d+) (\d+) ([01]) ([01]) (\d+) ([01]) (.*)")
SHARED = frozenset({"node"})  # names that do not tell which agent it is
COMMAND_BYTES = 8192


@dataclass(frozen=True, slots=True)
class ForeignAgent:
    kind: str
    process: ProcessId
    command: tuple[str, ...]
    cwd: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A session of a foreign server, and the agent in it."""

    name: str
    socket: str
    target: str
    server: ProcessId
    pane: str
    root: ProcessId
    attached: int
    panes: int
    agent: ForeignAgent
    known: bool  # of a kind that Vigil knows; else the process that has the terminal
    tag: str


class Adopting:
    def __init__(
        self,
        home: Home,
        clock: Clock,
        supervisor: Supervisor,
        operations: Operations,
        adopted: AdoptedLaunches,
        tmux: Tmux,
        configured: Callable[[], Mapping[str, tuple[str, ...]]],
    ) -> None:
        self._home = home
        self._clock = clock
        self._supervisor = supervisor
        self._operations = operations
        self._adopted = adopted
        self._tmux = tmux
        self._configured = configured
        self._boot = read_boot()

    async def candidates(self, sockets: Iterable[str]) -> list[Candidate]:
        """Return the sessions on other servers; VigilError if there are none and a server stayed silent."""
        found, silent = await self._look(sockets)
        if silent and not found:
            raise VigilError(_no_answer(silent))
        return found

    async def _look(self, sockets: Iterable[str]) -> tuple[list[Candidate], list[str]]:
        """Return the sessions on other servers, and the silent servers."""
        found: list[Candidate] = []
        silent: list[str] = []
        for path in dict.fromkeys(map(os.path.realpath, sockets)):
            if not self._is_own(path):
                read = await self._read(path)
                found += read or []
                silent += [path] if read is None else []
        return sorted(found, key=lambda candidate: (candidate.socket, candidate.name)), silent

    def _is_own(self, path: str) -> bool:
        return os.path.dirname(path) == os.path.realpath(self._home.run)

    async def _read(self, path: str) -> list[Candidate] | None:
        """Return a server's sessions; None if it listens and gave no whole answer."""
        call = self._tmux.commands_at(path)
        tags = ["list-sessions", "-F", "tag #{session_id} #{" + TAG + "}"]
        said = await call("list-panes", "-a", "-F", f"pane {PANE}", ";", *tags, ";", "display-message", "-p", END)
        lines = (said or b"").decode("utf-8", "replace").splitlines()
        if not lines or lines[-1] != END:
            return None if read_listener(path, self._boot) is not None else []
        marks = dict(line.split(" ", 2)[1:3] for line in lines if line.startswith("tag ") and line.count(" ") >= 2)
        rows = [found for line in lines if (found := ROW.fullmatch(line))]
        by_session: dict[str, list[re.Match[str]]] = {}
        for row in rows:
            by_session.setdefault(row[1], []).append(row)
        read = (self._candidate(path, target, panes, marks.get(target, "")) for target, panes in by_session.items())
        return [candidate for candidate in read if candidate is not None]

    def _candidate(self, path: str, target: str, panes: list[re.Match[str]], tag: str) -> Candidate | None:
        """Return a session with its agent: a known kind in any pane, else the holder of the active pane's terminal."""
        server = self._process(int(panes[0][4]))
        living = [row for row in panes if row[8] == "0"]
        active_first = sorted(living, key=lambda row: (row[5], row[6]), reverse=True)
        roots = [(row, root) for row in active_first if (root := self._process(int(row[3]))) is not None]
        if server is None or not roots:
            return None
        row, root = roots[0]
        agent, known = None, False
        for row_, root_ in roots:
            if (agent := self._find_agent(root_)) is not None:
                row, root, known = row_, root_, True
                break
        agent = agent or _read_agent("generic", self._foreground(root) or root)
        return Candidate(row[9], path, target, server, row[2], root, int(row[7]), len(panes), agent, known, tag)

    def _find_agent(self, root: ProcessId) -> ForeignAgent | None:
        """Find an agent of a known kind in the tree of a pane."""
        kinds = {name: adapter.processes for name, adapter in ADAPTERS.items()} | dict(self._configured())
        for kind, names in kinds.items():
            own = tuple(name for name in names if name not in SHARED)
            process = find_named(root, own) if own else None
            if process is not None:
                return _read_agent(kind, process)
        return None

    def _foreground(self, root: ProcessId) -> ProcessId | None:
        """Return the leader of a pane's foreground group: it has the terminal."""
        try:
            stat = read_stat(root.pid)
        except OSError:
            return None
        return self._process(stat.tpgid) if stat is not None and stat.tpgid > 0 else None

    def _process(self, pid: int) -> ProcessId | None:
        """Return a living process of our user; Vigil watches no other's."""
        try:
            stat, mine = read_stat(pid), read_owner(pid) == os.getuid()
        except OSError:
            return None
        return None if stat is None or stat.state in "ZX" or not mine else ProcessId(pid, stat.start_ticks, self._boot)

    async def adopt(self, target: str, sockets: Iterable[str], name: str | None, actor: str) -> Session:
        """Take over the session of exactly this name; every check comes before the first change."""
        sockets = list(sockets)
        if sockets and all(self._is_own(os.path.realpath(path)) for path in sockets):
            raise Refused(f"{sockets[0]} is a server of Vigil's own: what runs there is watched already (vigil ls)")
        found = self._choose(target, *await self._look(sockets))
        wanted = name or found.name
        if (problem := why_not_a_name(wanted)) is not None:
            way_out = "" if name else "; give it one: vigil adopt --name NAME"
            raise UsageError(f"{problem}{way_out}")
        self._refuse_watched(found)
        if (known := self._supervisor.machine.find(wanted)) is not None:
            way_out = f"vigil rm {wanted} removes it, --name NAME calls this one something else"
            raise VigilError(f"{wanted} exists already and is {known.state}; {way_out}")
        with self._operations.claim(wanted):
            session = self._make(found, wanted)
            assert session.launch is not None
            try:
                self._record(session)
            except OSError as error:
                raise VigilError(f"{wanted} was not adopted: {error.strerror} ({error.filename})") from error
            agent = session.launch.agent
            assert agent is not None and session.launch.root is not None and session.launch.server is not None
            now = self._clock.now()
            axes = ((Axis.SERVER, session.launch.server), (Axis.RUNTIME, session.launch.root), (Axis.PROCESS, agent))
            facts = tuple(read_process(axis, process, self._boot, now) for axis, process in axes)
            await self._supervisor.done(Adopted(session, facts, actor))
        if not await self._tmux.mark(session.launch):
            await self._give_back(session, actor, "its server did not take our mark")
            raise VigilError(f"{wanted} was not adopted: its tmux server did not take our mark")
        self._adopted.follow(session)
        return session

    def _choose(self, target: str, found: list[Candidate], silent: list[str]) -> Candidate:
        named = [one for one in found if one.name == target]
        if not named and target.startswith("="):  # tmux's own way to ask for an exact name
            named = [one for one in found if one.name == target[1:]]
        if not named and silent:
            raise VigilError(f"{target} was not found: {_no_answer(silent)}")
        if not named:
            there = ", ".join(one.name for one in found[:10]) or "none"
            raise NoSuchSession(f"no tmux session is called exactly {target}; there are: {there} (vigil adopt --list)")
        if len(named) > 1:
            servers = ", ".join(one.socket for one in named)
            raise Refused(f"{target} runs on several servers: say which with --socket ({servers})")
        return named[0]

    def _refuse_watched(self, found: Candidate) -> None:
        mine = self._supervisor.machine.of_launch(found.tag) if found.tag else None
        if mine is not None:
            raise Refused(f"{found.name} is watched already, as {mine.name}; vigil release {mine.name} gives it back")
        if found.tag:
            off = f"tmux -S {found.socket} set-option -u -t '={found.name}:' {TAG}"
            raise Refused(f"{found.name} bears the mark of another Vigil ({found.tag}); if that is gone: {off}")

    def _make(self, found: Candidate, name: str) -> Session:
        now, session_id = self._clock.now(), new_session_id()
        launch = Launch(
            f"{session_id}-1",
            session_id,
            1,
            now,
            started_at=now,
            process=found.agent.process,
            root=found.root,
            server=found.server,
            pane=found.pane,
            host=ForeignSession(found.socket, found.target, found.name),
        )
        spec = Spec(found.agent.command, found.agent.cwd, found.agent.kind)
        why = f"adopted from {found.name} on {found.socket}, as pid {found.agent.process.pid}"
        return Session(session_id, name, spec, now, State.RUNNING, now, why, launch=launch, launches=1, vitals=unheard(now))

    def _record(self, session: Session) -> None:
        """Record in the launch's folder whose it is: so a daemon without its store knows it again."""
        launch = session.launch
        assert launch is not None and launch.host is not None
        folder = self._home.launch(launch.id)
        folder.mkdir(mode=0o700)
        host = {"socket": launch.host.socket, "target": launch.host.target, "name": launch.host.name}
        order: dict[str, object] = {"runtime": "adopted", "launch": launch.id, "session_id": session.id, "host": host}
        order |= {"session": session.name, "created_at": launch.created_at, "declared": declared_of(session)}
        record_json(str(folder / "launch.json"), order)
        record_json(str(folder / "born.json"), {**as_json(born_of(launch)), "boot": self._boot})

    async def release(self, name: str, actor: str, reason: str = "") -> Session:
        """Give a session back: all of it goes on, without our marks."""
        session = self._operations.find(name)
        if session.launch is None or session.launch.host is None:
            raise Refused(f"{name} was not adopted: Vigil started it; vigil stop {name} ends it")
        if session.state not in ALIVE:
            raise Refused(f"{name} is {session.state}: there is nothing to give back; vigil rm {name} forgets it")
        if session.state is State.ENDING:
            raise Refused(f"{name} is being ended")
        await self._give_back(session, actor, reason)
        return session

    async def _give_back(self, session: Session, actor: str, reason: str) -> None:
        assert session.launch is not None
        (self._home.launch(session.launch.id) / "born.json").unlink(missing_ok=True)  # so that no daemon finds it again
        await self._operations.give_back(session, actor, reason)


def _no_answer(silent: list[str]) -> str:
    """Say which servers may hold what was asked for."""
    servers = "the tmux server at" if len(silent) == 1 else "the tmux servers at"
    return f"{servers} {', '.join(silent)} gave no answer"


def _read_agent(kind: str, process: ProcessId) -> ForeignAgent:
    """Read what a process runs, and where; what may not be read is left open."""
    try:
        words = read_command(process.pid, most_bytes=COMMAND_BYTES)
        command = tuple(word.decode("utf-8", "replace") for word in words) or ("?",)
    except OSError:
        command = ("?",)
    try:
        cwd = read_cwd(process.pid)
    except OSError:
        cwd = "/"
    return ForeignAgent(kind, process, command, cwd)


def view(candidate: Candidate, adopted_as: str | None) -> dict[str, object]:
    """Return a candidate for people and programs."""
    agent = candidate.agent
    return {
        "name": candidate.name,
        "socket": candidate.socket,
        "server_pid": candidate.server.pid,
        "attached": candidate.attached,
        "panes": candidate.panes,
        "agent": agent.kind if candidate.known else None,
        "pid": agent.process.pid,
        "command": redact_command(agent.command),
        "cwd": agent.cwd,
        "adopted_as": adopted_as,
    }
