"""Contradictions: what is wrong between the values of a manifest, each of which may be right by itself.

It reads the document, not the checked tables, so that no other mistake hides a contradiction.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vigil.agents.adapters import ADAPTERS
from vigil.agents.kinds import ConfiguredAgents, agent_of, kind_of, names_of
from vigil.config.checking import tables
from vigil.config.durations import BACKOFF, Range
from vigil.config.wording import listed, place, shown
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.kernel.theirs import open_regular
from vigil.manifest.lines import Place
from vigil.manifest.models import MOST_REPLICAS, MOST_REPLICAS_IN_ALL, MOST_ROLES, MOST_TEAMS, RETRY, AfterCrash, HeartbeatBy

Problem = tuple[Place, str]
Table = dict[str, Any]
REPORTING = frozenset(name for name, adapter in ADAPTERS.items() if adapter.has_hooks)  # their hooks show that they live
SIGNS = ("heartbeat", "fake-agent", "fake_agent")  # in a command: it calls vigil heartbeat, or plays an agent with hooks
SCRIPT_BYTES = 64 << 10
RESUMING = frozenset(name for name, adapter in ADAPTERS.items() if adapter.resumes)
ORDER = (("base", "cap"), ("cap", "reset_after"))  # the first must not be longer than the second


def contradictions(document: Table, agents: Mapping[str, ConfiguredAgents], defaults: RestartPolicy) -> Iterator[Problem]:
    """Yield each contradiction, with its place."""
    teams = dict(tables(_array(document.get("team"))))
    roles: dict[Place, Table] = {
        ("team", t, "role", r): role for t, team in teams.items() for r, role in tables(_array(team.get("role")))
    }
    yield from _too_many(document, roles)
    yield from _same_names(("team",), teams)
    for number, team in teams.items():
        yield from _same_names(("team", number, "role"), dict(tables(_array(team.get("role")))))
    for where, role in roles.items():
        yield from _of_role(where, role, agents, defaults)


def _array(value: object) -> object:
    return value if isinstance(value, list) else []


def _too_many(document: Table, roles: Mapping[Place, Table]) -> Iterator[Problem]:
    team = document.get("team")
    if isinstance(team, list) and len(team) > MOST_TEAMS:
        yield ("team",), f"{len(team)} teams are too many: at most {MOST_TEAMS}"
    if len(roles) > MOST_ROLES:
        yield ("team",), f"{len(roles)} roles in all are too many: at most {MOST_ROLES}"
    replicas = sum(_replicas_of(role) for role in roles.values())
    if replicas > MOST_REPLICAS_IN_ALL:
        yield ("team",), f"{replicas} replicas in all are too many: at most {MOST_REPLICAS_IN_ALL}"


def _replicas_of(role: Table) -> int:
    value = role.get("replicas", 1)
    return value if type(value) is int and 0 <= value <= MOST_REPLICAS else 0  # a check of its own reports other values


def _same_names(where: Place, tables: Mapping[int, Table]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for number, table in tables.items():
        name = table.get("name")
        if isinstance(name, str) and first.setdefault(name, number) != number:
            yield (*where, number, "name"), f"{shown(name)} is the name of {place((*where, first[name]))} already"


def _of_role(where: Place, role: Table, agents: Mapping[str, ConfiguredAgents], defaults: RestartPolicy) -> Iterator[Problem]:
    agent = role["agent"] if "agent" in role else kind_of(_words(role.get("command")), agents)
    found: list[Iterable[Problem]] = [_restart(role, defaults), _backoff(role, defaults), _watchdog(role), _folder(role)]
    found.append(_sandbox(role))
    if isinstance(agent, str):
        known = agent in names_of(agents)
        found.append(_agent(role, agent, agents) if known else [(("agent",), _no_agent(agent, agents))])
    for problems in found:
        for below, words in problems:
            yield (*where, *below), words


def _no_agent(agent: str, agents: Iterable[str]) -> str:
    names = names_of(agents)
    near = difflib.get_close_matches(agent, names, n=1)
    return f"{shown(agent)} is no agent; " + (f"did you mean {near[0]}?" if near else f"there are: {listed(names)}")


def _agent(role: Table, agent: str, agents: Mapping[str, ConfiguredAgents]) -> Iterator[Problem]:
    if "command" not in role and not agent_of(agent, agents).command:
        yield ("command",), f"is missing: {agent} has no default"
    if role.get("after_crash") == AfterCrash.RESUME and agent not in RESUMING:
        yield ("after_crash",), f"{agent} cannot resume a conversation: use {shown(str(AfterCrash.FRESH))}"
    health = role.get("health")
    if isinstance(health, dict) and agent not in REPORTING:
        if health.get("heartbeat_by") == HeartbeatBy.HOOKS:
            yield ("health", "heartbeat_by"), f"{agent} has no hooks"
        elif "heartbeat" in health and "heartbeat_by" not in health and not _sends_signs(role.get("command")):
            words = f'nobody sends it: {agent} has no hooks; if it calls vigil heartbeat, add heartbeat_by = "command"'
            yield ("health", "heartbeat"), words


def _sends_signs(command: object) -> bool:
    """Say whether a command gives signs of life, by its words or by the script that it names."""
    words = _words(command)
    return any(sign in word for word in words for sign in SIGNS) or any(map(_is_script_with_signs, words[:2]))


def _words(command: object) -> tuple[str, ...]:
    return tuple(word for word in command if isinstance(word, str)) if isinstance(command, list) else ()


def _is_script_with_signs(path: str) -> bool:
    if not os.path.isabs(path) or "\0" in path:
        return False
    try:
        with open(open_regular(path)[0], "rb") as file:
            text = file.read(SCRIPT_BYTES)
    except OSError:
        return False
    return text.startswith(b"#!") and any(sign.encode() in text for sign in SIGNS)


def _restart(role: Table, defaults: RestartPolicy) -> Iterator[Problem]:
    restarts = role.get("max_restarts", defaults.max_restarts)
    retry_s = _seconds(role, "retry_saturated", RETRY) or 0.0
    if role.get("restart") == RestartWhen.NEVER:
        if type(role.get("max_restarts")) is int and restarts > 0:
            yield ("max_restarts",), 'contradicts restart = "never"'
        if retry_s > 0:
            yield ("retry_saturated",), 'contradicts restart = "never"'
    elif retry_s > 0 and type(restarts) is int and restarts == 0:
        yield ("retry_saturated",), "has no effect: without max_restarts the role is never given up"


def _backoff(role: Table, defaults: RestartPolicy) -> Iterator[Problem]:
    given = role.get("backoff")
    if not isinstance(given, dict):
        return
    usual_s = {"base": defaults.base_s, "cap": defaults.cap_s, "reset_after": defaults.reset_after_s}
    for short, long in ORDER:
        short_s = _seconds(given, short, BACKOFF) if short in given else usual_s[short]
        long_s = _seconds(given, long, BACKOFF) if long in given else usual_s[long]
        if short_s is None or long_s is None or short_s <= long_s:
            continue
        if long in given:
            yield ("backoff", long), f"{long_s:g} s is shorter than {short}, which is {short_s:g} s"
        elif short in given:
            yield ("backoff", short), f"{short_s:g} s is longer than {long}, which is {long_s:g} s"


def _seconds(table: Table, key: str, range_: Range) -> float | None:
    """Return a duration of a table; None if it is missing, or wrong by itself."""
    try:
        return range_.read(table[key])
    except (KeyError, ValueError):
        return None


def _watchdog(role: Table) -> Iterator[Problem]:
    watchdog = role.get("watchdog")
    if isinstance(watchdog, dict) and watchdog.get("stall_auto_kill") is True and "liveness_timeout" not in watchdog:
        words = "needs liveness_timeout beside it: after how long replicas are ended is not left open"
        write = 'write { stall_auto_kill = true, liveness_timeout = "10m" }, or what fits'
        yield ("watchdog", "stall_auto_kill"), f"{words}; {write}"


def _sandbox(role: Table) -> Iterator[Problem]:
    for key in ("sandbox_read", "sandbox_write", "sandbox_network"):
        if key in role and "sandbox" not in role:
            yield (key,), 'has no effect without sandbox = "bwrap"'


def _folder(role: Table) -> Iterator[Problem]:
    cwd = role.get("cwd")
    if isinstance(cwd, str) and cwd.startswith("~") and "\0" not in cwd and not os.path.isabs(os.path.expanduser(cwd)):
        yield ("cwd",), f"{shown(cwd)} names a home folder that nobody knows"
