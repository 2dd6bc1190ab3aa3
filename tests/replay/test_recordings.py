"""What real daemons met is answered today as it was then; a policy that was changed is seen, and where.

If one of these fails after a change that was meant: look at `vigil replay FILE`, then `python -m tests.replay.record`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.replay.record import FOLDER, SCENES
from vigil.cli.main import app
from vigil.core.handlers import charge
from vigil.core.model.death import Cause
from vigil.core.model.restart import RestartWhen
from vigil.core.rules.restart import COMES_BACK
from vigil.recording import Replay, open_recording

FILES = sorted(FOLDER.glob("*.jsonl"))
MOST_BYTES = 300_000
# Scene: the states its sessions were in, the causes of their deaths, what the event log says. One that shows less proves less.
SHOWS = {
    "crash-loop": ({"crashed", "failed", "succeeded", "stopped"}, {"crash", "finished"}, {"session.reset"}),
    "wedged-server": ({"suspect", "stuck", "running"}, {"operator"}, {"session.doubted"}),
    "killed-below-its-shell": ({"crashed", "failed", "running"}, {"killed-by-unknown", "server-died"}, {"server.died"}),
    "operators-verbs": ({"ending", "stopped", "running"}, {"operator"}, {"session.removed"}),
    "reaped-and-woken": ({"ending", "parked", "running"}, {"policy", "operator"}, {"session.reaped", "session.wake"}),
    "limit-of-a-team": ({"pending", "running"}, {"limit", "operator"}, {"session.limit", "session.hold-over", "role.declared"}),
    "stalls-and-remedies": (
        {"crashed", "running"},
        {"stalled", "operator"},
        {"session.stalled", "session.remedy", "session.remedied", "session.stall-over", "session.reminded"},
    ),
}


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, path.read_text("ascii").splitlines())


def test_every_scene_is_recorded() -> None:
    assert {path.stem for path in FILES} == set(SCENES) == set(SHOWS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_today_answers_as_it_was_recorded(path: Path) -> None:
    recording = open_recording(path)
    replay = Replay(recording)

    for step in replay.steps():
        assert not step.differs, step
        assert not step.unknown, step

    assert replay.deaths > 0
    assert recording.ended == "the daemon stopped"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_recording_shows_what_it_is_there_for(path: Path) -> None:
    changes = [e["Persist"] for line in lines_of(path) for e in line.get("effects", []) if "Persist" in e]
    states = {session["state"] for change in changes for session in change["sessions"]}
    causes = {death["cause"] for change in changes for death in change["deaths"]}
    logged = {entry["kind"] for change in changes for entry in change["log"]}

    assert SHOWS[path.stem][0] <= states
    assert SHOWS[path.stem][1] <= causes
    assert SHOWS[path.stem][2] <= logged
    assert path.stat().st_size < MOST_BYTES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_recording_names_nobodys_folders_and_no_environment(path: Path) -> None:
    text = path.read_text("ascii")

    assert re.findall(r"/home/|/root|/Users/|PATH=|VIGIL_", text) == []
    assert set(find(text, "cwd")) == {"/tmp"}


def find(text: str, key: str) -> list[Any]:
    """Return every value under a key, however deep down."""
    found: list[Any] = []

    def collect(table: dict[str, Any]) -> dict[str, Any]:
        found.extend(value for name, value in table.items() if name == key)
        return table

    for line in text.splitlines():
        json.loads(line, object_hook=collect)
    return found


def replay(name: str, *options: str) -> tuple[int, str]:
    """Run the command on a recording and return its exit code and what it printed."""
    done = CliRunner().invoke(app, ["replay", str(FOLDER / f"{name}.jsonl"), *options], standalone_mode=False)
    assert done.exception is None, done.exception
    return int(done.return_value), done.output


def test_the_command_says_that_nothing_differs_asks_no_daemon_and_writes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    words = [sys.executable, "-m", "vigil.cli", "replay", str(FOLDER / "crash-loop.jsonl")]

    done = subprocess.run(words, env={"VIGIL_HOME": str(home)}, cwd=tmp_path, capture_output=True, text=True, timeout=30)

    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"\d+ events, 2 sessions, \d deaths: today's policy answers the same\.\n", done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_a_changed_row_is_shown_at_the_first_event_it_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMES_BACK, RestartWhen.ALWAYS, frozenset(Cause) - {Cause.CRASH})

    code, printed = replay("crash-loop")

    first, *rest = printed.splitlines()
    assert code == 1
    assert re.fullmatch(r"event \d+  \S+Z  loop: its agent ended: exit 1 \(seen by \w+\)", first)
    assert "    session loop state: crashed → failed" in rest
    assert any(line.startswith("    session loop hold: reason=backoff until=") and line.endswith("→ none") for line in rest)
    assert "    SetTimer loop hold: asked for → not asked for" in rest
    assert printed.count("\nevent ") == 0, "what follows from it is left out"
    assert re.search(r"^\d+ more events differ, later ones of the same sessions: --all shows them$", printed, re.MULTILINE)
    assert re.search(r": \d+ differ, the first is event \d+\.$", rest[-1])


def test_all_and_json_show_every_event_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMES_BACK, RestartWhen.ALWAYS, frozenset(Cause) - {Cause.CRASH})

    (code, printed), (json_code, value) = replay("crash-loop", "--all"), replay("crash-loop", "-o", "json")

    found = json.loads(value)
    assert code == json_code == 1
    assert len(re.findall(r"^event ", printed, re.MULTILINE)) == found["differ"] == len(found["steps"]) > 3
    assert found["first"] == found["steps"][0]["event"]
    state = found["steps"][0]["differences"][0]
    assert (state["of"], state["session"], state["field"]) == ("session", "loop", "state")
    assert (state["then"], state["now"]) == ("crashed", "failed")


def test_a_changed_pace_is_shown_as_another_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charge, "jitter_of", lambda _launch_id: 0.0)

    code, printed = replay("crash-loop")

    assert code == 1
    assert re.search(r"session loop hold\.until: [\d:.]+Z → [\d:.]+Z\n", printed)
