"""The page of a diagnosis is a tree a person can read, as wide as the terminal, and says what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from vigil.cli.diag import page, percent, stems
from vigil.cli.get import flat


def process(pid: int, depth: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "pid": pid,
        "ppid": 1,
        "name": "node",
        "command": "/usr/bin/node server.js --with many words that no terminal has room for",
        "role": "child",
        "depth": depth,
        "state": "S",
        "wchan": "ep_poll",
        "cpu_rate": 0.0,
        "ended_children_cpu_rate": 0.0,
        "rss_bytes": 50 << 20,
        "peak_rss_bytes": None,
        "threads": 7,
        "age_s": 4000.0,
        "descriptors": 20,
        "io_read_bytes": 0,
        "io_written_bytes": 0,
        "tty": False,
        "foreground": None,
        "traced_by": 0,
        "waits_for_input": False,
        "holds_agents_pipe": False,
        "first_thread_ended": False,
    } | more


TOTALS = {"cpu_rate": None, "agent_cpu_rate": None, "rss_bytes": 0, "processes": 2, "established": 0}
FOUND: dict[str, Any] = {
    "name": "alpha",
    "pid": 10,
    "window_s": 0.5,
    "processes": [
        process(10, 0, role="agent"),
        process(11),
        process(12, 2, state="T"),
        process(13, descriptors=None, wchan=None),
    ],
    "sockets": [],
    "tools": [{"id": "t1", "name": "Bash", "age_s": 90.0, "pids": []}],
    "totals": TOTALS,
    "unknown": ["descriptors of pid 13: Permission denied"],
}


@pytest.mark.parametrize(
    ("depths", "drawn"),
    [
        ([0], [""]),
        ([0, 1, 1], ["", "├─ ", "└─ "]),
        ([0, 1, 2, 2, 1, 2], ["", "├─ ", "│  ├─ ", "│  └─ ", "└─ ", "   └─ "]),
        ([0, 1, 0], ["", "└─ ", ""]),
    ],
)
def test_lines_lead_from_each_process_to_its_parent(depths: list[int], drawn: list[str]) -> None:
    assert stems(depths) == drawn


@pytest.mark.parametrize("width", [40, 80, 120, None])
def test_no_row_is_wider_than_the_terminal(width: int | None) -> None:
    lines = list(page(FOUND, width, coloured=False))

    table = [line for line in lines if line.startswith(("PROCESS", "node", "├", "│", "└"))]
    assert len(table) == 5
    assert all(width is None or len(line) <= width for line in table)


def test_what_is_not_known_is_a_mark_with_its_reason_and_what_matters_is_told() -> None:
    lines = list(page(FOUND, None, coloured=False))

    assert "  pid 12 (node) is stopped" in lines
    assert "  descriptors of pid 13: Permission denied" in lines
    assert "  Bash for 1.5 min, without a process of its own" in lines
    assert any(line.startswith("└─ node") and " ? " in line for line in lines)
    assert "CPU unknown" in lines[1]


def test_where_nothing_can_be_read_nothing_is_said_of_the_agent() -> None:
    blind = {**FOUND, "pid": None, "processes": [], "unknown": ["processes: /proc: no process can be read there"]}

    (line,) = page(blind, None, coloured=False)

    assert line.endswith(": nothing is known of its processes: /proc: no process can be read there")


def test_a_share_of_a_core_has_as_many_digits_as_it_needs() -> None:
    assert [percent(rate) for rate in (0.0, 0.004, 0.02, 0.39, 2.0)] == ["0%", "0.4%", "2.0%", "39%", "200%"]


def test_get_shows_open_tools_and_last_words_in_a_line_each() -> None:
    shown = dict(
        flat(
            {
                "open": {"tools": [{"id": "t1", "name": "Bash", "since": "2026-01-02T03:04:05.000Z"}], "asked": []},
                "recent": [{"at": "2026-01-02T03:04:06.000Z", "what": "tool-started", "tool": "Bash", "text": None}],
                "command": ["sh", "-c", "x"],
                "survivors": [{"pid": 7, "name": "sleep"}],
            }
        )
    )

    assert shown == {
        "open.tools": "Bash (2026-01-02T03:04:05.000Z)",
        "open.asked": "-",
        "recent": "03:04:06 tool-started Bash",
        "command": "sh -c x",
        "survivors": "sleep (7)",
    }
