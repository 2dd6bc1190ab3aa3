"""The hook spool is read once and in order, and nothing that lies in it stops the reading."""

from __future__ import annotations

import json
import os
import random
import resource
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from vigil.agents.generic import read_hook
from vigil.core.model.speech import What
from vigil.observe.spool import HOOK_BYTES, KEPT_BAD, Spool, SpoolCounts, TakenHooks, forget_hooks

NOBODY = 65534
SOON_S = 20.0
OLD_S = 11 * 60.0
NOW = 5000.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("new", "tmp"):
        (tmp_path / "spool" / name).mkdir(mode=0o700, parents=True)
    return tmp_path / "spool"


def put(folder: Path, name: str, value: object, after: str | None = None) -> Path:
    """Write as hooks do: elsewhere, then by rename; `after` names the file that must have come before it."""
    if after is not None:
        await_tick(folder / "new" / after)
    (folder / "tmp" / name).write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return (folder / "tmp" / name).rename(folder / "new" / name)


def await_tick(path: Path) -> None:
    """Wait until what is renamed now comes later than this, by the kernel's clock, which is coarse."""
    probe = path.parent.parent / "probe"
    probe.write_bytes(b"")
    give_up_at = time.monotonic() + SOON_S
    while probe.stat().st_ctime_ns <= path.lstat().st_ctime_ns:
        assert time.monotonic() < give_up_at
        os.utime(probe)
    probe.unlink()


def hook(number: int = 1, launch: str = "s1-1") -> dict[str, Any]:
    return {"session": "backend/coder/0", "launch": launch, "event": {"hook_event_name": f"Event{number}"}}


def put_many(folder: Path, count: int) -> list[str]:
    """Put hooks that may have come within one tick of the clock; their names say the order."""
    names = [f"{number:06}.json" for number in range(count)]
    for number, name in enumerate(names):
        put(folder, name, hook(number))
    return names


def events(taken: TakenHooks) -> list[str]:
    return [found.name for found in taken.hooks]


def in_new(folder: Path) -> list[str]:
    return sorted(os.listdir(folder / "new"))


def in_bad(folder: Path) -> list[str]:
    return sorted(os.listdir(folder / "bad")) if (folder / "bad").exists() else []


# Reading


def test_hooks_are_read_in_the_order_they_were_renamed_whatever_their_names(folder: Path) -> None:
    order = [f"{number}.json" for number in range(12)]
    random.Random(7).shuffle(order)
    for number, name in enumerate(order):
        put(folder, name, hook(number), after=order[number - 1] if number else None)

    taken = Spool(folder).take(100, NOW)

    assert events(taken) == [f"Event{number}" for number in range(12)]
    assert list(taken.names) == order


def test_a_file_stays_until_it_is_done_and_is_read_once(folder: Path) -> None:
    put(folder, "a", hook(1))
    spool = Spool(folder)

    taken = spool.take(100, NOW)
    again = spool.take(100, NOW)
    assert in_new(folder) == ["a"]
    spool.done(taken.names)

    assert events(taken) == ["Event1"]
    assert again == TakenHooks((), ())
    assert in_new(folder) == []
    assert spool.take(100, NOW) == TakenHooks((), ())


def test_what_was_not_done_is_read_again_by_the_next_daemon(folder: Path) -> None:
    put(folder, "a", hook(1))

    assert events(Spool(folder).take(100, NOW)) == ["Event1"]
    assert events(Spool(folder).take(100, NOW)) == ["Event1"]


def test_a_new_file_under_the_name_of_one_that_was_taken_is_not_lost(folder: Path) -> None:
    put(folder, "a", hook(1))
    spool = Spool(folder)
    taken = spool.take(100, NOW)

    put(folder, "a", hook(2))
    spool.done(taken.names)

    assert events(spool.take(100, NOW)) == ["Event2"]


def test_a_slice_is_never_larger_than_its_limit_and_slices_together_are_everything(folder: Path) -> None:
    names = put_many(folder, 25)
    spool = Spool(folder)

    slices, left = [], []
    for _ in range(4):
        slices.append(spool.take(10, NOW))
        left.append(spool.counts.backlog)

    assert [len(taken.names) for taken in slices] == [10, 10, 5, 0]
    assert left == [15, 5, 0, 0]
    assert [name for taken in slices for name in taken.names] == names
    assert spool.counts == SpoolCounts(taken=25, bad=0, flooded=0, backlog=0)


def test_what_comes_while_a_backlog_is_read_comes_after_it(folder: Path) -> None:
    put(folder, "m", hook(1))
    put(folder, "l", hook(2), after="m")
    spool = Spool(folder)

    first = spool.take(1, NOW)
    put(folder, "a", hook(3), after="l")

    assert [*events(first), *events(spool.take(1, NOW)), *events(spool.take(1, NOW))] == ["Event1", "Event2", "Event3"]


def test_a_file_that_vanished_after_it_was_listed_is_passed_over(folder: Path) -> None:
    put(folder, "a", hook(1))
    put(folder, "b", hook(2), after="a")
    put(folder, "c", hook(3), after="b")
    spool = Spool(folder)
    spool.take(1, NOW)

    (folder / "new" / "b").unlink()

    assert events(spool.take(10, NOW)) == ["Event3"]
    assert spool.counts.bad == 0


def test_a_file_that_vanished_after_it_was_taken_is_done(folder: Path) -> None:
    put(folder, "a", hook(1))
    spool = Spool(folder)
    taken = spool.take(1, NOW)

    (folder / "new" / "a").unlink()
    spool.done(taken.names)

    assert in_new(folder) == []


def test_a_hook_is_as_old_as_its_file(folder: Path) -> None:
    path = put(folder, "a", hook(1))
    give_up_at = time.monotonic() + SOON_S
    while time.time() - path.stat().st_ctime < 0.3:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)

    (found,) = Spool(folder).take(1, NOW).hooks

    assert NOW - SOON_S < found.at <= NOW - 0.3


def test_a_folder_that_cannot_be_read_is_said_and_costs_nothing(folder: Path) -> None:
    put(folder, "a", hook(1))
    put(folder, "b", hook(2), after="a")
    spool = Spool(folder)
    taken = spool.take(1, NOW)

    (folder / "new").rename(folder / "away")
    with pytest.raises(FileNotFoundError):
        spool.take(1, NOW)
    with pytest.raises(FileNotFoundError):
        spool.done(taken.names)
    (folder / "away").rename(folder / "new")
    rest = spool.take(1, NOW)
    spool.done(rest.names)

    assert events(rest) == ["Event2"]
    assert in_new(folder) == []


def test_a_file_that_could_not_be_opened_for_want_of_descriptors_is_asked_again(folder: Path) -> None:
    put(folder, "a", hook(1))
    put(folder, "b", hook(2), after="a")
    spool = Spool(folder)
    spool.take(1, NOW)

    with few_descriptors(left=2):  # enough for the folders, too few for a file
        none = spool.take(10, NOW)

    assert none == TakenHooks((), ())
    assert spool.counts.backlog == 1
    assert events(spool.take(10, NOW)) == ["Event2"]
    assert spool.counts.bad == 0


@contextmanager
def few_descriptors(left: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.open("/", os.O_RDONLY) for _ in range(left)]  # the lowest free numbers: what is below and between is in use
    for fd in free:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(free) + 1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# The forms of a file


@pytest.mark.parametrize(
    "value",
    [
        {"session": "a", "launch": "s1-1", "event": {"hook_event_name": "Stop"}},
        {"VIGIL_SESSION": "a", "VIGIL_LAUNCH": "s1-1", "payload": {"hook_event_name": "Stop"}},
        {"VIGIL_SESSION": "a", "VIGIL_LAUNCH": "s1-1", "event": {"hook_event_name": "Stop"}},
        {"session": "a", "launch": "s1-1", "payload": {"type": "Stop"}},
        {"VIGIL_LAUNCH": "s1-1", "hook_event_name": "Stop", "session_id": "c8ac", "cwd": "/"},
        {"VIGIL_LAUNCH": "s1-1", "hook_event_name": "Stop", "launch": 7, "payload": {"x": 1}, "event": {"type": "x"}},
        {"VIGIL_LAUNCH": "s1-1", "event": "Stop"},
    ],
)
def test_every_form_of_a_hook_is_understood(folder: Path, value: dict[str, Any]) -> None:
    put(folder, "a", value)

    (found,) = Spool(folder, lambda _, payload: tuple(read_hook(dict(payload)))).take(1, NOW).hooks

    assert (found.launch_id, found.name, [said.what for said in found.said]) == ("s1-1", "Stop", [What.TURN_ENDED])


def test_what_has_no_time_of_its_own_was_said_when_it_was_written(folder: Path) -> None:
    put(folder, "a", {"launch": "s1-1", "event": {"hook_event_name": "Stop"}})
    put(folder, "b", {"launch": "s1-1", "event": {"hook_event_name": "Stop", "timestamp": 1794900000}}, after="a")
    read: list[float] = []

    Spool(folder, lambda _, payload: read.append(payload["timestamp"]) or ()).take(2, NOW)  # type: ignore[func-returns-value]

    assert read == [pytest.approx((folder / "new" / "a").stat().st_ctime), 1794900000]


@pytest.mark.parametrize("event", [None, [], "", 0, {}])
def test_a_hook_without_a_payload_is_a_sign_of_life(folder: Path, event: object) -> None:
    put(folder, "a", {"session": "a", "launch": "s1-1", "event": event})

    (found,) = Spool(folder).take(1, NOW).hooks

    assert (found.launch_id, found.name, found.said) == ("s1-1", "", ())


def test_bytes_that_are_no_text_spoil_only_the_words_they_stand_in(folder: Path) -> None:
    put(folder, "a", b'{"launch":"s1-1","event":{"hook_event_name":"Stop","cwd":"/caf\xe9"}}\n')

    assert events(Spool(folder).take(1, NOW)) == ["Stop"]


def test_a_hook_of_the_largest_size_is_read(folder: Path) -> None:
    frame = len(json.dumps({"launch": "s1-1", "event": {"hook_event_name": "Stop", "x": ""}}))
    path = put(folder, "a", {"launch": "s1-1", "event": {"hook_event_name": "Stop", "x": "y" * (HOOK_BYTES - frame)}})
    assert path.stat().st_size == HOOK_BYTES

    assert events(Spool(folder).take(1, NOW)) == ["Stop"]


# What is no hook


NO_HOOKS = {
    "empty": b"",
    "cut off": b'{"launch":"s1-1","event":{"hook',
    "zeros": bytes(100),
    "not an object": b'["s1-1"]',
    "text": b"hello\n",
    "no launch": b'{"event":{"hook_event_name":"Stop"}}',
    "empty launch": b'{"launch":"","event":{}}',
    "launch is a number": b'{"launch":7}',
    "launch is a list": b'{"launch":["s1-1"]}',
    "launch too long": json.dumps({"launch": "x" * 101}).encode(),
    "nested absurdly": b'{"launch":"s1-1","event":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "nested and never closed": b'{"a":' * 150_000,
    "a number of many digits": b'{"launch":"s1-1","x":' + b"9" * 100_000 + b"}",
}


@pytest.mark.parametrize("data", NO_HOOKS.values(), ids=NO_HOOKS.keys())
def test_what_is_no_hook_is_set_aside_and_the_next_one_read(folder: Path, data: bytes) -> None:
    put(folder, "a", data)
    put(folder, "b", hook(2), after="a")
    spool = Spool(folder)

    taken = spool.take(10, NOW)

    assert events(taken) == ["Event2"]
    assert (in_new(folder), in_bad(folder)) == (["b"], ["a"])
    assert (folder / "bad" / "a").read_bytes() == data
    assert stat.S_IMODE((folder / "bad").stat().st_mode) == 0o700
    assert spool.counts == SpoolCounts(taken=1, bad=1, flooded=0, backlog=0)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def make_folder(path: Path) -> None:
    (path / "deeper").mkdir(parents=True)
    (path / "deeper" / "file").write_text("x")


def make_link(path: Path) -> None:
    target = path.parent.parent / "target.json"
    target.write_text(json.dumps(hook(9)))
    path.symlink_to(target)


def make_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


KINDS = [make_fifo, make_socket, make_folder, make_link, make_dangling_link, make_loop]


@pytest.mark.parametrize("make", KINDS)
def test_what_is_no_file_is_set_aside_unread(
    folder: Path, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)  # a socket's name must be short
    make(Path("new", "a"))
    put(folder, "b", hook(2))
    spool = Spool(folder)

    taken = spool.take(10, NOW)

    assert events(taken) == ["Event2"]
    assert (in_new(folder), in_bad(folder)) == (["b"], ["a"])
    assert spool.counts.bad == 1
    if make is make_link:
        assert (folder / "target.json").exists()


def test_a_file_that_is_too_large_is_removed(folder: Path) -> None:
    path = put(folder, "a", b"")
    os.truncate(path, HOOK_BYTES + 1)
    spool = Spool(folder)

    taken = spool.take(10, NOW)

    assert taken == TakenHooks((), ())
    assert (in_new(folder), in_bad(folder)) == ([], [])
    assert spool.counts.bad == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_somebody_else_is_set_aside(folder: Path) -> None:
    os.chown(put(folder, "a", hook(1)), NOBODY, -1)

    taken = Spool(folder).take(10, NOW)

    assert taken == TakenHooks((), ())
    assert in_bad(folder) == ["a"]


def test_what_was_set_aside_is_bounded_and_the_oldest_goes(folder: Path) -> None:
    outside = folder / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    make_folder(folder / "new" / "folder")
    (folder / "new" / "folder" / "link").symlink_to(outside)
    spool = Spool(folder)
    spool.take(1, NOW)
    assert in_bad(folder) == ["folder"]
    await_tick(folder / "bad" / "folder")
    for number in range(KEPT_BAD):
        put(folder, f"{number:03}", b"bad")

    spool.take(1000, NOW)

    assert in_bad(folder) == [f"{number:03}" for number in range(KEPT_BAD)]
    assert (outside / "kept").exists()
    assert spool.counts.bad == KEPT_BAD + 1


def test_what_was_set_aside_and_grows_on_goes_with_the_next(folder: Path) -> None:
    spool = Spool(folder)
    half = folder / "new" / "half.json"
    with open(half, "wb") as file:  # in place, not by rename
        file.write(b'{"launch": ')
        file.flush()
        spool.take(10, now=0.0)
        file.write(b"x" * (HOOK_BYTES + 1))
    (folder / "new" / "other.json").write_bytes(b"no json")

    spool.take(10, now=0.0)

    assert [path.name for path in (folder / "bad").iterdir()] == ["other.json"]


def test_a_bad_file_whose_place_is_taken_is_removed(folder: Path) -> None:
    make_folder(folder / "bad" / "a")
    put(folder, "a", b"bad")
    spool = Spool(folder)

    spool.take(10, NOW)

    assert in_new(folder) == []
    assert spool.counts.bad == 1


def test_where_nothing_can_be_removed_each_file_is_read_once_and_none_twice(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, "bad", b"bad")
    put(folder, "good", hook(1), after="bad")
    monkeypatch.chdir(folder)
    with unprivileged(folder):
        os.chmod("new", 0o500)
        spool = Spool(Path("."))

        taken = spool.take(10, NOW)
        spool.done(taken.names)
        later = [spool.take(10, NOW) for _ in range(3)]
        os.chmod("new", 0o700)
        put(Path("."), "bad", hook(2))
        again = spool.take(10, NOW)

    assert events(taken) == ["Event1"]
    assert later == [TakenHooks((), ())] * 3
    assert events(again) == ["Event2"]  # another file, though its name was known
    assert spool.counts == SpoolCounts(taken=2, bad=1, flooded=0, backlog=0)


@contextmanager
def unprivileged(folder: Path) -> Iterator[None]:
    """Be somebody whom permissions bind, who owns the folder; for tests that run as root."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, -1)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


# Bounds


def test_unfinished_files_are_left_alone_until_nobody_can_be_writing_them(folder: Path) -> None:
    for name in (".young", ".old"):
        (folder / "new" / name).write_bytes(b"{")
    for name in ("young", "old"):
        (folder / "tmp" / name).write_bytes(b"{")
    make_folder(folder / "tmp" / "old-folder")
    past = time.time() - OLD_S
    for path in (folder / "new" / ".old", folder / "tmp" / "old", folder / "tmp" / "old-folder"):
        os.utime(path, (past, past))
    spool = Spool(folder)

    taken = spool.take(10, NOW)

    assert taken == TakenHooks((), ())
    assert in_new(folder) == [".young"]
    assert sorted(os.listdir(folder / "tmp")) == ["young"]
    assert spool.counts == SpoolCounts(0, 0, 0, 0)


def test_an_old_hook_that_is_finished_is_read(folder: Path) -> None:
    past = time.time() - OLD_S
    os.utime(put(folder, "a", hook(1)), (past, past))

    assert events(Spool(folder).take(10, NOW)) == ["Event1"]


def test_without_a_folder_for_unfinished_files_hooks_are_read(folder: Path) -> None:
    put(folder, "a", hook(1))
    (folder / "tmp").rmdir()

    assert events(Spool(folder).take(10, NOW)) == ["Event1"]


def test_twenty_thousand_files_may_wait_and_of_more_the_oldest_go_unread(folder: Path) -> None:
    source = folder / "tmp" / "source"
    source.write_text(json.dumps(hook(1)))
    names = [f"{number:05}" for number in range(20_003)]
    for name in names:
        os.link(source, folder / "new" / name)
    spool = Spool(folder)

    first = spool.take(200, NOW)
    os.link(source, folder / "new" / "0-later")
    second = spool.take(200, NOW)  # from the same listing, though the newcomer's name would sort before
    spool.done([*first.names, *second.names])

    assert [*first.names, *second.names] == names[3:403]
    assert spool.counts == SpoolCounts(taken=400, bad=0, flooded=3, backlog=20_000 - 400)
    assert in_new(folder) == ["0-later", *names[403:]]


# Whose it is


def signed(number: int, launch: str, token: str) -> dict[str, Any]:
    return {"session": "a", "launch": launch, "token": token, "event": {"hook_event_name": f"Event{number}"}}


def has_token(launch: str, token: str) -> bool | None:
    """Say whether a token is a launch's, as the daemon does: `s1-1` has `t1`, `s2-1` has `t2`, others are unknown."""
    known = {"s1-1": "t1", "s2-1": "t2"}
    return known[launch] == token if launch in known else None


@pytest.mark.parametrize("token", ["t2", "", "t1 ", 7, None, ["t1"], "\ud800"])
def test_a_file_without_the_token_of_the_launch_it_names_is_set_aside(folder: Path, token: Any) -> None:
    put(folder, "forged", signed(1, "s1-1", token))
    put(folder, "none", hook(2, "s1-1"))
    put(folder, "true", signed(3, "s1-1", "t1"))
    put(folder, "unknown", signed(4, "s9-1", "t9"))

    taken = Spool(folder, is_theirs=has_token).take(100, NOW)

    assert sorted(events(taken)) == ["Event3", "Event4"], "the daemon counts what names no launch of its own"
    assert in_bad(folder) == ["forged", "none"]


@pytest.mark.parametrize("floods", [("s1-1", "0a"), ("s1-1", "0b"), ("s9-{}", "0a")], ids=["its own", "forged", "made up"])
def test_a_flood_costs_its_own_launch_the_oldest_and_no_other(folder: Path, floods: tuple[str, str]) -> None:
    others = [f"other{number}" for number in range(20)]
    for number, name in enumerate(others):
        put(folder, name, signed(number, "s2-1", "0c"))
    await_tick(folder / "new" / others[-1])
    for number in range(200):
        put(folder, f"flood{number:03}", signed(1000 + number, floods[0].format(number), floods[1]))
    known = {"s1-1": "0a", "s2-1": "0c"}
    spool = Spool(folder, is_theirs=lambda launch, token: known.get(launch) == token, waiting=50)

    spool.take(0, NOW)

    assert spool.counts == SpoolCounts(0, 0, 170, 50)
    assert in_new(folder) == [f"flood{number:03}" for number in range(170, 200)] + sorted(others)


@pytest.mark.parametrize("name", ["new", "tmp", "bad", "."])
def test_a_folder_of_the_spool_that_became_a_link_leads_nowhere(folder: Path, tmp_path: Path, name: str) -> None:
    precious = tmp_path / "precious"
    for part in ("new", "tmp", "bad"):
        (precious / part).mkdir(parents=True)
        (precious / part / "words").write_text("mine")
        os.utime(precious / part / "words", (1, 1))
    put(folder, "no-hook", b"no hook")
    put(folder, "hook", hook(1))
    place = folder if name == "." else folder / name
    if place.exists():
        place.rename(tmp_path / "aside")
    place.symlink_to(precious if name == "." else precious / name)
    spool = Spool(folder)

    try:
        taken = spool.take(100, NOW)
        spool.done(taken.names)
    except OSError:
        pass  # said and asked again
    forget_hooks(folder, {"s1-1"})

    for part in ("new", "tmp", "bad"):
        assert os.listdir(precious / part) == ["words"]


def test_forgetting_reads_no_more_than_the_beginning_of_what_lies_there(folder: Path) -> None:
    (folder / "bad").mkdir()
    for place in ("new", "bad"):
        os.mkfifo(folder / place / "fifo.json")
        (folder / place / "zero.json").symlink_to("/dev/zero")
        (folder / place / "folder.json").mkdir()
        with open(folder / place / "huge.json", "wb") as file:
            file.truncate(1 << 40)
        (folder / place / "mine.json").write_text(json.dumps(hook(1)))
        (folder / place / "other.json").write_text(json.dumps(hook(1, "s2-1")))

    assert forget_hooks(folder, {"s1-1"}) == 2

    left = ["fifo.json", "folder.json", "huge.json", "other.json", "zero.json"]
    assert (in_new(folder), in_bad(folder)) == (left, left)
