"""Agents' files: the streams and transcripts that agents write, followed as words, and when each file last grew.

The growth is read from the file system on request, so it holds for agents whose lines Vigil cannot read."""

from __future__ import annotations

import glob
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from vigil.agents.contract import Adapter, Place
from vigil.core.events import Event, Heard, Observed
from vigil.core.model.launch import Launch, RuntimeKind
from vigil.core.model.session import Session
from vigil.core.model.speech import Said, What
from vigil.daemon.sense.tail.turns import Following
from vigil.home import Home
from vigil.observe.lines import Position, TakenLines
from vigil.observe.spool import TIME
from vigil.observe.walk import fixed_folder
from vigil.text import decode

MOST = 200  # files of one pattern
FINISH_S = 2.0
CATCH_UP_S = 1.0
SET_S = 1.0  # a clock that is set jumps by more
TOLD_S = 1.0  # how often the machine hears that an agent prints on and on
UNKNOWN_KEPT = 200
SIGNS = frozenset({What.ALIVE, What.SPEAKS, What.TICKS})


@dataclass(frozen=True, slots=True)
class Grown:
    """One file of an agent: its owner, last write by the wall clock, and size."""

    path: str
    subagent: bool
    at: float
    size_bytes: int


def read_growth(patterns: Sequence[str]) -> list[Grown]:
    """Read when an agent's files last grew: the conversation's, then its sub-agents', newest first."""
    own = _read(patterns[:1], subagent=False)
    others = sorted(_read(patterns[1:], subagent=True), key=lambda grown: -grown.at)
    return [*own, *others]


def _read(patterns: Iterable[str], subagent: bool) -> list[Grown]:
    found = []
    for pattern in patterns:
        for path in islice(glob.iglob(pattern), MOST):
            try:
                stat = os.stat(path)
            except OSError:
                continue
            found.append(Grown(path, subagent, stat.st_mtime, stat.st_size))
    return found


class Listening:
    def __init__(
        self,
        home: Home,
        adapter_of: Callable[[str], Adapter],
        environment_of: Callable[[Session], Mapping[str, str]],
        feed: Callable[[Event], None],
        off_s: Callable[[], float],
    ) -> None:
        self._home = home
        self._adapter_of = adapter_of
        self._environment_of = environment_of
        self._feed = feed
        self._off_s = off_s  # how far the wall clock, which stamps files and words, is ahead of ours
        self._conversations: dict[str, str] = {}  # by launch: the conversation whose transcript is followed
        self._printed: dict[str, float] = {}  # by launch: the last print that was no tick, by the wall clock
        self.following = Following()
        self.unknown: Counter[tuple[str, str]] = Counter()  # kinds of events that no adapter lists, by agent and name

    async def run(self) -> None:
        await self.following.run()

    def follow(self, session: Session, launch: Launch) -> None:
        """Follow a launch's stream or transcript file from its position; both would count spending twice."""
        if session.spec.runtime is RuntimeKind.HEADLESS:
            self._follow_stream(session, launch)
        elif session.conversation:
            self.converses(session, launch, session.conversation)

    def converses(self, session: Session, launch: Launch, conversation: str) -> None:
        """Follow the file of an agent's conversation; an earlier launch's words are not news."""
        adapter = self._adapter_of(session.spec.agent)
        if session.spec.runtime is RuntimeKind.HEADLESS or self._conversations.get(launch.id) == conversation:
            return
        try:
            env = self._environment_of(session)
        except (OSError, ValueError):
            return  # its place is unknown
        patterns = adapter.transcripts(Place(os.path.realpath(session.spec.cwd), env), conversation)
        if not patterns:
            return
        self._conversations[launch.id] = conversation
        on_lines = self._reader(session.spec.agent, launch.id, adapter.read_entry, "transcript")
        roots = [fixed_folder(pattern) for pattern in patterns]
        self.following.follow(launch.id, patterns, roots, on_lines, _positions(session), from_end=True)

    def growth(self, session: Session) -> list[Grown]:
        """Read when a session's transcript files last grew; takes as long as the file system."""
        if not session.conversation:
            return []
        try:
            env = self._environment_of(session)
        except (OSError, ValueError):
            return []
        place = Place(os.path.realpath(session.spec.cwd), env)
        return read_growth(self._adapter_of(session.spec.agent).transcripts(place, session.conversation))

    async def printed_at(self, launch_id: str) -> float | None:
        """Return when a headless agent's stream file last got more than a tick; None: unknown."""
        caught_up = await self.following.catch_up(launch_id, CATCH_UP_S)
        return self._printed.get(launch_id) if caught_up else None

    async def finish(self, launch_id: str) -> None:
        """Read the last words in a gone agent's files, then follow them no more."""
        await self.following.catch_up(launch_id, FINISH_S)
        self.forget(launch_id)

    def forget(self, launch_id: str) -> None:
        self._conversations.pop(launch_id, None)
        self._printed.pop(launch_id, None)
        self.following.forget(launch_id)

    def read_hook(self, agent: str, payload: Mapping[str, Any]) -> tuple[Said, ...]:
        said = tuple(self._adapter_of(agent).read_hook(dict(payload)))
        self._count_unknown(agent, said)
        return said

    def close(self) -> None:
        self.following.close()

    def _follow_stream(self, session: Session, launch: Launch) -> None:
        adapter = self._adapter_of(session.spec.agent)
        folder = str(self._home.launch(launch.id))
        path = f"{folder}/stdout.jsonl"
        self._printed[launch.id] = _written_at(path)
        on_lines = self._reader(session.spec.agent, launch.id, adapter.read_stream, "stream")
        self.following.follow(launch.id, [path], [folder], on_lines, _positions(session))

    def _reader(
        self, agent: str, launch_id: str, read: Callable[[dict[str, Any]], Iterable[Said]], source: str
    ) -> Callable[[str, str, TakenLines], None]:
        def on_lines(_key: str, path: str, taken: TakenLines) -> None:
            written_at = _written_at(path)
            by_line = [tuple(_read_line(line, read, written_at)) for line in taken.lines]
            said = self._by_our_clock(one for line in by_line for one in line)
            self._count_unknown(agent, said)
            if source == "stream" and taken.read_bytes:
                self._take_growth(launch_id, by_line, written_at, taken.more)
            if said and taken.position is not None:
                self._feed(Heard(launch_id, tuple(_folded(said)), source, ((path, json.dumps(taken.position.as_json())),)))

        return on_lines

    def _take_growth(self, launch_id: str, by_line: list[tuple[Said, ...]], at: float, more: bool) -> None:
        """Note that a headless agent's stream file grew; feed that where its words do not."""
        if by_line and all(line and all(one.what is What.TICKS for one in line) for line in by_line):
            return
        speaks = by_line and all(by_line)
        if more and not speaks and at - self._printed.get(launch_id, 0.0) < TOLD_S:
            return  # the next lines will tell
        self._printed[launch_id] = at
        if not speaks:
            self._feed(Observed(launch_id, (), active_at=at - self._off_s()))

    def _by_our_clock(self, said: Iterable[Said]) -> list[Said]:
        # A wall clock set back by an hour made each word an hour old, and its agent silent.
        off_s = self._off_s()
        return list(said) if abs(off_s) < SET_S else [_earlier(one, off_s) for one in said]

    def _count_unknown(self, agent: str, said: Iterable[Said]) -> None:
        for one in said:
            key = (agent, one.name)
            if one.what is What.UNKNOWN and (key in self.unknown or len(self.unknown) < UNKNOWN_KEPT):
                self.unknown[key] += 1


def _earlier(said: Said, by_s: float) -> Said:
    at, until = (None if moment is None else moment - by_s for moment in (said.at, said.until))
    return replace(said, at=at, until=until)


def _written_at(path: str) -> float:
    """Return when an agent's file was last written: all in it was said by then."""
    now = time.time()
    try:
        return min(now, os.stat(path).st_mtime)
    except OSError:
        return now


def _read_line(line: bytes, read: Callable[[dict[str, Any]], Iterable[Said]], at: float) -> Iterable[Said]:
    """Return what a line of an agent's file says; `at` fills a missing time."""
    if not line.lstrip().startswith(b"{"):
        return ()
    try:
        event = json.loads(decode(line))
    except (ValueError, RecursionError):
        return ()
    return read({TIME: at, **event}) if isinstance(event, dict) else ()


def _folded(said: Iterable[Said]) -> Iterable[Said]:
    """Fold an agent's signs of life in a row: its stream file has very many."""
    before = None
    for one in said:
        if one.what not in SIGNS or before is None or before.what is not one.what or one.usage or one.conversation:
            yield one
        before = one


def _positions(session: Session) -> dict[str, Position]:
    found = {}
    for path, text in session.vitals.read_to.items():
        try:
            position = Position.from_json(json.loads(text))
        except ValueError:
            position = None
        if position is not None:
            found[path] = position
    return found
