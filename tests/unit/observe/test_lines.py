"""A growing file is read behind a position: each complete line once, whatever becomes of it, and only where it is owned."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.observe.lines import (
    BEGUN_ANEW,
    HEAD_BYTES,
    LINE_BYTES,
    MARK_BYTES,
    Position,
    ReadOutcome,
    TakenLines,
    read_end,
    read_lines,
    resolve,
)
from vigil.runtimes.tail import BLOCK, release_head

NOBODY = 65534
LINES = [b"%05d %s" % (number, b"x" * 50) for number in range(100)]
WHOLE = b"".join(line + b"\n" for line in LINES)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What the agent owns."""
    (tmp_path / "agent").mkdir()
    return tmp_path / "agent"


@pytest.fixture
def path(home: Path) -> Path:
    return home / "transcript.jsonl"


class Reader:
    """Reads one file to its end whenever it is asked, and remembers."""

    def __init__(self, path: Path, position: Position | None = None, most_bytes: int = 1 << 20, most_lines: int = 1000) -> None:
        self.path = path
        self.position = position
        self.lines: list[bytes] = []
        self.outcomes: list[ReadOutcome] = []
        self.skipped = 0
        self.lost_bytes = 0
        self.readings = 0
        self._limits = most_bytes, most_lines

    def read(self) -> ReadOutcome:
        """Read until there is no more; a file that was begun anew is told anew."""
        first: ReadOutcome | None = None
        while True:
            taken = read_lines(str(self.path), self.position, roots_of(self.path), *self._limits)
            first = first or taken.outcome
            self._take_in(taken)
            if not taken.more:
                self.outcomes.append(first)
                return first

    def _take_in(self, taken: TakenLines) -> None:
        self.readings += 1
        if taken.outcome in BEGUN_ANEW:
            self.lines.clear()
        self.lines += taken.lines
        self.skipped += taken.skipped
        self.lost_bytes += taken.lost_bytes
        self.position = stored(taken.position)


def roots_of(path: Path) -> tuple[str, ...]:
    return resolve([str(path.parent)])


def stored(position: Position | None) -> Position | None:
    """Return a position as it is after it was kept on disk."""
    return None if position is None else Position.from_json(json.loads(json.dumps(position.as_json())))


def append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


def read_once(path: Path, position: Position | None = None) -> TakenLines:
    return read_lines(str(path), position, roots_of(path))


# Lines


def test_complete_lines_are_read_and_a_partial_one_waits_for_its_end(path: Path) -> None:
    path.write_bytes(b"one\ntwo\nthr")
    reader = Reader(path)

    reader.read()
    assert reader.lines == [b"one", b"two"]
    append(path, b"ee")
    reader.read()
    assert reader.lines == [b"one", b"two"]
    append(path, b"\nfour\n")
    reader.read()

    assert reader.lines == [b"one", b"two", b"three", b"four"]
    assert set(reader.outcomes) == {ReadOutcome.READ}


def test_lines_hold_whatever_bytes_they_hold_and_lose_only_their_ends(path: Path) -> None:
    path.write_bytes(b"crlf\r\n\n\r\n nul\0 \xff\xfe \x0b\x0c\x85 a\rb \n\0\0\n")

    assert read_once(path).lines == [b"crlf", b"", b"", b" nul\0 \xff\xfe \x0b\x0c\x85 a\rb ", b"\0\0"]


@pytest.mark.parametrize("content", [b"", b"no end"])
def test_a_file_without_a_complete_line_has_none(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    taken = read_once(path)

    assert (taken.lines, taken.outcome, taken.more) == ([], ReadOutcome.READ, False)
    assert taken.position is not None and taken.position.offset == 0


@given(
    st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b"bc\n", b"\0", b"\xff" * 9, b"d" * 40])),
    st.integers(1, 30),
    st.integers(1, 5),
)
def test_lines_are_the_same_in_whatever_steps_they_are_read(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], most_bytes: int, most_lines: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "steps"
    path.write_bytes(b"".join(parts))
    reader = Reader(path, most_bytes=most_bytes, most_lines=most_lines)

    reader.read()

    assert reader.lines == complete_lines(path.read_bytes())


def complete_lines(content: bytes) -> list[bytes]:
    return [line.removesuffix(b"\r") for line in content.split(b"\n")[:-1]]


def test_a_reading_takes_no_more_than_it_may(path: Path) -> None:
    path.write_bytes(WHOLE)

    by_bytes = read_lines(str(path), None, roots_of(path), most_bytes=1000)
    by_lines = read_lines(str(path), None, roots_of(path), most_lines=7)

    assert (len(by_bytes.lines), by_bytes.read_bytes, by_bytes.more) == (17, 1000, True)
    assert (by_lines.lines, by_lines.more) == (LINES[:7], True)


def test_a_line_of_ten_megabytes_is_read_whole_in_small_steps(path: Path) -> None:
    long = b"x" * 10_000_000
    path.write_bytes(b"before\n" + long + b"\nafter\n")
    reader = Reader(path, most_bytes=256 << 10)

    reader.read()

    assert reader.lines == [b"before", long, b"after"]
    assert reader.skipped == 0


def test_a_long_line_that_grows_is_not_read_again_from_its_beginning_each_time(path: Path) -> None:
    path.write_bytes(b"x" * 5_000_000)
    reader = Reader(path)
    reader.read()

    append(path, b"y" * 1000)
    taken = read_once(path, reader.position)

    assert (taken.read_bytes, taken.lines) == (1000, [])


@pytest.mark.parametrize("most_bytes", [1 << 20, 3 << 20, 1 << 30])
@pytest.mark.parametrize(("size", "is_skipped"), [(LINE_BYTES, False), (LINE_BYTES + 1, True), (3 * LINE_BYTES, True)])
def test_a_line_that_is_too_long_is_skipped_and_counted_once(path: Path, size: int, is_skipped: bool, most_bytes: int) -> None:
    path.write_bytes(b"before\n" + b"x" * size + b"\nafter\n")
    reader = Reader(path, most_bytes=most_bytes)

    reader.read()

    assert [line[:10] for line in reader.lines] == [b"before", *([] if is_skipped else [b"x" * 10]), b"after"]
    assert reader.skipped == is_skipped


def test_the_rest_of_a_line_that_is_too_long_is_no_line_also_for_the_next_daemon(path: Path) -> None:
    path.write_bytes(b"x" * (LINE_BYTES + 1))
    reader = Reader(path)
    reader.read()

    append(path, b"y" * 10)
    reader.read()
    append(path, b"z\nafter\n")
    reader.read()

    assert (reader.lines, reader.skipped) == ([b"after"], 1)


def test_however_long_a_line_is_only_so_much_is_held(path: Path) -> None:
    with open(path, "wb") as file:
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b"\nafter\n")
    reader = Reader(path)

    tracemalloc.start()
    try:
        reader.read()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert reader.lines == [b"after"]
    assert most < 4 << 20


def test_a_partial_line_that_was_cut_and_written_anew_is_searched_anew(path: Path) -> None:
    path.write_bytes(b"one\n" + b"x" * 100)
    reader = Reader(path, most_bytes=10)
    reader.read()

    path.write_bytes(b"one\ntwo\n" + b"y" * 100)
    reader.read()

    assert reader.lines == [b"one", b"two"]
    assert reader.outcomes == [ReadOutcome.READ, ReadOutcome.READ]


# What becomes of files


def test_a_file_that_was_cut_is_read_from_its_beginning_and_that_is_said(path: Path) -> None:
    path.write_bytes(WHOLE)
    reader = Reader(path)
    reader.read()

    os.truncate(path, 0)
    append(path, b"new\n")

    assert reader.read() is ReadOutcome.TRUNCATED
    assert reader.lines == [b"new"]
    assert reader.read() is ReadOutcome.READ


def test_a_file_that_was_cut_and_grew_past_the_old_end_is_known_by_what_it_holds(path: Path) -> None:
    path.write_bytes(WHOLE)
    reader = Reader(path)
    reader.read()

    os.truncate(path, 0)
    append(path, WHOLE.replace(b"x", b"y") * 2)

    assert reader.read() is ReadOutcome.REPLACED
    assert reader.lines == [line.replace(b"x", b"y") for line in LINES] * 2


@pytest.mark.parametrize("extra", [b"", b"more\n"])
@pytest.mark.parametrize("other", [b"!" + WHOLE[1:], WHOLE[:-2] + b"!\n"], ids=["first byte", "last byte"])
def test_another_file_under_the_name_is_read_from_its_beginning(path: Path, other: bytes, extra: bytes) -> None:
    path.write_bytes(WHOLE)
    reader = Reader(path)
    reader.read()

    replace_with(path, other + extra)

    assert reader.read() is ReadOutcome.REPLACED
    assert reader.lines == complete_lines(other + extra)


def replace_with(path: Path, content: bytes) -> None:
    """Write as programs do that never leave half a file."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    os.replace(new, path)


@pytest.mark.parametrize("write", [replace_with, Path.write_bytes], ids=["by rename", "in place"])
def test_a_file_that_was_written_anew_with_all_it_held_is_read_on(path: Path, write: Callable[[Path, bytes], object]) -> None:
    path.write_bytes(WHOLE)
    reader = Reader(path)
    reader.read()

    write(path, WHOLE + b"more\n")
    outcome = reader.read()

    assert reader.lines == [*LINES, b"more"]
    assert outcome is (ReadOutcome.READ if write is Path.write_bytes else ReadOutcome.MOVED)
    assert reader.read() is ReadOutcome.READ


def test_a_file_that_went_and_came_back_is_read_on_where_it_was_left(path: Path) -> None:
    path.write_bytes(WHOLE)
    reader = Reader(path)
    reader.read()

    path.unlink()
    assert reader.read() is ReadOutcome.GONE
    shutil.rmtree(path.parent)
    assert reader.read() is ReadOutcome.GONE
    path.parent.mkdir()
    path.write_bytes(WHOLE + b"more\n")
    reader.read()

    assert reader.lines == [*LINES, b"more"]


def test_a_file_that_went_and_another_that_came_is_read_from_its_beginning(path: Path) -> None:
    path.write_bytes(WHOLE)
    reader = Reader(path)
    reader.read()

    path.unlink()
    path.write_bytes(b"a shorter one\n")  # often with the number of the old one

    assert reader.read() in BEGUN_ANEW
    assert reader.lines == [b"a shorter one"]


def test_a_file_that_never_was_is_gone_and_read_whole_once_it_is_there(path: Path) -> None:
    reader = Reader(path)

    assert reader.read() is ReadOutcome.GONE
    path.write_bytes(b"one\n")
    assert reader.read() is ReadOutcome.READ

    assert reader.lines == [b"one"]


def test_a_reboot_that_numbers_devices_anew_loses_nothing(path: Path) -> None:
    path.write_bytes(WHOLE)
    reader = Reader(path)
    reader.read()
    assert reader.position is not None

    reader.position = replace(reader.position, device=reader.position.device + 1)
    append(path, b"more\n")

    assert reader.read() is ReadOutcome.MOVED
    assert reader.lines == [*LINES, b"more"]


CHUNKS = st.lists(st.sampled_from([b"a\n", b"a\n", b"b", b"\n", b"\r\n", b"c\0\xff\n", b"d" * 9 + b"\n"]), max_size=6).map(
    b"".join
)
CHANGES = st.one_of(
    st.tuples(st.just("append"), CHUNKS),
    st.tuples(st.just("cut"), st.integers(0, 60)),
    st.tuples(st.just("empty"), CHUNKS),
    st.tuples(st.just("rewrite"), CHUNKS),
    st.tuples(st.just("extend"), CHUNKS),
    st.tuples(st.just("recreate"), CHUNKS),
    st.tuples(st.just("remove"), st.none()),
    st.tuples(st.just("read"), st.none()),
)


@given(st.lists(CHANGES, max_size=30), st.integers(1, 12), st.integers(1, 3))
def test_whatever_becomes_of_a_file_its_lines_are_told_once_or_it_is_said_to_have_begun_anew(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, bytes | int | None]], most_bytes: int, most_lines: int
) -> None:
    """Each reading is a daemon's first, with the position it found on disk."""
    path = tmp_path_factory.getbasetemp() / "changes"
    path.write_bytes(b"")
    reader = Reader(path, most_bytes=most_bytes, most_lines=most_lines)
    content: bytes = b""
    read = b""  # what there was at the last reading

    for change, value in [*changes, ("read", None)]:
        content = change_file(path, content, change, value)
        if change == "read" and path.exists():
            outcome = reader.read()
            assert reader.lines == complete_lines(content)
            if content.startswith(read):
                assert outcome not in BEGUN_ANEW
            read = content[: content.rfind(b"\n") + 1]


def change_file(path: Path, content: bytes, change: str, value: bytes | int | None) -> bytes:
    """Do something to a file; return what it holds."""
    if change == "read":
        return content
    if change == "remove":
        path.unlink(missing_ok=True)
        return b""
    if isinstance(value, int):
        content = content[:value]
        if path.exists():
            os.truncate(path, len(content))
        return content
    assert isinstance(value, bytes)
    if change == "append":
        append(path, value)
        return content + value
    if change == "extend":
        replace_with(path, content + value)
        return content + value
    if change == "rewrite":
        replace_with(path, value)
    elif change == "recreate":
        path.unlink(missing_ok=True)
        path.write_bytes(value)
    else:
        assert change == "empty"
        path.write_bytes(value)
    return value


# Released heads


def test_a_released_head_changes_nothing_for_whoever_has_read_it(path: Path) -> None:
    path.write_bytes(WHOLE * 20)
    reader = Reader(path)
    reader.read()

    assert release_head(path, 2 * BLOCK) > 0
    append(path, b"more\n")

    assert reader.read() is ReadOutcome.READ
    assert reader.lines == [*LINES * 20, b"more"]
    assert reader.lost_bytes == 0


@pytest.mark.parametrize("behind", [0, 1, MARK_BYTES - 1, MARK_BYTES, MARK_BYTES + 1])
def test_a_head_that_is_released_up_to_where_was_read_takes_nothing_away(path: Path, behind: int) -> None:
    line = b"x" * (BLOCK - 1) + b"\n"
    path.write_bytes(line * 10 + b"y" * (behind - 1) + b"\n" * (behind > 0))
    reader = Reader(path)
    reader.read()
    append(path, b"z" * 3 * BLOCK + b"\n")

    assert release_head(path, path.stat().st_size - 10 * BLOCK) > 0

    assert reader.read() is ReadOutcome.READ
    assert reader.lines[-1] == b"z" * 3 * BLOCK
    assert (len(reader.lines), reader.lost_bytes) == (11 + (behind > 0), 0)


def test_a_head_that_was_released_before_it_was_read_is_counted_and_its_zeros_are_no_content(path: Path) -> None:
    path.write_bytes(WHOLE * 20)
    reader = Reader(path)
    reader._take_in(read_lines(str(path), None, roots_of(path), most_lines=10))
    assert reader.position is not None
    at = reader.position.offset

    release_head(path, 5 * BLOCK)

    assert reader.read() is ReadOutcome.READ
    assert reader.lost_bytes == content_begins(path) - at
    assert reader.lines == LINES[:10] + lines_behind_the_hole(path)


def content_begins(path: Path) -> int:
    with open(path, "rb") as file:
        return os.lseek(file.fileno(), 0, os.SEEK_DATA)


def lines_behind_the_hole(path: Path) -> list[bytes]:
    """Return the lines that are left whole: one that the hole may have cut is none."""
    return complete_lines(path.read_bytes()[content_begins(path) :])[1:]


def test_a_file_with_a_released_head_that_nobody_read_begins_behind_it(path: Path) -> None:
    path.write_bytes(WHOLE * 20)
    release_head(path, 5 * BLOCK)
    reader = Reader(path)

    reader.read()

    assert reader.lines == lines_behind_the_hole(path)
    assert reader.lost_bytes == content_begins(path) > 0
    append(path, b"more\n")
    assert reader.read() is ReadOutcome.READ
    assert reader.lines[-1] == b"more"


def test_a_file_that_is_nothing_but_a_hole_has_no_lines(path: Path) -> None:
    path.write_bytes(b"")
    os.truncate(path, 1 << 40)
    reader = Reader(path)

    reader.read()

    assert (reader.lines, reader.readings) == ([], 1)


# The end


@pytest.mark.parametrize("rest", [b"", b"partial"])
def test_a_file_is_picked_up_behind_its_last_complete_line(path: Path, rest: bytes) -> None:
    path.write_bytes(WHOLE * 50 + rest)

    reader = Reader(path, read_end(str(path), roots_of(path)).position)
    reader.read()
    append(path, b"\nmore\n")
    reader.read()

    assert reader.lines == [rest, b"more"]
    assert set(reader.outcomes) == {ReadOutcome.READ}


@pytest.mark.parametrize("content", [b"", b"no end"])
def test_the_end_of_a_file_without_lines_is_its_beginning(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    position = read_end(str(path), roots_of(path)).position

    assert position is not None and position.offset == 0


def test_the_end_within_a_line_that_is_too_long_is_behind_it(path: Path) -> None:
    path.write_bytes(b"before\n" + b"x" * (LINE_BYTES + (1 << 20)))

    reader = Reader(path, read_end(str(path), roots_of(path)).position)
    append(path, b"x\nafter\n")
    reader.read()

    assert reader.lines == [b"after"]


def test_the_end_of_a_large_file_costs_no_more_than_that_of_a_small_one(path: Path) -> None:
    with open(path, "wb") as file:
        file.write(b"the first line\n")
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write(b"\nthe end\npart")
    reads = count_reads()

    taken = read_end(str(path), roots_of(path))

    assert taken.position is not None
    assert taken.position.offset == path.stat().st_size - len("part")
    assert count_reads() - reads < 200_000


def count_reads() -> int:
    """Return how many bytes this process has read so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_the_end_is_known_again_like_any_position(path: Path) -> None:
    path.write_bytes(WHOLE)
    position = read_end(str(path), roots_of(path)).position
    reader = Reader(path)

    reader.read()

    assert reader.position == position
    assert position is not None and position.offset > HEAD_BYTES


# What the agent owns


def test_a_link_is_refused_wherever_it_leads(path: Path, home: Path) -> None:
    (home / "mine").write_bytes(WHOLE)
    path.symlink_to(home / "mine")

    for taken in (read_once(path), read_end(str(path), roots_of(path))):
        assert (taken.outcome, taken.why, taken.lines) == (ReadOutcome.REFUSED, "it is a symbolic link", [])


def test_a_folder_that_leads_elsewhere_is_refused(tmp_path: Path, home: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "secrets").write_bytes(WHOLE)
    (home / "folder").symlink_to(tmp_path / "private")

    taken = read_lines(str(home / "folder" / "secrets"), None, resolve([str(home)]))

    assert (taken.outcome, taken.lines) == (ReadOutcome.REFUSED, [])
    assert taken.why == f"it really is {tmp_path}/private/secrets, outside of what the agent owns"


def test_a_folder_whose_name_only_begins_like_a_root_is_refused(tmp_path: Path, home: Path) -> None:
    (tmp_path / "agent-2").mkdir()
    (tmp_path / "agent-2" / "file").write_bytes(WHOLE)

    for name in ("agent-2/file", "agent/../agent-2/file"):
        assert read_lines(str(tmp_path / name), None, resolve([str(home)])).outcome is ReadOutcome.REFUSED


def test_links_within_the_roots_and_roots_that_are_links_are_followed(tmp_path: Path, home: Path) -> None:
    (home / "real").mkdir()
    (home / "real" / "file").write_bytes(b"one\n")
    (home / "short").symlink_to(home / "real")
    (tmp_path / "linked").symlink_to(home)

    taken = read_lines(str(tmp_path / "linked" / "short" / "file"), None, resolve([str(tmp_path / "linked")]))

    assert taken.lines == [b"one"]


def test_a_file_that_became_a_link_is_refused_and_its_position_stays(path: Path, tmp_path: Path) -> None:
    path.write_bytes(WHOLE)
    reader = Reader(path)
    reader.read()
    position = reader.position

    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")

    assert reader.read() is ReadOutcome.REFUSED
    assert reader.position == position


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket", "device"])
def test_what_is_no_regular_file_is_refused_without_being_opened(path: Path, kind: str) -> None:
    listener = socket.socket(socket.AF_UNIX)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        listener.bind(str(path))
    else:
        path = Path("/dev/null")

    taken = read_once(path)

    listener.close()
    assert (taken.outcome, taken.why) == (ReadOutcome.REFUSED, "it is no regular file")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_refused(path: Path) -> None:
    path.write_bytes(WHOLE)
    os.chown(path, NOBODY, NOBODY)

    taken = read_once(path)

    assert (taken.outcome, taken.why) == (ReadOutcome.REFUSED, f"it belongs to the user with the id {NOBODY}")


def test_without_roots_nothing_is_read(path: Path) -> None:
    path.write_bytes(WHOLE)

    assert read_lines(str(path), None, ()).outcome is ReadOutcome.REFUSED


def test_what_cannot_be_found_out_is_not_gone(path: Path) -> None:
    taken = read_once(path.parent / ("x" * 300))

    assert (taken.outcome, "too long" in taken.why) == (ReadOutcome.FAILED, True)


def test_no_descriptor_stays_open(path: Path, home: Path) -> None:
    path.write_bytes(WHOLE)
    (home / "link").symlink_to(path)
    before = len(os.listdir("/proc/self/fd"))

    for name in (path, home / "link", home / "none", home):
        read_once(name)
        read_end(str(name), roots_of(path))

    assert len(os.listdir("/proc/self/fd")) == before


# Positions on disk


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        [],
        {},
        {"device": 1, "inode": 2, "offset": 3},
        {"device": 1, "inode": 2, "offset": -3, "mark": ""},
        {"device": 1, "inode": 2, "offset": 3.0, "mark": ""},
        {"device": 1, "inode": 2, "offset": True, "mark": ""},
        {"device": 1, "inode": 2, "offset": 3, "mark": None},
        {"device": 1, "inode": 2, "offset": 3, "mark": "", "skipping": 1},
        {"device": 1, "inode": 2, "offset": 3, "mark": "", "from the future": 1},
    ],
)
def test_what_is_no_position_is_none(value: object) -> None:
    assert Position.from_json(value) is None


def test_a_damaged_position_reads_nothing_wrong(path: Path) -> None:
    path.write_bytes(WHOLE)
    found = path.stat()

    taken = read_once(path, Position(found.st_dev, found.st_ino, 57, "not it"))

    assert (taken.outcome, taken.lines) == (ReadOutcome.REPLACED, LINES)
