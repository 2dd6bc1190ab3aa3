"""What is wrong is refused in one line, with the right exit code, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import Instance
from vigil.errors import UsageError

BAD_NAMES = ["x.y", "x:y", "../x", "=x", "-d", "", "x" * 65, "x\n", "a\nb", "X", "ü", "a b", "_a", "$7", "%1", "a/b"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_name_is_refused_and_nothing_is_created(shared: Instance, name: str) -> None:
    done = shared.run_cli("run", f"--name={name}", "--", "sleep", "1000")

    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("vigil: ")
    assert done.stderr.count("\n") == 1
    assert shared.client.sessions(everything=True) == []
    assert list(shared.home.launches.iterdir()) == list(shared.home.environments.iterdir()) == []


def test_who_asks_for_a_bad_name_is_given_no_other(shared: Instance) -> None:
    launch = shared.run("x", "sleep", "1000")["launch"]

    for name in ("", "x\n", "\n", "x\n\n"):
        for ask in (shared.client.session, shared.client.why, shared.client.events, shared.client.deaths, shared.client.rm):
            with pytest.raises(UsageError):
                ask(name)
        with pytest.raises(UsageError):
            shared.client.ask("stop", name)
    done = shared.run_cli("rm", "x\n")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("vigil: 'x\\n' is not a name: ")
    assert shared.get("x")["launch"] == launch
    shared.ok("rm", "x")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["top"], "vigil top is not there yet; vigil --help lists what is"),
        (["service", "install"], "vigil service is not there yet; vigil --help lists what is"),
        (["get"], "Missing argument 'NAME'; see: vigil get --help"),
        (["daemon", "dance"], "No such command 'dance'; see: vigil daemon --help"),
        (["ls", "-o", "xml"], "'xml' is not one of 'table', 'wide', 'json'; see: vigil ls --help"),
    ],
)
def test_wrong_usage_says_where_the_right_one_stands(shared: Instance, words: list[str], expected: str) -> None:
    done = shared.run_cli(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.rstrip("\n").endswith(expected)
    assert done.stderr.count("\n") == 1


def test_a_name_of_64_characters_is_fine(shared: Instance) -> None:
    shared.ok("run", "--name", "x" * 64, "--", "sleep", "1000")
    shared.ok("rm", "x" * 64)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--", "no-such-command-anywhere"], "no-such-command-anywhere was not found in PATH"),
        (["--", "/no/such/command"], "/no/such/command does not exist"),
        (["--", "/etc/passwd"], "/etc/passwd is not executable"),
        (["--", "/tmp"], "/tmp is not executable"),
        (["--cwd", "/no/such/folder", "--", "sleep", "1"], "/no/such/folder is not a folder"),
        (["--cwd", "/etc/passwd", "--", "sleep", "1"], "/etc/passwd is not a folder"),
    ],
)
@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_what_cannot_be_launched_is_refused(shared: Instance, words: list[str], expected: str, runtime: str) -> None:
    done = shared.run_cli("run", "--name", "x", "--runtime", runtime, *words)

    assert (done.returncode, done.stdout) == (1, "")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert shared.client.sessions(everything=True) == []
    assert list(shared.home.launches.iterdir()) == list(shared.home.environments.iterdir()) == []


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_a_script_whose_interpreter_is_missing_is_refused_with_its_name(shared: Instance, tmp_path: Path, runtime: str) -> None:
    script = tmp_path / "agent"
    script.write_text("#!/no/such/python -u\n")
    script.chmod(0o755)

    done = shared.run_cli("run", "--name", "x", "--runtime", runtime, "--", str(script))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"vigil: {script} is a script for /no/such/python, which does not exist\n"
    assert shared.client.sessions(everything=True) == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["run"], 2),
        (["run", "--cwd", "", "--", "sleep", "1"], 2),
        (["events", "--since", "-5"], 2),
        (["events", "--since", "soon"], 2),
        (["run", "--name", "x", "--agent", "nobody", "--", "sleep", "1"], 2),
        (["run", "--runtime", "zellij", "--", "sleep", "1"], 2),
        (["run", "--runtime", "nonsense", "--", "sleep", "1"], 2),
        (["run", "--restart", "sometimes", "--", "sleep", "1"], 2),
        (["run", "--max-restarts", "-1", "--", "sleep", "1"], 2),
        (["run", "--backoff-base", "soon", "--", "sleep", "1"], 2),
        (["run", "--env", "NOVALUE", "--", "sleep", "1"], 2),
        (["get", "nobody"], 3),
        (["stop", "nobody"], 3),
        (["rm", "nobody"], 3),
        (["logs", "nobody"], 3),
        (["why", "nobody"], 3),
        (["attach", "nobody"], 3),
        (["events", "nobody"], 3),
        (["get", "../nobody"], 2),
        (["nonsense"], 2),
        (["top"], 2),
        (["web"], 2),
        (["death", "d-nothing"], 3),
    ],
)
def test_wrong_usage_and_unknown_names_have_their_exit_codes(shared: Instance, words: list[str], code: int) -> None:
    done = shared.run_cli(*words)

    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("vigil: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_name_that_exists_is_refused(shared: Instance) -> None:
    first = shared.run("twice", "sleep", "1000")

    done = shared.run_cli("run", "--name", "twice", "--", "sleep", "1000")

    assert done.returncode == 1
    assert "twice exists already" in done.stderr
    assert shared.get("twice")["pid"] == first["pid"]
    shared.client.rm("twice")


def test_a_machine_without_tmux_is_told_so(vigil: Instance, tmp_path: Path) -> None:
    for name in ("sh", "sleep", "env"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    vigil.env["PATH"] = str(tmp_path)

    done = vigil.run_cli("run", "--name", "x", "--", "sleep", "1000")

    assert done.returncode == 1
    assert "tmux is not installed" in done.stderr
    vigil.ok("run", "--name", "x", "--runtime", "headless", "--", "sleep", "1000")


def test_a_daemon_with_another_path_says_how_it_gets_this_one(vigil: Instance) -> None:
    assert vigil.run_cli("daemon", "start", env={"PATH": "/no/such/folder"}).returncode == 0

    refused = vigil.run_cli("run", "--name", "x", "--", "sleep", "1000")
    assert refused.returncode == 1
    assert "not in the PATH this daemon was started with" in refused.stderr

    vigil.ok("daemon", "stop")
    vigil.ok("run", "--name", "x", "--", "sleep", "1000")


@pytest.fixture
def small_disk(vigil: Instance) -> Iterator[Instance]:
    """An instance on a disk of its own that can be filled up."""
    if os.getuid() != 0:
        pytest.fail("filling a disk needs a mount; run as root")
    vigil.path.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs", str(vigil.path)], check=True)
    yield vigil
    vigil.destroy()
    subprocess.run(["umount", "-l", str(vigil.path)], check=True)


def test_a_full_disk_is_said_so_and_leaves_no_half_made_session(small_disk: Instance) -> None:
    vigil = small_disk
    before = vigil.run("before", "sleep", "1000")
    filler = vigil.path / "filler"
    _fill(filler)

    for runtime in ("tmux", "headless"):
        done = vigil.run_cli("run", "--name", "late", "--runtime", runtime, "--", "sleep", "1000")
        assert done.returncode == 1, done
        assert "pace left" in done.stderr or "full" in done.stderr
        assert done.stderr.count("\n") == 1
    assert [session["name"] for session in vigil.client.sessions(everything=True)] == ["before"]
    assert vigil.get("before")["pid"] == before["pid"]

    filler.unlink()
    vigil.ok("run", "--name", "late", "--", "sleep", "1000")


def test_a_daemon_that_finds_no_room_names_the_place(small_disk: Instance) -> None:
    filler = small_disk.path / "filler"
    _fill(filler)

    done = small_disk.run_cli("ls")

    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.count("\n") == 1
    assert str(small_disk.path) in done.stderr
    filler.unlink()


def test_a_death_on_a_full_disk_is_recorded_once_there_is_room_again(small_disk: Instance) -> None:
    vigil = small_disk
    session = vigil.run("before", "sleep", "1000")
    filler = vigil.path / "filler"
    _fill(filler)

    os.kill(session["pid"], 11)
    filler.unlink()

    assert vigil.wait_death("before")["signal"] == 11


def _fill(path: Path) -> None:
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                pass
