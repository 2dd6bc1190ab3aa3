"""What the axes of a session, read apart, say together: the table of DESIGN 4.2, walked whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.builders import make_doubt, make_reading
from vigil.core.model.reading import Axis, Doubt, DoubtKind, Reading
from vigil.core.rules.liveness import (
    DOUBT_OF,
    EPISODE_S,
    HANGUP_S,
    PATIENCE,
    QUIET_S,
    SAMPLE_S,
    TABLE,
    WELL,
    AxisSign,
    Cell,
    Judgement,
    LifeVerdict,
    judge,
    runtime_sign,
    sign_of,
)

# DESIGN 4.2, word for word.
DESIGN = """
| runtime \\ process | alive | D | d | stopped | ? | ! |
| alive | live | **dead** | confirm | live¹ | live² | live² |
| D | orphaned | **dead** | **dead** | orphaned | oracle | oracle |
| d | confirm³ | **dead** | confirm | confirm³ | oracle | oracle |
| ? | live² | **dead** | confirm | live¹² | unreadable | unreadable |
| ! | live² | **dead** | confirm | live¹² | unreadable | unreadable |
"""
SIGNS = {
    "alive": AxisSign.ALIVE,
    "D": AxisSign.DEAD,
    "d": AxisSign.GONE,
    "stopped": AxisSign.STOPPED,
    "?": AxisSign.UNCLEAR,
    "!": AxisSign.FAILED,
}
CELLS = {
    "live": Cell.LIVE,
    "live¹": Cell.LIVE,  # that it is stopped is for the stall verdict
    "live²": Cell.BLIND,
    "live¹²": Cell.BLIND,
    "**dead**": Cell.DEAD,
    "confirm": Cell.CONFIRM,
    "confirm³": Cell.PANE,
    "orphaned": Cell.ORPHANED,
    "oracle": Cell.ORACLE,
    "unreadable": Cell.UNREADABLE,
}
NOW = 10_000.0
# What each axis can read, by a short word; None is an axis that was never read.
READ: dict[str, Reading | None] = {
    "missing": None,
    "alive": make_reading("alive"),
    "D": make_reading("dead", conclusive=True),
    "d": make_reading("dead", conclusive=False),
    "stopped": make_reading("stopped"),
    "wedged": make_reading("wedged", conclusive=False),
    "?": make_reading("unknown", conclusive=False),
    "!": make_reading("failed", conclusive=False),
}
SERVERS = ("missing", "alive", "wedged", "D", "d", "?", "!")
OTHERS = ("missing", "alive", "D", "d", "stopped", "?", "!")
DARK = ("missing", "?", "!")
# What can have been doubted, and the axis that has to be well again.
CAUSES = (
    (DoubtKind.WEDGED, Axis.SERVER),
    (DoubtKind.BLIND, Axis.SERVER),
    (DoubtKind.BLIND, Axis.RUNTIME),
    (DoubtKind.BLIND, Axis.PROCESS),
    (DoubtKind.UNREADABLE, Axis.PROCESS),
    (DoubtKind.CONFIRM, Axis.PROCESS),
    (DoubtKind.PANE, Axis.RUNTIME),
    (DoubtKind.ORACLE, Axis.PROCESS),
    (DoubtKind.ORPHANED, Axis.RUNTIME),
)
YOUNG_S, OLD_S = SAMPLE_S, 299.0
FEW, MANY = 1, 9


def make_axes(server: str = "alive", runtime: str = "alive", process: str = "alive") -> dict[Axis, Reading]:
    words = {Axis.SERVER: server, Axis.RUNTIME: runtime, Axis.PROCESS: process}
    return {axis: reading for axis, word in words.items() if (reading := READ[word]) is not None}


# The table


def test_the_table_is_the_one_of_the_design() -> None:
    head, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in DESIGN.strip().splitlines())

    written = {(SIGNS[row[0]], SIGNS[sign]): CELLS[word] for row in rows for sign, word in zip(head[1:], row[1:], strict=True)}

    assert written == TABLE


def test_each_reading_has_its_sign() -> None:
    signs = {word: sign_of(reading) for word, reading in READ.items() if word in SIGNS}

    assert signs == SIGNS
    assert {sign_of(READ[word]) for word in ("missing", "wedged")} == {AxisSign.UNCLEAR}


def test_every_pair_of_readings_has_a_cell() -> None:
    for server, runtime, process in product(SERVERS, OTHERS, OTHERS):
        axes = make_axes(server, runtime, process)
        assert (runtime_sign(axes), sign_of(axes.get(Axis.PROCESS))) in TABLE, (server, runtime, process)


def test_every_doubtful_cell_is_a_doubt_and_every_doubt_has_its_patience() -> None:
    assert set(DOUBT_OF) == set(Cell) - {Cell.LIVE}
    assert set(PATIENCE) == set(DoubtKind)
    assert {*DOUBT_OF.values(), DoubtKind.WEDGED} == set(DoubtKind)


@pytest.mark.parametrize("runtime", OTHERS)
def test_a_server_that_the_kernel_saw_end_took_its_panes_with_it(runtime: str) -> None:
    assert runtime_sign(make_axes("D", runtime)) is AxisSign.DEAD


@pytest.mark.parametrize("server", ["missing", "alive", "wedged", "d", "?", "!"])
def test_any_other_server_leaves_the_pane_what_it_reads(server: str) -> None:
    assert [runtime_sign(make_axes(server, word)) for word in ("alive", "D", "d", "?", "!")] == [
        AxisSign.ALIVE,
        AxisSign.DEAD,
        AxisSign.GONE,
        AxisSign.UNCLEAR,
        AxisSign.FAILED,
    ]


# Every combination


@dataclass(frozen=True)
class Case:
    """One combination of all that `judge` looks at."""

    server: str
    runtime: str
    process: str
    doubt: Doubt | None
    stuck: bool
    breaker: bool
    active: bool

    @property
    def axes(self) -> dict[Axis, Reading]:
        return make_axes(self.server, self.runtime, self.process)

    @property
    def cell(self) -> Cell:
        return TABLE[runtime_sign(self.axes), sign_of(self.axes.get(Axis.PROCESS))]

    def judge(self) -> Judgement:
        active_at = NOW - 1.0 if self.active else NOW - QUIET_S
        breaker_until = NOW + 1.0 if self.breaker else NOW
        return judge(self.axes, self.doubt, NOW, active_at, breaker_until, self.stuck)


def walk(
    servers: tuple[str, ...] = SERVERS,
    processes: tuple[str, ...] = OTHERS,
    ages_s: tuple[float, ...] = (YOUNG_S, OLD_S),
    stucks: tuple[bool, ...] = (False, True),
) -> Iterator[tuple[Case, Judgement]]:
    """Yield every combination, with what is judged of it."""
    for server, runtime, process in product(servers, OTHERS, processes):
        for doubt in doubts_before(make_axes(server, runtime, process), ages_s):
            for stuck, breaker, active in product(stucks, (False, True), (False, True)):
                case = Case(server, runtime, process, doubt, stuck and doubt is not None, breaker, active)
                yield case, case.judge()


def doubts_before(axes: Mapping[Axis, Reading], ages_s: tuple[float, ...]) -> Iterator[Doubt | None]:
    """Yield no doubt, doubts of every kind over other evidence, and the very doubt that these axes raise."""
    yield None
    raised = judge(axes, None, NOW).doubt
    for age_s, attempts in product(ages_s, (FEW, MANY)):
        past: dict[str, Any] = {"since": NOW - age_s, "sampled_at": NOW - SAMPLE_S, "attempts": attempts}
        for kind, axis in CAUSES:
            yield make_doubt(kind, axis, **past)
        if raised is not None:
            yield replace(raised, **past)


def is_well(axes: Mapping[Axis, Reading], axis: Axis) -> bool:
    return axis in axes and axes[axis].value in ("alive", "stopped")


def test_whatever_was_read_and_doubted_there_is_an_answer_that_says_what_it_rests_on() -> None:
    for case, found in walk():
        assert isinstance(found.verdict, LifeVerdict), case
        if found.verdict in (LifeVerdict.SUSPECT, LifeVerdict.STUCK, LifeVerdict.ORPHANED):
            assert found.doubt is not None, case
            assert case.stuck or bool(found.doubt.evidence) == bool(case.axes), case
        if found.doubt is not None and found.verdict not in (LifeVerdict.STUCK, LifeVerdict.DEAD):
            assert found.look_at is not None, case


def test_what_cannot_be_read_is_never_dead() -> None:
    for case, found in walk(processes=("missing", "wedged", "?", "!")):
        assert found.verdict is not LifeVerdict.DEAD, case


def test_what_lives_is_never_dead() -> None:
    for case, found in walk(processes=("alive", "stopped")):
        assert found.verdict is not LifeVerdict.DEAD, case


def test_a_process_that_the_kernel_saw_end_is_dead_at_once_whatever_else_is_true() -> None:
    for case, found in walk(processes=("D",)):
        assert found == Judgement(LifeVerdict.DEAD), case


def test_what_looks_dead_without_its_pane_is_dead_at_once_and_remembered_as_a_doubt() -> None:
    for case, found in walk(processes=("d",), ages_s=(YOUNG_S,), stucks=(False,)):
        if case.cell is Cell.DEAD:
            assert found.verdict is LifeVerdict.DEAD, case
            assert found.doubt is not None, case


def test_what_looks_dead_without_its_pane_and_is_not_gets_a_human_after_five_minutes() -> None:
    axes = make_axes("missing", "D", "d")
    doubt = make_doubt(since=1000.0, sampled_at=1290.0, evidence="runtime dead, process gone", attempts=58)

    assert judge(axes, doubt, 1299.0).verdict is LifeVerdict.DEAD
    assert judge(axes, doubt, 1300.0).verdict is LifeVerdict.STUCK


def test_dead_by_inference_needs_a_second_equal_sample_and_quiet_and_no_breaker() -> None:
    died = 0
    for case, found in walk(processes=("d",)):
        if case.cell is Cell.DEAD:
            continue
        before = case.doubt
        again = before is not None and found.doubt is not None and before.evidence == found.doubt.evidence
        expected = again and not (case.stuck or case.breaker or case.active)
        assert (found.verdict is LifeVerdict.DEAD) == expected, case
        died += expected
    assert died, "the walk met none that dies"


def test_what_is_stuck_stays_so_while_the_axis_that_caused_it_is_not_well() -> None:
    held = 0
    for case, found in walk(stucks=(True,)):
        if case.doubt is None or case.cell is Cell.DEAD or is_well(case.axes, case.doubt.axis):
            continue
        if case.doubt.axis is Axis.SERVER and case.server == "missing":
            continue  # what has no server is never stuck because of it
        if case.doubt.axis is Axis.SERVER and case.server == "D" and case.cell is Cell.ORPHANED:
            assert found.verdict is LifeVerdict.ORPHANED, case  # a server that ended never answers
            continue
        assert found.verdict is LifeVerdict.STUCK, case
        assert found.look_at is None, case
        held += 1
    assert held, "the walk met none that is held"


def test_what_is_stuck_is_stuck_no_more_when_every_axis_is_well() -> None:
    for case, found in walk(servers=("missing", "alive"), processes=("alive", "stopped"), stucks=(True,)):
        if case.cell is Cell.LIVE:
            assert found == WELL, case


def test_a_doubt_about_another_axis_begins_anew_once_the_axis_of_the_old_one_is_well() -> None:
    wedged = make_doubt(DoubtKind.WEDGED, Axis.SERVER, since=NOW - 200.0, attempts=MANY)

    found = judge(make_axes("alive", "?", "?"), wedged, NOW, stuck=True)

    assert found.verdict is LifeVerdict.SUSPECT
    assert found.doubt is not None
    assert (found.doubt.kind, found.doubt.since, found.doubt.attempts) == (DoubtKind.UNREADABLE, NOW, 1)


def test_nothing_is_suspect_after_five_minutes() -> None:
    for case, found in walk(ages_s=(EPISODE_S,), stucks=(False,)):
        if case.doubt is not None:
            assert found.verdict is not LifeVerdict.SUSPECT, case
            if case.cell in (Cell.ORPHANED, Cell.ORACLE, Cell.UNREADABLE, Cell.BLIND):
                assert found.verdict is LifeVerdict.STUCK, case


# Episodes: readings one after the other


class Episode:
    """The readings of one session, each judged with what is remembered of those before."""

    def __init__(self, active_at: float | None = None, breaker_until: float = 0.0) -> None:
        self.now = NOW
        self.active_at = active_at
        self.breaker_until = breaker_until
        self.found = WELL

    def read(self, server: str = "alive", runtime: str = "alive", process: str = "alive", after_s: float = 0.0) -> LifeVerdict:
        self.now += after_s
        stuck = self.found.verdict is LifeVerdict.STUCK
        axes = make_axes(server, runtime, process)
        self.found = judge(axes, self.found.doubt, self.now, self.active_at, self.breaker_until, stuck)
        return self.found.verdict

    @property
    def attempts(self) -> int:
        assert self.found.doubt is not None
        return self.found.doubt.attempts


def test_a_wedged_server_is_suspect_after_ten_seconds() -> None:
    episode = Episode()

    verdicts = [episode.read("wedged", after_s=step) for step in (0.0, 5.0, 4.9, 0.1)]

    assert verdicts == [LifeVerdict.LIVE, LifeVerdict.LIVE, LifeVerdict.LIVE, LifeVerdict.SUSPECT]
    assert episode.found.doubt is not None and episode.found.doubt.axis is Axis.SERVER


def test_a_wedged_server_is_stuck_after_three_attempts_and_sixty_seconds() -> None:
    episode = Episode()

    verdicts = [episode.read("wedged", after_s=step) for step in (0.0, 20.0, 39.9, 0.1)]

    assert verdicts == [LifeVerdict.LIVE, LifeVerdict.SUSPECT, LifeVerdict.SUSPECT, LifeVerdict.STUCK]


def test_a_wedged_server_is_not_stuck_before_its_third_attempt() -> None:
    episode = Episode()

    verdicts = [episode.read("wedged", after_s=step) for step in (0.0, 100.0, 100.0)]

    assert verdicts == [LifeVerdict.LIVE, LifeVerdict.SUSPECT, LifeVerdict.STUCK]


@pytest.mark.parametrize(("runtime", "process"), [("?", "alive"), ("!", "alive"), ("alive", "?"), ("alive", "!")])
def test_a_wedged_server_is_the_doubt_also_where_it_hides_another_axis(runtime: str, process: str) -> None:
    episode = Episode()

    episode.read("wedged", runtime, process)

    assert episode.found.doubt is not None
    assert (episode.found.doubt.kind, episode.found.doubt.axis) == (DoubtKind.WEDGED, Axis.SERVER)


BLIND = [
    ("?", "alive", "alive", Axis.SERVER),
    ("!", "alive", "alive", Axis.SERVER),
    ("d", "alive", "alive", Axis.SERVER),
    ("alive", "?", "alive", Axis.RUNTIME),
    ("alive", "!", "stopped", Axis.RUNTIME),
    ("alive", "alive", "?", Axis.PROCESS),
    ("alive", "alive", "!", Axis.PROCESS),
]


@pytest.mark.parametrize(("server", "runtime", "process", "axis"), BLIND)
def test_one_axis_that_cannot_be_read_is_suspect_after_a_minute(server: str, runtime: str, process: str, axis: Axis) -> None:
    episode = Episode()

    verdicts = [episode.read(server, runtime, process, after_s=step) for step in (0.0, 10.0, 49.9, 0.1, 239.9, 0.1)]

    assert verdicts == [*[LifeVerdict.LIVE] * 3, LifeVerdict.SUSPECT, LifeVerdict.SUSPECT, LifeVerdict.STUCK]
    assert episode.found.doubt is not None
    assert (episode.found.doubt.kind, episode.found.doubt.axis) == (DoubtKind.BLIND, axis)


@pytest.mark.parametrize(("runtime", "process"), [*product(("?", "!", "D", "d"), ("?", "!"))])
def test_what_cannot_be_read_is_suspect_at_once_and_stuck_after_three_attempts_and_a_minute(runtime: str, process: str) -> None:
    episode = Episode()

    verdicts = [episode.read("alive", runtime, process, after_s=step) for step in (0.0, 20.0, 39.9, 0.1)]

    assert verdicts == [LifeVerdict.SUSPECT, LifeVerdict.SUSPECT, LifeVerdict.SUSPECT, LifeVerdict.STUCK]


@pytest.mark.parametrize("process", ["?", "!"])
def test_a_minute_without_three_attempts_makes_nobody_stuck(process: str) -> None:
    episode = Episode()

    verdicts = [episode.read("alive", "?", process, after_s=step) for step in (0.0, 100.0, 1.0, 3.9)]

    assert verdicts == [LifeVerdict.SUSPECT] * 4
    assert episode.read("alive", "?", process, after_s=0.1) is LifeVerdict.STUCK


@pytest.mark.parametrize("runtime", ["alive", "d", "?", "!"])
def test_what_looks_dead_is_dead_when_it_looks_so_again_five_seconds_later(runtime: str) -> None:
    episode = Episode()

    verdicts = [episode.read("alive", runtime, "d", after_s=step) for step in (0.0, 4.9, 0.1)]

    assert verdicts == [LifeVerdict.SUSPECT, LifeVerdict.SUSPECT, LifeVerdict.DEAD]


def test_readings_within_five_seconds_are_one_sample() -> None:
    episode = Episode()

    for _ in range(49):
        assert episode.read(process="d", after_s=0.1) is LifeVerdict.SUSPECT

    assert episode.attempts == 1


def test_what_was_active_within_a_minute_is_not_called_dead_by_its_looks() -> None:
    episode = Episode(active_at=NOW)

    verdicts = [episode.read(process="d", after_s=10.0) for _ in range(6)]

    assert verdicts == [*[LifeVerdict.SUSPECT] * 5, LifeVerdict.DEAD]


def test_while_the_breaker_holds_nothing_is_concluded_from_samples() -> None:
    episode = Episode(breaker_until=NOW + 60.0)

    verdicts = [episode.read(process="d", after_s=10.0) for _ in range(6)]

    assert verdicts == [*[LifeVerdict.SUSPECT] * 5, LifeVerdict.DEAD]
    assert Episode(breaker_until=NOW + 60.0).read(process="D") is LifeVerdict.DEAD


def test_what_stays_active_and_looks_dead_is_stuck_after_five_minutes_and_not_dead() -> None:
    episode = Episode()
    verdicts = []

    for _ in range(31):
        verdicts.append(episode.read(process="d"))
        episode.now += 10.0
        episode.active_at = episode.now

    assert verdicts == [*[LifeVerdict.SUSPECT] * 30, LifeVerdict.STUCK]


@pytest.mark.parametrize("process", ["alive", "stopped"])
def test_an_agent_whose_pane_looks_gone_is_orphaned_only_when_it_looks_so_again(process: str) -> None:
    episode = Episode()

    verdicts = [episode.read("alive", "d", process, after_s=step) for step in (0.0, 4.9, 0.1)]

    assert verdicts == [LifeVerdict.SUSPECT, LifeVerdict.SUSPECT, LifeVerdict.ORPHANED]


@pytest.mark.parametrize(("server", "runtime"), [("alive", "D"), ("D", "D"), ("D", "missing"), ("missing", "D")])
def test_an_agent_whose_pane_has_just_closed_is_given_a_moment_to_follow(server: str, runtime: str) -> None:
    axes = make_axes(server, runtime)
    closed_at = make_reading().since

    just_closed = judge(axes, None, closed_at + HANGUP_S / 2)
    later = judge(axes, just_closed.doubt, closed_at + HANGUP_S)

    assert (just_closed.verdict, just_closed.look_at) == (LifeVerdict.LIVE, closed_at + HANGUP_S)
    assert later.verdict is LifeVerdict.ORPHANED


@pytest.mark.parametrize(("runtime", "process"), [*product(("alive", "?", "!"), ("alive", "stopped"))])
def test_a_stopped_agent_lives_as_one_that_runs_does(runtime: str, process: str) -> None:
    assert Episode().read("alive", runtime, process) is LifeVerdict.LIVE


def test_changed_evidence_begins_the_attempts_anew_and_keeps_the_clock() -> None:
    episode = Episode()
    for _ in range(4):
        episode.read("alive", "?", "?", after_s=10.0)
    assert episode.attempts == 4

    episode.read("alive", "?", "!", after_s=10.0)

    assert episode.found.doubt is not None
    assert (episode.attempts, episode.found.doubt.since) == (1, NOW + 10.0)


def test_evidence_that_changes_all_the_time_is_stuck_after_five_minutes_all_the_same() -> None:
    episode = Episode()

    verdicts = [episode.read("alive", "?", "?!"[number % 2], after_s=10.0) for number in range(31)]

    assert verdicts == [*[LifeVerdict.SUSPECT] * 30, LifeVerdict.STUCK]


def test_times_and_words_are_no_evidence() -> None:
    first = judge(make_axes(process="d"), None, NOW)
    axes = make_axes(process="d") | {Axis.PROCESS: replace(make_axes(process="d")[Axis.PROCESS], observed_at=NOW, why="other")}

    again = judge(axes, first.doubt, NOW + SAMPLE_S)

    assert again.doubt is not None and again.doubt.attempts == 2


@pytest.mark.parametrize(("server", "runtime", "process"), [*product(SERVERS, OTHERS, OTHERS)])
def test_a_clock_that_goes_back_concludes_nothing(server: str, runtime: str, process: str) -> None:
    episode = Episode()
    first = episode.read(server, runtime, process)
    before = episode.found.doubt

    again = episode.read(server, runtime, process, after_s=-3600.0)

    assert (again is LifeVerdict.DEAD) == (first is LifeVerdict.DEAD)
    assert again is not LifeVerdict.STUCK
    assert episode.found.doubt == before, "no sample, no attempt"


# Any sequence of readings


@dataclass(frozen=True)
class Step:
    """Some time, then a reading of all axes."""

    after_s: float
    server: str
    runtime: str
    process: str

    @property
    def words(self) -> tuple[str, str, str]:
        return self.server, self.runtime, self.process


FORTH = st.sampled_from((0.0, 0.1, 1.0, 4.9, 5.0, 10.0, 61.0, 200.0, 400.0))
BACK_AND_FORTH = st.one_of(FORTH, st.sampled_from((-0.1, -5.0, -1000.0)))
ANY, UNREAD = st.sampled_from(OTHERS), st.sampled_from(DARK)


def steps(time: st.SearchStrategy[float], *axes: st.SearchStrategy[str], min_size: int = 1) -> st.SearchStrategy[list[Step]]:
    return st.lists(st.builds(Step, time, *axes), min_size=min_size, max_size=12)


@given(steps(BACK_AND_FORTH, st.sampled_from(SERVERS), ANY, ANY), st.booleans())
def test_dead_is_only_what_last_read_dead(story: list[Step], active: bool) -> None:
    episode = Episode(active_at=NOW if active else None)
    for step in story:
        if episode.read(*step.words, after_s=step.after_s) is LifeVerdict.DEAD:
            assert step.process in ("D", "d"), step


@given(steps(FORTH, st.sampled_from(("alive", "wedged")), st.sampled_from(("alive", "?")), st.sampled_from(("alive", "d"))))
def test_dead_by_its_looks_is_only_what_has_looked_the_same_for_five_seconds(story: list[Step]) -> None:
    episode = Episode()
    same_since, last = NOW, None
    for step in story:
        verdict = episode.read(*step.words, after_s=step.after_s)
        if step.words != last:
            same_since, last = episode.now, step.words
        if verdict is LifeVerdict.DEAD:
            assert step.process == "d" and episode.now - same_since >= SAMPLE_S, step


@given(steps(FORTH, st.sampled_from(("missing", "alive", "wedged", "?", "!")), UNREAD, UNREAD))
def test_what_can_never_be_read_is_never_dead_and_stuck_at_last(story: list[Step]) -> None:
    episode = Episode()

    verdicts = {episode.read(*step.words, after_s=step.after_s) for step in story}
    at_last = episode.read(*story[-1].words, after_s=EPISODE_S)

    assert verdicts <= {LifeVerdict.SUSPECT, LifeVerdict.STUCK}
    assert at_last is LifeVerdict.STUCK


@given(
    steps(BACK_AND_FORTH, st.sampled_from(SERVERS), ANY, ANY),
    st.sampled_from(("missing", "alive")),
    st.sampled_from(("alive", "stopped")),
)
def test_an_episode_ends_when_every_axis_is_well(story: list[Step], server: str, process: str) -> None:
    episode = Episode()
    for step in story:
        episode.read(*step.words, after_s=step.after_s)

    episode.read(server, "alive", process)

    assert episode.found == WELL
