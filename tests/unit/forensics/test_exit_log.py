"""Every death is one line that reads back as what it was, whatever its words hold and whatever the disk does."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.builders import make_death, make_intent
from vigil.core.model.death import Cause, Death, EvidenceLine
from vigil.forensics.exit_log import ROTATED, VALUE_CHARS, ExitLog, line_of, parse

FIELDS = (
    *("ts", "ev", "death", "session", "launch", "cause", "confidence", "exit_code", "signal", "charged", "observed_by"),
    *("uptime_s", "intent", "actor", "reason", "why"),
)
ANY_TEXT = st.text(st.characters(), max_size=VALUE_CHARS)  # surrogates too
NASTY_TEXT = st.lists(
    st.sampled_from(
        [
            "\n",
            "\r",
            "\t",
            '"',
            "\\",
            "=",
            " ",
            "\x1b[31m",
            "\x00",
            "\x7f",
            "\x85",
            "\u2028",
            "\u202e",
            "\udc80",
            "\ud800",
            "é",
            "世",
        ]
    ),
    max_size=40,
).map("".join)
WORDS = st.one_of(ANY_TEXT, NASTY_TEXT)
WRITER = """
import sys
from pathlib import Path
from tests.unit.builders import make_death
from vigil.forensics.exit_log import ExitLog
log = ExitLog(Path(sys.argv[1]), most_bytes=int(sys.argv[2]))
for number in range(int(sys.argv[4])):
    log.append(make_death(id=f"d-{sys.argv[3]}-{number}"))
assert log.refused is None and log.waiting == 0
"""
FULL = """
import resource, sys
from pathlib import Path
from tests.unit.builders import make_death
from vigil.forensics.exit_log import ExitLog
log = ExitLog(Path(sys.argv[1]))
log.append(make_death(id="d-s1-1"))
limit = Path(sys.argv[1]).stat().st_size + 50
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
log.append(make_death(id="d-s1-2"))
print(log.waiting, log.refused)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
if sys.argv[2] == "go on":
    log.append(make_death(id="d-s1-3"))
    print(log.waiting, log.refused)
"""


def in_processes(code: str, *calls: list[object]) -> list[str]:
    """Run a program several times at once; return what each printed."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for arguments in calls
    ]
    outputs = []
    for process in processes:
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        outputs.append(output)
    return outputs


def without_pairs(text: str) -> str:
    """Return a text in which two halves of one character are that character, as every reader of JSON takes them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def lines_in(folder: Path) -> list[str]:
    """Return all lines; an empty one stands where a writer began while another was in the middle of a line."""
    return [line for path in sorted(folder.glob("exits.log*")) for line in path.read_text().splitlines() if line]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "exits.log"


@given(WORDS, WORDS, WORDS, WORDS)
def test_whatever_the_words_the_line_is_one_and_reads_back(session: str, actor: str, reason: str, why: str) -> None:
    intent = make_intent(actor=actor, reason=reason)
    death = make_death(session=session, intent=intent, evidence=(EvidenceLine("x", why), EvidenceLine("y", "more")))

    line = line_of(death)

    assert line.isprintable()
    assert [line] == line.encode().decode().splitlines()
    fields = parse(line)
    expected = {"session": session, "actor": actor, "reason": reason, "why": why}
    assert {name: fields[name] for name in expected} == {name: without_pairs(text) for name, text in expected.items()}
    assert tuple(fields) == FIELDS


@given(st.text())
def test_what_is_no_line_is_refused_and_breaks_nothing(text: str) -> None:
    try:
        fields = parse(text)
    except ValueError:
        return
    assert "why" in fields


def test_a_line_says_all_that_is_known_of_a_death() -> None:
    intent = make_intent(reason='say "no"\nto it')
    death = make_death(Cause.OPERATOR, at=1794811751.2049, exit_code=None, signal=15, charged=False, intent=intent)

    assert line_of(death) == (
        "ts=2026-11-16T06:49:11.204Z ev=session-exit death=d-s1-1 session=alpha launch=s1-1 cause=operator confidence=certain "
        "exit_code= signal=15 charged=false observed_by=daemon uptime_s=100.000 intent=stop actor=alice "
        r'reason="say \"no\"\nto it" why="the agent exited with 1"'
    )


def test_what_is_unknown_is_not_what_is_empty() -> None:
    unasked = parse(line_of(make_death(uptime_s=None, evidence=())))
    asked = parse(line_of(make_death(intent=make_intent(reason=""))))

    assert [unasked[name] for name in ("uptime_s", "signal", "intent", "actor", "reason", "why")] == [None] * 6
    assert (unasked["exit_code"], asked["reason"]) == ("1", "")


def test_the_death_of_a_server_is_an_event_of_its_own() -> None:
    assert parse(line_of(make_death(Cause.SERVER_DIED)))["ev"] == "server-exit"
    assert {parse(line_of(make_death(cause)))["ev"] for cause in Cause if cause is not Cause.SERVER_DIED} == {"session-exit"}


@pytest.mark.parametrize("at", [float("nan"), float("inf"), 1e300, -1e300])
def test_a_moment_in_no_calendar_costs_the_moment_only(at: float) -> None:
    fields = parse(line_of(make_death(at=at)))

    assert (fields["ts"], fields["death"]) == (None, "d-s1-1")


def test_words_without_end_are_cut_and_secrets_are_gone_before_that() -> None:
    secret = "hunter2-hunter2"
    why = "x" * (VALUE_CHARS - 5) + secret + "y" * 10**6
    death = make_death(evidence=(EvidenceLine("x", why),), intent=make_intent(reason=secret))

    line = line_of(death, redact=lambda text: text.replace(secret, "[redacted]"))

    assert len(line) < 1000
    assert "hunt" not in line
    assert parse(line)["reason"] == "[redacted]"


def test_lines_are_added_for_the_owner_only(path: Path) -> None:
    log = ExitLog(path)
    deaths = [make_death(id=f"d-s1-{number}") for number in range(3)]

    for death in deaths:
        log.append(death)

    assert path.read_text() == "".join(f"{line_of(death)}\n" for death in deaths)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert log.logged_ids() == {death.id for death in deaths}


def test_a_log_that_is_not_there_has_no_deaths(path: Path) -> None:
    assert ExitLog(path).logged_ids() == set()


def test_the_log_turns_over_and_stays_within_its_bounds(path: Path) -> None:
    log = ExitLog(path, most_bytes=2000)
    for number in range(100):
        log.append(make_death(id=f"d-s1-{number}"))

    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == ["exits.log", *(f"exits.log.{number}" for number in range(1, ROTATED + 1))]
    assert all(file.stat().st_size <= 2000 for file in files)
    newest_first = [path, *(Path(f"{path}.{number}") for number in range(1, ROTATED + 1))]
    ids = [parse(line)["death"] for file in reversed(newest_first) for line in file.read_text().splitlines()]
    assert ids == [f"d-s1-{number}" for number in range(100 - len(ids), 100)]


def test_the_deaths_of_the_newest_older_turn_are_known_too(path: Path) -> None:
    log = ExitLog(path, most_bytes=1000)
    for number in range(20):
        log.append(make_death(id=f"d-s1-{number}"))

    known = {parse(line)["death"] for file in (path, Path(f"{path}.1")) for line in file.read_text().splitlines()}
    assert ExitLog(path).logged_ids() == known
    assert len(known) > len(path.read_text().splitlines())


def test_two_writers_lose_no_line_while_the_log_turns_over(path: Path) -> None:
    line_bytes = len(line_of(make_death(id="d-a-999"))) + 1
    in_processes(WRITER, *[[path, 100 * line_bytes, name, 250] for name in "ab"])

    ids = [str(parse(line)["death"]) for line in lines_in(path.parent)]
    assert sorted(ids) == sorted(f"d-{name}-{number}" for name in "ab" for number in range(250))
    assert Path(f"{path}.1").exists()


def test_whoever_cannot_turn_the_log_over_now_goes_on_writing(path: Path) -> None:
    log = ExitLog(path, most_bytes=500)
    folder = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)  # somebody else does so now
    for number in range(5):
        log.append(make_death(id=f"d-s1-{number}"))
    os.close(folder)

    assert [file.name for file in path.parent.iterdir()] == ["exits.log"]
    assert len(log.logged_ids()) == 5

    log.append(make_death(id="d-s1-5"))

    assert Path(f"{path}.1").exists()
    assert len(log.logged_ids()) == 6


def test_a_full_disk_is_remembered_and_leaves_no_half_line(path: Path) -> None:
    [said] = in_processes(FULL, [path, "stop"])

    assert said.startswith("1 ")
    assert [parse(line)["death"] for line in path.read_text().splitlines()] == ["d-s1-1"]
    assert path.read_text().endswith("\n")


def test_what_a_full_disk_refused_is_written_with_the_next(path: Path) -> None:
    [said] = in_processes(FULL, [path, "go on"])

    assert said.splitlines()[-1] == "0 None"
    assert [parse(line)["death"] for line in path.read_text().splitlines()] == ["d-s1-1", "d-s1-2", "d-s1-3"]


def test_a_disk_that_takes_nothing_is_no_error(tmp_path: Path) -> None:
    for path in (Path("/dev/full"), tmp_path / "no folder" / "exits.log"):
        log = ExitLog(path)
        log.append(make_death())
        assert log.refused and log.waiting == 1


def test_a_line_that_a_crash_tore_harms_no_other(path: Path) -> None:
    log = ExitLog(path)
    log.append(make_death(id="d-s1-1"))
    torn = line_of(make_death(id="d-s1-2"))[:60]
    with path.open("a") as file:
        file.write(torn)
    assert log.logged_ids() == {"d-s1-1"}

    log = ExitLog(path)
    log.append(make_death(id="d-s1-3"))

    assert path.read_text().splitlines()[1] == torn
    assert log.logged_ids() == {"d-s1-1", "d-s1-3"}


def test_a_line_without_its_end_does_not_count(path: Path) -> None:
    path.write_text(line_of(make_death()))

    assert ExitLog(path).logged_ids() == set()


def test_what_others_put_into_the_log_is_passed_over(path: Path) -> None:
    log = ExitLog(path)
    path.write_bytes(b"\xff\xfe\x00 hello\n\n=\n" + os.urandom(500) + b"\n")

    log.append(make_death())

    assert log.logged_ids() == {"d-s1-1"}


def test_the_log_may_be_moved_away_at_any_time(path: Path) -> None:
    log = ExitLog(path)
    log.append(make_death(id="d-s1-1"))
    path.rename(path.with_name("kept"))

    log.append(make_death(id="d-s1-2"))

    assert log.logged_ids() == {"d-s1-2"}


def test_values_of_death_that_are_not_words_are_written_as_they_are() -> None:
    death: Death = make_death(exit_code=0, signal=None, uptime_s=0.0004)

    fields = parse(line_of(death))

    assert (fields["exit_code"], fields["signal"], fields["uptime_s"], fields["charged"]) == ("0", None, "0.000", "true")
