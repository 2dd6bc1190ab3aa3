"""The end of a growing file is read, and its head given back, while somebody writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.runtimes.tail import BLOCK, TAIL_BYTES, read_last_lines, release_head
from vigil.runtimes.tmux.runtime import new_part

CONTENTS = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a line", b"\xff\x00\x1b[31m", b"x" * 3000, b"", b"\x0b\x0c"]))
WRITER = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
for number in range(int(sys.argv[2])):
    os.write(fd, b"%09d " % number + b"x" * 89 + b"\\n")
"""
LINE_BYTES = 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stdout"


def numbers(data: bytes) -> list[int]:
    return [int(line.split()[0]) for line in data.splitlines()]


@given(CONTENTS, st.integers(0, 40))
def test_the_last_lines_are_the_last_lines_of_any_content(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], lines: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "content"
    content = b"".join(parts)
    path.write_bytes(content)

    found = read_last_lines(path, lines)

    assert found == (b"".join(content.splitlines(keepends=True)[-lines:]) if lines else b"")


@pytest.mark.parametrize("size", [1, 65535, 65536, 65537, 131072, 300_000])
@pytest.mark.parametrize("lines", [1, 2, 700, 10_000])
def test_the_last_lines_are_found_wherever_the_blocks_fall(path: Path, size: int, lines: int) -> None:
    content = (b"%099d\n" * (size // 100 + 1) % tuple(range(size // 100 + 1)))[-size:]
    path.write_bytes(content)

    assert read_last_lines(path, lines) == b"".join(content.splitlines(keepends=True)[-lines:])


def test_a_last_line_without_its_end_counts(path: Path) -> None:
    path.write_bytes(b"one\ntwo\nthr")

    assert read_last_lines(path, 2) == b"two\nthr"


def test_a_file_that_is_not_there_has_no_lines(path: Path) -> None:
    assert read_last_lines(path, 5) == b""
    assert release_head(path) == 0


def test_one_line_without_end_is_read_only_so_far(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(3 * TAIL_BYTES)  # sparse: no disk is used
        file.seek(0, os.SEEK_END)
        file.write(b"the end\n")

    assert read_last_lines(path, 1) == b"the end\n"


def test_a_released_head_gives_back_its_disk_and_keeps_every_offset(path: Path) -> None:
    kept = 64 << 10
    path.write_bytes(b"".join(b"%099d\n" % number for number in range(10_000)))
    size, used, end = path.stat().st_size, path.stat().st_blocks * 512, path.read_bytes()[-kept:]

    given_back = release_head(path, kept)

    now = path.stat()
    assert now.st_size == size
    assert given_back == used - now.st_blocks * 512 > size - 2 * kept
    assert path.read_bytes()[-kept:] == end
    assert now.st_blocks * 512 <= kept + 3 * BLOCK


def test_the_last_lines_are_the_same_after_the_head_was_released(path: Path) -> None:
    path.write_bytes(b"".join(b"%099d\n" % number for number in range(10_000)))
    before = read_last_lines(path, 500)

    release_head(path, 64 << 10)

    assert read_last_lines(path, 500) == before
    everything = read_last_lines(path, 10**6)
    assert b"\0" not in everything
    assert everything.endswith(before)


@pytest.mark.parametrize("size", [0, 1, BLOCK, 2 * (64 << 10)])
def test_a_file_that_is_small_enough_is_left_alone(path: Path, size: int) -> None:
    path.write_bytes(b"x" * size)

    assert release_head(path, 64 << 10) == 0
    assert path.read_bytes() == b"x" * size


def test_a_head_is_released_again_only_when_as_much_has_come_again(path: Path) -> None:
    kept = 64 << 10
    path.write_bytes(b"x" * (5 * kept))
    assert release_head(path, kept) > 0
    assert release_head(path, kept) == 0
    with open(path, "ab") as file:
        file.write(b"y" * (2 * kept))

    assert release_head(path, kept) > 0


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "somebody-elses"
    target.write_bytes(b"x" * (1 << 20))
    path.symlink_to(target)

    with pytest.raises(OSError, match="symbolic links"):
        release_head(path, 1 << 10)

    assert target.read_bytes() == b"x" * (1 << 20)


def test_a_writer_that_appends_notices_nothing(path: Path) -> None:
    """Real writer, real holes: no line is lost or torn at the end, and the disk used stays bounded."""
    count, kept = 60_000, 64 << 10
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(count)]) as writer:
        most = 0
        while writer.poll() is None:
            release_head(path, kept)
            if path.exists():
                most = max(most, path.stat().st_blocks * 512)
            found = numbers(
                b"".join(line for line in read_last_lines(path, 50).splitlines(keepends=True) if line.endswith(b"\n"))
            )
            assert found == list(range(found[0], found[0] + len(found))) if found else True
        assert writer.returncode == 0
    release_head(path, kept)

    assert path.stat().st_size == count * LINE_BYTES
    assert path.stat().st_blocks * 512 <= 2 * kept
    assert numbers(read_last_lines(path, 600)) == list(range(count - 600, count))
    assert most < count * LINE_BYTES


# What is new on a screen


def lines_of(text: str) -> list[bytes]:
    return [line.encode() + b"\n" for line in text.split()]


@pytest.mark.parametrize(
    ("before", "now", "new"),
    [
        ("", "", ""),
        ("", "a b", "a b"),
        ("a b", "a b", ""),
        ("a b", "a b c d", "c d"),
        ("a b c", "b c d", "d"),
        ("a b c", "c d e", "d e"),
        ("a b c", "x y z", "x y z"),
        ("a a a", "a a a a", "a"),
        ("a b", "a bc d", "bc d"),
        ("a b c", "", ""),
    ],
)
def test_what_is_new_on_a_screen_is_what_follows_the_longest_overlap(before: str, now: str, new: str) -> None:
    assert new_part(lines_of(before), lines_of(now)) == b"".join(lines_of(new))


def test_empty_lines_at_the_end_of_a_screen_are_not_new() -> None:
    assert new_part([b"a\n", b"\n", b"\n"], [b"a\n", b"b\n", b"\n", b" \n"]) == b"b\n"


@given(
    st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n"]), max_size=12), st.lists(st.sampled_from([b"a\n", b"d\n"]), max_size=6)
)
def test_nothing_new_is_lost_when_a_screen_only_grows(before: list[bytes], more: list[bytes]) -> None:
    assert b"".join(more).endswith(new_part(before, before + more))


@given(st.lists(st.binary(max_size=4), max_size=12), st.lists(st.binary(max_size=4), max_size=12))
def test_what_is_new_is_always_the_end_of_what_is_shown(before: list[bytes], now: list[bytes]) -> None:
    shown = list(now)
    while shown and not shown[-1].strip():
        shown.pop()

    assert b"".join(shown).endswith(new_part(before, now))
