"""The checker itself: a good night breaks nothing, and each way to break a promise is seen for what it is."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.checks import judge
from tests.chaos.checks.base import gaps
from tests.chaos.history import (
    Absence,
    Bystander,
    Command,
    DeathRow,
    Double,
    History,
    IncidentRow,
    Life,
    NoticeRow,
    Part,
    Policy,
    Shot,
    Shown,
    Span,
    unexcused_s,
)

T = 1000.0  # the storm begins; its daemon and keeper are long there
END = 2000.0


def life(launch: str, began: float, ended: float | None, said: str = "", part: Part = Part.AGENT, **more: Any) -> Life:
    number = int(launch.rpartition("-")[2] or 0)
    pid = (100 if part is Part.AGENT else 200) + number
    return Life(part, pid, int(began * 100), began, launch, "fix", seen_to=ended or END, ended_at=ended, said=said, **more)


def death(launch: str, at: float, cause: str = "crash", **more: Any) -> DeathRow:
    given: dict[str, Any] = {"exit_code": 3, "signal": None, "charged": True, "uptime_s": 1.0} | more
    return DeathRow(f"d-{launch}", launch, launch.rpartition("-")[0], "fix", at, cause, **given)


def command(*words: str, at: float = T + 20, took_s: float = 0.2, code: int | None = 0, **more: Any) -> Command:
    return Command(at, at + took_s, words, code, **more)


def a_good_night() -> History:
    """One session that crashes twice, waits as documented, and runs when it is calm."""
    history = History(1, T, ended_at=END - 60, judged_at=END, samples=5000)
    history.policies = {"fix": Policy("fix", "on-failure", 0.5, 6.0, 5)}
    history.lives = [
        Life(Part.DAEMON, 10, 1, T - 50),
        Life(Part.KEEPER, 11, 1, T - 50),
        life("s1-1", T + 10, T + 20, "exit 3"),
        life("s1-2", T + 20.5, T + 30, "exit 3"),
        life("s1-3", T + 31, None),
    ]
    history.deaths = [death("s1-1", T + 20), death("s1-2", T + 30)]
    history.launches = ["s1-1", "s1-2", "s1-3"]
    history.sessions = [
        {"name": "fix", "id": "s1", "state": "running", "why": "up", "launch": "s1-3", "pid": 103, "hold": None},
    ]
    history.tables = {"sessions": ["s1"], "launches": ["s1"], "intents": []}
    history.bystanders = [Bystander("a shell", 5, (), True)]
    return history


def broken(history: History) -> dict[str, list[str]]:
    """Return what broke, by the first word of its promise."""
    found: dict[str, list[str]] = {}
    for verdict in judge(history):
        for violation in verdict.violations:
            found.setdefault(verdict.promise.split()[0], []).append(violation.text)
    return found


def test_a_good_night_breaks_nothing_and_every_promise_was_looked_at() -> None:
    history = a_good_night()
    history.commands = [command("ls", shown=(Shown("fix", "running", "s1-1", 101),), at=T + 15)]
    history.notices = [NoticeRow(T + 25, "i-1/0/0", "opened", ("i-1",))]
    history.incidents = [IncidentRow("i-1", "server-died", "urgent", "fix", "s1", T + 24, None)]
    history.absences = [Absence("api.sock", T + 5, T + 8)]
    history.deaths = [*history.deaths, replace(death("s0-1", T + 3, "operator", charged=False), session="gone")]

    assert broken(history) == {}
    assert all(verdict.checked for verdict in judge(history))


def _two_at_once(history: History) -> None:
    history.doubles = [Double(T + 40, "fix", ("s1-2", "s1-3"), (102, 103))]


def _a_survivor_beside_the_next(history: History) -> None:
    history.leftovers = [Double(T + 40, "fix", ("s1-2", "s1-3"), (402, 103))]


def _a_bystander_signalled(history: History) -> None:
    history.bystanders = [Bystander("a shell", 5, ("TERM",), True)]


def _a_bystander_gone(history: History) -> None:
    history.bystanders = [Bystander("a shell", 5, (), False)]


def _ended_by_nobody(history: History) -> None:
    history.lives[3] = life("s1-2", T + 20.5, T + 30, status=signal.SIGTERM)
    history.deaths[1] = death("s1-2", T + 30, "killed-by-unknown", exit_code=None, signal=15)


def _no_record(history: History) -> None:
    del history.deaths[0]


def _a_number_that_nobody_knows(history: History) -> None:
    history.lives = [one for one in history.lives if one.launch != "s1-2"]
    history.launches.remove("s1-2")
    del history.deaths[1]


def _a_record_of_the_living(history: History) -> None:
    history.deaths.append(death("s1-3", T + 50))


def _a_wrong_status(history: History) -> None:
    history.deaths[0] = death("s1-1", T + 20, exit_code=4)


def _a_wrong_signal(history: History) -> None:
    history.lives[2] = life("s1-1", T + 10, T + 20, status=signal.SIGKILL)
    history.shots = [Shot(T + 20, 101, int((T + 10) * 100), signal.SIGKILL, Part.AGENT, "s1-1")]
    history.deaths[0] = death("s1-1", T + 20, "killed-by-unknown", exit_code=None, signal=15)


def _a_wrong_time(history: History) -> None:
    history.deaths[0] = death("s1-1", T + 17)


def _unobserved_though_it_was_seen(history: History) -> None:
    history.deaths[0] = death("s1-1", T + 20, "unobserved", exit_code=None)


def _a_stop_that_is_called_a_crash(history: History) -> None:
    history.commands = [command("stop", "fix", at=T + 19.9)]
    history.lives[2] = life("s1-1", T + 10, T + 20, status=signal.SIGTERM)
    history.deaths[0] = death("s1-1", T + 20, "killed-by-unknown", exit_code=None, signal=15)


def _a_closed_pane_that_is_called_a_dead_server(history: History) -> None:
    root = life("s1-1", T + 10, T + 19.9, part=Part.ROOT, status=signal.SIGHUP)
    history.lives += [root, life("s1-1", T + 9.9, None, part=Part.SERVER)]
    history.shots = [Shot(T + 19.9, root.pid, root.start, signal.SIGHUP, Part.ROOT, "s1-1")]
    history.lives[2] = life("s1-1", T + 10, T + 20, status=signal.SIGKILL)
    history.deaths[0] = death("s1-1", T + 20, "server-died", exit_code=None, signal=9)


def _a_servers_status_that_is_the_agents(history: History) -> None:
    server = life("s1-1", T + 9.9, T + 19.9, part=Part.SERVER, status=signal.SIGKILL)
    history.lives.append(server)
    history.shots = [Shot(T + 19.9, server.pid, server.start, signal.SIGKILL, Part.SERVER, "s1-1")]
    history.lives[2] = life("s1-1", T + 10, T + 20, status=signal.SIGHUP)
    history.deaths[0] = death("s1-1", T + 20, "server-died", exit_code=None, signal=1)


def _want_of_memory_that_is_called_a_kill(history: History) -> None:
    history.faults = [Span(T + 19, T + 19, "out of memory", "s1-1")]
    history.lives[2] = life("s1-1", T + 10, T + 20, status=signal.SIGKILL)
    history.deaths[0] = death("s1-1", T + 20, "killed-by-unknown", exit_code=None, signal=9)


def _failed_though_it_ran(history: History) -> None:
    history.deaths[0] = death("s1-1", T + 20, "launch-failed", exit_code=None)


def _charged_for_our_own_failure(history: History) -> None:
    history.lives = [one for one in history.lives if one.launch != "s1-2"]
    history.deaths[1] = death("s1-2", T + 30, "launch-failed", exit_code=None)


def _a_stop_that_is_charged(history: History) -> None:
    history.commands = [command("stop", "fix", at=T + 19.9)]
    history.deaths[0] = death("s1-1", T + 20, "operator")


def _too_early(history: History) -> None:
    history.lives[3] = life("s1-2", T + 20.013, T + 30, "exit 3")


def _a_second_wait_as_short_as_the_first(history: History) -> None:
    history.lives[4] = life("s1-3", T + 30.5, None)


def _too_late(history: History) -> None:
    history.lives[3] = life("s1-2", T + 28, T + 30, "exit 3")


def _too_late_for_what_hung_elsewhere(history: History) -> None:
    history.spans = [Span(T + 20, T + 28, "server stopped", "s9-1")]
    _too_late(history)


def _back_though_never(history: History) -> None:
    history.policies["fix"] = replace(history.policies["fix"], when="never")


def _more_restarts_than_allowed(history: History) -> None:
    history.policies["fix"] = replace(history.policies["fix"], max_restarts=1)
    history.lives[4:] = [
        life("s1-3", T + 31, T + 40, "exit 3"),
        life("s1-4", T + 42, T + 50, "exit 3"),
        life("s1-5", T + 54, None),
    ]
    history.deaths += [death("s1-3", T + 40), death("s1-4", T + 50)]
    history.sessions[0] |= {"launch": "s1-5", "pid": 105}


def _shown_as_running_though_gone(history: History) -> None:
    history.lives[4] = life("s1-3", T + 31, T + 40, "exit 3")
    history.deaths.append(death("s1-3", T + 40))


def _an_old_launch_shown(history: History) -> None:
    history.sessions[0] |= {"launch": "s1-2", "pid": 102}


def _shown_as_stopped_though_it_lives(history: History) -> None:
    history.sessions[0] |= {"state": "stopped"}


def _waits_for_ever(history: History) -> None:
    history.lives[4] = life("s1-3", T + 31, T + 40, "exit 3")
    history.deaths.append(death("s1-3", T + 40))
    history.sessions[0] |= {"state": "pending", "hold": {"reason": "keeper", "until": None}}


def _listed_as_running_though_gone(history: History) -> None:
    history.commands = [command("ls", at=T + 25, shown=(Shown("fix", "running", "s1-1", 101),))]


def _lost(history: History) -> None:
    history.policies["lost"] = Policy("lost", "never", 0.5, 6.0, 0)
    history.commands = [command("run", "--name", "lost")]


def _a_living_agent_of_nobody(history: History) -> None:
    history.sessions = []


def _a_row_of_the_removed(history: History) -> None:
    history.deaths.append(replace(death("s0-1", T + 3, "operator", charged=False), session="gone"))
    history.tables["launches"].append("s0")


def _a_file_of_the_removed(history: History) -> None:
    history.deaths.append(replace(death("s0-1", T + 3, "operator", charged=False), session="gone"))
    history.files["environments"] = ["s0"]


def _a_process_of_the_removed(history: History) -> None:
    history.deaths.append(replace(death("s0-1", T + 3, "operator", charged=False), session="gone"))
    history.lives.append(life("s0-1", T, None, part=Part.SERVER))


def _untold(history: History) -> None:
    history.incidents = [IncidentRow("i-1", "server-died", "urgent", "fix", "s1", T + 24, T + 27)]


def _told_twice(history: History) -> None:
    history.notices = [NoticeRow(T + 25, "i-1/0/0", "opened", ("i-1",))] * 2


def _a_socket_gone(history: History) -> None:
    history.absences = [Absence("keeper.sock", T + 5, T + 15)]


def _a_command_that_hangs(history: History) -> None:
    history.commands = [command("events", took_s=16)]


def _a_command_that_never_ends(history: History) -> None:
    history.commands = [command("events", took_s=90, code=None)]


def _a_traceback(history: History) -> None:
    history.commands = [command("ls", code=1, err="Traceback (most recent call last):\n  KeyError")]


def _unreachable_though_it_lives(history: History) -> None:
    history.commands = [command("ls", code=5, err="vigil: the daemon did not start")]


def _a_person_refused(history: History) -> None:
    history.commands = [command("reap", code=4, err="vigil: this comes from an agent that Vigil watches: it may read")]


def _a_traceback_in_a_log(history: History) -> None:
    history.words = ["daemon.err: KeyError"]


BREAKS: list[tuple[str, Callable[[History], None], str]] = [
    ("P1", _two_at_once, "live at once"),
    ("P1", _a_survivor_beside_the_next, "while a survivor"),
    ("P2", _a_bystander_signalled, "was signalled: TERM"),
    ("P2", _a_bystander_gone, "is gone"),
    ("P2", _ended_by_nobody, "nothing of ours did that"),
    ("P3", _no_record, "has 0 death records"),
    ("P3", _a_number_that_nobody_knows, "never seen alive"),
    ("P3", _a_record_of_the_living, "lives (pid 103) and has a death record"),
    ("P3", _a_wrong_status, "with exit 4; it was exit 3"),
    ("P3", _a_wrong_signal, "with signal 15; it was signal 9"),
    ("P3", _a_wrong_time, "3.0 s off"),
    ("P3", _unobserved_though_it_was_seen, "though it could be seen"),
    ("P3", _a_stop_that_is_called_a_crash, "we asked for it"),
    ("P3", _a_closed_pane_that_is_called_a_dead_server, "we closed its pane"),
    ("P3", _a_servers_status_that_is_the_agents, "with signal 1; it was signal 9"),
    ("P3", _want_of_memory_that_is_called_a_kill, "it ran out of memory"),
    ("P3", _failed_though_it_ran, "but it ran from"),
    ("P3", _charged_for_our_own_failure, "nothing but Vigil's own failure"),
    ("P4", _a_stop_that_is_charged, "operator and charged"),
    ("P4", _too_early, "0.45 s were due"),
    ("P4", _a_second_wait_as_short_as_the_first, "0.90 s were due"),
    ("P4", _too_late, "nothing excuses"),
    ("P4", _too_late_for_what_hung_elsewhere, "nothing excuses"),
    ("P4", _back_though_never, "though restart is never"),
    ("P4", _more_restarts_than_allowed, "charged death 3 in a row, with max_restarts 1"),
    ("P5", _shown_as_running_though_gone, "no agent of it lives"),
    ("P5", _an_old_launch_shown, "s1-3 lives as pid 103"),
    ("P5", _shown_as_stopped_though_it_lives, "s1-3 lives as pid 103"),
    ("P5", _waits_for_ever, "long after the last fault"),
    ("P5", _listed_as_running_though_gone, "s1-1 had ended"),
    ("P5", _lost, "was declared, and is gone"),
    ("P5", _a_living_agent_of_nobody, "its session is gone"),
    ("P11", _a_row_of_the_removed, "left a row in launches"),
    ("P11", _a_file_of_the_removed, "left something in environments"),
    ("P11", _a_process_of_the_removed, "left processes"),
    ("P12", _untold, "nobody was told"),
    ("P12", _told_twice, "came 2 times"),
    ("P15", _a_socket_gone, "keeper.sock was gone"),
    ("P15", _a_command_that_hangs, "after 16.0 s"),
    ("P15", _a_command_that_never_ends, "exit None"),
    ("P15", _a_traceback, "a traceback"),
    ("P15", _unreachable_though_it_lives, "exit 5"),
    ("P15", _a_person_refused, "exit 4"),
    ("no", _a_traceback_in_a_log, "KeyError"),
]


@pytest.mark.parametrize(("promise", "spoil", "words"), BREAKS, ids=[spoil.__name__[1:] for _, spoil, _ in BREAKS])
def test_every_way_to_break_a_promise_is_seen(promise: str, spoil: Callable[[History], None], words: str) -> None:
    history = a_good_night()

    spoil(history)

    assert any(words in text for text in broken(history).get(promise, [])), broken(history)


def test_what_was_late_while_the_daemon_was_down_is_excused() -> None:
    history = a_good_night()
    _too_late(history)
    history.lives[0].ended_at = T + 19
    history.lives.append(Life(Part.DAEMON, 12, 1, T + 26))

    assert "P4" not in broken(history)


def test_a_relaunch_that_somebody_asked_for_waits_for_nothing() -> None:
    history = a_good_night()
    _too_early(history)
    history.commands = [command("restart", "fix", at=T + 19.9)]

    assert "P4" not in broken(history)


def test_a_notice_may_come_twice_around_a_crash_of_the_daemon() -> None:
    history = a_good_night()
    _told_twice(history)
    history.lives[0].ended_at = T + 26
    history.lives.append(Life(Part.DAEMON, 12, 1, T + 27))

    assert "P12" not in broken(history)


def test_nobody_saw_it_only_if_daemon_and_keeper_were_away() -> None:
    history = a_good_night()
    _unobserved_though_it_was_seen(history)
    for number in (0, 1):
        history.lives[number].ended_at = T + 19
        history.lives.append(Life(history.lives[number].part, 20 + number, 1, T + 20.2))

    assert "P3" not in broken(history)


def test_a_new_keeper_knows_of_nobody_before_a_daemon_told_it() -> None:
    history = a_good_night()
    _unobserved_though_it_was_seen(history)
    history.lives[1].ended_at = T + 10.05
    history.lives.append(Life(Part.KEEPER, 21, 1, T + 10.1))
    history.spans = [Span(T + 9, T + 20, "store locked")]

    assert "P3" not in broken(history)


def test_gaps_are_the_times_without_a_ready_process() -> None:
    history = History(1, T, judged_at=END)
    history.lives = [
        Life(Part.DAEMON, 1, 1, T - 19, ended_at=T + 10),
        Life(Part.DAEMON, 2, 1, T + 12, ended_at=T + 13),  # it only starts the next
        Life(Part.DAEMON, 3, 1, T + 13, ready_at=T + 16),
    ]

    found = gaps(history, Part.DAEMON, 2.0)

    assert unexcused_s(T, T + 30, found) == 24


def test_excused_times_are_counted_once() -> None:
    spans = [Span(2, 4, "a"), Span(3, 5, "b"), Span(9, 12, "c")]

    assert unexcused_s(0, 10, spans) == 6
