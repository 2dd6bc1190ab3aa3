"""A socket that our process listens on, 0600 from the start, and made anew when its file is gone. The keeper uses it too.

Only the holder of the lock that stands at its path may: one whose lock was removed could meet another in its place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket

from vigil.kernel.theirs import remove_tree
from vigil.kernel.trust import check_private, read_peer

ASIDE_BYTES = 4


class OwnSocket:
    """Listens at a path; `listener` is another after each `make`."""

    def __init__(self, path: str, lock: tuple[str, int], backlog: int, handed: socket.socket | None = None) -> None:
        """Listen; with `handed`, go on with the listener of the program before us, if the path still leads to it."""
        self.path = path
        self._lock_path, self._lock = lock
        self._backlog = backlog
        self._file: tuple[int, int] | None = None  # not given to another file while the listener is open
        if handed is None:
            self.listener = self._listen()
        else:
            self.listener = handed
            self._file = self._find_own()

    def is_lost(self) -> bool:
        """Say whether something else, or nothing, stands at the path."""
        return self._file is None or _file_at(self.path) != self._file

    def is_taken(self) -> bool:
        """Say whether another process listens at the path."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as sock:
            try:
                sock.connect(self.path)
                return read_peer(sock)[0] != os.getpid()
            except BlockingIOError:
                return True  # its backlog is full
            except OSError:
                return False

    def make(self) -> socket.socket:
        """Listen at the path anew, whatever stands there; return the listener before, which the caller closes.

        Untrusted if others could listen in that folder, OSError if it cannot be done now."""
        if not self._is_lock_ours():
            raise FileNotFoundError(f"{self._lock_path} is gone or another's")
        before, self.listener = self.listener, self._listen()
        return before

    def close(self) -> None:
        """Listen no more, and remove the file if it is ours."""
        lost = self.is_lost()
        self.listener.close()
        if not lost:
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def _is_lock_ours(self) -> bool:
        try:
            return os.path.samestat(os.lstat(self._lock_path), os.fstat(self._lock))
        except OSError:
            return False

    def _listen(self) -> socket.socket:
        """Bind under a name of its own first: no connection meets a socket that does not listen yet."""
        folder, fresh = os.path.dirname(self.path), f"{self.path}.new"
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        check_private(folder)
        remove_tree(fresh)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        try:
            os.fchmod(listener.fileno(), 0o600)  # so it is born; the umask is all threads'
            listener.bind(fresh)
            listener.listen(self._backlog)
            file = _file_at(fresh)
            _move_folder_aside(self.path)
            os.replace(fresh, self.path)
        except BaseException:
            listener.close()
            raise
        self._file = file
        return listener

    def _find_own(self) -> tuple[int, int] | None:
        """Return which file the path leads to, if that leads to us."""
        file = _file_at(self.path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as sock:
            try:
                sock.connect(self.path)
                return file if read_peer(sock)[0] == os.getpid() else None
            except OSError:
                return None


def _file_at(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _move_folder_aside(path: str) -> None:
    """Keep what a folder in the socket's place holds; anything else is replaced."""
    try:
        os.rmdir(path)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            os.rename(path, f"{path}.aside-{os.urandom(ASIDE_BYTES).hex()}")
