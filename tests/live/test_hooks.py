"""What agents say of themselves: taken in once, in order, from their own launch only, and a flood drowns nobody."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.live.instance import Instance, kill, wait_for

Json = dict[str, Any]


def activity(vigil: Instance, name: str) -> str:
    return str(vigil.get(name)["axes"]["activity"]["value"])


def say(vigil: Instance, launch: str, payload: object, name: str = "") -> None:
    """Put an event into the spool as a hook does."""
    name = name or f"{time.time_ns()}.json"
    body = {"VIGIL_SESSION": "any", "VIGIL_LAUNCH": launch, "token": vigil.token(launch), "payload": payload}
    unfinished = vigil.home.spool / "tmp" / name
    unfinished.write_text(json.dumps(body))
    os.rename(unfinished, vigil.home.spool / "new" / name)


def counts(vigil: Instance) -> Json:
    found: Json = vigil.client.status()["hooks"]
    return found


def test_an_agent_that_waits_for_a_human_is_shown_so_and_an_incident(vigil: Instance) -> None:
    vigil.run("a", sys.executable, "-m", "vigil.fake_agent", "asks")

    wait_for(lambda: activity(vigil, "a") == "waiting-human", 10, "it to wait for a human")

    session = vigil.get("a")
    assert session["health"] == "needs-input"
    assert session["axes"]["activity"]["source"] == "hook"
    assert session["last_activity_at"] is not None
    assert [i["kind"] for i in vigil.client.incidents()] == ["needs-input"]
    vigil.kill_daemon()
    vigil.start()
    assert activity(vigil, "a") == "waiting-human", "it says nothing more until somebody answers"
    say(vigil, session["launch"], {"hook_event_name": "PostToolUse"})
    wait_for(lambda: activity(vigil, "a") in ("working", "thinking"), 10, "it to go on")
    wait_for(lambda: not vigil.client.incidents(), 5, "the incident to be over")
    assert list((vigil.home.spool / "new").iterdir()) == []


def test_the_events_of_an_old_launch_are_dropped_and_counted(vigil: Instance) -> None:
    first = vigil.run("a", "sleep", "1000", restart="always", backoff_base_s=1.0)
    kill(first["pid"], signal.SIGKILL)
    wait_for(lambda: (s := vigil.get("a"))["state"] == "running" and s["launch"] != first["launch"], 20, "its next launch")

    say(vigil, first["launch"], {"hook_event_name": "PermissionRequest"})
    say(vigil, "s-nobody-1", {"hook_event_name": "PermissionRequest"})

    wait_for(lambda: counts(vigil)["dropped"] == 2, 10, "both to be dropped")
    assert activity(vigil, "a") == "unknown"
    assert vigil.client.incidents() == []


def test_bad_files_are_set_aside_and_counted_and_the_rest_is_heard(vigil: Instance) -> None:
    session = vigil.run("a", "sleep", "1000")
    new, bad = vigil.home.spool / "new", vigil.home.spool / "bad"
    os.mkfifo(new / "fifo.json")
    os.symlink("/etc/passwd", new / "link.json")
    (new / "folder.json").mkdir()
    (new / "text.json").write_text("no json")
    (new / "deep.json").write_text("[" * 100_000)
    with open(new / "large.json", "wb") as file:
        file.truncate(50 << 20)

    say(vigil, session["launch"], {"hook_event_name": "Stop"})

    wait_for(lambda: activity(vigil, "a") == "idle", 10, "the good one to be heard")
    wait_for(lambda: counts(vigil)["bad"] == 6, 10, "the bad ones to be counted")
    assert {entry.name for entry in bad.iterdir()} >= {"fifo.json", "text.json"}
    assert list(new.iterdir()) == []
    assert Path("/etc/passwd").exists()


def test_a_flood_of_events_stops_nothing_else(vigil: Instance) -> None:
    vigil.run("a", "sleep", "1000")
    other = vigil.run("b", "sleep", "1000")
    launch = vigil.get("a")["launch"]
    for number in range(3000):
        say(vigil, launch, {"hook_event_name": "PreToolUse", "tool_name": f"t{number}"}, f"{number:06}.json")

    begun = time.monotonic()
    kill(other["pid"], signal.SIGKILL)
    vigil.wait_death("b")

    assert time.monotonic() - begun < 2
    wait_for(lambda: counts(vigil)["taken"] == 3000, 30, "all to be taken in")
    assert "t2999" in vigil.get("a")["axes"]["activity"]["why"], "the newest word counts"
    assert vigil.client.status()["lateness_ms"]["max"] < 1000
