"""Reactions to real agents: typed into a real terminal and ended for real, within a budget; then somebody is called."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.live.instance import Instance, Json, alive, kill, wait_for
from tests.live.silent_agents import ABOUT, FOREVER, PROMPT, hook, step
from tests.live.test_hooks import say
from tests.live.watching import configure, read_notices

AGENT = [sys.executable, "-m", "vigil.fake_agent"]
GO_ON = "Say what you wait for, then go on."
WATCHDOG = "[watchdog]\nstall_after = 1\nstall_repeat_seconds = 2\nliveness_timeout = 600\n"
URGENT = "[[ladder]]\nseverity = 'urgent'\nsteps = [{ route = 'script' }]\n[[ladder]]\nseverity = 'action'\nsteps = []\n"
COMPOSER = "─" * 20 + "\\n❯ "
STOP = hook("Stop")
DIALOG = step('print = """Do you want to proceed?\n❯ 1. Yes\n  2. No\nEsc to cancel"""')

# It says that it works and hangs; a prompt brings it back, it rests, and then it is the same again.
LOOPS = (
    'repeat = "forever"\n'
    + PROMPT
    + step(f'ask = {{ prompt = "{COMPOSER}" }}')
    + step('append = { path = "${cwd}/prompts", text = "${answer}" }')
    + PROMPT
    + step("wait = 0.5")
    + STOP
    + step("wait = 0.5")
)
COMPOSES = step(f'print = "{COMPOSER}"')
SCENES = {
    "loops": LOOPS,
    "asks": COMPOSES + PROMPT + DIALOG + FOREVER,
    "rests": COMPOSES + PROMPT + STOP + FOREVER,
    "works": 'repeat = "forever"\n' + COMPOSES + PROMPT + step("wait = 0.3"),
    "dies": COMPOSES + PROMPT + FOREVER,
}


def reaction(kind: str, do: str, rest: str = "", budget: int = 2) -> str:
    return f"[[reaction]]\nkind = '{kind}'\ndo = '{do}'\nbudget = {budget}\nevery = '1s'\n{rest}\n"


def play(vigil: Instance, folder: Path, name: str, script: str, **options: object) -> Json:
    work = folder / name
    work.mkdir()
    (work / "scene.toml").write_text(ABOUT + script, "utf-8")
    env = vigil.env | {"PYTHONIOENCODING": "utf-8", "LC_ALL": "C.UTF-8"}
    return vigil.run(name, *AGENT, str(work / "scene.toml"), agent="claude", cwd=str(work), env=env, **options)


def of(vigil: Instance, name: str, kind: str) -> Json | None:
    """Return the newest incident of a session, of this kind."""
    found = [one for one in vigil.client.incidents(everything=True) if (one["session"], one["kind"]) == (name, kind)]
    return vigil.json("incidents", found[0]["id"]) if found else None


def test_prompt_active_idle_prompt_ends_at_its_budget_and_nobody_else_is_disturbed(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    configure(vigil, notices, WATCHDOG + URGENT + reaction("stalled", "prompt", f"text = '{GO_ON}'\nafter = '2s'"))
    for name, script in SCENES.items():
        play(vigil, tmp_path, name, script)
    wait_for(lambda: of(vigil, "dies", "stalled"), 30, "it to be told as stalled")
    kill(vigil.get("dies")["pid"], 9)

    wait_for(lambda: any(said["session"] == "loops" for _, said in read_notices(notices)), 60, "somebody to be called")
    wait_for(lambda: (one := of(vigil, "asks", "stalled")) and one["escalated_at"], 60, "the dialog to be told of too")

    told = [(said["event"], said["kind"]) for _, said in read_notices(notices) if said["session"] == "loops"]
    assert told == [("escalated", "stalled")]
    assert (tmp_path / "loops" / "prompts").read_text().splitlines() == [GO_ON, GO_ON]
    every = [one for one in vigil.client.incidents(everything=True) if (one["session"], one["kind"]) == ("loops", "stalled")]
    done = [one for incident in every for one in vigil.json("incidents", incident["id"])["reactions"]]
    assert [(one["do"], one["outcome"]) for one in done] == [("prompt", "done")] * 2

    dialog = of(vigil, "asks", "stalled")
    assert dialog is not None
    assert {(one["outcome"], one["why"]) for one in dialog["reactions"]} == {
        ("refused", "it shows a dialog (permission): a person has to answer it")
    }
    for name in ("rests", "works"):
        assert (of(vigil, name, "stalled"), vigil.get(name)["health"]) == (None, "ok"), name
    dead = of(vigil, "dies", "stalled")
    assert dead is not None and (dead["reactions"], dead["resolved_at"] is None) == ([], False)
    for name in SCENES:
        assert name == "loops" or GO_ON not in vigil.ok("logs", name), name


def test_who_waits_for_an_answer_is_put_to_sleep_by_reaction_and_not_again_and_again(vigil: Instance, tmp_path: Path) -> None:
    notices = tmp_path / "notices"
    configure(vigil, notices, URGENT + reaction("needs-input", "hibernate", budget=1))
    session = vigil.run("a", "sleep", "1000", restart="always")
    say(vigil, session["launch"], {"hook_event_name": "PermissionRequest"})

    asleep = vigil.wait_state("a", "parked")

    incident = of(vigil, "a", "needs-input")
    assert incident is not None
    assert [(one["do"], one["outcome"]) for one in incident["reactions"]] == [("hibernate", "done")]
    assert (incident["resolution"], asleep["restarts"]["count"], alive(session["pid"])) == ("a is parked", 0, False)
    death = vigil.wait_death("a")
    assert (death["cause"], death["charged"], death["intent"]["verb"]) == ("policy", False, "hibernate")

    vigil.ok("wake", "a")
    say(vigil, vigil.wait_state("a", "running")["launch"], {"hook_event_name": "PermissionRequest"})
    wait_for(lambda: read_notices(notices), 30, "somebody to be called: the budget is that of the condition")
    assert [(said["event"], said["kind"]) for _, said in read_notices(notices)] == [("escalated", "needs-input")]
    assert vigil.get("a")["state"] == "running"
    assert len(vigil.deaths("a")) == 1
