"""A scenario is read strictly: every wrong value is one error with its place."""

import re
import signal
from pathlib import Path

import pytest

from vigil.fake_agent import player, script, stage
from vigil.fake_agent.acts import KINDS, Burn, ChildStep, Event, ExitStep, Handle, Print, Wait
from vigil.fake_agent.main import SCENARIOS, load, shipped
from vigil.fake_agent.script import parse
from vigil.fake_agent.values import FOREVER, LIVE_NAMES, ScriptError, show

REFERENCE = Path(__file__).parents[3] / "docs" / "fake-agent.md"


def parse_step(text: str, top: str = "", sets: dict[str, str] | None = None) -> script.ScriptStep:
    return parse(f'about = "a test"\n{top}\n[[step]]\n{text}', sets).steps[0]


def refusal(text: str, sets: dict[str, str] | None = None) -> str:
    with pytest.raises(ScriptError) as refused:
        parse(text, sets)
    return str(refused.value)


def step_refusal(text: str) -> str:
    return refusal(f'about = "a test"\n[[step]]\n{text}')


def test_every_kind_of_act_is_played() -> None:
    assert set(KINDS.values()) == set(player.ACTS)


def test_every_live_name_is_known_to_the_player() -> None:
    assert set(stage.LIVE) == LIVE_NAMES


def test_a_value_that_is_no_table_stands_for_the_first_field() -> None:
    assert parse_step('print = "hello"').act == Print(text="hello")
    assert parse_step("wait = 0.5").act == Wait(seconds=0.5)
    assert parse_step('child = ["sleep", "1"]').act == ChildStep(argv=("sleep", "1"))
    assert parse_step("exit = 3").act == ExitStep(code=3)


def test_a_table_names_its_fields() -> None:
    assert parse_step("burn = { seconds = 2, fraction = 0.25 }").act == Burn(seconds=2, fraction=0.25)
    assert parse_step('print = { hex = "ff 0a", stderr = true }').act == Print(hex=b"\xff\n", stderr=True)


def test_a_step_may_repeat_with_a_pause_in_between() -> None:
    step = parse_step('print = "x"\nrepeat = "forever"\nevery = 2')

    assert (step.repeat, step.every) == (FOREVER, 2)


def test_a_step_without_modifiers_is_played_once() -> None:
    step = parse_step("wait = 1")

    assert (step.repeat, step.every, step.path) == (1, 0, "step[0].wait")


def test_all_steps_may_be_repeated_together() -> None:
    assert parse('about = "a test"\nrepeat = "forever"\n[[step]]\nwait = 1').repeat == FOREVER
    assert parse('about = "a test"\nrepeat = "${n_times}"\n[vars]\nn_times = 3\n[[step]]\nwait = 1').repeat == 3


def test_a_signal_is_named_with_or_without_its_prefix() -> None:
    assert parse_step('handle = { signal = "TERM", exit = 143 }').act == Handle(signal.SIGTERM, exit=143)
    assert parse_step('exit = { signal = "sigsegv" }').act == ExitStep(signal=signal.SIGSEGV)


def test_a_var_is_filled_into_text_and_into_numbers() -> None:
    top = "[vars]\nseconds = 2"

    assert parse_step('print = "waiting ${seconds} s"', top).act == Print(text="waiting 2 s")
    assert parse_step('wait = "${seconds}"', top).act == Wait(seconds=2)


def test_set_replaces_a_var_and_keeps_its_kind() -> None:
    top = '[vars]\nms = 5\nname = "a"\nfailed = false'
    sets = {"ms": "7", "name": "8", "failed": "true"}

    step = parse_step('event = { ms = "${ms}", name = "${name}", failed = "${failed}" }', top, sets)

    assert step.act == Event({"ms": 7, "name": "8", "failed": True})


@pytest.mark.parametrize(("default", "value", "seconds"), [("2", "0.5", 0.5), ("2", "forever", FOREVER), ('"forever"', "3", 3)])
def test_a_duration_may_be_set_to_a_number_or_to_forever(default: str, value: str, seconds: float) -> None:
    step = parse_step('wait = "${seconds}"', f"[vars]\nseconds = {default}", {"seconds": value})

    assert step.act == Wait(seconds)


def test_live_names_are_left_for_the_player() -> None:
    step = parse_step('event = { at = "${now}", of = ["${session}/${launch}"] }')

    assert step.act == Event({"at": "${now}", "of": ["${session}/${launch}"]})


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ('prnt = "x"', "step[0].prnt: unknown; there are append, ask, burn"),
        ('print = { text = "x", colour = "red" }', "step[0].print.colour: unknown; there are hex, size, stderr, text"),
        ('print = "x"\nwait = 1', "step[0]: a step has one act, not 2"),
        ("repeat = 2", "step[0]: a step has one act, not 0"),
        ("print = { stderr = true }", "step[0].print: needs exactly one of hex, size, text"),
        ('print = { text = "x", size = 3 }', "step[0].print: needs exactly one of hex, size, text"),
        ("print = 5", "step[0].print: 5 is not text"),
        ('print = { hex = "xyz" }', 'step[0].print.hex: "xyz" is not pairs of hexadecimal digits'),
        ('print = { text = "x", stderr = "yes" }', 'step[0].print.stderr: "yes" is not true or false'),
        ("print = { size = 1.5 }", "step[0].print.size: 1.5 is not a whole number"),
        ('print = "${nobody}"', "step[0].print: ${nobody} is neither in [vars] nor one of answer, children"),
        ('event = { a = [{ b = "${nobody}" }] }', "step[0].event.a[0].b: ${nobody} is neither"),
        ("event = { at = 2026-01-01 }", "step[0].event.at: datetime.date(2026, 1, 1) has no place in JSON"),
        ('event = "x"', 'step[0].event: "x" is not a table'),
        ("wait = -1", 'step[0].wait: -1 is not a number from 0 up or "forever"'),
        ("wait = nan", 'step[0].wait: nan is not a number from 0 up or "forever"'),
        ("wait = inf", 'step[0].wait: inf is not a number from 0 up or "forever"'),
        ("wait = true", 'step[0].wait: true is not a number from 0 up or "forever"'),
        ('wait = "long"', 'step[0].wait: "long" is not a number from 0 up or "forever"'),
        ("burn = { fraction = 0.5 }", "step[0].burn.seconds: missing"),
        ("burn = { seconds = 1, fraction = 2 }", "step[0].burn.fraction: 2 is not a number from 0 to 1"),
        ('memory = "forever"', 'step[0].memory: "forever" is not a number from 0 up'),
        ("connect = 70000", "step[0].connect: 70000 is not a number from 1 to 65535"),
        ("connect = { every = 1 }", "step[0].connect.every: means nothing without send"),
        ("child = []", "step[0].child: [] is not a list with something in it"),
        ('child = ["sleep", 1]', "step[0].child[1]: 1 is not text"),
        ('child = { argv = ["a"], scenario = "works" }', "step[0].child: needs exactly one of argv, scenario"),
        ('child = { argv = ["a"], set = { a = 1 } }', "step[0].child.set: means nothing without scenario"),
        ('ignore = ["NOISE"]', 'step[0].ignore[0]: "NOISE" is not the name of a signal'),
        ('ignore = ["KILL"]', "step[0].ignore[0]: SIGKILL can be neither ignored nor handled"),
        ('handle = "STOP"', "step[0].handle: SIGSTOP can be neither ignored nor handled"),
        ("exit = 256", "step[0].exit: 256 is not a number from 0 to 255"),
        ("exit = {}", "step[0].exit: needs exactly one of code, signal"),
        ('ask = { prompt = "?", then = 3 }', "step[0].ask.then: means nothing without expect"),
        ('append = "a.jsonl"', "step[0].append.text: missing"),
        ('print = "x"\nevery = "often"', 'step[0].every: "often" is not a number from 0 up or "forever"'),
        ('print = "x"\nrepeat = 1.5', "step[0].repeat: 1.5 is not a whole number"),
    ],
)
def test_a_wrong_step_is_refused_with_its_place(step: str, error: str) -> None:
    assert step_refusal(step).startswith(error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("about = ", "not TOML: "),
        ("[[step]]\nwait = 1", "about: missing"),
        ('about = "two\\nlines"\n[[step]]\nwait = 1', "about: is not one line of text"),
        ('about = "a test"', "step: [] is not a list with something in it"),
        ('about = "a test"\nstep = [1]', "step[0]: 1 is not a table"),
        ('about = "a test"\nspeed = 2\n[[step]]\nwait = 1', "speed: unknown; there are about, repeat, step, vars"),
        ('about = "a test"\nvars = 1\n[[step]]\nwait = 1', "vars: 1 is not a table"),
        ('about = "a test"\n[vars]\nnow = 1\n[[step]]\nwait = 1', "vars.now: the name is taken by the player"),
        ('about = "a test"\n[vars]\na = []\n[[step]]\nwait = 1', "vars.a: [] is not text, a number, true or false"),
        ('about = "a test"\nrepeat = "often"\n[[step]]\nwait = 1', 'repeat: "often" is not a number from 0 up or "forever"'),
    ],
)
def test_a_wrong_scenario_is_refused_with_its_place(text: str, error: str) -> None:
    assert refusal(text).startswith(error)


def test_setting_a_var_that_the_scenario_does_not_have_is_refused() -> None:
    text = 'about = "a test"\n[vars]\nevery = 1\n[[step]]\nwait = 1'

    assert refusal(text, {"evry": "2"}) == "--set evry: the scenario has no such var; it has every"


def test_a_value_that_does_not_fit_where_its_var_is_used_is_refused_there() -> None:
    text = 'about = "a test"\n[vars]\ncode = 1\n[[step]]\nexit = "${code}"'

    assert refusal(text, {"code": "many"}) == 'step[0].exit: "many" is not a number from 0 to 255'


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_scenario_can_be_played(name: str) -> None:
    scenario = load(name, {})

    assert scenario.steps
    for step in scenario.steps:
        assert not isinstance(step.act, ChildStep) or step.act.scenario in (None, *shipped())


@pytest.mark.parametrize("name", shipped())
def test_every_var_of_a_shipped_scenario_is_used(name: str) -> None:
    text = Path(SCENARIOS, f"{name}.toml").read_text("utf-8")

    for var in load(name, {}).vars:
        assert f"${{{var}}}" in text, var


def test_the_reference_lists_every_shipped_scenario_with_its_vars() -> None:
    rows = dict(re.findall(r"^\| `([a-z-]+)` \|.*\| (.*) \|$", section("Shipped scenarios"), re.MULTILINE))

    assert rows == {
        name: ", ".join(f"`{var} = {show(value)}`" for var, value in load(name, {}).vars.items()) for name in shipped()
    }


def test_the_reference_lists_every_act_and_every_live_name() -> None:
    acts, names = section("Acts"), section("Names")

    assert set(re.findall(r"^\| `([a-z]+)` \|", acts, re.MULTILINE)) == set(KINDS)
    assert set(re.findall(r"^\| `\$\{([a-z]+)\}` \|", names, re.MULTILINE)) == LIVE_NAMES


def test_the_reference_s_example_can_be_played() -> None:
    example = re.search(r"```toml\n(.*?)```", REFERENCE.read_text("utf-8"), re.DOTALL)

    assert example is not None
    assert len(parse(example[1]).steps) > 3


def section(title: str) -> str:
    text = REFERENCE.read_text("utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
