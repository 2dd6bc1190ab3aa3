"""Who calls is told by pid and start time together: who has a dead agent's number is not that agent."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.unit.builders import make_launch, make_session
from vigil.api.peers import find_agent
from vigil.core.machine import Machine
from vigil.core.model.launch import ProcessId
from vigil.kernel.process import read_boot, read_start_ticks

BOOT = read_boot()


def identity_of(pid: int, off: int = 0) -> tuple[int, int]:
    return pid, (read_start_ticks(pid) or 0) + off


def machine_with(*identity: int, boot: str = BOOT, role: str = "process") -> Machine:
    known: dict[str, Any] = {role: ProcessId(identity[0], identity[1], boot)}
    return Machine([make_session(launch=make_launch(**known))])


@pytest.mark.parametrize("role", ["process", "root", "server"])
@pytest.mark.parametrize("who", ["itself", "its parent"])
def test_a_caller_is_an_agent_by_its_own_or_an_ancestors_identity_alone(who: str, role: str) -> None:
    pid = os.getpid() if who == "itself" else os.getppid()
    itself = machine_with(*identity_of(pid), role=role)
    another = machine_with(*identity_of(pid, off=-1), role=role)  # it died, and its number was given again
    rebooted = machine_with(*identity_of(pid), boot="9d0c4a1e-0000-4000-8000-000000000000:25", role=role)

    below, session = find_agent(os.getpid(), None, itself, BOOT)
    assert (below, session.name if session else None) == (True, "alpha")
    assert find_agent(os.getpid(), None, another, BOOT) == (False, None)
    assert find_agent(os.getpid(), None, rebooted, BOOT) == (False, None)


def test_who_has_a_dead_keepers_number_has_no_agents_below_it() -> None:
    assert find_agent(os.getpid(), identity_of(os.getppid()), Machine([]), BOOT) == (True, None)
    assert find_agent(os.getpid(), identity_of(os.getppid(), off=-1), Machine([]), BOOT) == (False, None)


def test_a_caller_that_cannot_be_read_is_not_called_a_person() -> None:
    assert find_agent(0, None, Machine([]), BOOT) == (None, None)
