"""OpenCode: how it starts with our plugin and a conversation to resume, and how its terminal looks (1.18).

The plugin joins the user's own. It has no transcript: its conversations are in a database that only OpenCode reads."""

from __future__ import annotations

import json
from urllib.parse import quote

from vigil.agents.contract import Adapter, Beginning, Dialog, Start
from vigil.agents.flags import NO_HOOKS, after_program, given, left_alone, resumed_by, unheard
from vigil.agents.opencode.hooks import EVENTS, read_hook
from vigil.agents.opencode.stream import read_stream
from vigil.agents.plugins import plugin
from vigil.agents.shapes import Json

RUN = "run"
OTHER_WORK = (
    "completion acp mcp attach debug providers auth agent upgrade uninstall serve web models stats export import github pr"
    " session plugin plug db"
)
CONVERSATION = ("--session", "-s", "--continue", "-c")
CONFIG = "OPENCODE_CONFIG_CONTENT"  # its plugins join those of every other configuration
PLUGIN_FILE = "opencode-plugin.mjs"


def begin(beginning: Beginning) -> Start:
    """Return the start with our plugin and, on resume, the conversation."""
    command = beginning.command
    if alone := left_alone("opencode", command, OTHER_WORK):
        return alone
    resumed, without = resumed_by("--session", beginning, CONVERSATION)
    env, files, unhooked = _plugin(beginning)
    return Start(
        after_program(beginning, resumed, words=2 if command[1:2] == (RUN,) else 1),
        env=env,
        files=files,
        conversation=beginning.conversation if resumed else "",
        without=(*without, *unhooked, *unheard(beginning, given(command, "--format"), "run --format json")),
        unresumed="".join(without),
    )


def _plugin(beginning: Beginning) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Return the environment and the file that make our plugin run beside the user's own."""
    if not beginning.hook:
        return {}, {}, (NO_HOOKS,)
    if given(beginning.command, "--pure") or beginning.place.env.get("OPENCODE_PURE"):
        return {}, {}, ("hooks: it is to run without plugins",)
    config = _config(beginning.place.env.get(CONFIG, ""))
    if config is None:
        return {}, {}, (f"hooks: {CONFIG} is set, and is no plain JSON",)
    config["plugin"] = [*config.get("plugin", []), f"file://{quote(beginning.folder)}/{PLUGIN_FILE}"]
    usage = f"\nconst USAGE = {json.dumps(not beginning.headless)}\n"  # headless, the stream of `run` reports it
    return {CONFIG: json.dumps(config)}, {PLUGIN_FILE: plugin(beginning.hook, usage + EVENTS)}, ()


def _config(given_already: str) -> Json | None:
    """Return the configuration from the environment; None if it is not readable."""
    try:
        config = json.loads(given_already or "{}")
    except (ValueError, RecursionError):
        return None
    fits = isinstance(config, dict) and isinstance(config.get("plugin", []), list)
    return config if fits else None


ADAPTER = Adapter(
    "opencode",
    command=("opencode",),
    processes=("opencode",),
    packages=("opencode-ai",),
    begin=begin,
    read_hook=read_hook,
    read_stream=read_stream,
    dialogs=(
        Dialog("permission", ("Permission required", "Allow once")),
        Dialog("login", ("Connect a provider",)),
    ),
    composer=(r"Ask anything", r"ctrl\+p commands"),
    submits=True,
    resumes=True,
    has_hooks=True,
    identity=(
        "XDG_DATA_HOME",
        "XDG_CONFIG_HOME",
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_CONTENT",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "OPENROUTER_API_KEY",
    ),
)
