"""The contract of adapters, over every one there is (agents/contract.py)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.samples.golden import agents, golden, reading_of, sample_files, samples
from vigil.agents.adapters import ADAPTERS
from vigil.agents.contract import Adapter, Beginning, Place
from vigil.agents.kinds import KINDS
from vigil.core.model.speech import Said, What
from vigil.doctor.machine import AGENTS
from vigil.manifest.contradictions import REPORTING, RESUMING
from vigil.text import CONTROL

Read = Callable[[dict[str, Any]], Iterable[Said]]
NOTHING = Adapter("nothing")
READINGS = {
    f"{adapter.name} {name}": getattr(adapter, name)
    for adapter in ADAPTERS.values()
    for name in ("read_hook", "read_stream", "read_entry")
    if getattr(adapter, name) is not getattr(NOTHING, name)
}
FILES = [path for agent in agents() for path in sample_files(agent)]
EVENTS = [event for path in FILES for _, event in samples(path)]
STARTED = [adapter for adapter in ADAPTERS.values() if adapter.command]
ID = "11111111-2222-4333-8444-555555555555"
FOLDER = "/home/me/.vigil/launches/1 of a"
HOOK = ("sh", "/home/me/.vigil/hook.sh")
PLACE = Place("/work/of mine", {"HOME": "/home/me"})
MOST_CHARS = 300
NAMES = ("hook_event_name", "type", "event", "kind")
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))
tables = st.dictionaries(st.text(), values, max_size=5)
# Words that mean something to one of them, and words that do not. Claude Code's --settings is the one that is replaced.
WORDS = (
    "run exec e resume fork review login mcp -p --print -c --continue -r --resume --session --session-id -s read-only -i -o"
    " --json stream-json --output-format --format json --mode --pure --no-session -m model -e --extension -- - --config"
)
commands = st.lists(st.sampled_from([*WORDS.split(), "hooks.Stop=[]", "a prompt", "", "--a-flag-of-the-future=x"]), max_size=8)


def texts_of(said: Said) -> tuple[str, ...]:
    return (said.name, said.id, said.text, said.conversation, said.subagent)


def test_an_adapter_is_all_it_takes_for_a_kind_of_agent() -> None:
    with_samples = {name for name, adapter in ADAPTERS.items() if adapter.command}

    assert {name: adapter.command for name, adapter in ADAPTERS.items()} == {name: kind.command for name, kind in KINDS.items()}
    assert with_samples == {*agents()} == {*KINDS} - {"generic"}
    assert with_samples == REPORTING == RESUMING
    assert with_samples == {*AGENTS}, "the doctor looks for their programs"


# Reading


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_sample_says_what_was_reviewed(path: Path) -> None:
    assert golden(path) == path.with_suffix(".golden").read_text("utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_kind_in_the_samples_is_unknown(path: Path) -> None:
    read = reading_of(path)

    assert [event for _, event in samples(path) if any(said.what is What.UNKNOWN for said in read(event))] == []


@pytest.mark.parametrize("reading", READINGS)
@settings(max_examples=50)
@given(event=tables)
def test_any_json_is_read(reading: str, event: dict[str, Any]) -> None:
    assert all(isinstance(said, Said) for said in READINGS[reading](event))


@pytest.mark.parametrize("reading", READINGS)
@settings(max_examples=100)
@given(data=st.data())
def test_a_sample_in_which_anything_was_replaced_is_read_into_short_lines(reading: str, data: st.DataObject) -> None:
    event = json.loads(json.dumps(data.draw(st.sampled_from(EVENTS))))
    inside = event
    for _ in range(data.draw(st.integers(0, 3))):
        deeper = [value for value in inside.values() if isinstance(value, dict) and value]
        inside = data.draw(st.sampled_from(deeper)) if deeper else inside
    inside[data.draw(st.sampled_from(sorted(inside)))] = data.draw(values)

    for said in READINGS[reading](event):
        for text in texts_of(said):
            assert len(text) <= MOST_CHARS
            assert not CONTROL.search(text) and "\n" not in text
            text.encode()


@pytest.mark.parametrize("reading", READINGS)
def test_a_kind_of_the_future_is_unknown_with_its_name(reading: str) -> None:
    (said,) = READINGS[reading](dict.fromkeys(NAMES, "kind.of.the.future"))

    assert (said.what, said.name) == (What.UNKNOWN, "kind.of.the.future")


# Where the words of people, tools and models stand, of all agents.
PRIVATE = (
    "prompt command cmd content text arguments output aggregated_output last_assistant_message last-assistant-message"
    " last_agent_message input-messages prompt_response delta thinking llmContent returnDisplay resultDisplay description title"
    " justification parameters input args raw result tool_input tool_response"
)
ABOUT_ERRORS = frozenset({What.ERROR, What.LIMIT, What.AUTH, What.RETRIES})
SECRET = "what nobody else is to know"


def with_secrets(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: with_secrets(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_secrets(inner, key) for inner in value]
    return SECRET if isinstance(value, str) and key in PRIVATE.split() else value


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_prompt_no_input_and_no_answer_is_told(path: Any) -> None:
    read = reading_of(path)
    for _, event in samples(path):
        if any(said.what in ABOUT_ERRORS or said.failed for said in read(event)):
            continue  # the words of an error are told, and stand where answers do
        for said in read(with_secrets(event)):
            assert not any(SECRET in text for text in texts_of(said)), (event, said)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_starts_a_tool_and_what_ends_it_have_the_same_id(path: Any) -> None:
    read = reading_of(path)
    started: dict[str, set[str]] = {}
    ended: dict[str, set[str]] = {}
    for scenario, event in samples(path):
        for said in read(event):
            if said.what in (What.TOOL_STARTED, What.TOOL_ENDED):
                (started if said.what is What.TOOL_STARTED else ended).setdefault(scenario, set()).add(said.id)

    if path.parent.name in ("codex", "gemini", "opencode", "pi"):  # of the others one sample of each kind is kept
        assert {scenario: started[scenario] for scenario in started if scenario in ended} == {
            scenario: ended[scenario] for scenario in started if scenario in ended
        }


# Starting


def beginning(command: Iterable[str], **more: Any) -> Beginning:
    known: dict[str, Any] = {"place": PLACE, "folder": FOLDER, "headless": False, "conversation": ID, "hook": HOOK}
    return Beginning(tuple(command), **{**known, **more})


def is_within(words: tuple[str, ...], command: tuple[str, ...]) -> bool:
    """Say whether all words stand in a command, in their order."""
    left = iter(command)
    return all(word in left for word in words)


@pytest.mark.parametrize("adapter", STARTED, ids=lambda adapter: adapter.name)
@given(words=commands, headless=st.booleans(), resume=st.booleans(), conversation=st.sampled_from([ID, "", "-x", "a/b"]))
def test_the_users_own_words_stay_in_their_order(
    adapter: Adapter, words: list[str], headless: bool, resume: bool, conversation: str
) -> None:
    command = (adapter.command[0], *words)

    start = adapter.begin(beginning(command, headless=headless, resume=resume, conversation=conversation))

    assert start.command[0] == command[0]
    assert is_within(command, start.command)
    assert "-x" not in start.command and "a/b" not in start.command  # what an agent said of itself is never a flag


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda adapter: adapter.name)
@pytest.mark.parametrize(
    "wrapper", [("sh", "-c", "{}"), ("npx", "{}"), ("node", "/usr/bin/{}"), ("{}-wrapper",), ("env", "A=1", "{}", "-p"), ()]
)
def test_a_wrapper_is_left_alone_and_that_is_said(adapter: Adapter, wrapper: tuple[str, ...]) -> None:
    command = tuple(word.format(adapter.name) for word in wrapper)
    for headless, resume in product((False, True), repeat=2):
        start = adapter.begin(beginning(command, headless=headless, resume=resume))

        assert (start.command, dict(start.env), dict(start.files), start.conversation) == (command, {}, {}, "")
        assert start.without or not adapter.command


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda adapter: adapter.name)
@given(words=commands)
def test_files_lie_below_the_launchs_folder(adapter: Adapter, words: list[str]) -> None:
    for env in (PLACE.env, {"HOME": "/root"}):
        command = (*(adapter.command[:1] or ("anything",)), *words)
        start = adapter.begin(beginning(command, place=Place("/work", env)))

        assert all(name and "/" not in name and not name.startswith(".") for name in start.files)
        assert all(isinstance(text, str) for text in start.files.values())


@pytest.mark.parametrize("adapter", STARTED, ids=lambda adapter: adapter.name)
def test_what_it_is_started_with_is_set_up_without_a_word_missing(adapter: Adapter) -> None:
    start = adapter.begin(beginning(adapter.command, place=Place("/work", {"HOME": "/root"})))

    assert [line for line in start.without if not line.startswith("hooks: gemini runs them only")] == []
    assert adapter.has_hooks


@pytest.mark.parametrize("adapter", STARTED, ids=lambda adapter: adapter.name)
def test_a_conversation_is_resumed_by_its_id(adapter: Adapter) -> None:
    start = adapter.begin(beginning(adapter.command, resume=True))

    assert adapter.resumes
    assert start.conversation == ID
    assert start.command.count(ID) == 1


# Transcripts


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda adapter: adapter.name)
def test_transcripts_lie_in_the_agents_own_folders(adapter: Adapter) -> None:
    for pattern in adapter.transcripts(PLACE, ID):
        assert pattern.startswith(f"/home/me/.{adapter.name}/")
        assert ".." not in pattern


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda adapter: adapter.name)
@pytest.mark.parametrize("conversation", ["", "..", "../../etc/passwd", "*", "a/b", "-x", "[a]", "x" * 5000, "a\nb", "\udc80"])
def test_what_is_no_id_has_no_transcript(adapter: Adapter, conversation: str) -> None:
    assert adapter.transcripts(PLACE, conversation) == ()


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda adapter: adapter.name)
def test_our_own_environment_is_never_asked(adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR", "QWEN_HOME"):
        monkeypatch.setenv(name, "/ours")

    assert adapter.transcripts(Place("/work", {}), ID) == ()
    assert adapter.transcripts(Place("/work", {"HOME": "relative"}), ID) == ()
