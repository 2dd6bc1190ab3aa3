"""Whatever a manifest holds, it is read or refused; one that was written and read again is the same."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.manifests import AGENTS, GENERIC, read
from vigil.core.model.identity import why_not_an_identity
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.session import Spec
from vigil.core.model.stall import Watchdog
from vigil.core.model.team import Health, Manifest, RoleSpec
from vigil.manifest.checking import check
from vigil.manifest.models import ManifestFile, ManifestTable
from vigil.manifest.reading import ManifestRefused, read_declared

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.dates(),
    st.sampled_from(["w", "claude", "mine", "always", "never", "resume", "5m", "0", "hooks", "command", "~x", 10**30, -1, 60]),
)
KEYS = st.sampled_from(sorted({key for table in ManifestTable.__subclasses__() for key in table.model_fields} | {"[key]"}))
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner), max_leaves=20)
ROLES = st.dictionaries(KEYS, VALUES, max_size=8)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4) | st.fixed_dictionaries(
    {"workspace": st.just("w"), "team": st.lists(st.fixed_dictionaries({"name": LEAVES, "role": st.lists(ROLES, max_size=3)}))}
)


@given(DOCUMENTS)
def test_whatever_a_document_holds_it_is_a_manifest_or_problems_in_our_words(document: dict[str, Any]) -> None:
    found = check(document, "", AGENTS, RestartPolicy())

    if not isinstance(found, ManifestFile):
        assert found
        for line in found:
            assert "\n" not in line
            assert "what belongs here" not in line, line


@given(st.text(alphabet=st.characters(codec=None), max_size=60) | st.text(alphabet="ab=[]{}.\"'\\#,\n 1", max_size=40))
def test_whatever_a_text_holds_it_is_refused_or_read(text: str) -> None:
    for whole in (text, GENERIC + text):
        try:
            read(whole)
        except ManifestRefused as refused:
            assert str(refused).endswith(" Nothing was applied.")
            assert "\n" not in str(refused)


NAMES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
SECONDS = st.floats(1, 86400)
ENVIRONMENTS = st.dictionaries(TEXTS.filter(lambda name: name and "=" not in name), TEXTS, max_size=3)
WATCHDOGS = st.builds(
    Watchdog,
    **dict.fromkeys(
        ("stall_after_s", "tool_timeout_s", "mcp_tool_timeout_s", "subagent_timeout_s", "approval_reminder_s"),
        st.none() | SECONDS,
    ),
    stall_repeat_s=st.none() | SECONDS,
    liveness_timeout_s=SECONDS,
    stall_auto_kill=st.none() | st.booleans(),
)


@st.composite
def policies(draw: st.DrawFn) -> RestartPolicy:
    base_s, cap_s, reset_after_s = sorted(draw(st.tuples(*[st.floats(0.01, 86400)] * 3)))
    when = draw(st.sampled_from(RestartWhen))
    most = 0 if when is RestartWhen.NEVER else draw(st.integers(0, 10**6))
    return RestartPolicy(when, most, base_s=base_s, cap_s=cap_s, reset_after_s=reset_after_s)


@st.composite
def role_specs(draw: st.DrawFn, team: str) -> RoleSpec:
    agent = draw(st.sampled_from(["generic", "claude", "mine"]))
    command = (draw(TEXTS.filter(bool)), *draw(st.lists(TEXTS, max_size=3)))
    cwd = "/" + "/".join(draw(st.lists(NAMES, max_size=3)))
    policy = draw(policies())
    return RoleSpec(
        "w",
        team,
        draw(NAMES),
        draw(st.integers(0, 1000)),
        Spec(command, cwd, agent, draw(st.sampled_from(RuntimeKind)), policy),
        autostart=draw(st.booleans()),
        after_crash=draw(st.sampled_from(["fresh", "resume"])) if agent == "claude" else "fresh",
        retry_saturated_s=draw(SECONDS) if policy.max_restarts else 0.0,
        idle_ttl_s=draw(st.just(0.0) | st.floats(1, 30 * 86400)),
        health=draw(st.none() | st.builds(Health, SECONDS, st.integers(1, 100), SECONDS)),
        watchdog=draw(WATCHDOGS),
        speaks=agent == "claude",
    )


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    names = draw(st.lists(NAMES, min_size=1, max_size=2, unique=True))
    by_team = [draw(st.lists(role_specs(team), min_size=1, max_size=2, unique_by=lambda role: role.name)) for team in names]
    return Manifest("w", tuple(role for found in by_team for role in found))


def written(manifest: Manifest, env: dict[str, str]) -> str:
    """Write a manifest as TOML."""
    text = f"workspace = {toml(manifest.workspace)}\n"
    team = None
    for role in manifest.roles:
        text += "" if role.team == team else f"[[team]]\nname = {toml(role.team)}\n"
        team = role.team
        text += "[[team.role]]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in role_table(role, env).items())
    return text


def role_table(role: RoleSpec, env: dict[str, str]) -> dict[str, Any]:
    spec, policy, watchdog = role.spec, role.spec.restart, role.watchdog
    given = {
        "stall_after": watchdog.stall_after_s,
        "tool_timeout": watchdog.tool_timeout_s,
        "mcp_tool_timeout": watchdog.mcp_tool_timeout_s,
        "subagent_timeout": watchdog.subagent_timeout_s,
        "approval_reminder": watchdog.approval_reminder_s,
        "stall_repeat_seconds": watchdog.stall_repeat_s,
        "liveness_timeout": watchdog.liveness_timeout_s,
        "stall_auto_kill": watchdog.stall_auto_kill,
    }
    table = {
        "name": role.name,
        "replicas": role.replicas,
        "agent": spec.agent,
        "command": list(spec.command),
        "runtime": str(spec.runtime),
        "cwd": spec.cwd,
        "env": env,
        "restart": str(policy.when),
        "max_restarts": policy.max_restarts,
        "backoff": {"base": policy.base_s, "cap": policy.cap_s, "reset_after": policy.reset_after_s},
        "autostart": role.autostart,
        "after_crash": role.after_crash,
        "retry_saturated": role.retry_saturated_s,
        "idle_ttl": role.idle_ttl_s,
        "watchdog": {key: value for key, value in given.items() if value is not None},
    }
    if role.health is not None:
        table["health"] = {
            "heartbeat": role.health.heartbeat_s,
            "failures": role.health.failures,
            "grace": role.health.grace_s,
            "heartbeat_by": "command",
        }
    return table


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml(key)} = {toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(entry) for entry in value) + "]"
    if isinstance(value, str):
        return '"' + re.sub(r'[\x00-\x1f\x7f"\\]', lambda found: f"\\u{ord(found[0]):04x}", value) + '"'
    return json.dumps(value)


@given(manifests(), ENVIRONMENTS)
def test_a_manifest_that_was_written_and_read_again_is_the_same(manifest: Manifest, env: dict[str, str]) -> None:
    declared = read_declared(written(manifest, env), "vigil.toml", "/srv", AGENTS)

    assert declared.manifest == manifest
    assert declared.env == {role.key: env for role in manifest.roles}


@given(manifests())
def test_every_slot_of_a_manifest_is_an_identity(manifest: Manifest) -> None:
    assert [role.slot(999) for role in read(written(manifest, {})).roles if why_not_an_identity(role.slot(999))] == []
