"""Probe: whether sockets take connections, when a daemon first answers, and how strained the host is."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from pathlib import Path

from tests.chaos.history import Absence, Part, Span
from tests.chaos.place import Place
from tests.chaos.watch import Watch

EVERY_S = 0.25
CONNECT_S = 0.5
ANSWER_S = 1.0
STRAIN_S = 0.15  # a small program takes 3 ms on an idle host
REQUEST = b"GET /v1/daemon HTTP/1.1\r\nHost: vigil\r\nConnection: close\r\n\r\n"
SOCKETS = (("api.sock", Part.DAEMON), ("keeper.sock", Part.KEEPER))


class Probe:
    """What a person at the socket would notice."""

    def __init__(self, place: Place, watch: Watch) -> None:
        self._place = place
        self._watch = watch
        self.absences: list[Absence] = []
        self.strained: list[Span] = []
        self.out_of_memory: list[float] = []
        self._kills = _kills()
        self.broken: BaseException | None = None
        self._gone_since: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(10)
        now = time.time()
        self.absences += [Absence(name, since, now) for name, since in self._gone_since.items()]

    def _run(self) -> None:
        try:
            while not self._over.wait(EVERY_S):
                self._look()
                self._ask()
                self._strain()
                self._count()
        except BaseException as error:
            self.broken = error
            raise

    def _look(self) -> None:
        """See which sockets are gone although somebody lives who should have them."""
        for name, part in SOCKETS:
            if not self._watch.alive(part) or _listens(self._place.run / name):
                if (since := self._gone_since.pop(name, None)) is not None:
                    self.absences.append(Absence(name, since, time.time()))
            else:
                self._gone_since.setdefault(name, time.time())

    def _ask(self) -> None:
        """Ask whichever daemon has not answered yet."""
        if all(life.ready_at is not None for life in self._watch.alive(Part.DAEMON)):
            return
        try:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(ANSWER_S)
                sock.connect(str(self._place.run / "api.sock"))
                sock.sendall(REQUEST)
                with sock.makefile("rb") as stream:
                    answer = stream.read()
            self._watch.note_ready(Part.DAEMON, json.loads(answer.partition(b"\r\n\r\n")[2])["pid"])
        except (OSError, ValueError, KeyError):
            return

    def _count(self) -> None:
        if (kills := _kills()) != self._kills:
            self._kills = kills
            self.out_of_memory.append(time.time())

    def _strain(self) -> None:
        """Measure what a small program takes; what takes long here takes long everywhere."""
        began = time.time()
        subprocess.run(["/bin/true"], check=True)
        took_s = time.time() - began
        if took_s > STRAIN_S:
            self.strained.append(Span(began - took_s, began + 4 * took_s, "the host was late"))


def _kills() -> int:
    """Read how many the host has ended for want of memory."""
    lines = Path("/proc/vmstat").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def _listens(path: Path) -> bool:
    """Say whether a socket is there and takes connections."""
    if not path.exists():
        return False
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(CONNECT_S)
        try:
            sock.connect(str(path))
        except (TimeoutError, BlockingIOError):
            return True  # it is there; who does not answer is another question
        except OSError:
            return False
    return True
