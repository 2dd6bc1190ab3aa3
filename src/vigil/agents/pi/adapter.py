"""Pi: how it starts with our extension and a conversation to resume, and how its terminal looks (0.73).

It never asks for a permission, and starts without a dialog."""

from __future__ import annotations

from vigil.agents.contract import Adapter, Beginning, Start
from vigil.agents.flags import NO_HOOKS, after_program, given, left_alone, resumed_by, unheard
from vigil.agents.pi.hooks import EVENTS, read_hook
from vigil.agents.pi.stream import read_stream
from vigil.agents.pi.transcript import read_entry, transcripts
from vigil.agents.plugins import plugin

OTHER_WORK = "install remove uninstall update list config"
CONVERSATION = ("--session", "--continue", "-c", "--resume", "-r", "--fork", "--no-session")
EXTENSION_FILE = "pi-extension.mjs"


def begin(beginning: Beginning) -> Start:
    """Return the start with our extension and, on resume, the conversation."""
    command = beginning.command
    if alone := left_alone("pi", command, OTHER_WORK):
        return alone
    resumed, without = resumed_by("--session", beginning, CONVERSATION)
    hooked = ("--extension", f"{beginning.folder}/{EXTENSION_FILE}") if beginning.hook else ()
    unhooked = () if beginning.hook else (NO_HOOKS,)
    return Start(
        after_program(beginning, (*resumed, *hooked)),
        files={EXTENSION_FILE: plugin(beginning.hook, EVENTS)} if beginning.hook else {},
        conversation=beginning.conversation if resumed else "",
        without=(*without, *unhooked, *unheard(beginning, given(command, "--mode"), "--mode json")),
        unresumed="".join(without),
    )


ADAPTER = Adapter(
    "pi",
    command=("pi",),
    processes=("pi",),
    packages=("@mariozechner/pi-coding-agent",),
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
    identity=("PI_CODING_AGENT_DIR", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
)
