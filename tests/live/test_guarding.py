"""The kill that a tmux server compares itself: everything must be as it was, and whatever it does not say is unknown."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live.instance import alive, wait_for
from vigil.core.model.sighting import Guard
from vigil.runtimes.tmux.guard import Use, compare_and_kill, order, parse_answer, parse_use, read_use, why_spared

BARE = {"PATH": os.environ["PATH"], "LC_ALL": "C"}  # as a service manager or cron has it
TAG = "s1-1"


class Server:
    """A tmux server with one quiet session that bears our mark."""

    def __init__(self, folder: Path) -> None:
        self.socket = str(folder / "s")
        self.pid = int(self.run("-f", "/dev/null", "new-session", "-d", "-s", "agent", "-P", "-F", "#{pane_pid}", "sleep 1000"))
        self.run("set-option", "-g", "@vigil_launch", TAG)

    def run(self, *words: str) -> str:
        return subprocess.run(["tmux", "-S", self.socket, *words], env=BARE, capture_output=True, text=True, timeout=10).stdout

    async def call(self, *words: str, stdin: bytes = b"") -> bytes | None:
        argv = ["tmux", "-u", "-N", "-S", self.socket, *words]
        done = await asyncio.to_thread(subprocess.run, argv, env=BARE, input=stdin, capture_output=True)
        return done.stdout if done.returncode == 0 else None

    async def use(self, whole_server: bool = True) -> Use:
        found = await read_use(self.call, "%0", whole_server)
        assert found is not None
        return found

    def control(self) -> subprocess.Popen[bytes]:
        """Attach in control mode, as a person's editor does."""
        client = subprocess.Popen(
            ["tmux", "-S", self.socket, "-C", "attach"], env=BARE, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        wait_for(lambda: self.run("list-clients"), 10, "a client")
        return client


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that is ended after the test."""
    found = Server(tmp_path)
    yield found
    found.run("kill-server")


def later() -> int:
    """Return a second after which nothing was printed."""
    return int(time.time()) + 1


@pytest.mark.parametrize("whole_server", [True, False])
async def test_what_is_as_it_was_is_killed_and_what_is_not_is_spared(server: Server, whole_server: bool) -> None:
    use = await server.use(whole_server)
    guard = Guard(use.target, later(), use.attached)
    spared = {
        "its tmux server holds another session": ("other-1", guard),
        "it printed": (TAG, Guard(use.target, use.printed, use.attached)),
        "a person attached": (TAG, Guard(use.target, later(), f"client-1{use.attached}")),
    }
    for why, (tag, wrong) in spared.items():
        done, said = await compare_and_kill(server.call, "%0", tag, wrong, whole_server)
        assert (done, why in why_spared(said, tag, wrong)) == ("spared", True), said
    late = parse_answer(await server.call(*order("%0", TAG, guard, whole_server, int(time.time()) - 1)))
    assert (late[0], "too late" in why_spared(late[1], TAG, guard)) == ("spared", True)
    assert (await compare_and_kill(server.call, "%0", TAG, Guard("$7", later(), use.attached), whole_server))[0] == "unknown"
    assert alive(server.pid)

    assert await compare_and_kill(server.call, "%0", TAG, guard, whole_server) == ("killed", "")
    wait_for(lambda: not alive(server.pid), 10, "its pane to end")


async def test_a_client_in_control_mode_is_a_person(server: Server) -> None:
    before = await server.use()
    client = server.control()
    try:
        use = await server.use()
        assert [one.pid for one in use.clients] == [client.pid]
        done, _ = await compare_and_kill(server.call, "%0", TAG, Guard(before.target, later(), before.attached), True)
        assert done == "spared"
    finally:
        client.kill()
        client.communicate()


async def test_a_spinner_does_not_spare_and_a_line_that_it_adds_does(server: Server, tmp_path: Path) -> None:
    more = tmp_path / "more"
    spinner = f"while :; do printf '\\r/'; test -e {more} && seq 100 && rm {more}; sleep 0.1; printf '\\r-'; sleep 0.1; done"
    server.run("respawn-pane", "-k", "-t", "%0", spinner)
    use = await wait_use(server, lambda found: found.printed >= int(time.time()))
    by_time = Guard(use.target, int(time.time()) - 1, use.attached)
    by_history = Guard(use.target, int(time.time()) - 1, use.attached, history=use.history)

    assert (await compare_and_kill(server.call, "%0", TAG, by_time, True))[0] == "spared", "whoever prints may be at work"
    more.touch()
    grown = await wait_use(server, lambda found: found.history > use.history and not more.exists())
    done, said = await compare_and_kill(server.call, "%0", TAG, by_history, True)
    assert (done, why_spared(said, TAG, by_history)) == ("spared", "it printed in the moment of the kill")
    still = Guard(use.target, int(time.time()) - 1, use.attached, history=grown.history)
    assert (await compare_and_kill(server.call, "%0", TAG, still, True))[0] == "killed"


async def wait_use(server: Server, holds: Callable[[Use], bool]) -> Use:
    """Wait until a server says so of a session."""
    async with asyncio.timeout(10):
        while not holds(found := await server.use()):
            await asyncio.sleep(0.02)
        return found


async def test_somebody_who_looks_from_another_session_of_the_same_server_counts(server: Server) -> None:
    before = await server.use()
    server.run("new-session", "-d", "-s", "beside", "sleep 1000")
    guard = Guard(before.target, later(), before.attached)

    assert (await compare_and_kill(server.call, "%0", TAG, guard, True))[0] == "spared", "another session was not there before"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "end\n",
        "use $0 %0 0 1\ntag x\nattached /\nwindow $0 @0 5\n",  # no end
        "use   \ntag \nattached \nend\n",  # empty fields
        "use $0 %1 0 1\ntag x\nattached /\nwindow $0 @0 5\nend\n",  # another pane
        "use $0 %0 0 1\ntag x\nattached /\nend\n",  # no window
        "use $0 %0 0 1\ntag x\nattached /\nwindow $0 @0 \nend\n",  # no second
        "use_$0_%0_0_1\ntag_x\nattached_/\nend\n",
        "access not allowed\n",
    ],
)
def test_an_answer_that_is_not_whole_says_nothing(answer: str) -> None:
    assert parse_use(answer, "%0", whole_server=True) is None
    assert parse_answer(answer.encode())[0] == "unknown"
