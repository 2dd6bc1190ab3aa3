"""Daemon and keeper understand each other however their bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.keeper.wire import LINE_BYTES, Lines, Malformed, Message, decode, encode

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.lists(st.dictionaries(st.text(), VALUES, max_size=4), max_size=5)


def read(lines: Lines, data: bytes) -> list[Message]:
    return [decode(line) for line in lines.feed(data)]


@given(MESSAGES, st.lists(st.integers(0, 400), max_size=8))
def test_messages_arrive_as_they_were_sent_wherever_the_stream_is_cut(messages: list[Message], cuts: list[int]) -> None:
    stream = b"".join(map(encode, messages))
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    lines = Lines()

    found = [message for start, end in pairwise(places) for message in read(lines, stream[start:end])]

    assert found == messages


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_a_message_is_one_line(message: Message) -> None:
    assert encode(message).count(b"\n") == 1
    assert encode(message).endswith(b"\n")


def test_a_name_that_is_no_text_survives() -> None:
    """A path of arbitrary bytes, as Python holds it."""
    assert read(Lines(), encode({"folder": "/tmp/\udcff"})) == [{"folder": "/tmp/\udcff"}]


def test_half_a_message_is_waited_for() -> None:
    lines = Lines()

    assert read(lines, b'{"id": 1') == []
    assert read(lines, b"") == []
    assert read(lines, b'}\n{"id": 2') == [{"id": 1}]
    assert read(lines, b"}\n") == [{"id": 2}]


def test_empty_lines_are_nothing() -> None:
    assert read(Lines(), b"\n\n{}\n\n") == [{}]


@pytest.mark.parametrize(
    "line",
    [b"hello", b"{", b"[]", b"1", b'"text"', b"null", b"\xff\xfe", b"{'a': 1}", b"{} {}", b"[" * 100_000, b'{"a":' * 100_000],
    ids=lambda line: repr(line[:12]),
)
def test_a_line_that_is_no_message_is_malformed_and_those_beside_it_are_read(line: bytes) -> None:
    before, found, after = Lines().feed(b'{"id":1}\n' + line + b'\n{"id":2}\n')

    with pytest.raises(Malformed):
        decode(found)
    assert [decode(before), decode(after)] == [{"id": 1}, {"id": 2}]


def test_a_line_without_end_is_malformed_and_does_not_fill_the_memory() -> None:
    lines = Lines()
    chunk = b"x" * 65536

    with pytest.raises(Malformed, match="a line without end"):
        for _ in range(LINE_BYTES // len(chunk) + 2):
            lines.feed(chunk)


def test_a_message_may_be_long() -> None:
    message = {"watches": ["x" * 1000] * 900}
    data = encode(message)
    lines = Lines()

    found = [message for start in range(0, len(data), 65536) for message in read(lines, data[start : start + 65536])]

    assert found == [message]
