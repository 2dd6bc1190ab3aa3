"""Notices: each at least once and never more than twice, whatever is killed; by real routes, to real receivers."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.live.instance import Instance, alive, kill, wait_for
from tests.live.receivers import web_receiver
from tests.live.test_hooks import say
from tests.live.watching import at, configure, read_notices

Json = dict[str, Any]

LATE_S = 1.0  # P6
SAME_S = 10.0
ASKS, GOES_ON = {"hook_event_name": "PermissionRequest"}, {"hook_event_name": "PostToolUse"}
LADDER = "[[ladder]]\nseverity = 'action'\nsteps = [{steps}]\n"


def ladder(*steps: str) -> str:
    return LADDER.format(steps=", ".join(f"{{ {step} }}" for step in steps))


def asking(vigil: Instance, name: str = "a") -> Json:
    """Return the incident of a session that waits for a human."""
    session = vigil.run(name, "sleep", "1000")
    say(vigil, session["launch"], ASKS)
    return wait_for(lambda: find(vigil, "needs-input"), 10, "the incident")


def find(vigil: Instance, kind: str, everything: bool = False) -> Json | None:
    return next((one for one in vigil.client.incidents(everything) if one["kind"] == kind), None)


def heard(notices: Path) -> list[tuple[str, str]]:
    return [(said["event"], said["kind"]) for _, said in read_notices(notices)]


def test_who_does_not_react_is_told_by_the_ladder_at_its_times_and_nobody_after_an_ack(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    configure(
        vigil,
        notices,
        ladder("route = 'script'", "route = 'script', after = '2s'", "route = 'script', after = '4s', repeat = '60s'"),
    )
    incident = asking(vigil)

    wait_for(lambda: len(read_notices(notices)) == 3, 15, "the ladder's notices")
    for (came_at, said), after_s in zip(read_notices(notices), (0, 2, 4), strict=True):
        assert 0 <= came_at - at(said["opened_at"]) - after_s < LATE_S + 0.5  # for a process to start, on a busy machine
    assert heard(notices) == [("opened", "needs-input"), ("reminder", "needs-input"), ("reminder", "needs-input")]

    assert "acknowledged" in vigil.ok("ack", incident["id"])
    acked = vigil.json("incidents", incident["id"])
    assert acked["acked_by"] == "operator" and acked["resolved_at"] is None
    assert [line["what"] for line in acked["timeline"]] == ["opened", "notified", "notified", "notified", "acked"]
    assert "! " in vigil.ok("ls")
    say(vigil, vigil.get("a")["launch"], GOES_ON)
    wait_for(lambda: len(read_notices(notices)) == 4, 30, "the all-clear")
    assert heard(notices)[3] == ("resolved", "needs-input")
    page = vigil.ok("incidents", incident["id"])
    assert "acknowledged by operator" in page and "resolved to script: sent" in page


def test_a_condition_that_flaps_is_one_incident_and_one_notice(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    configure(vigil, notices, ladder("route = 'script'"))
    incident = asking(vigil)
    launch = vigil.get("a")["launch"]
    for count in range(2, 8):
        say(vigil, launch, GOES_ON)
        wait_for(lambda: not vigil.client.incidents(), 10, "it to go on")
        say(vigil, launch, ASKS)
        wait_for(lambda: (one := find(vigil, "needs-input")) and one["count"] == count, 10, "it to ask again")  # noqa: B023

    assert [one["id"] for one in vigil.client.incidents(everything=True)] == [incident["id"]]
    wait_for(lambda: fates(vigil) == ["sent"], 20, "the one notice to be on record", lambda: fates(vigil))
    assert heard(notices) == [("opened", "needs-input")]


def test_of_a_session_that_is_removed_nobody_is_told_anything_more(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    again = "route = 'script', repeat = '1s'"
    later = "[[ladder]]\nseverity = 'urgent'\nsteps = [{ route = 'script' }]\n"
    bad = "[routes.bad]\nexec = ['sh', '-c', 'echo no network >&2; exit 1']\nretry = 1\n"
    configure(vigil, notices, bad + ladder(again, "route = 'bad'") + later)
    asks, went_on = vigil.run("asks", "sleep", "1000"), vigil.run("went-on", "sleep", "1000")
    for session in (asks, went_on):
        say(vigil, session["launch"], ASKS)
    wait_for(lambda: {said["session"] for _, said in read_notices(notices)} == {"asks", "went-on"}, 20, "both notices")
    say(vigil, went_on["launch"], GOES_ON)
    wait_for(lambda: len(vigil.client.incidents()) == 1, 10, "one of them to be over, of which nobody is told yet")

    for name in ("asks", "went-on"):
        vigil.ok("rm", name)
    wait_for(lambda: "sending" not in all_states(vigil), 10, "what was on its way to arrive")
    before = len(read_notices(notices))
    found = {one["session"]: vigil.json("incidents", one["id"]) for one in vigil.client.incidents(everything=True)}
    vigil.kill_daemon()
    vigil.start()
    late = vigil.run("late", "sleep", "1000")
    kill(late["server_pid"], signal.SIGKILL)
    wait_for(lambda: len(read_notices(notices)) > before, 20, "the notice of another, later")
    over_at = at(found["went-on"]["resolved_at"]) + SAME_S + 1
    wait_for(lambda: time.time() > over_at + LATE_S + 1, 30, "the all-clear that would have come")

    assert found["asks"]["resolution"] == "asks was removed"
    assert [line["data"] for line in found["asks"]["timeline"] if line["what"] == "resolved"] == [
        {"resolution": "asks was removed"}
    ]
    assert found["went-on"]["resolution"] == "went-on is running"
    assert {said["session"] for _, said in read_notices(notices)[before:]} == {"late"}
    assert all_states(vigil) <= {"sent", "cancelled"}


def all_states(vigil: Instance) -> set[str]:
    return {notice["state"] for one in vigil.client.incidents(everything=True) for notice in one["notices"]}


def test_a_store_that_somebody_locks_delays_no_notice_and_ends_no_daemon(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    configure(vigil, notices, ladder("route = 'script'", "route = 'script', after = '2s'"))
    launches = [vigil.run(name, "sleep", "1000", runtime="headless")["launch"] for name in ("a", "b")]
    daemon = vigil.daemon_pid
    with closing(sqlite3.connect(vigil.home.database, timeout=10, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        for number, launch in enumerate(launches, 1):  # the second one comes while the first cannot be written
            say(vigil, launch, ASKS)
            said_at = time.time()
            wait_for(lambda: len(read_notices(notices)) >= number, 10, "its notice")  # noqa: B023
            assert read_notices(notices)[number - 1][0] - said_at < LATE_S + 1.0  # for a process to start, on a busy machine
        wait_for(lambda: len(read_notices(notices)) == 4, 10, "the reminders")
        database.execute("ROLLBACK")
    wait_for(lambda: fates(vigil) == ["sent"] * 4, 20, "all of it to be on record", lambda: fates(vigil))

    for came_at, said in read_notices(notices):
        assert came_at - at(said["opened_at"]) - {"opened": 0, "reminder": 2}[said["event"]] < LATE_S + 1.0
    assert len({said["notice"] for _, said in read_notices(notices)}) == len(read_notices(notices)) == 4
    assert vigil.daemon_pid == daemon


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_daemon_that_is_killed_at_every_step_loses_no_notice_and_tells_none_more_than_twice(
    vigil: Instance, tmp_path: Path, when: str
) -> None:
    notices, script = tmp_path / "notices", tmp_path / "kills.py"
    script.write_text(
        f"""import json, os, sys
said = json.loads(sys.stdin.readline())
mark = {str(tmp_path)!r} + "/" + said["notice"].replace("/", "_")
first = not os.path.exists(mark)
open(mark, "w").close()
if {when == "after"} or not first:
    with open({str(notices)!r}, "a") as file:
        print(0, json.dumps(said), file=file)
if first:
    os.kill(int(open({str(vigil.home.lock("daemon"))!r}).read()), {int(signal.SIGKILL)})
"""
    )
    vigil.config.write_text(
        f"[routes.script]\nexec = [{sys.executable!r}, {str(script)!r}]\nretry = 0.1\n"
        + ladder("route = 'script'", "route = 'script', after = '1s'", "route = 'script', after = '2s'")
    )
    vigil.run("a", "sleep", "1000")
    say(vigil, vigil.get("a")["launch"], ASKS)

    def told(count: int) -> bool:
        if not alive(vigil.daemon_pid):
            vigil.start()
        return len({said["notice"] for _, said in read_notices(notices)}) == count

    def settled(count: int) -> bool:
        (one,) = vigil.client.incidents(everything=True) if told(count) else [{"notices": []}]
        return [notice["state"] for notice in one["notices"]] == ["sent"] * count

    wait_for(lambda: settled(3), 60, "every step of the ladder", lambda: vigil.client.incidents(everything=True))
    say(vigil, vigil.get("a")["launch"], GOES_ON)
    wait_for(lambda: settled(4), 60, "the all-clear", lambda: vigil.client.incidents(everything=True))
    times = Counter(said["notice"] for _, said in read_notices(notices))
    assert set(times.values()) == ({1} if when == "before" else {2})
    assert [said["event"] for _, said in read_notices(notices)][-1] == "resolved"


def test_a_daemon_that_is_killed_between_an_incident_and_each_of_its_notices_sends_each_once(
    vigil: Instance, tmp_path: Path
) -> None:
    notices, steps = tmp_path / "notices", (3, 8, 13)
    configure(vigil, notices, ladder(*(f"route = 'script', after = '{after_s}s'" for after_s in steps)))
    incident = asking(vigil)
    opened_at = at(incident["opened_at"])
    killed_before = []
    for step, after_s in enumerate(steps):
        wait_for(lambda: len(fates(vigil)) >= step and set(fates(vigil)) <= {"sent"}, 20, "all of it to be on record")  # noqa: B023
        if time.time() > opened_at + after_s - 1:
            continue  # a busy machine took so long to end and to start the daemon that this one came without it
        vigil.kill_daemon()
        assert len(read_notices(notices)) == step
        killed_before.append(step)
        wait_for(lambda: time.time() > opened_at + after_s, 10, "the next step to be due")  # noqa: B023
        vigil.start()
        wait_for(lambda: len(read_notices(notices)) > step, 10, "it to be told at the start")  # noqa: B023
    wait_for(lambda: fates(vigil) == ["sent"] * 3, 20, "all of it to be on record")
    assert killed_before

    say(vigil, vigil.get("a")["launch"], GOES_ON)
    over = wait_for(lambda: (one := vigil.json("incidents", incident["id"]))["resolved_at"] and one, 10, "it to be over")
    vigil.kill_daemon()
    wait_for(lambda: time.time() > at(over["resolved_at"]) + SAME_S + 1, 30, "the all-clear to be due")
    vigil.start()
    wait_for(lambda: len(read_notices(notices)) == 4, 10, "the all-clear")
    assert heard(notices) == [(event, "needs-input") for event in ("opened", "reminder", "reminder", "resolved")]


def fates(vigil: Instance) -> list[str]:
    return [notice["state"] for one in vigil.client.incidents(everything=True) for notice in one["notices"]]


def test_a_route_that_fails_for_ever_is_tried_with_growing_pauses_and_then_told_of_by_the_other(
    vigil: Instance, tmp_path: Path
) -> None:
    tries = tmp_path / "tries"
    with web_receiver() as web:
        place = tmp_path / "hook.url"
        place.write_text(web.url)
        place.chmod(0o600)
        vigil.env["HOOK_SECRET"] = "s3cr3t-of-the-hook"
        script = f"date +%s.%N >>{tries}; echo no network >&2; exit 1"
        bad = f"[routes.bad]\nexec = ['sh', '-c', '{script}']\nretry = 0.3\nattempts = 4\n"
        rest = f"[routes.good]\nwebhook = 'file:{place}'\nsecret = 'env:HOOK_SECRET'\n" + ladder(
            "route = 'bad'", "route = 'good'"
        )
        vigil.config.write_text(bad + rest)
        vigil.ok("daemon", "start")
        incident = asking(vigil)

        undelivered = wait_for(lambda: find(vigil, "undelivered"), 30, "the route to be given up")
        wait_for(lambda: {one["kind"] for one in web.notices()} >= {"needs-input", "undelivered"}, 10, "both by the other")

        first, second = web.notices()[:2]
        assert (first["kind"], second["kind"], second["session"]) == ("needs-input", "undelivered", None)
        assert "no network" in undelivered["why"]
        moments = [float(line) for line in tries.read_text().split()]
        pauses = [later - earlier for earlier, later in pairwise(moments)]
        assert len(moments) == 4
        assert pauses[2] > pauses[0] and all(pause > least for pause, least in zip(pauses, (0.2, 0.4, 0.9), strict=True))
        for _, headers, body in web.got:
            signed = f"{headers['X-Vigil-Timestamp']}.".encode() + body
            signature = hmac.new(b"s3cr3t-of-the-hook", signed, hashlib.sha256).hexdigest()
            assert headers["X-Vigil-Signature"] == f"sha256={signature}"
        states = {notice["route"]: notice["state"] for notice in vigil.json("incidents", incident["id"])["notices"]}
        assert states == {"bad": "failed", "good": "sent"}
        doctor = vigil.run_cli("doctor")
        assert doctor.returncode != 0 and "route bad does not deliver" in doctor.stdout

        failed = vigil.run_cli("notify", "test", "bad")
        assert (failed.returncode, failed.stderr) == (1, "vigil: bad did not take the test: exit 1: no network\n")
        vigil.config.write_text("[routes.bad]\nexec = ['true']\n" + rest)
        assert "bad took the test" in vigil.ok("notify", "test", "bad")
        wait_for(lambda: find(vigil, "undelivered") is None, 10, "it to be over")
        assert vigil.run_cli("notify", "test", "nobody").returncode == 2

        shown = [vigil.ok("daemon", "status", "-o", "json"), vigil.ok("incidents", "--all", "-o", "json"), vigil.ok("events")]
        web.status = 401
        refused = vigil.run_cli("notify", "test", "good")
        log = (vigil.home.log / "daemon.log").read_text()
        for text in (*shown, refused.stderr, log, vigil.run_cli("doctor").stdout):
            assert "t0psecretpath" not in text and "s3cr3t-of-the-hook" not in text
        assert "HTTP 401" in refused.stderr


def test_what_a_route_gave_up_is_told_once_by_it_when_a_later_notice_gets_through(vigil: Instance) -> None:
    with web_receiver() as web:
        web.status = 503
        vigil.config.write_text(f"[routes.ops]\nwebhook = '{web.url}'\nretry = 0.3\nattempts = 2\n" + ladder("route = 'ops'"))
        vigil.ok("daemon", "start")
        names = [f"early-{number}" for number in range(6)]
        for name in names:
            say(vigil, vigil.run(name, "sleep", "1000")["launch"], ASKS)
        wait_for(lambda: fates(vigil).count("failed") == len(names), 30, "all of them to be given up", lambda: fates(vigil))
        say(vigil, vigil.get("early-5")["launch"], GOES_ON)
        wait_for(lambda: len(vigil.client.incidents()) == len(names), 10, "one of them to be over")
        before = len(web.notices())
        web.status = 200

        say(vigil, vigil.run("later", "sleep", "1000")["launch"], ASKS)

        wait_for(lambda: len(web.notices()) - before >= 2, 20, "the later one, and what was given up", web.notices)
        later, digest = web.notices()[before:]
        assert (later["event"], later["session"]) == ("opened", "later")
        assert (digest["event"], digest["count"]) == ("summary", 5)
        wait_for(lambda: fates(vigil).count("sent") == 6, 10, "all to be on record", lambda: fates(vigil))
        assert find(vigil, "undelivered") is None


@pytest.mark.soak
def test_a_storm_is_one_summary_by_each_route(vigil: Instance, tmp_path: Path) -> None:
    count = 100 if os.environ.get("VIGIL_SOAK") else 12
    notices = tmp_path / "notices"
    with web_receiver() as web:
        configure(vigil, notices, f"[routes.web]\nwebhook = '{web.url}'\n" + ladder("route = 'script'", "route = 'web'"))
        launches = [vigil.run(f"s{n}", "sleep", "1000", runtime="headless")["launch"] for n in range(count)]
        for launch in launches:
            say(vigil, launch, ASKS)

        wait_for(lambda: read_notices(notices) and web.got, 20, "the summaries")
        wait_for(lambda: all(one["notices"] for one in vigil.client.incidents()), 10, "their records")

        for said in (read_notices(notices)[0][1], web.notices()[0]):
            assert (said["event"], said["count"], said["kinds"]) == ("summary", count, {"needs-input": count})
            assert len(said["notices"]) == count
        wait_for(lambda: states(vigil) == {"sent"}, 10, "every notice to be recorded as sent")
        assert (len(read_notices(notices)), len(web.got)) == (1, 1)


def states(vigil: Instance) -> set[str]:
    return {notice["state"] for one in vigil.client.incidents() for notice in one["notices"]}


def test_what_an_agent_said_last_is_among_the_details_before_its_death_record_is_made(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    configure(vigil, notices, "details = true\n[[ladder]]\nkind = 'saturated'\nsteps = [{ route = 'script' }]\n")
    script = "echo the-stderr-of-it $API_TOKEN >&2; exit 3"
    env = vigil.env | {"API_TOKEN": "tok-abcdef-123456"}
    vigil.run("a", "sh", "-c", script, runtime="headless", restart="always", max_restarts=1, backoff_base_s=0.1, env=env)

    wait_for(lambda: read_notices(notices), 20, "the notice")

    ((_, said),) = read_notices(notices)
    assert said["details"]["stderr"] == ["the-stderr-of-it [redacted]"]


def test_words_of_an_agent_leave_by_no_route_but_one_that_says_details(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    script = tmp_path / "plain.sh"
    script.write_text(f'#!/bin/sh\nread -r line\nprintf "0 %s\\n" "$line" >>{tmp_path}/plain\n')
    script.chmod(0o755)
    configure(
        vigil, notices, f"details = true\n[routes.plain]\nexec = ['{script}']\n" + ladder("route = 'script'", "route = 'plain'")
    )
    session = vigil.run("a", "sh", "-c", "echo the-screen-of-it; sleep 1000")
    screen = vigil.home.launch(session["launch"]) / "screen"
    wait_for(lambda: screen.exists() and b"the-screen-of-it" in screen.read_bytes(), 30, "its screen to be kept")
    say(vigil, session["launch"], ASKS)

    wait_for(lambda: read_notices(notices) and read_notices(tmp_path / "plain"), 20, "both notices")

    ((_, detailed),), ((_, plain),) = read_notices(notices), read_notices(tmp_path / "plain")
    assert "the-screen-of-it" in detailed["details"]["screen"]
    assert detailed["details"]["evidence"]
    assert "details" not in plain and plain["why"] == "it waits for a human"
    assert "the-screen-of-it" not in json.dumps(plain)


def test_a_command_reacts_within_its_budget_and_then_somebody_is_called(vigil: Instance, tmp_path: Path) -> None:
    notices, ran = tmp_path / "notices", tmp_path / "ran"
    reaction = (
        f"[[reaction]]\nkind = 'needs-input'\ndo = 'run'\nbudget = 2\nevery = '1s'\ncommand = ['sh', '-c', 'cat >>{ran}']\n"
    )
    urgent = "[[ladder]]\nseverity = 'urgent'\nsteps = [{ route = 'script' }]\n"
    configure(vigil, notices, urgent + reaction)
    incident = asking(vigil)

    wait_for(lambda: read_notices(notices), 20, "somebody to be called")

    assert heard(notices) == [("escalated", "needs-input")]
    reactions = [json.loads(line) for line in ran.read_text().splitlines()]
    assert [(one["event"], one["id"]) for one in reactions] == [("reaction", incident["id"])] * 2
    found = vigil.json("incidents", incident["id"])
    assert [(one["do"], one["outcome"]) for one in found["reactions"]] == [("run", "done")] * 2
    assert found["severity"] == "urgent" and found["escalated_at"] is not None
    page = vigil.ok("incidents", incident["id"])
    assert "reaction 2, run: done" in page and "escalated: 2 reactions did not end it" in page


def test_a_crash_loop_is_restarted_by_reaction_and_given_up_after_its_budget(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    reaction = "[[reaction]]\nkind = 'saturated'\ndo = 'restart'\nbudget = 2\nevery = '1s'\n"
    configure(vigil, notices, "[[ladder]]\nseverity = 'urgent'\nsteps = [{ route = 'script' }]\n" + reaction)
    vigil.run("a", "false", restart="always", max_restarts=1, backoff_base_s=0.1)

    wait_for(lambda: ("escalated", "saturated") in heard(notices), 30, "somebody to be called")

    incident = find(vigil, "saturated")
    assert incident is not None
    assert [one["outcome"] for one in vigil.json("incidents", incident["id"])["reactions"]] == ["done", "done"]
    assert len(vigil.deaths("a")) == 4
    assert vigil.get("a")["state"] == "failed"


def test_an_ack_of_what_is_over_or_never_was_is_refused_in_one_line(vigil: Instance) -> None:
    incident = asking(vigil)
    kill(vigil.get("a")["pid"], signal.SIGKILL)
    wait_for(lambda: not vigil.client.incidents(), 10, "it to be over")

    over, nobody = vigil.run_cli("ack", incident["id"]), vigil.run_cli("ack", "i-nobody")

    assert over.returncode == 4 and "is over already" in over.stderr
    assert nobody.returncode == 3 and "there is no incident i-nobody" in nobody.stderr
