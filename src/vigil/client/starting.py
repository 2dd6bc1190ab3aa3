"""Starting the daemon on demand: one at a time, fully detached from us, with the reason if it fails."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from vigil.config.finding import find_config
from vigil.errors import Unreachable, VigilError
from vigil.home import Home, make_home
from vigil.kernel.process import is_dying
from vigil.kernel.trust import Untrusted, check_private, connect_own, read_peer

START_S = 30.0
ANSWERS_S = 5.0
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
        if not answers(home):
            _start(home, config or find_config(), record)
        elif record is not None:
            raise VigilError(RUNS_ALREADY)
    finally:
        os.close(lock)


def answers(home: Home) -> bool:
    """Say whether a living daemon listens on the home's socket; a killed one still does for a moment.

    Unreachable if a stranger could, or does, listen there.
    """
    try:
        with connect_own(str(home.api_socket), ANSWERS_S, str(home.lock("daemon"))) as sock:
            return not is_dying(read_peer(sock)[0])
    except OSError:
        return False
    except Untrusted as error:
        raise unsafe(error) from None


def check_run(home: Home) -> None:
    """Refuse a folder of sockets in which a stranger could listen."""
    try:
        check_private(str(home.run))
    except Untrusted as error:
        raise unsafe(error) from None


def unsafe(error: Untrusted) -> Unreachable:
    """Return what a person is told of a stranger's folder or socket."""
    return Unreachable(f"{error}. Nothing was sent; vigil doctor says more, and another VIGIL_HOME has other sockets")


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
        if not _comes_up(home):
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
    """Wait a moment for the daemon that holds the lock."""
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
