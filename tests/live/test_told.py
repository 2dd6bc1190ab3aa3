"""What was urgent is told, even when it is over before anybody heard; in one notice that says both (P14)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.live.instance import Instance, Json, alive, wait_for
from tests.live.watching import read_notices

COMES_BACK = {"restart": "always", "backoff_base_s": 0.3}


def configure(vigil: Instance, folder: Path, first: str) -> Path:
    """Have every notice written to a file, after what the script does first."""
    notices, script = folder / "notices", folder / "route.sh"
    script.write_text(f'#!/bin/sh\n{first}\nread -r line\nprintf "0 %s\\n" "$line" >>{notices}\n')
    script.chmod(0o755)
    vigil.config.write_text(f"[routes.script]\nexec = ['{script}']\nretry = 0.2\nattempts = 100\n")
    return notices


def died(vigil: Instance, name: str) -> Json | None:
    found = (one for one in vigil.client.incidents(everything=True) if one["session"] == name)
    return next((one for one in found if one["kind"] == "server-died"), None)


def lose_server(vigil: Instance, name: str) -> Json:
    """Kill a session's tmux server, and return the incident of that."""
    os.kill(vigil.get(name)["server_pid"], signal.SIGKILL)
    return wait_for(lambda: died(vigil, name), 10, "its incident")


def states(vigil: Instance, name: str) -> list[str]:
    found = died(vigil, name)
    return [] if found is None else [notice["state"] for notice in found["notices"]]


def test_what_was_over_before_a_route_was_up_is_told_by_it_in_one_notice(vigil: Instance, tmp_path: Path) -> None:
    up = tmp_path / "up"
    notices = configure(vigil, tmp_path, f"[ -e {up} ] || exit 1")
    vigil.run("a", "sleep", "1000", **COMES_BACK)
    incident = lose_server(vigil, "a")
    over = wait_for(lambda: (one := died(vigil, "a")) and one["resolved_at"] and one, 20, "it to be over", lambda: incident)
    assert read_notices(notices) == []

    up.touch()

    wait_for(lambda: states(vigil, "a") == ["sent"], 20, "its one notice", lambda: died(vigil, "a"))
    ((_, said),) = read_notices(notices)
    assert (said["id"], said["event"], said["why"]) == (over["id"], "opened", over["why"])
    assert (said["opened_at"], said["resolved_at"]) == (over["opened_at"], over["resolved_at"])
    assert said["resolution"] == "a is starting"


def test_a_daemon_that_dies_while_it_tells_what_is_over_soon_tells_it_all_the_same(vigil: Instance, tmp_path: Path) -> None:
    """It is killed before the notice went out, and the next daemon finds that it is over."""
    once = tmp_path / "once"
    daemon = vigil.home.lock("daemon")
    notices = configure(vigil, tmp_path, f"[ -e {once} ] || {{ touch {once}; kill -9 $(cat {daemon}); sleep 60; }}")
    vigil.run("a", "sleep", "1000", **COMES_BACK)
    pid = vigil.daemon_pid
    os.kill(vigil.get("a")["server_pid"], signal.SIGKILL)
    wait_for(lambda: once.exists() and not alive(pid), 20, "the daemon to be killed")
    vigil.start()

    wait_for(lambda: states(vigil, "a") == ["sent"], 20, "its one notice", lambda: died(vigil, "a"))

    incident = died(vigil, "a")
    assert incident is not None
    assert [(said["id"], said["notice"]) for _, said in read_notices(notices)] == [(incident["id"], f"{incident['id']}/0/0")]


@pytest.mark.soak
def test_every_server_death_is_told_whenever_the_daemon_is_killed(vigil: Instance, tmp_path: Path, repeats: int) -> None:
    notices = configure(vigil, tmp_path, ":")
    names = [f"a{number}" for number in range(min(repeats, 4))]
    for name in names:
        vigil.run(name, "sleep", "1000", **COMES_BACK)
    incidents = set()
    for number in range(repeats):
        name = names[number % len(names)]
        incidents.add(lose_server(vigil, name)["id"])
        vigil.kill_daemon()
        vigil.start()
        vigil.wait_state(name, "running")

    def untold() -> set[str]:
        return incidents - {said["id"] for _, said in read_notices(notices)}

    wait_for(lambda: not untold(), 20, "each to be told", untold)
    times = [said["notice"] for _, said in read_notices(notices)]
    assert all(times.count(notice) <= 2 for notice in times)
