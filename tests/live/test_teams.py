"""Teams: a manifest made so, kept so, changed and taken down; real tmux, real deaths."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import VIGIL, Instance, alive, wait_for
from tests.live.manifests import manifest, role, shown, slots, up, wait_running
from tests.live.watching import at

Json = dict[str, Any]


def test_what_was_declared_is_made_so_and_the_second_time_nothing_is_done(vigil: Instance) -> None:
    text = manifest(role(replicas=2), role("tester", 1, runtime="headless"))

    first = up(vigil, text)
    before = wait_running(vigil, *slots(2), "shop/backend/tester/0")
    second = up(vigil, text)

    assert [step["do"] for step in first["steps"]] == ["declare", "create", "create", "declare", "create"]
    assert (second["steps"], second["held"]) == ([], [])
    after = wait_running(vigil, *slots(2), "shop/backend/tester/0")
    assert [session["pid"] for session in before] == [session["pid"] for session in after]
    assert "everything is as declared" in vigil.ok("plan", str(vigil.path / "vigil.toml"))


def test_a_killed_pane_is_shown_as_crashed_until_its_replacement(vigil: Instance) -> None:
    up(vigil, manifest(role(replicas=2, base="2s", max_restarts=5)))
    wait_running(vigil, *slots(2))

    vigil.tmux(slots(2)[0], "kill-pane")

    crashed = vigil.wait_state(slots(2)[0], "crashed", within_s=5)
    assert (crashed["restarts"]["count"], crashed["hold"]["reason"]) == (1, "backoff")
    died_at, again_at = at(crashed["last_death"]["at"]), at(crashed["restarts"]["next_attempt_at"])
    assert 1.8 <= again_at - died_at <= 2.2
    assert vigil.get(slots(2)[1])["state"] == "running"
    assert vigil.get(slots(2)[1])["restarts"]["count"] == 1  # the count is the role's
    back = vigil.wait_state(slots(2)[0], "running")
    assert back["launch"].endswith("-2")


def test_five_that_die_in_one_instant_are_one_charge_one_marker_and_five_replacements(vigil: Instance) -> None:
    names = slots(5)
    up(vigil, manifest(role(replicas=5, runtime="headless", base="2s", max_restarts=3)))
    pids = [session["pid"] for session in wait_running(vigil, *names)]

    for pid in pids:
        os.kill(pid, signal.SIGKILL)

    wait_for(lambda: all(vigil.deaths(name) for name in names), 10, "five deaths")
    states = shown(vigil)
    assert sorted(states[name] for name in names) == ["crashed", *["pending"] * 4]
    assert states[names[0]] == "crashed"
    wait_for(lambda: all(vigil.get(name)["launch"].endswith("-2") for name in names), 20, "five replacements")
    assert {vigil.get(name)["restarts"]["count"] for name in names} == {1}


def test_after_its_restarts_a_role_is_saturated_on_every_path_of_death_until_a_reset(vigil: Instance) -> None:
    name = slots(1)[0]
    up(vigil, manifest(role(replicas=1, base="0.2s", max_restarts=2)))
    kills: list[Callable[[Json], object]] = [
        lambda _: vigil.tmux(name, "kill-pane"),
        lambda session: os.kill(session["pid"], signal.SIGKILL),
        lambda session: os.kill(session["server_pid"], signal.SIGKILL),
    ]

    for number, kill in enumerate(kills, 1):
        session = wait_for(lambda n=number: _launched(vigil, name, n), 20, f"launch {number}")  # type: ignore[misc]
        kill(session)
        vigil.wait_death(name, number)

    failed = vigil.wait_state(name, "failed")
    assert (failed["restarts"]["count"], failed["restarts"]["saturated"]) == (3, True)
    kinds = [incident["kind"] for incident in vigil.client.incidents()]
    assert kinds.count("saturated") == 1

    vigil.client.ask("reset", name)

    assert vigil.wait_state(name, "running")["restarts"]["count"] == 0


def _launched(vigil: Instance, name: str, number: int) -> Json | None:
    session = vigil.get(name)
    return session if session["state"] == "running" and session["launch"].endswith(f"-{number}") else None


def test_a_daemon_killed_inside_a_backoff_keeps_the_window_and_charges_nobody_again(vigil: Instance) -> None:
    name = slots(1)[0]
    up(vigil, manifest(role(replicas=1, base="12s", runtime="headless")))
    (session,) = wait_running(vigil, name)
    os.kill(session["pid"], signal.SIGKILL)
    before = vigil.wait_state(name, "crashed")

    vigil.kill_daemon()
    vigil.start()

    after = vigil.get(name)
    assert (after["state"], after["hold"], after["restarts"]["count"]) == ("crashed", before["hold"], 1)
    back = vigil.wait_state(name, "running", within_s=40)
    assert at(back["state_since"]) >= at(before["hold"]["until"]) - 0.05


@pytest.mark.parametrize(
    ("restart", "code", "state"),
    [("on-failure", 0, "succeeded"), ("never", 0, "succeeded"), ("never", 3, "failed"), ("always", 0, "crashed")],
)
def test_a_policy_means_the_same_for_a_replica(vigil: Instance, restart: str, code: int, state: str) -> None:
    name = slots(1)[0]

    up(
        vigil,
        manifest(role(replicas=1, command=f'["sh", "-c", "exit {code}"]', restart=restart, runtime="headless", base="30s")),
    )

    assert vigil.wait_state(name, state)["why"]
    plan = vigil.json("plan", str(vigil.path / "vigil.toml"))
    assert (plan["steps"], [held["slot"] for held in plan["held"]]) == ([], [name])


def test_what_an_operator_stopped_keeps_its_slot(vigil: Instance) -> None:
    text = manifest(role(replicas=2, runtime="headless"))
    up(vigil, text)
    wait_running(vigil, *slots(2))

    vigil.client.ask("stop", slots(2)[0])
    again = up(vigil, text)

    assert ([step["do"] for step in again["steps"]], [held["reason"] for held in again["held"]]) == ([], ["stopped"])
    assert shown(vigil) == {slots(2)[0]: "stopped", slots(2)[1]: "running"}


def test_a_role_taken_out_is_drained_and_its_neighbours_are_not(vigil: Instance) -> None:
    both = manifest(role("a", 1, runtime="headless"), role("aa", 1, runtime="headless"))
    up(vigil, both)
    first, second = wait_running(vigil, "shop/backend/a/0", "shop/backend/aa/0")

    up(vigil, manifest(role("aa", 1, runtime="headless")))

    assert not alive(first["pid"])
    assert alive(second["pid"])
    assert shown(vigil) == {"shop/backend/aa/0": "running"}
    assert vigil.ok("ls")


def test_scaling_down_ends_the_newest_and_up_the_slots_that_are_missing(vigil: Instance) -> None:
    up(vigil, manifest(role(replicas=3, runtime="headless")))
    wait_running(vigil, *slots(3))

    down = vigil.json("scale", "backend/coder", "1")
    assert [step["slot"] for step in down["steps"] if step["do"] == "drain"] == [slots(3)[2], slots(3)[1]]
    assert list(shown(vigil)) == slots(1)
    vigil.json("scale", "shop/backend/coder", "2")

    wait_running(vigil, *slots(2))
    refused = vigil.run_cli("scale", "backend/coder", "--", "-1")
    assert (refused.returncode, "from 0 to 1000" in refused.stderr) == (2, True)


def test_a_changed_command_waits_unless_it_is_to_be_replaced(vigil: Instance) -> None:
    up(vigil, manifest(role(replicas=1, runtime="headless")))
    (before,) = wait_running(vigil, *slots(1))
    changed = manifest(role(replicas=1, runtime="headless", command='["sleep", "1001"]'))

    held = up(vigil, changed)
    assert [found["reason"] for found in held["held"]] == ["changed"]
    assert alive(before["pid"])
    up(vigil, changed, "--replace")

    (after,) = wait_running(vigil, *slots(1))
    assert after["command"] == ["sleep", "1001"]
    assert not alive(before["pid"])
    assert vigil.deaths(slots(1)[0])[0]["cause"] == "operator"


def test_everything_that_is_missing_is_said_together_and_nothing_is_applied(vigil: Instance) -> None:
    path = vigil.path / "vigil.toml"
    nowhere = role("b", 1, command='["no-agent-either"]').replace('cwd = "/"', 'cwd = "/nowhere"')
    path.write_text(manifest(role("a", 1, command='["no-such-agent"]'), nowhere, role("c", 1)))
    missing = [
        "shop/backend/a: no-such-agent was not found in PATH",
        "shop/backend/b: /nowhere is not a folder, and cwd names where the agent works",
        "shop/backend/b: no-agent-either was not found in PATH",
    ]

    refused = vigil.run_cli("up", "--yes", str(path))

    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [*(f"vigil: {line}" for line in missing), "vigil: Nothing was applied."]
    assert shown(vigil) == {}
    assert vigil.json("plan", str(path))["missing"] == missing
    assert "vigil up would apply nothing" in vigil.run_cli("plan", str(path)).stderr


def test_a_command_that_is_not_there_is_refused_also_where_it_would_run_later(vigil: Instance) -> None:
    up(
        vigil,
        manifest(role("runs", 1, runtime="headless"), role("died", 1, command='["false"]', runtime="headless", base="50s")),
    )
    wait_running(vigil, *slots(1, "runs"))
    vigil.wait_state(slots(1, "died")[0], "crashed")
    path = vigil.path / "vigil.toml"
    path.write_text(manifest(*(role(name, 1, command='["no-such-agent"]', runtime="headless") for name in ("runs", "died"))))

    refused = vigil.run_cli("up", "--yes", str(path))

    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 3, refused.stderr
    assert vigil.get(slots(1, "died")[0])["command"] == ["false"]
    assert shown(vigil) == {slots(1, "runs")[0]: "running", slots(1, "died")[0]: "crashed"}


def test_ten_mistakes_are_ten_lines_and_nothing_is_applied(vigil: Instance) -> None:
    path = vigil.path / "vigil.toml"
    first = role("a", 1).replace('restart = "always"', 'restart = "alwyas"').replace("replicas = 1", "replicas = -1")
    second = role("a", 100000, runtime="screen", max_restarts=-1, base="-1s")
    third = role("B", 1, command="[]", more='autostart = "no"\n').replace("base = ", "bsae = ")
    path.write_text(manifest(first, second, third))

    refused = vigil.run_cli("up", "--yes", str(path))

    problems = refused.stderr.splitlines()
    places = [line.split(": ")[2] for line in problems[:-1]]
    assert refused.returncode == 2
    assert [place.split(" (line ")[0] for place in places] == [
        "team[0].role[0].replicas",
        "team[0].role[0].restart",
        "team[0].role[1].name",
        "team[0].role[1].replicas",
        "team[0].role[1].runtime",
        "team[0].role[1].max_restarts",
        "team[0].role[1].backoff.base",
        "team[0].role[2].name",
        "team[0].role[2].command",
        "team[0].role[2].backoff.bsae",
        "team[0].role[2].autostart",
    ]
    lines = [int(place.split(" (line ")[1].rstrip(")")) for place in places]
    written = path.read_text().splitlines()
    assert all(place.split(" (line ")[0].split(".")[2] in written[line - 1] for place, line in zip(places, lines, strict=True))
    assert problems[-1] == "vigil: Nothing was applied."
    assert shown(vigil) == {}


def test_a_number_of_replicas_that_cannot_be_is_refused_and_nothing_is_done(vigil: Instance) -> None:
    up(vigil, manifest(role(replicas=1, runtime="headless")))
    wait_running(vigil, *slots(1))

    for number in ("-1", "100000"):
        refused = vigil.run_cli("scale", "backend/coder", number)
        assert (refused.returncode, refused.stderr) == (2, f"vigil: {number} is no number of replicas: from 0 to 1000\n")

    assert shown(vigil) == {slots(1)[0]: "running"}


def test_on_a_terminal_it_is_said_how_far_a_team_is(vigil: Instance) -> None:
    path = vigil.path / "vigil.toml"
    path.write_text(manifest(role(replicas=2, runtime="headless")))
    typed = ["script", "-qec", shlex.join([*VIGIL, "up", "--yes", str(path)]), "/dev/null"]

    done = subprocess.run(typed, env=vigil.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    assert "2 of 2 up" in done.stdout


def test_down_ends_a_team_and_leaves_the_others_and_lone_sessions(vigil: Instance) -> None:
    vigil.run("lone", "sleep", "1000", runtime="headless")
    text = (
        manifest(role(replicas=1, runtime="headless")) + '[[team]]\nname = "backend2"\n' + role(replicas=1, runtime="headless")
    )
    up(vigil, text)
    wait_running(vigil, slots(1)[0], slots(1, team="backend2")[0])

    vigil.ok("down", "backend")
    assert shown(vigil) == {"lone": "running", slots(1, team="backend2")[0]: "running"}
    vigil.ok("down", "--all")

    assert shown(vigil) == {"lone": "running"}
    assert not list(vigil.home.environments.glob("role-*"))
    assert vigil.run_cli("down", "backend").returncode == 3


def test_down_in_a_folder_ends_its_workspace_and_no_other(vigil: Instance, tmp_path: Path) -> None:
    for workspace in ("shop", "blog"):
        up(vigil, manifest(role(replicas=1, runtime="headless"), workspace=workspace))
    wait_running(vigil, "shop/backend/coder/0", "blog/backend/coder/0")
    (tmp_path / "vigil.toml").write_text(manifest(role(replicas=1), workspace="blog"))

    nowhere = subprocess.run([*VIGIL, "down"], env=vigil.env, cwd="/", capture_output=True, text=True, timeout=60)
    assert (nowhere.returncode, "name a TEAM, or say --all" in nowhere.stderr) == (2, True)
    subprocess.run([*VIGIL, "down"], env=vigil.env, cwd=tmp_path, check=True, capture_output=True, timeout=60)

    assert shown(vigil) == {"shop/backend/coder/0": "running"}


def test_a_namesake_of_a_role_is_born_clean(vigil: Instance) -> None:
    text = manifest(role(replicas=1, runtime="headless", base="30s", max_restarts=1))
    up(vigil, text)
    (session,) = wait_running(vigil, *slots(1))
    os.kill(session["pid"], signal.SIGKILL)
    vigil.wait_state(slots(1)[0], "crashed")

    vigil.ok("down", "--all")
    up(vigil, text)

    (born,) = wait_running(vigil, *slots(1))
    assert (born["restarts"]["count"], born["last_death"]) == (0, None)


def test_a_changed_environment_holds_for_the_next_launch(vigil: Instance) -> None:
    text = manifest(role(replicas=1, runtime="headless", command='["sh", "-c", "echo $WORD; exec sleep 1000"]'))
    up(vigil, text + 'env = { WORD = "one" }\n')
    wait_running(vigil, *slots(1))

    again = up(vigil, text + 'env = { WORD = "two" }\n')
    vigil.client.ask("restart", slots(1)[0])

    assert again["steps"] == []
    wait_for(lambda: vigil.ok("logs", slots(1)[0]).strip() == "two", 10, "the new word")


def test_a_variable_taken_out_of_the_manifest_is_gone_at_the_next_launch(vigil: Instance) -> None:
    text = manifest(role(replicas=1, runtime="headless", command='["sh", "-c", "echo word:$WORD; exec sleep 1000"]'))
    up(vigil, text + 'env = { WORD = "one" }\n')
    wait_running(vigil, *slots(1))

    up(vigil, text)
    vigil.client.ask("restart", slots(1)[0])

    wait_for(lambda: vigil.ok("logs", slots(1)[0]).strip() == "word:", 10, "no word")


def test_a_replica_somebody_removed_is_born_again_clean_and_nobody_is_charged(vigil: Instance) -> None:
    up(vigil, manifest(role(replicas=2, runtime="headless")))
    first, _ = wait_running(vigil, *slots(2))

    removed = vigil.json("rm", slots(2)[0])

    assert any("vigil scale" in words for words in removed["kept"])
    born = wait_for(lambda: _another(vigil, first["id"]), 10, "another one in its slot")
    assert (born["restarts"]["count"], born["last_death"]) == (0, None)
    assert not alive(first["pid"])


def _another(vigil: Instance, session_id: str) -> Json | None:
    found = next((s for s in vigil.client.sessions(everything=True) if s["name"] == slots(1)[0]), None)
    return found if found and found["id"] != session_id and found["state"] == "running" else None


def test_launches_wait_for_memory_and_go_on_when_there_is_some(vigil: Instance) -> None:
    vigil.config.write_text('[launch]\nleast_memory = "500T"\n')
    vigil.start()

    up(vigil, manifest(role(replicas=2, runtime="headless")))
    held = wait_for(lambda: _held(vigil, "memory"), 10, "both to wait for memory")
    assert all("MiB are available" in session["why"] for session in held)
    plan = vigil.json("plan", str(vigil.path / "vigil.toml"))
    assert [found["reason"] for found in plan["held"]] == ["memory", "memory"]
    vigil.config.write_text("")

    wait_running(vigil, *slots(2))


def _held(vigil: Instance, reason: str) -> list[Json] | None:
    found = vigil.client.sessions(everything=True)
    held = [session for session in found if session["hold"] and session["hold"]["reason"] == reason]
    return held if len(held) == len(found) > 0 else None


def test_a_home_from_another_boot_brings_back_only_what_starts_by_itself(vigil: Instance) -> None:
    both = manifest(
        role("a", 1, runtime="headless", base="30s"), role("b", 1, runtime="headless", base="2s", more="autostart = true\n")
    )
    up(vigil, both)
    for session in wait_running(vigil, "shop/backend/a/0", "shop/backend/b/0"):
        os.kill(session["pid"], signal.SIGKILL)
    vigil.wait_state("shop/backend/a/0", "crashed")
    vigil.wait_state("shop/backend/b/0", "crashed")
    vigil.kill_daemon()
    (vigil.path / "boot.json").write_text('{"boot": "another one"}')

    vigil.start()

    cold = {"reason": "cold-start", "until": None}
    wait_for(lambda: vigil.get("shop/backend/a/0")["hold"] == cold, 10, "the fleet to wait for a person")
    vigil.wait_state("shop/backend/b/0", "running")
    assert vigil.get("shop/backend/a/0")["state"] == "pending"
    up(vigil, both)
    vigil.wait_state("shop/backend/a/0", "running")


@pytest.mark.parametrize("what", ["home", "database"])
def test_a_copy_brings_back_only_what_starts_by_itself_and_touches_nothing_of_the_original(vigil: Instance, what: str) -> None:
    auto = role("c", 1, runtime="headless", base="0.2s", more="autostart = true\n")
    text = manifest(role("a", 1, runtime="headless"), role("b", 1), auto)
    up(vigil, text)
    names = [slot for name in ("a", "b", "c") for slot in slots(1, name)]
    pids = [session["pid"] for session in wait_running(vigil, *names)]
    copy = Instance()
    try:
        _copy(vigil, copy, what)
        copy.start()
        for name in names[:2]:
            assert (copy.wait_state(name, "pending")["hold"] or {}).get("reason") == "cold-start"
        if what == "home":  # a database alone has no environments
            assert copy.wait_state(names[2], "running")["pid"] not in pids
        up(copy, text)
        again = wait_running(copy, *names[:2])
        assert not {session["pid"] for session in again} & set(pids)
        copy.ok("down", "--all")
    finally:
        copy.destroy()

    assert all(map(alive, pids))
    assert [vigil.get(name)["pid"] for name in names] == pids


def _copy(vigil: Instance, copy: Instance, what: str) -> None:
    """Copy a home as it is, or only its database; sockets stay where they are."""
    for path in vigil.path.iterdir() if what == "home" else vigil.path.glob("vigil.db*"):
        if path.is_dir() and path != vigil.home.run:
            shutil.copytree(path, copy.path / path.name, ignore=shutil.ignore_patterns("*.sock", "*.tmux", "*.fifo"))
        elif path.is_file():
            shutil.copy2(path, copy.path / path.name)


def test_a_role_that_was_given_up_is_tried_again_after_its_time(vigil: Instance) -> None:
    name = slots(1)[0]
    flag = vigil.path / "well"
    command = f'["sh", "-c", "test -e {flag} && exec sleep 1000; exit 3"]'
    up(
        vigil,
        manifest(
            role(replicas=1, runtime="headless", command=command, max_restarts=1, base="0.1s", more='retry_saturated = "2s"\n')
        ),
    )
    failed = vigil.wait_state(name, "failed")
    assert failed["hold"]["reason"] == "saturated"
    assert failed["restarts"]["next_attempt_at"] is not None
    (incident,) = vigil.client.incidents()
    assert len(incident["deaths"]) >= 2
    assert vigil.client.death(incident["deaths"][-1])["cause"] == "crash"

    flag.touch()

    vigil.wait_state(name, "running")
