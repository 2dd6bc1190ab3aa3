"""Stopping all: a person who ends everything also ends what carries this home's mark and no session knows (P9).

A sweep keeps what is older than the store, which may only have been lost; a person who ends all has decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vigil.core.book import GRACE_S
from vigil.core.events import Noted
from vigil.core.model.launch import ProcessId
from vigil.daemon.act.signals import SURVIVOR_GRACE_S, end_processes
from vigil.daemon.sense.census import Census
from vigil.daemon.supervisor import Supervisor
from vigil.home import Home
from vigil.kernel.process import read_boot
from vigil.observe.strays import left_to, read_marked, read_servers
from vigil.threads import SWEEPS, in_thread

LEFT = "unknown-launch"  # in place of a launch
GRACES_S = (GRACE_S, SURVIVOR_GRACE_S, SURVIVOR_GRACE_S)  # ended processes may start others meanwhile


@dataclass(frozen=True)
class Unknown:
    """What a stop of all found of one launch without a session."""

    launch_id: str
    session: str
    processes: tuple[ProcessId, ...]

    def words(self) -> str:
        pids = ", ".join(str(process.pid) for process in sorted(self.processes, key=lambda one: one.pid))
        return f"{self.session or self.launch_id} (pid {pids})"


async def end_unknown(
    home: Home, supervisor: Supervisor, census: Census, keeper: Callable[[], int | None], actor: str
) -> tuple[list[Unknown], list[Unknown]]:
    """Stop all that has no session, verified and logged; return what was found and left."""
    found = left = await find_unknown(home, supervisor, census, keeper)
    for one in found:
        pids = " ".join(str(process.pid) for process in one.processes)
        told = (("actor", actor), ("pids", pids), ("why", "daemon stop --kill-sessions"))
        supervisor.feed(Noted("orphan.reaping", told, session=one.session or None, launch_id=one.launch_id))
    for grace_s in GRACES_S:
        if left:
            await end_processes([process for one in left for process in one.processes], grace_s)
            left = await find_unknown(home, supervisor, census, keeper)
    return found, left


async def find_unknown(home: Home, supervisor: Supervisor, census: Census, keeper: Callable[[], int | None]) -> list[Unknown]:
    """Find all to stop that no session knows: marked, left to the keeper, serving sockets."""
    boot = read_boot()
    launches = [session.launch for session in supervisor.machine.sessions.values() if session.launch is not None]
    known = {launch.id for launch in launches}
    seen = await census.take()
    marked = await in_thread(SWEEPS, read_marked, seen, known, str(home.spool))
    servers = await in_thread(SWEEPS, read_servers, home.run, known, boot)
    found: dict[str, dict[ProcessId, None]] = {launch_id: {server: None} for launch_id, server in servers.items()}
    for launch_id, those in marked.items():
        found.setdefault(launch_id, {}).update(dict.fromkeys(one.process for one in those))
    if left := left_to(keeper(), seen, launches):
        found[LEFT] = dict.fromkeys(left)
    names = {launch_id: max(one.session for one in those) for launch_id, those in marked.items()}  # some tell none
    return [Unknown(launch_id, names.get(launch_id, ""), tuple(processes)) for launch_id, processes in found.items()]
