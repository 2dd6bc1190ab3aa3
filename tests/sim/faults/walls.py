"""Walls: an agent says that it met its limit, or that nobody lets it in, and exits; or says so in a hook, and lives on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.sim.faults.sizes import between, pick
from tests.sim.host import Body
from vigil.core.model.death import Cause, Words
from vigil.core.model.launch import RuntimeKind

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


def says_it_met_its_limit(world: World, session_id: str, size: float) -> bool:
    body = world.living(session_id)
    if body is None or body.muted or body.silent or (body.agent is not None and body.agent.stopped):
        return False
    now, for_s = world.daemon.clock(), between(size, 30.0, 7200.0)
    resets_at = pick(size, now + for_s, now + for_s, now - for_s, None)
    words = "You have hit your session limit" + ("" if resets_at is None else f", resets {_rfc3339(resets_at)}")
    _say(world, body, "rate_limit", words, Words(Cause.LIMIT, words, resets_at))
    return True


def says_it_is_locked_out(world: World, session_id: str, size: float) -> bool:
    body = world.living(session_id)
    if body is None or body.muted or body.silent or (body.agent is not None and body.agent.stopped):
        return False
    _say(world, body, "authentication_failed", "Please run /login", Words(Cause.AUTH, "Please run /login"))
    return True


def _say(world: World, body: Body, error: str, words: str, meant: Words) -> None:
    body.met = (*body.met, meant)
    payload = {"hook_event_name": "StopFailure", "error": error, "last_assistant_message": words}
    until = "" if meant.resets_at is None else f" {meant.resets_at!r}"
    world.spool.write(body, payload, f"rests, {meant.cause}{until}")


def _rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def _exit(world: World, body: Body, words: Words, code: int, code_in_pane: int) -> None:
    """End it with its words: what it prints is read; in a pane only its exit code can say so."""
    assert body.agent is not None
    body.words = words
    code = code if body.kind is RuntimeKind.HEADLESS else code_in_pane
    world.host.end(body, body.agent, exit_code=code, why="itself")
