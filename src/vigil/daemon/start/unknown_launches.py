"""Recovering: launches that live and that the store does not know, read from their folders (DESIGN 4.5).

A database can be removed, or an old copy be put in its place, under agents that run. Each launch's folder says whose it is:
so they are taken over under their own names, and nothing of theirs is an orphan.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from vigil.core.handlers.spawn import unheard
from vigil.core.model.identity import why_not_an_identity
from vigil.core.model.launch import ForeignSession, Launch, ProcessId, RuntimeKind
from vigil.core.model.session import Session, Spec, State
from vigil.home import Home, parts_of
from vigil.kernel import durable
from vigil.kernel.process import is_alive, is_other_boot, read_boot
from vigil.recording.codec import NotUnderstood, read

ROLES = ("agent", "root", "server")


def find_unknown(
    home: Home, sessions: Mapping[str, Session], names_of: Callable[[str], tuple[str, ...]], now: float
) -> list[Session]:
    """Return sessions whose newest launch lives and is not known: those of no session we have, or newer than its last."""
    boot = read_boot()
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
    """Return the roles that launches on disk are of, those of sessions that are known aside."""
    unknown = [launch_id for launch_id, (session_id, _) in _ids(home).items() if session_id not in known]
    found = (durable.read_json(str(home.launch(launch_id) / "launch.json")) for launch_id in unknown)
    declared = (order.get("declared") for order in found if order is not None)
    return {str(each["role"]) for each in declared if isinstance(each, dict) and each.get("role")}


def _ids(home: Home) -> dict[str, tuple[str, int]]:
    """Return the launches on disk by their ids, each with its session's id and its number."""
    try:
        return {name: parts for name in sorted(os.listdir(home.launches)) if (parts := parts_of(name)) is not None}
    except OSError:
        return {}


def _read(home: Home, found: Launch, boot: str, names_of: Callable[[str], tuple[str, ...]], now: float) -> Session | None:
    """Return the session of a launch whose agent lives; None if it does not, or its folder does not say whose it is."""
    folder = home.launch(found.id)
    order, born = durable.read_json(str(folder / "launch.json")), durable.read_json(str(folder / "born.json"))
    if order is None or born is None or is_other_boot(str(born.get("boot", boot)), boot):
        return None
    known = {role: process for role in ROLES if (process := _process(born.get(role), boot)) is not None}
    agent = known.get("agent")
    if agent is None or not is_alive(agent.pid, agent.start_ticks):
        return None
    name, declared = order.get("session"), order.get("declared")
    spec = _spec(order, declared)
    if spec is None or not isinstance(name, str) or why_not_an_identity(name) is not None:
        return None
    more = declared if isinstance(declared, dict) else {}
    created_at = order.get("created_at")
    began_at = float(created_at) if isinstance(created_at, int | float) else now
    pane = born.get("pane")
    host = _host(order.get("host"))
    launch = replace(
        found,
        created_at=began_at,
        started_at=began_at,
        process=agent,
        root=known.get("root"),
        server=known.get("server"),
        pane=pane if isinstance(pane, str) else None,
        names=() if host is not None else names_of(spec.agent),
        host=host,
    )
    role = more.get("role")
    session = Session(
        launch.session_id, name, spec, began_at, State.STARTING, now, "found alive", launch=launch, axes=unheard(now)
    )
    return replace(
        session,
        launches=launch.number,
        role=role if isinstance(role, str) else None,
        index=int(more.get("index") or 0),
        conversation=str(more.get("conversation") or ""),
    )


def _process(found: object, boot: str) -> ProcessId | None:
    if isinstance(found, list) and len(found) == 2 and all(isinstance(number, int) for number in found):
        return ProcessId(found[0], found[1], boot)
    return None


def _spec(order: Mapping[str, Any], declared: object) -> Spec | None:
    """Return what was declared; an order from before that was written down still says what it runs."""
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
