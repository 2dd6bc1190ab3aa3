"""Births under fire: keeper and daemon die or hang between an order and its birth; each order has one truth (P1, P3, P15).

The keeper is killed by what it gives birth to: a tmux of ours before or after it started its server, or the agent itself."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.live.instance import Instance, Json, alive, is_of_session, kill, wait_for
from vigil.errors import NoSuchSession
from vigil.kernel.processes import read_launch

LIVES = 'echo "$VIGIL_LAUNCH" >>{trace}; exec sleep 1000'
BRIEF = 'echo "$VIGIL_LAUNCH" >>{trace}; exit 3'
# Only the first of these kills the keeper.
KILLS = "[ -e {once} ] || { : >{once}; kill -9 $(cat {home}/keeper.lock); }; "
STAGES = {  # of a birth in tmux
    "before its server": '{kills} exec {tmux} "$@"',
    "after its server": '{tmux} "$@"; {kills} exit 0',
}


def script(vigil: Instance, text: str) -> str:
    """Return a shell script with this instance's places filled in."""
    for name, value in (("trace", vigil.path / "trace"), ("once", vigil.path / "once"), ("home", vigil.path)):
        text = text.replace("{" + name + "}", str(value))
    return text


def trace(vigil: Instance) -> list[str]:
    """Return the launches whose agents began, by their own word."""
    try:
        return (vigil.path / "trace").read_text().split()
    except FileNotFoundError:
        return []


def living(vigil: Instance, name: str) -> dict[str, list[int]]:
    """Return the agents of a session that live, by launch, as the kernel tells it."""
    found: dict[str, list[int]] = {}
    for pid in vigil.processes():
        if is_of_session(pid, name) and b"sleep\x001000" in Path(f"/proc/{pid}/cmdline").read_bytes():
            found.setdefault(read_launch(pid) or "", []).append(pid)
    return found


# A keeper that hangs


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_a_restart_that_is_due_while_the_keeper_hangs_waits_for_it_and_costs_nothing(vigil: Instance, runtime: str) -> None:
    session = vigil.run("t", "sleep", "1000", restart="always", backoff_base_s=0.2, runtime=runtime)
    keeper = vigil.keeper_pid
    os.kill(keeper, signal.SIGSTOP)
    kill(session["pid"], signal.SIGKILL)

    wait_for(lambda: (vigil.get("t")["hold"] or {}).get("reason") == "keeper", 20, "it to wait for the keeper")
    held = vigil.get("t")
    assert (held["state"], held["restarts"]["count"], len(vigil.deaths("t"))) == ("pending", 1, 1)
    assert "does not answer" in held["why"]
    assert "keeper-lost" in [incident["kind"] for incident in vigil.client.incidents()]
    os.kill(keeper, signal.SIGCONT)

    back = vigil.wait_state("t", "running", within_s=10)
    assert (back["restarts"]["count"], len(vigil.deaths("t"))) == (1, 1)
    assert list(living(vigil, "t").values()) == [[back["pid"]]]


def test_a_first_launch_while_the_keeper_hangs_waits_and_goes_on_when_it_answers(vigil: Instance) -> None:
    vigil.run("t", "sleep", "1000")
    keeper = vigil.keeper_pid
    os.kill(keeper, signal.SIGSTOP)

    done = vigil.run_cli("run", "--name", "late", "--", "sleep", "1000")
    assert done.returncode == 0, done.stderr
    assert "late is pending: waits for the keeper" in done.stderr
    assert vigil.get("late")["hold"] == {"reason": "keeper", "until": None}
    os.kill(keeper, signal.SIGCONT)

    vigil.wait_state("late", "running", within_s=10)
    assert vigil.deaths("late") == []


def test_what_waits_for_a_keeper_is_stopped_and_removed_at_once(vigil: Instance) -> None:
    vigil.run("t", "sleep", "1000")
    os.kill(vigil.keeper_pid, signal.SIGSTOP)
    for name in ("a", "b"):
        assert vigil.run(name, "sleep", "1000")["hold"]["reason"] == "keeper"

    began = time.monotonic()
    vigil.ok("stop", "a")
    vigil.ok("rm", "b")

    assert time.monotonic() - began < 5
    assert vigil.get("a")["state"] == "stopped"
    with pytest.raises(NoSuchSession):
        vigil.get("b")
    os.kill(vigil.keeper_pid, signal.SIGCONT)
    vigil.wait_event("keeper.answers")
    assert not living(vigil, "a") and not living(vigil, "b")


def test_what_waits_for_a_keeper_that_is_killed_is_launched_by_the_next_one(vigil: Instance) -> None:
    vigil.run("t", "sleep", "1000")
    os.kill(vigil.keeper_pid, signal.SIGSTOP)
    assert vigil.run("late", "sleep", "1000")["hold"]["reason"] == "keeper"

    vigil.kill_keeper()

    session = vigil.wait_state("late", "running")
    assert list(living(vigil, "late").values()) == [[session["pid"]]]
    assert vigil.deaths("late") == []


# A keeper that dies


@pytest.mark.parametrize("stage", STAGES)
def test_a_keeper_that_dies_during_a_birth_in_tmux_costs_nothing_and_the_agent_begins_once(vigil: Instance, stage: str) -> None:
    bin_ = vigil.path / "bin"
    bin_.mkdir(parents=True)
    fake = bin_ / "tmux"
    text = STAGES[stage].replace("{kills}", KILLS).replace("{tmux}", str(shutil.which("tmux")))
    fake.write_text(f"#!/bin/sh\n{script(vigil, text)}\n")
    fake.chmod(0o755)

    vigil.run("t", "sh", "-c", script(vigil, LIVES), env={**vigil.env, "PATH": f"{bin_}:{os.environ['PATH']}"})

    session = vigil.wait_state("t", "running")
    assert living(vigil, "t") == {session["launch"]: [session["pid"]]}
    wait_for(lambda: trace(vigil), 10, "the agent to begin")
    assert trace(vigil) == [session["launch"]]
    lost = vigil.deaths("t")
    assert [(death["cause"], death["charged"]) for death in lost] == [("launch-failed", False)] * len(lost)
    assert [death["launch"] for death in lost] == [f"{session['id']}-1"] * (session["launch"] != f"{session['id']}-1")
    assert session["restarts"]["count"] == 0


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_an_agent_born_while_its_keeper_dies_is_found_and_runs_on(vigil: Instance, runtime: str) -> None:
    vigil.run("t", "sh", "-c", script(vigil, KILLS + LIVES), runtime=runtime)

    session = vigil.wait_state("t", "running")
    wait_for(lambda: trace(vigil), 10, "the agent to begin")
    assert trace(vigil) == [session["launch"]]
    assert living(vigil, "t") == {session["launch"]: [session["pid"]]}
    assert (vigil.deaths("t"), session["restarts"]["count"]) == ([], 0)


@pytest.mark.parametrize("runtime", ["tmux", "headless"])
def test_an_agent_that_is_gone_before_its_keepers_death_is_known_has_one_record(vigil: Instance, runtime: str) -> None:
    vigil.run("t", "sh", "-c", script(vigil, KILLS + BRIEF), runtime=runtime)

    death = vigil.wait_death("t")
    session = vigil.wait_state("t", "failed")
    assert trace(vigil) == [session["launch"]] == [death["launch"]]
    assert death["cause"] in ("crash", "unobserved")
    assert (death["exit_code"], death["signal"]) in ((3, None), (None, None))


def test_a_new_daemon_answers_lists_when_those_found_dead_are_told(vigil: Instance) -> None:
    for n in range(3):
        session = vigil.run(f"h{n}", "sleep", "1000", runtime="headless")
        vigil.kill_daemon()
        vigil.kill_keeper()
        kill(session["pid"], signal.SIGKILL)
        vigil.start()

        shown = {one["name"]: one["state"] for one in vigil.client.sessions()}
        assert shown[f"h{n}"] == "failed", shown


# Anything, at any instant


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_keeper_and_daemon_killed_at_any_instant_of_births_leave_one_truth(vigil: Instance, repeats: int) -> None:
    seed = int(os.environ.get("VIGIL_SEED", time.time()))
    print(f"seed {seed}")
    chances = random.Random(seed)
    for n in range(repeats):
        lives, runtime = chances.choice((True, True, False)), chances.choice(("tmux", "headless"))
        victims = chances.choice(("keeper", "daemon", "both", "both"))
        _play(vigil, f"p{n}", lives, runtime, victims, chances.uniform(0.0, 0.15))


def _play(vigil: Instance, name: str, lives: bool, runtime: str, victims: str, after_s: float) -> None:
    """Kill while a session is born, let a daemon come back, and look from outside at what is true and what is shown."""
    what = f"{name}: {runtime}, {'lives' if lives else 'brief'}, {victims} killed after {after_s * 1000:.0f} ms"
    (vigil.path / "trace").unlink(missing_ok=True)
    vigil.start()
    asking = os.fork()
    if asking == 0:
        try:
            policy = {"restart": "always", "backoff_base_s": 0.2} if lives else {}
            wanted = {"name": name, "command": ["sh", "-c", script(vigil, LIVES if lives else BRIEF)], "cwd": "/"}
            vigil.client.run({**wanted, "env": vigil.env, "runtime": runtime, **policy})
        finally:
            os._exit(0)
    time.sleep(after_s)
    for who in ("keeper", "daemon"):
        if victims in (who, "both"):
            _kill_if_there(vigil, who)
    os.waitpid(asking, 0)
    vigil.start()
    try:
        vigil.get(name)
    except NoSuchSession:  # its declaration was not durable
        assert not trace(vigil) and not living(vigil, name), what
        return
    session = vigil.wait_state(name, *(("running",) if lives else ("failed",)), within_s=30)
    wait_for(lambda: session["launch"] in trace(vigil), 10, f"{what}: the agent to begin", lambda: (session, trace(vigil)))
    _check(vigil, name, session, lives, what)
    vigil.client.rm(name)
    wait_for(lambda: not [p for p in vigil.processes() if is_of_session(p, name)], 15, f"{what}: it to be gone")


def _check(vigil: Instance, name: str, session: Json, lives: bool, what: str) -> None:
    began, records = Counter(trace(vigil)), {death["launch"]: death for death in vigil.deaths(name)}
    told = f"{what}: {session}, began {began}, records {records}"
    assert set(began.values()) <= {1}, told  # no launch began twice
    assert len(records) == len(vigil.deaths(name)), told
    number = int(session["launch"].rpartition("-")[2])
    ordered = {f"{session['id']}-{n}" for n in range(1, number + 1)} - ({session["launch"]} if lives else set())
    assert records.keys() == ordered, told  # exactly one record for each order
    for launch in began.keys() & records.keys():
        assert records[launch]["cause"] in ("crash", "unobserved"), told
    for launch in records.keys() - began.keys():
        assert (records[launch]["cause"], records[launch]["charged"]) == ("launch-failed", False), told
    if lives:
        assert living(vigil, name) == {session["launch"]: [session["pid"]]}, told
        assert session["restarts"]["count"] == 0, told
        assert list(began) == [session["launch"]], told
    else:
        assert not living(vigil, name), told


def _kill_if_there(vigil: Instance, who: str) -> None:
    try:
        pid = vigil.keeper_pid if who == "keeper" else vigil.daemon_pid
    except (OSError, ValueError):
        return
    if alive(pid):
        kill(pid, signal.SIGKILL)
