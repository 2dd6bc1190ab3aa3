"""Every message is the same value at both ends, also where one of them is of the version before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.keeper import protocol, records
from vigil.keeper.protocol import (
    ANSWERS,
    REQUESTS,
    WORDS,
    Answer,
    Born,
    CloseInputRequest,
    DoneAnswer,
    ExitWord,
    ForgetAnswer,
    ForgetRequest,
    KillFacts,
    LaunchOrder,
    PingAnswer,
    PingRequest,
    QuitRequest,
    RefusedAnswer,
    Request,
    SnapshotWord,
    SpawnRequest,
    UpgradeRequest,
    Watch,
    WatchRequest,
    Word,
)
from vigil.keeper.wire import (
    FIELD_KINDS,
    OPTIONAL,
    Malformed,
    Message,
    as_json,
    decode,
    encode_answer,
    encode_request,
    encode_word,
    number_in,
    read,
    read_answer,
    read_request,
    read_word,
)

# What a daemon and a keeper of protocol version 3, before messages were typed, said to each other.
RECORDED = Path(__file__).parents[2] / "samples" / "keeper" / "version-3.txt"
KILL = KillFacts(named=False, line=None, cgroup="/a", cgroup_kills=0, host_kills=0)
EXIT = ExitWord("s1-1", "agent", 5, 7, 9, "pidfd", 17.5, 3.25)
REQUESTED: list[Request] = [
    PingRequest(),
    SpawnRequest("s1-1", "/tmp/\udcff"),
    WatchRequest(()),
    WatchRequest((Watch("s1-1", "/f", "agent", 5, 7), Watch("s1-1", "/f", "inner", 6, 8))),
    ForgetRequest("s1-1"),
    ForgetRequest("s1-1", removing=True),
    CloseInputRequest("s1-1"),
    QuitRequest(),
    UpgradeRequest(),
]
ANSWERED: list[tuple[Request, Answer]] = [
    (PingRequest(), PingAnswer(3, 4711, 2)),
    (SpawnRequest("s1-1", "/f"), Born((5, 7))),
    (SpawnRequest("s1-1", "/f"), Born((5, 7), (4, 6), (3, 5), "%0")),
    (WatchRequest(()), DoneAnswer()),
    (ForgetRequest("s1-1"), ForgetAnswer(None)),
    (ForgetRequest("s1-1"), ForgetAnswer(3760)),
    (CloseInputRequest("s1-1"), DoneAnswer()),
    (QuitRequest(), DoneAnswer()),
    (UpgradeRequest(), DoneAnswer()),
    *((request, RefusedAnswer("No such file or directory: exec")) for request in REQUESTED),
]
TOLD: list[Word] = [
    EXIT,
    EXIT._replace(status=None, source=""),
    EXIT._replace(boot_s=None, core=True, oom=KILL, unrecorded="[Errno 28] No space left on device"),
    SnapshotWord("s1-1"),
]


def is_same(one: object, other: object) -> bool:
    """Compare kinds too: of two messages without fields Python says that they are equal."""
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("request_", REQUESTED, ids=repr)
def test_a_request_arrives_as_it_was_sent(request_: Request) -> None:
    message = decode(encode_request(4, request_))

    assert is_same(read_request(message), request_)
    assert number_in(message, "id") == 4


@pytest.mark.parametrize(("request_", "answer"), ANSWERED, ids=repr)
def test_an_answer_arrives_as_it_was_given(request_: Request, answer: Answer) -> None:
    message = decode(encode_answer(4, answer))

    assert is_same(read_answer(request_, message), answer)
    assert number_in(message, "re") == 4


@pytest.mark.parametrize("word", TOLD, ids=repr)
def test_a_word_arrives_as_it_was_told(word: Word) -> None:
    assert is_same(read_word(decode(encode_word(word))), word)


def test_every_message_is_in_these_examples() -> None:
    assert {type(request) for request in REQUESTED} == set(REQUESTS.values()) == set(ANSWERS)
    assert {(type(request), type(answer)) for request, answer in ANSWERED} == {
        *ANSWERS.items(),
        *((request, RefusedAnswer) for request in ANSWERS),
    }
    assert {type(word) for word in TOLD} == set(WORDS.values())


def test_a_record_on_disk_says_what_the_keeper_tells(tmp_path: Path) -> None:
    exit_ = EXIT._replace(oom=KILL)
    records.record_exit(str(tmp_path), as_json(exit_))

    assert read(ExitWord, records.read_exits(str(tmp_path))["agent"]) == exit_


# An end of the version before


def recorded() -> Iterator[tuple[str, Message]]:
    """Return who said what, in order."""
    for line in RECORDED.read_text("ascii").splitlines():
        who, _, said = line.partition(" ")
        yield who, decode(said.encode())


def test_this_keeper_understands_the_daemon_before() -> None:
    asked = [message for who, message in recorded() if who == "daemon"]
    understood = [read_request(message) for message in asked if not is_broken(message)]

    assert {type(request) for request in understood} == set(REQUESTS.values())
    for request, message in zip(understood, (one for one in asked if not is_broken(one)), strict=True):
        written = decode(encode_request(message["id"], request))
        assert written == {key: value for key, value in message.items() if (key, value) != ("removing", False)}


def is_broken(message: Message) -> bool:
    """Say whether a request was made only to see it refused."""
    return message["do"] == "dance" or message.get("watches") == [{"launch": "x"}]


def test_this_daemon_understands_the_keeper_before_and_the_daemon_before_this_keeper() -> None:
    asked: dict[int, Message] = {}
    answers: list[Answer] = []
    words: list[Word] = []
    for who, message in recorded():
        if who == "daemon":
            asked[message["id"]] = message
        elif "ev" in message:
            words.append(read_word(message))
            assert decode(encode_word(words[-1])) == message
        else:
            request = asked[message["re"]]
            answers.append(read_answer(PingRequest() if is_broken(request) else read_request(request), message))
            if "error" not in message:
                assert decode(encode_answer(message["re"], answers[-1])) == message

    assert {type(answer) for answer in answers} == {*ANSWERS.values(), RefusedAnswer}
    assert {type(word) for word in words} == set(WORDS.values())
    assert [answer.why for answer in answers if isinstance(answer, RefusedAnswer)] == [
        "nobody holds its input open",
        "'dance'",
        "/nonexistent/launch.json cannot be read",
        "Watch.__new__() missing 4 required positional arguments: 'folder', 'role', 'pid', and 'start_ticks'",
    ]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"re": 1, "error": "a"}, "a"),
        ({"re": 1, "ok": False, "why": "a"}, "a"),
        ({"re": 1, "ok": False, "why": "a", "error": "b"}, "a"),
        ({"re": 1, "ok": False, "why": "", "error": "b"}, "b"),
        ({"re": 1, "ok": False}, "no reason given"),
        ({"re": 1}, "no reason given"),
    ],
)
def test_a_refusal_says_why_in_the_words_of_either_version(message: Message, why: str) -> None:
    assert is_same(read_answer(CloseInputRequest("s1-1"), message), RefusedAnswer(why))


def test_an_order_from_before_is_read() -> None:
    headless = {"runtime": "headless", "argv": ["cat"], "env": {"A": "b"}, "cwd": "/", "stdin": "fifo", "session": "x"}
    tmux = {"runtime": "tmux", "argv": ["tmux", "-u"], "env": {}, "cwd": "/", "declared": {}}

    assert read(LaunchOrder, headless) == LaunchOrder("headless", ("cat",), {"A": "b"}, "/", "fifo")
    assert read(LaunchOrder, tmux) == LaunchOrder("tmux", ("tmux", "-u"), {}, "/", None)
    for order in (headless, tmux):  # and a keeper from before finds all that it asks for
        written = as_json(read(LaunchOrder, order))
        assert {key: written[key] for key in order if key in written} == {key: order[key] for key in written if key in order}


# What is not understood


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"id": 1}, "do None is not known"),
        ({"do": "dance"}, "do 'dance' is not known"),
        ({"do": ["ping"]}, "do ['ping'] is not known"),
        ({"do": "x" * 500}, "do 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx is not known"),
        ({"do": "spawn", "launch": "s1-1"}, "spawn: folder is not a text: None"),
        ({"do": "spawn", "launch": 7, "folder": "/f"}, "spawn: launch is not a text: 7"),
        ({"do": "watch"}, "watch: watches is not a list of objects: None"),
        ({"do": "watch", "watches": ["a"]}, "watch: watches is not a list of objects: ['a']"),
        ({"do": "watch", "watches": [{"launch": "x"}]}, "watch: folder is not a text: None"),
        (
            {"do": "watch", "watches": [{"launch": "x", "folder": "/f", "role": "agent", "pid": True, "start_ticks": 1}]},
            "watch: pid is not a whole number: True",
        ),
        ({"do": "forget", "launch": "x", "removing": 1}, "forget: removing is not true or false: 1"),
        ({"do": "close-input"}, "close-input: launch is not a text: None"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_request_that_is_not_understood_says_why(message: Message, why: str) -> None:
    with pytest.raises(Malformed) as error:
        read_request(message)

    assert str(error.value) == why


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"ev": "dance"}, "ev 'dance' is not known"),
        ({"ev": "snapshot"}, "snapshot: launch is not a text: None"),
        ({"ev": "exit", **as_json(EXIT), "at": None}, "exit: at is not a moment: None"),
        ({"ev": "exit", **as_json(EXIT), "at": 10**400}, "exit: at is not a moment: " + "1" + "0" * 59),
        ({"ev": "exit", **as_json(EXIT), "status": "9"}, "exit: status is not a whole number: '9'"),
        ({"ev": "exit", **as_json(EXIT), "oom": 1}, "exit: oom is not an object: 1"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_word_that_is_not_understood_says_why(message: Message, why: str) -> None:
    with pytest.raises(Malformed) as error:
        read_word(message)

    assert str(error.value) == why


def test_an_answer_that_lacks_something_is_malformed() -> None:
    with pytest.raises(Malformed, match="watching is not a whole number: None"):
        read_answer(PingRequest(), {"re": 1, "ok": True, "version": 3, "pid": 5})
    with pytest.raises(Malformed, match="agent is not a pid and its start ticks: None"):
        read_answer(SpawnRequest("s1-1", "/f"), {"re": 1, "ok": True})


def test_an_order_that_is_not_understood_does_not_show_what_may_be_secret() -> None:
    for key in ("argv", "env"):
        order: Message = {"runtime": "headless", "argv": ["a"], "env": {}, "cwd": "/", "stdin": None} | {
            key: {"KEY": ["hunter2"]}
        }
        with pytest.raises(Malformed, match=f"{key} is not an? .* of texts$"):
            read(LaunchOrder, order)


FIELDS = sorted({field for kind in (*REQUESTS.values(), *WORDS.values(), Born, Watch) for field in kind._fields})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6),
    max_leaves=20,
)
ANY = st.dictionaries(st.sampled_from(FIELDS), JSON)


@given(ANY, st.sampled_from([*REQUESTS, *WORDS, "dance"]), st.sampled_from(REQUESTED))
def test_whatever_comes_is_understood_or_malformed(message: dict[str, Any], name: str, request_: Request) -> None:
    def try_to(work: Any, *about: object) -> None:
        try:
            work(*about)
        except Malformed:
            pass

    try_to(read_request, {**message, "do": name})
    try_to(read_word, {**message, "ev": name})
    try_to(read_answer, request_, {**message, "ok": True})


def test_every_field_of_every_message_has_a_reader() -> None:
    kinds = [kind for kind in vars(protocol).values() if isinstance(kind, type) and hasattr(kind, "_fields")]

    assert len(kinds) == 18
    assert {wanted for kind in kinds for wanted in kind.__annotations__.values()} <= {*FIELD_KINDS, *OPTIONAL}
