"""A daemon that is forked from a process which has imported it already: four hundred imports were half of the suite's time.

It is the same program in a process of its own; only what `python -m vigil.daemon` does before `main` was done earlier. What a
command starts (vigil.run_cli), and what does not come up at once, starts as it does for a person.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from vigil.client.living import answers
from vigil.client.starting import clean_environment, start_daemon
from vigil.home import Home, make_home

TITLE_BYTES = 400


def start(home: Home, config: Path) -> None:
    """Start the daemon of a home, if none answers."""
    if answers(home):
        return
    make_home(home)
    told, tell = os.pipe()
    wanted = {"home": str(home.path), "config": str(config), "env": clean_environment(), "errors": str(home.log / "daemon.err")}
    try:
        socket.send_fds(_template(), [json.dumps(wanted).encode()], [tell])
    finally:
        os.close(tell)
    with open(told, "rb") as words:
        if words.readline() != b"ready\n":
            start_daemon(home, config)  # it says why not, or waits for the one that is there


@functools.cache
def _template() -> socket.socket:
    """The process that daemons of this worker are forked from; it ends with us."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    argv = [sys.executable, "-m", "tests.live.warm", str(theirs.fileno()), "-" * TITLE_BYTES]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),), start_new_session=True)
    theirs.close()

    @atexit.register
    def _end() -> None:
        ours.close()
        process.wait()

    return ours


def _serve(sock: socket.socket) -> None:
    gc.disable()  # as `python -m vigil.daemon` does
    import vigil.api.app
    import vigil.api.server
    import vigil.config.loading
    import vigil.daemon.__main__
    import vigil.daemon.daemon
    import vigil.store.store  # noqa: F401

    while True:
        data, fds, _, _ = socket.recv_fds(sock, 1 << 17, 1)
        if not data:
            return
        if (pid := os.fork()) == 0:
            sock.close()
            _become_daemon(json.loads(data), fds[0])
        os.close(fds[0])
        os.waitpid(pid, 0)  # it detaches itself at once


def _become_daemon(wanted: dict[str, Any], ready_fd: int) -> None:
    from vigil.daemon.__main__ import main
    from vigil.kernel import precedence

    code = 1
    try:
        os.setsid()
        os.chdir("/")
        os.environ.clear()
        os.environ.update(wanted["env"])
        errors = os.open(wanted["errors"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        os.close(errors)
        words = ["--home", wanted["home"], "--config", wanted["config"]]
        _be_called(sys.executable, "-m", "vigil.daemon", *words)
        precedence.NICE = 0  # dozens of daemons that come first would leave the agents no processor
        code = main([*words, "--ready-fd", str(ready_fd), "--detach"])
    finally:
        os._exit(code)


def _be_called(*words: str) -> None:
    """Put words in the place of our command line: whoever looks for a home's processes reads it."""
    with open("/proc/self/stat") as file:
        first, end = (int(field) for field in file.read().rpartition(")")[2].split()[45:47])
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(first)
        memory.write("\0".join(words).encode().ljust(end - first, b"\0"))


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
