"""Bugs of the core that the simulator found, each by the world it was found in, or by the few faults that were left of one."""

from __future__ import annotations

import pytest

from tests.sim.faults import TEAMS
from tests.sim.faults.sizes import between
from tests.sim.run import live_through
from tests.sim.scenarios import Fault, Plan, draw_plan
from tests.sim.sockets import lost_for_good

WORLDS = {
    "a death that the kernel denies needs a human after five minutes": (0, "blind"),
    "what looks dead without its pane and lives is shown and needs a human": (6, "blind"),
    "an older word that comes late does not replace a newer one": (1, "disk"),
    "a crash before an operator's word is still a crash": (296, "people"),
    "a backoff ends in time though the clock was set back": (35, "host"),
    "an end that nobody saw ends what could not be ended": (5, "killed"),
    "every death is charged also while somebody ends it": (1, "killed"),
    "charges are forgiven also after a doubt": (30, "tmux"),
    "a start of what could not be ended is obeyed when it is gone": (305516, "people"),
    "what an orphan says does not make it well": (505834, "confused"),
}

LATER = frozenset(  # than all worlds here
    {
        "keeper loses its socket",
        "daemon loses its socket",
        "daemon dies in a birth",
        "keeper dies in a birth",
        "keeper hangs in a backoff",
        "pane is hung up",
        "memory runs out elsewhere",
        "agent's number is a thread's",
        "daemon is killed again and again",
        "store commits late",
        "store fails",
        "agent's end hangs",
    }
)
# Unknown when these worlds were drawn, each from all faults there were.
NEWER = TEAMS | {
    "memory runs out",
    "agent meets its limit",
    "agent is locked out",
    "agent meets its limit and lives on",
    "agent is locked out and lives on",
    "stopped agent loses its pane",
    *LATER,
}


@pytest.mark.parametrize("seed", [9014, 9084])
def test_a_person_whom_only_the_reaper_saw_is_not_asked_to_leave_by_a_shift(seed: int) -> None:
    assert live_through(draw_plan(seed, "shifts", without=LATER)).words == ""


@pytest.mark.parametrize("name", WORLDS)
def test_what_broke_once_holds(name: str) -> None:
    seed, scenario = WORLDS[name]

    assert live_through(draw_plan(seed, scenario, without=NEWER | LATER)).words == ""


def test_a_socket_that_is_lost_while_its_server_hangs_is_repaired() -> None:
    hangs = Fault(3600.0, "server hangs", 0, 0.87)
    lost = Fault(3750.0, "socket is lost", 0, 0.5)  # the session is stuck by then, and its server still stopped

    assert live_through(few_faults(40, hangs, lost)).words == ""


def test_who_asks_again_goes_on_with_what_was_begun() -> None:
    size = 0.87
    sleeps = Fault(3600.0, "agent cannot be killed", 0, size)  # and is asked to end
    ends_at = 3600.0 + between(size, 5.0, 900.0)
    asked = Fault(ends_at + 0.003, "somebody has a look", 0, 0.5)  # its end has happened, and was not told yet

    assert live_through(few_faults(40, sleeps, asked)).words == ""


def test_the_end_of_a_server_is_logged_also_if_a_look_saw_it_first() -> None:
    killed = Fault(3600.0, "daemon is killed", 0, 0.5)
    outlives = Fault(3601.0, "agent outlives its pane", 0, 0.5)  # the next daemon reads that before anybody tells it

    assert live_through(few_faults(40, killed, outlives)).words == ""


def test_a_server_that_we_ended_is_not_said_to_have_died() -> None:
    faults = (
        Fault(70386.523, "daemon dies before it acts", 939, 0.494),
        Fault(73378.425, "host sleeps", 677, 0.916),
        Fault(75211.041, "agent cannot be killed", 344, 0.371),
        Fault(76187.797, "stopped agent loses its pane", 978, 0.905),
    )

    assert live_through(Plan(801985, "host", sessions=5, hours=24.0, faults=faults)).words == ""


def test_the_end_of_a_server_that_hung_is_logged() -> None:
    faults = (
        Fault(84170.823, "agent ends unseen", 670, 0.762),
        Fault(84290.302, "everything is confused", 52, 0.369),
        Fault(84996.406, "server hangs", 980, 0.991),
        Fault(85567.053, "pane is closed", 927, 0.018),
    )

    assert live_through(Plan(900970, "confused", sessions=5, hours=24.0, faults=faults)).words == ""


def test_what_was_over_before_the_last_of_an_account_was_removed_is_told_to_nobody_after_the_night() -> None:
    faults = (
        Fault(21140.761, "somebody removes it", 604, 0.784),
        Fault(21843.194, "agent meets its limit", 759, 0.916),
        Fault(30212.374, "somebody removes it", 607, 0.768),
        Fault(30712.507, "somebody removes it", 96, 0.08),
        Fault(32921.218, "somebody removes it", 82, 0.55),
    )

    assert live_through(Plan(2, "people", sessions=5, hours=24.0, faults=faults)).words == ""


@pytest.mark.parametrize("size", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("stopped", [False, True], ids=["it runs", "it is stopped"])
def test_a_keeper_that_lost_its_socket_is_found_by_the_next_daemon(size: float, stopped: bool) -> None:
    stop = Fault(3600.0, "keeper is stopped", 0, 0.7)
    lost = Fault(3601.0, "keeper loses its socket", 0, size)
    killed = Fault(3602.0, "daemon is killed", 0, 0.01)
    plan = few_faults(40, *([stop] if stopped else []), lost, killed, Fault(3700.0, "agent exits", 0, 0.5))

    assert live_through(plan).words == ""


@pytest.mark.parametrize("whose", ["keeper", "daemon"])
def test_a_socket_that_nobody_makes_anew_is_noticed(whose: str) -> None:
    """As it was: no command worked any more."""
    lost = Fault(3600.0, f"{whose} loses its socket", 0, 0.6)

    with lost_for_good():
        outcome = live_through(few_faults(40, lost))

    assert (outcome.broken, f"the {whose}'s socket has been lost" in outcome.words) == ("P15", True)
    assert live_through(few_faults(40, lost)).words == ""


def few_faults(seed: int, *faults: Fault) -> Plan:
    """Return a world in which almost nothing goes wrong."""
    return Plan(seed, "tmux", sessions=5, hours=2.0, faults=faults)
