"""Routes about sessions. A verb is a suffix after a colon, which no name can hold."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from vigil.api.access import Actor, TheDaemon
from vigil.api.diag_views import diag_view
from vigil.api.views import session_detail, session_view, why_view
from vigil.config.sizes import read_memory_max, read_pids_max, read_weight
from vigil.core.events import Hooked
from vigil.core.model.launch import Mode, RuntimeKind
from vigil.core.model.limits import LaunchLimits
from vigil.core.model.reading import Axis, AxisValue
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.sandbox import Sandbox
from vigil.core.model.session import ALIVE, Session
from vigil.core.model.speech import Hook
from vigil.core.rules.explain import explain
from vigil.core.rules.liveness import leaves_its_pane
from vigil.core.rules.summary import summary_of, told
from vigil.daemon.daemon import Daemon
from vigil.daemon.serve.sessions import Wanted
from vigil.errors import NoSuchSession, Refused, UsageError, VigilError
from vigil.forensics.tails import read_tail
from vigil.hands import Hangs
from vigil.kernel.process import read_stat
from vigil.moments import rfc3339
from vigil.text import decode, plain
from vigil.threads import SHOWN, in_thread

Verb = Literal["stop", "start", "restart", "reset", "hibernate", "archive"]
STDERR_LINES = 50
LIMITS = {"memory_max": read_memory_max, "pids_max": read_pids_max, "cpu_weight": read_weight}
router = APIRouter()


class SandboxRequest(BaseModel):
    """What a confined agent sees beside the system and its folder: absolute paths."""

    model_config = ConfigDict(extra="forbid")

    read: list[str] = Field(default_factory=list)
    write: list[str] = Field(default_factory=list)
    network: bool = True


class RunRequest(BaseModel):
    """A session to declare and launch."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    agent: str = "generic"
    runtime: RuntimeKind = RuntimeKind.TMUX
    command: list[str] = Field(default_factory=list)
    cwd: str
    env: dict[str, str] = Field(default_factory=dict)  # the caller's: without the markers of an agent around it
    own_env: dict[str, str] = Field(default_factory=dict)  # asked for by name: taken unchanged
    restart: RestartWhen | None = None  # what is not given comes from the configuration
    max_restarts: int | None = Field(None, ge=0, le=1_000_000)
    backoff_base_s: float | None = Field(None, ge=0.01, le=86400)
    memory_max: int | str | None = None
    pids_max: int | str | None = None
    cpu_weight: int | str | None = None
    umask: int | None = Field(None, ge=0, le=0o777)
    sandbox: SandboxRequest | None = None


@router.get("/v1/sessions")
async def sessions(daemon: TheDaemon, all: bool = False) -> Response:
    """Every session; without `all`, those that have been over for a day are left out."""
    found = [session for session in daemon.operations.sessions() if all or not daemon.operations.is_old(session)]
    found.sort(key=lambda session: session.name)
    kept = await daemon.conversations.peek(found)
    shown = [_view(daemon, replace(session, transcript=kept.get(session.id))) for session in found]
    trouble = daemon.supervisor.store_trouble
    headers = {"x-vigil-trouble": plain(trouble)[:200].encode("ascii", "replace").decode()} if trouble else None
    return Response(json.dumps(shown), media_type="application/json", headers=headers)


def _view(daemon: Daemon, session: Session) -> dict[str, Any]:
    return session_view(session, daemon.operations.incidents_of(session), daemon.machine.roles.get(session.role or ""))


@router.post("/v1/sessions", status_code=201)
async def run(daemon: TheDaemon, wanted: RunRequest, actor: Actor) -> dict[str, Any]:
    """Declare a session and launch it."""
    policy = _policy_of(wanted, daemon.config.read().restart)
    command = tuple(wanted.command)
    order = Wanted(wanted.name, wanted.agent, wanted.runtime, command, wanted.cwd, wanted.env, policy, wanted.own_env)
    order = replace(order, limits=_limits_of(wanted), umask=wanted.umask)
    if (asked := wanted.sandbox) is not None:
        sandbox = Sandbox(read=_paths(asked.read), write=_paths(asked.write), network=asked.network)
        order = replace(order, sandbox=sandbox)
    session = await daemon.operations.run(order, actor)
    return session_detail(session, daemon.secrets.redactor(session.id))


def _paths(paths: list[str]) -> tuple[str, ...]:
    for path in paths:
        if not path.startswith("/") or "\0" in path:
            raise UsageError(f"a sandbox shows absolute paths, not {path!r}")
    return tuple(os.path.normpath(path) for path in paths)


def _policy_of(wanted: RunRequest, default: RestartPolicy) -> RestartPolicy:
    given: dict[str, Any] = {"when": wanted.restart, "max_restarts": wanted.max_restarts, "base_s": wanted.backoff_base_s}
    return replace(default, **{name: value for name, value in given.items() if value is not None})


def _limits_of(wanted: RunRequest) -> LaunchLimits:
    found: dict[str, int] = {}
    for name, read in LIMITS.items():
        value = getattr(wanted, name)
        try:
            found |= {} if value is None else {name: read(value)}
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None
    return LaunchLimits(**found)


@router.get("/v1/sessions/{name:whole}:why")
async def why(daemon: TheDaemon, name: str) -> dict[str, Any]:
    """Why a session is as it is."""
    session = await daemon.explainer.judged(daemon.operations.find(name))
    return why_view(name, explain(session, daemon.machine.checked_at(session.id)), daemon.clock.now())


@router.get("/v1/sessions/{name:whole}:diag")
async def diag(daemon: TheDaemon, name: str, window_s: Annotated[float, Query(ge=0.1, le=10.0)] = 0.5) -> dict[str, Any]:
    """What the processes of a session do right now, from two looks at them."""
    session = daemon.operations.find(name)
    if session.launch is None or session.launch.process is None:
        raise VigilError(f"{name} is {session.state} and has no processes; vigil why {name} says more")
    found = await daemon.diagnoser.look(session.launch, window_s)
    if not found.processes and session.launch.ended_at is not None:
        raise VigilError(f"{name} is {session.state}: nothing of its last launch runs; vigil death {name} shows how it ended")
    redactor = await in_thread(SHOWN, daemon.secrets.redactor, session.id, about=session.id)
    return diag_view(session, found, daemon.clock.at, redactor.text)


@router.get("/v1/sessions/{name:whole}:attach")
async def attach(daemon: TheDaemon, name: str) -> dict[str, Any]:
    """Where a session's terminal is; the caller makes the command itself, and executes none that came over a socket."""
    session = daemon.operations.find(name)
    launch = session.launch
    if session.spec.runtime is RuntimeKind.HEADLESS:
        raise Refused(f"{name} is headless and has no terminal; vigil logs --follow {name} shows what it prints")
    if launch is None or launch.pane is None or not (_is_up(session) or leaves_its_pane(session)):
        raise Refused(f"{name} is {session.state}: there is no terminal to attach to")
    await daemon.explainer.look(session)
    _refuse_wedged(daemon.operations.find(name), "attach would hang")
    server = launch.server and {"pid": launch.server.pid, "start_ticks": launch.server.start_ticks}
    return {"launch": launch.id, "pane": launch.pane, "server": server, "socket": launch.host and launch.host.socket}


@router.get("/v1/sessions/{name:whole}:logs")
async def logs(
    daemon: TheDaemon,
    name: str,
    lines: Annotated[int, Query(ge=0, le=1_000_000)] = 1000,
    raw: bool = False,
    follow: bool = False,
) -> Response:
    """What the agent printed; as it goes on printing with `follow`."""
    session = daemon.operations.find(name)
    if session.launch is None:
        return Response(b"")
    await daemon.explainer.look(session)  # a server that just stopped answering would leave the screen empty, without a word
    _refuse_wedged(daemon.operations.find(name), "its screen cannot be read")
    if follow:
        return StreamingResponse(_follow(daemon, session.launch.id, lines, raw), media_type="application/octet-stream")
    found = await daemon.runtimes[session.spec.runtime].read_output(session.launch, lines)
    return Response(_shown(found, raw), media_type="application/octet-stream")


@router.get("/v1/sessions/{name:whole}")
async def get(daemon: TheDaemon, name: str) -> dict[str, Any]:
    """All there is about one session."""
    await daemon.explainer.look(daemon.operations.find(name))
    session = daemon.operations.find(name)
    session = replace(session, transcript=await daemon.conversations.read(session))
    redactor = daemon.secrets.redactor(session.id)
    role = daemon.machine.roles.get(session.role or "")
    detail = session_detail(session, redactor, daemon.operations.incidents_of(session), role)
    now = daemon.clock.now()
    summary = summary_of(session, now)
    return detail | {
        "survivors": await _survivors(daemon, session),
        "summary": None if summary is None else told(summary),
        **await _read_written(daemon, session),
    }


async def _read_written(daemon: Daemon, session: Session) -> dict[str, Any]:
    """Return what `_written` does; a file system that hangs costs only its deadline."""
    try:
        return await in_thread(SHOWN, _written, daemon, session, about=session.id)
    except Hangs:
        return {"stderr_tail": None, "transcripts": None}


def _written(daemon: Daemon, session: Session) -> dict[str, Any]:
    """Return the last lines of an agent's stderr, and when its transcripts grew."""
    stderr: list[str] = []
    if session.launch is not None and session.spec.runtime is RuntimeKind.HEADLESS:
        path = daemon.home.launch(session.launch.id) / "stderr.log"
        with contextlib.suppress(OSError):
            text = read_tail(path, daemon.secrets.redactor(session.id).text).text
            stderr = text.split("\n")[-STDERR_LINES:] if text else []
    off_s = daemon.clock.off_s()  # files have the wall clock's time
    growth = daemon.listening.growth(session)
    return {
        "stderr_tail": stderr,
        "transcripts": [
            {"path": one.path, "subagent": one.subagent, "grown_at": rfc3339(one.at - off_s), "size_bytes": one.size_bytes}
            for one in growth
        ],
    }


async def _survivors(daemon: Daemon, session: Session) -> list[dict[str, Any]]:
    """Return the living processes that a session's last launch left behind."""
    launch = session.launch
    if launch is None or launch.ended_at is None:
        return []
    found = await daemon.actors.ending.survivors(launch)
    redact = daemon.secrets.redactor(session.id).text
    return [
        {"pid": process.pid, "name": redact(stat.name)}
        for process in found
        if (stat := read_stat(process.pid)) is not None and stat.start_ticks == process.start_ticks
    ]


@router.post("/v1/sessions/{name:whole}:heartbeat")
async def heartbeat(daemon: TheDaemon, name: str) -> dict[str, Any]:
    """Take a sign of life of a session; it says nothing of what the agent is doing."""
    session = daemon.operations.find(name)
    launch = session.launch
    if launch is None or not _is_up(session):
        raise Refused(f"{name} is not running: nothing has a heartbeat")
    hook = Hook(launch.id, "heartbeat", daemon.clock.now())
    daemon.supervisor.feed(Hooked(launch.id, (hook,)))  # heard is enough: a full disk must not make a session look dead
    return {"name": name, "launch": launch.id}


class SendRequest(BaseModel):
    """A prompt to be typed."""

    model_config = ConfigDict(extra="forbid")

    text: str
    wait_s: Annotated[float, Field(ge=0, le=600)] | None = None  # for a composer; for a sleeping session, until its outcome


@router.post("/v1/sessions/{name:whole}:send")
async def send(daemon: TheDaemon, name: str, wanted: SendRequest, actor: Actor) -> dict[str, Any]:
    """Type a prompt into a session's terminal, once, and say what became of it; for what sleeps it is queued."""
    sent = await daemon.delivery.send(daemon.operations.find(name), wanted.text, wanted.wait_s, actor)
    return {"name": name, "outcome": sent.outcome, "why": sent.why}


@router.post("/v1/sessions/{name:whole}:wake")
async def wake(daemon: TheDaemon, name: str, actor: Actor, mode: Literal["fresh", "resume"] | None = None) -> dict[str, Any]:
    """Wake a session, and say how and why so; `refused` is an answer too."""
    found = await daemon.operations.wake(name, Mode(mode) if mode else None, actor)
    return {"name": name, "mode": found.mode.value, "cause": found.cause, "why": found.why, "until": rfc3339(found.until)}


@router.post("/v1/sessions/{name:whole}:{verb}")
async def ask(daemon: TheDaemon, name: str, verb: Verb, actor: Actor, reason: str = "") -> dict[str, Any]:
    """Stop, start, restart, reset, hibernate or archive a session, and wait until that is done."""
    session = await daemon.operations.ask(verb, name, actor, reason)
    if session is None:
        raise NoSuchSession(f"{name} was removed meanwhile")
    return session_detail(session, daemon.secrets.redactor(session.id))


@router.delete("/v1/sessions/{name:whole}")
async def rm(daemon: TheDaemon, name: str, actor: Actor, reason: str = "") -> dict[str, Any]:
    """End a session and purge its identity."""
    session = daemon.operations.find(name)
    await daemon.operations.ask("rm", name, actor, reason)
    kept = [f"folder {session.spec.cwd}, which is never touched", "death records and events"]
    if session.conversation:
        kept.append(f"conversation {session.conversation}, which is its agent's own")
    if session.role is not None and session.role in daemon.machine.roles:
        kept.append(f"its slot of {session.role}, which a new one takes; vigil scale ends that")
    gone, left = await daemon.operations.purged(session.id)
    return {"name": name, "purged": gone, "kept": [*left, *kept]}


async def _follow(daemon: Daemon, launch_id: str, lines: int, raw: bool) -> AsyncIterator[bytes]:
    """Yield what a launch prints, until it is over and no more comes."""
    session = daemon.machine.of_launch(launch_id)
    if session is None or session.launch is None:
        return
    async for data in daemon.runtimes[session.spec.runtime].follow_output(session.launch, lines):
        if data:
            yield _shown(data, raw)
        now = daemon.machine.of_launch(launch_id)
        if not data and (now is None or now.launch is None or now.launch.ended_at is not None):
            return


def _refuse_wedged(session: Session, what: str) -> None:
    server = session.vitals.axes.get(Axis.SERVER)
    if _is_up(session) and server is not None and server.value == AxisValue.WEDGED:
        raise VigilError(f"{session.name}: its tmux server does not answer, {what}; vigil why {session.name} says more")


def _is_up(session: Session) -> bool:
    return session.state in ALIVE and session.launch is not None and session.launch.ended_at is None


def _shown(data: bytes, raw: bool) -> bytes:
    return data if raw else plain(decode(data)).encode()
