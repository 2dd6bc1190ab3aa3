"""Walls: an agent says that it met its limit, or that nobody lets it in, and exits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.faults.sizes import between, pick
from tests.sim.host import Body
from vigil.core.model import Cause, RuntimeKind, Words

if TYPE_CHECKING:
    from tests.sim.world import World


def meets_its_limit(world: World, session_id: str, size: float) -> bool:
    """It says when the limit ends, or does not, or names a moment that has passed."""
    body = world.living(session_id)
    if body is None:
        return False
    now, for_s = world.daemon.clock(), between(size, 30.0, 7200.0)
    resets_at = pick(size, now + for_s, now + for_s, now - for_s, None, None)
    _exit(world, body, Words(Cause.LIMIT, "the answer was 429", resets_at), pick(size, 0, 1), 173)
    return True


def is_locked_out(world: World, session_id: str, size: float) -> bool:
    body = world.living(session_id)
    if body is None:
        return False
    _exit(world, body, Words(Cause.AUTH, "the answer was 401"), pick(size, 0, 1), 145)
    return True


def _exit(world: World, body: Body, words: Words, code: int, code_in_pane: int) -> None:
    """End it with its words: what it prints is read; in a pane only its exit code can say so."""
    assert body.agent is not None
    body.words = words
    code = code if body.kind is RuntimeKind.HEADLESS else code_in_pane
    world.host.end(body, body.agent, exit_code=code, why="itself")
