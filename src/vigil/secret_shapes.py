"""Shapes: how secrets look that we were told neither the name nor the value of, a row for each kind.

Each row has signs, texts without which its pattern cannot match: to look for them costs a fiftieth of the pattern. Long
parts are possessive (+ after the count), so that a search passes them once; what stands before a sign is looked at last, so
that `sk-` counts and `task-` does not.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import NamedTuple

from vigil.secret_names import MARK

Hide = Callable[[str], str]  # takes down a secret, and returns its mark


class SecretShape(NamedTuple):
    """One kind of secret: who gives it out, what each of them holds, and its whole form."""

    whose: str
    signs: tuple[str, ...]
    pattern: re.Pattern[str]


def _row(whose: str, signs: str, pattern: str) -> SecretShape:
    return SecretShape(whose, tuple(signs.split()), re.compile(pattern, re.ASCII))


SHAPES = (
    _row(  # also cut off or on one line with \n
        "PEM",
        "-----BEGIN",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,16384}+"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    _row("OpenAI, Anthropic, many more", "sk-", r"sk-(?<![A-Za-z0-9]sk-)(?:(?=[\w-]{0,64}[0-9])[\w-]{16,}+|[\w-]{24,}+)"),
    _row("Stripe", "sk_live_ sk_test_", r"sk_(?<![A-Za-z0-9]sk_)(?:live|test)_\w{8,}+"),
    _row("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh(?<![A-Za-z0-9]gh)[pousr]_\w{16,}+"),
    _row("GitHub, fine-grained", "github_pat_", r"github_pat_\w{16,}+"),
    _row("GitLab", "glpat-", r"glpat-[\w-]{16,}+"),
    _row("Slack", "xox", r"xox(?<![A-Za-z0-9]xox)[abeoprs]-[\w-]{10,}+"),
    _row("Slack webhook", "hooks.slack.com/", r"hooks\.slack\.com/services/[\w/]{16,}+"),
    _row("AWS", "AKIA", r"AKIA(?<![A-Za-z0-9]AKIA)[A-Z0-9]{16}+(?![A-Za-z0-9])"),
    _row("AWS, temporary", "ASIA", r"ASIA(?<![A-Za-z0-9]ASIA)[A-Z0-9]{16}+(?![A-Za-z0-9])"),
    _row("Google API", "AIza", r"AIza[\w-]{30,}+"),
    _row("Google access", "ya29.", r"ya29\.[\w-]{16,}+"),
    _row("Google OAuth client", "GOCSPX-", r"GOCSPX-[\w-]{20,}+"),
    _row("Google refresh", "1//0", r"1//0(?<![\w/]1//0)[\w-]{30,}+"),
    _row("Hugging Face", "hf_", r"hf_(?<![A-Za-z0-9]hf_)[A-Za-z0-9]{16,}+"),
    _row("npm", "npm_", r"npm_(?<![A-Za-z0-9]npm_)[A-Za-z0-9]{30,}+"),
    _row("PyPI", "pypi-AgEI", r"pypi-AgEI[\w-]{16,}+"),
    _row("JWT", "eyJ", r"eyJ(?<![\w-]eyJ)[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)?"),
    _row("Groq", "gsk_", r"gsk_(?<![A-Za-z0-9]gsk_)[A-Za-z0-9]{20,}+"),
    _row("xAI", "xai-", r"xai-(?<![A-Za-z0-9]xai-)[A-Za-z0-9]{20,}+"),
    _row("Perplexity", "pplx-", r"pplx-(?<![A-Za-z0-9]pplx-)[A-Za-z0-9]{20,}+"),
    _row("Replicate", "r8_", r"r8_(?<![A-Za-z0-9_]r8_)[A-Za-z0-9]{30,}+"),
    _row("Discord webhook", "/webhooks/", r"/api/(?:v\d{1,2}/)?webhooks/\d{10,20}/[\w-]{20,}+"),
    # The base64 of a number, of a moment, and a signature: no literal begins it.
    _row("Discord bot", ".", r"[MNO](?<![\w.-][MNO])[DTjz][A-Za-z0-9]{20,28}+\.[\w-]{6}\.[\w-]{27,}+"),
    _row("Telegram bot", ":AA", r"(?<![\w])\d{6,12}:AA[\w-]{30,}+"),
    _row("SendGrid", "SG.", r"SG\.(?<![A-Za-z0-9]SG\.)[\w-]{16,}+\.[\w-]{16,}+"),
    _row("Databricks", "dapi", r"dapi(?<![A-Za-z0-9]dapi)[0-9a-f]{32}+(?:-\d{1,2})?(?![A-Za-z0-9])"),
    _row("Vault", "hvs. hvb. hvr.", r"hv[sbr]\.(?<![A-Za-z0-9]hv[sbr]\.)[\w-]{20,}+"),
    _row("DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_(?<![A-Za-z0-9]do[opr]_v1_)[0-9a-f]{32,}+"),
    _row("Linear", "lin_api_ lin_oauth_", r"lin_(?<![A-Za-z0-9]lin_)(?:api|oauth)_[A-Za-z0-9]{20,}+"),
    _row("age", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{30,}+"),
    _row("Docker", "dckr_", r"dckr_(?<![A-Za-z0-9]dckr_)[po]at_[\w-]{16,}+"),
    _row("Supabase", "sbp_ sb_secret_", r"(?:sbp_(?<![A-Za-z0-9]sbp_)(?:v0_)?[0-9a-f]{32,}+|sb_secret_[\w-]{16,}+)"),
    _row("Netlify", "nfp_ nfc_ nfo_ nfu_ nfb_", r"nf[pcoub]_(?<![A-Za-z0-9]nf[pcoub]_)[A-Za-z0-9]{30,}+"),
    _row("Notion", "ntn_ secret_", r"(?:ntn_(?<![A-Za-z0-9]ntn_)|secret_(?<![\w]secret_))[A-Za-z0-9]{40,}+"),
)
# In short texts all signs at once are looked for, in long ones those whose rarest character is there: each is the faster there.
ANY_SIGN = re.compile("|".join(sorted(re.escape(sign) for shape in SHAPES for sign in shape.signs if sign != ".")))
BY_CHARACTER = {
    rare: [shape for shape in SHAPES if next((one for one in "_-./:" if all(one in sign for sign in shape.signs)), "") == rare]
    for rare in ("", *"_-./:")
}
LEAST_CHARS, LEAST_DOTTED_CHARS = 16, 56  # a shorter text holds none of these, or none with dots
CUT = "…"  # what ends so was cut off
REST = ("0aA1" * 16, ".0aA1" + "0aA1" * 16, "0" * 64, "A" * 64)  # how a secret that was cut off may have gone on

BEARER = re.compile(r"([Bb]earer[ \t]+)((?=[\w.~+/=-]{0,64}[0-9])[\w.~+/=-]{6,}+|[\w.~+/=-]{20,}+)", re.ASCII)
BASIC = re.compile(r"([Bb]asic[ \t]+)([A-Za-z0-9+/]{6,}+={0,2})")
# A password ends at the last @ before the path, and may hold others.
URL = re.compile(r"(://[^\s/:@?#\"']{0,200}+:)([^\s/?#\"'@]{1,500}(?:@[^\s/?#\"'@]{1,200}){0,4})(?=@)")
URL_USER = re.compile(r"(://)([\w-]{20,}+)(?=@)", re.ASCII)

# Options whose value is a password with some programs alone; of a pair `name:password` the name is kept.
WORD = r"\"[^\"\n]{0,1000}+\"?|'[^'\n]{0,1000}+'?|[^\s\"']{1,1000}+"
OPTIONS = {
    "curl": r"(?<!\S)(?:-[A-Za-z]{0,8}[uU]\s{0,8}|--(?:proxy-)?user(?:=|\s{1,8}))",
    "redis-cli": r"(?<!\S)-a\s{0,8}",
    "login": r"(?<!\S)-p\s{0,8}=?",  # docker login, podman login
    "sshpass": r"(?<!\S)-p\s{0,8}",
} | dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump"), r"(?<!\S)-p")
IN_CALL = {name: re.compile(rf"({option})({WORD})") for name, option in OPTIONS.items()}
# A call of such a program, up to the end of its line or the next command.
NAMES = "|".join(sorted(OPTIONS, key=len, reverse=True))
CALL = re.compile(
    rf"(?<![\w.-])(?:(?:docker|podman)[ \t]{{1,8}}(?=login)|(?!login))({NAMES})(?![\w.-])"
    r"(?:[^\n;|&]|&(?!&)){1,4096}+"
)
CALLED = ("curl", "redis-cli", " login", "mysql", "mariadb", "sshpass")
REFERRED = re.compile(r"[\"']?(?:\$|`|<|\*|%\w)")  # the text names a place for it


def hide_shapes(text: str, hide: Hide) -> str:
    """Return a text without all that has the shape of a secret."""
    if len(text) < LEAST_CHARS or (len(text) < LEAST_DOTTED_CHARS and ANY_SIGN.search(text) is None):
        return text
    for rare, shapes in BY_CHARACTER.items():
        if rare in text:
            for _, signs, pattern in shapes:
                for sign in signs:
                    if sign in text:
                        text = pattern.sub(lambda match: hide(match[0]), text)
                        break
    return text


def hide_carried(text: str, hide: Hide) -> str:
    """Return a text without the secrets of headers, addresses and calls of well-known programs."""

    def hide_rest(match: re.Match[str]) -> str:
        return match[1] + (MARK if match[2] == MARK else hide(match[2]))

    if "earer" in text:
        text = BEARER.sub(hide_rest, text)
    if "asic" in text:
        text = BASIC.sub(lambda match: hide_rest(match) if _is_basic(match[2]) else match[0], text)
    if "://" in text and "@" in text:
        text = URL_USER.sub(hide_rest, URL.sub(hide_rest, text))
    if " -" in text and any(name in text for name in CALLED):
        text = CALL.sub(lambda call: _hide_in_call(call, hide), text)
    return text


def _hide_in_call(call: re.Match[str], hide: Hide) -> str:
    def hide_value(match: re.Match[str]) -> str:
        return match[1] + hide_password(call[1], match[2], hide)

    return IN_CALL[call[1]].sub(hide_value, call[0])


def hide_password(program: str, value: str, hide: Hide) -> str:
    """Return the value of a program's password option without the password; of a pair, with its name."""
    quote = value[0] if value[:1] in ("'", '"') else ""
    end = quote if quote and len(value) > 1 and value.endswith(quote) else ""
    inner = value[len(quote) : len(value) - len(end)]
    if program == "curl":
        name, colon, password = inner.partition(":")
        if not colon or MARK in inner:
            return value
        # `-u TOKEN:` has no password: the name is the secret.
        shown = f"{name}:{_hidden(password, hide)}" if password else f"{_hidden(name, hide)}:"
        return f"{quote}{shown}{end}"
    return value if MARK in inner else f"{quote}{_hidden(inner, hide)}{end}"


def _hidden(word: str, hide: Hide) -> str:
    return hide(word) if word and not REFERRED.match(word) else word


def find_cut(text: str) -> int | None:
    """Return where a secret begins that the end of a text cut off; None if there is none."""
    last = max(text.rfind(" "), text.rfind("\n"), text.rfind('"'), text.rfind("'"), text.rfind("=")) + 1
    word = text[last:]
    for rest in REST:
        longer = word + rest
        for _, signs, pattern in SHAPES:
            if any(sign in longer for sign in signs):
                for match in pattern.finditer(longer):
                    if match.start() < len(word) < match.end():
                        return last + match.start()
    return None


def _is_basic(word: str) -> bool:
    """Say whether a word is user and password in base64, not just the next word."""
    try:
        return b":" in base64.b64decode(word, validate=True)
    except binascii.Error:
        return False
