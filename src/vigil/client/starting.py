"""Starting the daemon on demand: one at a time, fully detached from us, with the reason if it fails."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from vigil.client.living import START_S, answers, check_run, wait_for_answer
from vigil.config.finding import find_config
from vigil.errors import Unreachable, VigilError
from vigil.home import Home, make_home

AGAIN_S = 1.0  # whoever was told that a daemon runs, and finds none, starts one again: that one was dying
RUNS_ALREADY = (
    "the daemon runs already, and a recording begins with its start: vigil daemon stop leaves all sessions running, "
    "then ask again"
)


def start_daemon(home: Home, config: Path | None = None, record: Path | None = None) -> None:
    """Start the daemon of a home, or wait for another starter; Unreachable with the reason if that fails.

    Its configuration is `config`, or the one that the environment names. With `record`, no daemon may run yet.
    """
    check_run(home)
    make_home(home)
    lock = os.open(home.lock("start"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait_for(lock)
        if not wait_for_answer(home):
            _start(home, config or find_config(), record)
        elif record is not None:
            raise VigilError(RUNS_ALREADY)
    finally:
        os.close(lock)


def _wait_for(lock: int) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Unreachable(f"somebody else has been starting the daemon for {START_S:g} s; try again") from None
            time.sleep(0.02)


def _start(home: Home, config: Path, record: Path | None) -> None:
    # The daemon's own environment holds no VIGIL_CONFIG, so its arguments name the configuration.
    argv = [sys.executable, "-m", "vigil.daemon", "--home", str(home.path), "--config", str(config)]
    if record is not None:
        argv += ["--record", os.path.abspath(record)]
    log_path = home.log / "daemon.err"
    if log_path.exists() and log_path.stat().st_size > 1 << 20:
        log_path.unlink()
    deadline = time.monotonic() + START_S
    while (words := _spawn(argv, log_path)) == "already" and time.monotonic() < deadline:
        if not (wait_for_answer(home) or _comes_up(home)):
            continue
        if record is not None:
            raise VigilError(RUNS_ALREADY)
        return
    if words == "ready":
        return
    if words.startswith("refused "):
        raise VigilError(words.removeprefix("refused "))
    if words.startswith("error "):
        raise Unreachable(words.removeprefix("error "))
    raise Unreachable(f"the daemon did not start ({words or 'it ended, or took too long'}); see {log_path}")


def _spawn(argv: list[str], log_path: Path) -> str:
    """Start a daemon's process, and return its own word on whether it is up."""
    told, tell = os.pipe()
    try:
        with open(log_path, "ab") as errors:
            process = subprocess.Popen(
                [*argv, "--ready-fd", str(tell), "--detach"],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                cwd="/",
                env=clean_environment(),
                pass_fds=(tell,),
                start_new_session=True,
            )
    except OSError as error:
        os.close(told)
        raise Unreachable(f"the daemon could not be started: {error.strerror} ({error.filename or sys.executable})") from None
    finally:
        os.close(tell)
    words = _read_line(told, START_S)
    os.close(told)
    process.wait()  # it detached itself at once: the running daemon is not our child
    return words


def clean_environment() -> dict[str, str]:
    """Return our environment without the variables of a session around us."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("VIGIL_", "TMUX"))}


def _comes_up(home: Home) -> bool:
    """Wait a moment for the daemon that holds the lock, where the kernel does not show who that is."""
    deadline = time.monotonic() + AGAIN_S
    while time.monotonic() < deadline:
        if answers(home):
            return True
        time.sleep(0.02)
    return False


def _read_line(fd: int, within_s: float) -> str:
    deadline = time.monotonic() + within_s
    data = b""
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(fd, 4096) if ready else b""
        if not part:
            break
        data += part
    return data.decode("utf-8", "replace").strip()
