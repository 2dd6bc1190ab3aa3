"""circus: one watcher for each agent; a subscriber of its ZeroMQ channel is told of deaths."""

from __future__ import annotations

import importlib
import json
import time
from typing import Any

from bench.harness import AGENT, Run
from bench.peers.contract import Peer, tool

WATCHER = "\n[watcher:agent-{number}]\ncmd = {agent}\ncopy_env = True\n"


class Circus(Peer):
    """circusd, which looks for dead children once in `check_delay`."""

    def __init__(self, run: Run, check_delay_s: float | None = None) -> None:
        super().__init__(run)
        self._check_delay_s = check_delay_s
        self.name = "circus" if check_delay_s is None else f"circus-{check_delay_s:g}s"
        self.label = "circus (default, 5 s)" if check_delay_s is None else f"circus (check_delay {check_delay_s:g} s)"
        self.kills = 20 if check_delay_s is None else 40
        self.phase_s = check_delay_s or 5.0
        self._socket: Any = None

    def command(self) -> list[str]:
        """Write a watcher for each agent; sockets instead of ports, so that no other one is met."""
        text = "[circus]\n" + "".join(f"{name} = ipc://{self.folder}/{name}\n" for name in ("endpoint", "pubsub_endpoint"))
        if self._check_delay_s is not None:
            text += f"check_delay = {self._check_delay_s:g}\n"
        text += "".join(WATCHER.format(number=number, agent=" ".join(AGENT)) for number in range(self.count))
        (self.folder / "circus.ini").write_text(text, "utf-8")
        return [tool("circusd"), str(self.folder / "circus.ini")]

    def subscribe(self) -> None:
        """Listen to what it publishes."""
        zmq: Any = importlib.import_module("zmq")  # only there when circus is
        self._socket = zmq.Context.instance().socket(zmq.SUB)
        self._socket.connect(f"ipc://{self.folder}/pubsub_endpoint")
        self._socket.setsockopt(zmq.SUBSCRIBE, b"watcher.")
        time.sleep(0.5)  # a subscription is not acknowledged

    def told_at_ns(self, pid: int, within_s: float) -> int:
        """Return when the reap could be read."""
        deadline = time.monotonic() + within_s
        while (left_s := deadline - time.monotonic()) > 0:
            if self._socket.poll(left_s * 1000):
                at_ns = time.monotonic_ns()
                topic, body = self._socket.recv_multipart()
                if topic.endswith(b".reap") and json.loads(body)["process_pid"] == pid:
                    return at_ns
        raise TimeoutError(f"nobody was told of the death of {pid} within {within_s:g} s")

    def list_command(self) -> list[str] | None:
        """Ask for the state of every watcher."""
        return [tool("circusctl"), "--endpoint", f"ipc://{self.folder}/endpoint", "status"]

    def stop(self) -> None:
        """End it; it ends its agents."""
        if self._socket is not None:
            self._socket.close(0)
            self._socket = None
        super().stop()
