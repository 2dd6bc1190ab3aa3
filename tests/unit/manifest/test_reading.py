"""A manifest declares what it may, and no more than there is room for."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.manifests import GENERIC, START, problems, read
from vigil.agents import KINDS
from vigil.config.loading import LARGEST_BYTES
from vigil.core.model.identity import why_not_an_identity
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.session import Spec
from vigil.core.model.stall import Watchdog
from vigil.core.model.team import Health, Manifest, RoleSpec
from vigil.manifest.contradictions import REPORTING
from vigil.manifest.reading import DEFAULTS, read_declared

DOCS = Path(__file__).parents[3] / "docs" / "manifest.md"
INTERFACE = """
workspace = "shop"

[[team]]
name = "backend"

[[team.role]]
name = "coder"
replicas = 2
agent = "claude"                 # or codex, gemini, opencode, generic
command = ["claude"]             # optional where the agent has a default
runtime = "tmux"
cwd = "~/src/shop"
env = { KEY = "value" }
restart = "always"               # always | on-failure | never
max_restarts = 5                 # 0 = no limit
backoff = { base = "5s", cap = "5m", reset_after = "10m" }
autostart = false                # come back by itself after a reboot
after_crash = "fresh"            # or resume
retry_saturated = "0"            # a half-open trial after this long; "0" = wait for a human
idle_ttl = "48h"                 # "0" = never
health = { heartbeat = "60s", failures = 3 }   # optional; needs a producer, else refused
watchdog = { liveness_timeout = "10m", stall_auto_kill = false, stall_repeat_seconds = 180, tool_timeout = "10m" }
"""
ON_FAILURE = RestartPolicy(RestartWhen.ON_FAILURE)


def role_of(text: str, defaults: RestartPolicy = DEFAULTS) -> RoleSpec:
    (role,) = read(text, defaults).roles
    return role


# What it declares


def test_the_example_of_the_interface_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/alice")

    declared = read_declared(INTERFACE, "vigil.toml", "/srv", {})

    policy = RestartPolicy(RestartWhen.ALWAYS, max_restarts=5, base_s=5.0, cap_s=300.0, reset_after_s=600.0)
    coder = RoleSpec(
        "shop",
        "backend",
        "coder",
        2,
        Spec(("claude",), "/home/alice/src/shop", "claude", RuntimeKind.TMUX, policy),
        idle_ttl_s=48 * 3600.0,
        health=Health(60.0, 3, 60.0),
        speaks=True,
        watchdog=Watchdog(tool_timeout_s=600.0, stall_repeat_s=180.0, liveness_timeout_s=600.0, stall_auto_kill=False),
    )
    assert declared.manifest == Manifest("shop", (coder,))
    assert declared.env == {"shop/backend/coder": {"KEY": "value"}}


def test_the_example_of_the_reference_page_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    (example,) = re.findall(r"```toml\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)

    coder, tests, writer = read(example).roles

    assert [coder.slot(1), tests.key, writer.key] == ["shop/backend/coder/1", "shop/backend/tests", "shop/docs/writer"]
    assert coder.spec.cwd == "/home/alice/src/shop"
    assert tests.spec == Spec(("./watch-tests", "--quiet"), "/srv/shop", "generic", RuntimeKind.HEADLESS, ON_FAILURE)
    assert tests.health == Health(300.0, 3, 300.0)
    assert (writer.spec.command, writer.after_crash, writer.idle_ttl_s) == (("codex",), "resume", 0.0)


def test_what_is_not_said_is_the_default() -> None:
    assert role_of(GENERIC) == RoleSpec("w", "t", "r", 1, Spec(("x",), "/srv/shop", restart=ON_FAILURE))


def test_what_is_not_said_of_restarts_is_as_the_configuration_says() -> None:
    configured = RestartPolicy(RestartWhen.ALWAYS, max_restarts=7, base_s=1.0, cap_s=10.0, reset_after_s=20.0)

    assert role_of(GENERIC, configured).spec.restart == replace(configured, when=RestartWhen.ON_FAILURE)
    text = GENERIC + 'restart = "always"\nmax_restarts = 0\nbackoff = { cap = 15 }\n'
    assert role_of(text, configured).spec.restart == replace(configured, max_restarts=0, cap_s=15.0)


@pytest.mark.parametrize(
    ("cwd", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a/../b/", "/b"),
        (".", "/srv/shop"),
        ("web", "/srv/shop/web"),
        ("../web", "/srv/web"),
        ("~", "/home/alice"),
        ("~/x", "/home/alice/x"),
        ("./~", "/srv/shop/~"),
    ],
)
def test_a_folder_is_made_absolute_and_need_not_exist(monkeypatch: pytest.MonkeyPatch, cwd: str, path: str) -> None:
    monkeypatch.setenv("HOME", "/home/alice")

    assert role_of(GENERIC + f'cwd = "{cwd}"').spec.cwd == path


@pytest.mark.parametrize(("agent", "command"), [("claude", ("claude",)), ("mine", ("mine", "--fast"))])
def test_an_agent_with_a_default_needs_no_command(agent: str, command: tuple[str, ...]) -> None:
    assert role_of(START + f'agent = "{agent}"').spec.command == command


def test_the_command_of_a_role_goes_before_its_agents_default() -> None:
    assert role_of(GENERIC + 'agent = "mine"').spec.command == ("x",)


@pytest.mark.parametrize(
    "more",
    [
        "replicas = 0",
        "replicas = 1000",
        "max_restarts = 0",
        "idle_ttl = 0",
        "idle_ttl = '30d'",
        "retry_saturated = '0'",
        "max_restarts = 1\nretry_saturated = '24h'",
        "restart = 'never'\nmax_restarts = 0\nretry_saturated = 0",
        "backoff = { base = 0.01 }",
        "backoff = { base = 5, cap = 5, reset_after = 5 }",
        "health = { heartbeat = 1, heartbeat_by = 'command' }",
        "watchdog = { stall_auto_kill = true, liveness_timeout = 1 }",
        "env = {}",
        "env = { A = '' }",
    ],
)
def test_what_is_allowed_at_the_edge_is_allowed(more: str) -> None:
    assert role_of(GENERIC + more)


@pytest.mark.parametrize("agent", sorted(KINDS.keys() - {"generic"}))
def test_an_agent_with_hooks_promises_a_heartbeat_and_resumes(agent: str) -> None:
    role = role_of(START + f"agent = '{agent}'\nhealth = {{ heartbeat = 60 }}\nafter_crash = 'resume'")

    assert agent in REPORTING
    assert (role.health, role.after_crash) == (Health(60.0, grace_s=60.0), "resume")


def test_the_same_role_may_be_in_two_teams() -> None:
    text = START + "command = ['x']\n[[team]]\nname = 'u'\n[[team.role]]\nname = 'r'\ncommand = ['x']"

    assert [role.key for role in read(text).roles] == ["w/t/r", "w/u/r"]


def test_the_environment_is_not_part_of_what_is_shown() -> None:
    declared = read_declared(GENERIC + "env = { TOKEN = 'secret' }", "vigil.toml", "/srv", {})

    assert declared.env == {"w/t/r": {"TOKEN": "secret"}}
    assert "secret" not in repr(declared)


def test_defaults_of_the_configuration_contradict_nothing_of_the_manifest() -> None:
    odd = RestartPolicy(base_s=1.0, cap_s=100.0, reset_after_s=50.0)

    assert role_of(GENERIC + "backoff = { base = 2 }", odd).spec.restart.base_s == 2.0


def test_the_longest_names_make_identities() -> None:
    text = GENERIC.replace('"w"', f'"{"w" * 64}"').replace('"t"', f'"{"t" * 64}"').replace('"r"', f'"{"r" * 64}"')

    assert why_not_an_identity(role_of(text + "replicas = 1000").slot(999)) is None


# What is too much


def roles(count: int, replicas: int = 1) -> str:
    rows = ",\n".join(f'{{ name = "r{number}", command = ["x"], replicas = {replicas} }}' for number in range(count))
    return f"workspace = 'w'\n[[team]]\nname = 't'\nrole = [{rows}]\n"


def teams(count: int) -> str:
    rows = (f"[[team]]\nname = 't{number}'\nrole = [{{ name = 'r', agent = 'pi' }}]\n" for number in range(count))
    return f"workspace = 'w'\n{''.join(rows)}"


@pytest.mark.parametrize(
    ("most", "more", "problem"),
    [
        (teams(200), teams(201), "team (line 2): 201 teams are too many: at most 200"),
        (roles(1000), roles(1001), "team (line 2): 1001 roles in all are too many: at most 1000"),
        (roles(5, 1000), roles(6, 1000), "team (line 2): 6000 replicas in all are too many: at most 5000"),
    ],
)
def test_there_is_a_most_of_everything(most: str, more: str, problem: str) -> None:
    assert read(most)
    assert problems(more) == [problem]


def test_a_text_of_one_mebibyte_is_read_and_a_larger_one_refused() -> None:
    full = GENERIC + "#" * (LARGEST_BYTES - len(GENERIC))

    assert read(full)
    assert problems(full + "#") == ["is larger than 1 MiB"]
    assert problems(GENERIC + "#" + "ä" * (LARGEST_BYTES // 2)) == ["is larger than 1 MiB"]
