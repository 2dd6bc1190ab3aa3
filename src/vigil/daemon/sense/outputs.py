"""Outputs: keeps the files that headless agents print into within their bound; printed errors show that one works.

A grown file is looked at once a second at most, a quiet one never. `agent_files` reads stdout, whose lines may be no work."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field

from vigil.core.events import Observed
from vigil.core.model.launch import Launch
from vigil.daemon.base.ground import Ground
from vigil.daemon.base.log import log
from vigil.observe.inotify import Inotify
from vigil.runtimes.tail import release_head

OUTPUT, ERRORS = "stdout.jsonl", "stderr.log"
TEND_S = 1.0


@dataclass(eq=False, repr=False)
class Outputs:
    _ground: Ground
    _launch_of: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._inotify = Inotify(self._written)

    def follow(self, launch: Launch, newborn: bool) -> None:
        """Follow a headless launch's output until it is forgotten; what a newborn has printed counts."""
        for path in self._paths(launch.id):
            self._launch_of[path] = launch.id
            self._tend(path, grew=False)
        if newborn and _has_words(str(self._ground.home.launch(launch.id) / ERRORS)):
            self._tell(launch.id)

    def forget(self, launch_id: str) -> None:
        for path in self._paths(launch_id):
            self._launch_of.pop(path, None)

    def close(self) -> None:
        self._launch_of.clear()
        self._inotify.close()

    def _paths(self, launch_id: str) -> list[str]:
        return [str(self._ground.home.launch(launch_id) / name) for name in (OUTPUT, ERRORS)]

    def _written(self, path: str) -> None:
        if path in self._launch_of:
            asyncio.get_running_loop().call_later(TEND_S, self._tend, path, True)

    def _tend(self, path: str, grew: bool) -> None:
        """Watch an output file for its next line, then bound it: nothing falls between."""
        launch_id = self._launch_of.get(path)
        if launch_id is None:
            return
        try:
            self._inotify.watch(path)
            release_head(path)
        except FileNotFoundError:
            self._launch_of.pop(path, None)
        except OSError as error:
            log.warning("output not bounded", launch=launch_id, why=str(error))
        if grew and path.endswith(ERRORS):
            self._tell(launch_id)

    def _tell(self, launch_id: str) -> None:
        self._ground.feed(Observed(launch_id, (), active_at=self._ground.now()))


def _has_words(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0
    except OSError:
        return False
