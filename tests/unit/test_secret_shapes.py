"""Shapes: each kind of secret is hidden wherever it stands, and what only looks like one stays."""

from __future__ import annotations

import base64
import shlex

import pytest

from vigil.redact import MARK, Redactor, redact_command, secrets_of
from vigil.secret_shapes import SHAPES, hide_shapes

LETTERS, HEX, CAPITALS = "Ab1Cd2Ef3" * 12, "0123456789abcdef" * 8, "QPZRY9X8GF" * 10
# Made of pieces, so that no scanner takes this file for a leak.
MADE = {
    "PEM": ("-----BEGIN " + "PRIVATE KEY-----", "\nMIIEow\n", "-----END " + "PRIVATE KEY-----"),
    "OpenAI, Anthropic, many more": ("sk-", "ant-", LETTERS[:40]),
    "Stripe": ("sk_", "live_", LETTERS[:24]),
    "GitHub": ("gh", "p_", LETTERS[:36]),
    "GitHub, fine-grained": ("github", "_pat_", LETTERS[:40]),
    "GitLab": ("gl", "pat-", LETTERS[:20]),
    "Slack": ("xox", "b-", "1234567890-", LETTERS[:12]),
    "Slack webhook": ("hooks.slack", ".com/services/", "T0/B0/", LETTERS[:24]),
    "AWS": ("AK", "IA", "ABCDEFGH12345678"),
    "AWS, temporary": ("AS", "IA", "ABCDEFGH12345678"),
    "Google API": ("AI", "za", LETTERS[:35]),
    "Google access": ("ya", "29.", LETTERS[:60]),
    "Google OAuth client": ("GOC", "SPX-", LETTERS[:28]),
    "Google refresh": ("1/", "/0", LETTERS[:60]),
    "Hugging Face": ("h", "f_", LETTERS[:34]),
    "npm": ("np", "m_", LETTERS[:36]),
    "PyPI": ("pypi-", "AgEI", LETTERS[:60]),
    "JWT": ("ey", "J", LETTERS[:30], ".", LETTERS[:30], ".", LETTERS[:20]),
    "Groq": ("gs", "k_", LETTERS[:52]),
    "xAI": ("xa", "i-", LETTERS[:80]),
    "Perplexity": ("pp", "lx-", LETTERS[:48]),
    "Replicate": ("r", "8_", LETTERS[:37]),
    "Discord webhook": ("/api/", "webhooks/", "123456789012345678/", LETTERS[:68]),
    "Discord bot": ("MTIzNDU2Nzg5", "MDEyMzQ1Njc4", ".", "GabC1d", ".", LETTERS[:38]),
    "Telegram bot": ("1234567890", ":AA", LETTERS[:33]),
    "SendGrid": ("S", "G.", LETTERS[:22], ".", LETTERS[:43]),
    "Databricks": ("da", "pi", HEX[:32], "-2"),
    "Vault": ("hv", "s.", LETTERS[:90]),
    "DigitalOcean": ("dop", "_v1_", HEX[:64]),
    "Linear": ("lin", "_api_", LETTERS[:40]),
    "age": ("AGE-SECRET", "-KEY-", "1", CAPITALS[:58]),
    "Docker": ("dckr", "_pat_", LETTERS[:27]),
    "Supabase": ("sb", "p_", HEX[:40]),
    "Netlify": ("nf", "p_", LETTERS[:36]),
    "Notion": ("nt", "n_", LETTERS[:46]),
}
MORE = [
    ("GitHub", ("gh", "s_", LETTERS[:36])),
    ("Discord webhook", ("/api/v10/", "webhooks/", "123456789012345678/", LETTERS[:68])),
    ("Vault", ("hv", "b.", LETTERS[:90])),
    ("DigitalOcean", ("dor", "_v1_", HEX[:64])),
    ("Linear", ("lin", "_oauth_", LETTERS[:40])),
    ("age", ("AGE-SECRET", "-KEY-", "PQ-1", CAPITALS[:58])),
    ("Docker", ("dckr", "_oat_", LETTERS[:27])),
    ("Supabase", ("sb", "_secret_", LETTERS[:22])),
    ("Notion", ("sec", "ret_", LETTERS[:43])),
]
KINDS = [(whose, "".join(parts)) for whose, parts in [*MADE.items(), *MORE]]
PIXEL = base64.b64encode(bytes(range(256)) * 12).decode()


def test_each_kind_has_its_example() -> None:
    assert [shape.whose for shape in SHAPES] == list(MADE)


@pytest.mark.parametrize(("whose", "secret"), KINDS)
def test_a_secret_is_hidden_by_its_own_kind_and_nothing_around_it(whose: str, secret: str) -> None:
    found = [shape.whose for shape in SHAPES if any(map(secret.__contains__, shape.signs)) and shape.pattern.fullmatch(secret)]
    assert found == [whose]
    for around in (
        "{}",
        "is {} right?",
        '"{}"',
        "({}),",
        "https://x.example{}" if secret[0] == "/" else "x={}",
        "line\n{}\nline",
    ):
        assert Redactor().text(around.format(secret)) == around.format(MARK)
    assert secrets_of(["x", secret], {}) == {secret}


@pytest.mark.parametrize(("whose", "parts"), [*MADE.items(), *MORE])
def test_a_secret_that_was_cut_off_keeps_at_most_twelve_letters_of_its_secret_part(whose: str, parts: tuple[str, ...]) -> None:
    if whose in ("AWS", "AWS, temporary", "Databricks", "PEM"):
        pytest.skip("of one length: a part of it opens no door; or its end is no part of it")
    text, secret = "e" * 150 + f" used {''.join(parts)}", len(parts[-1]) - 12
    for cut in range(len(text) - secret + 1, len(text)):
        shown = Redactor().text(text[:cut] + "…")
        assert parts[-1][:12] not in shown and shown.startswith("e" * 150 + " used"), (cut, shown)


@pytest.mark.parametrize(
    "text",
    [
        "commit 5d87452b1f0e0a7c9d3e2f4a6b8c0d1e2f3a4b5c by me",
        "conversation 3f2504e0-4f89-41d3-9a0c-0305e82c3301 goes on",
        "sha256:" + HEX[:64],
        f"data:image/png;base64,{PIXEL}",
        "toolu_01AbCdEfGhIjKlMnOpQrStUv and call_AbCdEfGhIjKlMnOpQrStUvWx",
        "task-0123456789abcdef0123456789 desk_0123456789abcdef0123456789 risk-taking-0123456789-people",
        "masgsk_" + LETTERS[:40] + " taxai-" + LETTERS[:40] + " hdapi" + HEX[:32],
        "see SG.md, hvs.rs, lin_api_v2, r8_short, nfp_x, secret_name, dckr_pat, https://x/1//0 and dop_v1_",
        "12:34:56:AAAA at 10:AA",
        "Model.method_.something and NTP.server.name of MDNSresponder.conf.d",
        "https://discord.com/api/webhooks/ takes a number",
        "127.0.0.1:8080 1.2.3.4.5.6 www.example.com foo.tar.gz libc.so.6",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert hide_shapes(text, lambda _secret: MARK) == text
    assert Redactor().text(text) == text
    assert Redactor().text(f"{text[:60]}…") == f"{text[:60]}…" or "dop_v1_" in text or "sgsk_" in text


CALLS = [
    ("curl -u me:hunter22 https://x", f"curl -u me:{MARK} https://x"),
    ("curl -sS -ume:hunter22 https://x", f"curl -sS -ume:{MARK} https://x"),
    ("curl -fsSu me:hunter22 https://x", f"curl -fsSu me:{MARK} https://x"),
    ("curl https://x?a=b&c=d --user me:hunter22", f"curl https://x?a=b&c=d --user me:{MARK}"),
    ("curl --user=me:hunter22 x", f"curl --user=me:{MARK} x"),
    ("curl --proxy-user me:hunter22 -U a:hunter23 x", f"curl --proxy-user me:{MARK} -U a:{MARK} x"),
    ("curl -u hunter22: https://x", f"curl -u {MARK}: https://x"),
    ("/usr/bin/curl -u me:hunter22 x", f"/usr/bin/curl -u me:{MARK} x"),
    ("redis-cli -h host -a hunter22 ping", f"redis-cli -h host -a {MARK} ping"),
    ("docker login -u me -p hunter22 ghcr.io", f"docker login -u me -p {MARK} ghcr.io"),
    ("podman login -p hunter22 x", f"podman login -p {MARK} x"),
    ("sshpass -p hunter22 ssh host", f"sshpass -p {MARK} ssh host"),
    ("sshpass -phunter22 ssh host", f"sshpass -p{MARK} ssh host"),
    ("mysqldump -uroot -phunter22 db", f"mysqldump -uroot -p{MARK} db"),
]
OTHERS = [
    "python -u me:module.py",
    "sort -u a:b",
    "curl -u me https://x",
    "curl --url me:x https://x",
    "docker run -p 8080:80 -u 1000:1000 nginx",
    "docker login -u me --password-stdin",
    "redis-cli -h host -n 2 get a",
    "ls -a hunter22",
    "mysql -uroot -p db",
    "git push -u origin feature:main",
    "id -u me:x; ssh -p 22 host",
    "curlie -u me:x",
    "login -p me",
]


@pytest.mark.parametrize(("call", "shown"), CALLS)
def test_a_password_that_a_program_takes_by_an_option_of_its_own_is_hidden(call: str, shown: str) -> None:
    assert redact_command(call.split()) == shown.split()
    assert redact_command(["sh", "-c", f"cd /x && {call}; echo"]) == ["sh", "-c", f"cd /x && {shown}; echo"]
    assert Redactor().text(f"May I run: {call}\nor not?") == f"May I run: {shown}\nor not?"
    assert secrets_of(call.split(), {}) >= {"hunter22"}
    assert Redactor().text(shown) == shown


@pytest.mark.parametrize("call", OTHERS)
def test_the_same_option_of_another_program_stays(call: str) -> None:
    assert redact_command(call.split()) == call.split()
    assert Redactor().text(call) == call
    assert redact_command(["sh", "-c", call]) == ["sh", "-c", call]


@pytest.mark.parametrize("value", ["$TOKEN", '"$TOKEN"', "'me:hun ter'", "${A}:${B}"])
def test_a_quoted_value_keeps_its_quotes_and_a_reference_stays(value: str) -> None:
    shown = Redactor().text(f"curl -u {value} x; redis-cli -a {value} x")

    if "$" in value:
        assert shown == f"curl -u {value} x; redis-cli -a {value} x"
    else:
        assert shown == f"curl -u 'me:{MARK}' x; redis-cli -a '{MARK}' x"
        assert shlex.split(shown)
