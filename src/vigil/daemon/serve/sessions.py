"""Sessions: what a caller may ask of them, checked before the first change, so that nothing half-made is left."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import secrets as tokens
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from vigil.agents import KINDS, agent_of, kind_of, names_of
from vigil.agents.accounts import account_of
from vigil.agents.adapters import adapter_of
from vigil.agents.contract import Place
from vigil.config.loading import ConfigFile
from vigil.core.book import GRACE_S
from vigil.core.events import Asked, Declared
from vigil.core.handlers.operator import why_not_parked
from vigil.core.machine import Machine
from vigil.core.model.conversation import Wake
from vigil.core.model.death import Cause, IntentVerb
from vigil.core.model.identity import stem_of, why_not_a_name, why_not_an_identity
from vigil.core.model.incident import Incident, IncidentKind
from vigil.core.model.launch import Mode, RuntimeKind
from vigil.core.model.limits import UNLIMITED, LaunchLimits
from vigil.core.model.restart import HoldReason, RestartPolicy
from vigil.core.model.sandbox import Sandbox
from vigil.core.model.session import ALIVE, Session, Spec, State
from vigil.core.rules.incident import key_of
from vigil.daemon.act import Actors
from vigil.daemon.act.isolation import Isolation
from vigil.daemon.base.environments import Environments
from vigil.daemon.base.secrets import Secrets
from vigil.daemon.sense.transcripts import Conversations
from vigil.daemon.serve.programs import check_command
from vigil.daemon.supervisor import Supervisor
from vigil.errors import NoSuchSession, Refused, UsageError, VigilError
from vigil.runtimes import Runtime
from vigil.runtimes.sandbox import why_no_sandbox
from vigil.threads import DECLARED, in_thread

LAUNCH_S = 30.0
END_S = 4 * GRACE_S
RELEASE_S = 10.0
PURGE_S = 30.0  # for a keeper that hangs, for each launch
OVER = frozenset({State.STOPPED, State.SUCCEEDED})
OLD_S = 86400.0  # `vigil ls` leaves out what ended longer ago; `--all` shows it
OURS = ("TMUX", "VIGIL_")
UNWANTED = (*OURS, "CLAUDE_CODE_")  # of a multiplexer, of us, of an agent around this one
UNWANTED_NAMES = frozenset({"CLAUDECODE"})


@dataclass(frozen=True)
class Wanted:
    """A session that a caller asks for."""

    name: str | None
    agent: str | None  # None: known by its program
    runtime: RuntimeKind
    command: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]  # the caller's
    restart: RestartPolicy
    own_env: Mapping[str, str] = field(default_factory=dict)  # asked for by name
    limits: LaunchLimits = UNLIMITED
    umask: int | None = None  # the caller's
    sandbox: Sandbox | None = None


@dataclass(eq=False, repr=False)
class Operations:
    _environments: Environments
    _supervisor: Supervisor
    _machine: Machine
    _runtimes: dict[RuntimeKind, Runtime]
    _config: ConfigFile
    _secrets: Secrets
    _conversations: Conversations
    _actors: Actors
    _isolation: Isolation
    _declaring: set[str] = field(default_factory=set, init=False)  # names that are being declared

    def sessions(self) -> list[Session]:
        return list(self._supervisor.shown.values())

    def is_old(self, session: Session) -> bool:
        """Say whether a caller's list without `--all` leaves a session out: it ended long ago."""
        long_ago = session.archived_at is not None or self._supervisor.now() - session.state_since > OLD_S
        return session.state in OVER and long_ago

    def incidents_of(self, session: Session) -> list[Incident]:
        """Return a session's open, durable incidents to a caller."""
        found = self._supervisor.incidents.values()
        shared = {key_of(kind, session.account) for kind in IncidentKind} if session.account else set()
        return [one for one in found if one.session_id == session.id or one.key in shared]

    def find(self, name: str) -> Session:
        """Return the session that a caller names exactly, once it is durable."""
        problem = why_not_an_identity(name)
        if problem is not None:
            raise UsageError(problem)
        session = self._supervisor.shown.get(self._machine.by_name.get(name, ""))
        if session is None:
            raise NoSuchSession(f"there is no session {name}; vigil ls --all shows those there are")
        return session

    async def run(self, wanted: Wanted, actor: str) -> Session:
        """Declare a caller's session and launch it; every check comes before the first change."""
        session_id = new_session_id()
        env = {key: value for key, value in wanted.env.items() if not is_unwanted(key)}
        env |= {key: value for key, value in wanted.own_env.items() if not key.startswith(OURS)}
        configured = self._config.read().agents
        kind = wanted.agent
        if kind is None:
            kind = await in_thread(DECLARED, kind_of, wanted.command, configured, Place(wanted.cwd, env))
        if kind not in KINDS and kind not in configured:
            raise UsageError(f"{kind!r} is no agent known here: use one of {', '.join(names_of(configured))}")
        command = wanted.command or agent_of(kind, configured).command
        if not command:
            raise UsageError("no command was given: vigil run [options] -- COMMAND")
        name = wanted.name
        if name is None:
            name = f"{stem_of(command[0])}-{session_id[1:5]}"
        elif (problem := why_not_a_name(name)) is not None:
            raise UsageError(problem)
        spec = Spec(command, wanted.cwd, kind, wanted.runtime, wanted.restart, wanted.limits, wanted.umask, wanted.sandbox)
        with self.claim(name):  # from the first look on: a second call for it is refused
            self._check_runtime(spec)
            check_command(command, wanted.cwd, env)
            if (why := await in_thread(DECLARED, self._isolation.why_not, spec.limits)) is not None:
                raise Refused(why)
            if wanted.sandbox is not None and (problem := await in_thread(DECLARED, why_no_sandbox)) is not None:
                raise VigilError(problem)
            await self._check_conversation(spec, env)
            await self._declare(Declared(session_id, name, spec, actor, account_of(adapter_of(kind), env)), env)
        return await self._launched(session_id, name)

    async def _declare(self, declared: Declared, env: dict[str, str]) -> None:
        """Make a caller's session durable with its environment; a failure leaves nothing behind."""
        try:
            await in_thread(DECLARED, self._environments.record, declared.session_id, env)
            await self._supervisor.done(declared)
        except (OSError, VigilError) as error:
            self._environments.forget(declared.session_id)
            if isinstance(error, OSError):
                what = f"{error.strerror} ({error.filename or 'environment'})"
                raise VigilError(f"{declared.name} was not created: {what}") from error
            raise

    @contextlib.contextmanager
    def claim(self, name: str) -> Iterator[None]:
        """Reserve a name for a caller's new session; VigilError if it is taken.

        Else two calls in one turn would both pass."""
        self._refuse_taken(name)
        self._declaring.add(name)
        try:
            yield
        finally:
            self._declaring.discard(name)

    def _refuse_taken(self, name: str) -> None:
        known = self._machine.find(name)
        if known is not None or name in self._declaring:
            what = "is archived" if known is not None and known.archived_at is not None else "exists already"
            raise VigilError(f"{name} {what}; vigil rm {name} removes it, vigil start {name} starts it again")

    async def ask(self, verb: str, name: str, actor: str, reason: str = "") -> Session | None:
        """Do what a caller asks of a session, and wait; return it, None when removed."""
        session = self.find(name)
        if verb in ("start", "restart"):
            self._check_again(session)
        if verb in ("reset", "hibernate"):
            refuse_adopted(session)
        if verb == "hibernate" and (why := why_not_parked(session)) is not None:
            raise Refused(f"{name} is not put to sleep: {why}")
        if reason:
            reason = self._secrets.redactor(session.id).text(reason)
        await self._supervisor.done(Asked(IntentVerb(verb), session.id, actor, reason))
        await self._supervisor.until(lambda: self._settled(session.id, verb), LAUNCH_S + END_S)
        now = self._supervisor.shown.get(session.id)
        if now is None:
            return None
        if verb in ("stop", "rm", "hibernate", "archive") and now.state in (State.STUCK, State.ENDING):
            nothing = "; nothing of it was purged" if verb == "rm" else ""
            raise VigilError(f"{not_ended(now)}{nothing}. To try again: vigil {verb} {name}")
        if verb == "rm" or (verb in ("stop", "hibernate", "archive") and now.state in ALIVE):
            raise VigilError(f"{name} is {now.state}: somebody had it started meanwhile. To try again: vigil {verb} {name}")
        if verb in ("start", "restart") and (why := why_not_launched(now)) is not None:
            raise VigilError(f"{name} was not launched: {why}")
        return now

    async def wake(self, name: str, mode: Mode | None, actor: str) -> Wake:
        """Wake a session for its caller, and wait for its launch; a refusal answers too."""
        session = self.find(name)
        if session.state not in ALIVE:
            self._check_again(session)
        transcript = await self._conversations.read(session)
        ticket = tokens.token_hex(8)
        asked = Asked(IntentVerb.WAKE, session.id, actor, mode=mode.value if mode else "", transcript=transcript, ticket=ticket)
        await self._supervisor.done(asked)
        wake = self._supervisor.answers.pop(ticket, None)
        if wake is None:
            raise NoSuchSession(f"{name} was removed meanwhile")
        if wake.mode in (Mode.FRESH, Mode.RESUME):
            await self._supervisor.until(lambda: self._settled(session.id, "start"), LAUNCH_S + END_S)
            now = self._supervisor.shown.get(session.id)
            if now is not None and (why := why_not_launched(now)) is not None:
                raise VigilError(f"{name} was not launched: {why}")
        return wake

    async def give_back(self, session: Session, actor: str, reason: str) -> None:
        """Give a caller's adopted session back, and wait until our marks are gone."""
        assert session.launch is not None
        released = self._actors.adopted.release_of(session.launch.id)
        await self._supervisor.done(Asked(IntentVerb.RELEASE, session.id, actor, reason))
        await asyncio.wait((released,), timeout=RELEASE_S)
        await self.purged(session.id)

    async def purged(self, session_id: str) -> tuple[list[str], list[str]]:
        """Tell the caller what went with a removed session, and what could not be removed."""
        purged = await self._actors.purging.purged(session_id, PURGE_S)
        return purged or ([], ["its files: to remove them takes long; vigil doctor says what is left"])

    async def kill_all(self, actor: str) -> list[str]:
        """Stop every session for a caller, and what dead ones left; return names left."""
        reason = "daemon stop --kill-sessions"
        for session in list(self._machine.sessions.values()):  # an adopted one belongs to its starter
            if session.launch is not None and session.launch.host is not None and session.state in ALIVE:
                await self.give_back(session, actor, reason)
        at_rest = (State.STOPPED, State.PARKED)  # nothing of these runs
        names = [session.name for session in self._machine.sessions.values() if session.state not in at_rest]
        outcomes = await asyncio.gather(*(self.ask("stop", name, actor, reason) for name in names), return_exceptions=True)
        await self._supervisor.until(self._all_closed, END_S)
        return [name for name, outcome in zip(names, outcomes, strict=True) if isinstance(outcome, BaseException)]

    def _all_closed(self) -> bool:
        """Say whether sessions' launches that are over left nothing, such as a tmux server."""
        launches = [session.launch for session in self._supervisor.shown.values() if session.launch is not None]
        return all(launch.closed for launch in launches if launch.ended_at is not None)

    async def _launched(self, session_id: str, name: str) -> Session:
        await self._supervisor.until(lambda: self._settled(session_id, "start"), LAUNCH_S)
        session = self._supervisor.shown[session_id]
        if session.state is State.FAILED and (why := why_not_launched(session)) is not None:
            await self.ask("rm", name, "vigil", "its first launch failed")
            raise VigilError(f"{name} was not launched: {why}")
        return session

    def _settled(self, session_id: str, verb: str) -> bool:
        session = self._supervisor.shown.get(session_id)
        if session is None:
            return True
        if session.state is State.ENDING:
            return False
        if session.state is State.STARTING:  # one that waits for its agent to show itself has been launched
            return session.launch is not None and session.launch.process is not None
        waiting = session.hold is not None and session.hold.reason in (HoldReason.PACE, HoldReason.SURVIVOR)
        return not waiting or verb in ("stop", "rm", "hibernate", "archive")

    def _check_runtime(self, spec: Spec) -> None:
        problem = self._runtimes[spec.runtime].why_unusable()
        if problem is not None:
            raise VigilError(problem)

    async def _check_conversation(self, spec: Spec, env: Mapping[str, str]) -> None:
        named = await in_thread(DECLARED, self._conversations.named_by, spec, env)
        owner = self._machine.owner_of(spec.agent, named) if named else None
        if owner is not None:
            raise Refused(f"conversation {named} is open in {owner.name}: two agents in one would mix it up")

    def _check_again(self, session: Session) -> None:
        refuse_adopted(session)
        self._check_runtime(session.spec)
        if not os.path.isdir(session.spec.cwd):
            raise VigilError(f"{session.spec.cwd} is no folder any more: {session.name} cannot be started there")


def new_session_id() -> str:
    return "s" + base64.b32encode(os.urandom(5)).decode().lower()


def refuse_adopted(session: Session) -> None:
    if session.launch is not None and session.launch.host is not None:
        words = "start it where it was started, then vigil adopt it again"
        raise Refused(f"{session.name} was adopted, and Vigil neither launches it nor puts it to sleep: {words}")


def why_not_launched(session: Session) -> str | None:
    """Tell a caller why a session's newest launch never came alive; None if it did."""
    death, launch = session.last_death, session.launch
    if death is None or launch is None or death.launch_id != launch.id or death.cause is not Cause.LAUNCH_FAILED:
        return None
    return death.evidence[0].text


def is_unwanted(name: str) -> bool:
    """Say whether a variable of the caller is not for its session's agent."""
    return name.startswith(UNWANTED) or name in UNWANTED_NAMES


def not_ended(session: Session) -> str:
    return f"{session.name} could not be ended yet: {session.unended or session.why}"
