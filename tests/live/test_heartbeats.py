"""A heartbeat is a sign of life: from inside a session, from outside by its name, and only of the launch that lives."""

from __future__ import annotations

import shlex
import signal
import subprocess
from pathlib import Path

import pytest

import vigil as package
from tests.live.instance import VIGIL, Instance, Json, kill, wait_for

RUNTIMES = ["headless", "tmux"]
SOON_S = 20.0
HOOK = ["sh", str(Path(package.__file__).parent / "agents" / "hook.sh")]


def loop_of(*command: str) -> list[str]:
    return ["sh", "-c", f"while :; do {shlex.join(command)}; sleep 0.2; done"]


def active_at(session: Json) -> str:
    return str(session["last_activity_at"] or "")  # times of this form sort as text


def grown(vigil: Instance, name: str, since: str) -> str:
    """Wait until a session was active after this moment, and return when."""

    def look() -> str | None:
        found = active_at(vigil.get(name))
        return found if found > since else None

    return wait_for(look, SOON_S, f"{name} to be active after {since or 'its start'}")


def inside(vigil: Instance, session: Json) -> dict[str, str]:
    """Return what a session's own processes have in their environment."""
    who = {"VIGIL_SESSION": session["name"], "VIGIL_LAUNCH": session["launch"], "VIGIL_TOKEN": vigil.token(session["launch"])}
    return {"VIGIL_SPOOL": str(vigil.home.spool), **who}


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("command", [[*VIGIL, "heartbeat"], [*HOOK, "heartbeat"]], ids=["vigil", "sh"])
def test_a_session_that_gives_heartbeats_shows_a_growing_activity(vigil: Instance, runtime: str, command: list[str]) -> None:
    vigil.run("a", *loop_of(*command), runtime=runtime)

    moments = [""]
    for _ in range(3):
        moments.append(grown(vigil, "a", moments[-1]))

    session = vigil.json("get", "a")
    assert active_at(session) >= moments[-1]
    assert moments == sorted(set(moments))
    assert session["state"] == "running"
    assert session["axes"]["activity"]["value"] == "unknown", "that it lives says nothing of what it does"
    assert vigil.client.status()["hooks"]["bad"] == 0
    assert vigil.ok("logs", "a").strip() == "", "a heartbeat prints nothing"


def test_a_heartbeat_wakes_no_daemon_and_is_heard_by_the_next_one(vigil: Instance) -> None:
    session = vigil.run("a", "sleep", "1000")
    before = active_at(vigil.get("a"))
    vigil.ok("daemon", "stop")

    done = vigil.run_cli("heartbeat", env=inside(vigil, session))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert vigil.run_cli("daemon", "status").returncode != 0
    assert len(list((vigil.home.spool / "new").iterdir())) == 1
    vigil.start()
    grown(vigil, "a", before)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_heartbeat_by_name_is_of_the_launch_that_lives(vigil: Instance, runtime: str) -> None:
    vigil.run("a", "sleep", "1000", runtime=runtime)
    vigil.run("b", "sleep", "1000", runtime=runtime)
    before, other = active_at(vigil.get("a")), active_at(vigil.get("b"))

    for _ in range(2):
        done = vigil.run_cli("heartbeat", "a")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        before = grown(vigil, "a", before)

    assert active_at(vigil.get("b")) == other


def test_a_home_that_was_named_decides_whose_session_is_meant(vigil: Instance, tmp_path: Path) -> None:
    vigil.run("a", "sleep", "1000")
    before = active_at(vigil.get("a"))
    for name in ("new", "tmp"):
        (tmp_path / "spool" / name).mkdir(parents=True)
    elsewhere = {"VIGIL_SPOOL": str(tmp_path / "spool"), "VIGIL_SESSION": "a", "VIGIL_LAUNCH": "s9-1"}

    assert vigil.run_cli("heartbeat", "a", env=elsewhere).returncode == 0

    grown(vigil, "a", before)
    assert list((tmp_path / "spool" / "new").iterdir()) == []


def test_what_does_not_run_has_no_heartbeat(vigil: Instance) -> None:
    vigil.run("a", "sleep", "1000")
    vigil.ok("stop", "a")
    vigil.run("b", "false", restart="never", runtime="headless")
    vigil.wait_death("b")

    for name in ("a", "b"):
        done = vigil.run_cli("heartbeat", name)
        expected = f"vigil: {name} is not running: nothing has a heartbeat\n"
        assert (done.returncode, done.stdout, done.stderr) == (4, "", expected)


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["nobody"], 3, "there is no session nobody"),
        (["../nobody"], 2, "../nobody"),
        ([], 2, "vigil heartbeat NAME"),
        (["a", "b"], 2, "unexpected extra argument"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(shared: Instance, words: list[str], code: int, expected: str) -> None:
    done = shared.run_cli("heartbeat", *words)

    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("vigil: ")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_agent_gives_no_heartbeat_for_another(vigil: Instance, tmp_path: Path) -> None:
    vigil.run("a", "sleep", "1000")
    before = active_at(vigil.get("a"))
    out = tmp_path / "out"
    script = f"{shlex.join([*VIGIL, 'heartbeat', 'a'])} 2>{out}.new; echo $? >>{out}.new; mv {out}.new {out}; sleep 1000"

    vigil.run("b", "sh", "-c", script, runtime="headless")

    wait_for(out.exists, SOON_S, "its answer")
    assert out.read_text().startswith("vigil: agent b is an agent that Vigil watches")
    assert out.read_text().endswith("\n4\n")
    assert active_at(vigil.get("a")) == before


def test_a_heartbeat_of_an_older_launch_is_dropped(vigil: Instance) -> None:
    first = vigil.run("a", "sleep", "1000", restart="always", backoff_base_s=1.0)
    kill(first["pid"], signal.SIGKILL)
    wait_for(lambda: (s := vigil.get("a"))["state"] == "running" and s["launch"] != first["launch"], SOON_S, "its next launch")
    before = active_at(vigil.get("a"))

    for words in (["heartbeat"], ["heartbeat", "a"]):
        env = {key: value for key, value in vigil.env.items() if key != "VIGIL_HOME"} | inside(vigil, first)
        assert subprocess.run([*VIGIL, *words], env=env, timeout=SOON_S).returncode == 0

    wait_for(lambda: vigil.client.status()["hooks"]["dropped"] == 2, SOON_S, "both to be dropped")
    assert active_at(vigil.get("a")) == before


def test_names_of_sessions_are_completed(vigil: Instance) -> None:
    vigil.run("complete-me", "sleep", "1000")
    words = {"_VIGIL_COMPLETE": "bash_complete", "COMP_WORDS": "vigil heartbeat com", "COMP_CWORD": "2"}

    assert "complete-me" in vigil.run_cli(env=words).stdout
