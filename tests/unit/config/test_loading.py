"""The configuration file says what it may, and is refused with every mistake at once."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.config.checking import KINDS, MOST_PROBLEMS, check
from vigil.config.hours import Zone
from vigil.config.loading import LARGEST_BYTES, ConfigFile, ConfigRefused
from vigil.config.models import ConfigTables, ConfigWatchdog, LaunchTable, ReaperTable, Table
from vigil.config.values import AgentConfig, Config, LaunchConfig, RouteConfig
from vigil.config.wording import key
from vigil.core.handlers.operator import VERBS
from vigil.core.model.incident import HIBERNATE, IncidentKind, Ladder, LadderStep, Quiet, Severity
from vigil.core.model.restart import RestartPolicy, RestartWhen
from vigil.core.model.stall import Watchdog
from vigil.errors import UsageError

DOCS = Path(__file__).parents[3] / "docs" / "configuration.md"
INTERFACE = """
[watchdog]
stall_after = "5m"
tool_timeout = "10m"
mcp_tool_timeout = "15m"
subagent_timeout = "15m"
approval_reminder = "10m"
stall_repeat_seconds = 180
liveness_timeout = "10m"
stall_auto_kill = false

[reaper]
enabled = true
interval = "30m"
idle_ttl = "48h"
grace = "60s"

[routes.ops]
url = "file:/etc/vigil/ops.url"

[routes.script]
exec = ["/usr/local/bin/on-incident"]

[[ladder]]
severity = "urgent"
steps = [{ route = "ops", after = "0s" }, { route = "script", after = "30m", repeat = "2h" }]
"""
Write = Callable[[str], ConfigFile]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a configuration file, and return it."""

    def write(text: str) -> ConfigFile:
        (tmp_path / "config.toml").write_text(text)
        return ConfigFile(tmp_path / "config.toml")

    return write


def problems(file: ConfigFile) -> list[str]:
    with pytest.raises(ConfigRefused) as refused:
        file.read()
    return list(refused.value.problems)


# What it says


def test_the_example_of_the_interface_is_understood(write: Write) -> None:
    assert write(INTERFACE).read() == Config(
        routes={"ops": RouteConfig(url="file:/etc/vigil/ops.url"), "script": RouteConfig(exec=("/usr/local/bin/on-incident",))},
        ladders=(Ladder((LadderStep("ops", 0.0), LadderStep("script", 1800.0, 7200.0)), severity=Severity.URGENT),),
        watchdog=Watchdog(300.0, 600.0, 900.0, 900.0, 600.0, 180.0, 600.0, False),
    )


def test_the_example_of_the_reference_page_is_understood(write: Write) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)

    assert write(example).read() == Config(
        agents={"claude": AgentConfig(("claude", "--verbose"), ("claude", "node"))},
        routes={
            "script": RouteConfig(("/usr/local/bin/on-incident", "--loud")),
            "mail": RouteConfig(("/usr/local/bin/mail-incident",)),
        },
        ladders=(
            Ladder((LadderStep("script"), LadderStep("mail", 1800.0, 7200.0)), severity=Severity.URGENT),
            Ladder((), kind=IncidentKind.LATE_DAEMON),
        ),
        restart=RestartPolicy(RestartWhen.ON_FAILURE, max_restarts=5, base_s=5.0, cap_s=300.0, reset_after_s=600.0),
        launch=LaunchConfig(512 << 20),
    )


def test_the_reference_page_names_every_key_and_every_word() -> None:
    page = DOCS.read_text("utf-8")
    tables = [table for table in Table.__subclasses__() if table is not ConfigTables]
    keys = {field.alias or name for table in tables for name, field in table.model_fields.items()}
    words = {str(word) for kind in (RestartWhen, Severity, IncidentKind) for word in kind}

    assert [key for key in sorted(keys) if not re.search(rf"`([a-z\[\]]+\.)?{key}`|`\[+{key}", page) and key != "backoff"] == []
    assert [word for word in sorted(words) if f"`{word}`" not in page] == []
    assert [table for table in ConfigTables.model_fields if not re.search(rf"## `\[+{table}", page)] == []


def test_a_severity_and_a_kind_can_both_be_asked_for(write: Write) -> None:
    text = '[routes.r]\nexec = ["x"]\n[[ladder]]\nseverity = "action"\nkind = "needs-input"\nsteps = [{ route = "r" }]\n'

    assert write(text).read().ladders == (Ladder((LadderStep("r"),), Severity.ACTION, IncidentKind.NEEDS_INPUT),)


@pytest.mark.parametrize("text", ["", "# nothing\n", "[restart]\n[launch]\n[agents]\n[routes]\n"])
def test_a_file_without_a_value_is_the_default(write: Write, text: str) -> None:
    assert write(text).read() == Config()


def test_what_is_given_of_restart_changes_only_that(write: Write) -> None:
    assert write("[restart]\nbackoff = { base = 0.5 }\n").read().restart == RestartPolicy(base_s=0.5)


def test_a_launch_needs_256_mebibytes_unless_the_file_says_otherwise(write: Write) -> None:
    assert Config().launch.least_memory_bytes == 256 << 20
    assert write('[launch]\nleast_memory = "2G"\n').read().launch == LaunchConfig(2 << 30)
    assert write('[launch]\nleast_memory = "0"\n').read().launch == LaunchConfig(0)
    assert write("[launch]\nleast_memory = 0\n").read().launch == LaunchConfig(0)


def test_the_defaults_of_the_tables_are_within_their_own_ranges() -> None:
    ConfigWatchdog.model_validate(ConfigWatchdog().model_dump())
    ReaperTable.model_validate(ReaperTable().model_dump())
    LaunchTable.model_validate(LaunchTable().model_dump())


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Config().ladders = ()  # type: ignore[misc]


# What is wrong with it


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[reaper]\nintervall = 3", "reaper.intervall: unknown key; did you mean interval?"),
        ("[reaper]\nxyz = 3", "reaper.xyz: unknown key; there are: enabled, interval, idle_ttl, grace, park_on_pressure"),
        ("[[ladders]]", "ladders: unknown key; did you mean ladder?"),
        ('[restart.backoff]\n"a b" = 1', 'restart.backoff."a b": unknown key; there are: base, cap, reset_after'),
        ("[watchdog]\nstall_after = 0", "watchdog.stall_after: 0 is out of range: 1 s to 24 h"),
        ("[watchdog]\nstall_auto_kill = 1", "watchdog.stall_auto_kill: 1 is not true or false"),
        ("[reaper]\nidle_ttl = '31d'", 'reaper.idle_ttl: "31d" is out of range: 1 s to 30 days, or 0 for never'),
        ("[restart]\npolicy = 'alwyas'", 'restart.policy: "alwyas" is not always, on-failure or never'),
        ("[restart]\nmax_restarts = -1", "restart.max_restarts: -1 is out of range: 0 to 1000000, 0 for no limit"),
        ("[restart]\nmax_restarts = true", "restart.max_restarts: true is not a whole number"),
        ("[restart]\nmax_restarts = 5.0", "restart.max_restarts: 5.0 is not a whole number"),
        ("[restart]\nbackoff = { base = '10m' }", "restart.backoff.cap: 300 s is shorter than base, which is 600 s"),
        ("[launch]\nleast_memory = -1", "launch.least_memory: -1 is out of range: 0 to 1024T"),
        ("[launch]\nleast_memory = '2P'", 'launch.least_memory: "2P" is no size: give bytes, or words like "512M", "2G"'),
        ("[launch]\nleast_memory = 0.5", 'launch.least_memory: 0.5 is no size: give bytes, or words like "512M", "2G"'),
        ("[launch]\nleast_memory = true", 'launch.least_memory: true is no size: give bytes, or words like "512M", "2G"'),
        ("[launch]\nleast = 1", "launch.least: unknown key; there are: least_memory"),
        ("[launch]\nleast_memori = 1", "launch.least_memori: unknown key; did you mean least_memory?"),
        ("launch = '1G'", 'launch: "1G" is not a table'),
        ("restart = 2024-01-01", "restart: a date or time is not a table"),
        ("agents = []", "agents: an array is not a table"),
        ("ladder = {}", "ladder: a table is not an array"),
        ("[agents.claude]\ncommand = 'claude'", 'agents.claude.command: "claude" is not an array'),
        ("[agents.claude]\ncommand = []", "agents.claude.command: must begin with a program"),
        ("[agents.claude]\ncommand = ['']", "agents.claude.command: must begin with a program"),
        ("[agents.claude]\ncommand = ['a', 1]", "agents.claude.command[1]: 1 is not text in quotes"),
        ('[agents.claude]\ncommand = ["a\\u0000"]', "agents.claude.command[0]: a NUL character cannot be handed to a program"),
        ("[agents.claude]\nprocess = []", "agents.claude.process: must not be empty"),
        ("[agents.claude]\nprocess = ['']", "agents.claude.process[0]: must not be empty"),
        ("[routes.ops]\nurl = ''", "routes.ops.url: must not be empty"),
        ("[routes.ops]", "routes.ops: needs exactly one of exec, url and webhook"),
        ("[routes.ops]\nexec = ['a']\nurl = 'json://b'", "routes.ops: needs exactly one of exec, url and webhook"),
        ("[[ladder]]\nkind = 'stuck'", "ladder[0].steps: is missing"),
        ("[[ladder]]\nsteps = []", "ladder[0]: needs a severity, a kind, a team or several of these"),
        ("[[ladder]]\nseverity = 'high'\nsteps = []", 'ladder[0].severity: "high" is not urgent, action or warning'),
        ("[[ladder]]\nkind = 'stuck'\nsteps = [{}]", "ladder[0].steps[0].route: is missing"),
        (
            "[[ladder]]\nkind = 'stuck'\nsteps = [{ route = 'ops' }]",
            'ladder[0].steps[0].route: "ops" is no route; none is declared',
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_is_allowed(write: Write, text: str, problem: str) -> None:
    assert problems(write(text)) == [f"config.toml: {problem}"]


@pytest.mark.parametrize("table", ["agents", "routes"])
@pytest.mark.parametrize("name", ["Claude", "a b", "", "-a", "a/b", "a" * 65])
def test_a_name_is_like_a_part_of_an_identity(write: Write, table: str, name: str) -> None:
    (problem,) = problems(write(f"[{table}.{json.dumps(name)}]\n{'exec' if table == 'routes' else 'command'} = ['a']"))

    assert problem.startswith(f"config.toml: {table}.{key(name)}: ")
    assert "use lower-case letters, digits, - and _, starting with a letter or digit, at most 64" in problem


def test_a_kind_that_is_none_is_told_all_there_are(write: Write) -> None:
    (problem,) = problems(write("[[ladder]]\nkind = 'stuk'\nsteps = []"))

    assert problem.startswith('config.toml: ladder[0].kind: "stuk" is not ')
    assert all(kind in problem for kind in IncidentKind)


def test_all_mistakes_are_told_at_once_and_none_hides_another(write: Write) -> None:
    text = """
        [reaper]
        intervall = "30m"
        [routes.ops]
        exec = 3
        url = ""
        [routes.script]
        exec = ["a"]
        [routes.broken]
        command = ["a"]
        [[ladder]]
        steps = [{ route = "ops", after = -1 }, { route = "opps", repeat = "0s" }]
    """

    assert sorted(problems(write(text))) == [
        "config.toml: ladder[0].steps[0].after: -1 is out of range: 0 s to 24 h",
        'config.toml: ladder[0].steps[1].repeat: "0s" is out of range: 1 s to 24 h',
        'config.toml: ladder[0].steps[1].route: "opps" is no route; there are: ops, script, broken',
        "config.toml: ladder[0]: needs a severity, a kind, a team or several of these",
        "config.toml: reaper.intervall: unknown key; did you mean interval?",
        "config.toml: routes.broken.command: unknown key; there are: "
        "exec, url, webhook, secret, details, timeout, attempts, retry",
        "config.toml: routes.broken: needs exactly one of exec, url and webhook",
        "config.toml: routes.ops.exec: 3 is not an array",
        "config.toml: routes.ops.url: must not be empty",
        "config.toml: routes.ops: needs exactly one of exec, url and webhook",
    ]


def test_a_refusal_names_its_first_problem_and_lists_them_all(write: Write) -> None:
    with pytest.raises(ConfigRefused) as refused:
        write("a = 1\nb = 2").read()

    error = refused.value
    assert isinstance(error, UsageError)
    assert error.exit_code == 2
    assert error.args == (error.problems[0],)
    assert len(error.problems) == 2
    assert str(error) == "; ".join(error.problems)


def test_a_file_full_of_mistakes_tells_the_first_hundred_and_counts_the_rest(write: Write) -> None:
    found = problems(write("".join(f"k{number} = 1\n" for number in range(MOST_PROBLEMS + 7))))

    assert len(found) == MOST_PROBLEMS + 1
    assert found[-1] == "config.toml: and 7 more problems"


def test_what_a_terminal_would_obey_is_not_repeated(write: Write) -> None:
    text = '"\\u001b[31m\\n" = 1\n[restart]\npolicy = "\\u009b31m\\u202e\\r"\n[agents."\\u001b]0;x\\u0007"]\n'

    for problem in problems(write(text)):
        assert problem.isprintable(), problem


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a = 1\nb = \n", "line 2, column 5"),
        ("a = 1\n[b\n", "line 2, column 3"),
        ("a = 1\nb = [1,\n\n", "line 2, its last"),
        ("a = '\x1b'", "line 1, column 6"),
    ],
)
def test_what_is_no_toml_is_refused_with_its_line(write: Write, text: str, where: str) -> None:
    (problem,) = problems(write(text))

    assert problem.startswith(f"config.toml: {where}: not TOML: ")
    assert problem.isprintable()


def test_what_the_parser_gives_up_on_is_refused(write: Write) -> None:
    assert problems(write(f"a = {'[' * 5000}")) == ["config.toml: is nested too deeply"]
    assert problems(write(f"a = {'1' * 5000}")) == ["config.toml: holds a number of too many digits"]


def test_a_number_nobody_can_print_is_refused_like_any_other(write: Write) -> None:
    text = f"[watchdog]\nstall_after = 0x{'f' * 5000}\n[restart]\nmax_restarts = 0x{'f' * 5000}"

    assert problems(write(text)) == [
        "config.toml: watchdog.stall_after: a number of more than 64 bits is out of range: 1 s to 24 h",
        "config.toml: restart.max_restarts: a number of more than 64 bits is out of range: 0 to 1000000, 0 for no limit",
    ]


LEAVES = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.dates(),
    st.sampled_from(["urgent", "stuck", "always", "5m", "0s", "r", 10**30]),
)
KEYS = st.sampled_from(
    sorted(
        {
            *ConfigTables.model_fields,
            *(key for table in Table.__subclasses__() for key in table.model_fields),
            "r",
            "[key]",
            "",
            "A",
        }
    )
)


@given(st.dictionaries(KEYS, st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner))))
def test_whatever_a_document_holds_it_is_a_configuration_or_problems_in_our_words(document: dict[str, Any]) -> None:
    found = check(document)

    if not isinstance(found, Config):
        assert found
        for line in found:
            assert "\n" not in line
            assert "what belongs here" not in line, (line, KINDS)


# Reading it


def test_a_file_that_does_not_exist_is_the_default(tmp_path: Path) -> None:
    file = ConfigFile(tmp_path / "config.toml")

    assert file.read() == Config()
    assert file.problem is None


def test_a_file_that_did_not_change_is_not_parsed_again(write: Write) -> None:
    file = write("[restart]\nmax_restarts = 3\n")

    assert file.read() is file.read()


def test_a_change_is_seen_by_the_next_read(write: Write) -> None:
    file = write("[restart]\nmax_restarts = 3\n")
    before = file.read()

    file.path.write_text("[restart]\nmax_restarts = 12\n")

    assert (before.restart.max_restarts, file.read().restart.max_restarts) == (3, 12)


def test_a_file_put_in_its_place_is_seen_by_the_next_read(write: Write) -> None:
    file = write("[restart]\nmax_restarts = 3\n")
    file.read()
    found = file.path.stat()
    other = file.path.with_name("new")
    other.write_text("[restart]\nmax_restarts = 4\n")
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))

    os.replace(other, file.path)

    assert file.read().restart.max_restarts == 4


def test_what_was_valid_last_is_kept_while_the_file_is_not_valid(write: Write) -> None:
    file = write("[restart]\nmax_restarts = 3\n")
    good = file.read()

    file.path.write_text("[restart]\nmax_restart = 3\n")

    wrong = ["config.toml: restart.max_restart: unknown key; did you mean max_restarts?"]
    assert problems(file) == problems(file) == wrong
    assert file.last_good is good
    assert file.problem == wrong[0]


def test_a_file_that_was_mended_or_removed_is_no_problem_any_more(write: Write) -> None:
    file = write("x = 1")
    problems(file)

    file.path.write_text("[restart]\nmax_restarts = 3\n")
    assert file.read() is file.last_good
    assert file.problem is None

    file.path.unlink()
    assert file.read() == file.last_good == Config()


def test_before_it_is_read_the_default_is_what_was_valid_last(write: Write) -> None:
    file = write("x = 1")

    assert (file.last_good, file.problem) == (Config(), None)


def test_a_file_of_one_mebibyte_is_read_and_a_larger_one_refused(write: Write) -> None:
    assert write("#" * LARGEST_BYTES).read() == Config()
    assert problems(write("#" * (LARGEST_BYTES + 1))) == ["config.toml: is larger than 1 MiB"]


def test_what_is_no_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"# one\n# tw\xf6\n")

    assert problems(ConfigFile(path)) == ["config.toml: line 2: not UTF-8"]


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # nobody will ever write into it
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()

    assert problems(ConfigFile(tmp_path / "pipe")) == ["pipe: is not a regular file"]
    assert problems(ConfigFile(Path("/dev/zero"))) == ["zero: is not a regular file"]
    assert problems(ConfigFile(tmp_path / "folder")) == ["folder: cannot be read: Is a directory"]
    assert problems(ConfigFile(tmp_path / "file" / "config.toml")) == ["config.toml: cannot be read: Not a directory"]
    assert problems(ConfigFile(tmp_path / "a\0b")) == ["ab: cannot be read: embedded null byte"]


def test_a_link_to_a_file_is_followed(write: Write, tmp_path: Path) -> None:
    file = write("[restart]\nmax_restarts = 3\n")
    (tmp_path / "link.toml").symlink_to(file.path)

    assert ConfigFile(tmp_path / "link.toml").read() == file.read()


# Incidents


def test_the_examples_of_the_page_about_incidents_are_understood(write: Write) -> None:
    page = DOCS.with_name("incidents.md").read_text("utf-8")
    routes, ladder, reactions = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)

    found = write(routes).read()
    assert [(name, route.by) for name, route in found.routes.items()] == [
        ("ops", "url"),
        ("pager", "webhook"),
        ("script", "exec"),
    ]
    assert [(one.severity, len(one.steps)) for one in found.ladders] == [("urgent", 9), ("action", 9), ("warning", 3)]
    found = write(ladder).read()
    assert [one.team for one in found.ladders] == [None, "backend"]
    assert found.quiet == (Quiet(79200.0, 25200.0, frozenset({Severity.URGENT}), Zone("Europe/Berlin")),)
    assert [(one.do, one.budget) for one in write(reactions).read().reactions] == [("restart", 2), ("run", 1), ("prompt", 2)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[routes.a]\nurl = 'token-t0psecret'", "routes.a.url: is no URL, nor file: or env: and where to read one"),
        ("[routes.a]\nwebhook = 'ftp://t0psecret'",
         "routes.a.webhook: must begin with https:// or http://, or be file: or env: and where to read it"),
        ("[routes.a]\nurl = 'file:t0psecret'", "routes.a.url: file: needs a path that begins with / or ~/"),
        ("[routes.a]\nexec = ['x']\nsecret = 'x'", "routes.a.secret: signs a webhook, and there is none"),
        ("[routes.a]\nexec = ['x']\nattempts = 0", "routes.a.attempts: 0 is out of range: 1 to 100"),
        ("[routes.a]\nexec = ['x']\ntimeout = '11m'", 'routes.a.timeout: "11m" is out of range: 1 s to 10 min'),
        ("[[quiet]]\nfrom = '25:00'\nto = '07:00'", 'quiet[0].from: "25:00" is no time of the day: give words like "22:30"'),
        ("[[quiet]]\nfrom = '22:00'\nto = '07:00'\ntimezone = 'Mars/Base'",
         'quiet[0].timezone: "Mars/Base" is no time zone known here: give a name like "Europe/Berlin"'),
        ("[[reaction]]\nkind = 'needs-input'\ndo = 'prompt'\ntext = 'x'",
         'reaction[0]: do = "prompt" is not for needs-input: it is for stalled, tainted'),
        ("[[reaction]]\nkind = 'stuck'\ndo = 'restart'",
         'reaction[0]: do = "restart" is not for stuck: it is for saturated, server-died, stalled, tainted'),
        ("[[reaction]]\nkind = 'stalled'\ndo = 'prompt'", 'reaction[0]: do = "prompt" needs text'),
        ("[[reaction]]\nkind = 'stuck'\ndo = 'run'\ncommand = ['x']\ntext = 'y'", 'reaction[0]: do = "run" has no text'),
        ("[[reaction]]\nkind = 'stuck'\ndo = 'pray'", 'reaction[0].do: "pray" is not prompt, restart, hibernate or run'),
        ("[[ladder]]\nteam = 'a/b/c'\nsteps = []", None),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_telling_is_told_without_a_secret(write: Write, text: str, problem: str | None) -> None:
    found = problems(write(text))

    assert found == ([f"config.toml: {problem}"] if problem is not None else found)
    assert found and "t0psecret" not in " ".join(found)


def test_what_this_vigil_cannot_do_is_refused(write: Write) -> None:
    text = "[[reaction]]\nkind = 'stalled'\ndo = 'hibernate'\n"

    if HIBERNATE in VERBS:
        assert [one.do for one in write(text).read().reactions] == ["hibernate"]
    else:
        assert problems(write(text)) == ["config.toml: reaction[0].do: this Vigil cannot hibernate a session yet"]
