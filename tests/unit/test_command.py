"""A command answers within its deadline or is abandoned, and nothing of it is left behind."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vigil.command import ERRORS_BYTES, CommandAnswer, let_linger, lingering, reap_lingering, run_command
from vigil.kernel import process

PATIENT_S = 60.0  # no command of these tests needs as long
BRIEF_S = 1.0
FAR_TOO_LATE_S = 20.0  # what hangs here hangs for ten minutes
OWN_GROUP = f"{sys.executable} -c 'import os, sys; os.setpgid(0, 0); os.execvp(sys.argv[1], sys.argv[1:])'"


class Marked:
    """Runs commands whose processes, wherever they went, can be found again."""

    def __init__(self) -> None:
        self._mark = f"MARK={secrets.token_hex(8)}"

    def run(self, script: str, deadline_s: float = PATIENT_S, stdin: bytes = b"", limit_bytes: int = 1 << 20) -> CommandAnswer:
        """Run a shell script."""
        return run_command(["sh", "-c", script], deadline_s, self.env(), stdin, limit_bytes)

    def env(self) -> dict[str, str]:
        name, _, value = self._mark.partition("=")
        return {**os.environ, name: value}

    def living(self) -> list[int]:
        """Return the processes of these commands that have not ended."""
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and self._bears_mark(name)]

    def _bears_mark(self, pid: str) -> bool:
        try:
            return self._mark.encode() in Path("/proc", pid, "environ").read_bytes().split(b"\0")
        except OSError:
            return False


@pytest.fixture
def marked() -> Iterator[Marked]:
    """Commands of this test; it fails if anything of them is there at its end."""
    commands = Marked()
    yield commands
    try:
        wait_for(lambda: commands.living() == [])
    finally:
        for pid in commands.living():  # also a failed test leaves nothing behind
            os.kill(pid, signal.SIGKILL)
    assert lingering() == 0


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + FAR_TOO_LATE_S
    while not condition():
        assert time.monotonic() < until, "it did not come true"
        time.sleep(0.01)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


# Answers


def test_a_command_answers_with_what_it_printed(marked: Marked) -> None:
    assert marked.run("echo said; echo complained >&2") == CommandAnswer(0, b"said\n", b"complained\n")


@pytest.mark.parametrize("code", [0, 1, 7, 126, 255])
def test_its_status_is_its_exit_code(marked: Marked, code: int) -> None:
    assert marked.run(f"exit {code}") == CommandAnswer(code, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE, signal.SIGUSR1])
def test_the_status_of_a_command_ended_by_a_signal_is_negative(marked: Marked, number: signal.Signals) -> None:
    assert marked.run(f"kill -{int(number)} $$") == CommandAnswer(-number, b"", b"")


def test_words_reach_the_program_as_they_are() -> None:
    words = ["a b", "", "$HOME", "'\"`x`", "-n", "é", "*", "two\nlines"]
    code = "import sys; sys.stdout.write('\\0'.join(sys.argv[1:]))"

    answer = run_command([sys.executable, "-c", code, *words], PATIENT_S)

    assert answer.output.decode().split("\0") == words


def test_a_command_gets_the_environment_it_is_given() -> None:
    answer = run_command(["/usr/bin/env"], PATIENT_S, env={"COLOUR": "green = blue"})

    lines = answer.output.decode().splitlines()
    assert "COLOUR=green = blue" in lines
    assert not any(line.startswith("HOME=") for line in lines)


def test_a_command_runs_where_it_is_told_to(tmp_path: Path) -> None:
    folder = tmp_path / "-a 'folder'"
    folder.mkdir()

    assert run_command(["pwd", "-P"], PATIENT_S, cwd=str(folder)).output == os.fsencode(folder.resolve()) + b"\n"


def test_a_folder_that_is_missing_is_an_answer(tmp_path: Path) -> None:
    answer = run_command(["pwd"], PATIENT_S, cwd=str(tmp_path / "gone"))

    assert (answer.status, answer.output, answer.abandoned) == (126, b"", "")
    assert b"gone" in answer.errors


@pytest.mark.parametrize("program", ["/nowhere/at-all", "no-such-program-anywhere"])
def test_a_missing_program_answers_127(program: str) -> None:
    answer = run_command([program], PATIENT_S)

    assert (answer.status, answer.output, answer.abandoned) == (127, b"", "")
    assert program.encode() in answer.errors


def test_a_program_that_cannot_be_executed_answers_126(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("text")

    for program in (tmp_path, tmp_path / "plain"):
        answer = run_command([str(program)], PATIENT_S)

        assert (answer.status, answer.abandoned) == (126, "")
        assert os.fsencode(program) in answer.errors


def test_words_too_many_for_the_kernel_are_an_answer() -> None:
    files = open_files()

    answer = run_command(["true", "x" * (1 << 20)], PATIENT_S)

    assert (answer.status, answer.abandoned) == (126, "")
    assert b"too long" in answer.errors
    assert open_files() == files


# Standard input and output


@pytest.mark.parametrize("size", [1, 65536, 65537, 3 << 20])
def test_standard_input_arrives_whole_and_ends(marked: Marked, size: int) -> None:
    said = (b"0123456789abcde\n" * (size // 16 + 1))[:size]

    assert marked.run("cat", stdin=said, limit_bytes=size) == CommandAnswer(0, said, b"")


def test_without_input_a_command_reads_the_end_of_it(marked: Marked) -> None:
    assert marked.run("cat; echo over") == CommandAnswer(0, b"over\n", b"")


def test_a_command_that_never_reads_its_input_answers(marked: Marked) -> None:
    assert marked.run("echo deaf", stdin=b"x" * (1 << 20)) == CommandAnswer(0, b"deaf\n", b"")


def test_a_command_that_closed_its_input_answers(marked: Marked) -> None:
    assert marked.run("exec <&-; echo deaf", stdin=b"x" * (1 << 20)) == CommandAnswer(0, b"deaf\n", b"")


def test_a_command_that_neither_reads_nor_ends_is_abandoned(marked: Marked) -> None:
    answer = marked.run("exec sleep 600", deadline_s=BRIEF_S, stdin=b"x" * (1 << 20))

    assert answer == CommandAnswer(None, b"", b"", abandoned="no answer in 1 s")


def test_output_beyond_the_limit_is_read_and_thrown_away(marked: Marked) -> None:
    answer = marked.run("head -c 3000000 /dev/zero; echo end >&2", limit_bytes=1000)

    assert answer == CommandAnswer(0, b"\0" * 1000, b"end\n")


def test_of_errors_the_last_are_kept(marked: Marked) -> None:
    answer = marked.run("head -c 3000000 /dev/zero >&2; echo the reason >&2")

    assert answer.status == 0
    assert answer.errors.endswith(b"\0the reason\n")
    assert len(answer.errors) == ERRORS_BYTES


# Deadlines


def test_a_command_that_ignores_term_and_hangs_is_abandoned_at_its_deadline(marked: Marked) -> None:
    began = time.monotonic()

    answer = marked.run("trap '' TERM HUP INT; echo here; while :; do sleep 0.05; done", deadline_s=BRIEF_S)

    assert BRIEF_S <= time.monotonic() - began < FAR_TOO_LATE_S
    assert (answer.status, answer.abandoned, answer.lingering) == (None, "no answer in 1 s", False)
    assert marked.living() == []


def test_what_an_abandoned_command_said_is_kept(marked: Marked) -> None:
    answer = marked.run("echo so far; echo trouble >&2; exec sleep 600", deadline_s=3.0)

    assert answer == CommandAnswer(None, b"so far\n", b"trouble\n", abandoned="no answer in 3 s")


def test_a_command_that_prints_for_ever_is_abandoned(marked: Marked) -> None:
    answer = marked.run("exec cat /dev/zero", deadline_s=3.0, limit_bytes=10)

    assert (answer.status, answer.output, answer.abandoned) == (None, b"\0" * 10, "no answer in 3 s")
    assert marked.living() == []


def test_a_command_that_stopped_itself_is_abandoned(marked: Marked) -> None:
    assert marked.run("kill -STOP $$", deadline_s=BRIEF_S) == CommandAnswer(None, b"", b"", abandoned="no answer in 1 s")
    assert marked.living() == []


def test_an_abandoned_command_takes_its_whole_family_with_it(marked: Marked) -> None:
    script = "trap '' TERM; sh -c 'sleep 600 & sleep 600' & (setsid sleep 600 >/dev/null 2>&1 &) ; wait; exec sleep 600"

    answer = marked.run(script, deadline_s=BRIEF_S)

    assert answer == CommandAnswer(None, b"", b"", abandoned="no answer in 1 s")
    assert marked.living() == []


# What outlives its leader


def outliving(grandchild: str, folder: Path) -> str:
    """Return a script that starts a grandchild, prints its pid once it is where it wants to be, and ends with 4."""
    (folder / "stay").write_text(f"echo $$ >{folder / 'up'}; exec sleep 600")
    return f"mkfifo {folder / 'up'}\n{grandchild.format(stay=folder / 'stay')}\nread pid <{folder / 'up'}; echo $pid; exit 4"


def is_running(pid: int) -> bool:
    stat = process.read_stat(pid)
    return stat is not None and stat.state not in "ZX"


@pytest.mark.parametrize(
    "grandchild",
    [
        "sh {stay} &",
        "trap '' TERM HUP; sh {stay} &",
        "setsid sh {stay} &",
        "(setsid sh {stay} &)",
        "(setsid sh -c '(setsid sh {stay} &)' &)",
        "setsid sh {stay} >/dev/null 2>&1 &",
        f"{OWN_GROUP} sh {{stay}} &",
        "env -i sh {stay} &",
        f"env -i {OWN_GROUP} sh {{stay}} &",
    ],
    ids=[
        "group",
        "deaf",
        "session",
        "forked-twice",
        "sessions",
        "silent",
        "own-group",
        "without-token",
        "own-group-without-token",
    ],
)
def test_a_command_that_left_a_grandchild_has_answered_and_the_grandchild_is_ended(
    marked: Marked, tmp_path: Path, grandchild: str
) -> None:
    began = time.monotonic()

    answer = marked.run(outliving(grandchild, tmp_path))

    assert (answer.status, answer.abandoned, answer.lingering) == (4, "", False)
    assert not is_running(int(answer.output))
    assert marked.living() == []
    assert time.monotonic() - began < FAR_TOO_LATE_S


def test_a_grandchild_that_closed_everything_is_ended_with_its_group(marked: Marked, tmp_path: Path) -> None:
    code = "import os, sys; os.closerange(0, 100); os.execvp(sys.argv[1], sys.argv[1:])"

    answer = marked.run(outliving(f"{sys.executable} -c '{code}' sh {{stay}} &", tmp_path))

    assert answer.status == 4
    wait_for(lambda: not is_running(int(answer.output)))


def test_what_cannot_be_found_is_said_to_be_still_there(marked: Marked, tmp_path: Path) -> None:
    answer = marked.run(outliving("setsid env -i sh {stay} &", tmp_path))

    pid = int(answer.output)
    pidfd = process.open_pidfd(pid, process.read_start_ticks(pid) or 0)
    assert pidfd is not None
    try:
        assert (answer.status, answer.lingering) == (4, True)
        assert lingering() == 0  # its leader was reaped
    finally:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        wait_for(lambda: process.has_ended(pidfd))
        os.close(pidfd)


# Children


def test_a_child_that_cannot_be_ended_in_time_is_reaped_when_it_ends() -> None:
    stubborn = subprocess.Popen(["sleep", "600"])
    let_linger(stubborn)
    try:
        reap_lingering()
        assert lingering() == 1
    finally:
        stubborn.send_signal(signal.SIGKILL)

    os.waitid(os.P_PID, stubborn.pid, os.WEXITED | os.WNOWAIT)
    reap_lingering()

    assert lingering() == 0
    assert stubborn.returncode == -signal.SIGKILL


def test_the_status_of_another_child_is_left_to_its_owner(marked: Marked) -> None:
    other = subprocess.Popen(["sh", "-c", "exit 7"])
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)

    marked.run("exit 0")
    marked.run("exec sleep 600", deadline_s=0.1)

    assert other.wait(FAR_TOO_LATE_S) == 7


def test_a_status_that_the_kernel_threw_away_is_never_taken_for_success() -> None:
    code = (
        "import signal; from vigil.command import run_command; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
        "print(run_command(['sh', '-c', 'read line'], 60.0, stdin=b'x\\n'))"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout

    assert said == f"{CommandAnswer(None, b'', b'', abandoned='its exit status was lost')}\n"


def test_several_threads_get_each_their_own_answers() -> None:
    answers: dict[int, list[CommandAnswer]] = {number: [] for number in range(8)}

    def work(number: int) -> None:
        for turn in range(5):
            said = f"{number}.{turn}".encode() * 20_000
            answers[number].append(run_command(["sh", "-c", f"cat; exit {number}"], PATIENT_S, stdin=said))

    threads = [threading.Thread(target=work, args=(number,)) for number in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENT_S)

    for number, given in answers.items():
        assert given == [CommandAnswer(number, f"{number}.{turn}".encode() * 20_000, b"") for turn in range(5)]


def test_no_file_stays_open_after_fifty_commands(marked: Marked) -> None:
    before = open_files()

    for _ in range(10):
        marked.run("echo a")
        marked.run("cat", stdin=b"x" * 100_000)
        marked.run("exec sleep 600", deadline_s=0.05, stdin=b"x" * 100_000)
        marked.run("sleep 600 & exit 1")
        run_command(["/nowhere/at-all"], PATIENT_S)

    assert open_files() == before
