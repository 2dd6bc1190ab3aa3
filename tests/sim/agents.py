"""Simulated agents: what they do all day, and the words they say of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.sim.host import Body
from vigil.core.events import Observed
from vigil.core.model.launch import RuntimeKind

if TYPE_CHECKING:
    from tests.sim.world import World

PAUSE_S = (120.0, 2400.0)  # between two words
NO_PROMISE_S = 300.0  # so often it is asked whether there is one
FINISH_CHANCE = 0.01  # with each word, of those that ever finish
LIFE_ONLY = ""  # a sign of life that says nothing more
HEARTBEAT = {"event": "heartbeat"}


def _hook(name: str, **more: Any) -> dict[str, Any]:
    return {"hook_event_name": name, **more}


def _bash(call: str) -> dict[str, Any]:
    """A tool call: a permission is asked for without its id, so what it is given has to name it."""
    return {"tool_name": "Bash", "tool_input": {"command": call}}


def _tools(call: str) -> Iterator[tuple[dict[str, Any], str]]:
    """One call of a tool, from its start to its end; whoever it was that asked, its end answers."""
    yield _hook("PreToolUse", tool_use_id=call, **_bash(call)), f"tool {call}"
    yield _hook("PermissionRequest", **_bash(call)), f"asks {call}"
    yield _hook("PostToolUse", tool_use_id=call, **_bash(call)), f"answered {call}, ended {call}"
    yield _hook("PostToolUseFailure", tool_use_id=call, **_bash(call)), f"answered {call}, ended {call}"
    yield _hook("PermissionDenied", tool_use_id=call, **_bash(call)), f"answered {call}, ended {call}"
    yield _hook("PreToolUse", tool_use_id=call, agent_id="a1", **_bash(call)), LIFE_ONLY  # a sub-agent's
    yield _hook("PermissionRequest", agent_id="a1", **_bash(f"s{call}")), f"asks s{call}"  # its questions are its parent's
    yield _hook("PostToolUse", agent_id="a1", tool_use_id=f"s{call}", **_bash(f"s{call}")), f"answered s{call}, ended s{call}"
    yield {"type": "permission.asked", "id": f"p{call}"}, f"asks p{call}"
    yield {"type": "permission.replied", "id": f"p{call}"}, f"answered p{call}"


# What agents say, and what they mean by it: from their own documentation, not from our tables.
WORDS: tuple[tuple[dict[str, Any], str], ...] = (
    *(word for call in "12" for word in _tools(call)),
    (_hook("Setup"), LIFE_ONLY),
    (_hook("SessionStart", source="startup"), "rests"),
    (_hook("SessionStart", source="compact"), LIFE_ONLY),
    (_hook("UserPromptSubmit"), "prompt"),
    (_hook("UserPromptSubmit", source="system"), "turn"),
    (_hook("UserPromptExpansion"), LIFE_ONLY),
    (_hook("PreToolUse", tool_name="AskUserQuestion", tool_use_id="q"), "tool q, asks q"),
    (_hook("PostToolUse", tool_name="AskUserQuestion", tool_use_id="q"), "ended q"),
    (_hook("Elicitation"), "asks e"),
    (_hook("ElicitationResult"), "answered e"),
    (_hook("Notification", notification_type="elicitation_dialog"), "asks e"),
    (_hook("PreCompact", trigger="auto"), LIFE_ONLY),
    (_hook("PostCompact", trigger="auto"), LIFE_ONLY),
    (_hook("PreCompact", trigger="manual"), "turn"),
    (_hook("PostCompact", trigger="manual"), "rests"),
    (_hook("Stop"), "rests"),
    (_hook("StopFailure", error="server_error"), "rests"),
    (_hook("SessionEnd", reason="clear"), "rests"),
    (_hook("SessionEnd", reason="other"), "rests"),
    (_hook("Notification", notification_type="permission_prompt"), LIFE_ONLY),
    (_hook("Notification", notification_type="idle_prompt"), "rests"),
    (_hook("Notification", notification_type="auth_success"), LIFE_ONLY),
    (_hook("MessageDisplay"), LIFE_ONLY),
    (_hook("SubagentStart", agent_type="Explore", agent_id="a1"), LIFE_ONLY),
    (_hook("SubagentStop", agent_type="Explore", agent_id="a1"), LIFE_ONLY),
    ({"type": "agent-turn-complete"}, "rests"),
    (_hook("BeforeAgent"), "prompt"),
    (_hook("BeforeModel"), "thinks"),
    (_hook("AfterAgent"), "rests"),
    ({"activity": "waiting-timer"}, "plainly, waits"),
    ({"activity": "throttled"}, "limited, turn, retries"),
    ({"activity": "waiting-human"}, "plainly, turn, asks plainly"),
    ({"activity": "tool"}, "plainly, tool plainly"),
    ({"activity": "idle"}, "rests"),
    (_hook("SomethingNobodyListed"), LIFE_ONLY),
)


class Agents:
    """All agents of a host, each living its own day."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.calm = False  # in the end nobody finishes any more

    def born(self, body: Body) -> None:
        """An agent begins its day."""
        if body.agent is not None:
            self._world.engine.after(self._world.chances(body.session_id).uniform(1.0, 300.0), self._speak, body)
        if body.agent is not None and self._world.role_of(body.session_id) is not None:
            self._world.engine.after(self._world.chances(f"{body.session_id} beats").uniform(0.5, 9.0), self._beat, body)

    def _speak(self, body: Body) -> None:
        world, agent = self._world, body.agent
        if agent is None or not agent.alive:
            return
        chances = world.chances(body.session_id)
        world.engine.after(chances.uniform(*PAUSE_S), self._speak, body)
        if agent.stopped or body.silent:
            return
        if not self.calm and chances.random() < FINISH_CHANCE:
            world.say("agent", body.launch_id, "finishes")
            world.host.end(body, agent, exit_code=0, why="itself")
            return
        if body.kind is RuntimeKind.HEADLESS and chances.random() < 0.3:
            self._print(body)
            return
        payload, meant = chances.choice(WORDS)
        if not body.muted:
            world.spool.write(body, payload, meant)

    def is_let_in(self, body: Body | None) -> None:
        """Somebody has logged a living agent in: its model answers, and it begins with a tool."""
        if body is None:
            return
        payload, meant = next(_tools("1"))
        self._world.spool.write(body, payload, meant)

    def _print(self, body: Body) -> None:
        """It prints, and its output is read; what nobody reads is in its file."""
        body.printed_at = self._world.engine.now
        if self._world.daemon.runs:
            self._world.daemon.feed(Observed(body.launch_id, (), active_at=self._world.daemon.clock()))

    def _beat(self, body: Body) -> None:
        """Give the signs of life that its role promises, if there is such a promise."""
        world, agent = self._world, body.agent
        health = world.health_of(body.session_id)
        if agent is None or not agent.alive:
            return
        pace = world.chances(f"{body.session_id} beats").uniform(*((1.1, 1.9) if body.late_beats else (0.5, 0.95)))
        world.engine.after(pace * (health.heartbeat_s if health is not None else NO_PROMISE_S), self._beat, body)
        if agent.stopped or body.silent or health is None:
            return
        if not body.muted:
            world.spool.write(body, HEARTBEAT, LIFE_ONLY)
        elif body.kind is RuntimeKind.HEADLESS:
            self._print(body)
