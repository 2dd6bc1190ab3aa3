"""`vigil heartbeat` inside a session is one file in the spool and nothing else; what it cannot do it says in one line."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vigil.core.model.speech import Hook
from vigil.observe.spool import Spool

VIGIL = [sys.executable, "-m", "vigil.cli"]
NOW = 5000.0
SOON_S = 60.0
AT_ONCE = 12


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    for name in ("new", "tmp"):
        (tmp_path / "spool" / name).mkdir(mode=0o700, parents=True)
    return tmp_path / "spool"


def environment(spool: Path | None, **more: str) -> dict[str, str]:
    """Return the environment of an agent; without a spool, that of somebody outside all sessions."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("VIGIL_")}
    if spool is not None:
        env |= {"VIGIL_SPOOL": str(spool), "VIGIL_LAUNCH": "s1-1", "VIGIL_SESSION": "backend/coder/0", "VIGIL_TOKEN": "0a1b"}
    return env | more


def heartbeat(
    *words: str, env: dict[str, str], preexec_fn: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*VIGIL, "heartbeat", *words],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SOON_S,
        preexec_fn=preexec_fn,
    )


def test_a_heartbeat_is_one_file_with_who_gives_it(spool: Path) -> None:
    done = heartbeat(env=environment(spool))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (path,) = (spool / "new").iterdir()
    assert (
        path.read_bytes() == b'{"session":"backend/coder/0","launch":"s1-1","token":"0a1b","payload":{"event":"heartbeat"}}\n'
    )
    assert list((spool / "tmp").iterdir()) == []


def test_the_spool_reads_it_as_a_sign_of_life_that_says_nothing_more(spool: Path) -> None:
    heartbeat(env=environment(spool))

    (hook,) = Spool(spool).take(10, NOW).hooks

    assert hook == Hook("s1-1", "heartbeat", hook.at)
    assert NOW - SOON_S < hook.at <= NOW


def test_the_name_of_the_session_around_it_is_the_same_as_none(spool: Path) -> None:
    done = heartbeat("backend/coder/0", env=environment(spool))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(list((spool / "new").iterdir())) == 1


def test_no_daemon_is_needed_and_none_is_started(spool: Path) -> None:
    heartbeat(env=environment(spool))

    assert sorted(path.name for path in spool.parent.iterdir()) == ["spool"], "a daemon would have made its folders here"


def test_those_given_at_once_are_all_there(spool: Path) -> None:
    env = environment(spool)
    running = [subprocess.Popen([*VIGIL, "heartbeat"], env=env, stdin=subprocess.DEVNULL) for _ in range(AT_ONCE)]

    assert [process.wait(SOON_S) for process in running] == [0] * AT_ONCE
    assert len(Spool(spool).take(100, NOW).hooks) == AT_ONCE


@pytest.mark.parametrize("lacks", ["VIGIL_SPOOL", "VIGIL_LAUNCH"])
@pytest.mark.parametrize("as_empty", [False, True])
def test_outside_a_session_it_says_what_to_do(spool: Path, lacks: str, as_empty: bool) -> None:
    env = environment(spool)
    del env[lacks]

    done = heartbeat(env=env | ({lacks: ""} if as_empty else {}))

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("vigil: this runs in no session")
    assert "vigil heartbeat NAME" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list((spool / "new").iterdir()) == []


def no_folder(spool: Path) -> None:
    for path in (spool / "new", spool / "tmp", spool):
        path.rmdir()


def a_file(spool: Path) -> None:
    no_folder(spool)
    spool.write_text("")


@pytest.mark.parametrize("spoil", [no_folder, a_file, lambda s: (s / "tmp").rmdir(), lambda s: (s / "new").rmdir()])
def test_a_spool_that_is_not_there_is_one_clear_line(spool: Path, spoil: Callable[[Path], None]) -> None:
    spoil(spool)

    done = heartbeat(env=environment(spool))

    assert_refused(done, spool)


def test_a_full_disk_is_one_clear_line_and_leaves_nothing(spool: Path) -> None:
    done = heartbeat(
        env=environment(spool, PYTHONDONTWRITEBYTECODE="1"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )

    assert_refused(done, spool)
    assert list((spool / "new").iterdir()) == []


def assert_refused(done: subprocess.CompletedProcess[str], spool: Path) -> None:
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("vigil: no heartbeat was written: ")
    assert str(spool) in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (spool / "tmp").exists() or list((spool / "tmp").iterdir()) == []


def loaded_by(word: str, env: dict[str, str]) -> set[str]:
    """Return what a fresh interpreter has loaded when a command is done."""
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"sys.argv = ['vigil', {word!r}]\n"
        "from vigil.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=SOON_S)
    return set(done.stderr.split())


def test_it_loads_nothing_but_itself_that_the_shortest_command_does_not(spool: Path) -> None:
    env = environment(spool)

    more = loaded_by("heartbeat", env) - loaded_by("--version", env)

    assert more == {"vigil.cli.heartbeat"}


def test_it_is_listed_with_the_other_commands_and_has_help() -> None:
    listing = subprocess.run([*VIGIL, "--help"], capture_output=True, text=True, timeout=SOON_S).stdout

    assert "heartbeat" in listing.split("Talk:")[1]
    assert "Example: " in heartbeat("--help", env=environment(None)).stdout
