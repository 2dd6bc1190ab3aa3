"""The door: every field of every event is either ours alone or cleaned, by the redactor of the session it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from tests.unit.builders import make_launch, make_session
from vigil.core import events
from vigil.core.machine import Machine
from vigil.core.model.death import Cause, Exit, Words
from vigil.core.model.evidence import Child, Evidence
from vigil.core.model.launch import ProcessId
from vigil.core.model.session import Session
from vigil.core.model.speech import Hook, Said, What
from vigil.daemon.base.door import CONVERSATION, OWN, WORD_CHARS, WORDS, Door
from vigil.daemon.base.environments import Environments
from vigil.daemon.base.secrets import Secrets
from vigil.home import Home, home_at
from vigil.redact import MARK

SECRET, OTHER = "Tr0ub4dor" + "-and-3", "swordfish" + "-77"
# Words of our own, ids and paths: no agent chooses them, or a replay needs them as they are.
OURS = {
    *(
        "Exit.observed_by",
        "Exit.status_source",
        "Exit.full_disk",
        "Oom.cgroup",
        "Launched.cgroup",
        "Sandbox.read",
        "Sandbox.write",
        "Orphaned.what",
        "Stepped.step",
        "Fact.source",
    ),
    *("Number.source", "Text.source", "Flag.source", "Heard.source", "Heard.read_to", "Child.state", "MessageSent.outcome"),
    *("Noted.kind", "Noted.session", "Notice.id", "Notice.route", "Notice.took", "Reached.route", "Configured.routes"),
    *(
        "Reaction.do",
        "Reaction.text",
        "Reaction.command",
        "Reaction.team",
        "ReapPolicy.pressure",
        "Guard.target",
        "Guard.clients",
    ),
    *("KeeperHeard.trouble", "Unordered.why"),  # of the line to the keeper
    *("Stray.socket", "Stray.pane", "Launched.pane", "Launched.names", "Launched.conversation", "Launched.account"),
    *("Declared.name", "Declared.account", "Spec.command", "Spec.cwd", "Spec.agent", "Asked.mode", "Applied.only"),
    *(
        "Applied.accounts",
        "ShiftAsked.roles",
        "ShiftAborted.roles",
        "Manifest.workspace",
        "RoleSpec.workspace",
        "RoleSpec.team",
    ),
    *("RoleSpec.name", "RoleSpec.after_crash", "ProcessId.boot", "Message.id", "Measured.rates", "Watchdogs.agents"),
    *("Asked.ticket", "MessageQueued.ticket", "Sighted.ticket", "StrayEnded.ticket"),
}
WHOSE = ("launch_id", "session_id", "incident_id", "message_id")


def classes_in(hint: Any) -> Iterator[Any]:
    parts = get_args(hint)
    for part in parts or (hint,):
        yield from classes_in(part) if parts else (part,)


def texts_of(kind: type, seen: set[Any]) -> Iterator[str]:
    """Yield every field below a class that holds text."""
    if not is_dataclass(kind) or kind in seen or kind in OWN:
        return
    seen.add(kind)
    hints = get_type_hints(kind)
    for field in fields(kind):
        for part in classes_in(hints[field.name]):
            if part is str:
                yield f"{kind.__name__}.{field.name}"
            else:
                yield from texts_of(part, seen)


def test_every_text_of_every_event_is_cleaned_or_known_to_be_ours() -> None:
    seen: set[Any] = set()
    found = {text for kind in get_args(events.Event) for text in texts_of(kind, seen)}
    cleaned = {f"{kind.__name__}.{name}" for kind, names in [*WORDS.items(), *CONVERSATION.items()] for name in names}
    keyed = {text for text in found if text.rpartition(".")[2] in WHOSE}

    assert found - cleaned - OURS - keyed == set()
    assert cleaned | OURS <= found, "each of them exists"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = home_at(tmp_path)
    for folder in (home.environments, home.launches):
        folder.mkdir(parents=True)
    return home


@pytest.fixture
def door(home: Home) -> Door:
    sessions = [make_session(id=name, name=name, launch=make_launch(name)) for name in ("s1", "s2")]
    machine, environments = Machine(sessions), Environments(home)
    environments.record("s1", {"MY_DB_PASSWORD": SECRET})
    environments.record("s2", {"API_TOKEN": OTHER})
    return Door(machine, Secrets(home, environments, machine.sessions.get))


def test_an_agents_words_leave_its_own_secrets_behind(door: Door) -> None:
    said = Said(What.ASKED, name=f"Bash {SECRET}", id=f"id-{SECRET}", text=f"use {SECRET}, not {OTHER}", conversation=SECRET)
    event = events.Hooked("s1-1", (Hook("s1-1", f"On{SECRET}", 1.0, (said,)),))

    (hook,) = door.clean(event).hooks

    assert hook.name == f"On{MARK}"
    (clean,) = hook.said
    assert (clean.name, clean.id, clean.conversation) == (f"Bash {MARK}", f"id-{MARK}", "")
    assert clean.text == f"use {MARK}, not {OTHER}", "what is secret to one session is a word to another"


def test_all_that_a_launch_leaves_is_clean(door: Door) -> None:
    child = Child(ProcessId(1, 2, "b"), name=SECRET, command=f"x {SECRET}")
    cleaned = [
        door.clean(events.Diagnosed("s1-1", Evidence(1.0, children=(child,)))),
        door.clean(events.LaunchFailed("s1-1", 1.0, f"no {SECRET}")),
        door.clean(events.Noted("x", (("why", SECRET), ("count", 3)), session_id="s1")),
        door.clean(events.Exited(Exit("s1-1", 1.0, "keeper", words=Words(Cause.AUTH, f"401 {SECRET}")))),
    ]

    assert SECRET not in repr(cleaned)
    assert repr(cleaned).count(MARK) == 5


def test_words_of_no_session_know_the_secrets_of_all_met_so_far(door: Door) -> None:
    door.clean(events.LaunchFailed("s1-1", 1.0, "x"))
    door.clean(events.LaunchFailed("s2-1", 1.0, "x"))

    assert door.clean(events.MemoryRead(1, f"{SECRET} {OTHER}")).why == f"{MARK} {MARK}"


def test_an_event_without_secrets_is_the_same_one(door: Door) -> None:
    event = events.Heard("s1-1", (Said(What.TOOL_STARTED, name="Bash", id="toolu_1", conversation="c-1"),), "stream")

    assert door.clean(event) is event


def test_a_long_word_is_cut_before_it_is_looked_at(door: Door) -> None:
    why = door.clean(events.LaunchFailed("s1-1", 1.0, "x-api-key: `" * 100_000)).why

    assert len(why) <= WORD_CHARS


def test_the_name_of_a_hook_that_was_cut_hides_the_beginning_of_a_secret(door: Door) -> None:
    name = ("x" * 70 + " " + SECRET)[:80]

    (hook,) = door.clean(events.Hooked("s1-1", (Hook("s1-1", name, 1.0),))).hooks

    assert hook.name == "x" * 70 + f" {MARK}"


def session_of(home: Home, **changes: Any) -> tuple[Session, Secrets]:
    session = make_session(id="s9", name="s9", launch=make_launch("s9"), **changes)
    return session, Secrets(home, Environments(home), {"s9": session}.get)


def test_a_new_daemon_knows_a_launchs_secrets_by_its_order(home: Home) -> None:
    home.launch("s9-1").mkdir()
    (home.launch("s9-1") / "launch.json").write_text(f'{{"env": {{"OLD_TOKEN": "{SECRET}", "n": 3}}}}')
    _, secrets = session_of(home)

    assert secrets.redactor("s9").text(f"x {SECRET}") == f"x {MARK}"


def test_what_a_session_had_before_stays_secret(home: Home) -> None:
    session, secrets = session_of(home)
    secrets.learn(session, {"A_TOKEN": SECRET})
    secrets.learn(session, {"A_TOKEN": OTHER})

    assert secrets.redactor("s9").text(f"{SECRET} {OTHER}") == f"{MARK} {MARK}"
    assert secrets.everything.text(f"{SECRET} {OTHER}") == f"{MARK} {MARK}"


@pytest.mark.parametrize("order", ["", "[]", '{"env": []}', '{"env": {"A_TOKEN": {}}}', "[" * 10_000])
def test_an_order_that_lies_hides_nothing_and_stops_nothing(home: Home, order: str) -> None:
    home.launch("s9-1").mkdir()
    (home.launch("s9-1") / "launch.json").write_text(order)
    _, secrets = session_of(home)

    assert secrets.redactor("s9").text("words") == "words"
