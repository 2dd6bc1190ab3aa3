"""Notices reach people by routes that cannot hold each other up, and each is told what became of it (P6, P12)."""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from vigil.core.model.incident import Incident, IncidentKind, NoticeEvent, Severity
from vigil.core.rules.escalation import Due
from vigil.core.rules.storm import STORM
from vigil.notify import Delivery, ExecRoute, Route, Workers, message_of, summary_of
from vigil.notify.message import PLAIN, SHOWN
from vigil.notify.workers import QUEUE_NOTICES

PATIENT_S = 30.0  # nothing here needs as long


def make_incident(**changes: Any) -> Incident:
    given: dict[str, Any] = {
        "id": "i1",
        "key": "s1:stuck",
        "kind": IncidentKind.STUCK,
        "severity": Severity.URGENT,
        "session_id": "s1",
        "session": "backend/coder/0",
        "opened_at": 1_700_000_000.1234,
        "why": "its server does not answer",
    }
    return Incident(**given | changes)


def make_due(number: int = 1, route: str = "ops", event: str = "opened", incident: Incident | None = None) -> Due:
    return Due(f"i1:{route}:{number}", route, NoticeEvent(event), incident or make_incident())


class Prompt:
    """A route that delivers at once, and remembers."""

    def __init__(self) -> None:
        self.delivered: list[str] = []

    def deliver(self, body: bytes, _took: Collection[str] = ()) -> Delivery:
        self.delivered.append(json.loads(body)["notice"])
        return Delivery(True)


class Hanging(Prompt):
    """A route that hangs until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.let_go = threading.Event()

    def deliver(self, body: bytes, took: Collection[str] = ()) -> Delivery:
        self.begun.set()
        assert self.let_go.wait(PATIENT_S)
        return super().deliver(body, took)


class Raising:
    """A route with a fault."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def deliver(self, body: bytes, _took: Collection[str] = ()) -> Delivery:
        assert body
        raise self._error


class Office:
    """Workers, and what they told."""

    def __init__(self) -> None:
        self._told: queue.Queue[tuple[Due, Delivery, str]] = queue.Queue()
        self.workers = Workers(self._note)

    def _note(self, due: Due, delivery: Delivery) -> None:
        self._told.put((due, delivery, threading.current_thread().name))

    def next_told(self) -> tuple[Due, Delivery]:
        """Return what is told next."""
        due, delivery, _ = self._told.get(timeout=PATIENT_S)
        return due, delivery

    def next_teller(self) -> str:
        return self._told.get(timeout=PATIENT_S)[2]

    def nothing_more(self) -> bool:
        return self._told.empty()


@pytest.fixture
def office() -> Iterator[Office]:
    office = Office()
    yield office
    office.workers.close(PATIENT_S)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    route = Hanging()
    yield route
    route.let_go.set()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENT_S
    while not condition():
        assert time.monotonic() < until, "it did not come true"
        time.sleep(0.01)


# What a notice says


def test_a_notice_is_the_incident_as_the_interface_writes_it() -> None:
    assert json.loads(message_of(make_due())) == {
        "notice": "i1:ops:1",
        "event": "opened",
        "route": "ops",
        "id": "i1",
        "key": "s1:stuck",
        "kind": "stuck",
        "severity": "urgent",
        "session": "backend/coder/0",
        "opened_at": "2023-11-14T22:13:20.123Z",
        "count": 1,
        "acked_at": None,
        "resolved_at": None,
        "why": "its server does not answer",
        "resolution": "",
        "deaths": [],
    }


def test_a_resolved_incident_says_since_when() -> None:
    incident = make_incident(count=3, acked_at=1_700_000_060.0, resolved_at=1_700_000_061.5)

    said = json.loads(message_of(make_due(event="resolved", incident=incident)))

    assert said["event"] == "resolved"
    assert (said["count"], said["acked_at"], said["resolved_at"]) == (3, "2023-11-14T22:14:20.000Z", "2023-11-14T22:14:21.500Z")


def test_an_incident_of_the_host_has_no_session() -> None:
    assert json.loads(message_of(make_due(incident=make_incident(session_id=None, session=None))))["session"] is None


@pytest.mark.parametrize("why", ['"quotes"', "two\nlines", "é \u2028 \U0001f525", "\udc80 no text", "\x1b[31mred"])
def test_whatever_an_incident_says_its_notice_is_one_line(why: str) -> None:
    body = message_of(make_due(incident=make_incident(why=why)))

    assert b"\n" not in body
    assert json.loads(body)["why"] == why


@pytest.mark.parametrize("kind", sorted(PLAIN))
def test_words_of_an_agent_leave_the_host_only_with_details(kind: IncidentKind) -> None:
    due = make_due(incident=make_incident(kind=kind, why="may I run rm -rf build?"))

    assert "rm -rf" not in message_of(due).decode()
    assert "rm -rf" not in summary_of([due, due]).decode()
    assert json.loads(message_of(due, {"screen": ["> ok?"]}))["details"] == {"screen": ["> ok?"]}
    assert json.loads(message_of(due, {}))["why"] == "may I run rm -rf build?"


@pytest.mark.parametrize(("code", "permanent"), [(64, True), (77, True), (127, True), (1, False), (75, False), (126, False)])
def test_a_command_says_by_its_exit_code_whether_trying_again_is_of_use(code: int, permanent: bool) -> None:
    assert shell(f"exit {code}").deliver(b"{}").permanent is permanent


# A command as a route


def shell(script: str, *words: str, deadline_s: float = PATIENT_S) -> ExecRoute:
    return ExecRoute(["sh", "-c", script, "sh", *words], deadline_s)


def test_a_command_gets_the_notice_as_one_line_of_its_input(tmp_path: Path) -> None:
    assert shell('cat >"$1"', str(tmp_path / "got")).deliver(b'{"a": 1}') == Delivery(True)

    assert (tmp_path / "got").read_bytes() == b'{"a": 1}\n'


def test_a_command_has_its_users_plain_environment_and_nothing_of_the_daemons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VIGIL_CONFIG", "LD_PRELOAD_X", "AWS_SECRET_ACCESS_KEY", "HOME", "PATH_X", "PYTHONPATH"):
        monkeypatch.setenv(name, "/of/the/starter")
    monkeypatch.setenv("VIGIL_HOME", "/of/this/instance")

    assert shell('env >"$1"', str(tmp_path / "got")).deliver(b"{}").ok

    got = dict(line.split("=", 1) for line in (tmp_path / "got").read_text().splitlines())
    assert "/of/the/starter" not in got.values()
    assert got["VIGIL_HOME"] == "/of/this/instance"
    plain = {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "XDG_RUNTIME_DIR", "VIGIL_HOME"}
    assert got.keys() <= {*plain, "VIGIL_PROBE", "PWD", "SHLVL", "_"}


def test_a_command_that_reads_nothing_and_succeeds_has_delivered() -> None:
    assert shell("exit 0").deliver(b"x" * (1 << 20)) == Delivery(True)


def test_what_a_command_prints_is_no_failure() -> None:
    assert shell("echo sent; echo and a warning >&2").deliver(b"{}") == Delivery(True)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 3", "exit 3"),
        ("echo first >&2; echo no such channel >&2; exit 1", "exit 1: no such channel"),
        ("printf 'refused\\n\\n  \\n' >&2; exit 1", "exit 1: refused"),
        ("printf '\\033[31mred\\033[0m\\a\\tend\\r\\n' >&2; exit 1", "exit 1: red end"),
        ("printf '\\377\\n' >&2; exit 1", "exit 1: \ufffd"),
        ("kill -TERM $$", "ended by SIGTERM"),
        ("kill -40 $$", "ended by signal 40"),
    ],
)
def test_a_command_that_failed_says_why(script: str, why: str) -> None:
    assert shell(script).deliver(b"{}") == Delivery(False, why)


def test_why_is_at_most_two_hundred_characters() -> None:
    delivery = shell("head -c 5000 /dev/zero | tr '\\0' x >&2; exit 1").deliver(b"{}")

    assert delivery == Delivery(False, "exit 1: " + "x" * 192)


def test_a_command_that_hangs_is_given_up_at_its_deadline() -> None:
    delivery = shell("trap '' TERM; echo dialling >&2; while :; do sleep 0.05; done", deadline_s=3.0).deliver(b"{}")

    assert delivery == Delivery(False, "no answer in 3 s: dialling", unsure=True)


def test_a_command_that_is_missing_is_a_failed_delivery() -> None:
    delivery = ExecRoute(["/nowhere/on-incident"]).deliver(b"{}")

    assert not delivery.ok
    assert delivery.why.startswith("exit 127: ")
    assert "/nowhere/on-incident" in delivery.why


# Workers


def test_a_notice_is_delivered_by_its_route_and_told_from_the_routes_thread(office: Office) -> None:
    ops, script = Prompt(), Prompt()
    office.workers.use({"ops": ops, "script": script})

    office.workers.hand(make_due(1, "script"))

    assert office.next_teller() == "route script"
    assert (ops.delivered, script.delivered) == ([], ["i1:script:1"])


def test_notices_of_one_route_keep_their_order(office: Office) -> None:
    ops = Prompt()
    office.workers.use({"ops": ops})
    handed = [make_due(number) for number in range(STORM - 1)]

    for due in handed:
        office.workers.hand(due)

    assert [office.next_told() for _ in handed] == [(due, Delivery(True)) for due in handed]
    assert ops.delivered == [due.notice_id for due in handed]


def test_a_storm_is_one_summary_to_each_route_and_each_notice_has_its_fate(office: Office) -> None:
    ops, mail = Prompt(), Prompt()
    office.workers.use({"ops": ops, "mail": mail})
    handed = [make_due(number, route) for number in range(100) for route in ("ops", "mail")]

    for due in handed:
        office.workers.hand(due)

    told = [office.next_told() for _ in handed]
    assert {due.notice_id for due, _ in told} == {due.notice_id for due in handed}
    assert all(delivery.ok for _, delivery in told)
    assert [len(route.delivered) for route in (ops, mail)] == [1, 1]


def test_a_summary_says_how_many_of_what_and_is_the_same_when_it_is_made_again() -> None:
    stuck = [make_due(number) for number in range(98)]
    over = [
        Due(f"i2/{n}", "ops", NoticeEvent.RESOLVED, make_incident(id=f"i2{n}", kind=IncidentKind.NEEDS_INPUT)) for n in range(2)
    ]

    said = json.loads(summary_of([*stuck, *over]))

    assert (said["event"], said["count"], said["severity"]) == ("summary", 100, "urgent")
    assert said["kinds"] == {"stuck": 98, "over: needs-input": 2}
    assert said["notices"] == [due.notice_id for due in (*stuck, *over)]
    assert len(said["incidents"]) == SHOWN
    assert json.loads(summary_of([*over, *stuck]))["notice"] == said["notice"]


def test_what_is_no_longer_wanted_when_its_turn_comes_is_not_delivered(hanging: Hanging) -> None:
    told: queue.Queue[str] = queue.Queue()
    wanted = lambda dues: ([due for due in dues if "2" not in due.notice_id], message_of(dues[0]))  # noqa: E731
    workers = Workers(lambda due, _: told.put(due.notice_id), wanted)
    workers.use({"ops": hanging})
    for number in (0, 2, 3):
        workers.hand(make_due(number))
    hanging.let_go.set()

    assert [told.get(timeout=PATIENT_S) for _ in range(2)] == ["i1:ops:0", "i1:ops:3"]
    workers.close(PATIENT_S)
    assert told.empty()


def test_a_real_command_is_a_route_like_any(office: Office, tmp_path: Path) -> None:
    office.workers.use({"script": shell('cat >"$1"', str(tmp_path / "got")), "broken": shell("exit 5")})

    office.workers.hand(make_due(1, "script"))
    assert office.next_told() == (make_due(1, "script"), Delivery(True))
    office.workers.hand(make_due(1, "broken"))
    assert office.next_told() == (make_due(1, "broken"), Delivery(False, "exit 5"))

    assert json.loads((tmp_path / "got").read_text())["notice"] == "i1:script:1"


def test_a_route_that_nobody_knows_has_failed_before_hand_returns(office: Office) -> None:
    office.workers.hand(make_due(1, "nowhere"))

    assert not office.nothing_more()
    assert office.next_told() == (make_due(1, "nowhere"), Delivery(False, "there is no route nowhere", permanent=True))


def test_a_hanging_route_holds_up_neither_another_nor_the_caller(office: Office, hanging: Hanging) -> None:
    office.workers.use({"dead": hanging, "ops": Prompt()})
    for number in range(3):
        office.workers.hand(make_due(number, "dead"))
    assert hanging.begun.wait(PATIENT_S)

    office.workers.hand(make_due(1, "ops"))

    assert office.next_told() == (make_due(1, "ops"), Delivery(True))
    hanging.let_go.set()
    assert [office.next_told()[0].notice_id for _ in range(3)] == ["i1:dead:0", "i1:dead:1", "i1:dead:2"]


@pytest.mark.parametrize(
    ("error", "why"),
    [(ValueError("no\nsuch \x1b[1mhost"), "ValueError: no such host"), (SystemExit(3), "SystemExit: 3")],
)
def test_a_route_that_raises_has_failed_and_goes_on(office: Office, error: BaseException, why: str) -> None:
    office.workers.use({"ops": Raising(error)})

    for number in range(2):
        office.workers.hand(make_due(number))

    assert [office.next_told() for _ in range(2)] == [(make_due(number), Delivery(False, why)) for number in range(2)]


def test_a_full_queue_takes_no_more_and_says_so(office: Office, hanging: Hanging) -> None:
    office.workers.use({"ops": hanging})
    office.workers.hand(make_due(0))
    assert hanging.begun.wait(PATIENT_S)  # that one no longer waits
    for number in range(QUEUE_NOTICES):
        office.workers.hand(make_due(number))
    assert office.nothing_more()

    office.workers.hand(make_due(99_999))

    assert office.next_told() == (make_due(99_999), Delivery(False, "10000 notices wait for ops already"))


def test_a_listener_that_raises_stops_no_route() -> None:
    heard = threading.Event()

    def told(due: Due, _: Delivery) -> None:
        if due.notice_id.endswith(":2"):
            heard.set()
        raise RuntimeError("the loop is closed")

    workers = Workers(told)
    workers.use({"ops": Prompt()})
    workers.hand(make_due(1, "nowhere"))
    workers.hand(make_due(1))
    workers.hand(make_due(2))

    assert heard.wait(PATIENT_S)
    workers.close(PATIENT_S)


# Routes that change


def test_a_route_that_was_added_is_used(office: Office) -> None:
    office.workers.use({})
    office.workers.use({"ops": Prompt()})

    office.workers.hand(make_due())

    assert office.next_told() == (make_due(), Delivery(True))


def test_what_waits_for_a_route_that_was_replaced_goes_to_its_successor(office: Office, hanging: Hanging) -> None:
    successor = Prompt()
    office.workers.use({"ops": hanging})
    for number in range(3):
        office.workers.hand(make_due(number))
    assert hanging.begun.wait(PATIENT_S)

    office.workers.use({"ops": successor})

    assert [office.next_told()[0] for _ in range(2)] == [make_due(1), make_due(2)]
    assert successor.delivered == ["i1:ops:1", "i1:ops:2"]
    hanging.let_go.set()
    assert office.next_told() == (make_due(0), Delivery(True))
    assert hanging.delivered == ["i1:ops:0"]


def test_what_waits_for_a_route_that_was_removed_has_failed(office: Office, hanging: Hanging) -> None:
    office.workers.use({"ops": hanging})
    for number in range(2):
        office.workers.hand(make_due(number))
    assert hanging.begun.wait(PATIENT_S)

    office.workers.use({})

    assert office.next_told() == (make_due(1), Delivery(False, "there is no route ops", permanent=True))


def test_a_route_that_is_the_same_keeps_its_worker(office: Office) -> None:
    def routes() -> dict[str, Route]:
        return {"ops": ExecRoute([sys.executable, "-c", ""])}

    office.workers.use(routes())
    office.workers.hand(make_due(1))
    office.next_told()
    before = [thread for thread in threading.enumerate() if thread.name == "route ops"]

    office.workers.use(routes())
    office.workers.hand(make_due(2))
    office.next_told()

    assert [thread for thread in threading.enumerate() if thread.name == "route ops"] == before


# The end


def test_closing_works_off_what_waits(office: Office) -> None:
    ops = Prompt()
    office.workers.use({"ops": ops})
    for number in range(50):
        office.workers.hand(make_due(number))

    office.workers.close(PATIENT_S)

    assert {office.next_told()[0].notice_id for _ in range(50)} == {make_due(number).notice_id for number in range(50)}
    assert len(ops.delivered) == 1
    assert not any(thread.name == "route ops" for thread in threading.enumerate())


def test_closing_waits_for_a_hanging_route_no_longer_than_told(office: Office, hanging: Hanging) -> None:
    office.workers.use({"ops": hanging})
    for number in range(3):
        office.workers.hand(make_due(number))
    assert hanging.begun.wait(PATIENT_S)
    began = time.monotonic()

    office.workers.close(0.1)

    assert time.monotonic() - began < PATIENT_S / 2
    hanging.let_go.set()
    wait_for(lambda: not any(thread.name == "route ops" for thread in threading.enumerate()))
    assert hanging.delivered == ["i1:ops:0"]  # what was in hand; the others are still due


def test_what_is_handed_over_after_the_end_is_neither_delivered_nor_told(office: Office) -> None:
    ops = Prompt()
    office.workers.use({"ops": ops})
    office.workers.close(PATIENT_S)

    office.workers.hand(make_due(1))
    office.workers.hand(make_due(1, "nowhere"))

    assert ops.delivered == []
    assert office.nothing_more()


def test_a_route_that_is_configured_delivers_though_the_host_has_no_more_threads(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    route = Prompt()
    office.workers.use({"ops": route})
    monkeypatch.setattr(threading.Thread, "start", no_thread)

    office.workers.hand(make_due())

    wait_for(lambda: route.delivered == ["i1:ops:1"])


def no_thread(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
