"""The cause of a death is read from a table, and rests on evidence."""

from __future__ import annotations

import signal
import unicodedata
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from tests.unit.builders import make_case, make_exit, make_intent
from vigil.core.model.death import Cause, Confidence, EvidenceLine, Intent, IntentVerb, Oom, Words
from vigil.core.model.restart import RestartWhen
from vigil.core.rules.death import (
    CRASH_SIGNALS,
    EARLY_S,
    RULES,
    ExitFacts,
    classify,
    confidence_of,
    describe_status,
    evidence_of,
)

ALWAYS, NEVER = RestartWhen.ALWAYS, RestartWhen.NEVER
# One line a rule, in the order of the table: a case that this rule decides, and no earlier one.
DECIDED = (
    (Cause.HOST_REBOOTED, make_case(rebooted=True, exit_code=0, started=False, server_ended=True)),
    (Cause.LAUNCH_FAILED, make_case(started=False, server_ended=True, signal=11)),
    (Cause.OOM, make_case(signal=9, oom=Oom(named=True), server_ended=True)),
    (Cause.SERVER_DIED, make_case(server_ended=True, signal=11, pane_closed=True)),
    (Cause.PANE_CLOSED, make_case(signal=1, pane_closed=True)),
    (Cause.CRASH, make_case(signal=11)),
    (Cause.KILLED_BY_UNKNOWN, make_case(signal=9)),
    (Cause.LIMIT, make_case(exit_code=0, uptime_s=1.0, when=ALWAYS, words=Words(Cause.LIMIT, "usage limit reached"))),
    (Cause.AUTH, make_case(exit_code=1, words=Words(Cause.AUTH, "please log in"))),
    (Cause.EARLY_EXIT, make_case(exit_code=0, uptime_s=1.0, when=ALWAYS)),
    (Cause.FINISHED, make_case(exit_code=0)),
    (Cause.CRASH, make_case(exit_code=1)),
    (Cause.UNOBSERVED, make_case()),
)
INTENTS = (None, *(make_intent(cause, reason=reason) for cause in Cause for reason in ("", "it was time")))
CODES = (None, 0, 1, 2, 126, 127, 128, 129, 130, 137, 139, 143, 255)
SIGNALS = (None, 1, 2, 6, 9, 11, 15, 19, 34, 40, 64, 99)


def every_case() -> list[ExitFacts]:
    flags = (False, True)
    return [
        make_case(
            intent,
            uptime_s,
            when,
            exit_code=code,
            signal=number,
            ambiguous=ambiguous,
            server_ended=server_ended,
            server_signal=number if server_ended else None,
            rebooted=rebooted,
            started=started,
            root_signal=root,
            pane_closed=root is not None,
            status_source="pidfd" if rebooted else "",
        )
        for code, number, ambiguous, server_ended, rebooted, started in product(CODES, SIGNALS, flags, flags, flags, flags)
        for intent in (INTENTS[0], INTENTS[1])
        for uptime_s, when, root in (
            (None, NEVER, None),
            (0.0, ALWAYS, 1),
            (9.9, RestartWhen.ON_FAILURE, None),
            (1e6, ALWAYS, None),
        )
    ]


@pytest.mark.parametrize("number", range(len(RULES)), ids=lambda n: f"{n}-{RULES[n].cause}")
def test_every_rule_decides_something_and_the_first_that_holds_decides(number: int) -> None:
    assert len(DECIDED) == len(RULES)
    cause, case = DECIDED[number]

    assert [rule.holds(case) for rule in RULES[:number]] == [False] * number
    assert RULES[number].holds(case)
    assert (RULES[number].cause, classify(case)) == (cause, cause)


def test_the_last_rule_holds_whatever_happened() -> None:
    assert all(RULES[-1].holds(case) for case in every_case())


@pytest.mark.parametrize("cause", sorted(Cause))
def test_an_intent_always_names_the_cause(cause: Cause) -> None:
    for code, number, server_ended, started in product(CODES, SIGNALS, (False, True), (False, True)):
        case = make_case(make_intent(cause), exit_code=code, signal=number, server_ended=server_ended, started=started)
        assert classify(case) is cause, case


def test_an_intent_that_came_after_the_end_explains_nothing() -> None:
    case = make_case(make_intent(at=1100.5), at=1100.0, exit_code=3)

    assert classify(case) is Cause.CRASH
    assert "it had ended before this was asked for: stop by alice" in [line.text for line in evidence_of(case)]


def test_a_shims_time_is_too_coarse_to_say_what_came_first() -> None:
    assert classify(make_case(make_intent(at=1100.5), at=1100.0, exit_code=143, observed_by="shim")) is Cause.OPERATOR


def test_a_reboot_beats_an_intent_and_everything_else() -> None:
    for intent, code, number, server_ended, started in product(INTENTS, CODES, SIGNALS, (False, True), (False, True)):
        case = make_case(intent, exit_code=code, signal=number, server_ended=server_ended, started=started, rebooted=True)
        assert classify(case) is Cause.HOST_REBOOTED, case


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("ambiguous", [False, True])
def test_an_exit_that_answers_a_signal_counts_as_that_signal(number: int, ambiguous: bool) -> None:
    case = make_case(exit_code=128 + number, ambiguous=ambiguous)

    assert case.signal == number
    assert classify(case) is Cause.KILLED_BY_UNKNOWN


@pytest.mark.parametrize("code", sorted(set(range(1, 256)) - {129, 130, 143}))
def test_any_other_exit_code_is_a_crash_also_137(code: int) -> None:
    assert classify(make_case(exit_code=code)) is Cause.CRASH


@pytest.mark.parametrize("number", range(1, 65))
def test_a_signal_is_a_crash_if_the_agent_did_it_to_itself_and_else_nobodys(number: int) -> None:
    own = {"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGSYS", "SIGTRAP"}  # DESIGN 4.4
    expected = Cause.CRASH if number in {getattr(signal, name) for name in own} else Cause.KILLED_BY_UNKNOWN

    assert classify(make_case(signal=number)) is expected
    assert {signal.Signals(found).name for found in CRASH_SIGNALS} == own


@pytest.mark.parametrize("found", [{"exit_code": 0}, {"exit_code": 1}, {"signal": 1}, {"signal": 11}, {}], ids=str)
def test_the_server_is_looked_at_before_the_agents_own_end(found: dict[str, Any]) -> None:
    case = make_case(server_ended=True, server_signal=9, **found)

    assert classify(case) is Cause.SERVER_DIED
    assert any("tmux server" in line.text and "SIGKILL" in line.text for line in evidence_of(case))


@pytest.mark.parametrize(
    ("uptime_s", "when", "cause"),
    [
        (EARLY_S - 0.1, RestartWhen.ALWAYS, Cause.EARLY_EXIT),
        (EARLY_S, RestartWhen.ALWAYS, Cause.FINISHED),
        (None, RestartWhen.ALWAYS, Cause.FINISHED),
        (EARLY_S - 0.1, RestartWhen.ON_FAILURE, Cause.FINISHED),
        (EARLY_S - 0.1, RestartWhen.NEVER, Cause.FINISHED),
    ],
)
def test_a_quick_exit_0_is_early_only_where_it_would_always_come_back(
    uptime_s: float | None, when: RestartWhen, cause: Cause
) -> None:
    assert EARLY_S == 10  # DESIGN 4.4
    assert classify(make_case(exit_code=0, uptime_s=uptime_s, when=when)) is cause


def test_what_only_the_shell_saw_is_told_as_both_it_may_be() -> None:
    words = describe_status(make_exit(exit_code=137, ambiguous=True))

    assert "SIGKILL (9)" in words
    assert "exit 137" in words
    assert "only its shell's $? is known" in words


def test_what_the_kernel_said_is_told_as_it_is() -> None:
    assert describe_status(make_exit(exit_code=137)) == "the agent exited with 137"
    assert describe_status(make_exit(signal=9)) == "the agent was ended by SIGKILL (9)"
    assert describe_status(make_exit(signal=40)) == "the agent was ended by signal 40"


def test_what_nobody_saw_is_never_a_guess() -> None:
    case = make_case()

    assert classify(case) is Cause.UNOBSERVED
    assert evidence_of(case)[0].text == "nobody saw how it ended"


def test_the_evidence_of_a_signal_says_that_no_intent_was_found() -> None:
    for case in (make_case(signal=9), make_case(exit_code=143)):
        assert "nobody recorded an intent to end it" in [line.text for line in evidence_of(case)]


def test_the_evidence_of_an_intent_says_who_and_why() -> None:
    case = make_case(make_intent(reason="too expensive"), signal=15)

    assert "stop by alice: too expensive" in [line.text for line in evidence_of(case) if line.source == "intent"]


def test_the_evidence_says_how_long_it_had_been_up_and_that_its_pane_was_closed() -> None:
    texts = [line.text for line in evidence_of(make_case(signal=1, root_signal=1, uptime_s=3.25))]

    assert "it had been up 3.2 s" in texts
    assert any("the pane was closed" in text for text in texts)


def test_every_combination_has_a_cause_and_clean_evidence() -> None:
    for case in every_case():
        assert classify(case) in Cause
        evidence = evidence_of(case)
        assert evidence, case
        for line in evidence:
            assert line.source, case
            assert line.text, case
            assert not any(unicodedata.category(char) == "Cc" for char in line.source + line.text), case


@pytest.mark.parametrize("intent", INTENTS, ids=lambda i: "none" if i is None else f"{i.cause}-{bool(i.reason)}")
def test_every_intent_is_told_in_the_evidence(intent: Intent | None) -> None:
    said = [line for line in evidence_of(make_case(intent, exit_code=0)) if line.source == "intent"]

    assert bool(said) == (intent is not None)


# What the kernel's log says, by how much the counters grew (cgroup, host), and whether that is a death for want of memory.
MEMORY = (
    (True, None, None, True),
    (True, 0, 0, True),  # what it wrote down is what it did
    (False, None, 1, False),
    (False, 1, 1, False),  # it ended somebody else beside it
    (None, 1, 1, True),
    (None, 0, 1, False),  # that was in another cgroup, and whose is unknown
    (None, None, 1, True),
    (None, None, 0, False),
    (None, None, None, False),
)


@pytest.mark.parametrize(("named", "cgroup_kills", "host_kills", "expected"), MEMORY)
def test_the_kernels_log_decides_and_unread_the_nearest_counter(
    named: bool | None, cgroup_kills: int | None, host_kills: int | None, expected: bool
) -> None:
    case = make_case(signal=9, oom=Oom(named, "/agents", cgroup_kills, host_kills))

    assert classify(case) is (Cause.OOM if expected else Cause.KILLED_BY_UNKNOWN)


# By how much the counters grew (cgroup, host, other launches' cgroups), and whether the agent died in a cgroup nobody knows.
MOVED = ((0, 1, 0, True), (0, 1, 1, False), (0, 2, 1, True), (0, 0, 0, False), (0, None, 0, False), (0, 1, None, False))


@pytest.mark.parametrize(("cgroup_kills", "host_kills", "elsewhere", "expected"), MOVED)
def test_a_kill_that_no_other_launch_explains_is_the_agents_also_in_a_cgroup_that_nobody_knows(
    cgroup_kills: int, host_kills: int | None, elsewhere: int | None, expected: bool
) -> None:
    case = make_case(signal=9, oom=Oom(None, "/agents", cgroup_kills, host_kills, elsewhere))
    denied = make_case(signal=9, oom=Oom(False, "/agents", cgroup_kills, host_kills, elsewhere))

    assert classify(case) is (Cause.OOM if expected else Cause.KILLED_BY_UNKNOWN)
    assert classify(denied) is Cause.KILLED_BY_UNKNOWN
    assert not expected or confidence_of(case, Cause.OOM) is Confidence.LIKELY


# How an agent ended after its pane, and whether that was the pane's end: a hangup, or an answer to it.
HUNG_UP: tuple[tuple[dict[str, Any], bool], ...] = (
    ({"signal": 1}, True),
    ({"exit_code": 129}, True),
    ({"exit_code": 0}, True),
    ({"signal": 9}, False),
    ({"signal": 11}, False),
    ({}, False),
    ({"signal": 1, "server_ended": True}, False),
)


@pytest.mark.parametrize(("found", "expected"), HUNG_UP, ids=str)
def test_what_a_closed_pane_explains_is_called_so_while_its_server_lives(found: dict[str, Any], expected: bool) -> None:
    closed = make_case(root_signal=1, pane_closed=True, **found)
    earlier = make_case(root_signal=1, **found)  # its root ended long before

    assert (classify(closed) is Cause.PANE_CLOSED) == expected
    assert classify(earlier) is not Cause.PANE_CLOSED
    if expected:
        assert evidence_of(closed)[0].text == "its pane was closed, and its tmux server lives on"
        assert confidence_of(closed, Cause.PANE_CLOSED) is Confidence.CERTAIN


@pytest.mark.parametrize("number", [None, 1, 6, 11, 15])
def test_the_kernel_ends_for_want_of_memory_by_sigkill_alone(number: int | None) -> None:
    assert classify(make_case(signal=number, oom=Oom(named=True))) is not Cause.OOM


def test_our_own_kill_is_no_want_of_memory_whatever_the_counters_say() -> None:
    case = make_case(make_intent(Cause.POLICY), signal=9, oom=Oom(True, "/agents", 1, 1))

    assert classify(case) is Cause.POLICY
    assert "want of memory (" not in evidence_of(case)[0].text


def test_the_evidence_of_memory_names_log_and_counters() -> None:
    texts = [line.text for line in evidence_of(make_case(signal=9, oom=Oom(None, "/agents", 2, 3)))]

    assert texts[0] == "the agent was ended for want of memory (SIGKILL by the kernel)"
    assert "the counter of the cgroup /agents grew by 2" in texts
    assert "the counter of the host grew by 3" in texts


def test_a_sigkill_by_hand_says_what_speaks_against_memory() -> None:
    texts = [line.text for line in evidence_of(make_case(signal=9, oom=Oom(False, "/agents", 0, 0)))]

    assert "the kernel's log does not say that it was ended for want of memory" in texts


@pytest.mark.parametrize(
    ("case", "confidence"),
    [
        (make_case(signal=11), Confidence.CERTAIN),
        (make_case(exit_code=0), Confidence.CERTAIN),
        (make_case(signal=9, oom=Oom(named=True)), Confidence.CERTAIN),
        (make_case(signal=9, oom=Oom(host_kills=1)), Confidence.LIKELY),
        (make_case(signal=9, oom=Oom(None, "/agents", 0, 1)), Confidence.LIKELY),
        (make_case(signal=9, oom=Oom(False, "/agents", 0, 1)), Confidence.CERTAIN),
        (make_case(signal=9, oom=Oom(False, "/agents", 1, 1)), Confidence.LIKELY),
        (make_case(signal=9, oom=Oom(host_kills=0)), Confidence.CERTAIN),
        (make_case(signal=9, oom=Oom()), Confidence.LIKELY),
        (make_case(signal=9), Confidence.LIKELY),
        (make_case(exit_code=1, words=Words(Cause.LIMIT, "429")), Confidence.LIKELY),
        (make_case(exit_code=143), Confidence.LIKELY),
        (make_case(exit_code=137, ambiguous=True), Confidence.LIKELY),
        (make_case(exit_code=137, ambiguous=True, server_ended=True), Confidence.CERTAIN),
        (make_case(), Confidence.UNKNOWN),
        (make_case(make_intent()), Confidence.CERTAIN),
        (make_case(make_intent(), exit_code=137, ambiguous=True), Confidence.CERTAIN),
        (make_case(rebooted=True), Confidence.CERTAIN),
    ],
    ids=lambda value: str(value) if isinstance(value, Confidence) else "",
)
def test_a_cause_says_how_sure_it_is(case: ExitFacts, confidence: Confidence) -> None:
    assert confidence_of(case, classify(case)) is confidence


def test_a_core_a_full_disk_and_last_words_are_in_the_evidence() -> None:
    words = Words(Cause.LIMIT, "limit reached, resets at 3am")
    texts = [line.text for line in evidence_of(make_case(signal=11, core=True, full_disk="/work", words=words))]

    assert texts[0] == "the agent was ended by SIGSEGV (11) and left a core"
    assert "nothing more can be written to /work: it is full" in texts
    assert "limit reached, resets at 3am" in texts


def test_who_else_ended_in_the_same_second_is_named() -> None:
    case = replace(make_case(signal=9), beside=tuple("abcdefg"))

    assert "ended within the same second: a, b, c, d, e and 2 more" in [line.text for line in evidence_of(case)]


def test_a_server_that_we_ended_ourselves_is_not_to_blame() -> None:
    intent = make_intent(Cause.SERVER_DIED, verb=IntentVerb.REPLACE)
    ours = make_case(intent, signal=9, server_ended=True, server_signal=15)
    before = replace(ours, server_told=True)

    assert (ours.server_to_blame, before.server_to_blame) == (False, True)
    assert evidence_of(ours)[0].text == "the agent was ended by SIGKILL (9)"
    assert evidence_of(before)[0].text == "its tmux server was ended by SIGTERM (15)"


@pytest.mark.parametrize(
    ("result", "uptime_s", "when", "cause"),
    [
        (True, 3.0, RestartWhen.ALWAYS, Cause.FINISHED),  # it said that its work is done, however soon
        (True, 300.0, RestartWhen.NEVER, Cause.FINISHED),
        (False, 3.0, RestartWhen.NEVER, Cause.EARLY_EXIT),
        (False, 300.0, RestartWhen.NEVER, Cause.CRASH),
        (None, 3.0, RestartWhen.ALWAYS, Cause.EARLY_EXIT),  # a kind that never says so
        (None, 3.0, RestartWhen.ON_FAILURE, Cause.FINISHED),
        (None, 300.0, RestartWhen.ALWAYS, Cause.FINISHED),
    ],
)
def test_exit_0_has_finished_unless_its_stream_says_otherwise(
    result: bool | None, uptime_s: float, when: RestartWhen, cause: Cause
) -> None:
    case = make_case(uptime_s=uptime_s, when=when, exit_code=0, result=result)

    assert classify(case) is cause
    assert any("no result" in line.text for line in evidence_of(case)) == (result is False)


def test_a_result_changes_nothing_about_other_ends() -> None:
    for result in (True, False, None):
        assert classify(make_case(exit_code=1, result=result)) is Cause.CRASH
        assert classify(make_case(signal=9, result=result)) is Cause.KILLED_BY_UNKNOWN


@pytest.mark.parametrize("cause", [Cause.UNHEALTHY, Cause.STALLED])
def test_why_policy_ended_it_stands_before_the_signal_that_did(cause: Cause) -> None:
    intent = make_intent(cause, actor="policy", reason="no sign of life for 30 s")

    first, second, *_ = evidence_of(make_case(intent, signal=15))

    assert first == EvidenceLine("policy", "it was ended: no sign of life for 30 s")
    assert second.source == "pidfd"


@pytest.mark.parametrize(
    ("found", "cause"),
    [({"server_ended": True}, Cause.SERVER_DIED), ({"pane_closed": True, "root_signal": 1}, Cause.PANE_CLOSED)],
)
def test_what_became_of_its_runtime_is_certain_whatever_the_agent_answered(found: dict[str, Any], cause: Cause) -> None:
    case = make_case(exit_code=129, ambiguous=True, **found)

    assert (classify(case), confidence_of(case, cause)) == (cause, Confidence.CERTAIN)
