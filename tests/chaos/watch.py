"""Watch: looks at all processes a few times a second and holds a pidfd of each that matters, so that no end is missed."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

from tests.chaos import proc
from tests.chaos.history import Double, Life, Part, Span, session_of
from tests.chaos.place import Place

EVERY_S = 0.2
LATE_S = 0.25
YOUNG_S = 3.0
STATUS_S = 5.0  # so long a parent may take to reap
Key = tuple[int, int]


class Watch:
    """Everything that was seen of this home's processes."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.lives: dict[Key, Life] = {}
        self.doubles: list[Double] = []
        self.leftovers: list[Double] = []
        self.late: list[Span] = []
        self.sampled: list[float] = []
        self.lateness_s = 0.0
        self._suspects: set[tuple[Key, Key]] = set()
        self._told: set[tuple[Key, Key]] = set()
        self._fds: dict[int, Life] = {}
        self._poll = select.epoll()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self.broken: BaseException | None = None
        self._threads = [threading.Thread(target=self._run, args=(work,), daemon=True) for work in (self._sample, self._hear)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(10)

    def alive(self, *parts: Part) -> list[Life]:
        """Return who lives now, the oldest first."""
        with self._lock:
            found = [life for life in self.lives.values() if life.part in parts and life.ended_at is None]
        return sorted(found, key=lambda life: (life.began_at, life.pid))

    def note_ready(self, part: Part, pid: int) -> None:
        """Keep when a process first answered."""
        for life in self.alive(part):
            if life.pid == pid and life.ready_at is None:
                life.ready_at = time.time()

    def dead(self, *parts: Part) -> list[Life]:
        with self._lock:
            return [life for life in self.lives.values() if life.part in parts and life.ended_at is not None]

    def all(self) -> list[Life]:
        with self._lock:
            return list(self.lives.values())

    def _run(self, work: object) -> None:
        try:
            assert callable(work)
            work()
        except BaseException as error:
            self.broken = error
            raise

    # Samples

    def _sample(self) -> None:
        due = time.monotonic()
        while not self._over.is_set():
            late_s = time.monotonic() - due
            self._note_lateness(late_s)
            self._look()
            due = max(due + EVERY_S, time.monotonic())
            self._over.wait(max(0.0, due - time.monotonic()))

    def _note_lateness(self, late_s: float) -> None:
        self.lateness_s = max(self.lateness_s, late_s)
        if late_s > LATE_S:
            now = time.time()
            self.late.append(Span(now - late_s, now + late_s, "the harness itself was late"))

    def _look(self) -> None:
        began = time.time()
        there: set[Key] = set()
        fresh: list[proc.Seen] = []
        for pid in proc.pids():
            seen = proc.look(pid)
            if seen is None:
                continue
            there.add((pid, seen.start))
            life = self.lives.get((pid, seen.start))
            if life is None or (life.seen_to < life.began_at + YOUNG_S and not self._is_still(life)):
                fresh.append(seen)
        for seen in fresh:
            self._meet(seen)
        with self._lock:
            now = time.time()
            for key, life in self.lives.items():
                if life.ended_at is None and key in there:
                    life.seen_to = max(life.seen_to, began)
                elif life.ended_at is None and key not in there and life.seen_to < began and life not in self._fds.values():
                    life.ended_at = now
        self.sampled.append(began)
        if time.time() - began > LATE_S:
            self.late.append(Span(began, time.time() + EVERY_S, "the harness itself was late"))
        self._compare(there)

    def _is_still(self, life: Life) -> bool:
        """Say whether a young process is what it was taken for: it may have become another program since."""
        words = proc.command_of(life.pid)
        if not words or life.part is Part.SERVER or part_of(words, self._place)[0] is life.part:
            return True
        with self._lock:
            del self.lives[life.key]
        return False

    def _meet(self, seen: proc.Seen) -> None:
        words = proc.command_of(seen.pid)
        part, launch = part_of(words, self._place)
        if part is None:
            return
        session = ""
        if part in (Part.AGENT, Part.SURVIVOR):
            environment = proc.environment_of(seen.pid)
            launch, session = environment.get("VIGIL_LAUNCH", ""), environment.get("VIGIL_SESSION", "")
            if not launch:
                return
        parent = next((life for life in self.lives.values() if life.pid == seen.ppid and life.ended_at is None), None)
        if parent is not None and parent.part is part and parent.launch == launch:
            return  # a fork that has not become another program yet
        if not proc.is_there(seen.pid, seen.start):
            return
        self._keep(Life(part, seen.pid, seen.start, seen.began_at, launch, session, seen_to=time.time()))
        if part is Part.ROOT:
            self._meet_server(seen.ppid, launch)

    def _meet_server(self, pid: int, launch: str) -> None:
        seen = proc.look(pid)
        if seen is not None and (pid, seen.start) not in self.lives and proc.command_of(pid)[:1] == ["tmux"]:
            self._keep(Life(Part.SERVER, pid, seen.start, seen.began_at, launch, seen_to=time.time()))

    def _keep(self, life: Life) -> None:
        fd = proc.open_pidfd(life.pid, life.start)
        with self._lock:
            self.lives[life.key] = life
            if fd is None:
                life.ended_at = time.time()
            else:
                self._fds[fd] = life
        if fd is not None:
            self._poll.register(fd, select.EPOLLIN)

    def _compare(self, there: set[Key]) -> None:
        """Find who is one too many; twice, for a look takes its time."""
        pairs: dict[tuple[Key, Key], tuple[Life, Life]] = {}
        agents = [life for life in self.alive(Part.AGENT) if life.key in there]
        survivors = [life for life in self.alive(Part.SURVIVOR) if life.key in there]
        for first, second in _twins(agents):
            pairs[first.key, second.key] = (first, second)
        for left in survivors:
            for agent in agents:
                if session_of(left.launch) == session_of(agent.launch) and left.launch != agent.launch:
                    pairs[left.key, agent.key] = (left, agent)
        for key, (first, second) in pairs.items():
            if key in self._suspects and key not in self._told:
                self._told.add(key)
                found = Double(time.time(), second.session, (first.launch, second.launch), (first.pid, second.pid))
                (self.leftovers if first.part is Part.SURVIVOR else self.doubles).append(found)
        self._suspects = set(pairs)

    # Ends

    def _hear(self) -> None:
        waiting: dict[int, float] = {}  # over, but the kernel does not yet say how
        while not self._over.is_set():
            for fd, _ in self._poll.poll(0.05 if waiting else 0.2):
                now = time.time()
                with self._lock:
                    self._fds[fd].ended_at = now
                self._poll.unregister(fd)
                waiting[fd] = now + STATUS_S
            for fd, until in list(waiting.items()):
                life = self._fds[fd]
                life.status = proc.status_of(fd, life.pid)
                if life.status is not None or time.time() > until:
                    del waiting[fd]
                    with self._lock:
                        del self._fds[fd]
                    os.close(fd)


def part_of(words: list[str], place: Place) -> tuple[Part | None, str]:
    """Say what a command line is to this home, and of which launch."""
    home = str(place.home)
    if "vigil.daemon" in words and home in words:
        return Part.DAEMON, ""
    if any(word.endswith("keeper/__main__.py") for word in words) and str(place.run) in words:
        return Part.KEEPER, ""
    if len(words) > 3 and words[1].endswith("/shim.sh") and words[3].startswith(home):
        part = {"root": Part.ROOT, "recorder": Part.RECORDER}.get(words[2])
        return part, os.path.basename(words[3])
    if str(place.work / "survivor.sh") in words[1:2]:
        return Part.SURVIVOR, ""
    if words[1:2] and words[1] in (str(place.work / "agent.sh"), str(place.work / "hog.py")):
        return Part.AGENT, ""
    return None, ""


def _twins(agents: list[Life]) -> Iterator[tuple[Life, Life]]:
    by_session: dict[str, list[Life]] = {}
    for life in agents:
        by_session.setdefault(life.session, []).append(life)
    for lives in by_session.values():
        yield from pairwise(lives)
