"""The API: for one user only, readable by agents, and a feed of events that loses nothing."""

from __future__ import annotations

import http.client
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from typing import Any

import pytest

from tests.live.instance import VIGIL, Instance, wait_for

NOBODY = 65534


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the instance's socket, by hand."""

    def __init__(self, path: str) -> None:
        super().__init__("vigil", timeout=20)
        self.path = path

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


def test_the_socket_is_for_its_owner_alone(shared: Instance) -> None:
    shared.start()

    assert stat.S_IMODE(os.stat(shared.home.api_socket).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(shared.home.keeper_socket).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(shared.home.run).st_mode) == 0o700


@pytest.mark.parametrize("name", ["api_socket", "keeper_socket"])
def test_another_user_is_refused_even_if_folder_and_socket_were_opened_by_hand(vigil: Instance, name: str) -> None:
    if os.getuid() != 0:
        pytest.fail("becoming another user needs root")
    vigil.run("a", "sleep", "1000")
    path = str(getattr(vigil.home, name))
    for opened in (str(vigil.path), str(vigil.home.run)):
        os.chmod(opened, 0o755)
    os.chmod(path, 0o666)
    script = (
        "import os, socket, sys\n"
        f"os.setuid({NOBODY})\n"
        "s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(sys.argv[1])\n"
        "try:\n"
        "    s.sendall(sys.argv[2].encode())\n"
        "    got = s.recv(4096)\n"
        "except (BrokenPipeError, ConnectionResetError):\n"
        "    got = b''\n"
        "sys.exit(1 if got else 0)\n"
    )
    request = "GET /v1/sessions HTTP/1.1\r\nHost: x\r\n\r\n" if name == "api_socket" else '{"id": 1, "do": "ping"}\n'

    done = subprocess.run([sys.executable, "-c", script, path, request], capture_output=True, text=True, timeout=30)

    assert done.returncode == 0, done.stderr
    for opened in (str(vigil.path), str(vigil.home.run)):
        os.chmod(opened, 0o700)
    assert vigil.get("a")["state"] == "running"


def test_the_api_describes_itself(shared: Instance) -> None:
    shared.start()
    connection = UnixConnection(str(shared.home.api_socket))
    connection.request("GET", "/openapi.json")

    document = json.loads(connection.getresponse().read())

    connection.close()
    assert document["openapi"].startswith("3.")
    assert {"/v1/sessions", "/v1/events", "/v1/events/stream", "/v1/daemon"} <= set(document["paths"])


def test_events_are_streamed_and_resume_from_the_last_one_seen(shared: Instance) -> None:
    shared.run("first", "sleep", "1000")
    stream = shared.client.follow_events(after=0)
    seen = [next(stream) for _ in range(3)]
    stream.close()  # type: ignore[attr-defined]
    shared.run("second", "sh", "-c", "exit 3")
    shared.wait_death("second")

    connection = UnixConnection(str(shared.home.api_socket))
    connection.request("GET", "/v1/events/stream", headers={"Last-Event-ID": str(seen[-1]["seq"])})
    rest = _read_until(connection.getresponse(), lambda event: event["kind"] == "session.died")
    connection.close()

    numbers = [event["seq"] for event in seen + rest]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert rest[-1]["session"] == "second"
    assert rest[-1]["data"]["exit_code"] == 3


def test_who_saw_events_of_a_log_that_is_lost_is_told_what_happens_now(shared: Instance) -> None:
    shared.start()
    connection = UnixConnection(str(shared.home.api_socket))
    connection.request("GET", "/v1/events/stream", headers={"Last-Event-ID": "1000000000"})
    stream = connection.getresponse()
    assert stream.readline() == b": vigil\n"

    shared.run("after-the-loss", "sleep", "1000")
    told = _read_until(stream, lambda event: event["kind"] == "session.launched")
    connection.close()

    assert told[-1]["session"] == "after-the-loss"


def test_events_are_shown_since_a_week_ago(shared: Instance) -> None:
    shared.start()

    assert shared.json("events", "--since", "7d") == shared.json("events")


def test_the_event_log_survives_the_daemon_and_its_numbers_go_on(vigil: Instance) -> None:
    vigil.run("a", "sleep", "1000")
    before = vigil.client.events()

    vigil.kill_daemon()
    vigil.start()

    after = vigil.client.events()
    assert after[: len(before)] == before
    assert [event["seq"] for event in after] == list(range(1, len(after) + 1))


def test_following_events_on_the_command_line_gives_one_value_a_line(shared: Instance) -> None:
    shared.run("watched", "sleep", "1000")
    command = [*VIGIL, "events", "watched", "--follow", "-o", "json"]
    process = subprocess.Popen(command, env=shared.env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines: list[dict[str, Any]] = []
    reader = threading.Thread(target=lambda: lines.extend(json.loads(line) for line in process.stdout or []), daemon=True)
    reader.start()
    wait_for(lambda: any(e["kind"] == "session.launched" for e in lines), 10, "the events so far")

    shared.client.ask("stop", "watched")

    wait_for(lambda: any(e["kind"] == "session.died" for e in lines), 10, "the death")
    process.terminate()
    process.wait(10)
    reader.join(10)
    process.stdout.close()
    assert {event["session"] for event in lines} == {"watched"}


def test_an_agent_may_read_but_not_change_another_session(shared: Instance) -> None:
    victim = shared.run("victim", "sleep", "1000")
    vigil = " ".join(VIGIL)
    out = shared.path / "out"
    script = (
        f"{vigil} ls >{out}.ls 2>&1; echo $? >{out}.ls-code; {vigil} stop victim >{out}.stop 2>&1; echo $? >{out}.stop-code; "
        f"{vigil} rm victim >/dev/null 2>&1; echo $? >{out}.rm-code; {vigil} run --name new -- sleep 9 >{out}.run 2>&1; "
        f"echo $? >{out}.run-code; {vigil} daemon stop --kill-sessions >/dev/null 2>&1; echo $? >{out}.daemon-code; sleep 1000"
    )
    for runtime in ("tmux", "headless"):
        shared.run("intruder", "sh", "-c", script, runtime=runtime)

        last = shared.path / "out.daemon-code"
        wait_for(lambda: last.exists() and last.read_text().strip(), 20, "the agent to have tried everything")  # noqa: B023

        codes = {what: int((shared.path / f"out.{what}-code").read_text()) for what in ("ls", "stop", "rm", "run", "daemon")}
        assert codes == {"ls": 0, "stop": 4, "rm": 4, "run": 4, "daemon": 4}
        assert "victim" in (shared.path / "out.ls").read_text()
        assert "agent intruder" in (shared.path / "out.stop").read_text()
        assert shared.get("victim")["pid"] == victim["pid"]
        shared.client.rm("intruder")
        for path in shared.path.glob("out.*"):
            path.unlink()


def test_an_agent_that_left_its_session_is_still_an_agent(shared: Instance) -> None:
    shared.run("victim2", "sleep", "1000")
    out = shared.path / "orphan-words"
    vigil = " ".join(VIGIL)
    script = f"(setsid sh -c 'sleep 0.5; {vigil} stop victim2 2>{out}.new; mv {out}.new {out}' >/dev/null 2>&1 &); exit 0"

    shared.run("leaver", "sh", "-c", script, runtime="headless")

    said = wait_for(lambda: out.exists() and out.read_text().strip(), 20, "its try")
    assert said == "vigil: this comes from an agent that Vigil watches: it may read, but not change victim2; a person can"
    assert shared.get("victim2")["state"] == "running"


def test_an_agent_may_stop_itself(shared: Instance) -> None:
    shared.run("tired", "sh", "-c", f"{' '.join(VIGIL)} stop tired; sleep 1000")

    assert shared.wait_state("tired", "stopped")["last_death"]["cause"] == "operator"


def _read_until(response: http.client.HTTPResponse, last: Any) -> list[dict[str, Any]]:
    found = []
    for line in response:
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:]))
            if last(found[-1]):
                return found
    raise AssertionError(found)
