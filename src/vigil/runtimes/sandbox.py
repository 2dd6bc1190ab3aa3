"""The sandbox: the bwrap command around an agent's, made of a table of what the agent sees.

bwrap stays outside and ends with the agent. Its first process inside reaps, and takes all others with it when it is killed."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from vigil.command import CommandAnswer, run_command
from vigil.core.model.sandbox import Sandbox
from vigil.home import Home
from vigil.kernel.proc import PROC
from vigil.text import decode, one_line

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc")
RESOLVER = "/etc/resolv.conf"  # often a link to a file in /run
# No --die-with-parent: agents outlive the keeper. No --new-session: Ctrl-C must reach the agent.
APART = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL")
# The shim opened 5 for bwrap, which tells the keeper its first process inside; 6 and 4 are for the agent's process itself.
TELL = ("--info-fd", "5")
GATE = 'echo ready >&6; read -r _ <&4 || exit 125; exec 4<&- 6>&-; exec "$@"'
GATE_NAME = "vigil-gate"
TRIAL = 'command -v "$1" >/dev/null || exit 66'
NOT_SEEN = 66
TRIAL_S = 5.0
PROBE = ("--ro-bind", "/", "/", "--proc", PROC, "--dev", "/dev", "--", "/bin/sh", "-c", ":")
PROBED_S = 60.0
HOOK = Path(__file__).parents[1] / "agents" / "hook.sh"
SHIM = Path(__file__).parents[1] / "keeper" / "shim.sh"


class ShownPath(NamedTuple):
    """One thing that the agent sees: bwrap's option, what it shows, and where."""

    flag: str
    source: str
    place: str

    def words(self) -> list[str]:
        """Return it as bwrap reads it."""
        return [self.flag, *([self.source] if self.source else []), self.place]


@dataclass(frozen=True)
class SandboxView:
    """All that one launch's agent sees."""

    sandbox: Sandbox
    cwd: str
    system: tuple[ShownPath, ...]
    hidden: tuple[str, ...]  # where Vigil's own folders would show
    spool: ShownPath
    files: tuple[str, ...] = ()  # Vigil's own for this launch, read-only
    user_home: str = ""


def argv_of(view: SandboxView, bwrap: str = "bwrap") -> list[str]:
    """Return bwrap's words for a view, up to the command; outer folders first, so that inner ones stay."""
    mounts = [
        *view.system,
        ShownPath("--proc", "", PROC),
        ShownPath("--dev", "", "/dev"),
        *(ShownPath("--tmpfs", "", place) for place in ("/tmp", "/run", "/var/tmp", view.user_home) if place),
        *(ShownPath("--ro-bind", path, path) for path in view.sandbox.read),
        *(ShownPath("--bind", path, path) for path in (*view.sandbox.write, view.cwd)),
        *(ShownPath("--tmpfs", "", place) for place in view.hidden),
        *(ShownPath("--ro-bind", path, path) for path in view.files),
        view.spool,
    ]
    words = [word for mount in sorted(mounts, key=lambda mount: mount.place.count("/")) for word in mount.words()]
    network = () if view.sandbox.network else ("--unshare-net",)
    return [bwrap, *APART, *network, *words, "--chdir", view.cwd, "--"]


def read_system() -> tuple[ShownPath, ...]:
    """Read the host's system folders: a link stays a link, as /bin on most hosts."""
    found = [
        ShownPath("--symlink", os.readlink(path), path) if os.path.islink(path) else ShownPath("--ro-bind", path, path)
        for path in SYSTEM
        if os.path.lexists(path)
    ]
    resolver = os.path.realpath(RESOLVER)
    return (*found, *(() if _is_within(resolver, "/etc") else (ShownPath("--ro-bind-try", resolver, resolver),)))


def view_of(sandbox: Sandbox, cwd: str, home: Home, folder: Path, files: Iterable[str], env: Mapping[str, str]) -> SandboxView:
    """Return what a launch's agent sees; ValueError for a path that is missing, or that would show Vigil's own."""
    cwd, own = os.path.realpath(cwd), [os.path.realpath(path) for path in (home.path, home.run)]
    shown = [*sandbox.read, *sandbox.write, cwd]
    for path in shown:
        if not os.path.exists(path):
            raise ValueError(f"sandbox: {path} does not exist, and the agent is to see it")
        if os.path.realpath(path) == "/" or any(_is_within(os.path.realpath(path), mine) for mine in own):
            raise ValueError(f"sandbox: {path} cannot be shown: a sandbox hides {own[0]}, and is no sandbox with / in it")
    hidden = [*own, *(place for path in shown for mine in own if (place := _seen_through(path, mine)))]
    return SandboxView(
        sandbox,
        cwd,
        read_system(),
        tuple(dict.fromkeys(hidden)),
        ShownPath("--bind", str(folder / "spool"), os.path.realpath(home.spool)),
        (*(f"{os.path.realpath(folder)}/{name}" for name in files), str(HOOK)),
        os.path.abspath(env["HOME"]) if env.get("HOME", "/") != "/" else "",
    )


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _seen_through(path: str, mine: str) -> str:
    """Return where our folder shows below a shown path; empty if it does not."""
    real = os.path.realpath(path)
    return path + mine.removeprefix(real) if _is_within(mine, real) else ""


def confine(view: SandboxView, command: tuple[str, ...], env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command inside its sandbox, after a trial of it; ValueError says why there is none."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise ValueError(MISSING)
    words = argv_of(view, bwrap)
    tried = run_command([*words, "/bin/sh", "-c", TRIAL, "vigil-trial", command[0]], TRIAL_S, env=env, limit_bytes=0)
    if tried.status == NOT_SEEN:
        raise ValueError(f"sandbox: {command[0]} is not seen inside: name its folder in sandbox_read")
    if tried.status != 0:
        raise ValueError(f"sandbox: {_last_words(tried)}")
    return (*words[:1], *TELL, *words[1:], "/bin/sh", "-c", GATE, GATE_NAME, *command)


def script_of(cwd: str, command: Iterable[str]) -> bytes:
    """Return the script that a shim becomes the agent by."""
    lines = (
        f"cd -- {shlex.quote(cwd)} || exit 126\n"
        "unset TMUX TMUX_PANE\n"
        f"exec {' '.join(map(shlex.quote, command))}\n"
    )  # fmt: skip
    return lines.encode("utf-8", "surrogateescape")


MISSING = (
    "bwrap is not installed, or not in the PATH this daemon was started with: install it (apt-get install bubblewrap), "
    "have the daemon started anew from here (vigil daemon stop), or leave the sandbox out"
)
_probed: tuple[float, str | None] = (-PROBED_S, None)


def why_no_sandbox() -> str | None:
    """Return why this host makes no sandbox, with the way out, or None; blocks up to TRIAL_S, once a minute."""
    global _probed
    if time.monotonic() - _probed[0] >= PROBED_S:
        _probed = (time.monotonic(), _probe())
    return _probed[1]


def _probe() -> str | None:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return MISSING
    tried = run_command([bwrap, *APART, *PROBE], TRIAL_S, limit_bytes=0)
    if tried.status == 0:
        return None
    words = "does this host forbid user namespaces (in a container, or by kernel.apparmor_restrict_unprivileged_userns)?"
    return f"bwrap makes no sandbox here: {_last_words(tried)}; {words} Allow them, or leave the sandbox out"


def _last_words(tried: CommandAnswer) -> str:
    lines = [line for line in map(one_line, decode(tried.errors).splitlines()) if line]
    return lines[-1] if lines else tried.abandoned or f"bwrap ended with {tried.status}"
