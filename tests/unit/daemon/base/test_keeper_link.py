"""The daemon learns why the keeper refused, whatever version it is of, and is not put off by what it does not understand."""

from __future__ import annotations

import asyncio
import fcntl
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from vigil.daemon.base.keeper_link import KeeperLink, KeeperRefused, KeeperSilent
from vigil.home import home_at, make_home
from vigil.keeper.protocol import (
    VERSION,
    CloseInputRequest,
    DoneAnswer,
    ForgetAnswer,
    ForgetRequest,
    PingAnswer,
    PingRequest,
    SnapshotWord,
    Watch,
    WatchRequest,
    Word,
)

SOON_S = 10.0
PONG = {"ok": True, "version": VERSION, "pid": 4711, "watching": 0}
Json = dict[str, Any]


class OldKeeper:
    """A server on the keeper's socket that answers as the keeper before did, or as a test says."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Json | bytes]] = {}
        self.asked: list[Json] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            message = json.loads(line)
            self.asked.append(message)
            for answer in self.answers.get(message["do"], [PONG if message["do"] == "ping" else {"ok": True}]):
                said = answer if isinstance(answer, bytes) else json.dumps({"re": message["id"], **answer}).encode() + b"\n"
                writer.write(said)
        writer.close()


class Scene:
    """A daemon's line to an old keeper, and what came of it."""

    def __init__(self, keeper: OldKeeper, link: KeeperLink, words: list[Word], events: list[tuple[str, Json]]) -> None:
        self.keeper = keeper
        self.link = link
        self.words = words
        self.events = events

    async def heard_all(self) -> None:
        """Wait until all that the keeper said before is read."""
        await self.link.ask(PingRequest(), SOON_S)


@pytest.fixture
async def scene(short: Path) -> AsyncIterator[Scene]:
    home, keeper = home_at(short), OldKeeper()
    make_home(home)
    words: list[Word] = []
    events: list[tuple[str, Json]] = []

    server = await asyncio.start_unix_server(keeper.serve, str(home.keeper_socket))
    link = KeeperLink(home, words.append, lambda kind, data: events.append((kind, data)), lambda: (), 1024)
    await link.connect()
    yield Scene(keeper, link, words, events)
    await link.close()
    server.close()
    await server.wait_closed()


async def test_answers_are_values(scene: Scene) -> None:
    scene.keeper.answers["forget"] = [{"ok": True, "peak_kb": 3760}]

    assert await scene.link.ask(PingRequest(), SOON_S) == PingAnswer(VERSION, 4711, 0)
    assert await scene.link.ask(ForgetRequest("s1-1"), SOON_S) == ForgetAnswer(3760)
    assert isinstance(await scene.link.ask(WatchRequest(()), SOON_S), DoneAnswer)


@pytest.mark.parametrize(
    "answer",
    [{"error": "nobody holds its input open"}, {"ok": False, "why": "nobody holds its input open"}],
    ids=["error", "why"],
)
async def test_the_reason_of_a_refusal_is_not_lost_in_whichever_word_it_comes(scene: Scene, answer: Json) -> None:
    scene.keeper.answers["close-input"] = [answer]

    with pytest.raises(KeeperRefused, match=r"^nobody holds its input open$"):
        await scene.link.ask(CloseInputRequest("s1-1"), SOON_S)


async def test_what_is_told_is_refused_in_an_event(scene: Scene) -> None:
    scene.keeper.answers["watch"] = [{"ok": False, "why": "there is no role 'x' to record an end of"}]

    scene.link.tell(WatchRequest((Watch("s1-1", "/f", "x", 5, 7),)))
    await scene.heard_all()

    assert scene.events == [("keeper.refused", {"pid": 4711, "why": "there is no role 'x' to record an end of"})]


async def test_what_is_refused_after_it_was_promised_is_an_event(scene: Scene) -> None:
    """An exec that fails, a watch that fails after the birth: the first answer was given in good faith."""
    scene.keeper.answers["watch"] = [{"ok": True}, {"ok": False, "why": "Too many open files"}]

    await scene.link.ask(WatchRequest(()), SOON_S)
    await scene.heard_all()

    assert scene.events == [("keeper.refused", {"pid": 4711, "why": "Too many open files"})]


async def test_an_answer_that_is_not_understood_is_none(scene: Scene) -> None:
    scene.keeper.answers["forget"] = [{"ok": True, "peak_kb": "much"}]

    with pytest.raises(KeeperSilent, match="an answer that is not understood: peak_kb is not a whole number: 'much'"):
        await scene.link.ask(ForgetRequest("s1-1"), SOON_S)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"ev":"dance","launch":"s1-1"}\n', "ev 'dance' is not known"),
        (b'{"ev":"exit","launch":"s1-1"}\n', "exit: role is not a text: None"),
        (b"[]\n", "not an object"),
        (b"hello\n", "not JSON: Expecting value: line 1 column 1 (char 0)"),
    ],
)
async def test_a_word_that_is_not_understood_is_an_event_and_the_line_holds(scene: Scene, line: bytes, why: str) -> None:
    known = b'{"ev":"snapshot","launch":"s1-1","role":"","pid":0}\n'
    scene.keeper.answers["watch"] = [line + known, {"ok": True}]

    await scene.link.ask(WatchRequest(()), SOON_S)

    assert scene.events == [("keeper.misunderstood", {"pid": 4711, "why": why})]
    assert scene.words == [SnapshotWord("s1-1")]


@pytest.mark.parametrize("refused", [{"ok": False, "why": "Too many open files"}, {"error": "Too many open files"}])
async def test_a_keeper_that_cannot_be_upgraded_goes_on_as_it_is(scene: Scene, refused: Json) -> None:
    scene.keeper.answers |= {"ping": [{**PONG, "version": 2}], "upgrade": [refused]}
    await scene.link.close()

    await scene.link.connect()

    assert [message["do"] for message in scene.keeper.asked] == ["ping", "ping", "upgrade", "ping"]
    assert scene.events == [("keeper.refused", {"pid": 4711, "why": "Too many open files"})]


HOLDS = """
import fcntl, os, sys, time
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(short: Path) -> Iterator[subprocess.Popen[str]]:
    """A keeper that lives, by its lock, and does not listen."""
    argv = [sys.executable, "-c", HOLDS, str(home_at(short).lock("keeper"))]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.parametrize("stands", ["nothing", "a file", "a folder", "another's socket"])
async def test_a_keeper_that_lives_and_cannot_be_reached_is_waited_for_and_never_doubled(
    short: Path, holder: subprocess.Popen[str], stands: str
) -> None:
    home = home_at(short)
    make_home(home)
    events: list[tuple[str, Json]] = []
    other = OldKeeper()
    server: asyncio.Server | None = None
    if stands == "a file":
        home.keeper_socket.touch()
    elif stands == "a folder":
        home.keeper_socket.mkdir()
    elif stands == "another's socket":
        server = await asyncio.start_unix_server(other.serve, str(home.keeper_socket))
    link = KeeperLink(home, print, lambda kind, data: events.append((kind, data)), lambda: (), 1024)

    await link.connect()

    assert ([kind for kind, _ in events], link.pid, link.wedged) == (["keeper.unreachable"], holder.pid, True)
    assert not (home.log / "keeper.log").exists(), "no second one was started"
    assert other.asked == [], "nothing was sent to another (P13)"
    with pytest.raises(KeeperSilent):
        await link.ask(PingRequest(), SOON_S)
    await link.connect()
    assert len(events) == 1, "it is told once"
    if server is not None:
        server.close()


async def test_a_keeper_whose_socket_comes_back_is_linked(short: Path) -> None:
    home = home_at(short)
    make_home(home)
    events: list[tuple[str, Json]] = []
    link = KeeperLink(home, print, lambda kind, data: events.append((kind, data)), lambda: (), 1024)
    with open(home.lock("keeper"), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        await link.connect()
        assert link.wedged

        server = await asyncio.start_unix_server(OldKeeper().serve, str(home.keeper_socket))
        await link.connect()

    assert ([kind for kind, _ in events], link.wedged, link.pid) == (["keeper.unreachable", "keeper.answers"], False, 4711)
    await link.close()
    server.close()
    await server.wait_closed()
