"""Unknown launches: those that live and that the store does not know, read from their folders (DESIGN 4.5).

A database may be removed or replaced under running agents. Each launch's folder says whose it is, so none becomes an orphan."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vigil.codec import NotUnderstood, read
from vigil.core.events import Event, Recovered
from vigil.core.machine import Machine
from vigil.core.model.identity import why_not_an_identity
from vigil.core.model.launch import ForeignSession, Launch, ProcessId, RuntimeKind
from vigil.core.model.session import Session, Spec, State, unheard
from vigil.daemon.act import born_in
from vigil.daemon.base.agents import Kinds
from vigil.daemon.base.ground import Ground
from vigil.home import Home, parts_of
from vigil.kernel import durable, process

MOST_INDEX = 1 << 31
ROLES = ("agent", "root", "server")
UNKNOWN = "the store did not know what lives"


@dataclass(eq=False, repr=False)
class UnknownLaunches:
    _ground: Ground
    _machine: Machine
    _kinds: Kinds
    _done: Callable[[Event], Awaitable[None]]
    _adopt: Callable[[Session], Awaitable[Event | None]]
    _rewatch: Callable[[], Awaitable[None]]

    def find(self) -> dict[str, Session]:
        """Find live sessions that the store does not know, by id; names stay unique."""
        names = self._machine.by_name
        found = find_unknown(self._ground.home, self._machine.sessions, self._kinds.names_of, self._ground.now())
        return {session.id: session for session in found if names.get(session.name, session.id) == session.id}

    async def recover(self) -> None:
        """Take over launches that live unknown, in case their record went missing under us."""
        unknown = self.find()
        if unknown:
            await self._done(Recovered(tuple(unknown.values()), UNKNOWN))
            for session in unknown.values():
                if (event := await self._adopt(replace(session, state=State.RUNNING))) is not None:
                    self._ground.feed(event)
            await self._rewatch()


def find_unknown(
    home: Home, sessions: Mapping[str, Session], names_of: Callable[[str], tuple[str, ...]], now: float
) -> list[Session]:
    """Return sessions whose newest launch lives and is unknown: newer than any that we have."""
    boot = process.read_boot()
    newest: dict[str, Session] = {}
    for launch_id, (session_id, number) in _ids(home).items():
        known = sessions.get(session_id)
        if known is not None and known.launches >= number:
            continue
        found = _read(home, Launch(launch_id, session_id, number, now), boot, names_of, now)
        if found is not None and (session_id not in newest or newest[session_id].launches < found.launches):
            newest[session_id] = found
    return list(newest.values())


def roles_in(home: Home, known: Collection[str]) -> set[str]:
    """Return the roles of unknown launches on disk, without those of known sessions."""
    unknown = [launch_id for launch_id, (session_id, _) in _ids(home).items() if session_id not in known]
    found = (durable.read_json(str(home.launch(launch_id) / "launch.json")) for launch_id in unknown)
    declared = (order.get("declared") for order in found if order is not None)
    return {str(each["role"]) for each in declared if isinstance(each, dict) and each.get("role")}


def _ids(home: Home) -> dict[str, tuple[str, int]]:
    """List the launches on disk, known or unknown, each with its session's id and number."""
    try:
        return {name: parts for name in sorted(os.listdir(home.launches)) if (parts := parts_of(name)) is not None}
    except OSError:
        return {}


def _read(home: Home, found: Launch, boot: str, names_of: Callable[[str], tuple[str, ...]], now: float) -> Session | None:
    """Read an unknown launch's session; None if it is dead or its folder is silent."""
    folder = home.launch(found.id)
    order, born = durable.read_json(str(folder / "launch.json")), durable.read_json(str(folder / "born.json"))
    if order is None or born is None or process.is_other_boot(str(born.get("boot", boot)), boot):
        return None
    host = _host(order.get("host"))
    processes = born_in(born, found.id, adopted=host is not None)
    if processes is None or not process.is_alive(*processes.agent):
        return None
    name, declared = order.get("session"), order.get("declared")
    spec = _spec(order, declared)
    if spec is None or not isinstance(name, str) or why_not_an_identity(name) is not None:
        return None
    more = declared if isinstance(declared, dict) else {}
    created_at = order.get("created_at")
    began_at = float(created_at) if isinstance(created_at, int | float) and 0 < created_at < now else now
    root, server = (None if one is None else ProcessId(*one, boot) for one in (processes.root, processes.server))
    launch = replace(
        found,
        created_at=began_at,
        started_at=began_at,
        process=ProcessId(*processes.agent, boot),
        root=root,
        server=server,
        pane=processes.pane,
        names=() if host is not None else names_of(spec.agent),
        host=host,
    )
    role, index = more.get("role"), more.get("index")
    session = Session(
        launch.session_id, name, spec, began_at, State.STARTING, now, "found alive", launch=launch, vitals=unheard(now)
    )
    return replace(
        session,
        launches=launch.number,
        role=role if isinstance(role, str) else None,
        index=index if isinstance(index, int) and 0 <= index < MOST_INDEX else 0,
        conversation=str(more.get("conversation") or ""),
    )


def _spec(order: Mapping[str, Any], declared: object) -> Spec | None:
    """Return what an unknown launch was declared with; an older order tells its command."""
    if isinstance(declared, dict) and "spec" in declared:
        try:
            found = read(Spec, declared["spec"], "spec", [])
        except NotUnderstood:
            return None
        assert isinstance(found, Spec)
        return found
    argv, cwd = order.get("argv"), order.get("cwd")
    if not isinstance(argv, list) or not isinstance(cwd, str):
        return None
    runtime = RuntimeKind.HEADLESS if order.get("runtime") == "headless" else RuntimeKind.TMUX
    return Spec(tuple(map(str, argv)), cwd, runtime=runtime)


def _host(found: object) -> ForeignSession | None:
    if not isinstance(found, dict):
        return None
    return ForeignSession(str(found.get("socket", "")), str(found.get("target", "")), str(found.get("name", "")))
