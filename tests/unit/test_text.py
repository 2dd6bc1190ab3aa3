"""What agents print is shown without anything a terminal would obey."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.text import decode, one_line, plain

# Text that is likely to hold control sequences, whole and broken.
PARTS = st.sampled_from(
    (
        *("\x1b", "[", "]", "\x9b", "\x9d", "\x90", "\x9c", "\x07", "\\", "31", ";", "m", "P", "X", "^", "_", "(B", "c"),
        *(
            "\n",
            "\r",
            "\t",
            "\x00",
            "\x7f",
            "\x85",
            "\u2028",
            "\u202e",
            "\u2066",
            "\u200d",
            "\ufe0f",
            "❤",
            "ක",
            "hello",
            "é",
            "世",
            " ",
            "?25l",
            "\x1b\\",
        ),
    )
)
TERMINAL_TEXT = st.one_of(st.text(), st.lists(PARTS).map("".join))
KEPT = {"\n", "\t"}
TURNERS = set("\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

SEQUENCES = {
    "colour": "\x1b[1;31m",
    "cursor": "\x1b[10;20H",
    "private mode": "\x1b[?25l",
    "with intermediate": "\x1b[0 q",
    "eight-bit CSI": "\x9b31m",
    "title with BEL": "\x1b]0;a title\x07",
    "title with ST": "\x1b]0;a title\x1b\\",
    "title with eight-bit ST": "\x1b]0;a title\x9c",
    "eight-bit OSC": "\x9d0;a title\x07",
    "clipboard": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "link": "\x1b]8;;http://example.org\x1b\\",
    "device control": "\x1bP1$r0m\x1b\\",
    "application command": "\x1b_payload\x1b\\",
    "privacy message": "\x1b^payload\x1b\\",
    "start of string": "\x1bXpayload\x1b\\",
    "character set": "\x1b(B",
    "reset": "\x1bc",
    "keypad": "\x1b=",
    "save cursor": "\x1b7",
    "eight-bit DCS": "\x90payload\x9c",
}


@given(TERMINAL_TEXT)
def test_only_newline_and_tab_are_left_of_all_control_characters(text: str) -> None:
    found = plain(text)

    assert not [char for char in found if unicodedata.category(char) == "Cc" and char not in KEPT]
    assert not TURNERS & set(found)


IGNORABLE = [0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010)]
IGNORABLE += [*range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0]
IGNORABLE += [*range(0xFFF0, 0xFFFC), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)]


def test_nothing_invisible_is_left_inside_a_word() -> None:
    for code in IGNORABLE:
        assert plain(f"pass{chr(code)}word") == "password", hex(code)
        assert plain(f"{chr(code)}x{chr(code)}") == "x", hex(code)
        assert plain(f"пар{chr(code)}оль") == "пароль", hex(code)


def test_every_format_character_is_left_out_but_those_that_are_seen() -> None:
    kept = {
        code for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf" and chr(code) in plain(f"a{chr(code)}b")
    }

    # Signs above or around Arabic, Syriac and Kaithi numbers, and the frames of hieroglyphs: each is drawn.
    assert kept <= {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)}


@pytest.mark.parametrize(
    "text",
    [
        "👩\u200d💻 and 👨\u200d👩\u200d👧",
        "❤\ufe0f ⚠\ufe0f 1\ufe0f\u20e3 🏳\ufe0f\u200d🌈 👩🏽\u200d🚀",
        "می\u200cخواهم",  # Persian
        "ක්\u200dරමය",  # Sinhala
        "caf\u0065\u0301 naïve Straße 世界 مرحبا",
    ],
)
def test_joiners_and_selectors_stay_where_a_script_or_an_emoji_needs_them(text: str) -> None:
    assert plain(text) == text


def test_a_run_of_selectors_that_smuggles_words_is_one() -> None:
    assert plain("⚠" + "\ufe0f\ufe0e" * 50 + "!") == "⚠\ufe0f!"
    assert plain("x" + "".join(chr(0xE0100 + byte) for byte in b"ignore all") + "y") == "xy"
    assert plain("".join(chr(0xE0000 + byte) for byte in b"ignore all")) == ""


@given(TERMINAL_TEXT)
def test_what_is_plain_stays_as_it_is(text: str) -> None:
    assert plain(plain(text)) == plain(text)
    assert one_line(one_line(text)) == one_line(text)


UNSEEN = sorted({*TURNERS, *map(chr, IGNORABLE)})


@given(st.text(st.characters(exclude_categories=["Cc", "Zl", "Zp"], exclude_characters=UNSEEN)))
def test_text_without_control_characters_is_not_touched(text: str) -> None:
    assert plain(text) == text


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_a_control_sequence_is_removed_whole(sequence: str) -> None:
    assert plain(f"before{sequence}after") == "beforeafter"
    assert plain(sequence * 3) == ""


def test_a_string_sequence_without_end_takes_the_rest() -> None:
    assert plain("before\x1b]0;a title that never ends") == "before"


def test_a_title_that_is_cut_off_by_another_sequence_does_not_take_what_follows() -> None:
    assert plain("\x1b]0;title\x1b[31mred") == "red"


def test_lines_end_with_newline_however_they_ended() -> None:
    assert plain("a\r\nb\rc\n") == "a\nb\nc\n"


@given(TERMINAL_TEXT)
def test_a_cell_is_one_line_without_space_around(text: str) -> None:
    found = one_line(text)

    assert len(found.splitlines()) <= 1
    assert found == found.strip()
    assert "  " not in found


@given(st.binary())
def test_any_bytes_are_text(data: bytes) -> None:
    decode(data).encode()


def test_bytes_that_are_no_text_show_as_a_mark() -> None:
    assert decode(b"caf\xc3\xa9 \xff") == "café \N{REPLACEMENT CHARACTER}"
