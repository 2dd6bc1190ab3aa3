"""Where an instance keeps its files (DESIGN 8): one folder, 0700, and a short one for sockets. Standard library only."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from vigil.errors import VigilError

SOCKET_PATH_BYTES = 107  # the size of sun_path, without its final zero
LONGEST_SOCKET_NAME = 40  # of the sockets in `run`: a launch id and its suffix


def parts_of(launch_id: str) -> tuple[str, int] | None:
    """Return the session's id and the number that a launch's name on disk or on a server holds; None if it is none."""
    session_id, _, number = launch_id.rpartition("-")
    return (session_id, int(number)) if number.isascii() and number.isdigit() and len(number) < 10 else None


@dataclass(frozen=True)
class Home:
    """The folders of one instance; two homes are two instances that never touch each other."""

    path: Path
    run: Path

    @property
    def database(self) -> Path:
        """The store."""
        return self.path / "vigil.db"

    @property
    def launches(self) -> Path:
        """One folder for each launch."""
        return self.path / "launches"

    @property
    def environments(self) -> Path:
        """One 0600 file for each session: the environment it was declared in."""
        return self.path / "environments"

    @property
    def messages(self) -> Path:
        """One folder for each session: the texts of its waiting messages, 0600."""
        return self.path / "messages"

    @property
    def hook_key(self) -> Path:
        """The key of the launches' hook tokens."""
        return self.path / "hook-key.json"

    @property
    def spool(self) -> Path:
        """Hook events, one file each, written by rename."""
        return self.path / "spool"

    @property
    def deaths(self) -> Path:
        """One folder for each death: what its launch left."""
        return self.path / "deaths"

    @property
    def log(self) -> Path:
        """Logs of daemon and keeper."""
        return self.path / "log"

    def lock(self, who: str) -> Path:
        """Return the lock of the one daemon or keeper; it lies in the home, wherever the sockets are."""
        return self.path / f"{who}.lock"

    @property
    def api_socket(self) -> Path:
        """Where the daemon answers."""
        return self.run / "api.sock"

    @property
    def keeper_socket(self) -> Path:
        """Where the keeper answers."""
        return self.run / "keeper.sock"

    def launch(self, launch_id: str) -> Path:
        """Return the folder of one launch."""
        return self.launches / launch_id

    def server_path(self, launch_id: str) -> str:
        """Return the tmux socket of one launch, as text: callers ask often."""
        return f"{self.run}/{launch_id}.tmux"

    def server_socket(self, launch_id: str) -> Path:
        """Return the tmux socket of one launch."""
        return Path(self.server_path(launch_id))


def find_home() -> Home:
    """Return the home that the environment names, without creating it."""
    named = os.environ.get("VIGIL_HOME")
    if named is not None and not named:
        raise VigilError("VIGIL_HOME is empty: unset it, or name a folder")
    spool = os.environ.get("VIGIL_SPOOL")
    if named:
        path = _expand(named)
    elif spool and os.path.basename(spool) == "spool":
        path = Path(spool).parent  # inside a session: the instance that watches it
    else:
        state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        path = _expand(state) / "vigil"
    return home_at(path)


def _expand(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise VigilError("there is no home folder to put Vigil's things into: set VIGIL_HOME") from None


def home_at(path: Path) -> Home:
    """Return the home in a folder; its sockets lie there unless their names would be too long."""
    path = Path(os.path.abspath(path))
    run = path / "run"
    if not _fits(run):
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        run = Path(runtime or "/") / f"vigil-{digest}"
        if not runtime or not os.path.isdir(runtime) or not _fits(run):
            run = Path("/tmp") / f"vigil-{os.getuid()}-{digest}"
    return Home(path, run)


def _fits(run: Path) -> bool:
    return len(os.fsencode(run)) + 1 + LONGEST_SOCKET_NAME <= SOCKET_PATH_BYTES


def make_home(home: Home) -> None:
    """Create what a home lacks, every folder 0700; refuse folders of other users."""
    try:
        home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (home.run, home.launches, home.environments, home.messages, home.spool, home.deaths, home.log):
            folder.mkdir(mode=0o700, exist_ok=True)
        for folder in (home.spool / "new", home.spool / "tmp"):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise VigilError(
            f"cannot create {error.filename}: {error.strerror}. Set VIGIL_HOME to a folder you may write"
        ) from error
    _check_folder(home.path, tighten=True)
    _check_folder(home.run, tighten=False)


def _check_folder(path: Path, tighten: bool) -> None:
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) and not (tighten and path.is_dir()):
        raise VigilError(f"{path} is not a folder: remove it, or set VIGIL_HOME to another place")
    if tighten:
        found = path.stat()
    if found.st_uid != os.getuid():
        raise VigilError(f"{path} belongs to uid {found.st_uid}: set VIGIL_HOME to a folder of your own")
    if found.st_mode & 0o077:
        if not tighten:
            raise VigilError(f"{path} is open to others (mode {found.st_mode & 0o777:o}): chmod 700 it, or remove it")
        path.chmod(0o700)


def environment_of_role(key: str) -> str:
    """Return the name under which a role's environment is kept: its replicas share it."""
    return f"role-{hashlib.sha256(key.encode()).hexdigest()[:24]}"
