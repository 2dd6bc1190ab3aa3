"""The fake agent plays its scenarios as a real process, under real signals."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

DEADLINE_S = 30.0
COMMAND = (sys.executable, "-m", "vigil.fake_agent")


class Agent:
    """One fake agent with pipes, whose output is read with a deadline."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            # A test run under nohup ignores hangups, and the agent would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL) and None,
        )
        self.pid = self.process.pid
        self.heard = b""

    def hear(self) -> bytes:
        """Return what was printed since, or nothing at the end of output."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
        assert ready, f"no output within {DEADLINE_S} s, after {self.heard[-200:]!r}"
        return os.read(self.process.stdout.fileno(), 65536)

    def hear_until(self, text: bytes) -> bytes:
        """Return the output up to and with this text."""
        while text not in self.heard:
            more = self.hear()
            assert more, f"{text!r} never came: {self.heard[-200:]!r}"
            self.heard += more
        before, _, self.heard = self.heard.partition(text)
        return before + text

    def hear_lines(self, count: int) -> list[str]:
        return [self.hear_until(b"\n").decode().rstrip("\n") for _ in range(count)]

    def answer(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")

    def signal(self, sig: signal.Signals) -> None:
        self.process.send_signal(sig)

    def end(self) -> tuple[int, bytes, bytes]:
        """Return how it ended (negative: by that signal), and the rest of its output."""
        stdout, stderr = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, self.heard + stdout, stderr

    def remove(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


Start = Callable[..., Agent]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start `vigil fake-agent` with these arguments; whatever still lives at the end is killed."""
    agents: list[Agent] = []
    clean = {name: value for name, value in os.environ.items() if not name.startswith("VIGIL_")}

    def start_agent(*args: str, env: dict[str, str] | None = None, command: tuple[str, ...] = COMMAND) -> Agent:
        agents.append(Agent([*command, *args], clean | (env or {})))
        return agents[-1]

    yield start_agent
    for agent in agents:
        agent.remove()


Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a scenario of these steps; return its path."""

    def write_scenario(text: str) -> str:
        path = tmp_path / "scenario.toml"
        path.write_text(f'about = "a test"\n{text}', "utf-8")
        return str(path)

    return write_scenario


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        time.sleep(0.01)


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def asleep(pid: int) -> bool:
    return status_of(pid)["State"].startswith("S")


def waits_of(pid: int) -> int:
    return int(status_of(pid)["voluntary_ctxt_switches"])


def ignores(pid: int, sig: signal.Signals) -> bool:
    return bool(int(status_of(pid)["SigIgn"], 16) >> (sig - 1) & 1)


def cpu_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


# Shipped scenarios


def test_works_prints_progress_and_dies_of_ctrl_c(start: Start) -> None:
    agent = start("works", "--set", "every=0.01", "--set", "burn=0.01")
    assert agent.hear_lines(6) == [*(f"round 1: file {n} of 5 read" for n in range(1, 6)), "round 2: file 1 of 5 read"]

    agent.signal(signal.SIGINT)

    code, _, stderr = agent.end()
    assert (code, stderr) == (-signal.SIGINT, b"")


def test_finishes_works_and_exits_with_0(start: Start) -> None:
    code, stdout, stderr = start("finishes", "--set", "lines=2", "--set", "every=0").end()

    assert (code, stdout, stderr) == (0, b"part 1 of 2 written\npart 2 of 2 written\nall done\n", b"")


def test_crashes_leaves_a_traceback_on_stderr_and_its_code(start: Start) -> None:
    code, stdout, stderr = start("crashes", "--set", "every=0").end()

    assert code == 3
    assert stdout.startswith(b"turn 1: thinking\n")
    assert stderr.startswith(b"Traceback (most recent call last):\n")


def test_exits_at_birth_says_nothing(start: Start) -> None:
    assert start("exits-at-birth").end() == (1, b"", b"")
    assert start("exits-at-birth", "--set", "code=77").end() == (77, b"", b"")


@pytest.mark.parametrize("name", ["SEGV", "ABRT", "KILL", "TERM"])
def test_segfaults_dies_of_a_real_signal(start: Start, name: str) -> None:
    code, _, stderr = start("segfaults", "--set", "after=0", "--set", f"signal={name}").end()

    assert (code, stderr) == (-signal.Signals[f"SIG{name}"], b"")


def test_stubborn_lives_on_after_term_int_and_hup(start: Start) -> None:
    agent = start("stubborn", "--set", "every=0.01")
    agent.hear_lines(1)

    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        agent.signal(sig)

    assert lives_on(agent)
    agent.signal(signal.SIGKILL)
    assert agent.end()[0] == -signal.SIGKILL


def test_deaf_to_hangup_ignores_hup_and_nothing_else(start: Start) -> None:
    agent = start("deaf-to-hangup", "--set", "every=0.01")
    agent.hear_lines(1)

    agent.signal(signal.SIGHUP)

    assert lives_on(agent)
    agent.signal(signal.SIGTERM)
    assert agent.end()[0] == -signal.SIGTERM


def lives_on(agent: Agent) -> bool:
    """Tell whether it prints two lines more than were already on their way."""
    assert agent.process.stdout is not None
    while select.select([agent.process.stdout], [], [], 0)[0]:
        assert agent.hear(), "it has ended"
    agent.heard = b""
    agent.hear_until(b"\n")
    agent.hear_until(b"\n")
    return agent.process.poll() is None


def test_waits_for_input_asks_until_the_expected_answer_comes(start: Start) -> None:
    agent = start("waits-for-input", "--set", "code=9")
    agent.hear_until(b"(yes/no) ")

    agent.answer("perhaps")
    assert agent.hear_until(b"(yes/no) ") == b"perhaps\nDo you want to proceed? (yes/no) "
    agent.answer("yes")

    assert agent.end()[:2] == (9, b"yes\n")


def test_busy_burns_cpu(start: Start) -> None:
    agent = start("busy")

    wait_until(lambda: cpu_s(agent.pid) > 0.5, "half a second of CPU")


def test_busy_at_a_fraction_leaves_the_rest(start: Start) -> None:
    agent = start("busy", "--set", "seconds=1", "--set", "fraction=0.1")
    _, _, usage = os.wait4(agent.pid, 0)
    agent.process.returncode = 0  # its status was taken here, for the sake of its CPU time

    assert usage.ru_utime + usage.ru_stime < 0.45  # a tenth of a second, and what it costs to start


def test_silent_says_nothing(start: Start) -> None:
    assert start("silent", "--set", "seconds=0").end() == (0, b"", b"")


def test_silent_sleeps_until_it_is_told_to_end(start: Start) -> None:
    agent = start("silent")
    wait_until(lambda: asleep(agent.pid), "sleep")

    agent.signal(signal.SIGTERM)

    assert agent.end() == (-signal.SIGTERM, b"", b"")


def test_chatty_prints_escapes_invalid_utf_8_and_one_huge_line(start: Start) -> None:
    code, stdout, stderr = start("chatty").end()

    assert (code, stderr) == (0, b"")
    assert stdout.count(b"\x1b[K") == 2000
    assert b"x" * 10_000_000 in stdout.split(b"\n")
    with pytest.raises(UnicodeDecodeError):
        stdout.decode()


def test_a_reader_that_goes_away_is_no_reason_to_stop(start: Start, write: Write, tmp_path: Path) -> None:
    done = tmp_path / "done"
    agent = start(
        write(
            f"""
            [[step]]
            print = {{ size = 1_000_000 }}
            repeat = 3
            [[step]]
            append = {{ path = "{done}", text = "done" }}
            [[step]]
            exit = 4
            """
        )
    )
    agent.hear()

    assert agent.process.stdout is not None
    agent.process.stdout.close()

    assert agent.process.wait(DEADLINE_S) == 4
    assert agent.process.stderr is not None
    assert agent.process.stderr.read() == b""
    assert done.read_text() == "done\n"


def test_a_closed_stdout_is_not_taken_over_by_a_socket(start: Start, write: Write) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE_S)
        scenario = write(f"[[step]]\nconnect = {server.getsockname()[1]}\n[[step]]\nprint = 'x'\n[[step]]\nexit = 5")

        agent = start(scenario, command=("/bin/sh", "-c", 'exec "$@" >&-', "sh", *COMMAND))

        connection, _ = server.accept()
        with connection:
            connection.settimeout(DEADLINE_S)
            assert connection.recv(100) == b""
    assert agent.end() == (5, b"", b"")


def test_forks_leaves_three_children_behind(start: Start) -> None:
    agent = start("forks", "--set", "child_seconds=60")
    pids = [int(word) for word in agent.hear_lines(1)[0].split()[1:]]
    pidfds = [os.pidfd_open(pid) for pid in pids]
    try:
        plain, own_session, deaf = pids
        wait_until(lambda: all(status_of(pid)["Name"] == "sleep" for pid in pids), "all three are what they should be")
        assert os.getsid(own_session) == own_session
        assert os.getsid(plain) == os.getsid(deaf) == os.getsid(agent.pid)
        assert [ignores(pid, signal.SIGHUP) for pid in pids] == [False, False, True]

        agent.signal(signal.SIGKILL)
        agent.process.wait(DEADLINE_S)

        assert not select.select(pidfds, [], [], 0)[0], "a child ended with its parent"
    finally:
        for pidfd in pidfds:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            assert select.select([pidfd], [], [], DEADLINE_S)[0]
            os.close(pidfd)


def test_streams_is_one_turn_from_init_to_result(start: Start) -> None:
    code, stdout, _ = start("streams", "--set", "every=0", "--set", "conversation=c-1").end()

    events = [json.loads(line) for line in stdout.splitlines()]
    assert code == 0
    assert [event["type"] for event in events] == ["system", "assistant", "assistant", "user", "assistant", "result"]
    assert {event["session_id"] for event in events} == {"c-1"}
    assert len({event["uuid"] for event in events}) == len(events)
    assert events[0]["subtype"] == "init"
    assert events[0]["cwd"] == os.getcwd()
    call, answer = events[2]["message"]["content"][0], events[3]["message"]["content"][0]
    assert (call["type"], answer["type"], answer["tool_use_id"]) == ("tool_use", "tool_result", call["id"])
    assert (events[-1]["subtype"], events[-1]["is_error"], events[-1]["api_error_status"]) == ("success", False, None)


def test_leaks_holds_memory_that_is_really_used(start: Start) -> None:
    agent = start("leaks", "--set", "mb=8", "--set", "times=5", "--set", "every=0")

    agent.hear_until(b"holding 5 times 8 MB\n")

    assert int(status_of(agent.pid)["VmRSS"].split()[0]) > 40 * 1024


# Acts that no shipped scenario shows


def test_a_handled_signal_ends_it_after_a_delay_with_its_code(start: Start, write: Write) -> None:
    agent = start(
        write('[[step]]\nhandle = { signal = "TERM", exit = 143, after = 0.3 }\n[[step]]\nprint = "ready"\n[[step]]\nwait = 60')
    )
    agent.hear_lines(1)

    began = time.monotonic()
    agent.signal(signal.SIGTERM)
    wait_until(lambda: ignores(agent.pid, signal.SIGTERM), "it is leaving")
    agent.signal(signal.SIGTERM)

    assert agent.end()[0] == 143
    assert time.monotonic() - began >= 0.3


def test_an_unexpected_end_of_input_can_end_it(start: Start, write: Write) -> None:
    agent = start(write('[[step]]\nask = { prompt = "> ", at_eof = 8 }'))

    assert agent.end()[:2] == (8, b"> ")


def test_an_agent_whose_input_has_ended_goes_on_waiting(start: Start, write: Write) -> None:
    agent = start(write('[[step]]\nask = "> "\n[[step]]\nexit = 1'))
    agent.hear_until(b"> ")
    wait_until(lambda: asleep(agent.pid), "it reads")
    waits = waits_of(agent.pid)

    assert agent.process.stdin is not None
    agent.process.stdin.close()

    wait_until(lambda: waits_of(agent.pid) > waits and asleep(agent.pid), "it was woken, and waits again")
    assert agent.process.poll() is None


def test_a_connection_is_held_and_sends_again_and_again(start: Start, write: Write) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE_S)
        port = server.getsockname()[1]
        scenario = write(f'[[step]]\nconnect = {{ port = {port}, send = "tick\\n", every = 0.01 }}\n[[step]]\nwait = 60')
        start(scenario)

        connection, _ = server.accept()
        with connection:
            connection.settimeout(DEADLINE_S)
            heard = b""
            while heard.count(b"tick\n") < 3:
                more = connection.recv(100)
                assert more
                heard += more


def test_a_listener_can_be_connected_to_by_itself_and_by_others(start: Start, write: Write) -> None:
    agent = start(
        write(
            '[[step]]\nlisten = 2\n[[step]]\nconnect = { send = "tick", every = 0.01 }\n'
            '[[step]]\nprint = "${port}"\n[[step]]\nwait = 60'
        )
    )
    port = int(agent.hear_lines(1)[0])

    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S):
        pass
    sockets = [os.readlink(fd) for fd in Path(f"/proc/{agent.pid}/fd").iterdir()]
    assert sum(link.startswith("socket:") for link in sockets) == 4  # two listeners, and both ends of one connection


def test_a_connection_that_is_refused_is_one_line_with_its_place(start: Start, write: Write) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

        code, stdout, stderr = start(write(f"[[step]]\nconnect = {port}")).end()

    assert (code, stdout) == (1, b"")
    assert stderr.startswith(b"vigil: step[0].connect: ") and stderr.count(b"\n") == 1


def test_a_child_that_is_waited_for_ends_first(start: Start, write: Write) -> None:
    scenario = write(
        """
        [[step]]
        child = { scenario = "finishes", set = { lines = 1, every = 0 }, count = 2, wait = true }
        [[step]]
        print = "after"
        """
    )

    code, stdout, stderr = start(scenario).end()

    assert (code, stderr) == (0, b"")
    assert stdout.count(b"all done\n") == 2 and stdout.endswith(b"all done\nafter\n")


def test_a_child_that_cannot_be_started_is_one_line_with_its_place(start: Start, write: Write) -> None:
    code, _, stderr = start(write('[[step]]\nchild = ["/nowhere/at-all"]')).end()

    assert code == 1
    assert stderr == b"vigil: step[0].child: [Errno 2] No such file or directory: '/nowhere/at-all'\n"


def test_a_transcript_grows_line_by_line(start: Start, write: Write, tmp_path: Path) -> None:
    scenario = write(
        """
        [vars]
        home = "."
        [[step]]
        append = { path = "${home}/sub/t.jsonl", text = '{"n": ${n}, "session": "${session}"}' }
        repeat = 2
        """
    )

    code, _, _ = start(scenario, "--set", f"home={tmp_path}", env={"VIGIL_SESSION": "a/b/c/0"}).end()

    lines = (tmp_path / "sub" / "t.jsonl").read_text("utf-8").splitlines()
    assert code == 0
    assert [json.loads(line) for line in lines] == [{"n": 1, "session": "a/b/c/0"}, {"n": 2, "session": "a/b/c/0"}]


HOOK = '[[step]]\nhook = { hook_event_name = "Stop", at = "${now}" }\nrepeat = 2'


def test_a_hook_event_is_whole_when_it_appears_in_the_spool(start: Start, write: Write, tmp_path: Path) -> None:
    new = tmp_path / "spool" / "new"
    new.mkdir(parents=True)
    env = {"VIGIL_SPOOL": str(new.parent), "VIGIL_SESSION": "solo", "VIGIL_LAUNCH": "l-1"}

    code, _, _ = start(write(HOOK), env=env).end()

    assert code == 0
    assert all(path.suffix == ".json" and not path.name.startswith(".") for path in new.iterdir())
    events = [json.loads(path.read_text("utf-8")) for path in sorted(new.iterdir())]
    assert [event["event"]["hook_event_name"] for event in events] == ["Stop", "Stop"]
    assert all(event["session"] == "solo" and event["launch"] == "l-1" for event in events)
    assert all(event["event"]["at"].endswith("Z") for event in events)


def test_without_a_spool_a_hook_does_nothing(start: Start, write: Write) -> None:
    assert start(write(HOOK)).end() == (0, b"", b"")


def test_all_steps_are_played_as_often_as_the_script_says(start: Start, write: Write) -> None:
    scenario = write('repeat = 3\n[[step]]\nprint = "${round}"\n[[step]]\nprint = { text = "${round}", stderr = true }')

    assert start(scenario).end() == (0, b"1\n2\n3\n", b"1\n2\n3\n")


# The command line


def test_an_unknown_scenario_is_one_line_that_lists_the_known_ones(start: Start) -> None:
    code, stdout, stderr = start("wroks").end()

    assert (code, stdout) == (2, b"")
    assert stderr.startswith(b'vigil: there is no scenario "wroks". ') and b"works" in stderr
    assert stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ((), b"one SCENARIO is needed, not 0"),
        (("works", "silent"), b"one SCENARIO is needed, not 2"),
        (("works", "--loud"), b"there is no option --loud"),
        (("works", "--set"), b'--set needs NAME=VALUE, not ""'),
        (("works", "--set", "evry=1"), b"works: --set evry: the scenario has no such var; it has burn, every"),
        (("nowhere.toml",), b"nowhere.toml: No such file or directory"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(start: Start, args: tuple[str, ...], why: bytes) -> None:
    code, stdout, stderr = start(*args).end()

    assert (code, stdout) == (2, b"")
    assert stderr.startswith(b"vigil: " + why) and stderr.count(b"\n") == 1


def test_a_broken_scenario_is_refused_before_anything_is_played(start: Start, write: Write) -> None:
    code, stdout, stderr = start(write('[[step]]\nprint = "x"\n[[step]]\nwiat = 1')).end()

    assert (code, stdout) == (2, b"")
    assert b": step[1].wiat: unknown; " in stderr and stderr.endswith(b". Nothing was played.\n")


def test_the_list_has_a_line_for_each_shipped_scenario(start: Start) -> None:
    code, stdout, _ = start("--list").end()

    lines = stdout.decode().splitlines()
    assert code == 0
    assert len(lines) == 15
    assert "exits-at-birth   exits with 1 at once, without a word" in lines


def test_it_starts_without_what_its_steps_do_not_need(start: Start) -> None:
    _, _, imports = start("exits-at-birth", command=(sys.executable, "-X", "importtime", *COMMAND[1:])).end()

    imported = {line.rpartition(b"|")[2].strip() for line in imports.splitlines()}
    assert b"vigil.fake_agent.player" in imported
    assert not imported & {b"click", b"asyncio", b"json", b"socket", b"subprocess", b"threading", b"uuid", b"argparse"}
