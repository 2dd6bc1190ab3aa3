"""Facts of a death: the witness reads what may explain it: memory, disk, last words."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from vigil.agents.contract import Adapter
from vigil.agents.last_words import SPEAKING, has_result, read_last_words, said_last
from vigil.core.model.death import Words
from vigil.core.model.launch import Launch
from vigil.daemon.base.clock import next_tick_s
from vigil.daemon.base.log import log
from vigil.daemon.base.secrets import Secrets
from vigil.home import Home
from vigil.kernel.host import OomKills
from vigil.kernel.theirs import read_end
from vigil.text import decode

TAIL_BYTES = 256 << 10  # read in the loop: the event that ends an agent is short
REDACTED_CHARS = 4096
KILLS_S = 5.0
DISK_S = 1.0
FULL_BYTES = 1 << 20
WORDS_CHARS = 200
SETTLED_S = 10.0


class Witness:
    """Reads facts that may explain a death; what cannot be read explains nothing."""

    def __init__(
        self, home: Home, secrets: Secrets, agent_of_launch: Callable[[str], str], adapter_of: Callable[[str], Adapter]
    ) -> None:
        self._home = home
        self._secrets = secrets
        self._agent_of_launch = agent_of_launch
        self._adapter_of = adapter_of
        self._counter = OomKills()
        self._oom_kills = self._counter.read()
        self._grown, self._grew_at = 0, -SETTLED_S
        self._full = ""
        self._ended = threading.Event()

    async def run(self) -> None:
        """Read memory kills and disks all the time: what grew long ago explains no death."""
        threading.Thread(target=self._watch_disk, name="disk", daemon=True).start()
        try:
            while True:
                self.oom_kills()
                await asyncio.sleep(next_tick_s(KILLS_S))
        finally:
            self._ended.set()

    def _watch_disk(self) -> None:
        while True:
            self._full = self._read_full_disk()
            if self._ended.wait(DISK_S):
                return

    def oom_kills(self) -> int | None:
        """Return recent memory kills that may explain a death; None if unreadable.

        A large process ends long after its kill."""
        before, self._oom_kills = self._oom_kills, self._counter.read()
        if before is None or self._oom_kills is None:
            return None
        now = time.monotonic()
        if self._oom_kills > before:
            self._grown, self._grew_at = self._oom_kills - before, now
        return self._grown if now - self._grew_at < SETTLED_S else 0

    def words_of(self, launch: Launch, exit_code: int | None) -> Words | None:
        """Return how last words explain an agent's death; a pane's screen is no record."""
        try:
            return self._words_of(launch, exit_code)
        except Exception:  # whatever it printed: a death is recorded without words rather than not at all (P3)
            log.exception("last words not read", launch=launch.id)
            return None

    def _words_of(self, launch: Launch, exit_code: int | None) -> Words | None:
        agent = self._agent_of_launch(launch.id)
        if agent not in SPEAKING:
            return None
        lines, printed_at = self._read_lines(launch)
        words = read_last_words(agent, lines, exit_code, printed_at) or said_last(self._adapter_of(agent), lines, printed_at)
        redact = self._secrets.redactor(launch.session_id).text
        return words and replace(words, text=redact(words.text[:REDACTED_CHARS])[:WORDS_CHARS])

    def result_of(self, launch: Launch) -> bool | None:
        """Read whether a dead headless agent's last words call its work done; None if unknown."""
        try:
            adapter = self._adapter_of(self._agent_of_launch(launch.id))
            return has_result(adapter, self._read_lines(launch)[0]) if launch.pane is None else None
        except Exception:  # as above
            log.exception("last words not read", launch=launch.id)
            return None

    def _read_lines(self, launch: Launch) -> tuple[list[str], float]:
        """Read what a dead agent printed last, for words that explain its death, and when."""
        path = self._home.launch(launch.id) / "stdout.jsonl"
        try:
            return decode(read_end(path, TAIL_BYTES).data).split("\n"), path.stat().st_mtime
        except OSError:
            return [], time.time()

    def full_disk(self) -> str:
        """Return which of our places was full just now, to explain a death; or nothing."""
        return self._full

    def _read_full_disk(self) -> str:
        try:
            found = os.statvfs(self._home.path)
        except OSError:
            return ""
        return str(self._home.path) if found.f_bavail * found.f_frsize < FULL_BYTES else ""
