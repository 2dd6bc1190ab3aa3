"""Pi: how it starts with our extension and a conversation to resume, and how its terminal looks (0.73).

It never asks for a permission, and starts without a dialog.
"""

from __future__ import annotations

from vigil.agents.contract import Adapter, Beginning, Start
from vigil.agents.flags import NO_HOOKS, after_program, given, is_own, left_alone, resumed_by, wrapped
from vigil.agents.pi.hooks import EVENTS, read_hook
from vigil.agents.pi.stream import read_stream
from vigil.agents.pi.transcript import read_entry, transcripts
from vigil.agents.plugins import plugin

OTHER_WORK = frozenset({"install", "remove", "uninstall", "update", "list", "config"})
CONVERSATION = ("--session", "--continue", "-c", "--resume", "-r", "--fork", "--no-session")
EXTENSION_FILE = "pi-extension.mjs"


def begin(beginning: Beginning) -> Start:
    """Return the start with our extension and, on resume, the conversation."""
    command = beginning.command
    if not is_own(ADAPTER, command):
        return left_alone(command, wrapped(ADAPTER, command))
    if command[1:2] and command[1] in OTHER_WORK:
        return left_alone(command, f"flags, hooks, resume: pi {command[1]} is no session")
    resumed, without = resumed_by("--session", beginning, CONVERSATION)
    hooked = ("--extension", f"{beginning.folder}/{EXTENSION_FILE}") if beginning.hook else ()
    return Start(
        after_program(beginning, (*resumed, *hooked)),
        files={EXTENSION_FILE: plugin(beginning.hook, EVENTS)} if beginning.hook else {},
        conversation=beginning.conversation if resumed else "",
        without=(*without, *(() if beginning.hook else (NO_HOOKS,)), *_unheard(beginning)),
        unresumed="".join(without),
    )


def _unheard(beginning: Beginning) -> tuple[str, ...]:
    heard = not beginning.headless or given(beginning.command, "--mode")
    return () if heard else ("stream: it is not asked for with --mode json",)


ADAPTER = Adapter(
    "pi",
    command=("pi",),
    processes=("pi",),
    programs=("pi",),
    begin=begin,
    read_hook=read_hook,
    read_stream=read_stream,
    read_entry=read_entry,
    transcripts=transcripts,
    composer=(r"^─{20,}\s*\n\s*─{20,}",),  # empty between the lines: its menus stand between such lines too
    submits=True,
    resumes=True,
    terminal=True,
    has_hooks=True,
    identity=(
        "PI_CODING_AGENT_DIR",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "OPENROUTER_API_KEY",
    ),
)
