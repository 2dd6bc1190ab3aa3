"""Archiving and removing: ended first, then put away or purged; a neighbour is untouched, and a namesake is born clean."""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path

from tests.live.instance import Instance, alive, wait_for


def test_an_archived_session_is_ended_kept_and_brought_back(vigil: Instance) -> None:
    pid = vigil.run("a", "sleep", "1000", restart="always")["pid"]

    session = vigil.json("archive", "a", "--reason", "done with it")

    assert (session["state"], session["archived_at"] is not None, alive(pid)) == ("stopped", True, False)
    assert [death["cause"] for death in vigil.deaths("a")] == ["operator"]
    assert (vigil.client.sessions(), [one["name"] for one in vigil.client.sessions(everything=True)]) == ([], ["a"])
    assert vigil.run_cli("wake", "a").returncode == 4
    again = vigil.run_cli("run", "--name", "a", "--", "sleep", "1")
    assert (again.returncode, "is archived" in again.stderr) == (1, True)
    vigil.kill_daemon()
    vigil.start()
    assert vigil.client.sessions() == []
    session = vigil.client.ask("start", "a")
    assert (session["state"], session["archived_at"]) == ("running", None)


def test_rm_takes_all_that_is_the_sessions_own_and_its_namesake_is_born_clean(vigil: Instance, scripts: Path) -> None:
    for name in ("claude-reborn", "claude-reborn2"):
        vigil.run(name, "sleep", "1000", cwd=str(scripts))
    first, neighbour = vigil.get("claude-reborn"), vigil.get("claude-reborn2")
    vigil.client.ask("hibernate", "claude-reborn")
    before = {path for path in vigil.path.rglob("*") if neighbour["id"] in path.name}
    vigil.kill_daemon()
    for session in (first, neighbour):
        hook = {"session": session["name"], "launch": session["launch"], "payload": {"hook_event_name": "Stop"}}
        (vigil.home.spool / "bad").mkdir(exist_ok=True)
        (vigil.home.spool / "bad" / f"{session['id']}.json").write_text(json.dumps(hook))
    vigil.start()

    gone = vigil.client.rm("claude-reborn")

    assert {"session claude-reborn", "park mark", f"launch {first['launch']}", "environment"} <= set(gone["purged"])
    assert any("hook event" in line for line in gone["purged"])
    assert f"folder {scripts}, which is never touched" in gone["kept"]
    assert scripts.is_dir()
    assert [path for path in vigil.path.rglob("*") if first["id"] in path.name] == []
    assert before <= {path for path in vigil.path.rglob("*") if neighbour["id"] in path.name}
    assert vigil.get("claude-reborn2")["pid"] == neighbour["pid"]
    assert (vigil.home.spool / "bad" / f"{neighbour['id']}.json").exists()
    newborn = vigil.run("claude-reborn", "sleep", "1000")
    assert (newborn["launches"], newborn["last_death"], newborn["id"] != first["id"]) == (1, None, True)
    vigil.client.ask("hibernate", "claude-reborn")
    assert vigil.json("wake", "claude-reborn")["mode"] == "fresh"


def test_two_who_remove_a_session_at_once_are_told_the_same(vigil: Instance) -> None:
    vigil.run("a", "sh", "-c", "trap '' TERM HUP; while :; do sleep 0.1; done")  # its end takes both of them in
    answers: list[object] = []
    threads = [threading.Thread(target=lambda: answers.append(vigil.client.rm("a"))) for _ in range(2)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert len(answers) == 2 and answers[0] == answers[1], answers


HYDRA = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
open("grown", "w").close()
while not os.path.exists("spare-me-not"):
    if os.fork():  # whoever is sent a signal is gone before its grace is over, and its child lives on
        time.sleep(0.3)
        os._exit(0)
    os.setsid()
    time.sleep(0.2)
"""


def test_rm_that_could_not_end_everything_purges_nothing_and_then_all_of_it(vigil: Instance, scripts: Path) -> None:
    vigil.config.write_text("[isolation]\ncgroups = false\n")  # a cgroup would end it whole
    (scripts / "hydra.py").write_text(HYDRA)
    session = vigil.run("a", "sh", "-c", f"{sys.executable} hydra.py & exec sleep 1000", cwd=str(scripts))
    own = {path for path in vigil.path.rglob("*") if session["id"] in path.name and path.suffix != ".tmux"}
    assert own
    wait_for((scripts / "grown").exists, 20, "the hydra to be there")

    refused = vigil.run_cli("rm", "a")

    assert (refused.returncode, refused.stdout) == (1, "")
    words = r"vigil: a could not be ended yet: \d of its processes live on after KILL, or cannot be read \(pid [\d, ]+\); "
    assert re.fullmatch(rf"{words}nothing of it was purged\. To try again: vigil rm a\n", refused.stderr), refused.stderr
    assert own <= set(vigil.path.rglob("*")), "nothing went"
    assert (vigil.get("a")["state"], vigil.get("a")["launch"]) == ("stuck", session["launch"])
    assert [event["kind"] for event in vigil.client.events("a") if event["kind"] == "session.removed"] == []

    (scripts / "spare-me-not").touch()
    held = vigil.home.launch("elsewhere")  # and what cannot be removed is not said to be gone
    vigil.home.launch(session["launch"]).rename(held)
    vigil.home.launch(session["launch"]).symlink_to(held)
    gone = vigil.json("rm", "a")

    assert gone["purged"][0] == "session a" and "environment" in gone["purged"]
    left = f"{vigil.home.launch(session['launch'])}, which could not be removed"
    assert (left in gone["kept"], f"launch {session['launch']}" in gone["purged"]) == (True, False)
    assert [path for path in vigil.path.rglob("*") if session["id"] in path.name] == [vigil.home.launch(session["launch"])]
    assert vigil.client.sessions(everything=True) == []
