"""A table fits the terminal it is printed on, whatever is in it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.cli.get import flat
from vigil.cli.ls import COLUMNS, WIDE, used
from vigil.cli.table import COLOURS, GAP, LEAST, LEAST_FIRST, Column, cut, fit, format_table, text_width

CELLS = st.one_of(
    st.text(max_size=30), st.sampled_from(["", "世界" * 9, "é" * 40, "a\nb\tc", "\x1b[31mred\x1b[0m", "e\u0301" * 20, "👩‍👩‍👧"])
)
TABLES = st.integers(1, 8).flatmap(
    lambda count: st.tuples(
        st.lists(st.builds(Column, st.text("ABCDEFGH", min_size=1, max_size=8), st.booleans()), min_size=count, max_size=count),
        st.lists(st.lists(CELLS, min_size=count, max_size=count), max_size=6),
    )
)
Table = tuple[list[Column], list[list[str]]]


def least_width(columns: Sequence[Column]) -> int:
    return len(columns) + GAP * (len(columns) - 1)


@given(TABLES, st.integers(1, 250))
def test_no_line_is_wider_than_the_terminal(table: Table, width: int) -> None:
    columns, rows = table

    lines = format_table(columns, rows, width, coloured=False)

    assert [line for line in lines if text_width(line) > width] == []


@given(TABLES, st.one_of(st.none(), st.integers(0, 250)), st.booleans())
def test_there_is_a_line_for_the_titles_and_one_for_each_row(table: Table, width: int | None, coloured: bool) -> None:
    columns, rows = table

    lines = format_table(columns, rows, width, coloured)

    assert len(lines) == 1 + len(rows)
    assert not [line for line in lines if len(line.splitlines()) > 1 or "\t" in line]


@given(TABLES)
def test_nothing_is_cut_where_the_width_does_not_matter(table: Table) -> None:
    columns, rows = table

    text = "\n".join(format_table(columns, rows, None, coloured=False))

    assert "…" not in text or any("…" in cell for row in rows for cell in row)


@given(TABLES, st.integers(1, 250))
def test_a_title_stands_over_its_column(table: Table, width: int) -> None:
    columns, rows = table
    cells = [["x"] * len(columns) for _ in rows]

    lines = format_table(columns, cells, width, coloured=False)

    starts = [match.start() for match in re.finditer(r"\S+", lines[0])]
    for line in lines[1:]:
        assert [match.start() for match in re.finditer(r"\S+", line)][: len(starts)] == starts


WHY = "crash: the agent exited with 1 because something long happened " * 3
ROW = ["shop/backend/coder/0", "succeeded", "unhealthy", "waiting-human", "claude", "3/5", "12d", "!", WHY]


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (200, "NAME STATE HEALTH ACTIVITY AGENT RESTARTS AGE WHY"),
        (109, "NAME STATE HEALTH ACTIVITY AGENT RESTARTS AGE WHY"),
        (103, "NAME STATE HEALTH ACTIVITY RESTARTS AGE WHY"),
        (88, "NAME STATE HEALTH RESTARTS AGE WHY"),
        (80, "NAME STATE RESTARTS AGE WHY"),
        (72, "NAME STATE RESTARTS WHY"),
        (60, "NAME STATE RESTARTS"),
        (40, "NAME STATE"),
    ],
)
def test_the_session_table_loses_its_columns_in_the_order_of_the_contract(width: int, titles: str) -> None:
    title, line = format_table(COLUMNS, [ROW], width, coloured=False)

    assert title.split() == titles.split()
    assert line.split()[:2] == ["shop/backend/coder/0", "succeeded"]
    assert " ! " in f"{line} ", "trouble is marked, whatever else had to leave"
    assert text_width(line) <= width


def test_a_name_is_never_cut() -> None:
    lines = format_table(COLUMNS, [ROW], 12, coloured=False)

    assert lines[1].split()[0] == "shop/backend/coder/0"


def test_the_reason_of_a_session_takes_the_rest_of_the_line() -> None:
    (_, line) = format_table(COLUMNS, [ROW], 120, coloured=False)

    assert text_width(line) == 120 and line.endswith("…")


def test_columns_that_shrink_give_way_before_the_others() -> None:
    assert fit([20, 10, 40], [True, False, True], 50) == [16, 10, 20] or sum(fit([20, 10, 40], [True, False, True], 50)) == 46
    assert fit([20, 10, 40], [True, False, True], 50)[1] == 10


@given(st.lists(st.tuples(st.integers(1, 300), st.booleans()), min_size=1, max_size=12), st.integers(0, 400))
def test_widths_only_shrink_and_what_does_not_fit_at_all_vanishes_from_the_end(
    columns: list[tuple[int, bool]], width: int
) -> None:
    widths, shrinks = [found for found, _ in columns], [shrink for _, shrink in columns]

    fitted = fit(widths, shrinks, width)

    assert all(1 <= new <= old for new, old in zip(fitted, widths, strict=False))
    assert sum(fitted) + GAP * (len(fitted) - 1) <= max(width, 1)
    if len(fitted) > 1:
        kept = zip(fitted, widths, shrinks, strict=False)
        assert all(new == old or (shrink and new >= LEAST) for new, old, shrink in kept)
    if len(fitted) < len(widths):
        one_more = [min(old, LEAST) if shrink else old for old, shrink in columns[: len(fitted) + 1]]
        one_more[0] = min(widths[0], LEAST_FIRST) if shrinks[0] else widths[0]
        assert sum(one_more) + GAP * len(fitted) > width, "a column vanished that had room"


@given(CELLS, st.integers(1, 60))
def test_what_is_cut_fits_and_says_so(text: str, width: int) -> None:
    found = cut(text, width)

    assert text_width(found) <= width
    assert found == text if text_width(text) <= width else found.endswith("…")


def test_wide_and_combining_characters_take_the_cells_they_take() -> None:
    assert text_width("世界") == 4
    assert text_width("e\u0301") == 1
    assert text_width("a\u200bb") == 2
    assert text_width("ｆｕｌｌ") == 8


def test_columns_stand_under_each_other_beside_wide_characters() -> None:
    lines = format_table([Column("A"), Column("B")], [["世界", "x"], ["ab", "y"]], None, coloured=False)

    assert [text_width(line[: line.index(mark)]) for line, mark in zip(lines, "Bxy", strict=True)] == [6, 6, 6]


def test_a_colour_does_not_change_what_fits() -> None:
    columns = [Column("STATE", colour={"running": "green"}.get), Column("WHY", shrink=True)]
    rows = [["running", "w" * 100], ["failed", "x"]]

    plain, coloured = (format_table(columns, rows, 40, flag) for flag in (False, True))

    assert coloured[1].startswith(f"\x1b[{COLOURS['green']}mrunning\x1b[0m")
    assert [re.sub(r"\x1b\[\d+m", "", line) for line in coloured] == plain


def test_every_colour_of_the_session_table_exists() -> None:
    for column in WIDE:
        values = getattr(column.colour, "__self__", {})
        assert set(values.values()) <= set(COLOURS)


@pytest.mark.parametrize(
    ("usage", "shown"),
    [
        (None, ("-", "-")),
        ({"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}, ("-", "-")),
        ({"input_tokens": 999, "output_tokens": 0, "cost_usd": 0.0}, ("999/0", "-")),
        ({"input_tokens": 12_345, "output_tokens": 1_000, "cost_usd": 0.5}, ("12.3k/1.0k", "$0.50")),
        ({"input_tokens": 123_456_789, "output_tokens": 2_000_000_000, "cost_usd": 1234.0}, ("123M/2.0G", "$1234.00")),
    ],
)
def test_what_a_session_used_is_short(usage: dict[str, float] | None, shown: tuple[str, str]) -> None:
    assert used(usage) == shown


def test_what_is_open_of_a_session_is_listed_with_since_when() -> None:
    value = {"open": {"tools": [{"id": "t1", "name": "Bash", "since": "now"}, {"id": "t2", "name": "", "since": "now"}]}}

    assert flat(value) == [("open.tools", "Bash (now) t2 (now)")]
    assert flat({"survivors": [{"name": "node", "pid": 7}]}) == [("survivors", "node (7)")]
