"""The stage: what the acts of a script share, and how they write and wait."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vigil.fake_agent.values import fill

if TYPE_CHECKING:
    from socket import socket

STDIN, STDOUT, STDERR = 0, 1, 2
LONGEST_SLEEP_S = 1e8  # three years; time.sleep refuses what does not fit the kernel's clock


@dataclass
class ScriptStage:
    """What the acts share: what is held until the end, and what `${name}` may ask for."""

    round: int = 0
    n: int = 0
    answer: str = ""
    children: list[int] = field(default_factory=list)
    listeners: list["socket"] = field(default_factory=list)
    held: list[object] = field(default_factory=list)

    def fill(self, value: Any) -> Any:
        """Fill the live names into a text, or into every text of a table."""
        if isinstance(value, dict):
            return {key: self.fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        return fill(value, self.look_up) if isinstance(value, str) else value

    def look_up(self, name: str) -> object:
        return LIVE[name](self) if name in LIVE else f"${{{name}}}"  # what --set brought in stays as it is

    def text(self, value: str) -> str:
        return str(self.fill(value))


LIVE: dict[str, Callable[[ScriptStage], object]] = {
    "answer": lambda stage: stage.answer,
    "children": lambda stage: " ".join(map(str, stage.children)),
    "cwd": lambda _: os.getcwd(),
    "launch": lambda _: os.environ.get("VIGIL_LAUNCH", ""),
    "n": lambda stage: stage.n,
    "now": lambda _: read_now(),
    "null": lambda _: None,
    "pid": lambda _: os.getpid(),
    "port": lambda stage: own_port(stage),
    "round": lambda stage: stage.round,
    "session": lambda _: os.environ.get("VIGIL_SESSION", ""),
    "uuid": lambda _: make_uuid(),
}


def pause(seconds: float) -> None:
    """Sleep; a handled signal runs its handler meanwhile."""
    time.sleep(min(seconds, LONGEST_SLEEP_S))


def read_now() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"


def make_uuid() -> str:
    import uuid

    return str(uuid.uuid4())


def own_port(stage: ScriptStage) -> int:
    return int(own_listener(stage).getsockname()[1])


def own_listener(stage: ScriptStage) -> "socket":
    if not stage.listeners:
        raise OSError("nothing listens here yet; a listen step comes first")
    return stage.listeners[-1]


def emit(fd: int, data: bytes) -> None:
    """Write all of it; a reader that has gone does not concern the script."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError:
        pass


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")  # arguments and file names may hold any bytes


def as_json(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
