"""Explanations: looks at one session now, for a person who asks why; keeps nothing."""

from __future__ import annotations

from vigil.core.model.session import ALIVE, Session, with_vitals
from vigil.core.rules.stall.case import is_watched
from vigil.core.rules.stall.course import with_finding
from vigil.daemon.sense.evidence import Silences
from vigil.daemon.sense.sweep import Sweep
from vigil.daemon.supervisor import Supervisor

READ_S = 1.5
JUDGE_S = 0.5  # a person who asks why waits so long


class Explainer:
    def __init__(self, supervisor: Supervisor, sweep: Sweep, silences: Silences) -> None:
        self._supervisor = supervisor
        self._sweep = sweep
        self._silences = silences

    async def look(self, session: Session) -> None:
        """For a person who asks why, read a session's axes within a silent server's deadline.

        Two looks within 5 s are one sample."""
        if session.state in ALIVE and session.launch is not None:
            await self._sweep.look(session)
            shown = self._supervisor.shown
            await self._supervisor.until(lambda: shown.get(session.id) is not session, READ_S)

    async def judged(self, session: Session) -> Session:
        """For a person who asks why, return a session with what explains its silence now."""
        launch = session.launch
        if launch is None or not is_watched(session):
            return session
        evidence = await self._silences.read(session, launch, JUDGE_S)
        machine = self._supervisor.machine
        found = machine.judge(launch.id, evidence, self._supervisor.now())
        now = machine.of_launch(launch.id) or session
        return now if found is None else with_vitals(now, stall=with_finding(now.vitals.stall, found, evidence.at))
