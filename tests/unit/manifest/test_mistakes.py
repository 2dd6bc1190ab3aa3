"""A manifest that is not valid is refused with every mistake at once, each with its place and line."""

from __future__ import annotations

import json

import pytest

from tests.unit.manifests import GENERIC, START, problems, read
from vigil.config.checking import MOST_PROBLEMS
from vigil.errors import UsageError
from vigil.manifest.reading import ManifestRefused, read_manifest

CONTRADICTS = 'contradicts restart = "never"'


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("restart = 'alwyas'", 'restart (line 7): "alwyas" is not always, on-failure or never'),
        ("runtime = 'zellij'", 'runtime (line 7): "zellij" is not tmux or headless'),
        ("after_crash = true", "after_crash (line 7): true is not fresh or resume"),
        ("restrt = 'always'", "restrt (line 7): unknown key; did you mean restart?"),
        ("\n\nreplicas = -1", "replicas (line 9): -1 is out of range: 0 to 1000"),
        ("replicas = 100000", "replicas (line 7): 100000 is out of range: 0 to 1000"),
        ("replicas = 1.0", "replicas (line 7): 1.0 is not a whole number"),
        ("replicas = true", "replicas (line 7): true is not a whole number"),
        ("max_restarts = -1", "max_restarts (line 7): -1 is out of range: 0 to 1000000, 0 for no limit"),
        ("autostart = 'yes'", 'autostart (line 7): "yes" is not true or false'),
        ("cwd = ''", "cwd (line 7): must not be empty"),
        ("cwd = 3", "cwd (line 7): 3 is not text in quotes"),
        ('cwd = "a\\u0000"', "cwd (line 7): a NUL character cannot be handed to a program"),
        ("cwd = '~nobody-of-this-name/x'", 'cwd (line 7): "~nobody-of-this-name/x" names a home folder that nobody knows'),
        ("idle_ttl = -1", "idle_ttl (line 7): -1 is out of range: 1 s to 30 days, or 0 for never"),
        ("idle_ttl = '-1s'", 'idle_ttl (line 7): "-1s" is out of range: 1 s to 30 days, or 0 for never'),
        ("retry_saturated = 0.5", "retry_saturated (line 7): 0.5 is out of range: 1 s to 24 h, or 0 to wait for a person"),
        ("backoff = { base = 0 }", "backoff.base (line 7): 0 is out of range: 0.01 s to 24 h"),
        ("backoff.bse = 1", "backoff.bse (line 7): unknown key; did you mean base?"),
        ("backoff = 5", "backoff (line 7): 5 is not a table"),
        ("health = { heartbeat_by = 'command' }", "health.heartbeat (line 7): is missing"),
        (
            "health = { heartbeat = '0', heartbeat_by = 'command' }",
            'health.heartbeat (line 7): "0" is out of range: 1 s to 24 h',
        ),
        (
            "health = { heartbeat = 9, heartbeat_by = 'command', failures = 0 }",
            "health.failures (line 7): 0 is out of range: 1 to 100",
        ),
        (
            "health = { heartbeat = 9, heartbeat_by = 'me' }",
            'health.heartbeat_by (line 7): "me" is not hooks or command',
        ),
        (
            "[team.role.health]\nheartbeat = 9\nheartbeat_by = 'command'\nfoo = 1",
            "health.foo (line 10): unknown key; there are: heartbeat, failures, grace, heartbeat_by",
        ),
        ("[team.role.watchdog]\n\ntool_timeout = '25h'", 'watchdog.tool_timeout (line 9): "25h" is out of range: 1 s to 24 h'),
        ("env = { 'A=B' = 'c' }", 'env."A=B" (line 7): is no name of a variable: it must not be empty nor hold = or NUL'),
        ('env = { A = "\\u0000" }', "env.A (line 7): a NUL character cannot be handed to a program"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_is_allowed(more: str, problem: str) -> None:
    assert problems(GENERIC + more) == [f"team[0].role[0].{problem}"]


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("", "command (line 4): is missing: generic has no default"),
        ("agent = 'bare'", "command (line 4): is missing: bare has no default"),
        ("command = []", "command (line 6): must begin with a program"),
        ("command = ['']", "command (line 6): must begin with a program"),
        ("command = 'x'", 'command (line 6): "x" is not an array'),
        ("command = [\n'x',\n1]", "command[1] (line 8): 1 is not text in quotes"),
        ("agent = 'cluade'", 'agent (line 6): "cluade" is no agent; did you mean claude?'),
        (
            "agent = ''",
            'agent (line 6): "" is no agent; there are: bare, claude, codex, gemini, generic, mine, opencode, pi, qwen',
        ),
        ("agent = 1", "agent (line 6): 1 is not text in quotes"),
        (
            "agent = 'mine'\nafter_crash = 'resume'",
            'after_crash (line 7): mine cannot resume a conversation: use "fresh"',
        ),
        (
            "agent = 'mine'\nhealth.heartbeat = 9",
            "health.heartbeat (line 7): nobody sends it: mine has no hooks; if it calls vigil heartbeat, add "
            'heartbeat_by = "command"',
        ),
        (
            "agent = 'mine'\nhealth = { heartbeat = 9, heartbeat_by = 'hooks' }",
            "health.heartbeat_by (line 7): mine has no hooks",
        ),
    ],
)
def test_what_an_agent_is_not_able_to_do_is_not_asked_of_it(more: str, problem: str) -> None:
    assert problems(START + more) == [f"team[0].role[0].{problem}"]


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("max_restarts = 5\nrestart = 'never'", [f"max_restarts (line 7): {CONTRADICTS}"]),
        ("restart = 'never'\nretry_saturated = 60", [f"retry_saturated (line 8): {CONTRADICTS}"]),
        (
            "retry_saturated = 60",
            ["retry_saturated (line 7): has no effect: without max_restarts the role is never given up"],
        ),
        ("backoff = { base = 9, cap = 8 }", ["backoff.cap (line 7): 8 s is shorter than base, which is 9 s"]),
        ("backoff = { base = '6m' }", ["backoff.base (line 7): 360 s is longer than cap, which is 300 s"]),
        ("backoff = { cap = 2 }", ["backoff.cap (line 7): 2 s is shorter than base, which is 5 s"]),
        ("backoff = { cap = '11m' }", ["backoff.cap (line 7): 660 s is longer than reset_after, which is 600 s"]),
        ("backoff.reset_after = 20", ["backoff.reset_after (line 7): 20 s is shorter than cap, which is 300 s"]),
        ("backoff = { cap = 'x', reset_after = 20 }", ["backoff.cap"]),
        (
            "watchdog = { stall_auto_kill = true }",
            [
                "watchdog.stall_auto_kill (line 7): needs liveness_timeout beside it: after how long replicas are ended is not "
                'left open; write { stall_auto_kill = true, liveness_timeout = "10m" }, or what fits',
            ],
        ),
    ],
)
def test_what_contradicts_something_else_is_told_where_it_stands(more: str, found: list[str]) -> None:
    told = problems(GENERIC + more)

    assert len(told) == len(found)
    for problem, expected in zip(told, found, strict=True):
        assert problem.startswith(f"team[0].role[0].{expected}")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["workspace (line 1): is missing", "team (line 1): is missing"]),
        ("workspace = 'w'\nteam = []", ["team (line 2): must not be empty"]),
        ("workspace = 'w'\nteam = {}", ["team (line 2): a table is not an array"]),
        ("workspace = 'w'\nteam = [1]", ["team[0] (line 2): 1 is not a table"]),
        ("workspace = 'w'\n\n[[team]]\nname = 't'", ["team[0].role (line 3): is missing"]),
        ("workspace = 'w'\n[[team]]\nname = 't'\nrole = []", ["team[0].role (line 4): must not be empty"]),
        (GENERIC.replace('name = "r"', ""), ["team[0].role[0].name (line 4): is missing"]),
        (GENERIC.replace('workspace = "w"', "\n"), ["workspace (line 1): is missing"]),
        (
            GENERIC.replace('workspace = "w"', "workspce = 'w'"),
            ["workspace (line 1): is missing", "workspce (line 1): unknown key"],
        ),
        (GENERIC + "[[teams]]", ["teams (line 7): unknown key; did you mean team?"]),
        (GENERIC + "[team.x]", ["team[0].x (line 7): unknown key; there are: name, role"]),
        (
            GENERIC + "[[team.role]]\ncommand = ['y']\nname = 'r'",
            ['team[0].role[1].name (line 9): "r" is the name of team[0].role[0] already'],
        ),
        (
            f"{GENERIC}[[team]]\nname = 't'\nrole = [{{ name = 'r', command = ['x'] }}]",
            ['team[1].name (line 8): "t" is the name of team[0] already'],
        ),
    ],
)
def test_a_form_that_is_wrong_is_told_with_the_line_of_what_lacks_it(text: str, found: list[str]) -> None:
    told = problems(text)

    assert len(told) == len(found)
    for problem, expected in zip(told, found, strict=True):
        assert problem.startswith(expected)


@pytest.mark.parametrize("key", ["w", "t", "r"])
@pytest.mark.parametrize("name", ["", "Shop", "a b", "-a", "a/b", "ä", "a\n", "a" * 65])
def test_every_part_of_a_name_is_like_a_part_of_an_identity(key: str, name: str) -> None:
    (problem,) = problems(GENERIC.replace(f'"{key}"', json.dumps(name)))

    assert "use lower-case letters, digits, - and _, starting with a letter or digit, at most 64" in problem
    assert "(line " in problem


TEN_MISTAKES = """\
workspace = "Shop"
[[team]]
name = "backend"
colour = "red"
[[team.role]]
name = "coder"
replicas = -1
agent = "cluade"
[[team.role]]
name = "coder"
command = ["x"]
restart = "alwyas"
backoff = { base = "0", cap = "5m" }
env = { KEY = 12345 }
[team.role.health]
heartbeat = "60s"
[team.role.watchdog]
tool_timeout = "25h"
"""


def test_ten_mistakes_are_ten_problems_in_the_order_of_their_lines() -> None:
    told = problems(TEN_MISTAKES)

    assert [problem.split(": ")[0] for problem in told] == [
        "workspace (line 1)",
        "team[0].colour (line 4)",
        "team[0].role[0].replicas (line 7)",
        "team[0].role[0].agent (line 8)",
        "team[0].role[1].name (line 10)",
        "team[0].role[1].restart (line 12)",
        "team[0].role[1].backoff.base (line 13)",
        "team[0].role[1].env.KEY (line 14)",
        "team[0].role[1].health.heartbeat (line 16)",
        "team[0].role[1].watchdog.tool_timeout (line 18)",
    ]


def test_a_refusal_is_wrong_usage_and_says_that_nothing_was_applied() -> None:
    with pytest.raises(ManifestRefused) as refused:
        read_manifest(GENERIC + "restart = 'alwyas'\nreplicas = -1", "teams/vigil.toml", "/srv", {})

    error = refused.value
    assert isinstance(error, UsageError)
    assert error.exit_code == 2
    assert str(error) == (
        'teams/vigil.toml: team[0].role[0].restart (line 7): "alwyas" is not always, on-failure or never; '
        "teams/vigil.toml: team[0].role[0].replicas (line 8): -1 is out of range: 0 to 1000. Nothing was applied."
    )
    assert error.args == (error.problems[0],)


def test_a_question_at_the_end_keeps_its_mark() -> None:
    with pytest.raises(ManifestRefused, match=r"did you mean restart\? Nothing was applied\.$"):
        read(GENERIC + "restrt = 'always'")


@pytest.mark.parametrize(
    "env", ["{ TOKEN = 123456 }", "'TOKEN=123456'", "['TOKEN=123456']", "{ TOKEN = ['123456'] }", "123456"]
)
def test_what_stands_in_an_environment_is_not_shown(env: str) -> None:
    (problem,) = problems(GENERIC + f"env = {env}")

    assert "123456" not in problem
    assert "(line 7): must be " in problem


def test_what_a_terminal_would_obey_is_not_repeated() -> None:
    text = GENERIC + '"\\u001b[31m\\n" = 1\nagent = "\\u009b31m\\u202e\\r"\ncwd = "~\\u001b[0m"\n'

    with pytest.raises(ManifestRefused) as refused:
        read_manifest(text, "\x1b[31mvigil.toml\n", "/srv", {})

    assert len(refused.value.problems) == 3
    assert str(refused.value).isprintable()


def test_a_text_full_of_mistakes_tells_the_first_hundred_and_counts_the_rest() -> None:
    told = problems(GENERIC + "".join(f"key{number} = 1\n" for number in range(MOST_PROBLEMS + 7)))

    assert len(told) == MOST_PROBLEMS + 1
    assert told[0].startswith("team[0].role[0].key0 (line 7): unknown key")
    assert told[-1] == "and 7 more problems"


# What is no TOML


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = 1\nb = \n", "line 2, column 5: not TOML: invalid value"),
        ("a = 1\n\n[b\n", "line 3, column 3: not TOML: expected ']' at the end of a table declaration"),
        ("a = 1\na = 2\n", "line 2, column 6: not TOML: cannot overwrite a value"),
        ("a = 1\nb = [1,\n", "line 2, its last: not TOML: "),
        ("a = 1\n# \ud800\n", "line 2: not UTF-8"),
        (f"a = {'[' * 5000}", "is nested too deeply"),
        (f"a = {'1' * 5000}", "holds a number of too many digits"),
    ],
)
def test_what_is_no_toml_is_one_problem_with_its_line(text: str, problem: str) -> None:
    (told,) = problems(text)

    assert told.startswith(problem)


def test_a_key_without_end_is_refused_before_it_takes_all_memory() -> None:
    key = ".".join("a" * 200_000)

    assert problems(f"\n{key} = 1") == ["line 2: a key of more than 100 parts"]
    assert problems(f"\n\n[{key}]") == ["line 3: a key of more than 100 parts"]
    assert problems(f"a = {{ {key.replace('.', ' . ')} = 1 }}") == ["line 1: a key of more than 100 parts"]
    assert problems(key.replace("a", r'"\""')) == ["line 1: a key of more than 100 parts"]
    assert problems(key.replace("a", "'a'")) == ["line 1: a key of more than 100 parts"]


def test_a_text_with_many_dots_is_no_key() -> None:
    assert read(GENERIC + f"env = {{ A = '{'a.' * 1000}' }}\n# {'a.' * 1000}\n")
