"""The examination: the table of all checks, and the walk through it, mending on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from vigil.doctor import configuration, instance, leftovers, machine, room, safety
from vigil.doctor.finding import Finding, warning
from vigil.doctor.patient import Patient
from vigil.errors import VigilError
from vigil.home import Home

MachineCheck = Callable[[], list[Finding]]
Check = Callable[[Patient], list[Finding]]


# In this order: later checks need what earlier ones mend.
MACHINE: dict[str, MachineCheck] = {
    "python": machine.check_python,
    "tmux": machine.check_tmux,
    "sh": machine.check_sh,
    "pidfd": machine.check_pidfd,
    "exit status": machine.check_exit_status,
    "subreaper": machine.check_subreaper,
    "proc": machine.check_proc,
    "memory": machine.check_memory,
    "systemd": machine.check_systemd,
    "agents": machine.check_agents,
}
INSTANCE: dict[str, Check] = {
    "home": instance.check_home,
    "sockets": instance.check_sockets,
    "database": instance.check_database,
    "config": lambda _: configuration.check_config(),
    "daemon": instance.check_daemon,
    "keeper": instance.check_keeper,
    "isolation": instance.check_isolation,
    "routes": configuration.check_routes,
    "open files": lambda patient: machine.check_files(len(patient.database.session_ids or ())),
    "room": room.check_room,
    "leftovers": leftovers.check_leftovers,
    "safety": safety.check_safety,
}


@dataclass(frozen=True)
class Result:
    """A finding of one check, and what was done about it."""

    check: str
    finding: Finding
    done: str = ""


def examine_machine() -> Iterator[Result]:
    """Yield what each check of the machine finds."""
    for name, check in MACHINE.items():
        for finding in _find(check):
            yield Result(name, finding)


def examine_instance(home: Home, fix: bool = False) -> Iterator[Result]:
    """Yield what each check of an instance finds; with `fix`, mend what is safe and check again."""
    patient = Patient(home)
    for name, check in INSTANCE.items():
        findings = _find(partial(check, patient))
        done = [_mend(finding.mend) for finding in findings if fix and finding.mend]
        if done:
            patient = Patient(home)
            findings = _find(partial(check, patient))
        for index, finding in enumerate(findings):
            yield Result(name, finding, "; ".join(done) if index == 0 else "")


def _find(check: MachineCheck) -> list[Finding]:
    """Return a check's findings; if it fails itself, a warning that says so."""
    try:
        return check()
    except Exception as error:
        why = str(error) or type(error).__name__
        return [warning(f"could not be checked: {why}", "see whether the other lines explain it")]


def _mend(mend: Callable[[], str]) -> str:
    try:
        return mend()
    except (OSError, VigilError) as error:
        return f"could not be mended: {error}"
