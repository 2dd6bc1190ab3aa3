"""Stage: what a fault has at hand: the fleet, who lives, commands, signals to exactly one process, and what heals later."""

from __future__ import annotations

import heapq
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from random import Random

from tests.chaos import proc
from tests.chaos.bystanders import Bystanders
from tests.chaos.fleet import Fleet
from tests.chaos.history import Command, History, Life, Part, Shot, Shown, Span
from tests.chaos.place import VIGIL, Place
from tests.chaos.probe import Probe
from tests.chaos.watch import Watch

COMMAND_S = 90.0
AT_ONCE = 40
KEPT_CHARACTERS = 4000


class Stage:
    """One run: nothing of it outlives `close`."""

    def __init__(self, place: Place, fleet: Fleet, history: History, rng: Random) -> None:
        self.place = place
        self.fleet = fleet
        self.history = history
        self.rng = rng
        self.watch = Watch(place)
        self.probe = Probe(place, self.watch)
        self.bystanders = Bystanders(place)
        self.stopped: set[tuple[int, int]] = set()
        self._heals: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._running: set[subprocess.Popen[str]] = set()

    # Commands

    def ask(self, *words: str) -> Command:
        """Run a command to its end and keep what became of it."""
        began = time.time()
        process = subprocess.Popen(
            [*VIGIL, *words],
            env=self.place.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd="/",
        )
        self._running.add(process)
        code: int | None
        try:
            out, err = process.communicate(timeout=COMMAND_S)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            code = None
        finally:
            self._running.discard(process)
        shown = _shown(out) if words[0] == "ls" else ()
        done = Command(began, time.time(), words, code, out[-KEPT_CHARACTERS:], err[-KEPT_CHARACTERS:], shown)
        with self._lock:
            self.history.commands.append(done)
        return done

    def ask_whole(self, *words: str) -> str:
        """Run a command and return all that it printed; nothing if it failed."""
        done = subprocess.run([*VIGIL, *words], env=self.place.env, capture_output=True, text=True, timeout=COMMAND_S, cwd="/")
        return done.stdout if done.returncode == 0 else ""

    def order(self, *words: str) -> Future[Command]:
        """Begin a command and go on."""
        return self._pool.submit(self.ask, *words)

    def later(self, work: Callable[[], object]) -> Future[object]:
        """Do something beside the storm."""
        return self._pool.submit(work)

    # Signals

    def shoot(self, life: Life, number: int) -> bool:
        """Signal one process; it is on our record before."""
        shot = Shot(time.time(), life.pid, life.start, number, life.part, life.launch)
        with self._lock:
            self.history.shots.append(shot)
        if proc.send(life.pid, life.start, number):
            return True
        with self._lock:
            self.history.shots.remove(shot)
        return False

    def freeze(self, life: Life, for_s: float) -> bool:
        """Stop a process for a while."""
        if life.key in self.stopped or not self.shoot(life, signal.SIGSTOP):
            return False
        self.stopped.add(life.key)
        self.heal_after(for_s, lambda: self.thaw(life))
        return True

    def thaw(self, life: Life) -> None:
        self.stopped.discard(life.key)
        proc.send(life.pid, life.start, signal.SIGCONT)

    def pick(self, *parts: Part) -> Life | None:
        """Return somebody who lives and is not stopped by us."""
        found = [life for life in self.watch.alive(*parts) if life.key not in self.stopped]
        return self.rng.choice(found) if found else None

    # What was so, and what ends

    def note(self, what: str, for_s: float = 0.0, subject: str = "") -> None:
        now = time.time()
        self.history.faults.append(Span(now, now + for_s, what, subject))

    def excuse(self, what: str, for_s: float, subject: str = "") -> None:
        """Say that something excuses lateness from now on."""
        now = time.time()
        self.history.spans.append(Span(now, now + for_s, what, subject))

    def heal_after(self, seconds: float, heal: Callable[[], None]) -> None:
        with self._lock:
            heapq.heappush(self._heals, (time.time() + seconds, next(self._numbers), heal))

    def heal(self, everything: bool = False) -> None:
        """End what is due to end."""
        while True:
            with self._lock:
                if not self._heals or (not everything and self._heals[0][0] > time.time()):
                    return
                _, _, heal = heapq.heappop(self._heals)
            heal()

    def close(self) -> None:
        """End every command that still runs, and every thread of ours."""
        for process in list(self._running):
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.probe.stop()
        self.watch.stop()


def _shown(out: str) -> tuple[Shown, ...]:
    """Return what a list says of each session."""
    try:
        found = json.loads(out)
    except ValueError:
        return ()
    return tuple(Shown(one["name"], one["state"], one["launch"] or "", one["pid"]) for one in found)


def end_all(place: Place) -> None:
    """End every process but ours that names this run's folder, each by pid and start."""
    token, but = os.fsencode(str(place.base)), (os.getpid(), os.getppid())
    for _ in range(20):
        found = [seen for pid in proc.pids() if pid not in but and (seen := proc.look(pid)) and _names(pid, token)]
        for seen in found:
            proc.send(seen.pid, seen.start, signal.SIGKILL)
        if not found:
            return
        time.sleep(0.1)


def _names(pid: int, token: bytes) -> bool:
    for name in ("cmdline", "environ"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                if token in file.read():
                    return True
        except OSError:
            continue
    return False
