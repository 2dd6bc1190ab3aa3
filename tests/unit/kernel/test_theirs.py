"""What others put under a name neither holds us up nor leads us elsewhere, and is read within a bound."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from vigil.kernel.durable import read_json, record_json, write_whole
from vigil.kernel.theirs import open_theirs, read_end, read_object, read_start, read_text, remove_tree, theirs

NOBODY = 65534
pytestmark = pytest.mark.timeout(60)  # a wait for a pipe would never end


def plant(kind: str, path: Path) -> None:
    """Put under a name what an agent could put there."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "dangling":
        path.symlink_to("/nowhere")
    elif kind == "socket":
        os.mknod(path, 0o140600)


KINDS = ("fifo", "zero", "folder", "link", "dangling", "socket")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT | os.O_APPEND])
def test_what_is_no_file_of_ours_is_refused_at_once(tmp_path: Path, kind: str, flags: int) -> None:
    plant(kind, tmp_path / "x")

    with pytest.raises(OSError):
        open_theirs(tmp_path / "x", flags)


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_takes_the_place_of_whatever_has_its_name(tmp_path: Path, kind: str) -> None:
    plant(kind, tmp_path / "x")

    if kind == "folder":
        with pytest.raises(OSError):
            record_json(str(tmp_path / "x"), {"a": 1})
    else:
        record_json(str(tmp_path / "x"), {"a": 1})
        assert read_json(str(tmp_path / "x")) == {"a": 1}

    assert os.listdir(tmp_path) == ["x"], "no temporary file is left"


@pytest.mark.parametrize("kind", KINDS)
def test_no_agent_can_stand_where_a_file_is_begun(tmp_path: Path, kind: str) -> None:
    for name in ("x.tmp", f"x.{os.getpid()}.tmp"):
        plant(kind, tmp_path / name)

    write_whole(str(tmp_path / "x"), b"words", at=1234.5)

    assert ((tmp_path / "x").read_bytes(), (tmp_path / "x").stat().st_mtime) == (b"words", 1234.5)
    assert len(os.listdir(tmp_path)) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_another_users_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}")
    os.chown(tmp_path / "x", NOBODY, NOBODY)

    with pytest.raises(PermissionError):
        read_object(tmp_path / "x")
    assert read_text(tmp_path / "x", 10) == "{}", "what a user names may be another's"


def test_a_file_with_a_second_name_is_read_and_never_written(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("words")
    os.link(tmp_path / "precious", tmp_path / "x")

    assert read_start(tmp_path / "x", 10) == b"words"
    with pytest.raises(PermissionError), theirs(tmp_path / "x", os.O_RDWR):
        pass


def test_a_huge_file_is_read_within_its_bound(tmp_path: Path) -> None:
    with open(tmp_path / "x", "wb") as file:
        file.truncate(1 << 40)

    assert read_start(tmp_path / "x", 16) == bytes(16)
    assert (len(read_end(tmp_path / "x", 16).data), read_end(tmp_path / "x", 16).size_bytes) == (16, 1 << 40)
    with pytest.raises(ValueError, match="larger than 1024 KiB"):
        read_object(tmp_path / "x")
    with pytest.raises(ValueError, match="larger than 1 MiB"):
        read_text(tmp_path / "x", 1 << 20)
    assert read_json(str(tmp_path / "x")) is None


def test_a_file_that_changes_while_it_is_read_is_whole_or_broken(tmp_path: Path) -> None:
    path, stop = tmp_path / "x", threading.Event()
    path.write_text('{"a": 1}')

    def change() -> None:
        while not stop.is_set():
            path.write_text('{"a": 1}' + " " * 100_000)
            os.truncate(path, 3)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        found = [read_json(str(path)) for _ in range(2000)]
    finally:
        stop.set()
        thread.join()

    assert {str(one) for one in found} <= {"None", "{'a': 1}"}


@pytest.mark.parametrize("text", [b"[" * 200_000, b'{"a":' * 100_000, b"\xff", b"", b"[]", b"1" * 10_000])
def test_what_holds_no_object_is_broken(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "x").write_bytes(text)

    with pytest.raises(ValueError, match="it is broken"):
        read_object(tmp_path / "x")


def test_a_tree_goes_however_deep_and_nothing_that_its_links_lead_to(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "words").write_text("mine")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(precious)
    deep = os.open(tree, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=deep)
        inner = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.symlink(precious, "to", dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(deep)

    assert remove_tree(tree)

    assert not os.path.lexists(tree)
    assert (precious / "words").read_text() == "mine"


def test_a_folder_that_became_a_link_is_removed_as_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "words").write_text("mine")
    (tmp_path / "launch").symlink_to(precious)

    assert remove_tree(tmp_path / "launch") and remove_tree(tmp_path / "launch")

    assert os.listdir(tmp_path) == ["precious"]
    assert (precious / "words").read_text() == "mine"
