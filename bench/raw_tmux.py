"""Raw tmux: as many sessions as Vigil brings up, each with a server of its own, and nothing else done about them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.harness import AGENT, send, wait_until
from vigil.kernel.process import is_alive, read_start_ticks

COMMAND_S = 60.0
END_S = 60.0
Processes = list[tuple[int, int]]  # pid and start time


def bring_up_raw(folder: Path, count: int, at_once: int) -> float:
    """Start so many servers, so many of them at once, end them again, and return the seconds until the last pid was known."""
    started: list[Processes] = []
    at = time.monotonic()
    try:
        with ThreadPoolExecutor(at_once) as starters:
            for found in starters.map(start_server, (folder / str(number) for number in range(count))):
                started.append(found)
        return time.monotonic() - at
    finally:
        end_servers(started)


def start_server(path: Path) -> Processes:
    """Start a server with one session, of the size Vigil gives it; return the server and its agent."""
    argv = ["tmux", "-u", "-S", str(path), "-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50"]
    argv += ["-P", "-F", "#{pid} #{pane_pid}", *AGENT]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TMUX")}
    result = subprocess.run(argv, env=environment, capture_output=True, timeout=COMMAND_S, check=True)
    return [(pid, read_start_ticks(pid) or 0) for pid in map(int, result.stdout.split())]


def end_servers(started: list[Processes]) -> None:
    """End exactly these servers, and see them and their agents gone."""
    for server, _ in started:
        send(*server, signal.SIGTERM)
    everybody = [process for processes in started for process in processes]
    wait_until(lambda: not any(is_alive(*process) for process in everybody), END_S, "end of raw tmux", every_s=0.1)
