"""The schema of a manifest says what its loader does, and the reference page what the schema says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from vigil.config.models import ConfigWatchdog
from vigil.manifest import models
from vigil.manifest.reading import ManifestRefused, read_manifest
from vigil.manifest.schema import schema

DOCS = Path(__file__).parents[3] / "docs" / "manifest.md"
SCHEMA = schema()
START = 'workspace = "w"\n[[team]]\nname = "t"\n[[team.role]]\nname = "r"\nagent = "claude"\n'


def tables() -> dict[str, dict[str, Any]]:
    """Return the tables of the schema by the heading that the page has for them."""
    parts = SCHEMA["$defs"]
    return {
        "The file": SCHEMA,
        "`[[team]]`": parts["TeamTable"],
        "`[[team.role]]`": parts["RoleTable"],
        "`backoff` of a role": parts["BackoffTable"],
        "`health` of a role": parts["HealthTable"],
        "`watchdog` of a role": parts["WatchdogTable"],
    }


def example() -> str:
    (found,) = re.findall(r"```toml\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    return str(found)


def is_valid(text: str) -> bool:
    return bool(Draft202012Validator(SCHEMA).is_valid(tomllib.loads(text)))


def is_read(text: str) -> bool:
    try:
        read_manifest(text, "vigil.toml", "/srv", {})
    except ManifestRefused:
        return False
    return True


def test_it_is_a_schema_of_the_draft_it_names() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(SCHEMA)


def test_the_example_of_the_reference_page_is_valid() -> None:
    assert is_valid(example())


@pytest.mark.parametrize(
    "more",
    [
        "",
        "replicas = 0",
        "replicas = 1000",
        "replicas = -1",
        "replicas = 1001",
        "replicas = true",
        "replicas = '2'",
        "replica = 2",
        "agent = 3",
        "agent = ''",
        "command = []",
        "command = ['']",
        "command = ['a', '']",
        "command = ['a', 1]",
        "command = [1]",
        "command = 'a'",
        "runtime = 'headless'",
        "runtime = 'zellij'",
        "cwd = ''",
        "cwd = 1",
        "env = { A = 'b' }",
        "env = { A = 1 }",
        "env = { 'A=B' = 'c' }",
        "env = { '' = 'c' }",
        "restart = 'never'",
        "restart = 'alwyas'",
        "max_restarts = 0",
        "max_restarts = -1",
        "max_restarts = 1000001",
        "backoff = { base = 0.01 }",
        "backoff = { base = 0 }",
        "backoff = { base = '5 s' }",
        "backoff = { bse = 1 }",
        "autostart = true",
        "autostart = 1",
        "after_crash = 'resume'",
        "after_crash = 'never'",
        "retry_saturated = 0",
        "retry_saturated = '0'",
        "retry_saturated = 0.5",
        "idle_ttl = 0",
        "idle_ttl = '0'",
        "idle_ttl = -1",
        "idle_ttl = 2592001",
        "health = {}",
        "health = { heartbeat = 60 }",
        "health = { heartbeat = 0 }",
        "health = { heartbeat = 60, failures = 0 }",
        "health = { heartbeat = 60, failures = 101 }",
        "health = { heartbeat = 60, heartbeat_by = 'command' }",
        "health = { heartbeat = 60, heartbeat_by = 'nobody' }",
        "watchdog = { stall_auto_kill = false, tool_timeout = 86400 }",
        "watchdog = { tool_timeout = 86401 }",
        "watchdog = { stall_auto_kill = 'no' }",
    ],
)
def test_the_schema_and_the_loader_agree_on_a_value(more: str) -> None:
    text = START.replace('agent = "claude"', more) if more.startswith("agent") else START + more

    assert is_valid(text) == is_read(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "workspace = 'w'",
        "workspace = 'w'\nteam = []",
        "workspace = 'w'\nteam = {}",
        "workspace = 'w'\n[[team]]\nname = 't'",
        "workspace = 'w'\n[[team]]\nname = 't'\nrole = []",
        START.replace('"w"', '"W"'),
        START.replace('"t"', '"-t"'),
        START.replace('"r"', f'"{"r" * 65}"'),
        START.replace('name = "r"', ""),
        f"nothing = 1\n{START}",
        f"{START}[team.extra]\n",
    ],
)
def test_the_schema_refuses_a_wrong_form_like_the_loader(text: str) -> None:
    assert not is_valid(text)
    assert not is_read(text)


def keys() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, table in tables().items():
        for key, entry in table["properties"].items():
            yield f"{name}: {key}", entry


def test_every_key_is_described_and_every_default_is_valid() -> None:
    for name, entry in keys():
        assert entry.get("description") or "$ref" in entry, name
        if "default" in entry:
            Draft202012Validator({**entry, "$defs": SCHEMA["$defs"]}).validate(entry["default"])


def test_every_table_refuses_keys_it_does_not_know() -> None:
    assert [name for name, table in tables().items() if table["additionalProperties"] is not False] == []


def test_a_role_has_the_same_watchdog_as_the_configuration() -> None:
    ours, theirs = models.WatchdogTable(), ConfigWatchdog()

    assert ours.model_dump() == theirs.model_dump()


def test_the_command_prints_it_without_a_daemon(tmp_path: Path) -> None:
    env = {"VIGIL_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    argv = [sys.executable, "-m", "vigil.cli", "schema"]

    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=60)

    assert json.loads(done.stdout) == SCHEMA
    assert list(tmp_path.iterdir()) == []


# The reference page


def kind_of(entry: dict[str, Any]) -> str:
    if "$comment" in entry:
        return str(entry["$comment"]).removeprefix("a ")
    if "$ref" in entry:
        return "table, below"
    if "enum" in entry:
        return ", ".join(f"`{word}`" for word in entry["enum"])
    if "anyOf" in entry:
        return ", ".join(f"`{word}`" for word in entry["anyOf"][0]["enum"]) + ", or one of the configuration"
    if entry["type"] == "integer":
        return f"whole number: {entry['minimum']} to {entry['maximum']}"
    kinds = {"boolean": "`true` or `false`", "object": "table of texts", "string": "text"}
    if entry["type"] == "array":
        kind = "array of texts, first a program" if "prefixItems" in entry else "array of texts"
        return f"tables: 1 to {entry['maxItems']}" if "maxItems" in entry else kind
    return "name" if "pattern" in entry else kinds[entry["type"]]


def default_of(key: str, entry: dict[str, Any], table: dict[str, Any]) -> str:
    default = entry.get("default")
    if key in table.get("required", ()):
        return "must be there"
    if isinstance(default, dict) or default is None:
        return ""
    if "$comment" in entry:
        return duration(default)
    return f"`{json.dumps(default)}`" if isinstance(default, bool) else f"`{default}`"


def duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s" if seconds else "0"


def rows(table: dict[str, Any]) -> str:
    lines = ["| key | type | default | means |", "|---|---|---|---|"]
    for key, entry in table["properties"].items():
        described = entry if "description" in entry else SCHEMA["$defs"][entry["$ref"].rpartition("/")[2]]
        means = described["description"].removesuffix(".")
        lines.append(f"| `{key}` | {kind_of(entry)} | {default_of(key, entry, table)} | {means} |")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", tables())
def test_the_reference_page_says_what_the_schema_says(name: str) -> None:
    _, heading, after = DOCS.read_text("utf-8").partition(f"\n## {name}\n")

    assert heading
    assert rows(tables()[name]) in after.partition("\n## ")[0]
