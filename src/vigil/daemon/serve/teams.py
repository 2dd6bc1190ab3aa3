"""Teams: reads and checks manifests, hands them to the core whole, and waits for what they end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from vigil.agents.accounts import account_of
from vigil.agents.adapters import adapter_of
from vigil.config.durations import DAY_S, Range
from vigil.config.loading import ConfigFile
from vigil.core.events import Applied, ShiftAborted, ShiftAsked
from vigil.core.machine import Machine
from vigil.core.model.launch import RuntimeKind
from vigil.core.model.session import State
from vigil.core.model.team import Manifest, Role, RoleSpec
from vigil.core.rules.plan import Plan, PlanVerb, is_same, make_plan
from vigil.daemon.act.isolation import Isolation
from vigil.daemon.base.environments import Environments
from vigil.daemon.serve.programs import why_not_executable
from vigil.daemon.serve.sessions import END_S, is_unwanted, not_ended
from vigil.daemon.supervisor import Supervisor
from vigil.errors import NoSuchSession, Refused, UsageError, VigilError
from vigil.manifest.reading import read_declared
from vigil.manifest.values import DeclaredRole
from vigil.runtimes import Runtime
from vigil.runtimes.sandbox import why_no_sandbox
from vigil.threads import DECLARED, in_thread

MOST_REPLICAS = 1000
LAST = "supervisor"  # a role of this name is shifted after those it looks after
LAUNCHES = (PlanVerb.CREATE, PlanVerb.UPDATE, PlanVerb.REPLACE, PlanVerb.START)  # else a first launch is charged as failed
PHASE = Range("10 s to 24 h", 10, DAY_S)  # of a shift


@dataclass(eq=False, repr=False)
class Teams:
    _environments: Environments
    _supervisor: Supervisor
    _machine: Machine
    _runtimes: Mapping[RuntimeKind, Runtime]
    _config: ConfigFile
    _isolation: Isolation
    _applying: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)  # one at a time: a plan is of the present state

    def roles(self) -> list[Role]:
        return sorted(self._machine.roles.values(), key=lambda role: role.key)

    def read(self, text: str, path: str, folder: str, umask: int | None = None) -> DeclaredRole:
        """Read a team's manifest, with configured agents and restarts; new roles take the caller's umask."""
        config = self._config.read()
        declared = read_declared(text, path, folder, config.agents, config.restart)
        roles = tuple(self._with_umask(role, umask) for role in declared.manifest.roles)
        return replace(declared, manifest=replace(declared.manifest, roles=roles))

    def _with_umask(self, role: RoleSpec, umask: int | None) -> RoleSpec:
        """Return a team's role with its first umask: another shell's is no change."""
        known = self._machine.roles.get(role.key)
        return replace(role, spec=replace(role.spec, umask=umask if known is None else known.spec.spec.umask))

    def plan(self, manifest: Manifest, at_once: bool = False, only: tuple[str, ...] | None = None) -> Plan:
        return make_plan(manifest, self._machine.roles, self._machine.sessions.values(), at_once, only)

    def missing(self, declared: DeclaredRole, plan: Plan, caller_env: Mapping[str, str]) -> list[str]:
        """Return the missing programs and folders for which Vigil would refuse a team's manifest."""
        roles = {role.key: role for role in declared.manifest.roles}
        return self._missing(plan, roles, _envs(declared, _caller(caller_env)))

    async def apply(self, declared: DeclaredRole, caller_env: Mapping[str, str], at_once: bool, actor: str) -> Plan:
        """Apply a team's manifest by its plan; every check comes before the first change."""
        manifest = declared.manifest
        caller = _caller(caller_env)
        async with self._applying:
            plan = self.plan(manifest, at_once)
            if any(role.spec.sandbox is not None for role in manifest.roles):
                await in_thread(DECLARED, why_no_sandbox)  # it remembers the answer for the check below
            envs = _envs(declared, caller)
            self._check(plan, {role.key: role for role in manifest.roles}, envs)
            new = {step.role for step in plan.steps if step.do is PlanVerb.DECLARE}
            await in_thread(DECLARED, self._record_envs, declared, caller, new)
            accounts = tuple((role.key, account_of(adapter_of(role.spec.agent), envs[role.key])) for role in manifest.roles)
            return await self._make_so(Applied(manifest, actor, at_once, accounts=accounts))

    async def scale(self, name: str, replicas: int, actor: str) -> Plan:
        if not 0 <= replicas <= MOST_REPLICAS:
            raise UsageError(f"{replicas} is no number of replicas: from 0 to {MOST_REPLICAS}")
        async with self._applying:
            role = self.find(name)
            self._refuse_while_shifted([role])
            wanted = replace(role.spec, replicas=replicas)
            manifest, only = Manifest(wanted.workspace, (wanted,)), (wanted.key,)
            env = await in_thread(DECLARED, self._environments.read_role, wanted.key)
            self._check(self.plan(manifest, only=only), {wanted.key: wanted}, {wanted.key: env})
            return await self._make_so(Applied(manifest, actor, only=only))

    async def down(self, team: str | None, actor: str) -> Plan:
        """Remove a team, or all: stopped replicas would keep slots from the next `up`."""
        async with self._applying:
            gone = self._roles_of(team) if team is not None else self.roles()
            if not gone:
                raise NoSuchSession("nothing was declared by a manifest")
            done: list[Plan] = []
            for workspace in dict.fromkeys(role.spec.workspace for role in gone):
                only = tuple(role.key for role in gone if role.spec.workspace == workspace)
                done.append(await self._make_so(Applied(Manifest(workspace, ()), actor, only=only)))
            return Plan(tuple(step for plan in done for step in plan.steps))

    async def shift(self, team: str, role: str | None, timeout: str, actor: str) -> list[str]:
        """Begin to replace a team's replicas, role after role; return its roles' keys in order."""
        try:
            timeout_s = PHASE.read(timeout)
        except ValueError as error:
            raise UsageError(f"the time a shift may take: {error}") from None
        async with self._applying:
            self._refuse_while_shifted(self._roles_of(team))
            found = self._named(team, role)
            problems: list[str] = []
            for one in found:
                problems += self._why_not(one.spec, await in_thread(DECLARED, self._environments.read_role, one.key))
            if problems:
                raise VigilError(f"{'; '.join(problems)}. Nothing was shifted")
            keys = tuple(one.key for one in sorted(found, key=lambda one: (one.spec.name == LAST, one.declared_at, one.key)))
            await self._supervisor.done(ShiftAsked(keys, actor, timeout_s))
            return list(keys)

    async def abort(self, team: str, role: str | None, actor: str) -> list[str]:
        """End the shift of a team or one role; return the roles that left it."""
        shifted = [one.key for one in self._roles_of(team) if one.shift is not None]
        asked = [one.key for one in self._named(team, role) if one.shift is not None]
        if not asked:
            what = f"team {team}" if role is None else f"role {role} of team {team}"
            raise Refused(f"{what} is not being shifted: there is nothing to abort")
        await self._supervisor.done(ShiftAborted(tuple(asked), actor))
        return [key for key in shifted if key not in self._machine.roles or self._machine.roles[key].shift is None]

    def find(self, name: str) -> Role:
        """Return a team's role by its key, or by TEAM/ROLE if one workspace has it."""
        found = [role for key, role in self._machine.roles.items() if name in (key, f"{role.spec.team}/{role.spec.name}")]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"{name} is in several workspaces: {', '.join(role.key for role in found)}")
        raise NoSuchSession(f"there is no role {name}; a role is named TEAM/ROLE or WORKSPACE/TEAM/ROLE")

    def _roles_of(self, team: str) -> list[Role]:
        """Return the roles of a team: WORKSPACE/TEAM, or TEAM if only one workspace has it."""
        found = [role for role in self.roles() if team in (role.spec.team, f"{role.spec.workspace}/{role.spec.team}")]
        workspaces = dict.fromkeys(role.spec.workspace for role in found)
        if not found:
            raise NoSuchSession(f"there is no team {team}")
        if len(workspaces) > 1:
            raise UsageError(f"{team} is in several workspaces: {', '.join(f'{name}/{team}' for name in workspaces)}")
        return found

    def _named(self, team: str, role: str | None) -> list[Role]:
        found = [one for one in self._roles_of(team) if role is None or one.spec.name == role]
        if not found:
            raise NoSuchSession(f"team {team} has no role {role}")
        return found

    @staticmethod
    def _refuse_while_shifted(roles: Iterable[Role]) -> None:
        for role in roles:
            if role.shift is not None:
                raise Refused(f"{role.key} is being shifted; vigil shift {role.spec.team} --abort ends that")

    def _check(self, plan: Plan, roles: Mapping[str, RoleSpec], envs: Mapping[str, Mapping[str, str]]) -> None:
        """Refuse a team with everything that it lacks, before the first change."""
        problems = self._missing(plan, roles, envs)
        if problems:
            refusal = VigilError(f"{'; '.join(problems)}. Nothing was applied")
            refusal.problems = tuple(problems)
            raise refusal

    def _missing(self, plan: Plan, roles: Mapping[str, RoleSpec], envs: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Return what a team lacks for the roles that a plan launches or changes."""
        steps = [
            step
            for step in plan.steps
            if step.do in LAUNCHES or (step.do is PlanVerb.DECLARE and self._differs(roles[step.role]))
        ]
        return [why for key in dict.fromkeys(step.role for step in steps) for why in self._why_not(roles[key], envs[key])]

    def _differs(self, wanted: RoleSpec) -> bool:
        known = self._machine.roles.get(wanted.key)
        return known is not None and wanted.replicas > 0 and not is_same(known.spec.spec, wanted.spec)

    def _why_not(self, role: RoleSpec, env: Mapping[str, str]) -> Iterator[str]:
        for error in why_not_executable(role.spec.command, role.spec.cwd, env):
            yield f"{role.key}: {error}"
        unusable = self._runtimes[role.spec.runtime].why_unusable()
        confined = None if role.spec.sandbox is None else why_no_sandbox()
        for problem in (unusable, self._isolation.why_not(role.spec.limits), confined):
            if problem is not None:
                yield f"{role.key}: {problem}"

    def _record_envs(self, declared: DeclaredRole, caller: Mapping[str, str], new: Iterable[str]) -> None:
        """Keep the environments of a team's roles; of an unchanged role only the manifest's part."""
        for role in declared.manifest.roles:
            own = declared.env.get(role.key, {})
            if role.key in new:
                self._environments.record_role(role.key, caller, own)
            else:
                self._environments.declare_role(role.key, caller, own)

    async def _make_so(self, event: Applied) -> Plan:
        """Hand a team's manifest to the core, wait until drained replicas are gone, or raise."""
        plan = self.plan(event.manifest, event.at_once, event.only)
        await self._supervisor.done(event)
        drained = [step.slot for step in plan.steps if step.do is PlanVerb.DRAIN and step.slot is not None]
        ids = [found.id for slot in drained if (found := self._machine.find(slot)) is not None]
        await self._supervisor.until(lambda: not any(map(self._is_leaving, ids)), END_S)
        await in_thread(DECLARED, self._environments.forget_roles_but, set(self._machine.roles))
        shown = [found for one in ids if (found := self._supervisor.shown.get(one)) is not None]
        if shown:
            raise VigilError("; ".join(map(not_ended, shown)))
        return plan

    def _is_leaving(self, session_id: str) -> bool:
        session = self._supervisor.shown.get(session_id)
        return session is not None and session.state is not State.STUCK


def _caller(env: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in env.items() if not is_unwanted(key)}


def _envs(declared: DeclaredRole, caller: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    """Return the environment of each role of a team: the caller's, plus the manifest's."""
    return {role.key: {**caller, **declared.env.get(role.key, {})} for role in declared.manifest.roles}
