"""Walls: a limit and a bad login hold a session, and neither is charged."""

from __future__ import annotations

import time

import pytest

from tests.live.instance import Json, wait_for
from tests.live.watching import at
from tests.real.clients import Client
from tests.real.stage import READY_S, Played, Stage

GIVES_UP_S = 100.0  # Pi tries for 21 s, the others at once or a few seconds


def death_of(played: Played) -> Json:
    return played.vigil.wait_death(played.name, within_s=GIVES_UP_S)


@pytest.mark.parametrize("client", ["claude", "codex", "pi"], indirect=True)  # the others try for minutes
@pytest.mark.parametrize("scenario", ["limit", "limit-retry-after"])
def test_a_limit_holds_for_an_hour_when_it_does_not_say_how_long(stage: Stage, client: Client, scenario: str) -> None:
    played = stage.run(client, scenario, "--restart", "on-failure", patient=False)

    death = death_of(played)
    session = played.session
    assert (death["cause"], death["charged"]) == ("limit", False)
    assert session["hold"]["reason"] == "limit"
    # Counted from when it said so: Pi tries on for 21 s after that.
    assert 3600 - GIVES_UP_S < at(session["hold"]["until"]) - at(death["at"]) <= 3601
    assert session["restarts"]["count"] == 0
    assert [incident["kind"] for incident in stage.vigil.client.incidents()] == ["limit"]


def test_a_limit_holds_until_the_moment_it_names(stage: Stage, claude: Client) -> None:
    before = time.time()
    played = stage.run(claude, "limit-resets", "--restart", "on-failure", patient=False)

    assert death_of(played)["cause"] == "limit"

    assert before + 1800 - 1 <= at(played.session["hold"]["until"]) <= time.time() + 1800


def test_a_bad_login_waits_for_a_person(stage: Stage, client: Client) -> None:
    played = stage.run(client, "bad-login", "--restart", "on-failure", patient=False)

    death = death_of(played)
    session = played.session
    assert (death["cause"], death["charged"]) == ("auth", False)
    assert session["hold"] == {"reason": "auth", "until": None}
    assert session["restarts"]["count"] == 0
    assert [incident["kind"] for incident in stage.vigil.client.incidents()] == ["auth"]


@pytest.mark.parametrize("scenario", ["overload", "failure", "unavailable", "reset", "reset-mid-stream"])
def test_what_is_no_wall_is_a_crash_and_charged_once(stage: Stage, claude: Client, scenario: str) -> None:
    played = stage.run(claude, scenario, "--restart", "on-failure", "--backoff-base", "600", patient=False)

    death = death_of(played)
    session = played.session
    assert (death["cause"], death["charged"], death["exit_code"]) == ("crash", True, 1)
    assert (session["hold"]["reason"], session["restarts"]["count"]) == ("backoff", 1)


def test_what_a_person_tells_a_client_by_its_own_variables_reaches_it(stage: Stage, claude: Client) -> None:
    played = stage.run(claude, "limit", "--restart", "on-failure", "--env", "CLAUDE_CODE_MAX_RETRIES=0")

    assert stage.vigil.wait_death(played.name, within_s=10)["cause"] == "limit"
    assert len(played.asked) == 1


def test_who_tries_again_is_throttled_until_the_model_answers(stage: Stage, claude: Client) -> None:
    played = stage.run(claude, "unavailable")

    wait_for(lambda: _activity(played) == "throttled", READY_S, "it to say that it tries again", lambda: played.session)
    assert stage.vigil.client.why(played.name)["verdict"] == "throttled"

    back = stage.run(claude, "unavailable-twice")
    wait_for(lambda: _activity(back) == "throttled", READY_S, "it to say that it tries again", lambda: back.session)
    wait_for(lambda: _activity(back) == "idle", READY_S, "its answer", lambda: back.session)


def _activity(played: Played) -> str:
    return str(played.session["axes"]["activity"]["value"])
