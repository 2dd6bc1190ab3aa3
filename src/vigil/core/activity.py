"""Activity: what an agent's own events say it is doing (DESIGN 4.1).

Pure, and tables: an event's name, and for some its detail, name the activity. What nobody listed is a sign of life only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from vigil.core.said import Said


class Activity(StrEnum):
    """What an agent is doing."""

    STARTING = "starting"
    WORKING = "working"
    THINKING = "thinking"
    TOOL = "tool"
    WAITING_HUMAN = "waiting-human"
    WAITING_TIMER = "waiting-timer"
    THROTTLED = "throttled"
    IDLE = "idle"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook event as it was read."""

    launch_id: str
    name: str  # the event's name; empty if it has none
    activity: str  # what the agent is doing; empty: a sign of life that says nothing more
    why: str  # a few words for people
    at: float
    said: tuple[Said, ...] = ()  # the same in words of no agent's own, where its kind is known: then these count


ACTIVITIES = frozenset(Activity)
WHY_CHARS = 80
NAMES = ("hook_event_name", "type", "event", "kind")  # where an event's name may stand; the first that is text counts
SIGN_OF_LIFE = ""

HOOKS: dict[str, str] = {
    # Claude Code; Codex and Qwen Code use the same names.
    "Setup": Activity.STARTING,
    "SessionStart": Activity.IDLE,  # it is up, and no turn is open yet
    "UserPromptSubmit": Activity.WORKING,
    "UserPromptExpansion": Activity.WORKING,
    "PreToolUse": Activity.TOOL,
    "PermissionRequest": Activity.WAITING_HUMAN,
    "PermissionDenied": Activity.WORKING,
    "PostToolUse": Activity.WORKING,
    "PostToolUseFailure": Activity.WORKING,
    "PostToolBatch": Activity.WORKING,
    "Elicitation": Activity.WAITING_HUMAN,
    "ElicitationResult": Activity.WORKING,
    "PreCompact": Activity.WORKING,
    "PostCompact": Activity.WORKING,
    "Stop": Activity.IDLE,
    "StopFailure": Activity.IDLE,
    "SessionEnd": Activity.IDLE,  # that the process ends is for the process axis to say
    "Notification": SIGN_OF_LIFE,  # its type says more, below
    "MessageDisplay": SIGN_OF_LIFE,  # it may come after the Stop of its own turn
    "SubagentStart": SIGN_OF_LIFE,
    "SubagentStop": SIGN_OF_LIFE,
    # Codex, `notify`.
    "agent-turn-complete": Activity.IDLE,
    # Gemini CLI; the names it shares stand above.
    "BeforeAgent": Activity.WORKING,
    "PreCompress": Activity.WORKING,
    "BeforeModel": Activity.THINKING,
    "BeforeToolSelection": Activity.THINKING,
    "AfterModel": Activity.THINKING,  # one for each piece of an answer
    "BeforeTool": Activity.TOOL,
    "AfterTool": Activity.WORKING,
    "AfterAgent": Activity.IDLE,
}

# The key of an event's detail. Never a prompt, an input or an answer: those are nobody's but the agent's.
DETAILS: dict[str, str] = {
    "SessionStart": "source",
    "SessionEnd": "reason",
    "PreToolUse": "tool_name",
    "PermissionRequest": "tool_name",
    "PermissionDenied": "tool_name",
    "PostToolUse": "tool_name",
    "PostToolUseFailure": "tool_name",
    "BeforeTool": "tool_name",
    "AfterTool": "tool_name",
    "Notification": "notification_type",
    "PreCompact": "trigger",
    "PostCompact": "trigger",
    "PreCompress": "trigger",
    "StopFailure": "error",
    "SubagentStart": "agent_type",
    "SubagentStop": "agent_type",
}

# Where the detail decides, and not the name alone.
BY_DETAIL: dict[tuple[str, str], str] = {
    ("Notification", "permission_prompt"): Activity.WAITING_HUMAN,
    ("Notification", "agent_needs_input"): Activity.WAITING_HUMAN,
    ("Notification", "elicitation_dialog"): Activity.WAITING_HUMAN,
    ("Notification", "ToolPermission"): Activity.WAITING_HUMAN,
    ("Notification", "idle_prompt"): Activity.IDLE,
    ("Notification", "agent_completed"): Activity.IDLE,
    ("PreToolUse", "AskUserQuestion"): Activity.WAITING_HUMAN,  # tools whose whole work is to ask a person
    ("PreToolUse", "ExitPlanMode"): Activity.WAITING_HUMAN,
    ("SessionStart", "compact"): SIGN_OF_LIFE,  # in the middle of a turn, or after it
    ("PostCompact", "manual"): Activity.IDLE,  # asked for between two turns
}


def read_payload(payload: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return an event's name, what it says the agent is doing, and that in words; whatever it holds, it never raises."""
    name = next((value for key in NAMES if (value := _text(payload, key))), "")
    detail = _text(payload, DETAILS[name]) if name in DETAILS else ""
    activity = _activity_of(payload, name, detail)
    return _shown(name), activity, _shown(f"{name} {detail}") or activity


def _activity_of(payload: Mapping[str, Any], name: str, detail: str) -> str:
    if payload.get("agent_id"):
        return SIGN_OF_LIFE  # a sub-agent's: it goes on while its parent waits for a person
    said = _text(payload, "activity")
    if said in ACTIVITIES:
        return said
    return str(BY_DETAIL.get((name, detail), HOOKS.get(name, SIGN_OF_LIFE)))


def _text(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def _shown(text: str) -> str:
    """Return text for people: one short line that no terminal and no encoding stumbles over."""
    printable = "".join(char if char.isprintable() else " " for char in text[:WHY_CHARS])
    return " ".join(printable.split())
