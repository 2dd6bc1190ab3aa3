"""Starting a keeper: a process that outlives us, in its own session and, under systemd, its own scope.

Imports next to nothing, so that a keeper comes up while the daemon imports the rest."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from vigil.home import Home
from vigil.keeper import protocol
from vigil.kernel.trust import read_locker

MAIN = Path(protocol.__file__).parent / "__main__.py"


def start_if_none(home: Home, nofile: int) -> subprocess.Popen[bytes] | None:
    """Start a home's keeper unless one lives; of two, the second finds the lock taken."""
    if read_locker(str(home.lock("keeper"))) is not None:
        return None  # its socket may be lost: it makes it anew
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)  # a keeper that hangs is there too
        try:
            sock.connect(str(home.keeper_socket))
        except (FileNotFoundError, ConnectionRefusedError):
            return start_keeper(home, nofile)
        except OSError:
            pass
    return None


def start_keeper(home: Home, nofile: int) -> subprocess.Popen[bytes]:
    """Start a keeper whose children may open `nofile` files."""
    log_path = str(home.log / "keeper.log")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("VIGIL_", "TMUX"))}
    isolated = [sys.executable, "-E", "-s", "-S", str(MAIN)]
    command = [*scope_argv(), *isolated, str(home.run), str(home.lock("keeper")), log_path, str(nofile)]
    with open(log_path, "ab") as errors:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd="/",
            env=environment,
            start_new_session=True,
        )


def scope_argv() -> list[str]:
    """Return the command prefix that starts a keeper outside our cgroup, where systemd can."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if shutil.which("systemd-run") and runtime and os.path.exists(os.path.join(runtime, "systemd", "private")):
        return ["systemd-run", "--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes", "--"]
    return []


def raise_nofile() -> int:
    """Raise our limit of open files; return the old one, which a keeper's children get."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft
