"""What agents print is shown without anything a terminal would obey, and is kept within its bounds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from tests.live.instance import VIGIL, Instance, wait_for

ALLOWED = {"\n", "\t"}
NASTY = (
    r"printf '\033[31mred\033[0m \033]0;title\007 bell\007 \033P+q\033\\ back\b del\177 nul\000 c1\302\233x bad\377\376 end\n'"
)


def controls(text: str) -> set[str]:
    """Return the control characters in a text that may not be there."""
    return {char for char in text if (ord(char) < 32 or 127 <= ord(char) < 160) and char not in ALLOWED}


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_logs_hold_no_control_bytes_unless_they_are_asked_for_raw(shared: Instance, runtime: str) -> None:
    name = f"nasty-{runtime}"
    shared.run(name, "sh", "-c", f"{NASTY}; sleep 1000", runtime=runtime)
    wait_for(lambda: "end" in shared.ok("logs", name), 10, "the output")

    shown = shared.ok("logs", name)
    raw = shared.ok("logs", "--raw", name)

    assert controls(shown) == set()
    assert "red" in shown
    assert "[31m" not in shown
    assert "\x1b[31m" in raw


def test_a_pane_shows_what_its_agent_printed_on_both_streams_and_nothing_of_ours_when_it_is_killed(shared: Instance) -> None:
    session = shared.run("bare", "sh", "-c", "echo one; echo two >&2; exec sleep 1000")
    wait_for(lambda: "two" in shared.ok("logs", "bare"), 10, "the output")

    open_there = [os.readlink(f"/proc/{session['pid']}/fd/{fd}") for fd in sorted(os.listdir(f"/proc/{session['pid']}/fd"))]
    os.kill(session["pid"], signal.SIGKILL)
    shared.wait_death("bare")

    assert len(open_there) == 3 and len(set(open_there)) == 1, "its terminal, three times, and nothing else"
    assert shared.ok("logs", "bare").split() == ["one", "two"]


def test_a_line_of_ten_megabytes_is_shown_whole_and_clean(shared: Instance) -> None:
    script = "import sys; sys.stdout.write('x' * 10_000_000 + '\\x1b[1m\\n'); sys.stdout.write('after\\n')"
    shared.run("long", sys.executable, "-c", script, runtime="headless")
    shared.wait_state("long", "succeeded")

    shown = shared.ok("logs", "long")

    assert len(shown) == 10_000_000 + len("\nafter\n")
    assert controls(shown) == set()
    assert shared.ok("logs", "-n", "1", "long") == "after\n"


def test_tables_hold_no_control_bytes_whatever_a_command_is_called(shared: Instance, tmp_path: object) -> None:
    odd = os.path.join(str(tmp_path), "odd\x1b[31m\nname")
    with open(odd, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 3\n")
    os.chmod(odd, 0o755)
    shared.run("odd", odd, cwd=str(tmp_path))
    shared.wait_death("odd")

    for words in (["ls"], ["ls", "-o", "wide"], ["get", "odd"], ["why", "odd"], ["deaths"], ["events"]):
        assert controls(shared.ok(*words)) == set(), words


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_the_last_words_of_an_agent_that_is_over_can_still_be_read(shared: Instance, runtime: str) -> None:
    name = f"words-{runtime}"
    shared.run(name, "sh", "-c", "echo last-words; exit 3", runtime=runtime)
    shared.wait_state(name, "failed")

    wait_for(lambda: "last-words" in shared.ok("logs", name), 10, "its words")


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_following_logs_shows_each_line_once_and_ends_with_the_launch(shared: Instance, runtime: str) -> None:
    name = f"follow-{runtime}"
    go = shared.path / f"go-{runtime}"
    script = f"echo one; while [ ! -e {go} ]; do sleep 0.05; done; echo two; sleep 1.5; echo three; sleep 1.5"
    shared.run(name, "sh", "-c", script, runtime=runtime)
    got: list[str] = []
    process = subprocess.Popen([*VIGIL, "logs", "-f", name], env=shared.env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    reader = threading.Thread(target=lambda: got.extend(process.stdout or []))
    reader.start()
    wait_for(lambda: "one\n" in got, 10, "the first line", lambda: got)

    go.touch()

    assert process.wait(20) == 0
    reader.join()
    process.stdout.close()
    assert "".join(got).rstrip("\n") == "one\ntwo\nthree", got  # and nothing of tmux's own


def test_the_output_of_a_headless_agent_stays_bounded_on_disk_and_its_end_readable(shared: Instance) -> None:
    flood = "for n in range(96): sys.stdout.write(('y' * 1023 + '\\n') * 1024)"
    script = f"import sys, time\n{flood}\nprint('the end', flush=True)\ntime.sleep(1000)"
    session = shared.run("flood", sys.executable, "-c", script, runtime="headless")
    path = shared.home.launch(session["launch"]) / "stdout.jsonl"
    wait_for(lambda: path.stat().st_size > 96 << 20, 20, "the flood")

    wait_for(lambda: path.stat().st_blocks * 512 <= 17 << 20, 20, "its head to be released", lambda: path.stat())

    assert path.stat().st_size > 96 << 20
    assert shared.ok("logs", "-n", "1", "flood") == "the end\n"
    assert shared.get("flood")["state"] == "running"
    assert shared.get("flood")["last_activity_at"] is not None


def test_a_pipe_behind_run_is_not_held_open(vigil: Instance) -> None:
    command = " ".join(VIGIL) + " run --name a -- sleep 1000 | cat"

    done = subprocess.run(["sh", "-c", command], env=vigil.env, capture_output=True, text=True, timeout=30)

    assert done.stdout == "a\n"
    assert vigil.get("a")["state"] == "running"


def test_a_reader_that_has_seen_enough_is_no_failure(shared: Instance) -> None:
    shared.run("read", "sh", "-c", "echo something; exec sleep 1000")
    gone, pipe = os.pipe()
    os.close(gone)

    for words in (["get", "read"], ["events"], ["logs", "read"], ["ls", "-o", "json"]):
        done = subprocess.run([*VIGIL, *words], env=shared.env, stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=20)
        assert (done.returncode, done.stderr) == (0, ""), words
    os.close(pipe)
