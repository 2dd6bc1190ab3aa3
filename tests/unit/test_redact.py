"""Redaction: no secret of a command or an environment is shown, and a text without one is left as it is."""

from __future__ import annotations

import base64
import json
import string
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.unit.builders import make_launch, make_session, make_spec
from vigil.core.events import Asked, Declared, LaunchFailed, Noted
from vigil.core.machine import Machine
from vigil.core.model.death import IntentVerb
from vigil.recording import Replay, begin_line, entry_line, open_recording
from vigil.recording.shown import is_same
from vigil.redact import MARK, Redactor, redact_command, secrets_of

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEow\nq83vASNFZ4mrze8=\n-----END RSA PRIVATE KEY-----"
SHAPES = [
    "sk-" + "proj-" + "Ab1" * 10,
    "sk-ant-" + "api03-" + "Ab1" * 10,
    "sk-" + "abcdefgh" * 4,
    "sk_" + "live_" + "Ab1" * 8,
    "ghp_" + "Ab1" * 12,
    "gho_" + "Ab1" * 12,
    "ghs_" + "Ab1" * 12,
    "github_pat_" + "Ab1" * 12,
    "glpat-" + "Ab1" * 7,
    "xoxb-" + "1234567890-abcdef",
    "xoxp-" + "1234567890-abcdef",
    "AKIA" + "ABCDEFGH12345678",
    "ASIA" + "ABCDEFGH12345678",
    "AIza" + "Ab1" * 12,
    "hf_" + "Ab1" * 11,
    "npm_" + "Ab1" * 12,
    JWT,
    PEM,
    PEM.replace("\n", "\\n"),
    PEM.partition("\n-----END")[0],
]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("claude --api-key hunter22 --model opus", f"claude --api-key {MARK} --model opus"),
        ("x --token=abc123 y", f"x --token={MARK} y"),
        ("x -token abc y", f"x -token {MARK} y"),
        ("x --apiKey a1 --accessToken=b2", f"x --apiKey {MARK} --accessToken={MARK}"),
        (
            "x --password 1234 --secret s --auth me --passphrase p",
            f"x --password {MARK} --secret {MARK} --auth {MARK} --passphrase {MARK}",
        ),
        (
            "x --credential a --credentials b --private-key c",
            f"x --credential {MARK} --credentials {MARK} --private-key {MARK}",
        ),
        ("x --password -abc12", f"x --password {MARK}"),
        ("x hunter22 --password hunter22 y=hunter22", f"x {MARK} --password {MARK} y={MARK}"),
        ("env A=B API_TOKEN=abc cmd", f"env A=B API_TOKEN={MARK} cmd"),
        ("docker run -e DB_PASSWORD=1234 --env=GITHUBTOKEN=x", f"docker run -e DB_PASSWORD={MARK} --env=GITHUBTOKEN={MARK}"),
        ("git clone https://me:p@ss@host/x.git", f"git clone https://me:{MARK}@host/x.git"),
        ("git clone https://0123456789abcdef0123@host/x", f"git clone https://{MARK}@host/x"),
        ("psql postgres://me:pw@host/db?a=b", f"psql postgres://me:{MARK}@host/db?a=b"),
        ("mysql -uroot -psecret db", f"mysql -uroot -p{MARK} db"),
        ("sshpass -p secret ssh host", f"sshpass -p {MARK} ssh host"),
    ],
)
def test_a_secret_in_a_command_is_hidden_and_the_rest_is_kept(command: str, shown: str) -> None:
    assert redact_command(command.split()) == shown.split()


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("Authorization: Bearer abcdef", f"Authorization: Bearer {MARK}"),
        ("authorization: Basic dXNlcjpwYXNz", f"authorization: Basic {MARK}"),
        ("X-Api-Key: foo bar", f"X-Api-Key: {MARK}"),
        ("apikey: foo", f"apikey: {MARK}"),
        ("Cookie: a=b; c=d", f"Cookie: {MARK}"),
        ("Accept: text/json", "Accept: text/json"),
    ],
)
def test_a_header_keeps_its_name(word: str, shown: str) -> None:
    assert redact_command(["curl", "-H", word, "url"]) == ["curl", "-H", shown, "url"]


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("API_KEY=abc cmd", f"API_KEY={MARK} cmd"),
        ("cd /x; TOKEN='a b' cmd && y", f"cd /x; TOKEN='{MARK}' cmd && y"),
        ('export DB_PASSWORD="a b"; cmd', f'export DB_PASSWORD="{MARK}"; cmd'),
        ("cmd --verbose --password abc --fast", f"cmd --verbose --password {MARK} --fast"),
        ("A_TOKEN='it'\"'\"'s x' cmd", f"A_TOKEN={MARK} cmd"),
        ("cmd --password '$ecret' x", f"cmd --password '{MARK}' x"),
        ("cmd --token $TOKEN --secret ${S} --key $(cat k)", "cmd --token $TOKEN --secret ${S} --key $(cat k)"),
        ("curl -H 'Authorization: Bearer abc' url", f"curl -H 'Authorization: Bearer {MARK}' url"),
    ],
)
def test_a_script_in_a_command_is_looked_through(script: str, shown: str) -> None:
    assert redact_command(["sh", "-c", script]) == ["sh", "-c", shown]
    assert redact_command(["bash", "-lc", script]) == ["bash", "-lc", shown]


@pytest.mark.parametrize(
    "command",
    [
        "claude -p prompt --model opus --max-tokens 4096 --tokens 100",
        "claude -pprompt",
        "x --keyboard qwerty --monkey see --tokenizer gpt2 --pass-through all",
        "x --token --verbose",
        "x --auth none --auth basic --password-file /x/y --auth-type oidc",
        "gh repo create --private mine",
        "ssh -p 22 host",
        "env PATH=/bin PWD=/x SSH_AUTH_SOCK=/x/y GIT_AUTHOR_NAME=Alice cmd",
        "curl https://host:8080/a@b http://me@host/ git@host:x/y",
        "run task-0123456789abcdef0123456789 desk-0123456789abcdef0123456789",
    ],
)
def test_a_command_without_secrets_is_shown_as_it_is(command: str) -> None:
    assert redact_command(command.split()) == command.split()
    assert secrets_of(command.split(), {}) == frozenset()


@pytest.mark.parametrize("secret", SHAPES)
@pytest.mark.parametrize(
    "around", ["{}", "x={}", '"{}"', "a {} b", "({})", "--config={{{}}}", "https://x/{}/y", "line\n{}\nline"]
)
def test_what_has_a_well_known_shape_is_hidden_wherever_it_stands(secret: str, around: str) -> None:
    if secret.startswith("-----BEGIN") and "END" not in secret:
        around = around.partition("}")[0] + "}"  # one that was cut off ends where the text does
    word, shown = around.format(secret), around.format(MARK)

    assert Redactor().text(word) == shown
    assert redact_command(["x", word]) == ["x", shown]
    assert secrets_of(["x", word], {}) == {secret}


def test_variables_whose_name_speaks_of_a_secret_are_secrets() -> None:
    names = ["API_KEY", "GH_TOKEN", "GITHUBTOKEN", "MY_SECRET", "PGPASSWORD", "DB_PASSWD", "SSH_PASSPHRASE", "AWS_CREDENTIALS"]
    names += ["NPM_AUTH", "SESSION_COOKIE", "SENTRY_DSN", "PRIVATE_STUFF", "DB_PASS", "githubPat", "HTTP_AUTHORIZATION"]
    env = {name: f"value-of-{name}" for name in names}

    assert secrets_of([], env) == set(env.values())


def test_other_variables_are_none() -> None:
    env = dict.fromkeys(["PATH", "PWD", "OLDPWD", "XAUTHORITY", "SSH_AUTH_SOCK", "KEYBOARD", "GIT_AUTHOR_NAME"], "/some/where")
    env |= dict.fromkeys(["TOKENIZERS_PARALLELISM", "MONKEY", "KEY_FILE", "TOKEN_URL", "SECRET_NAME", "COMPASS"], "value-of-it")

    assert secrets_of([], env) == frozenset()


@pytest.mark.parametrize("value", ["", "1", "true", "None", "abcde", "password", "localhost", MARK, "redacted", "4096000"])
def test_a_value_that_is_short_or_common_is_not_looked_for(value: str) -> None:
    assert secrets_of(["x", "--token", value], {"API_KEY": value}) == frozenset()


def test_a_folder_is_no_secret(tmp_path: Path) -> None:
    assert secrets_of([], {"KEY": str(tmp_path), "TOKEN": str(tmp_path / "gone")}) == {str(tmp_path / "gone")}


def test_a_password_in_the_url_of_a_variable_is_a_secret_also_as_it_was_before_it_was_quoted() -> None:
    assert secrets_of([], {"DATABASE_URL": "postgres://me:p%40ssw0rd@host/db"}) == {"p%40ssw0rd", "p@ssw0rd"}


def test_a_variable_is_taken_literally() -> None:
    assert secrets_of([], {"DB_PASSWORD": "$ecret1", "API_TOKEN": "`abcdef"}) == {"$ecret1", "`abcdef"}


@pytest.mark.parametrize(
    "text",
    [
        "token: unexpected end of file",
        "Bearer authentication is required; Basic information follows",
        "sorted(found, key=len); if token == 'x': pass",
        'the option --token is needed, use --api-key KEY or API_KEY=$KEY, password=***, secret="<your secret>"',
        '{"input_tokens": 12, "key": "alpha/stuck", "auth": true, "max_tokens": "4096"}',
        "level=info event=probe session=alpha why=failed",
        f"--password {MARK} API_KEY={MARK} https://me:{MARK}@host Authorization: Bearer {MARK}",
        "a=b==c===d://e",
        "",
    ],
)
def test_a_text_without_secrets_is_left_as_it_is(text: str) -> None:
    assert Redactor().text(text) == text
    assert Redactor({"something-else"}).text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("API_KEY=abc is wrong", f"API_KEY={MARK} is wrong"),
        ("https://x/?token=abc&y=1", f"https://x/?token={MARK}&y=1"),
        ('{"apiKey": "a\\"b", "n": 1}', f'{{"apiKey": "{MARK}", "n": 1}}'),
        (r'"{\"api_key\":\"a\\nb\",\"n\":1}"', rf'"{{\"api_key\":\"{MARK}\",\"n\":1}}"'),
        ("api_key = 'x y'", f"api_key = '{MARK}'"),
        ("> X-Auth-Token: abc\n> Accept: x", f"> X-Auth-Token: {MARK}\n> Accept: x"),
        ("sent Bearer abc123 to it", f"sent Bearer {MARK} to it"),
        ("sent Basic dXNlcjpwYXNzd29yZA== to it", f"sent Basic {MARK} to it"),
    ],
)
def test_what_a_text_names_as_a_secret_is_hidden(text: str, shown: str) -> None:
    assert Redactor().text(text) == shown


def test_values_of_json_are_redacted_all_the_way_down() -> None:
    value = {
        "command": ["x", "--password", "y"],
        "env": {"API_TOKEN": "z"},
        "n": [1, None, True, "a s3cret-1"],
        "key": "s/stuck",
    }

    shown = {
        "command": ["x", "--password", MARK],
        "env": {"API_TOKEN": MARK},
        "n": [1, None, True, f"a {MARK}"],
        "key": "s/stuck",
    }
    assert Redactor({"s3cret-1"}).value(value) == shown


def test_the_lines_of_a_long_secret_are_known_alone() -> None:
    secret = "first-line-of-it-0001\nsecond-line-of-it-0002"

    assert Redactor({secret}).text("> second-line-of-it-0002\n> first-line-of-it-0001") == f"> {MARK}\n> {MARK}"


SECRETS = (
    st.text(string.ascii_letters + string.digits + "-_.+/!$%&=?@# äß\\'\"", min_size=8, max_size=40)
    .map(str.strip)
    .filter(
        lambda secret: (
            len(secret) >= 8
            and not secret.startswith(("/", "~"))
            and any(map(str.isdigit, secret))
            and any(map(str.isalpha, secret))
        )
    )
)
TEXTS = st.text(max_size=40)
# Words of which none speaks of a secret, nor looks like one.
PROSE = st.lists(
    st.sampled_from(["the", "agent's", "exit=3,", "path:", "/tmp/x", "{", '"a":', "1.5", "\n", "it's", "--fast"])
).map(" ".join)


@given(secret=SECRETS, before=TEXTS, after=TEXTS)
@example(secret="abcdef12", before="\\", after="'")
def test_no_known_secret_survives_in_any_form(secret: str, before: str, after: str) -> None:
    assume(secret not in before + after)
    data = secret.encode()
    redactor = Redactor({secret})

    for form in (secret, json.dumps(secret)[1:-1], quote(secret), quote(secret, safe=""), quote_plus(secret)):
        assert form not in redactor.text(f"{before} {form} {after}")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        assert redactor.text(encode(data).decode()) == MARK
        for inside in (b"user:" + data, b"ab" + data + b"c", b"a" + data):
            assert base64.b64decode(redactor.text(encode(inside).decode()).partition("[")[0] + "===", "-_").find(data) < 0
            assert MARK in redactor.text(encode(inside).decode())


@given(secrets=st.frozensets(SECRETS, max_size=4), text=TEXTS | st.lists(SECRETS | PROSE).map(" ".join))
def test_what_was_redacted_once_stays_as_it_is(secrets: frozenset[str], text: str) -> None:
    redactor = Redactor(secrets)
    once = redactor.text(" ".join([text, *secrets, text]))

    assert redactor.text(once) == once
    assert not [secret for secret in secrets if secret in once]


@given(secret=SECRETS, text=PROSE)
def test_prose_stays_as_it_is(secret: str, text: str) -> None:
    assume(secret not in text)

    assert Redactor({secret}).text(text) == text
    assert Redactor({secret}).value({"why": [text]}) == {"why": [text]}


@given(secret=SECRETS, name=st.sampled_from(["API_KEY", "GITHUB_TOKEN", "db_password", "My.Secret"]))
def test_no_secret_of_a_command_survives_wherever_it_stands(secret: str, name: str) -> None:
    option = "--" + name.lower().replace("_", "-")
    commands = [[option, f"x{secret}"], [f"{option}=x{secret}"], [f"{name}=x{secret}"], ["--env", f"{name}=x{secret}"]]
    commands += [["sh", "-c", f"{name}={quote(secret, safe='')} cmd"], ["-H", f"X-{option[2:]}: {secret}"]]

    for command in commands:
        shown = redact_command(["cmd", *command, "end"])
        assert secret not in " ".join(shown)
        assert (shown[0], shown[-1], len(shown)) == ("cmd", "end", len(command) + 2)
        assert redact_command(shown) == shown
        assert {secret, f"x{secret}"} & secrets_of(command, {}) or "sh" in command


@given(words=st.lists(st.text(max_size=12) | st.sampled_from(["--token", "-c", "-H", "mysql", "-px", "A_KEY='"]), max_size=6))
def test_any_command_can_be_shown(words: list[str]) -> None:
    shown = redact_command(words)

    assert len(shown) == len(words)
    assert all(len(value) >= 6 for value in secrets_of(words, dict.fromkeys(words, "x")))


@pytest.mark.parametrize(
    "piece", ["a", "=", "eyJ", "eyJa.", "sk-", "token=", "a=", '"', "key='", "://a:", "@", "-", "--a ", "Bearer ", "x-token:"]
)
def test_no_text_takes_more_than_its_length(piece: str) -> None:
    """What took the square of it would not end before the time limit of a test."""
    text = piece * (1_000_000 // len(piece))

    Redactor({"s3cret-value"}).text(text)
    redact_command(["sh", "-c", text])
    redact_command([text, "--token", text])


# A recording


def test_a_recording_holds_no_secret_and_replays_without_a_difference(tmp_path: Path) -> None:
    secret, path = SHAPES[0], tmp_path / "it"
    spec = make_spec(command=("agent", "--password", "hunter22", f"API_TOKEN={secret}"))
    given_session = make_session(id="s0", name="given", spec=spec, launch=make_launch("s0-1"), why=f"it said {secret}")
    machine = Machine([given_session])
    lines = [begin_line("0.1.0", 1000.0, [given_session], [])]
    for event in (
        Declared("s1", "alpha", spec, "alice"),
        LaunchFailed("s1-1", 1001.0, f"cannot log in with {secret}: refused"),
        Asked(IntentVerb.STOP, "s0", "alice", f"token={secret}"),
        Noted("config.refused", (("why", f"{secret} is no route"), ("count", 2))),
    ):
        lines.append(entry_line(1002.0, event, machine.handle(event, 1002.0)))
    lines.append(entry_line(1003.0, Asked(IntentVerb.STOP, "none", "alice"), f"KeyError: {secret}"))
    path.write_text("\n".join(lines[:-1]) + "\n")

    assert not [line for line in lines if secret in line or "hunter22" in line]
    assert f"cannot log in with {MARK}: refused" in lines[2]
    steps = list(Replay(open_recording(path)).steps())
    assert [step for step in steps if step.differs or step.unknown] == []


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        ("a", "a", True),
        ("a", "b", False),
        (f"a {MARK} b", "a secret b", True),
        (f"a {MARK} b", "a  b", True),
        (f"a {MARK} b", "a b", False),
        (f"a {MARK} b", "c secret b", False),
        (f"{MARK} and {MARK}.", "one and two.", True),
        (f"{MARK} and {MARK}.", "one or two.", False),
        (f"ab{MARK}bc", "abc", False),
        (MARK, None, False),
        (None, MARK, False),
        (3, 3.0, True),
    ],
)
def test_what_was_redacted_may_be_anything_today(then: Any, now: Any, same: bool) -> None:
    assert is_same(then, now) is same
