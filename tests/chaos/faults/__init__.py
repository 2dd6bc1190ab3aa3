"""Faults: what a real night could do, a row each with its weight; a strike says what it did, or nothing if it could not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.chaos.faults import cgroups, orders, people, pids, processes, sockets, store
from tests.chaos.stage import Stage

Strike = Callable[[Stage], str]


@dataclass(frozen=True)
class Fault:
    name: str
    weight: float
    strike: Strike


FAULTS = (
    Fault("daemon killed", 6, processes.kill_daemon),
    Fault("daemon stopped", 2, processes.stop_daemon),
    Fault("keeper killed", 5, processes.kill_keeper),
    Fault("keeper stopped", 2, processes.stop_keeper),
    Fault("both killed", 4, processes.kill_both),
    Fault("daemon killed again and again", 1, processes.kill_daemon_again_and_again),
    Fault("server killed", 5, processes.kill_server),
    Fault("server stopped", 2, processes.stop_server),
    Fault("servers with a backlog stopped", 1, sockets.stop_crowded_servers),
    Fault("shim killed", 2, processes.kill_shim),
    Fault("pane closed", 4, processes.close_pane),
    Fault("agent killed", 6, processes.kill_agent),
    Fault("agent stopped", 2, processes.stop_agent),
    Fault("agents die at once", 1, processes.kill_many),
    Fault("keeper.sock removed", 2, sockets.remove_keeper_socket),
    Fault("api.sock removed", 2, sockets.remove_api_socket),
    Fault("sockets removed, daemon killed", 2, sockets.remove_sockets_and_kill),
    Fault("store locked", 2, store.lock),
    Fault("store full", 1, store.fill),
    Fault("FIFO in the spool", 1, store.plant_fifo),
    Fault("keeper killed between order and birth", 5, orders.kill_keeper_at_birth),
    Fault("both killed between order and birth", 3, orders.kill_both_at_birth),
    Fault("pid recycled", 2, pids.recycle_as_process),
    Fault("pid recycled as a thread", 2, pids.recycle_as_thread),
    Fault("agent moved to another cgroup", 1, cgroups.move),
    Fault("out of memory in another cgroup", 1, cgroups.run_out_of_memory),
    Fault("a command", 12, people.ask_once),
    Fault("twenty commands at once", 3, people.ask_twenty),
    Fault("removed and declared again", 3, people.remove_and_declare),
)


def draw(rng: Random, faults: tuple[Fault, ...] = FAULTS) -> Fault:
    """Draw one by weight."""
    return rng.choices(faults, [fault.weight for fault in faults])[0]
