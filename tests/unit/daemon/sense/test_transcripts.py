"""Whether a session could go on with its conversation: asked of its adapter and of its files, in time whatever they do."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.builders import make_session, make_spec
from vigil.agents.adapters import ADAPTERS
from vigil.core.model.conversation import Kept, Transcript
from vigil.core.model.session import Session
from vigil.daemon.base.clock import Clock
from vigil.daemon.sense.transcripts import MOST_HUNG, Conversations

CONVERSATION = "6f1f6c62-1111-4222-8333-abcdefabcdef"
OTHER = "7f1f6c62-1111-4222-8333-abcdefabcdef"
PROMPT = {"type": "user", "uuid": "1", "sessionId": CONVERSATION, "message": {"role": "user", "content": "hello"}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of Claude Code with one conversation in it."""
    project = tmp_path / ".claude" / "projects" / "-"
    project.mkdir(parents=True)
    (project / f"{CONVERSATION}.jsonl").write_text(json.dumps(PROMPT) + "\n")
    return tmp_path


def conversations(home: Path, set_up: bool = True) -> Conversations:
    return Conversations(Clock(), lambda name: ADAPTERS[name], lambda _: set_up, lambda _: {"HOME": str(home)})


def session(*command: str, agent: str = "claude", conversation: str = CONVERSATION) -> Session:
    spec = replace(make_spec(command=command), agent=agent, cwd="/")
    return make_session(spec=spec, conversation=conversation)


def read(found: Conversations, of: Session) -> Transcript | None:
    return asyncio.run(found.read(of))


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        (("claude",), Kept.THERE),
        (("/opt/bin/claude", "--model", "x"), Kept.THERE),
        (("claude", "--resume", CONVERSATION), Kept.THERE),  # it names the same one itself
        (("claude", "--resume", OTHER), Kept.UNABLE),
        (("claude", "--continue"), Kept.UNABLE),
        (("npx", "claude"), Kept.THERE),
        (("npm", "exec", "claude"), Kept.UNABLE),  # npm would take our flags for its own
        (("claude", "mcp"), Kept.UNABLE),
    ],
)
def test_a_command_must_be_able_to_take_the_conversation(home: Path, command: tuple[str, ...], kept: Kept) -> None:
    found = read(conversations(home), session(*command))

    assert found is not None
    assert (found.kept, bool(found.why)) == (kept, kept is not Kept.THERE)


def test_an_agent_that_is_left_alone_or_cannot_resume_is_not_asked_to(home: Path) -> None:
    left_alone = read(conversations(home, set_up=False), session("claude"))
    generic = read(conversations(home), session("sleep", agent="generic"))
    nothing = read(conversations(home), session("claude", conversation=""))

    assert left_alone is not None and left_alone.kept is Kept.UNABLE
    assert generic is not None and generic.kept is Kept.UNABLE
    assert nothing is None


def test_what_is_gone_is_seen_to_be_gone_by_the_next_list(home: Path) -> None:
    found, one = conversations(home), session("claude")

    async def look() -> Kept:
        return (await found.peek([one]))[one.id].kept

    assert asyncio.run(look()) is Kept.THERE
    (home / ".claude" / "projects" / "-" / f"{CONVERSATION}.jsonl").unlink()
    assert asyncio.run(look()) is Kept.MISSING


@pytest.mark.parametrize(("way", "kept"), [("a link", Kept.UNKNOWN), ("another's", Kept.EMPTY), ("cut", Kept.EMPTY)])
def test_a_transcript_in_the_place_of_another_is_read_anew(home: Path, tmp_path: Path, way: str, kept: Kept) -> None:
    found, one = conversations(home), session("claude")
    path = home / ".claude" / "projects" / "-" / f"{CONVERSATION}.jsonl"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(path.read_text() * 2)
    assert asyncio.run(found.peek([one]))[one.id].kept is Kept.THERE

    if way == "a link":
        path.unlink()
        path.symlink_to(elsewhere)
    elif way == "another's":
        elsewhere.write_text(json.dumps({"type": "summary", "summary": "of another " * 50}) + "\n")
        elsewhere.replace(path)
    else:
        path.write_text('{"type": "mode"}\n')

    assert asyncio.run(found.peek([one]))[one.id].kept is kept


def test_a_conversation_that_a_command_names_is_known_before_it_is_launched(home: Path) -> None:
    found, env = conversations(home), {"HOME": str(home)}

    assert found.named_by(session("claude", "--resume", OTHER).spec, env) == OTHER
    assert found.named_by(session("claude").spec, env) == ""


def test_a_disk_that_hangs_is_unknown_in_time_and_holds_nobody_up(home: Path) -> None:
    goes_on = threading.Event()

    def hang(_: Session) -> Mapping[str, str]:
        goes_on.wait()
        return {"HOME": str(home)}

    found = Conversations(Clock(), lambda name: ADAPTERS[name], lambda _: True, hang)

    async def look() -> list[Transcript | None]:
        reading = [found.read(session("claude")) for _ in range(MOST_HUNG)]
        hung = await asyncio.gather(*reading)
        began = time.monotonic()
        more = await found.read(session("claude"))  # no thread is spent on it any more
        assert time.monotonic() - began < 1.0
        goes_on.set()
        return [*hung, more]

    answers = asyncio.run(look())

    assert {one.kept for one in answers if one is not None} == {Kept.UNKNOWN}
    assert len(answers) == MOST_HUNG + 1
