"""Prompts: whether Vigil may type a prompt into a session now; the first row that holds decides.

Typing cannot be taken back: it answers a dialog, and a shell executes it. So only a known, free composer allows it (P2, P7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from vigil.core.model.session import State


@dataclass(frozen=True, slots=True)
class ComposerSight:
    """What is known of a session and its terminal just before Vigil types a prompt."""

    state: State
    headless: bool = False
    process: str = "alive"  # of its agent
    server: str = "alive"
    asked: str = ""  # its agent's open question
    pane_read: bool = True
    pane_dead: bool = False
    in_mode: bool = False  # a person scrolls, or chooses
    foreground: str = "agent"  # the process that has the terminal: agent, other, unknown
    screen_read: bool = True
    dialog: str = ""
    composer: bool | None = None  # None: this kind of agent does not show its composer
    draft: bool = False  # a person has begun to type there


class PromptRefusal(NamedTuple):
    why: Callable[[ComposerSight], str]
    holds: Callable[[ComposerSight], bool]
    passes: bool = False


REFUSALS = (
    PromptRefusal(lambda _: "it is headless and has no terminal", lambda s: s.headless),
    PromptRefusal(lambda s: f"it is {s.state}", lambda s: s.state is State.STARTING, passes=True),
    PromptRefusal(lambda s: f"it is {s.state}", lambda s: s.state is not State.RUNNING),
    PromptRefusal(lambda _: "its agent is stopped (SIGSTOP or Ctrl-Z)", lambda s: s.process == "stopped"),
    PromptRefusal(lambda _: "its agent has ended", lambda s: s.process == "dead"),
    PromptRefusal(lambda _: "its agent cannot be read", lambda s: s.process != "alive"),
    PromptRefusal(lambda _: "its tmux server does not answer", lambda s: s.server != "alive" or not s.pane_read, passes=True),
    PromptRefusal(lambda _: "its pane is dead", lambda s: s.pane_dead),
    PromptRefusal(lambda _: "its pane is in copy mode: somebody reads there", lambda s: s.in_mode, passes=True),
    PromptRefusal(lambda _: "a shell has its terminal, not its agent", lambda s: s.foreground == "other"),
    PromptRefusal(lambda _: "who has its terminal cannot be told", lambda s: s.foreground != "agent"),
    PromptRefusal(lambda s: f"it shows a dialog ({s.dialog}): a person has to answer it", lambda s: bool(s.dialog)),
    PromptRefusal(lambda s: f"it waits for a person: {s.asked}", lambda s: bool(s.asked)),
    PromptRefusal(lambda _: "its screen cannot be read", lambda s: s.composer is not None and not s.screen_read, passes=True),
    PromptRefusal(lambda _: "it shows no composer that could take a prompt", lambda s: s.composer is False, passes=True),
    PromptRefusal(lambda _: "somebody has begun to type there", lambda s: s.draft, passes=True),
)


def why_not(sight: ComposerSight) -> PromptRefusal | None:
    """Return why Vigil may type no prompt into a session now; None if it may."""
    return next((row for row in REFUSALS if row.holds(sight)), None)
