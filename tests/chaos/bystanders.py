"""Bystanders: processes that Vigil has nothing to do with; whoever signals one of them broke P2 or P9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.chaos import proc
from tests.chaos.history import Bystander
from tests.chaos.place import VIGIL, Place

NS_LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
TRIES = 40


@dataclass
class Standing:
    what: str
    pid: int
    start: int
    notes: Path
    process: subprocess.Popen[str] | None = None
    ended_by_us: bool = False


class Bystanders:
    """Our own shells, a foreign tmux server, another instance, and strangers with a dead agent's pid."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._standing: list[Standing] = []

    def start(self) -> None:
        for number in range(3):
            self.shell(f"shell {number}")
        self._start_tmux()
        self._start_other()

    def shell(self, what: str, *words: str) -> Standing:
        """Start a shell that notes every signal, and runs a command first if one is given."""
        notes = self._place.work / f"signals-{len(self._standing)}"
        script = "person.sh" if words else "bystander.sh"
        argv = ["/bin/sh", str(self._place.work / script), str(notes), *words]
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True, text=True, env=self._place.env
        )
        return self._keep(what, process.pid, notes, process)

    def with_pid(self, pid: int, what: str, *words: str) -> Standing | None:
        """Start a shell under a given pid; None if others were faster each time."""
        for _ in range(TRIES):
            if proc.look(pid) is not None or not _aim(pid):
                return None
            found = self.shell(what, *words)
            if found.pid == pid:
                return found
            self.dismiss(found)
        return None

    def with_thread(self, tid: int, what: str) -> Standing | None:
        """Start a process that has a thread of this number; None if others were faster."""
        notes = self._place.work / f"signals-{len(self._standing)}"
        argv = [sys.executable, str(self._place.work / "threads.py"), str(notes), str(tid)]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True, text=True)
        found = self._keep(what, process.pid, notes, process)
        assert process.stdout is not None
        if process.stdout.readline().strip() == "yes":
            return found
        self.dismiss(found)
        return None

    def dismiss(self, standing: Standing) -> None:
        """End one of ours; that is no violation."""
        standing.ended_by_us = True
        proc.send(standing.pid, standing.start, signal.SIGKILL)
        if standing.process is not None:
            standing.process.wait()

    def judge(self) -> list[Bystander]:
        """Say what became of each."""
        found = []
        for one in self._standing:
            signals = tuple(one.notes.read_text().split()) if one.notes.exists() else ()
            alive = proc.is_there(one.pid, one.start)
            found.append(Bystander(one.what, one.pid, signals, alive, one.ended_by_us))
        return found

    def end(self) -> None:
        for one in self._standing:
            if not one.ended_by_us:
                self.dismiss(one)

    def _keep(self, what: str, pid: int, notes: Path, process: subprocess.Popen[str] | None = None) -> Standing:
        seen = proc.look(pid)
        standing = Standing(what, pid, seen.start if seen else 0, notes, process)
        self._standing.append(standing)
        return standing

    def _start_tmux(self) -> None:
        """A tmux server as a person has one: default names, no marks of ours."""
        socket, notes = self._place.work / "tmux", self._place.work / "signals-tmux"
        script = f"exec /bin/sh {self._place.work}/bystander.sh {notes}"
        tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        shown = ["-P", "-F", "#{pid} #{pane_pid}"]
        env = self._place.env_of(self._place.other)
        done = subprocess.run([*tmux, "new-session", "-d", *shown, script], env=env, capture_output=True, text=True, timeout=20)
        server, pane = (int(word) for word in done.stdout.split())
        self._keep("a foreign tmux server", server, self._place.work / "signals-none")
        self._keep("a foreign pane", pane, notes)

    def _start_other(self) -> None:
        """Another instance with a session of the same name as one of ours."""
        notes = self._place.work / "signals-other"
        command = ["/bin/sh", str(self._place.work / "bystander.sh"), str(notes)]
        words = ["run", "--name", "worker-0", "--agent", "generic", "--cwd", "/", "--restart", "always", "--", *command]
        env = self._place.env_of(self._place.other)
        subprocess.run([*VIGIL, *words], env=env, check=True, capture_output=True, timeout=60)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            found = [pid for pid in proc.pids() if str(notes) in proc.command_of(pid)]
            if len(found) == 1:
                self._keep("another instance's agent", found[0], notes)
                return
            time.sleep(0.1)
        raise RuntimeError("the other instance's session did not come up")


def _aim(pid: int) -> bool:
    """Have the kernel give this pid next."""
    try:
        NS_LAST_PID.write_text(str(pid - 1))
    except OSError:
        return False
    return True


def can_aim() -> bool:
    return os.access(NS_LAST_PID, os.W_OK)
