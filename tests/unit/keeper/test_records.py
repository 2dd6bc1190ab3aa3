"""A record is on disk, whole or not at all."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.keeper.records import FILES, ROLES, read_exits, read_shim_exit, record_exit
from vigil.kernel.durable import read_json, record_json

RECORD = {"role": "agent", "pid": 7, "status": 9, "source": "wait", "at": 1000.5}


def in_a_process(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=20)


@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.integers())))
def test_a_record_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any]) -> None:
    path = str(tmp_path_factory.getbasetemp() / "a-record.json")

    record_json(path, value)

    assert read_json(path) == value


def test_a_record_is_for_its_owner_only_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    old_mask = os.umask(0)
    try:
        record_json(str(tmp_path / "r.json"), RECORD)
    finally:
        os.umask(old_mask)

    assert [found.name for found in tmp_path.iterdir()] == ["r.json"]
    assert stat.S_IMODE((tmp_path / "r.json").stat().st_mode) == 0o600


def test_a_record_replaces_the_one_before(tmp_path: Path) -> None:
    path = str(tmp_path / "r.json")
    record_json(path, {"long": "x" * 1000})
    record_json(path, {"short": 1})

    assert read_json(path) == {"short": 1}


def test_a_record_that_cannot_be_written_leaves_the_one_before_and_no_rest(tmp_path: Path) -> None:
    """The disk is full before the first byte."""
    path = tmp_path / "r.json"
    record_json(str(path), {"old": True})
    code = (
        "import resource, sys; from vigil.kernel.durable import record_json\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "record_json(sys.argv[1], {'new': 'x' * 500})"
    )

    done = in_a_process(code, path)

    assert "OSError" in done.stderr
    assert read_json(str(path)) == {"old": True}
    assert [found.name for found in tmp_path.iterdir()] == ["r.json"]


def test_a_record_that_fits_only_in_part_leaves_the_one_before(tmp_path: Path) -> None:
    """The disk is full in the middle: a write then says that it wrote less, and that is no error."""
    path = tmp_path / "r.json"
    record_json(str(path), {"old": True})
    code = (
        "import resource, sys; from vigil.kernel.durable import record_json\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "record_json(sys.argv[1], {'new': 'x' * 500})"
    )

    done = in_a_process(code, path)

    assert json.loads(path.read_text()) == {"old": True}
    assert done.returncode != 0, "it said that the record was written"
    assert [found.name for found in tmp_path.iterdir()] == ["r.json"]


def test_a_record_in_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        record_json(str(tmp_path / "gone" / "r.json"), RECORD)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"status": ', b"[]", b"1", b"null", b"\xff\xfe\x00", b"\0" * 100, b"{}{}", b"[" * 100_000],
    ids=lambda content: repr(content[:12]),
)
def test_what_is_not_a_whole_record_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.json").write_bytes(content)

    assert read_json(str(tmp_path / "r.json")) is None


def test_what_is_not_there_or_is_a_folder_is_none(tmp_path: Path) -> None:
    assert read_json(str(tmp_path / "nothing")) is None
    assert read_json(str(tmp_path)) is None


@pytest.mark.parametrize("role", ROLES)
def test_the_end_of_each_process_of_a_launch_has_its_own_record(tmp_path: Path, role: str) -> None:
    record_exit(str(tmp_path), RECORD | {"role": role})

    assert read_exits(str(tmp_path)) == {role: RECORD | {"role": role}}
    assert [found.name for found in tmp_path.iterdir()] == [FILES[role]]


def test_every_role_has_a_file_of_its_own() -> None:
    assert set(FILES) == {*ROLES, "inner"}
    assert len(set(FILES.values())) == len(FILES)


def test_a_launch_without_records_has_no_ends(tmp_path: Path) -> None:
    assert read_exits(str(tmp_path)) == {}
    assert read_exits(str(tmp_path / "gone")) == {}


@pytest.mark.parametrize("code", [0, 1, 127, 137, 143, 255])
def test_the_shims_word_is_its_status_and_when_it_said_it(tmp_path: Path, code: int) -> None:
    path = tmp_path / "shim-exit"
    path.write_text(f"{code}\n")
    os.utime(path, (1234.5, 1234.5))

    assert read_shim_exit(str(tmp_path)) == (code, 1234.5)


@pytest.mark.parametrize(
    "content", [b"", b"1", b"13", b"\n", b"x\n", b"-1\n", b"1.5\n", b"1\n2\n", b"\xd9\xa3\n", b"0" * 20 + b"\n"]
)
def test_a_word_without_its_end_or_without_a_number_does_not_count(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "shim-exit").write_bytes(content)

    assert read_shim_exit(str(tmp_path)) is None


def test_a_shim_that_said_nothing_is_none(tmp_path: Path) -> None:
    assert read_shim_exit(str(tmp_path)) is None
