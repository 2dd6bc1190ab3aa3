"""Checking: a document becomes a configuration, or the list of all its problems, in our words."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from types import NoneType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from vigil.config.models import ConfigTables, LadderTable, ReactionTable, RetentionTable, RouteTable
from vigil.config.values import AgentConfig, Config, IsolationConfig, LaunchConfig, ReaperConfig, RouteConfig
from vigil.config.wording import listed, place, shown
from vigil.core.handlers.operator import VERBS
from vigil.core.model.incident import HIBERNATE, IncidentKind, Ladder, LadderStep, Quiet, Reaction
from vigil.core.model.restart import RestartPolicy
from vigil.core.model.retention import Retention
from vigil.core.model.stall import Watchdog
from vigil.core.rules.escalation import usual_ladders
from vigil.core.rules.notice import RoutePatience
from vigil.core.rules.reaction import FOR

Place = tuple[int | str, ...]
MOST_PROBLEMS = 100
KEY = "[key]"  # pydantic's mark that an entry's key is wrong, not its value
WATCHDOG = {  # a key of the table, and its name in the program
    "stall_after": "stall_after_s",
    "tool_timeout": "tool_timeout_s",
    "mcp_tool_timeout": "mcp_tool_timeout_s",
    "subagent_timeout": "subagent_timeout_s",
    "approval_reminder": "approval_reminder_s",
    "stall_repeat_seconds": "stall_repeat_s",
    "liveness_timeout": "liveness_timeout_s",
    "stall_auto_kill": "stall_auto_kill",
}
KINDS = {
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "list_type": "an array",
    "dict_type": "a table",
    "model_type": "a table",
}


def check(document: dict[str, Any]) -> Config | tuple[str, ...]:
    """Return the configuration in a document, or its problems: a line each, with its place."""
    try:
        file = ConfigTables.model_validate(document)
    except ValidationError as error:
        return _lines([*_mistakes(error), *_contradictions(document)])
    contradictions = _lines(list(_contradictions(document)))
    return contradictions or _config_of(file)


def _lines(problems: list[tuple[Place, str]]) -> tuple[str, ...]:
    lines = [f"{place(where)}: {words}" for where, words in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        lines.append(f"and {len(problems) - MOST_PROBLEMS} more problems")
    return tuple(lines)


def _mistakes(found: ValidationError) -> Iterator[tuple[Place, str]]:
    """Yield what is wrong with a key or a value by itself."""
    for error in found.errors(include_url=False):
        where = error["loc"]
        if error["type"] == "value_error" and where[-1] == KEY:
            where = where[:-1]
        yield where, worded(error["type"], where, error["input"], error.get("ctx", {}))


def worded(kind: str, where: Place, value: object, context: dict[str, Any]) -> str:
    if kind == "value_error":
        return str(context["error"])  # our models raised it, in our words
    if kind == "extra_forbidden":
        return unknown_key(ConfigTables, where)
    if kind == "missing":
        return "is missing"
    return f"{shown(value)} is not {KINDS.get(kind, 'what belongs here')}"  # a later pydantic may have more kinds


def unknown_key(root: type[BaseModel], where: Place) -> str:
    """Say which keys there are instead of an unknown one."""
    keys = _keys_at(root, where[:-1])
    near = difflib.get_close_matches(str(where[-1]), keys, n=1)
    return f"unknown key; did you mean {near[0]}?" if near else f"unknown key; there are: {listed(keys)}"


def _keys_at(root: type[BaseModel], where: Place) -> list[str]:
    """Return the keys of the table at a place."""
    kind: Any = root
    for part in where:
        # The last argument of a list or dictionary type is its table.
        is_table = isinstance(kind, type) and issubclass(kind, BaseModel)
        kind = kind.model_fields[part].annotation if is_table else get_args(kind)[-1]
        kind = get_args(kind)[0] if NoneType in get_args(kind) else kind
    return list(kind.model_fields)


def _contradictions(document: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield what is wrong between values; it reads the document, so that no other mistake hides one."""
    routes = dict(tables(document.get("routes")))
    for name, route in routes.items():
        if len(route.keys() & {"exec", "url", "webhook"}) != 1:
            yield ("routes", name), "needs exactly one of exec, url and webhook"
        if "secret" in route and "webhook" not in route:
            yield ("routes", name, "secret"), "signs a webhook, and there is none"
    declared = document["routes"] if isinstance(document.get("routes"), dict) else {}
    for number, ladder in tables(document.get("ladder")):
        if not ladder.keys() & {"severity", "kind", "team"}:
            yield ("ladder", number), "needs a severity, a kind, a team or several of these"
        for index, step in tables(ladder.get("steps")):
            route = step.get("route")
            if isinstance(route, str) and route not in declared:
                there = f"there are: {listed(declared)}" if declared else "none is declared"
                yield ("ladder", number, "steps", index, "route"), f"{shown(route)} is no route; {there}"
    for number, reaction in tables(document.get("reaction")):
        yield from _reaction_contradictions(("reaction", number), reaction)


def _reaction_contradictions(where: Place, reaction: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    do, kind = reaction.get("do"), reaction.get("kind")
    if not isinstance(do, str) or do not in FOR:
        return
    if kind in list(IncidentKind) and kind not in FOR[do]:
        fitting = ", ".join(sorted(one.value for one in FOR[do]))
        yield where, f"do = {shown(do)} is not for {kind}: it is for {fitting}"
    if do == HIBERNATE and HIBERNATE not in VERBS:
        yield (*where, "do"), "this Vigil cannot hibernate a session yet"
    for key, only in (("text", "prompt"), ("command", "run")):
        if (key in reaction) != (do == only):
            yield where, f"do = {shown(do)} {'needs' if do == only else 'has no'} {key}"


def tables(value: object) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the tables in an array or a table, each with its number or name."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for where, entry in entries:
        if isinstance(entry, dict):
            yield where, entry


def _config_of(file: ConfigTables) -> Config:
    reaper = file.reaper
    return Config(
        agents={
            name: AgentConfig(tuple(agent.command), tuple(agent.process), agent.instrument, watchdog_of(agent.watchdog))
            for name, agent in file.agents.items()
        },
        routes={name: _route_of(route) for name, route in file.routes.items()},
        ladders=tuple(_ladder_of(ladder) for ladder in file.ladder) or usual_ladders(file.routes),
        quiet=tuple(Quiet(one.from_, one.to, frozenset(one.passes), one.timezone, one.team) for one in file.quiet),
        reactions=tuple(_reaction_of(reaction) for reaction in file.reaction),
        restart=RestartPolicy(
            when=file.restart.policy,
            max_restarts=file.restart.max_restarts,
            base_s=file.restart.backoff.base,
            cap_s=file.restart.backoff.cap,
            reset_after_s=file.restart.backoff.reset_after,
        ),
        launch=LaunchConfig(file.launch.least_memory),
        isolation=IsolationConfig(file.isolation.cgroups, file.isolation.cgroup_root, file.isolation.best_effort),
        reaper=ReaperConfig(reaper.enabled, reaper.interval, reaper.idle_ttl, reaper.grace, reaper.park_on_pressure),
        retention=_retention_of(file.retention),
        watchdog=watchdog_of(file.watchdog),
    )


def _retention_of(kept: RetentionTable) -> Retention:
    counts = (kept.events, kept.deaths, kept.incidents)
    return Retention(*counts, kept.age, kept.bundles, kept.bundle_age, kept.bundle_bytes)


def _route_of(route: RouteTable) -> RouteConfig:
    patience = RoutePatience(route.attempts, route.retry)
    command = tuple(route.exec)
    return RouteConfig(command, route.url, route.webhook, route.secret, route.details, route.timeout, patience)


def _ladder_of(ladder: LadderTable) -> Ladder:
    steps = tuple(LadderStep(step.route, step.after, step.repeat) for step in ladder.steps)
    return Ladder(steps, ladder.severity, ladder.kind, ladder.team)


def _reaction_of(reaction: ReactionTable) -> Reaction:
    return Reaction(
        reaction.kind,
        reaction.do.value,
        reaction.budget,
        reaction.after,
        reaction.every,
        reaction.text or "",
        tuple(reaction.command or ()),
        reaction.team,
    )


def watchdog_of(table: BaseModel) -> Watchdog:
    """Return what a table sets for silence; the rest stays unsaid."""
    return Watchdog(**{WATCHDOG[key]: getattr(table, key) for key in table.model_fields_set})
