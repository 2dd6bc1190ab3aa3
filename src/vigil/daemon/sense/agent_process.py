"""The agent's process: looked for below its command, often at first, then once a second, until seen or the launch is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from vigil.core.events import Found
from vigil.core.machine import Machine
from vigil.core.model.launch import Launch
from vigil.core.model.reading import Axis
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.log import log
from vigil.observe.process import find_named, read_process

FIRST_S = 0.005
OFTEN_S = 0.05
OFTEN_FOR_S = 10.0  # an agent that is born and dies within this time is seen if it lives for one wait
LONGEST_S = 1.0


@dataclass(eq=False, repr=False)
class Finder:
    _ground: Ground
    _machine: Machine
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict, init=False)

    def look_for(self, launch: Launch, found: Callable[[Launch, Found], None]) -> None:
        """Look for the agent's process below a launch's command until found, then call `found`."""
        if launch.names and launch.found is None and launch.id not in self._tasks:
            task = asyncio.create_task(self._run(launch, found))
            self._tasks[launch.id] = task
            task.add_done_callback(lambda _: self._tasks.pop(launch.id, None))

    def close(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()

    async def _run(self, launch: Launch, found: Callable[[Launch, Found], None]) -> None:
        wait_s = FIRST_S
        begun = asyncio.get_running_loop().time()
        while self._may_come(launch):
            try:
                process = find_named(launch.process, launch.names) if launch.process else None
            except OSError as error:
                log.warning("cannot look for the agent", launch=launch.id, why=str(error))
                process = None
            if process is not None:
                fact = read_process(Axis.PROCESS, process, self._ground.boot, self._ground.now())
                found(launch, Found(launch.id, process, fact))
                return
            await asyncio.sleep(wait_s)
            often = asyncio.get_running_loop().time() - begun < OFTEN_FOR_S
            wait_s = min(wait_s * 1.3, OFTEN_S if often else LONGEST_S)

    def _may_come(self, launch: Launch) -> bool:
        """Say whether the agent's process may still come: its launch is not over."""
        session = self._machine.sessions.get(launch.session_id)
        now = session.launch if session else None
        return now is not None and now.id == launch.id and now.ended_at is None
