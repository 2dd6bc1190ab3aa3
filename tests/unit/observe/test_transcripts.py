"""What an agent keeps of a conversation is read as it is: there, without a word, missing, or unknown; never a guess."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from vigil.agents.claude.transcript import read_entry
from vigil.core.model.conversation import Kept
from vigil.core.model.speech import Said, What
from vigil.observe.transcripts import read_transcript

CONVERSATION = "6f1f6c62-1111-4222-8333-abcdefabcdef"
PROMPT = {"type": "user", "uuid": "1", "sessionId": CONVERSATION, "message": {"role": "user", "content": "hello"}}
SNAPSHOT = {"type": "file-history-snapshot", "messageId": "1", "snapshot": {}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / f"{CONVERSATION}.jsonl"


def read(path: Path) -> Kept:
    return read_transcript(str(path), CONVERSATION, read_entry)[0]


def write(path: Path, *entries: object) -> None:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def test_a_conversation_with_one_prompt_in_it_is_there(path: Path) -> None:
    write(path, SNAPSHOT, PROMPT)

    assert read_transcript(str(path), CONVERSATION, read_entry) == (Kept.THERE, str(path))


def test_what_was_never_said_is_not_there(path: Path) -> None:
    assert read(path) is Kept.MISSING
    path.touch()
    assert read(path) is Kept.EMPTY
    write(path, SNAPSHOT)
    assert read(path) is Kept.EMPTY
    path.write_bytes(b'\xff\xfe\n{"type": "us')
    assert read(path) is Kept.EMPTY


def test_a_long_beginning_does_not_hide_a_conversation(path: Path) -> None:
    write(path, {"type": "system", "x": "y" * 1_000_000}, *[SNAPSHOT] * 3000, PROMPT)

    assert read(path) is Kept.THERE


def test_a_file_that_names_another_conversation_is_not_of_this_one(path: Path) -> None:
    write(path, {"of": "another"}, {"of": CONVERSATION})

    found, _ = read_transcript(str(path), CONVERSATION, lambda entry: [Said(What.PROMPT, conversation=entry["of"])])

    assert found is Kept.EMPTY


def test_a_link_to_elsewhere_is_not_read_and_not_called_missing(tmp_path: Path, path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere, PROMPT)
    path.symlink_to(elsewhere)

    assert read(path) is Kept.UNKNOWN


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_unknown(path: Path) -> None:
    write(path, PROMPT)
    path.chmod(0)

    assert read(path) is Kept.UNKNOWN


def test_of_many_files_one_that_speaks_is_enough(tmp_path: Path) -> None:
    for number, entry in enumerate((SNAPSHOT, PROMPT)):
        (tmp_path / f"{number}").mkdir()
        write(tmp_path / f"{number}" / "x.jsonl", entry)

    assert read_transcript(f"{tmp_path}/*/x.jsonl", CONVERSATION, read_entry)[0] is Kept.THERE
