"""Adoption: Vigil watches a tmux session that another program started, and may give it back; it never restarts it.

Found by its exact name, held by its id, server process and pane. The rest of its server is listed, never touched."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from vigil.agents.adapters import ADAPTERS
from vigil.core.events import Adopted
from vigil.core.model.identity import why_not_a_name
from vigil.core.model.launch import ForeignSession, Launch, ProcessId
from vigil.core.model.reading import Axis
from vigil.core.model.session import ALIVE, Session, Spec, State, unheard
from vigil.daemon.act import born_of
from vigil.daemon.act.adopted import AdoptedLaunches
from vigil.daemon.base.clock import Clock
from vigil.daemon.base.secrets import Secrets, read_secrets
from vigil.daemon.serve.sessions import Operations, new_session_id
from vigil.daemon.supervisor import Supervisor
from vigil.errors import NoSuchSession, Refused, UsageError, VigilError
from vigil.home import Home
from vigil.keeper.wire import as_json
from vigil.kernel.durable import record_json
from vigil.kernel.process import read_boot, read_stat
from vigil.kernel.processes import read_command, read_cwd, read_owner
from vigil.kernel.trust import Untrusted, check_server, is_below
from vigil.observe.process import find_named, read_process
from vigil.runtimes import Tmux
from vigil.runtimes.contract import declared_of
from vigil.runtimes.tmux.guard import END, TAG
from vigil.threads import DECLARED, in_thread

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
    """A candidate for adoption: a session on a foreign server, and its agent."""

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
        keeper_pid: Callable[[], int | None],
        secrets: Secrets,
    ) -> None:
        self._home = home
        self._clock = clock
        self._supervisor = supervisor
        self._operations = operations
        self._adopted = adopted
        self._tmux = tmux
        self._configured = configured
        self._keeper_pid = keeper_pid
        self._secrets = secrets
        self._boot = read_boot()

    async def candidates(self, sockets: Iterable[str]) -> list[Candidate]:
        """List what a caller could adopt; VigilError if servers refuse or are silent instead."""
        found, silent, refused = await self._look(sockets)
        if refused and not found:
            raise Refused(_strangers(refused))
        if silent and not found:
            raise VigilError(_no_answer(silent))
        return found

    async def _look(self, sockets: Iterable[str]) -> tuple[list[Candidate], list[str], list[str]]:
        """Look for adoption's candidates; also return silent servers, and why others were not asked."""
        found: list[Candidate] = []
        silent: list[str] = []
        refused: list[str] = []
        for path in dict.fromkeys(map(_absolute, sockets)):
            real = os.path.realpath(path)
            if self._is_own(real):
                continue
            try:
                listener = await in_thread(DECLARED, self._check, path, about=path)
                read = await self._read(real, listener)
            except Untrusted as error:
                refused.append(str(error))
            except (FileNotFoundError, ConnectionRefusedError):
                pass  # there is no server
            except OSError:
                silent.append(real)  # its backlog is full
            else:
                found += read or []
                silent += [real] if read is None else []
        return sorted(found, key=lambda candidate: (candidate.socket, candidate.name)), silent, refused

    def _check(self, path: str) -> int:
        """Return the server that adoption may ask: our user's, started by no watched agent."""
        pid, keeper = check_server(path), self._keeper_pid()
        if keeper is not None and is_below(pid, keeper):
            raise Untrusted(f"{path} leads to pid {pid}, which an agent that Vigil watches started")
        return pid

    def _is_own(self, path: str) -> bool:
        return os.path.dirname(path) == os.path.realpath(self._home.run)

    async def _read(self, path: str, listener: int) -> list[Candidate] | None:
        """Read a foreign server's candidates for adoption; None if it gave no whole answer."""
        call = self._tmux.commands_at(path)
        tags = ["list-sessions", "-F", "tag #{session_id} #{" + TAG + "}"]
        said = await call("list-panes", "-a", "-F", f"pane {PANE}", ";", *tags, ";", "display-message", "-p", END)
        lines = (said or b"").decode("utf-8", "replace").splitlines()
        if not lines or lines[-1] != END:
            return None
        marks = dict(line.split(" ", 2)[1:3] for line in lines if line.startswith("tag ") and line.count(" ") >= 2)
        rows = [found for line in lines if (found := ROW.fullmatch(line)) and int(found[4]) == listener]
        by_session: dict[str, list[re.Match[str]]] = {}
        for row in rows:
            by_session.setdefault(row[1], []).append(row)
        read = (self._candidate(path, target, panes, marks.get(target, "")) for target, panes in by_session.items())
        return [candidate for candidate in read if candidate is not None]

    def _candidate(self, path: str, target: str, panes: list[re.Match[str]], tag: str) -> Candidate | None:
        """Return a candidate for adoption: a session with a known agent, else its terminal's holder."""
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
        """Find the agent of a candidate for adoption, by its kind, in a pane's tree."""
        kinds = {name: adapter.processes for name, adapter in ADAPTERS.items()} | dict(self._configured())
        for kind, names in kinds.items():
            own = tuple(name for name in names if name not in SHARED)
            process = find_named(root, own) if own else None
            if process is not None:
                return _read_agent(kind, process)
        return None

    def _foreground(self, root: ProcessId) -> ProcessId | None:
        """Return who has the terminal of an adoption's candidate: its foreground group's leader."""
        try:
            stat = read_stat(root.pid)
        except OSError:
            return None
        known = stat is not None and stat.start_ticks == root.start_ticks and stat.tpgid > 0
        return self._process(stat.tpgid) if stat is not None and known else None

    def _process(self, pid: int) -> ProcessId | None:
        """Return a living process of our user; another's is not up for adoption."""
        try:
            stat, mine = read_stat(pid), read_owner(pid) == os.getuid()
        except OSError:
            return None
        return None if stat is None or stat.state in "ZX" or not mine else ProcessId(pid, stat.start_ticks, self._boot)

    async def adopt(self, target: str, sockets: Iterable[str], name: str | None, actor: str) -> Session:
        """Adopt the session that a caller names exactly; checks come before the first change."""
        sockets = [_absolute(path) for path in sockets]
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

    def _choose(self, target: str, found: list[Candidate], silent: list[str], refused: list[str]) -> Candidate:
        named = [one for one in found if one.name == target]
        if not named and target.startswith("="):  # tmux's own way to ask for an exact name
            named = [one for one in found if one.name == target[1:]]
        if not named and refused:
            raise Refused(f"{target} was not found: {_strangers(refused)}")
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
            off = shlex.join(["tmux", "-S", found.socket, "set-option", "-u", "-t", f"={found.name}:", TAG])
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
        """Record an adoption in its launch's folder, for a daemon without its store."""
        launch = session.launch
        assert launch is not None and launch.host is not None
        folder = self._home.launch(launch.id)
        folder.mkdir(mode=0o700)
        host = {"socket": launch.host.socket, "target": launch.host.target, "name": launch.host.name}
        order: dict[str, object] = {"runtime": "adopted", "launch": launch.id, "session_id": session.id, "host": host}
        env = read_secrets(launch.agent)
        order |= {"session": session.name, "created_at": launch.created_at, "declared": declared_of(session), "env": env}
        self._secrets.learn(session, env)
        record_json(str(folder / "launch.json"), order)
        record_json(str(folder / "born.json"), {**as_json(born_of(launch)), "boot": self._boot})

    async def release(self, name: str, actor: str, reason: str = "") -> Session:
        """End an adoption for its caller: all of the session goes on, without our marks."""
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


def _absolute(path: str) -> str:
    if "\0" in path or not os.path.isabs(path):
        raise UsageError(f"{path!r} is no absolute path of a socket")
    return os.path.normpath(path)


def _strangers(refused: list[str]) -> str:
    """Say why adoption did not ask some servers."""
    return f"{'; '.join(refused)}. No tmux client was started"


def _no_answer(silent: list[str]) -> str:
    """Say which silent servers may hold the session that a caller would adopt."""
    servers = "the tmux server at" if len(silent) == 1 else "the tmux servers at"
    return f"{servers} {', '.join(silent)} gave no answer"


def _read_agent(kind: str, process: ProcessId) -> ForeignAgent:
    """Read what the agent up for adoption runs, and where; unreadable parts stay open."""
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
