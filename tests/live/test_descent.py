"""Whatever descends from a launch is known and ended with it, whatever it does to its environment and its session (P1, P9)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.instance import VIGIL, Instance, alive, wait_for
from vigil.kernel import cgroups
from vigil.kernel.descent import LOCKS

ESCAPES = {
    "plain": "env -i setsid -f sh -c 'echo $$ > @PID; exec sleep 600'",
    "twice": "env -i setsid -f env -i setsid -f sh -c 'trap \"\" HUP TERM; echo $$ > @PID; while :; do sleep 1; done'",
}
UNMARKED = (
    f"import os, resource, sys; resource.setrlimit({LOCKS}, (resource.RLIM_INFINITY,) * 2); "
    "os.execvpe('sh', ['sh', '-c', sys.argv[1]], {'PATH': os.environ['PATH']})"
)
PID = "@PID"
OFF = "[isolation]\ncgroups = false\n"


@pytest.fixture(params=["cgroup", "mark"])
def known_by(request: pytest.FixtureRequest, vigil: Instance, tmp_path: Path) -> Iterator[str]:
    """How what descends from a launch is known: by its cgroup, in a cgroup2 mounted for this test, or by its mark alone."""
    if request.param == "mark":
        vigil.config.write_text(OFF)
        yield "mark"
        return
    point = tmp_path / "cgroup2"
    point.mkdir()
    if subprocess.run(["mount", "-t", "cgroup2", "none", str(point)], capture_output=True).returncode:
        pytest.skip("only root may mount a cgroup2")
    base = point / f"vg-{os.getpid()}"
    base.mkdir()
    vigil.config.write_text(f'[isolation]\ncgroup_root = "{base}"\n')
    yield "cgroup"
    vigil.run_cli("daemon", "stop", "--kill-sessions")
    left = list(base.glob("vigil-*"))
    cgroups.remove(str(base))
    wait_for(lambda: subprocess.run(["umount", str(point)]).returncode == 0, 20, "daemon and keeper to let go of the cgroup2")
    assert left == []


def escape(vigil: Instance, name: str, script: str, pid: Path, runtime: str, rest: str = "exec sleep 600") -> int:
    """Have an agent start a child that leaves no sign of itself, and return that child's pid."""
    vigil.run(name, "sh", "-c", f"{script.replace(PID, str(pid))}; {rest}", runtime=runtime)
    return int(wait_for(lambda: (pid.exists() and pid.read_text().strip()) or None, 20, "the child to run"))


@pytest.mark.parametrize("runtime", ["headless", "tmux"])
@pytest.mark.parametrize(("verb", "way"), [("stop", "twice"), ("rm", "plain")])
def test_a_child_without_environment_and_session_ends_with_its_launch(
    vigil: Instance, known_by: str, runtime: str, way: str, verb: str, tmp_path: Path
) -> None:
    child = escape(vigil, "fix", ESCAPES[way], tmp_path / "pid", runtime)
    stays = escape(vigil, "other", ESCAPES["plain"], tmp_path / "stays", runtime)
    assert bool(vigil.get("fix")["cgroup"]) == (known_by == "cgroup")

    vigil.ok(verb, "fix")

    assert not alive(child)
    assert alive(stays)


@pytest.mark.parametrize("runtime", ["headless", "tmux"])
def test_what_outlived_its_agent_is_listed_wherever_a_person_looks(
    vigil: Instance, known_by: str, runtime: str, tmp_path: Path
) -> None:
    child = escape(vigil, "fix", ESCAPES["plain"], tmp_path / "pid", runtime, rest="sleep 0.5; exit 3")
    death = vigil.wait_death("fix")
    wait_for(lambda: vigil.client.death(death["id"])["survivors"], 20, "the bundle with its survivors")

    assert [one["pid"] for one in vigil.get("fix")["survivors"]] == [child], known_by
    assert [one["pid"] for one in vigil.client.death(death["id"])["survivors"]] == [child]
    assert f"fix left 1 process running (pid {child}); vigil stop fix ends them" in vigil.run_cli("doctor").stdout
    assert str(child) in vigil.ok("reap", "--dry-run", "-o", "json")
    vigil.ok("stop", "fix")
    assert not alive(child)


def test_a_launch_is_still_known_after_daemon_and_keeper_died(vigil: Instance, known_by: str, tmp_path: Path) -> None:
    child = escape(vigil, "fix", ESCAPES["plain"], tmp_path / "pid", "headless")
    before = vigil.get("fix")["cgroup"]
    vigil.kill_daemon()
    vigil.kill_keeper()
    vigil.start()

    vigil.wait_state("fix", "running")
    assert vigil.get("fix")["cgroup"] == before, known_by
    vigil.ok("stop", "fix")

    assert not alive(child)


def test_a_child_that_took_off_its_mark_too_is_known_by_its_cgroup(vigil: Instance, known_by: str, tmp_path: Path) -> None:
    """Without a cgroup it is only known that some agent left it: it is listed, kept, and ended with all sessions."""
    hide = f"setsid -f {sys.executable} -c \"{UNMARKED}\" 'echo $$ > {PID}; exec sleep 600'"
    child = escape(vigil, "fix", hide, tmp_path / "pid", "headless")

    vigil.ok("stop", "fix")

    assert alive(child) == (known_by == "mark")
    if known_by == "mark":
        assert f"of unknown launch (pid {child})" in vigil.run_cli("doctor").stdout
        (found,) = [one for one in vigil.json("reap") if one["launch"] == "unknown-launch"]
        assert (found["class"], found["action"]) == ("unknown", "keep")
        assert alive(child)
        said = vigil.ok("daemon", "stop", "--kill-sessions")
        assert not alive(child), said


def test_ending_all_sessions_ends_what_they_left(vigil: Instance, known_by: str, tmp_path: Path) -> None:
    kept = escape(vigil, "done", ESCAPES["plain"], tmp_path / "kept", "headless", rest="exit 0")
    lives = escape(vigil, "fix", ESCAPES["twice"], tmp_path / "lives", "tmux")
    vigil.wait_state("done", "succeeded")
    assert alive(kept), known_by

    vigil.ok("daemon", "stop", "--kill-sessions")

    assert (alive(kept), alive(lives)) == (False, False)


def test_a_daemon_that_an_agent_started_outlives_that_agents_launch(vigil: Instance, known_by: str, tmp_path: Path) -> None:
    other = Instance(tmp_path / "other")
    words = " ".join([*VIGIL, "daemon", "start"])
    started = tmp_path / "started"
    vigil.run(
        "fix",
        "sh",
        "-c",
        f"env -u VIGIL_SPOOL VIGIL_HOME={other.path} {words}; echo > {started}; exec sleep 600",
        runtime="headless",
    )
    wait_for(started.exists, 30, "the agent to start a daemon")
    pids = [other.daemon_pid, other.keeper_pid]

    vigil.ok("stop", "fix")

    assert [alive(pid) for pid in pids] == [True, True], known_by
    other.destroy()


def test_a_limit_that_cannot_be_kept_refuses_the_launch(vigil: Instance) -> None:
    vigil.config.write_text(OFF)
    vigil.start()

    done = vigil.run_cli("run", "--name", "fix", "--memory-max", "2G", "--", "true")

    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("vigil: memory_max cannot be kept: cgroups = false in [isolation]. vigil doctor says how")
    vigil.config.write_text(f"{OFF}best_effort = true\n")
    wait_for(
        lambda: vigil.run_cli("run", "--name", "fix", "--pids-max", "99", "--", "true").returncode == 0, 20, "the new setting"
    )
    assert vigil.get("fix")["limits"] == {"memory_max": None, "pids_max": 99, "cpu_weight": None}


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--memory-max", "lots", 'memory_max: "lots" is no size'),
        ("--memory-max", "1M", 'memory_max: "1M" is out of range: 16M to 1024T'),
        ("--pids-max", "3", "pids_max: 3 is out of range: 16 to 4194304"),
        ("--cpu-weight", "-5", 'cpu_weight: "-5" is no whole number'),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_as_wrong_usage(shared: Instance, option: str, value: str, says: str) -> None:
    done = shared.run_cli("run", option, value, "--", "true")

    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.parametrize("runtime", ["headless", "tmux"])
@pytest.mark.parametrize("umask", [0o077, 0o022, 0o002])
def test_the_callers_umask_reaches_the_agent(vigil: Instance, runtime: str, umask: int, tmp_path: Path) -> None:
    made = tmp_path / "made"
    argv = [*VIGIL, "run", "--name", "fix", "--runtime", runtime, "--", "sh", "-c", f"echo x > {made}; exec sleep 600"]

    subprocess.run(argv, env=vigil.env, umask=umask, check=True, capture_output=True, timeout=60)
    wait_for(lambda: made.exists() and made.read_text(), 20, "the agent to write")

    assert made.stat().st_mode & 0o777 == 0o666 & ~umask
    assert vigil.get("fix")["umask"] == f"{umask:03o}"
    if umask == 0o077:
        made.unlink()
        vigil.ok("restart", "fix")
        wait_for(lambda: made.exists() and made.read_text(), 20, "the next launch to write")
        assert made.stat().st_mode & 0o777 == 0o600


def test_a_role_keeps_the_umask_of_its_first_up(vigil: Instance, tmp_path: Path) -> None:
    manifest = tmp_path / "vigil.toml"
    command = f'["sh", "-c", "echo x > {tmp_path}/made; exec sleep 600"]'
    role = f'[[team.role]]\nname = "coder"\nruntime = "headless"\ncommand = {command}\n'
    manifest.write_text(f'workspace = "w"\n[[team]]\nname = "t"\n{role}')
    up = [*VIGIL, "up", "--yes", str(manifest)]

    subprocess.run(up, env=vigil.env, umask=0o077, check=True, capture_output=True, timeout=60)
    wait_for(lambda: (tmp_path / "made").exists() and (tmp_path / "made").read_text(), 20, "the replica to write")
    again = subprocess.run(up, env=vigil.env, umask=0o022, check=True, capture_output=True, text=True, timeout=60)

    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o600
    assert "everything is as declared" in again.stdout
