"""Teams: a manifest is read, planned and applied; what is planned is what is done, in its order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vigil.config.loading import ConfigFile
from vigil.core.events import Declared as SessionDeclared
from vigil.core.events import Respecified, RoleDeclared, RoleForgotten
from vigil.core.model import RuntimeKind
from vigil.core.plan import Do, Plan, Step, make_plan
from vigil.core.roles import Manifest, Role, RoleSpec
from vigil.daemon.operations import Operations, check_command, is_unwanted, new_session_id
from vigil.daemon.supervisor import Supervisor
from vigil.errors import NoSuchSession, UsageError, VigilError
from vigil.home import Home, environment_of_role
from vigil.keeper.records import read_json, record_json
from vigil.manifest.reading import read_declared
from vigil.manifest.values import Declared
from vigil.runtimes import Runtime

MOST_REPLICAS = 1000


class Teams:
    """What callers can do with manifests and roles."""

    def __init__(
        self,
        home: Home,
        supervisor: Supervisor,
        operations: Operations,
        runtimes: Mapping[RuntimeKind, Runtime],
        config: ConfigFile,
    ) -> None:
        self._home = home
        self._supervisor = supervisor
        self._machine = supervisor.machine
        self._operations = operations
        self._runtimes = runtimes
        self._config = config
        self._applying = asyncio.Lock()  # one at a time: a plan is of what there is

    def read(self, text: str, path: str, folder: str) -> Declared:
        """Read a manifest, with what the configuration says of agents and restarts."""
        config = self._config.read()
        return read_declared(text, path, folder, config.agents, config.restart)

    def plan(self, manifest: Manifest, at_once: bool = False) -> Plan:
        """Return what applying a manifest would do now."""
        return make_plan(manifest, self._machine.roles, self._machine.sessions.values(), at_once)

    async def apply(self, declared: Declared, caller_env: Mapping[str, str], at_once: bool, actor: str) -> Plan:
        """Do what the plan says; everything that can be wrong is found before anything is done."""
        async with self._applying:
            plan = self.plan(declared.manifest, at_once)
            roles = {role.key: role for role in declared.manifest.roles}
            env = {key: value for key, value in caller_env.items() if not is_unwanted(key)}
            envs = {key: {**env, **declared.env.get(key, {})} for key in roles}
            self._check(plan, roles, envs)
            await self._carry_out(plan, roles, envs, actor)
            await asyncio.to_thread(self._refresh_envs, declared.env)
            return plan

    def _refresh_envs(self, declared: Mapping[str, Mapping[str, str]]) -> None:
        """What a manifest says of the environment of its roles holds for their next launches."""
        for key, env in declared.items():
            stored = self._read_env(key)
            if stored and stored != {**stored, **env}:
                record_json(str(self._env_path(key)), {**stored, **env})

    async def scale(self, key: str, replicas: int, actor: str) -> Plan:
        """Change how many replicas a role has."""
        if not 0 <= replicas <= MOST_REPLICAS:
            raise UsageError(f"{replicas} is no number of replicas: from 0 to {MOST_REPLICAS}")
        async with self._applying:
            role = self.find(key)
            wanted = [
                replace(r.spec, replicas=replicas) if r.key == role.key else r.spec for r in self._of(role.spec.workspace)
            ]
            roles = {spec.key: spec for spec in wanted}
            plan = self.plan(Manifest(role.spec.workspace, tuple(wanted)))
            envs = {spec.key: self._read_env(spec.key) for spec in wanted}
            self._check(plan, roles, envs)
            await self._carry_out(plan, roles, envs, actor)
            return plan

    async def down(self, team: str | None, actor: str) -> Plan:
        """Take down what was declared: a team, or all of them; ended, verified, and forgotten."""
        async with self._applying:
            gone = [role for role in self._machine.roles.values() if team is None or self._is_of(role, team)]
            if not gone:
                raise NoSuchSession(f"there is no team {team}" if team else "nothing was declared by a manifest")
            steps: list[Step] = []
            for workspace in dict.fromkeys(role.spec.workspace for role in gone):
                kept = tuple(role.spec for role in self._of(workspace) if role not in gone)
                steps += [step for step in self.plan(Manifest(workspace, kept)).steps if step.do in (Do.DRAIN, Do.FORGET)]
            plan = Plan(tuple(steps))
            await self._carry_out(plan, {}, {}, actor)
            return plan

    def find(self, name: str) -> Role:
        """Return the role of a name: its whole key, or TEAM/ROLE where only one workspace has that."""
        found = [role for key, role in self._machine.roles.items() if key == name or key.partition("/")[2] == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"{name} is in several workspaces: {', '.join(role.key for role in found)}")
        raise NoSuchSession(f"there is no role {name}; a role is named TEAM/ROLE or WORKSPACE/TEAM/ROLE")

    @staticmethod
    def _is_of(role: Role, team: str) -> bool:
        return team in (role.spec.team, f"{role.spec.workspace}/{role.spec.team}")

    def _of(self, workspace: str) -> list[Role]:
        return [role for role in self._machine.roles.values() if role.spec.workspace == workspace]

    def _check(self, plan: Plan, roles: Mapping[str, RoleSpec], envs: Mapping[str, Mapping[str, str]]) -> None:
        """Refuse with everything that is missing, before anything is done."""
        problems = []
        for key in dict.fromkeys(step.role for step in plan.steps if step.do in (Do.CREATE, Do.REPLACE, Do.START)):
            spec = roles[key].spec
            why = self._runtimes[spec.runtime].why_unusable()
            try:
                check_command(spec.command, spec.cwd, envs[key])
            except VigilError as error:
                why = why or str(error)
            if why is not None:
                problems.append(f"{key}: {why}")
        if problems:
            refusal = VigilError(f"{'; '.join(problems)}. Nothing was applied")
            refusal.problems = tuple(problems)
            raise refusal

    async def _carry_out(
        self, plan: Plan, roles: Mapping[str, RoleSpec], envs: Mapping[str, Mapping[str, str]], actor: str
    ) -> None:
        """Do the steps in order; what is ended does not hold up what is created."""
        ending = []
        for step in plan.steps:
            if step.do is Do.DECLARE:
                await asyncio.to_thread(record_json, str(self._env_path(step.role)), dict(envs[step.role]))
                await self._supervisor.done(RoleDeclared(roles[step.role], actor))
            elif step.do is Do.CREATE:
                await self._create(roles[step.role], step, actor)
            elif step.do is Do.REPLACE:
                await self._replace(roles[step.role], step, actor)
            elif step.do is Do.START:
                assert step.slot is not None
                await self._operations.ask("start", step.slot, actor, step.why)
            elif step.do is Do.DRAIN:
                assert step.slot is not None
                ending.append(asyncio.create_task(self._operations.ask("rm", step.slot, actor, step.why)))
        failed = [
            str(error) for error in await asyncio.gather(*ending, return_exceptions=True) if isinstance(error, VigilError)
        ]
        for step in plan.steps:
            if step.do is Do.FORGET:
                await self._supervisor.done(RoleForgotten(step.role, actor))
                self._env_path(step.role).unlink(missing_ok=True)
        if failed:
            raise VigilError("; ".join(failed))

    async def _create(self, role: RoleSpec, step: Step, actor: str) -> None:
        assert step.slot is not None
        index = int(step.slot.rpartition("/")[2])
        declared = SessionDeclared(new_session_id(), step.slot, role.spec, actor, role.key, index)
        await self._supervisor.done(declared)

    async def _replace(self, role: RoleSpec, step: Step, actor: str) -> None:
        assert step.slot is not None
        session = self._machine.find(step.slot)
        if session is not None:
            await self._supervisor.done(Respecified(session.id, role.spec, actor))
            await self._operations.ask("restart", step.slot, actor, step.why)

    def _env_path(self, key: str) -> Path:
        return self._home.environments / f"{environment_of_role(key)}.json"

    def _read_env(self, key: str) -> dict[str, str]:
        return read_json(str(self._env_path(key))) or {}
