"""The reaper with real tmux: what is nobody's goes, what anybody uses stays, and the server itself has the last word."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import Instance, alive, wait_for
from tests.live.stand_in import install
from tests.live.test_terminal import Terminal

Json = dict[str, Any]
OFF = "enabled = false\n"
FAST = 'idle_ttl = "2s"\ngrace = "1s"\n'
SLEEP = ("sh", "-c", "exec sleep 1000")
TMUX = shutil.which("tmux") or "tmux"


def configure(vigil: Instance, *lines: str) -> None:
    vigil.config.write_text("[reaper]\n" + "".join(lines))


@pytest.fixture
def fast(vigil: Instance) -> Instance:
    """An instance that reaps only when it is told to, and then soon."""
    configure(vigil, OFF, FAST)
    vigil.start()
    return vigil


@pytest.fixture
def another() -> Iterator[Instance]:
    """Another instance, with a home of its own."""
    instance = Instance()
    yield instance
    instance.destroy()


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    """Terminals that are closed after the test."""
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def reap(vigil: Instance, dry_run: bool = False) -> dict[str, Json]:
    return {found["name"]: found for found in vigil.client.reap(dry_run)}


def classes(vigil: Instance) -> dict[str, tuple[str, str]]:
    return {name: (found["class"], found["action"]) for name, found in reap(vigil, dry_run=True).items()}


def wait_class(vigil: Instance, name: str, kind: str) -> Json:
    """Wait until a dry run says so of a session."""
    return wait_for(
        lambda: found if (found := reap(vigil, dry_run=True)[name])["class"] == kind else None,
        20,
        f"{name} to be {kind}",
        lambda: reap(vigil, dry_run=True),
    )


def edit(vigil: Instance, *statements: str) -> None:
    with sqlite3.connect(vigil.home.database) as connection:
        for statement in statements:
            connection.execute(statement)


def make_orphans(vigil: Instance, *names: str) -> list[Json]:
    """Make the store forget sessions that live; no daemon runs then."""
    found = [vigil.get(name) for name in names]
    vigil.kill_daemon()
    for session in found:
        edit(vigil, f"delete from sessions where name = '{session['name']}'")
        shutil.rmtree(vigil.home.launch(session["launch"]))
    return found


def reaped(vigil: Instance) -> dict[str, str]:
    """Return the class of each that was reaped, as the event log has it."""
    found = [event for event in vigil.client.events() if event["kind"] in ("session.reaped", "orphan.reaped")]
    return {event["session"]: event["data"]["class"] for event in found}


def attach(vigil: Instance, terminals: list[Terminal], launch: str) -> None:
    """Attach a person to a launch's terminal."""
    socket = vigil.home.server_path(launch)
    terminals.append(Terminal(vigil.env, f"env -u TMUX tmux -S {socket} attach"))
    listed = ["tmux", "-S", socket, "list-clients"]
    wait_for(lambda: subprocess.run(listed, capture_output=True, timeout=10).stdout, 10, "a client")


def start_after(vigil: Instance, hours: float) -> None:
    """Start a daemon when hours have passed, in the bare environment of a cron job."""
    bare = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    words = ["--home", str(vigil.path), "--config", str(vigil.config)]
    subprocess.run([sys.executable, "-m", "tests.live.later", str(hours), *words], env=bare, timeout=60, check=True)
    wait_for(lambda: vigil.client.status()["pid"] == vigil.daemon_pid, 20, "the daemon to answer")


def test_after_22_and_71_hours_the_first_cycle_takes_all_that_is_due_and_nothing_a_person_uses(
    vigil: Instance, terminals: list[Terminal]
) -> None:
    configure(vigil, OFF)
    kinds = ("archived", "idle", "orphan")
    for name in (*kinds, *(f"{kind}-used" for kind in kinds), "first"):
        vigil.run(name, *SLEEP)
    before = {session["name"]: session for session in vigil.client.sessions()}
    for kind in kinds:
        attach(vigil, terminals, before[f"{kind}-used"]["launch"])
    make_orphans(vigil, "first")
    configure(vigil)  # all as it comes: 48 h of idleness, a minute of grace, and half an hour between two cycles

    start_after(vigil, 22)

    wait_for(lambda: reaped(vigil) == {"first": "orphan"}, 30, "what is an orphan", lambda: (reaped(vigil), reap(vigil, True)))
    assert "for 22 h" in vigil.wait_event("orphan.reaping")["data"]["evidence"][0]
    kept = reap(vigil, dry_run=True)["idle"]
    assert (kept["class"], kept["action"], "22 h ago; put to sleep after 48 h" in kept["evidence"][0]) == ("keep", "keep", True)

    make_orphans(vigil, "orphan", "orphan-used")
    edit(vigil, "update sessions set body = json_set(body, '$.archived_at', 1000.0) where name like 'archived%'")
    start_after(vigil, 71)

    expected = {"first": "orphan"} | {kind: kind for kind in kinds}
    wait_for(lambda: reaped(vigil) == expected, 30, "all three to be reaped", lambda: (reaped(vigil), reap(vigil, True)))
    told = {event["session"]: event["data"] for event in vigil.client.events() if event["kind"].endswith(".reaping")}
    assert {name: told[name]["class"] for name in kinds} == {kind: kind for kind in kinds}
    assert all("71 h" in " ".join(told[name]["evidence"]) for name in kinds), told
    assert {name for name, session in before.items() if alive(session["pid"])} == {f"{kind}-used" for kind in kinds}
    assert (vigil.get("idle")["state"], vigil.get("archived")["state"]) == ("parked", "stopped")
    assert [death["cause"] for death in vigil.deaths("idle")] == ["policy"]
    used = {name: found for name, found in classes(vigil).items() if name.endswith("-used")}
    assert used == {f"{kind}-used": ("attached", "keep") for kind in kinds}

    while terminals:
        terminals.pop().close()
    wait_for(lambda: "attached" not in {found for found, _ in classes(vigil).values()}, 20, "nobody to be attached")
    found = reap(vigil)
    assert {name: found[name]["outcome"] for name in used} == {
        "archived-used": "stopped",
        "idle-used": "parked",
        "orphan-used": "ended",
    }


def test_whoever_is_attached_keeps_an_idle_session_and_an_orphan(fast: Instance, terminals: list[Terminal]) -> None:
    fast.run("idle", *SLEEP)
    fast.run("orphan", *SLEEP)
    launches = {name: fast.get(name)["launch"] for name in ("idle", "orphan")}
    (found,) = make_orphans(fast, "orphan")
    fast.start()
    for launch in launches.values():
        attach(fast, terminals, launch)

    both = dict.fromkeys(launches, ("attached", "keep"))
    wait_for(lambda: classes(fast) == both, 20, "both to be attached", lambda: classes(fast))
    reap(fast)
    assert fast.get("idle")["state"] == "running"
    assert alive(found["pid"])

    while terminals:
        terminals.pop().close()

    wait_for(lambda: classes(fast)["orphan"] == ("orphan", "kill"), 20, "nobody to be attached", lambda: classes(fast))
    assert (reap(fast)["orphan"]["outcome"], alive(found["pid"])) == ("ended", False)


def test_one_that_attaches_between_the_decision_and_the_kill_is_spared_by_the_server(
    vigil: Instance, terminals: list[Terminal], scripts: Path
) -> None:
    configure(vigil, OFF, FAST)
    wrapper, asked = scripts / "tmux", scripts / "asked"
    wait = f"touch {asked}; until {TMUX} -S $4 list-clients 2>/dev/null | grep -q .; do sleep 0.01; done"
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *kill-session*) {wait};; esac\nexec {TMUX} "$@"\n')
    wrapper.chmod(0o755)
    assert vigil.run_cli("daemon", "start", env={"PATH": f"{scripts}:{os.environ['PATH']}"}).returncode == 0
    session = vigil.run("a", *SLEEP)
    socket = vigil.home.server_path(session["launch"])
    person = f"until test -e {asked}; do sleep 0.01; done; exec env -u TMUX {TMUX} -S {socket} attach"
    terminals.append(Terminal(vigil.env, f"sh -c '{person}'"))
    wait_class(vigil, "a", "idle")

    found = reap(vigil)["a"]

    assert (found["class"], found["action"], found["outcome"]) == ("idle", "park", "spared")
    assert "a person attached" in found["why"]
    assert (vigil.get("a")["state"], vigil.get("a")["pid"]) == ("running", session["pid"])


def test_what_works_is_kept_though_its_pane_is_silent_and_it_says_by_what(fast: Instance, scripts: Path) -> None:
    configure(fast, OFF, 'idle_ttl = "6s"\ngrace = "6s"\n')
    cwd = scripts / "work"
    cwd.mkdir()
    env = fast.env | {"HOME": str(scripts), "PYTHONIOENCODING": "utf-8"}
    fast.run("a", install(scripts), agent="claude", cwd=str(cwd), env=env)
    wait_for(lambda: fast.get("a")["axes"]["activity"]["value"] == "idle", 20, "it to be idle")
    wait_for(lambda: fast.client.send("a", "hello")["outcome"] == "submitted", 20, "its first prompt")
    transcript = wait_for(lambda: next(scripts.glob(".claude/projects/*/*.jsonl"), None), 20, "its transcript")
    wait_class(fast, "a", "idle")

    def write(path: Path, **more: Any) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        entry = {"type": "user", "uuid": "u1", "timestamp": at, "message": {"role": "user", "content": "x"}, **more}
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    conversation = fast.get("a")["conversation"]["id"]
    write(transcript.with_suffix("") / "subagents" / "agent-1.jsonl", isSidechain=True, agentId="1", sessionId=conversation)
    assert "sub-agent" in " ".join(wait_class(fast, "a", "busy")["evidence"])
    wait_class(fast, "a", "idle")
    write(transcript, isMeta=True, sessionId=conversation)
    assert "transcript entry" in " ".join(wait_class(fast, "a", "busy")["evidence"])
    wait_class(fast, "a", "idle")
    hook(fast, "a", {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t1", "session_id": conversation})
    assert "a tool runs" in wait_class(fast, "a", "busy")["evidence"][0]
    wait_for(lambda: time.time() > transcript.stat().st_mtime + 7, 20, "its time to live to be over")
    assert (reap(fast)["a"]["class"], fast.get("a")["state"]) == ("busy", "running")


def hook(vigil: Instance, name: str, payload: Json) -> None:
    """Say something as a hook of a session does."""
    launch = vigil.get(name)["launch"]
    event = {"session": name, "launch": launch, "token": vigil.token(launch), "payload": payload}
    path = vigil.home.spool / "tmp" / f"{time.time_ns()}.json"
    path.write_text(json.dumps(event))
    path.rename(vigil.home.spool / "new" / path.name)


def test_what_a_headless_agent_printed_while_no_daemon_ran_is_work(fast: Instance, scripts: Path) -> None:
    configure(fast, OFF, 'idle_ttl = "1h"\ngrace = "5s"\n')
    waits = f"until test -e {scripts}/go; do sleep 0.05; done; echo done; exec sleep 1000"
    session = fast.run("a", "sh", "-c", waits, runtime="headless")
    fast.kill_daemon()
    (scripts / "go").touch()
    printed = fast.home.launch(session["launch"]) / "stdout.jsonl"
    wait_for(lambda: printed.stat().st_size > 0, 10, "it to print")

    start_after(fast, 0.5)

    last = reap(fast, dry_run=True)["a"]["evidence"][0]
    assert last.startswith("last work: output, 30 min ago"), last


def test_processors_that_work_are_work_for_an_agent_that_says_nothing(fast: Instance) -> None:
    fast.run("a", "sh", "-c", "while :; do :; done")
    wait_for(lambda: "cores" in reap(fast, dry_run=True)["a"]["evidence"][0], 20, "its processor time to be seen")

    assert classes(fast)["a"] == ("busy", "keep")


def test_whatever_tmux_answers_or_does_not_is_unknown_and_kept(vigil: Instance, scripts: Path) -> None:
    configure(vigil, OFF, FAST)
    wrapper, mode = scripts / "tmux", scripts / "mode"
    mode.write_text("well")
    wrapper.write_text(
        "#!/bin/sh\n"
        f'case "$(cat {mode})" in\n'
        "empty) exit 0;;\n"
        "error) echo 'no server running' >&2; exit 1;;\n"
        "refused) echo 'access not allowed' >&2; exit 0;;\n"
        "blank) printf 'use   \\ntag \\nattached \\nend\\n'; exit 0;;\n"
        "hangs) exec sleep 100;;\n"
        f'esac\nexec {TMUX} "$@"\n'
    )
    wrapper.chmod(0o755)
    assert vigil.run_cli("daemon", "start", env={"PATH": f"{scripts}:{os.environ['PATH']}"}).returncode == 0
    session = vigil.run("a", *SLEEP)
    wait_class(vigil, "a", "idle")

    for answer in ("empty", "error", "refused", "blank", "hangs"):
        mode.write_text(answer)
        found = reap(vigil)["a"]
        assert (found["class"], found["action"]) == ("unknown", "keep"), answer
    mode.write_text("well")
    os.kill(session["server_pid"], signal.SIGSTOP)
    try:
        assert reap(vigil)["a"]["class"] == "unknown"
    finally:
        os.kill(session["server_pid"], signal.SIGCONT)

    assert (vigil.get("a")["pid"], len(vigil.deaths("a"))) == (session["pid"], 0)
    wait_for(lambda: vigil.get("a")["state"] == "running", 20, "it to be well")
    wait_class(vigil, "a", "idle")
    assert reap(vigil)["a"]["outcome"] == "parked"


def test_a_kill_that_a_stopped_server_was_asked_for_is_not_done_when_it_goes_on(vigil: Instance, scripts: Path) -> None:
    configure(vigil, OFF, FAST)
    wrapper = scripts / "tmux"
    stop = 'kill -STOP "$(cat server)"'
    wrapper.write_text(f'#!/bin/sh\ncd {scripts}\ncase "$*" in *kill-session*) {stop};; esac\nexec {TMUX} "$@"\n')
    wrapper.chmod(0o755)
    assert vigil.run_cli("daemon", "start", env={"PATH": f"{scripts}:{os.environ['PATH']}"}).returncode == 0
    session = vigil.run("a", *SLEEP)
    (scripts / "server").write_text(str(session["server_pid"]))
    wait_class(vigil, "a", "idle")

    try:
        found = reap(vigil)["a"]
    finally:
        os.kill(session["server_pid"], signal.SIGCONT)

    assert found["outcome"] == "unknown", found
    wait_for(lambda: vigil.tmux("a", "list-sessions").returncode == 0, 10, "its server to answer")
    assert alive(session["pid"])
    assert vigil.deaths("a") == []


def test_the_right_one_always_whatever_a_person_did_in_its_terminal(fast: Instance) -> None:
    for name in ("a", "ab", "split", "second", "named"):
        fast.run(name, *SLEEP)
    fast.tmux("ab", "rename-session", "-t", "=agent", "a")
    fast.tmux("ab", "rename-window", "-t", "%0", "a")
    fast.tmux("split", "split-window", "-d", "-t", "%0", "exec sleep 1000")
    fast.tmux("second", "new-window", "-d", "while :; do date; sleep 0.2; done")
    pids = {name: fast.get(name)["pid"] for name in ("a", "ab", "split", "second", "named")}
    fast.ok("stop", "named")
    wait_class(fast, "split", "idle")
    wait_class(fast, "ab", "idle")
    printing = "while :; do date; sleep 0.2; done"
    fast.tmux("ab", "split-window", "-d", "-t", "%0", printing)
    wait_class(fast, "ab", "busy")

    found = reap(fast)

    ended = {name for name, one in found.items() if one["action"] != "keep"}
    assert (ended, found["named"]["class"]) == ({"a", "split"}, "keep")
    assert {name for name, pid in pids.items() if alive(pid)} == {"ab", "second"}


def test_what_does_not_hear_a_hangup_is_ended_too_and_nobody_else(fast: Instance, scripts: Path) -> None:
    script = scripts / "agent.sh"
    script.write_text(
        "setsid sh -c 'trap \"\" HUP TERM; echo $$ > setsid; while :; do sleep 1; done' &\n"
        "nohup sleep 1000 > /dev/null 2>&1 & echo $! > nohup\n"
        "sh -c 'trap \"\" HUP; echo $$ > deaf; exec sleep 1000' &\n"
        "sleep 1000\n"
    )
    mine = subprocess.Popen(["sleep", "1000"], env={**os.environ, "VIGIL_LAUNCH": "sotherxx-1", "VIGIL_SPOOL": "/elsewhere"})
    fast.run("a", "sh", str(script), cwd=str(scripts))
    names = ("setsid", "nohup", "deaf")
    wait_for(lambda: all((scripts / name).exists() and (scripts / name).read_text().strip() for name in names), 10, "pids")
    pids = [int((scripts / name).read_text()) for name in names]
    wait_class(fast, "a", "idle")

    try:
        assert reap(fast)["a"]["outcome"] == "parked"
        assert not any(map(alive, pids))
        assert mine.poll() is None, "another instance's"
    finally:
        mine.kill()
        mine.wait()


def test_who_has_a_dead_launchs_pids_by_now_is_left_alone(fast: Instance, scripts: Path) -> None:
    session = fast.run("a", "sh", "-c", f"setsid sleep 1000 & echo $! > {scripts}/left; exec sleep 1000", cwd=str(scripts))
    left = int(wait_for(lambda: ((scripts / "left").exists() and (scripts / "left").read_text()) or None, 10, "its child"))
    fast.kill_daemon()
    os.kill(session["pid"], signal.SIGKILL)
    wait_for(lambda: not alive(session["pid"]), 10, "its end")
    foreign = subprocess.Popen(["sleep", "1000"], start_new_session=True)  # the kernel gave it the pid of all there was
    taken = [f"'$.launch.{role}.pid', {foreign.pid}" for role in ("process", "root", "server")]
    edit(fast, f"update sessions set body = json_set(body, {', '.join(taken)}) where name = 'a'")
    fast.start()

    try:
        fast.wait_death("a")
        whose = "the pid belongs to another process now"
        wait_for(lambda: fast.get("a")["axes"]["runtime"]["why"] == whose, 10, "it to say so", lambda: fast.get("a")["axes"])
        assert str(left) in wait_class(fast, "a", "orphan")["evidence"][0]
        assert reap(fast)["a"]["outcome"] == "ended"
        assert (alive(left), foreign.poll()) == (False, None)
        fast.ok("rm", "a")
        assert foreign.poll() is None
    finally:
        foreign.kill()
        foreign.wait()


def copy_store(source: Path, target: Path) -> Path:
    """Copy a database as a backup does, whoever writes it."""
    with contextlib.closing(sqlite3.connect(source)) as one, contextlib.closing(sqlite3.connect(target)) as other:
        one.backup(other)
    return target


def incidents(vigil: Instance) -> list[str]:
    return [one["kind"] for one in vigil.client.incidents()]


def test_whatever_is_put_in_a_databases_place_under_a_daemon_nothing_is_lost(fast: Instance, another: Instance) -> None:
    configure(fast, OFF, 'idle_ttl = "0"\ngrace = "1s"\n')
    for name in ("a", "asleep", "removed"):
        fast.run(name, *SLEEP, restart="always")
    another.run("a", *SLEEP)
    older = copy_store(fast.home.database, fast.path / "older.db")
    foreign = copy_store(another.home.database, fast.path / "foreign.db")
    (fast.path / "empty.db").touch()
    fast.run("late", *SLEEP)
    fast.client.ask("hibernate", "asleep")
    fast.client.rm("removed")
    with contextlib.closing(sqlite3.connect(fast.home.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # what is written from now on fits no older copy
    fast.client.ask("stop", "late")
    fast.client.ask("start", "late")
    before = {session["name"]: (session["state"], session["pid"]) for session in fast.client.sessions(everything=True)}
    deaths = [death["id"] for death in fast.client.deaths()]
    seen = len(fast.client.events())

    def lose(put: Path | None) -> None:
        known = {event["seq"] for event in fast.client.events()}
        if put is None:
            for path in fast.home.path.glob("vigil.db*"):
                path.unlink()
        else:
            put.rename(fast.home.database)
        wait_for(lambda: incidents(fast) == ["store-lost"], 20, "one incident", lambda: fast.client.incidents())
        wait_for(lambda: known <= {event["seq"] for event in fast.client.events()}, 10, "its history to be back")

    for put in (None, older, foreign, fast.path / "empty.db"):
        lose(put)
        fast.kill_daemon()
        fast.start()
        reap(fast)
        now = {session["name"]: (session["state"], session["pid"]) for session in fast.client.sessions(everything=True)}
        assert now == before, put
        assert [death["id"] for death in fast.client.deaths()] == deaths, put
    assert len(fast.client.events()) > seen
    assert len(list(fast.path.glob("vigil.db.found-*"))) == 2, "what was put there is kept, the empty one aside"
    assert (another.get("a")["state"], another.deaths("a")) == ("running", [])


def test_whatever_a_new_daemon_finds_in_its_databases_place_costs_nobody_a_session(
    fast: Instance, another: Instance, scripts: Path
) -> None:
    for name in ("a", "c"):
        fast.run(name, *SLEEP, cwd=str(scripts) if name == "c" else "/", restart="always")
    elsewhere = another.run("a", *SLEEP)["pid"]
    older = copy_store(fast.home.database, fast.path / "older.db")
    foreign = copy_store(another.home.database, fast.path / "foreign.db")
    fast.run("b", *SLEEP)
    fast.client.ask("restart", "a")
    pids = {name: fast.get(name)["pid"] for name in ("a", "b", "c")}

    for put in (None, older, foreign):
        fast.kill_daemon()
        for path in [fast.home.database, *fast.path.glob("vigil.db-*")]:
            path.unlink()
        if put is not None:
            put.rename(fast.home.database)
        configure(fast, 'interval = "1s"\nidle_ttl = "0"\ngrace = "1s"\n')
        fast.start()
        assert {session["name"]: session["pid"] for session in fast.client.sessions(everything=True)} == pids, put
        wait_for(lambda: incidents(fast) == ["store-lost"], 10, "one incident", lambda: fast.client.incidents())
        assert "adopted from launches/; what only the store knew is lost" in fast.client.incidents()[0]["why"]
        fast.ok("reap")
        assert all(map(alive, [*pids.values(), elsewhere])), put
        assert (fast.get("a")["restarts"]["policy"], fast.deaths("a")) == ("always", [])
    assert "another instance's" in fast.client.incidents()[0]["why"]
    assert another.get("a")["pid"] == elsewhere

    shutil.rmtree(scripts, ignore_errors=True)  # the folder of one agent's work
    wait_for(lambda: fast.get("c")["state"] == "stopped", 20, "c to be reaped", lambda: reap(fast, dry_run=True))
    assert "is gone" in fast.get("c")["why"]
    assert {name for name, pid in pids.items() if alive(pid)} == {"a", "b"}


def test_the_switch_stops_the_cycle_and_lets_it_go_on_without_a_restart(vigil: Instance) -> None:
    configure(vigil, OFF, FAST, 'interval = "1s"\n')
    vigil.run("a", *SLEEP)
    wait_class(vigil, "a", "idle")
    done = threading.Event()
    done.wait(2.5)  # two intervals: nothing tells that nothing happened but time
    assert vigil.get("a")["state"] == "running"

    configure(vigil, FAST, 'interval = "1s"\n')

    vigil.wait_state("a", "parked", within_s=30)


def test_when_memory_is_short_the_longest_idle_is_put_to_sleep_first(vigil: Instance) -> None:
    configure(vigil, 'idle_ttl = "1h"\ngrace = "1s"\npark_on_pressure = true\n')
    vigil.run("first", *SLEEP)
    vigil.run("last", *SLEEP)
    vigil.run("busy", "sh", "-c", "while :; do date; sleep 0.2; done")

    with vigil.config.open("a") as file:
        file.write('[launch]\nleast_memory = "64TiB"\n')

    vigil.wait_state("first", "parked", within_s=40)
    assert "memory is short" in vigil.get("first")["why"]
    vigil.wait_state("last", "parked", within_s=40)
    assert vigil.get("busy")["state"] == "running"
