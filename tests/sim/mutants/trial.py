"""The trial: the tests that a mutant names run against it, and the first that fails has noticed it.

A process is forked for each trial: a test may leave behind what it likes, and what a mutant breaks stays there. A table that
a test module imported by its name is the unchanged one there: tests notice a mutant by what the core does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import pytest
from hypothesis import settings

from tests.sim.mutants.change import Mutant

TESTS = Path(__file__).resolve().parents[2]
DEADLINE_S = 300.0
ENDLESS = "a test that does not end"
OPTIONS = ("-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=120")


class Unfit(Exception):
    """Tests that fail without any mutant, or are not there: they say nothing of one."""


def noticed_by(mutant: Mutant) -> str | None:
    """Return the first test that fails with a mutant; None if all hold."""
    if not mutant.tests:
        return None
    if (broken := _fails_anyway(mutant.tests)) is not None:
        raise Unfit(f"{broken} fails without a mutant")
    return _first_failure(mutant.tests, mutant.change)


@cache
def _fails_anyway(tests: tuple[str, ...]) -> str | None:
    import_module("tests.unit.conftest")  # here, so that no trial has to do it again
    for test in tests:
        import_module("tests." + test.partition("::")[0].removesuffix(".py").replace("/", "."))
    return _first_failure(tests, nullcontext)


def _first_failure(tests: tuple[str, ...], change: Callable[[], Any]) -> str | None:
    fork = get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    trial = fork.Process(target=_run, args=(tests, change, sender))
    with catch_warnings():
        simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads, and a trial needs none of them
        trial.start()
    sender.close()
    try:
        return str(receiver.recv()) or None if receiver.poll(DEADLINE_S) else ENDLESS
    except EOFError:
        raise Unfit(f"{' '.join(tests)} could not be run") from None
    finally:
        trial.kill()
        trial.join()


class _Witness:
    """A plugin of pytest that remembers the first failure."""

    failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


def _run(tests: tuple[str, ...], change: Callable[[], Any], sender: Connection) -> None:
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    settings.load_profile("mutants")
    witness = _Witness()
    with change():
        code = pytest.main([*OPTIONS, *(str(TESTS / test) for test in tests)], plugins=[witness])
    if witness.failed or code == pytest.ExitCode.OK:
        sender.send(witness.failed)
    os._exit(0)
