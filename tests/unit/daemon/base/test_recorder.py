"""The recorder: what it is told is on disk in order; a disk that fails or hangs costs the recording and nobody else."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.builders import make_session
from vigil.core.events import Gap, Noted, Resumed
from vigil.daemon.base import recorder as module
from vigil.daemon.base.recorder import HANGS_S, WAITING, Recorder, RecordingRefused, create

EVENT = Resumed()


class Said:
    """What a recorder said of its end."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def recorder(self, fd: int, **options: Any) -> Recorder:
        recorder = Recorder(Path("/tmp/it"), fd, lambda ended: self.ends.append(ended["why"]), **options)
        recorder.begin(1.0, [make_session()], [])
        return recorder


@pytest.fixture
def said() -> Said:
    return Said()


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_what_was_handled_is_written_in_order_and_ends_in_order(tmp_path: Path, said: Said) -> None:
    path = tmp_path / "it"
    recorder = said.recorder(create(path))

    recorder.handled(2.0, Resumed(), [])
    recorder.handled(3.0, Gap(1.5), "AssertionError: no")
    recorder.close()

    first, *entries, last = read(path)
    assert (first["vigil-recording"], first["at"], len(first["sessions"])) == (2, 1.0, 1)
    assert entries == [
        {"now": 2.0, "event": {"Resumed": {"booted": False}}, "effects": []},
        {"now": 3.0, "event": {"Gap": {"lasted_s": 1.5}}, "raised": "AssertionError: no"},
    ]
    assert last == {"ended": "the daemon stopped"}
    assert (said.ends, path.stat().st_mode & 0o777) == ([], 0o600)


def test_what_is_there_already_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")

    for taken in (path, tmp_path, tmp_path / "dangling"):
        with pytest.raises(RecordingRefused, match="is there already"):
            create(taken)
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["nowhere/it", "file/it"])
def test_a_folder_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(RecordingRefused, match="is not a folder"):
        create(tmp_path / name)


def test_a_full_disk_ends_the_recording_once(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESERVE_BYTES", 0)
    recorder = said.recorder(os.open("/dev/full", os.O_WRONLY))
    until(lambda: said.ends)

    for number in range(100):
        recorder.handled(number, EVENT, [])
    recorder.close()

    assert said.ends == [recorder.ended] == ["its disk says: No space left on device"]


def test_the_last_space_of_a_disk_is_left_to_others(tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESERVE_BYTES", 1 << 80)
    recorder = said.recorder(create(tmp_path / "it"))
    until(lambda: said.ends)
    recorder.close()

    assert "are left on its disk" in said.ends[0]
    assert read(tmp_path / "it") == [{"ended": said.ends[0]}]


def test_a_disk_that_hangs_holds_nobody_up_and_ends_the_recording_once(said: Said) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    try:
        recorder = said.recorder(writer)
        begun = time.monotonic()
        for number in range(WAITING // 2):
            recorder.handled(number, EVENT, [])
        assert time.monotonic() - begun < 5.0
        until(lambda: recorder.bytes > 4096)  # by now it waits for a reader
        for _ in range(HANGS_S):
            recorder.check()
        assert said.ends == []

        for _ in range(HANGS_S):
            recorder.check()
        recorder.handled(1.0, EVENT, [])

        assert said.ends == [recorder.ended] == ["its disk has not answered for 10 s"]
    finally:
        os.close(reader)
        recorder.close()


def test_a_disk_that_does_not_keep_up_ends_the_recording(said: Said) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    try:
        recorder = said.recorder(writer)
        for number in range(WAITING + 1000):
            recorder.handled(number, EVENT, [])

        assert len(said.ends) == 1
        assert "does not keep up" in said.ends[0]
        assert recorder._lines.qsize() <= 1, "what nobody writes is not kept"
    finally:
        os.close(reader)
        recorder.close()


def test_a_recording_ends_when_it_is_too_long(tmp_path: Path, said: Said) -> None:
    path = tmp_path / "it"
    recorder = said.recorder(create(path), most_bytes=2000)

    for number in range(100):
        recorder.handled(number, EVENT, [])
    recorder.close()

    assert len(said.ends) == 1
    assert "it has reached" in said.ends[0]
    *_, last = written = read(path)
    assert path.stat().st_size <= 2100
    assert last == {"ended": said.ends[0]}
    assert recorder.events == len(written) - 2


def test_a_value_that_cannot_be_written_ends_the_recording_with_its_reason(tmp_path: Path, said: Said) -> None:
    recorder = said.recorder(create(tmp_path / "it"))

    recorder.handled(1.0, Noted("x", (("key", b"bytes"),)), [])  # type: ignore[arg-type]
    recorder.close()

    assert said.ends[0].startswith("TypeError: ")
