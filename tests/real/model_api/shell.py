"""The shell of a client: which of the tools it offers runs a command, and how that one is called."""

from __future__ import annotations

from collections.abc import Iterable

from tests.real.model_api.dialect import Json, Tool

SHELLS = ("bash", "run_shell_command", "exec_command", "shell_command", "shell")  # the first that is offered is taken
COMMANDS = ("command", "cmd")
FILLED = {"string": "as the script says", "boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}


def shell_of(tools: Iterable[Tool], names: Iterable[str] = SHELLS) -> Tool | None:
    """Return the tool that runs commands, or another one of these names, if one is offered."""
    offered = {tool.name.lower(): tool for tool in tools}
    return next((offered[name] for name in names if name in offered), None)


def arguments_of(shell: Tool, command: str) -> Json:
    """Return what the tool is called with to run a command; what else it requires is filled in."""
    properties = shell.schema.get("properties", {})
    key = next(name for name in COMMANDS if name in properties)
    words = ["sh", "-c", command] if properties[key].get("type") == "array" else command
    filled = {name: FILLED[properties[name].get("type", "string")] for name in shell.schema.get("required", ())}
    return filled | {key: words}
