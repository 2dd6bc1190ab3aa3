"""supervisord with its defaults; an event listener, as its manual describes it, is told of deaths."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.harness import AGENT, wait_until
from bench.peers.contract import START_S, Lines, Peer, tool
from bench.readings import read_children

LISTENER = Path(__file__).with_name("listener.py")

# minfds: 500 programs hold 1000 pipes, which its default of 1024 leaves no room for.
CONFIGURATION = """\
[supervisord]
nodaemon=true
minfds=4096
logfile={folder}/supervisord.log
pidfile={folder}/supervisord.pid
childlogdir={folder}

[unix_http_server]
file={folder}/rpc.sock

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface

[supervisorctl]
serverurl=unix://{folder}/rpc.sock

[program:agent]
command={agent}
numprocs={count}
process_name=%(program_name)s-%(process_num)d

[eventlistener:deaths]
command={python} {listener} {folder}/deaths
events=PROCESS_STATE_EXITED
"""


class Supervisord(Peer):
    """supervisord 4."""

    name = "supervisord"
    label = "supervisord"
    kills = 100
    phase_s = 1.0
    least_age_s = 1.2  # startsecs is 1: whoever dies earlier was never running, and no exit is told

    def command(self) -> list[str]:
        """Write one program of so many processes, and the listener."""
        self._lines = Lines(self.folder / "deaths")
        self._configuration = self.folder / "supervisord.conf"
        text = CONFIGURATION.format(
            folder=self.folder, agent=" ".join(AGENT), count=self.count, python=sys.executable, listener=LISTENER
        )
        self._configuration.write_text(text, "utf-8")
        return [tool("supervisord"), "-c", str(self._configuration)]

    def started(self) -> None:
        """Tell the listener from the agents: it is the child that runs Python."""
        wait_until(lambda: bool(self._find_listener()), START_S, "start of supervisord's listener")
        self.helpers = self._find_listener()

    def subscribe(self) -> None:
        """The listener always listens."""

    def told_at_ns(self, pid: int, within_s: float) -> int:
        """Return when the listener could read the event."""
        return self._lines.told_at_ns(pid, within_s)

    def list_command(self) -> list[str] | None:
        """Ask for the state of everything."""
        return [tool("supervisorctl"), "-c", str(self._configuration), "status"]

    def stop(self) -> None:
        """End it; it ends its agents."""
        super().stop()
        self._lines.close()

    def _find_listener(self) -> list[int]:
        assert self.process is not None
        found = []
        for pid in read_children(self.process.pid):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if os.fsencode(LISTENER) in file.read():
                    found.append(pid)
        return found
