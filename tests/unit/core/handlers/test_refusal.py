"""Who is not woken, put to sleep or written to is told why in one plain sentence, with the way out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.unit.builders import make_death, make_launch, make_session
from vigil.core.book import Book
from vigil.core.effects import Answer
from vigil.core.events import MessageQueued
from vigil.core.handlers.conversation import REFUSALS, decide_wake
from vigil.core.handlers.operator import why_not_parked
from vigil.core.machine import Machine
from vigil.core.model.conversation import Kept, Message, Transcript
from vigil.core.model.death import Cause
from vigil.core.model.launch import Mode
from vigil.core.model.restart import After, Hold, HoldReason
from vigil.core.model.session import Session, State

NOW = 2000.0
ENDED = replace(make_launch(), ended_at=1500.0)
SLEPT = {"launch": ENDED, "last_death": make_death(cause=Cause.POLICY, launch_id=ENDED.id)}


def session_of(state: State, why: str, **changes: object) -> Session:
    return replace(make_session(state, id="s1", name="alpha", launch=ENDED), why=why, **changes)  # type: ignore[arg-type]


OPEN = session_of(State.RUNNING, "up", conversation="c-1", launch=make_launch("s2"))
IN_USE = replace(OPEN, id="s2", name="beta")
PARKED = session_of(State.PARKED, "put to sleep by operator", **SLEPT)
THERE = Transcript("c-1", Kept.THERE, 1000.0)
WAKES = (  # the session, what was asked, the cause, and the sentence
    (session_of(State.STOPPED, "stopped by alice"), None, "stopped", "it was stopped by alice; vigil start alpha starts it"),
    (
        session_of(State.STOPPED, "reaped: its working folder /w is gone"),
        None,
        "stopped",
        "it was reaped: its working folder /w is gone; vigil start alpha starts it",
    ),
    (
        session_of(State.STOPPED, "archived by alice; vigil start alpha brings it back", archived_at=1.0),
        None,
        "stopped",
        "it was archived by alice; vigil start alpha brings it back",
    ),
    (
        session_of(State.ENDING, "stop by alice", after=After.STOP),
        None,
        "stopped",
        "it is being ended (stop by alice); vigil start alpha starts it",
    ),
    (
        session_of(State.CRASHED, "crash: exit 3", hold=Hold(HoldReason.BACKOFF, NOW + 60)),
        None,
        "crash-loop",
        "it is in a crash-loop (crash: exit 3); vigil reset alpha ends the wait",
    ),
    (
        session_of(State.FAILED, "gave up after 5", hold=Hold(HoldReason.SATURATED, None)),
        None,
        "crash-loop",
        "it is in a crash-loop (gave up after 5); vigil reset alpha ends the wait",
    ),
    (
        session_of(State.PENDING, "usage limit", hold=Hold(HoldReason.LIMIT, NOW + 60)),
        None,
        "limit",
        "it waits for a limit to end (usage limit); vigil start alpha does not wait",
    ),
    (
        session_of(State.PENDING, "not logged in", hold=Hold(HoldReason.AUTH, None)),
        None,
        "auth",
        "it waits for a login (not logged in); log in, then vigil start alpha",
    ),
    (
        PARKED,
        Mode.RESUME,
        "nothing-to-resume",
        "it has no conversation that could be resumed; vigil wake --fresh alpha begins a new one",
    ),
    (
        replace(PARKED, conversation="c-1", quarantined=("c-1",)),
        Mode.RESUME,
        "quarantined",
        "conversation c-1 is quarantined: resumed, it did nothing, or stalled again; "
        "vigil wake --fresh alpha begins a new one, vigil reset alpha takes this one back",
    ),
    (
        replace(PARKED, conversation="c-1", transcript=THERE),
        Mode.RESUME,
        "in-use",
        "conversation c-1 is open in beta; vigil wake --fresh alpha begins a new one",
    ),
)


@pytest.mark.parametrize(("session", "asked", "cause", "sentence"), WAKES)
def test_why_a_session_is_not_woken_is_one_sentence(session: Session, asked: Mode | None, cause: str, sentence: str) -> None:
    wake = decide_wake(Book([session, IN_USE]), session, NOW, asked, by_wake=True)

    assert (wake.mode, wake.cause, wake.why) == (Mode.REFUSED, cause, sentence)
    assert wake.until == (session.hold.until if session.hold is not None else None)
    assert not re.search(r"\b(\w+)\W+(it is )?\1\b", wake.why), "it stutters"


def test_every_refusal_of_a_wake_is_in_the_table() -> None:
    assert {cause for _, _, cause, _ in WAKES} == set(REFUSALS)


PARKS = (
    (session_of(State.STOPPED, "stopped by alice"), "it is stopped, and nothing of it is awake"),
    (session_of(State.CRASHED, "crash: exit 3"), "it is crashed, and nothing of it is awake"),
    (session_of(State.ENDING, "stop by alice", after=After.STOP), "it is being ended (stop by alice)"),
)


@pytest.mark.parametrize(("session", "sentence"), PARKS)
def test_why_a_session_is_not_put_to_sleep_is_one_sentence(session: Session, sentence: str) -> None:
    assert why_not_parked(session) == sentence


SENDS = (
    (session_of(State.STOPPED, "stopped by alice"), "it was stopped by alice; vigil start alpha starts it"),
    (
        session_of(State.STOPPED, "archived by alice; vigil start alpha brings it back", archived_at=1.0),
        "it was archived by alice; vigil start alpha brings it back",
    ),
    (session_of(State.FAILED, "crash: exit 3"), "it is failed (crash: exit 3); vigil start alpha starts it"),
    (replace(PARKED, queue=(Message("m1", 1.0, "alice", 1),) * 100), "100 messages wait for it already"),
)


@pytest.mark.parametrize(("session", "sentence"), SENDS)
def test_why_a_message_is_refused_is_one_sentence(session: Session, sentence: str) -> None:
    effects = Machine([session]).handle(MessageQueued("s1", Message("m", NOW, "alice", 5), None, "t"), NOW)

    (answer,) = [effect.wake for effect in effects if isinstance(effect, Answer)]
    assert (answer.mode, answer.why) == (Mode.REFUSED, sentence)
