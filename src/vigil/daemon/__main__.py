"""The daemon's process, `python -m vigil.daemon --home FOLDER [--ready-fd N]`: says on a pipe that it is ready, or why not."""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # a start builds no garbage: looking for some takes an eighth of its time

import argparse
import asyncio
import fcntl
import os
import signal
import sys
from pathlib import Path

from vigil.config.finding import find_config
from vigil.daemon.base.keeper_link import KeeperSilent
from vigil.daemon.base.keeper_start import raise_nofile, start_if_none
from vigil.daemon.base.recorder import RecordingRefused, create
from vigil.errors import VigilError
from vigil.home import Home, home_at, make_home
from vigil.kernel import cgroups, descent
from vigil.kernel.own_socket import OwnSocket
from vigil.kernel.precedence import come_first
from vigil.kernel.shortage import RESERVE, is_shortage
from vigil.kernel.trust import Untrusted
from vigil.threads import begin_ready

ALREADY = "already"
RESERVED = 24  # descriptors: a notice by a command needs eleven, a caller two, a look at /proc or at a record two


def main(argv: list[str]) -> int:
    """Run the daemon's process for a home until it is told to stop."""
    parser = argparse.ArgumentParser(prog="vigil-daemon")
    parser.add_argument("--home", required=True)
    parser.add_argument("--config")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--ready-fd", type=int, default=-1)
    parser.add_argument("--detach", action="store_true")
    options = parser.parse_args(argv)
    if options.detach:
        if os.fork():
            os._exit(0)  # our caller has no child to wait for
        come_first()  # only here: a daemon in the foreground is in another program's session
    descent.leave()  # an agent may have started us: we are no part of its launch
    cgroups.leave()
    RESERVE.hold(RESERVED)
    home = home_at(Path(options.home))
    try:
        make_home(home)
        lock = _lock(home)
        if lock is None:
            return _say(options.ready_fd, ALREADY, 0)
        config = find_config() if options.config is None else Path(os.path.abspath(options.config))
        asyncio.run(_serve(home, lock, config, options.ready_fd, options.record))
    except RecordingRefused as error:
        assert lock is not None
        os.close(lock)  # first: a command that starts at once must not hear that a daemon runs
        return _say(options.ready_fd, f"refused {error}", 1)
    except (VigilError, OSError, KeeperSilent, Untrusted) as error:
        words = str(error)
        if isinstance(error, OSError) and error.strerror:
            words = f"the daemon could not be started: {error.strerror} ({error.filename or home.path})"
        return _say(options.ready_fd, f"error {words}", 1)
    except Exception as error:
        if not is_shortage(error):
            raise
        return _say(options.ready_fd, f"error the daemon could not be started: {error}", 1)
    return 0


async def _serve(home: Home, lock: int, config: Path, ready_fd: int, record: Path | None) -> None:
    from vigil.daemon.base.log import BoundedFile, log_to
    from vigil.store.store import Store

    begin_ready()
    log_to(home.log / "daemon.log")
    if ready_fd >= 0:  # a starter waits: our errors go to a file, which may not grow without end
        sys.stderr = BoundedFile(home.log / "daemon.err")
    store = Store(home.database)  # before the API is imported: a bad database is refused at once
    nofile = raise_nofile()
    keeper = start_if_none(home, nofile)  # it comes up beside these imports

    from vigil.api.app import make_app
    from vigil.api.server import BACKLOG, Server
    from vigil.config.loading import ConfigFile
    from vigil.daemon.daemon import Daemon
    from vigil.daemon.wiring import Given

    recording = None if record is None else (record, create(record))
    daemon = Daemon(Given(home, store, ConfigFile(config), nofile, keeper, recording))
    server = Server(make_app(daemon))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.stop)
    try:
        await daemon.start()
    except BaseException:
        if record is not None:
            record.unlink(missing_ok=True)  # or the next try would be refused because of it
        raise
    gc.collect()
    gc.enable()
    gc.freeze()  # what a start builds stays: collecting over it again and again makes a death late
    own = OwnSocket(str(home.api_socket), (str(home.lock("daemon")), lock), BACKLOG)
    serving = asyncio.create_task(server.serve_at(own))
    daemon.look_after(server.mend)
    _say(ready_fd, "ready", 0)
    await daemon.stopped()
    server.stop()
    await serving


def _lock(home: Home) -> int | None:
    """Lock the home for the daemon's process; None if another daemon has it."""
    fd = os.open(home.lock("daemon"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    length = os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    os.ftruncate(fd, length)
    return fd


def _say(ready_fd: int, words: str, code: int) -> int:
    if ready_fd >= 0:
        try:
            os.write(ready_fd, words.splitlines()[0].encode() + b"\n")
            os.close(ready_fd)
        except OSError:
            pass
    elif code:
        print(f"vigil: {words}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
