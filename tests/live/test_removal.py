"""What is removed is gone from every table and folder, from whatever state; its death records and events stay (P11)."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.live.instance import Instance, kill, wait_for
from tests.live.manifests import manifest, role, up
from vigil.errors import VigilError

KEPT = {"deaths", "events", "incidents"}  # they know what was removed, as long as they are kept
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


def running(vigil: Instance, name: str) -> None:
    vigil.run(name, "sleep", "1000")


def headless(vigil: Instance, name: str) -> None:
    vigil.run(name, "sleep", "1000", runtime="headless")


def in_backoff(vigil: Instance, name: str) -> None:
    session = vigil.run(name, "sleep", "1000", restart="always", backoff_base_s=60.0)
    kill(session["pid"], signal.SIGKILL)
    vigil.wait_state(name, "crashed")


def failed(vigil: Instance, name: str) -> None:
    vigil.run(name, "sh", "-c", "exit 3")
    vigil.wait_state(name, "failed")


def parked(vigil: Instance, name: str) -> None:
    vigil.run(name, "sleep", "1000")
    vigil.client.ask("hibernate", name)


def stopped(vigil: Instance, name: str) -> None:
    vigil.run(name, "sleep", "1000")
    vigil.client.ask("stop", name)


def ending(vigil: Instance, name: str) -> None:
    vigil.run(name, "sh", "-c", STUBBORN)
    wait_for(lambda: "ready" in vigil.ok("logs", name), 10, "it to be ready")
    threading.Thread(target=_stop, args=(vigil, name), daemon=True).start()
    vigil.wait_state(name, "ending")


def being_born(vigil: Instance, name: str) -> None:
    threading.Thread(target=_run, args=(vigil, name), daemon=True).start()
    wait_for(lambda: vigil.get(name), 10, "it to be declared")


STATES: tuple[Callable[[Instance, str], None], ...] = (
    running,
    headless,
    in_backoff,
    failed,
    parked,
    stopped,
    ending,
    being_born,
)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_a_removed_session_leaves_no_row_and_no_file(shared: Instance, state: Callable[[Instance, str], None]) -> None:
    name = state.__name__.replace("_", "-")
    shared.start()
    state(shared, name)
    session_id = shared.get(name)["id"]

    shared.client.rm(name)

    assert left_of(shared, session_id) == []
    assert shared.client.deaths(name) if state is not being_born else True, "its death is still known"


def test_replicas_that_a_team_gives_up_leave_no_row_and_no_file(vigil: Instance) -> None:
    up(vigil, manifest(role(replicas=3, runtime="headless")))
    names = [f"shop/backend/coder/{index}" for index in range(3)]
    for name in names:
        vigil.wait_state(name, "running")
    ids = [vigil.get(name)["id"] for name in names]
    os.kill(vigil.get(names[1])["pid"], signal.SIGKILL)

    vigil.ok("scale", "shop/backend/coder", "2")
    wait_for(lambda: left_of(vigil, ids[2]) == [], 20, "nothing of the third to be left", lambda: left_of(vigil, ids[2]))
    vigil.ok("down", "backend")

    def left() -> list[str]:
        return [one for session_id in ids for one in left_of(vigil, session_id)]

    wait_for(lambda: left() == [], 20, "nothing of the team to be left", left)


def left_of(vigil: Instance, session_id: str) -> list[str]:
    """Return every row and every file that bears a session's id."""
    with closing(sqlite3.connect(f"file:{vigil.path / 'vigil.db'}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        rows = [
            f"{table}: {row[0]}"
            for table in tables
            if table not in KEPT
            for row in database.execute(f"select * from {table}")
            if any(session_id in str(value) for value in row)
        ]
    files = [str(path) for path in vigil.path.rglob("*") if session_id in path.name]
    return rows + files


def _stop(vigil: Instance, name: str) -> None:
    try:
        vigil.client.ask("stop", name)
    except VigilError:
        pass  # the removal overtook it


def _run(vigil: Instance, name: str) -> None:
    try:
        vigil.run(name, "sleep", "1000")
    except VigilError:
        pass  # as above
