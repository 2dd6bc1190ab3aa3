"""A socket of ours: 0600 from the start, known by its file, made anew whatever stands there, by its lock's holder only."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vigil.kernel.own_socket import OwnSocket
from vigil.kernel.trust import Untrusted

Made = Callable[..., OwnSocket]


@pytest.fixture
def path(short: Path) -> Path:
    return short / "run" / "own.sock"


@pytest.fixture
def make(short: Path, path: Path) -> Iterator[Made]:
    """Listen as the holder of a lock."""
    lock = os.open(short / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    made: list[OwnSocket] = []

    def listen(handed: socket.socket | None = None) -> OwnSocket:
        made.append(OwnSocket(str(path), (str(short / "lock"), lock), 4, handed))
        return made[-1]

    yield listen
    for own in made:
        own.listener.close()
    os.close(lock)


def answers(own: OwnSocket) -> bool:
    """Say whether who connects at the path is met by the listener."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(1)
        try:
            sock.connect(own.path)
            own.listener.accept()[0].close()
        except OSError:
            return False
    return True


def test_it_is_made_with_its_folder_for_its_owner_alone(make: Made, path: Path) -> None:
    umask = os.umask(0)
    own = make()
    os.umask(umask)

    assert (stat.S_IMODE(path.lstat().st_mode), stat.S_IMODE(path.parent.lstat().st_mode)) == (0o600, 0o700)
    assert answers(own) and not own.is_lost()
    assert os.listdir(path.parent) == ["own.sock"]


def put_file(path: Path) -> None:
    path.unlink()
    path.touch()


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "kept").touch()


def put_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def put_socket(path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))


def block_its_new_name(path: Path) -> None:
    path.unlink()
    (path.parent / "own.sock.new").mkdir()


@pytest.mark.parametrize(
    "lose",
    [Path.unlink, put_file, put_folder, put_link, put_socket, block_its_new_name, lambda path: shutil.rmtree(path.parent)],
)
def test_whatever_stands_in_its_place_it_is_lost_and_made_anew(make: Made, path: Path, lose: Callable[[Path], None]) -> None:
    own = make()
    lose(path)
    assert own.is_lost() and not own.is_taken()

    own.make().close()

    assert answers(own) and not own.is_lost()
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert [kept.name for kept in path.parent.glob("own.sock.aside-*/*")] == (["kept"] if lose is put_folder else [])


def test_the_listener_before_still_has_those_who_came_in_time(make: Made, path: Path) -> None:
    own = make()
    with socket.socket(socket.AF_UNIX) as early:
        early.connect(str(path))
        path.unlink()

        before = own.make()

        before.accept()[0].close()
        assert early.recv(1) == b""
        before.close()


def test_another_process_that_listens_there_is_told_apart(make: Made, path: Path) -> None:
    own = make()
    assert not own.is_taken()
    path.unlink()
    told, tell = os.pipe()
    if (pid := os.fork()) == 0:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
            sock.listen()
            os.write(tell, b".")
            sock.accept()
            os._exit(0)
    os.read(told, 1)

    assert own.is_lost() and own.is_taken()

    os.waitpid(pid, 0)
    assert not own.is_taken()
    for fd in (told, tell):
        os.close(fd)


@pytest.mark.parametrize("lose", [Path.unlink, put_file])
def test_who_has_lost_its_lock_makes_nothing(make: Made, short: Path, path: Path, lose: Callable[[Path], None]) -> None:
    own = make()
    lose(short / "lock")
    path.unlink()

    with pytest.raises(OSError, match="lock is gone or another's"):
        own.make()

    assert not path.exists()


@pytest.mark.parametrize("spoil", ["open to others", "a link", "no folder"])
def test_no_socket_is_made_where_others_could_listen(make: Made, short: Path, path: Path, spoil: str) -> None:
    own = make()
    shutil.rmtree(path.parent)
    if spoil == "a link":
        path.parent.symlink_to(short)
    elif spoil == "no folder":
        path.parent.touch()
    else:
        path.parent.mkdir(mode=0o755)

    with pytest.raises(Untrusted):
        own.make()

    assert not (short / "own.sock").exists() and not path.exists()


def test_a_handed_listener_goes_on_if_its_path_leads_to_it(make: Made, path: Path) -> None:
    first = make()

    second = make(socket.socket(fileno=os.dup(first.listener.fileno())))
    assert not second.is_lost()
    second.listener.accept()[0].close()  # it asked itself
    assert answers(second)

    path.unlink()
    third = make(socket.socket(fileno=os.dup(first.listener.fileno())))
    assert third.is_lost()
    third.make().close()
    assert answers(third)


def test_its_end_removes_its_own_file_and_no_other(make: Made, path: Path) -> None:
    own = make()
    own.close()
    assert not path.exists()

    other = make()
    put_file(path)
    other.close()
    assert path.exists()
