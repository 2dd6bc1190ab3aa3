"""The hook in sh takes whatever an agent gives it, writes one file, and never holds an agent up or fails it."""

from __future__ import annotations

import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, Any

import pytest

import vigil
from vigil.observe.spool import HOOK_BYTES, Spool

SCRIPT = Path(vigil.__file__).parent / "agents" / "hook.sh"
KNOWN = (["dash"], ["bash", "--posix"], ["busybox", "sh"])
SHELLS = [words for words in KNOWN if shutil.which(words[0])] or [["sh"]]
NOW = 5000.0
SOON_S = 60.0
WAIT_S = 2.0  # as the script says
ENVELOPE_BYTES = 1024  # as the script says
MEMORY_BYTES = 24 << 20
AT_ONCE = 8
EACH = 50


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    for name in ("new", "tmp"):
        (tmp_path / "spool" / name).mkdir(mode=0o700, parents=True)
    return tmp_path / "spool"


@pytest.fixture(scope="module")
def without_perl(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH of all that the hook uses but perl."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("timeout", "cat", "head", "mv", "rm", "date", "dash", "bash", "busybox", "sh"):
        if (found := shutil.which(name)) is not None:
            (folder / name).symlink_to(found)
    return str(folder)


@pytest.fixture(params=[(words, perl) for words in SHELLS for perl in (True, False)], ids=lambda p: f"{p[0][0]}-{p[1]}")
def shell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, without_perl: str) -> list[str]:
    """Each sh there is, with perl and without."""
    words: list[str]
    words, perl = request.param
    if not perl:
        monkeypatch.setenv("PATH", without_perl)
    elif shutil.which("perl") is None:
        pytest.skip("there is no perl")
    return words


def environment(spool: Path | None) -> dict[str, str]:
    """Return the environment of an agent; without a spool, that of somebody outside all sessions."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("VIGIL_")}
    if spool is not None:
        env |= {"VIGIL_SPOOL": str(spool), "VIGIL_LAUNCH": "s1-1", "VIGIL_SESSION": "backend/coder/0", "VIGIL_TOKEN": "0a1b"}
    return env


def start(shell: list[str], spool: Path | None, *words: str, stdin: int | IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*shell, str(SCRIPT), *words],
        env=environment(spool),
        stdin=subprocess.PIPE if stdin is None else stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def assert_quiet(process: subprocess.Popen[bytes]) -> None:
    """Check that it ended well and printed nothing."""
    out, err = process.communicate(timeout=SOON_S)
    assert (process.returncode, out, err) == (0, b"", b"")


def say(shell: list[str], spool: Path | None, payload: bytes, *words: str) -> None:
    """Give the hook a payload as agents do, and see that all of it can be written."""
    process = start(shell, spool, *words)
    assert process.stdin is not None
    process.stdin.write(payload)
    process.stdin.close()  # both raise BrokenPipeError where the hook ended without reading
    process.stdin = None
    assert_quiet(process)


def written(spool: Path) -> bytes:
    """Return the one file that was written."""
    (path,) = (spool / "new").iterdir()
    assert list((spool / "tmp").iterdir()) == []
    return path.read_bytes()


def understood(spool: Path) -> Any:
    """Return the payload of the one file, after the spool's own reader took it."""
    found = json.loads(written(spool).decode("utf-8", "replace"))
    assert list(found) == ["session", "launch", "token", "payload"]
    assert (found["session"], found["launch"], found["token"]) == ("backend/coder/0", "s1-1", "0a1b")
    reader = Spool(spool)
    assert [hook.launch_id for hook in reader.take(10, NOW).hooks] == ["s1-1"]
    assert reader.counts.bad == 0
    return found["payload"]


PAYLOADS = [
    {"hook_event_name": "Stop"},
    {"quotes": "a\"b'c`d$(e)\\", "lines": "one\ntwo\r\n\ttabs", "percent": "%s%d%%", "empty": ""},
    {"nul": "\x00", "euro": "€", "rest": "\x81\x82\x88\x7f"},
    {"nested": {"launch": "other", "list": [1, 2.5, None, True]}},
    {},
]


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_a_payload_arrives_as_the_agent_gave_it(shell: list[str], spool: Path, payload: Any, end: bytes) -> None:
    say(shell, spool, json.dumps(payload, ensure_ascii=False).encode() + end)

    assert understood(spool) == payload


def test_a_payload_on_several_lines_arrives(shell: list[str], spool: Path) -> None:
    say(shell, spool, json.dumps(PAYLOADS[1], indent=2).encode())

    assert understood(spool) == PAYLOADS[1]


def test_the_first_argument_may_be_the_payload(shell: list[str], spool: Path) -> None:
    payload = {"type": "agent-turn-complete", "text": 'a\'b "c" \\n %s'}

    assert_quiet(start(shell, spool, json.dumps(payload), stdin=subprocess.DEVNULL))

    assert understood(spool) == payload


def test_every_byte_arrives_also_those_that_are_no_utf_8(shell: list[str], spool: Path) -> None:
    every = bytes(byte for byte in range(0x20, 0x100) if byte not in b'"\\')

    say(shell, spool, b'{"hook_event_name":"Stop","x":"' + every + b'"}')

    assert every in written(spool)
    assert understood(spool)["hook_event_name"] == "Stop"


@pytest.mark.parametrize("nothing", [b"", b"\n", b" \t\n\n"])
def test_an_empty_payload_is_a_sign_of_life(shell: list[str], spool: Path, nothing: bytes) -> None:
    say(shell, spool, nothing)

    assert understood(spool) == {}


def test_a_closed_standard_input_is_a_sign_of_life(shell: list[str], spool: Path) -> None:
    process = subprocess.Popen(
        ["sh", "-c", 'exec "$@" <&-', "sh", *shell, str(SCRIPT)],
        env=environment(spool),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )

    assert_quiet(process)
    assert understood(spool) == {}


def test_a_terminal_is_not_waited_for(shell: list[str], spool: Path) -> None:
    ours, theirs = pty.openpty()
    begun = time.monotonic()
    try:
        assert_quiet(start(shell, spool, stdin=theirs))
    finally:
        os.close(ours)
        os.close(theirs)

    assert time.monotonic() - begun < WAIT_S
    assert understood(spool) == {}


def test_an_agent_that_never_closes_the_pipe_is_heard_all_the_same(shell: list[str], spool: Path) -> None:
    process = start(shell, spool)
    assert process.stdin is not None
    process.stdin.write(b'{"hook_event_name":"SessionEnd"}')
    process.stdin.flush()
    begun = time.monotonic()

    assert process.wait(SOON_S) == 0

    assert time.monotonic() - begun < WAIT_S + 5
    assert_quiet(process)
    assert understood(spool) == {"hook_event_name": "SessionEnd"}


def of_size(size: int) -> bytes:
    head, tail = b'{"hook_event_name":"Stop","x":"', b'"}'
    return head + b"x" * (size - len(head) - len(tail)) + tail


def test_the_largest_payload_arrives_whole_and_fits_what_the_spool_takes(shell: list[str], spool: Path) -> None:
    payload = of_size(HOOK_BYTES - ENVELOPE_BYTES)

    say(shell, spool, payload)

    assert len(written(spool)) <= HOOK_BYTES
    assert understood(spool) == json.loads(payload)


@pytest.mark.parametrize("size", [HOOK_BYTES - ENVELOPE_BYTES + 1, 2 << 20, 8 << 20])
def test_a_payload_that_is_too_large_is_read_to_its_end_and_is_a_sign_of_life(shell: list[str], spool: Path, size: int) -> None:
    say(shell, spool, of_size(size))

    assert understood(spool) == {"event": "too-large"}


def test_a_payload_of_any_size_costs_little_memory(shell: list[str], spool: Path) -> None:
    done = subprocess.run(
        [*shell, str(SCRIPT)],
        env=environment(spool),
        input=of_size(MEMORY_BYTES),
        timeout=SOON_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES)),
    )

    assert done.returncode == 0
    assert understood(spool) == {"event": "too-large"}


def test_what_is_too_large_is_told_by_its_bytes_whatever_the_language(shell: list[str], spool: Path) -> None:
    payload = json.dumps({"x": "€" * (HOOK_BYTES // 2)}, ensure_ascii=False).encode()

    done = subprocess.run([*shell, str(SCRIPT)], env=environment(spool) | {"LC_ALL": "C.UTF-8"}, input=payload, timeout=SOON_S)

    assert done.returncode == 0
    assert understood(spool) == {"event": "too-large"}


def test_what_is_no_json_is_for_the_reader_to_set_aside(shell: list[str], spool: Path) -> None:
    say(shell, spool, b"no json")

    reader = Spool(spool)
    assert reader.take(10, NOW).hooks == ()
    assert reader.counts.bad == 1


def test_a_heartbeat_is_the_same_event_as_that_of_the_command(shell: list[str], spool: Path) -> None:
    assert_quiet(start(shell, spool, "heartbeat", stdin=subprocess.DEVNULL))

    assert written(spool) == b'{"session":"backend/coder/0","launch":"s1-1","token":"0a1b","payload":{"event":"heartbeat"}}\n'
    (hook,) = Spool(spool).take(10, NOW).hooks
    assert (hook.name, hook.said) == ("heartbeat", ())


def test_a_heartbeat_leaves_standard_input_to_the_loop_around_it(shell: list[str], spool: Path) -> None:
    loop = 'while read -r word; do "$@" heartbeat; echo "$word"; done'

    done = subprocess.run(
        ["sh", "-c", loop, "sh", *shell, str(SCRIPT)],
        env=environment(spool),
        input=b"one\ntwo\nthree\n",
        capture_output=True,
        timeout=SOON_S,
    )

    assert done.stdout == b"one\ntwo\nthree\n"
    assert len(list((spool / "new").iterdir())) == 3


@pytest.mark.parametrize("size", [40, 2 << 20])
@pytest.mark.parametrize("lacks", ["VIGIL_SPOOL", "VIGIL_LAUNCH"])
def test_outside_a_session_it_does_nothing_and_the_agent_can_write_all_the_same(
    shell: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, lacks: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "new").mkdir()
    process = subprocess.Popen(
        [*shell, str(SCRIPT)],
        env={key: value for key, value in environment(tmp_path).items() if key != lacks},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(of_size(size))
    process.stdin.close()
    process.stdin = None

    assert_quiet(process)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("missing", ["new", "tmp", "."])
def test_a_spool_that_is_not_there_is_no_trouble_for_the_agent(shell: list[str], spool: Path, missing: str) -> None:
    shutil.rmtree(spool / missing)

    say(shell, spool, b"{}")

    assert [path for path in spool.rglob("*") if path.is_file()] == []


def test_a_full_disk_is_no_trouble_for_the_agent_and_leaves_nothing(shell: list[str], spool: Path) -> None:
    def fill() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails instead of killing
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    done = subprocess.run(
        [*shell, str(SCRIPT)],
        env=environment(spool),
        input=b"{}",
        capture_output=True,
        timeout=SOON_S,
        restore_signals=False,
        preexec_fn=fill,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [path for path in spool.rglob("*") if path.is_file()] == []


def test_without_the_programs_it_uses_it_still_ends_well(shell: list[str], spool: Path) -> None:
    found = shutil.which(shell[0])
    assert found is not None

    done = subprocess.run(
        [found, *shell[1:], str(SCRIPT)],
        env=environment(spool) | {"PATH": "/nowhere"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SOON_S,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list((spool / "new").iterdir()) == []


def test_many_at_once_are_all_there(shell: list[str], spool: Path) -> None:
    loop = f'i=0; while [ $i -lt {EACH} ]; do "$@" heartbeat; i=$((i + 1)); done'
    running = [
        subprocess.Popen(["sh", "-c", loop, "sh", *shell, str(SCRIPT)], env=environment(spool), stdin=subprocess.DEVNULL)
        for _ in range(AT_ONCE)
    ]

    assert [process.wait(SOON_S) for process in running] == [0] * AT_ONCE
    assert len(Spool(spool).take(1000, NOW).hooks) == AT_ONCE * EACH
    assert list((spool / "tmp").iterdir()) == []


def test_a_name_is_never_used_again_though_pids_are(spool: Path) -> None:
    script = 'set -- heartbeat; for i in 1 2 3 4 5 6 7 8; do (. "$0"); done'  # $$ is the same in all of them

    subprocess.run(["sh", "-c", script, str(SCRIPT)], env=environment(spool), stdin=subprocess.DEVNULL, timeout=SOON_S)

    names = [path.name for path in (spool / "new").iterdir()]
    assert len(names) == 8
    assert len({name.partition("-")[0] for name in names}) == 1


def test_events_in_a_row_are_read_in_their_order(shell: list[str], spool: Path) -> None:
    for number in range(20):
        say(shell, spool, b'{"hook_event_name":"E%d"}' % number)

    assert [hook.name for hook in Spool(spool).take(100, NOW).hooks] == [f"E{number}" for number in range(20)]
