"""Asking a tmux server for a screen, as messages (no server is needed: bytes in, bytes out)."""

from __future__ import annotations

import os
import struct

import pytest

from vigil.runtimes.tmux.screen import LARGEST_SCREEN, NotSpoken, ScreenRefused, Talk

VERSION, EXIT, SHUTDOWN, READ_OPEN, WRITE_OPEN, WRITE, WRITE_READY = 12, 203, 210, 300, 303, 304, 305


def message(kind: int, body: bytes = b"", protocol: int = 8) -> bytes:
    return struct.pack("<IHHIi", kind, 16 + len(body), 0, protocol, -1) + body


def integers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


OPEN = message(WRITE_OPEN, integers(1, 1, 0))
READY = message(WRITE_READY, integers(1, 0))
DONE = message(EXIT, integers(0))


def text(data: bytes) -> bytes:
    return message(WRITE, integers(1) + data)


def split(data: bytes) -> list[tuple[int, bytes]]:
    """Return the messages in what was sent, in the layout of tmux 3.3: their sizes are right, or this fails."""
    found = []
    while data:
        kind, length, flags, protocol, pid = struct.unpack_from("<IHHIi", data)
        assert (flags, protocol, pid) == (0, 8, -1)
        assert 16 <= length <= len(data)
        found.append((kind, data[16:length]))
        data = data[length:]
    return found


def test_the_question_is_six_messages_in_sizes_that_no_server_dies_of() -> None:
    words = [b"capture-pane", b"-p", b"-J", b"-S", b"-200", b"-t", b"%7"]

    assert split(Talk("%7", 200).question) == [
        (101, b"dumb\0"),
        (102, b"\0"),
        (108, b"/\0"),
        (107, integers(os.getpid())),
        (106, b""),
        (200, integers(7) + b"".join(word + b"\0" for word in words)),
    ]


@pytest.mark.parametrize("pane", ["", "7", "%", "%x", "%1 ; kill-server", "%1\n", "=agent:"])
def test_only_a_panes_own_id_is_asked_for(pane: str) -> None:
    with pytest.raises(AssertionError):
        Talk(pane, 200)


def test_a_screen_is_what_was_written_until_the_exit() -> None:
    talk = Talk("%0", 200)

    assert (talk.hear(OPEN), talk.over) == (READY, False)
    assert (talk.hear(text(b"one\ntw") + text(b"o\n\xe2\x82") + text(b"\xac\n")), talk.over) == (b"", False)
    assert (talk.hear(DONE), talk.over) == (b"", True)
    assert bytes(talk.text) == "one\ntwo\n€\n".encode()


def test_it_does_not_matter_in_which_pieces_the_answer_comes() -> None:
    stream = OPEN + text(b"one\n") + text(b"") + text(b"two\n") + DONE
    for size in range(1, len(stream) + 1):
        talk = Talk("%0", 200)

        answers = b"".join(talk.hear(stream[at : at + size]) for at in range(0, len(stream), size))

        assert (answers, bytes(talk.text), talk.over) == (READY, b"one\ntwo\n", True)


@pytest.mark.parametrize(
    "heard",
    [
        message(WRITE_OPEN, integers(2, 2, 0)),  # such as: can't find pane
        message(EXIT, integers(1)),
        message(EXIT, integers(0)),  # and nothing was written
        OPEN + message(EXIT, integers(1)),
        OPEN + message(EXIT, integers(1) + b"lost\0"),
        message(SHUTDOWN),
    ],
)
def test_a_server_that_has_no_screen_refuses(heard: bytes) -> None:
    with pytest.raises(ScreenRefused):
        Talk("%0", 200).hear(heard)


@pytest.mark.parametrize(
    "heard",
    [
        b"",
        message(VERSION),
        message(VERSION, protocol=9),
        message(EXIT, integers(0), protocol=9),
        message(213, b"\1\0\0\0text"),  # how text came before 3.1
        message(READ_OPEN, integers(1, 0)),
        message(WRITE_OPEN, integers(1, 1)),
        message(WRITE_OPEN, integers(1, 1, 0) + b"/etc/motd\0"),
        OPEN + OPEN,
        text(b"before it was opened"),
        OPEN + message(WRITE, b"\1"),
        OPEN + message(WRITE, integers(2) + b"not for us"),
        message(EXIT),
        struct.pack("<IHHIi", 303, 15, 0, 8, -1),
        struct.pack("<IHHIi", 303, 16385, 0, 8, -1),
        struct.pack("<IHHIi", 303, 28, 1, 8, -1) + integers(1, 1, 0),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ],
)
def test_whoever_says_anything_else_does_not_speak_our_protocol(heard: bytes) -> None:
    with pytest.raises(NotSpoken):
        Talk("%0", 200).hear(heard)


def test_a_screen_without_an_end_is_refused() -> None:
    talk = Talk("%0", 200)
    talk.hear(OPEN)
    part = text(b"x" * 16000)

    with pytest.raises(ScreenRefused):
        for _ in range(LARGEST_SCREEN // 16000 + 1):
            talk.hear(part)
