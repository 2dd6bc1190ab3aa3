"""Evidence: reads what a silent launch's processes do, and feeds it; it concludes nothing.

Reading takes its window, and at most its deadline; what is not known by then is unknown (P7)."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vigil.agents.shapes import words
from vigil.core.effects import Diagnose
from vigil.core.events import Diagnosed, Measured
from vigil.core.machine import Machine
from vigil.core.model.evidence import CHILDREN_KEPT, NUMBER, Child, Evidence, Flag, Number, Text
from vigil.core.model.launch import Launch, RuntimeKind
from vigil.core.model.progress import UNHEARD
from vigil.core.model.session import Session
from vigil.daemon.base.ground import Ground
from vigil.daemon.sense.agent_files import Listening
from vigil.daemon.sense.outputs import ERRORS, OUTPUT
from vigil.daemon.sense.processes import PASS_S, Diagnoser
from vigil.kernel.process import ENDED
from vigil.observe.diagnosis import Diagnosis, Owned, ProcessReading
from vigil.observe.trees import Cpu
from vigil.redact import redact_command
from vigil.threads import EVIDENCE, in_thread

FILES_S = 2.0
COMMAND_CHARS = 200
SLOW_S = 1.0  # how much longer than its window a look may take
AGENT_ROLES = ("agent", "command")
PROC, DIAG, FILES = "procfs", "sock_diag", "files"


@dataclass(eq=False, repr=False)
class Silences:
    _ground: Ground
    _machine: Machine
    _diagnoser: Diagnoser
    _listening: Listening
    _clean: Callable[[Diagnosed], Diagnosed]  # without secrets: a person who asks why is told by this reading alone

    async def run(self) -> None:
        """After each pass over all launches, feed evidence of the CPU that waiting agents use."""
        told: object = None
        while True:
            await asyncio.sleep(PASS_S)
            latest = self._diagnoser.latest
            if latest is not told:
                told = latest
                rates = [(key, cheap.cpu.agent) for key, cheap in latest.items() if self._waits(key)]
                known = tuple((key, rate) for key, rate in rates if rate is not None)
                if known:
                    self._ground.feed(Measured(known))

    def _waits(self, launch_id: str) -> bool:
        session = self._machine.of_launch(launch_id)
        doing = session.vitals.doing if session is not None else UNHEARD
        return doing.started and (not doing.turn or bool(doing.asked))

    async def diagnose(self, effect: Diagnose) -> None:
        session = self._machine.of_launch(effect.launch.id)
        if session is not None:
            self._ground.feed(Diagnosed(effect.launch.id, await self.read(session, effect.launch, effect.window_s)))

    async def read(self, session: Session, launch: Launch, window_s: float) -> Evidence:
        begun = time.monotonic()
        diagnosis, written = await asyncio.gather(self._diagnoser.look(launch, window_s), self._read_files(session, launch))
        late_s = max(0.0, time.monotonic() - begun - window_s - SLOW_S)
        cheap = self._diagnoser.latest.get(launch.id)
        cpu = diagnosis.cpu
        if cheap is not None and (cheap.cpu.window_s or 0.0) > (cpu.window_s or 0.0):
            age_s = self._ground.now() - self._ground.clock.at(cheap.tree.at_s)
            cpu = cheap.cpu if age_s < 2 * PASS_S else cpu  # over a longer time
        return self._clean(Diagnosed(launch.id, evidence_of(diagnosis, cpu, self._ground.now(), late_s, written))).evidence

    async def _read_files(self, session: Session, launch: Launch) -> tuple[Number, Number, Number]:
        """Read a silent agent's evidence in files: when it printed, when each transcript grew."""
        now = self._ground.now()
        try:
            async with asyncio.timeout(FILES_S):
                printed_s, grown = await asyncio.gather(
                    self._printed_s(session, launch), in_thread(EVIDENCE, self._listening.growth, session, about=session.id)
                )
        except TimeoutError:
            hangs = Number(None, FILES, now, f"no answer in {FILES_S:g} s")
            return hangs, hangs, hangs
        own = max((one.at for one in grown if not one.subagent), default=None)
        others = max((one.at for one in grown if one.subagent), default=None)
        return Number(printed_s, FILES, now), Number(_ago_s(own), FILES, now), Number(_ago_s(others), FILES, now)

    async def _printed_s(self, session: Session, launch: Launch) -> float | None:
        """Read how long a headless agent prints nothing; a pane's spinner is no evidence."""
        if session.spec.runtime is not RuntimeKind.HEADLESS:
            return None
        folder = self._ground.home.launch(launch.id)
        erred_at = await in_thread(EVIDENCE, _grew_at, folder / ERRORS, about=launch.id)
        moments = [erred_at, await self._listening.printed_at(launch.id)]
        if moments[-1] is None:
            moments.append(await in_thread(EVIDENCE, _grew_at, folder / OUTPUT, about=launch.id))  # whatever it printed
        return _ago_s(max((at for at in moments if at is not None), default=None))


def _ago_s(at: float | None) -> float | None:
    return None if at is None else max(0.0, time.time() - at)


def _grew_at(path: Path) -> float | None:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def evidence_of(
    diagnosis: Diagnosis, cpu: Cpu, now: float, late_s: float = 0.0, written: tuple[Number, Number, Number] = (NUMBER,) * 3
) -> Evidence:
    agent = diagnosis.agent
    why = "; ".join(diagnosis.unknown)[:COMMAND_CHARS] if agent is None else ""
    number = partial(_number, now, why)
    others = [one for one in diagnosis.processes if one.role not in AGENT_ROLES]
    connected = [one for one in diagnosis.sockets if one.socket.family != "unix" and one.socket.state == "ESTABLISHED"]
    readable = agent is not None and agent.sockets is not None and not diagnosis.sockets_unread
    return Evidence(
        now,
        pid=agent.process.pid if agent else None,
        late_s=Number(late_s, "clock", now),
        state=Text(agent.state if agent else None, PROC, now, why),
        wchan=Text(agent.wchan if agent else None, PROC, now, why),
        traced=Flag(bool(agent.traced_by) if agent and agent.traced_by is not None else None, PROC, now, why),
        foreground=Flag(agent.foreground if agent else None, PROC, now, why),
        window_s=number(cpu.window_s),
        main_cpu=number(cpu.agent),
        main_waited=number(agent.waited if agent else None),
        main_burst_s=number(agent.burst_s if agent else None),
        tree_cpu=number(cpu.tree),
        used_cpu_s=number(sum(one.used_cpu_s for one in diagnosis.processes) if agent else None),
        io=number(_io(diagnosis)),
        memory_bytes=number(sum(one.rss_bytes for one in diagnosis.processes) if agent else None),
        peak_bytes=number(agent.peak_rss_bytes if agent else None),
        sockets=Number(len(connected) if readable else None, DIAG, now, "" if readable else why or "not readable"),
        received_s=_youngest(connected, "last_recv_ms", readable, now),
        sent_s=_youngest(connected, "last_send_ms", readable, now),
        unacked=Number(sum(one.socket.unacked or 0 for one in connected) if readable else None, DIAG, now),
        printed_s=written[0],
        transcript_s=written[1],
        subagents_s=written[2],
        descendants=number(len(others) if agent else None),
        hidden=number(sum(one.sockets is None and one.state not in ENDED for one in diagnosis.processes) if agent else None),
        children=tuple(_child(one, diagnosis, cpu) for one in others[:CHILDREN_KEPT]),
    )


def _number(now: float, why: str, value: float | None) -> Number:
    return Number(value, PROC, now, "" if value is not None else why)


def _io(diagnosis: Diagnosis) -> float | None:
    """Return as evidence the bytes a second that all moved; unknown if the agent's are."""
    agent, window_s = diagnosis.agent, diagnosis.window_s
    if agent is None or agent.io_read is None or not window_s:
        return None
    return sum((one.io_read or 0) + (one.io_written or 0) for one in diagnosis.processes) / window_s


def _youngest(owned: list[Owned], name: str, readable: bool, now: float) -> Number:
    """Return as evidence how long ago some sockets passed a byte; unknown if untold."""
    known = [value for one in owned if (value := getattr(one.socket, name)) is not None] if readable else []
    return Number(min(known) / 1000 if known else None, DIAG, now)


def _child(one: ProcessReading, diagnosis: Diagnosis, cpu: Cpu) -> Child:
    own = [owned for owned in diagnosis.sockets if owned.pid == one.process.pid and owned.socket.family != "unix"]
    own = [owned for owned in own if owned.socket.state == "ESTABLISHED"]
    moved = (
        None if one.io_read is None or not diagnosis.window_s else (one.io_read + (one.io_written or 0)) / diagnosis.window_s
    )
    return Child(
        one.process,
        one.name,
        command=words(" ".join(redact_command(one.command or ())), COMMAND_CHARS),
        parent=one.ppid,
        below=one.role != "stray",
        state=one.state,
        wchan=one.wchan,
        age_s=one.age_s,
        cpu=cpu.by_pid.get(one.process.pid, one.cpu),
        waited=one.waited,
        burst_s=one.burst_s,
        io=moved,
        sockets=None if one.sockets is None else len(own),
        received_s=_youngest(own, "last_recv_ms", one.sockets is not None, 0.0).value,
        waits_for_input=one.waits_for_input,
        holds_pipe=one.holds_agents_pipe,
    )
