"""Turns at the tail of files: each line that agents add is told once, in fair turns and at a bounded pace.

A written file is read once a second at most, a quiet one never, and by threads: a disk that hangs holds up only its agents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial

from vigil.daemon.base.log import log
from vigil.daemon.sense.tail.files import Followed, FollowedFile, OnLines, Turn
from vigil.hands import Hands
from vigil.observe.inotify import Watches
from vigil.observe.lines import Position
from vigil.threads import begin

LOOK_S = 1.0
POLL_S = 5.0  # for what cannot be watched, and after a failed reading
LOOK_AT_ALL_S = 300.0  # without a notice: not every file system tells
DEADLINE_S = 1.0  # of a look; a longer one goes on by itself
MOST_HUNG = 32  # threads that may hang
LOOKERS = 2


class Following:
    """Gives tailed files their turns, each known by its key and its path."""

    def __init__(self, look_s: float = LOOK_S) -> None:
        self._look_s = look_s
        self._followed: dict[str, Followed] = {}
        self._ready: asyncio.Queue[Followed] = asyncio.Queue()
        self._watches: Watches[Turn] = Watches(self._wake)
        self._hands = Hands("following", LOOKERS + MOST_HUNG, ready=True)

    def follow(
        self,
        key: str,
        patterns: Iterable[str],
        roots: Iterable[str],
        on_lines: OnLines,
        positions: Mapping[str, Position] | None = None,
        from_end: bool = False,
    ) -> None:
        """Give files that match, now or later, their turns; tell lines behind the known positions.

        Patterns are absolute globs. `from_end` skips what is in files now without a position. `on_lines` runs on the loop; the
        position it gets belongs with what it makes of the lines. A key that is followed already keeps its positions."""
        before = self._followed.get(key)
        known = {**(positions or {}), **(before.positions() if before else {})}
        self.forget(key)
        followed = Followed(key, tuple(patterns), tuple(roots), on_lines, from_end)
        followed.files = {path: FollowedFile(followed, path, position) for path, position in known.items()}
        self._followed[key] = followed
        self._wake(followed.listing)

    def forget(self, key: str) -> None:
        followed = self._followed.pop(key, None)
        if followed is not None:
            turns = followed.turns()
            for turn in turns:
                turn.stop_waiting()
            self._watches.forget(turns)

    def positions(self) -> dict[str, dict[str, Position]]:
        return {key: followed.positions() for key, followed in self._followed.items()}

    async def catch_up(self, key: str, within_s: float) -> bool:
        """Give a key's files their turns at once; say whether all was told in time."""
        since = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(within_s):
                while (followed := self._followed.get(key)) is not None and self._hurry(followed, since):
                    followed.progress.clear()
                    await followed.progress.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Give no more turns; `run` may be cancelled before or after."""
        for key in list(self._followed):
            self.forget(key)
        self._watches.close()
        self._hands.close()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(LOOKERS):
                group.create_task(self._take_turns())
            group.create_task(self._look_at_all())

    async def _look_at_all(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AT_ALL_S)
            for followed in self._followed.values():
                self._wake(followed.listing)

    def _hurry(self, followed: Followed, since: float) -> bool:
        """Give files not read since then their turn now; say whether there are any."""
        late = [turn for turn in followed.turns() if turn.read_at < since]
        for turn in late if followed.listing not in late else [followed.listing]:  # it may find more
            if turn.doubted_at is None:
                self._wake(turn, 0.0)
        return bool(late)

    def _wake(self, turn: Turn, after_s: float | None = None) -> None:
        """Plan a file's next turn so long after its last, however often it wakes."""
        if turn.is_working or turn.is_ready:
            turn.again |= turn.is_working
            return
        loop = asyncio.get_running_loop()
        due_at = turn.looked_at + (self._look_s if after_s is None else after_s)
        if turn.timer is not None and turn.timer.when() <= due_at:
            return
        turn.stop_waiting()
        if due_at > loop.time():
            turn.timer = loop.call_at(due_at, self._queue, turn)
        else:
            self._queue(turn)

    def _queue(self, turn: Turn) -> None:
        turn.timer = None
        turn.is_ready = True
        turn.followed.ready.append(turn)
        self._offer(turn.followed)

    def _offer(self, followed: Followed) -> None:
        """Line up a key for one turn, however many of its files wait for theirs."""
        if followed.ready and not followed.is_offered and not followed.hung:
            followed.is_offered = True
            self._ready.put_nowait(followed)

    async def _take_turns(self) -> None:
        while True:
            turn = await self._next_turn()
            turn.begin(asyncio.get_running_loop().time())
            job, done = begin(self._hands, partial(turn.look, self._watches))
            await asyncio.wait([done], timeout=DEADLINE_S if self._hands.hung < MOST_HUNG else None)
            if done.done() or not self._hands.give_up(job):
                await asyncio.wait([done])
                await asyncio.sleep(self._finish(turn, done))
            else:
                self._leave_alone(turn, done)

    async def _next_turn(self) -> Turn:
        while True:
            followed = await self._ready.get()
            followed.is_offered = False
            if self._is_followed(followed) and not followed.hung:
                turn = followed.ready.popleft()
                self._offer(followed)
                return turn

    def _is_followed(self, followed: Followed) -> bool:
        return self._followed.get(followed.key) is followed

    def _leave_alone(self, turn: Turn, done: asyncio.Future[None]) -> None:
        """Let a turn that hangs end when it can; until then its key waits."""
        log.warning("file hangs", key=turn.followed.key, file=turn.name, waited_s=DEADLINE_S)
        turn.followed.hung += 1
        done.add_done_callback(partial(self._come_back, turn))

    def _come_back(self, turn: Turn, done: asyncio.Future[None]) -> None:
        turn.followed.hung -= 1
        self._finish(turn, done)

    def _finish(self, turn: Turn, done: asyncio.Future[None]) -> float:
        """Tell what a turn read, and plan the next; return the pause that it costs."""
        turn.is_working = False
        turn.looked_at = asyncio.get_running_loop().time()
        followed = turn.followed
        if not self._is_followed(followed):
            return 0.0
        if (error := done.exception()) is not None:
            log.error("look failed", key=followed.key, file=turn.name, why=repr(error), next_look_s=POLL_S)
            turn.is_polled = True
        else:
            for other in turn.take_in():
                self._wake(other)
        if turn.more:
            self._queue(turn)
        elif turn.again:
            self._wake(turn)
        elif turn.is_polled:
            self._wake(turn, POLL_S)
        self._offer(followed)
        followed.progress.set()
        return turn.cost_s
