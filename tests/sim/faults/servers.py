"""Faults of tmux servers and panes, and people who sit in them."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from tests.sim.faults.sizes import between, pick
from tests.sim.host import Body

if TYPE_CHECKING:
    from tests.sim.world import World


def server_is_killed(world: World, session_id: str, size: float) -> bool:
    body = world.body(session_id)
    if body is None or body.server is None or not body.server.alive:
        return False
    world.host.end(body, body.server, by_signal=pick(size, 9, 9, 11))
    return True


def all_servers_are_killed(world: World, session_id: str, size: float) -> bool:
    struck = [server_is_killed(world, other, size) for other in list(world.store.sessions)]
    return any(struck)


def pane_is_closed(world: World, session_id: str, size: float) -> bool:
    body = world.body(session_id)
    if body is None or body.root is None or not body.root.alive:
        return False
    world.host.close_pane(body)
    return True


def pane_is_hung_up(world: World, session_id: str, size: float) -> bool:
    """Somebody hangs up the pane's root; the server lives on, and some agents do too."""
    body = world.living(session_id)
    if body is None or body.root is None or not body.root.alive:
        return False
    body.ignores_hup |= pick(size, True, False)
    world.host.end(body, body.root, by_signal=pick(size, signal.SIGHUP, signal.SIGHUP, signal.SIGKILL))
    return True


def server_hangs(world: World, session_id: str, size: float) -> bool:
    body = world.body(session_id)
    if body is None or body.server is None or not body.server.alive or body.server.stopped:
        return False
    body.server.stopped = True
    world.engine.after(between(size, 2.0, 600.0), go_on, body)
    return True


def go_on(body: Body) -> None:
    """A stopped server goes on, with what it was asked meanwhile."""
    assert body.server is not None
    body.server.stopped = False
    body.has_socket |= body.repairs
    body.repairs = False


def all_servers_hang(world: World, session_id: str, size: float) -> bool:
    struck = [server_hangs(world, other, size) for other in list(world.store.sessions)]
    return any(struck)


def socket_is_lost(world: World, session_id: str, size: float) -> bool:
    body = world.body(session_id)
    if body is None or body.server is None or not body.server.alive:
        return False
    body.has_socket = False
    world.senses.look(body.launch_id)
    return True


def somebody_attaches(world: World, session_id: str, size: float) -> bool:
    body = world.body(session_id)
    if body is None or body.server is None or not body.server.alive:
        return False
    body.attached += 1
    world.engine.after(between(size, 10.0, 1200.0), _detach, body)
    return True


def comes_at_the_last_moment(world: World, session_id: str, size: float) -> bool:
    """Somebody attaches just when policy is about to end it."""
    body = world.body(session_id)
    if body is None or body.server is None or world.role_of(session_id) is None:
        return False
    world.people.comes[session_id] = size
    return True


def _detach(body: Body) -> None:
    body.attached = max(0, body.attached - 1)
