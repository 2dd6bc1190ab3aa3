"""Archiving and removing: ended first, then put away or purged; a neighbour is untouched, and a namesake is born clean."""

from __future__ import annotations

import json
from pathlib import Path

from tests.live.instance import Instance, alive


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
