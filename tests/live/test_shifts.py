"""Shifts and health checks: new replicas before old ones go, and silence that is charged like any death; real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.live.instance import VIGIL, Instance, alive, wait_for
from tests.live.manifests import manifest, role, shown, slots, up, wait_running

Json = dict[str, Any]
SAYS = '["sh", "-c", "echo {word}; exec sleep 1000"]'  # its output is a sign of life: it is ready at once


def saying(word: str, name: str = "coder", replicas: int = 2) -> str:
    return role(name, replicas, command=SAYS.format(word=word), runtime="headless")


def serve(vigil: Instance, *roles: tuple[str, int]) -> list[Json]:
    """Bring up roles that say `one`, and declare them anew so that they would say `two`."""
    up(vigil, manifest(*(saying("one", name, count) for name, count in roles)))
    found = [vigil.wait_state(slot, "running") for name, count in roles for slot in slots(count, name)]
    up(vigil, manifest(*(saying("two", name, count) for name, count in roles)))
    return found


def words_of(vigil: Instance) -> dict[str, str]:
    return {name: vigil.ok("logs", name).strip() for name in shown(vigil)}


def kinds_of(vigil: Instance) -> list[str]:
    return [event["kind"] for event in vigil.client.events()]


def test_a_shift_has_the_new_ones_ready_before_the_old_ones_go(vigil: Instance) -> None:
    old = serve(vigil, ("coder", 2))

    done = vigil.json("shift", "backend")

    assert [(found["name"], found["shifted"]["done"]) for found in done] == [("shop/backend/coder", True)]
    assert words_of(vigil) == {"shop/backend/coder/2": "two", "shop/backend/coder/3": "two"}
    assert not any(alive(session["pid"]) for session in old)
    kinds = kinds_of(vigil)
    assert kinds.index("shift.ready") < kinds.index("session.died")
    assert {death["cause"] for death in vigil.client.deaths()} == {"policy"}
    assert "everything is as declared" in vigil.ok("plan", str(vigil.path / "vigil.toml"))


def test_a_supervisor_is_shifted_after_those_it_looks_after(vigil: Instance) -> None:
    serve(vigil, ("supervisor", 1), ("worker", 1))

    vigil.ok("shift", "backend")

    begun = [event["data"]["role"] for event in vigil.client.events() if event["kind"] == "shift.begun"]
    assert begun == ["shop/backend/worker", "shop/backend/supervisor"]


def test_one_role_alone_can_be_shifted(vigil: Instance) -> None:
    serve(vigil, ("a", 1), ("b", 1))

    vigil.ok("shift", "backend", "--role", "b")

    assert words_of(vigil) == {"shop/backend/a/0": "one", "shop/backend/b/1": "two"}


def test_a_new_generation_that_crashes_is_taken_back_and_the_next_shift_works(vigil: Instance) -> None:
    old = serve(vigil, ("coder", 2))
    broken = role(command='["sh", "-c", "sleep 0.3; exit 3"]', runtime="headless")
    up(vigil, manifest(broken))

    refused = vigil.run_cli("shift", "backend")

    assert refused.returncode == 1
    assert "was given up: shop/backend/coder/" in refused.stderr
    assert "crash: the agent exited with 3" in refused.stderr
    wait_for(lambda: list(shown(vigil)) == slots(2), 10, "only the old ones to be there")
    assert all(alive(session["pid"]) for session in old), "they serve on"
    up(vigil, manifest(saying("three")))
    vigil.ok("shift", "backend")
    assert set(words_of(vigil).values()) == {"three"}


def test_a_shift_that_is_never_ready_is_given_up_in_time(vigil: Instance) -> None:
    text = manifest(role(replicas=1, runtime="headless", more='health = { heartbeat = "60s", heartbeat_by = "command" }\n'))
    up(vigil, text)
    (old,) = wait_running(vigil, *slots(1))

    refused = vigil.run_cli("shift", "backend", "--timeout", "10s")

    assert (refused.returncode, "not ready within 10 s" in refused.stderr) == (1, True)
    assert alive(old["pid"])


def test_an_abort_leaves_the_old_ones(vigil: Instance) -> None:
    up(vigil, manifest(role(replicas=1, runtime="headless", more='health = { heartbeat = "60s", heartbeat_by = "command" }\n')))
    (old,) = wait_running(vigil, *slots(1))
    vigil.ok("shift", "backend", "--no-wait")
    wait_for(lambda: len(shown(vigil)) == 2, 10, "the new one to be there")
    assert vigil.run_cli("shift", "backend").returncode == 4
    assert vigil.run_cli("scale", "backend/coder", "3").returncode == 4

    vigil.ok("shift", "backend", "--abort")

    wait_for(lambda: shown(vigil) == {slots(1)[0]: "running"}, 10, "the new one to be gone")
    assert alive(old["pid"])
    assert vigil.run_cli("shift", "backend", "--abort").returncode == 4
    assert vigil.run_cli("shift", "nobody").returncode == 3
    assert vigil.run_cli("shift", "backend", "--timeout", "soon").returncode == 2


def test_one_role_alone_can_be_taken_out_of_a_shift(vigil: Instance) -> None:
    waits = 'health = { heartbeat = "60s", heartbeat_by = "command" }\n'
    up(vigil, manifest(*(role(name, 1, runtime="headless", more=waits) for name in ("a", "b", "c"))))
    wait_running(vigil, *(slot for name in ("a", "b", "c") for slot in slots(1, name)))
    vigil.ok("shift", "backend", "--no-wait")

    assert vigil.run_cli("shift", "backend", "--role", "nobody", "--abort").returncode == 3
    (behind,) = vigil.json("shift", "backend", "--role", "b", "--abort")
    assert behind["shifted"]["why"] == "aborted by operator before it began"
    assert vigil.run_cli("shift", "backend", "--role", "b", "--abort").returncode == 4
    both = vigil.json("shift", "backend", "--role", "a", "--abort")

    assert [found["name"] for found in both] == ["shop/backend/a", "shop/backend/c"]
    assert not any(found["shift"] for found in vigil.client.roles())


def test_who_waits_for_a_shift_is_told_when_its_team_is_taken_down(vigil: Instance) -> None:
    up(vigil, manifest(role(replicas=1, runtime="headless", more='health = { heartbeat = "60s", heartbeat_by = "command" }\n')))
    wait_running(vigil, *slots(1))
    waiting = subprocess.Popen(
        [*VIGIL, "shift", "backend"], env=vigil.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: len(shown(vigil)) == 2, 10, "the new one to be there")

    vigil.ok("down", "backend")

    assert waiting.communicate(timeout=20)[1] == (
        "vigil: the shift of shop/backend/coder was given up: its role was taken down meanwhile\n"
    )
    assert waiting.returncode == 1


def test_an_agent_that_ignores_being_asked_is_ended_after_its_grace(vigil: Instance) -> None:
    stubborn = '["sh", "-c", "trap : INT; echo one; while :; do sleep 0.2; done"]'
    up(vigil, manifest(role(replicas=1, runtime="tmux", command=stubborn)))
    (old,) = wait_running(vigil, *slots(1))

    vigil.ok("shift", "backend")

    assert not alive(old["pid"])
    (death,) = vigil.client.deaths()
    assert (death["cause"], death["signal"]) == ("policy", 15)


def test_a_person_in_an_old_replica_is_not_thrown_out(vigil: Instance) -> None:
    up(vigil, manifest(role(replicas=1, command=SAYS.format(word="one"))))
    (old,) = wait_running(vigil, *slots(1))
    socket = str(vigil.home.server_socket(old["launch"]))
    screen = subprocess.Popen(
        ["script", "-qec", f"tmux -u -S {socket} attach", "/dev/null"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm"},
    )
    try:
        wait_for(lambda: vigil.get(slots(1)[0])["attached"] == 1, 10, "a person to be attached")
        vigil.ok("shift", "backend", "--no-wait")
        vigil.wait_event("shift.ready")
        wait_for(lambda: vigil.get("shop/backend/coder/1")["state"] == "running", 10, "the new one to run")
        assert alive(old["pid"])
        assert vigil.get(slots(1)[0])["state"] == "running"
    finally:
        os.killpg(screen.pid, signal.SIGKILL)
        screen.communicate()
    wait_for(lambda: not alive(old["pid"]), 40, "the old one to go once nobody is there")
    vigil.wait_event("shift.done")


@pytest.mark.parametrize("moment", ["shift.begun", "shift.ready"])
def test_a_shift_survives_the_daemon(vigil: Instance, moment: str) -> None:
    old = serve(vigil, ("coder", 3))
    vigil.ok("shift", "backend", "--no-wait")
    vigil.wait_event(moment)

    vigil.kill_daemon()
    vigil.start()

    vigil.wait_event("shift.done", within_s=30)
    assert set(words_of(vigil).values()) == {"two"}
    assert len(shown(vigil)) == 3
    assert not any(alive(session["pid"]) for session in old)


BEATS = f"while [ ! -e {{flag}} ]; do {sys.executable} -m vigil.cli heartbeat; sleep 0.2; done; exec sleep 1000"


def beating(vigil: Instance, runtime: str, **more: Any) -> str:
    command = f'["sh", "-c", "{BEATS.format(flag=vigil.path / "quiet")}"]'
    health = 'health = { heartbeat = "1s", failures = 3 }\n'
    return manifest(role(replicas=1, runtime=runtime, command=command, more=health, **more))


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_silence_is_a_death_like_any_other(vigil: Instance, runtime: str) -> None:
    up(vigil, beating(vigil, runtime, base="1s"))
    wait_for(lambda: (vigil.get(slots(1)[0])["heartbeat"] or {}).get("state") == "healthy", 10, "signs of life")

    (vigil.path / "quiet").touch()
    death = vigil.wait_death(slots(1)[0])

    assert (death["cause"], death["charged"]) == ("unhealthy", True)
    assert "no sign of life for" in death["evidence"][0]["text"]
    crashed = vigil.get(slots(1)[0])
    assert (crashed["state"], crashed["restarts"]["count"]) in [("crashed", 1), ("starting", 1), ("running", 1)]
    told = [event["data"]["to"] for event in vigil.client.events() if event["kind"] == "session.health"]
    assert told == ["healthy", "late", "unhealthy"]


def test_every_way_to_die_is_one_charge_and_the_third_is_the_last(vigil: Instance) -> None:
    name = slots(1)[0]
    up(vigil, beating(vigil, "tmux", base="0.2s", max_restarts=2))

    _launch(vigil, name, 1)
    vigil.tmux(name, "kill-pane")
    vigil.wait_death(name, 1)
    session = _launch(vigil, name, 2)
    os.kill(session["server_pid"], signal.SIGKILL)
    vigil.wait_death(name, 2)
    _launch(vigil, name, 3)
    wait_for(lambda: (vigil.get(name)["heartbeat"] or {}).get("state") == "healthy", 10, "signs of life")
    (vigil.path / "quiet").touch()
    vigil.wait_death(name, 3)

    failed = vigil.wait_state(name, "failed")
    assert (failed["restarts"]["count"], failed["restarts"]["saturated"]) == (3, True)
    assert [death["cause"] for death in vigil.deaths(name)] == ["unhealthy", "server-died", "pane-closed"]
    assert [incident["kind"] for incident in vigil.client.incidents()].count("saturated") == 1


def _launch(vigil: Instance, name: str, number: int) -> Json:
    def look() -> Json | None:
        session = vigil.get(name)
        return session if session["state"] == "running" and session["launch"].endswith(f"-{number}") else None

    return wait_for(look, 20, f"launch {number} of {name}")
