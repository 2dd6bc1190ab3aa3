"""Redaction: commands, environments and texts without their secrets; a mark stands in their place.

We know a secret by its name, by its shape or, once met in a command or an environment, by its value. Names decide boldly
in a command, where hiding too much costs nothing, and with care in texts, which people read. Pure but for one look at
the disk: whether a value is a folder.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus, unquote

MARK = "[redacted]"
SHORTEST = 6  # a shorter value occurs in too many words
LONGEST = 1 << 14  # we hide a longer one where it is named, and search for it nowhere else
SHORTEST_LINE = 16  # of a value of several lines, we also search for each line this long

# A name's words: `--api-key`, `API_KEY`, `apiKey` and `api.key` are all api and key.
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
SECRET = re.compile(
    r"keys?|tokens?|pwd|creds?|o?auth|cookies?|dsn|private|pat|bearer|jwt"
    r"|.*(?:secret|password|passwd|passphrase|credential|authorization|token|(?:api|access|private|auth|ssh)key)s?"
)
PASSWORDS = re.compile(r"(?i).*(?:pass|pwd|secret|cred)")  # under such a name a number is a secret, not a count
LAST = frozenset({"pass"})  # means a secret only as the last word: not in --pass-through
# A name with such an end describes a secret, and does not hold one.
ABOUT = re.compile(
    r"sock(?:et)?|files?|path|dir|folder|host|port|ur[il]|jar|type|method|mode|scheme|algorithm|format|helper|provider|id"
    r"|(?:user)?name|user|ttl|timeout|expiry|expires|limit|count|size|length|budget"
)
NO_SECRETS = frozenset({"PWD", "OLDPWD", "--private"})
PLAIN_NAMES = frozenset({"key", "keys", "auth", "private", "pass", "pwd", "tokens"})  # in texts these are ordinary words

# Words that are never a secret, and more that we never search for in texts.
CHOICE = re.compile(r"(?i)true|false|none|null|nil|yes|no|on|off|auto|default|basic|bearer|token|(?:dis|en)abled|undefined")
COMMON = re.compile(r"(?i)passwords?|secrets?|required|optional|localhost|postgres|production|development")
NUMBER = re.compile(r"[-+]?[\d._,]+[kKmMgG]?")
# Placeholders of a value in texts and scripts: $NAME, ${NAME}, $(command, <name>, ***.
REFERENCE = re.compile(r"\"?(?:\$\{?\w*\}?|\$\(.*|`.*|%\w+%|<[^<>]*>|\*+|\.+|x{3,})[\",.)]*", re.DOTALL)

OPTION = re.compile(r"--?[A-Za-z][\w.-]{0,199}")
FLAG = re.compile(r"--[A-Za-z].*|-[A-Za-z]", re.DOTALL)
ASSIGNED = re.compile(r"(-{0,2}[A-Za-z_][\w.-]{0,199})=(.*)", re.DOTALL)
ASSIGNED_DEPTH = 3
HEADER = re.compile(r"([\w.-]+)(\s*:\s*)(.*)", re.DOTALL)
HEADER_OPTIONS = frozenset({"-H", "--header", "--proxy-header"})
SCRIPT_OPTION = re.compile(r"-[A-Za-z]*c")  # of a shell: a script follows
P_IS_PASSWORD = frozenset({"mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump", "sshpass"})


def redact_command(words: Sequence[str]) -> list[str]:
    """Return a command as it may be shown: word for word, without its secrets."""
    return list(_command(tuple(words)))


def secrets_of(command: Sequence[str], env: Mapping[str, str]) -> frozenset[str]:
    """Return the secrets in a command and its environment, without those too short or too common to find."""
    found: list[str] = []
    _redact_words(command, found)
    for name, value in env.items():
        if _is_secret(name, value):
            found.append(value)
        _redact_text(value, found, script=False)
    values = {form.strip() for value in found for form in (value, unquote(value))}
    return frozenset(value for value in values if _is_telling(value))


class Redactor:
    """Hides the given secrets in every form, and whatever has the shape or the name of a secret."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if _is_telling(secret) for form in _forms_of(secret)}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return _redact_text(self.known(text), [], script=False)

    def known(self, text: str) -> str:
        """Return a text without the given secrets only."""
        present = [form for form in self._forms if form in text]  # far cheaper than a pattern of hundreds of forms
        # The mark matches first: no form that is part of it is replaced inside it.
        return re.sub("|".join(map(re.escape, [MARK, *present])), MARK, text) if present else text

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets in its texts and under secret names."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self._named(key, below) for key, below in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(below) for below in value]
        return value

    def _named(self, name: object, value: Any) -> Any:
        if isinstance(name, str) and isinstance(value, str) and name.lower() not in PLAIN_NAMES and _is_secret(name, value):
            return MARK
        if name in ("command", "argv") and isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
            return [self.text(word) for word in redact_command(value)]
        return self.value(value)


@lru_cache(maxsize=256)  # lists of sessions repeat the same commands
def _command(words: tuple[str, ...]) -> tuple[str, ...]:
    found: list[str] = []
    shown = _redact_words(words, found)
    return tuple(map(Redactor(found).known, shown))  # a secret in one word may stand in others too


def _redact_words(words: Sequence[str], found: list[str]) -> list[str]:
    """Return a command's words without secrets, and add these to `found`."""
    shown: list[str] = []
    before = program = ""
    for word in words:
        shown.append(_redact_word(before, program, word, found))
        if (name := os.path.basename(word)) in P_IS_PASSWORD:
            program = name
        before = word if shown[-1] == word else ""  # a word with its own secret does not name the next one
    return shown


def _redact_word(before: str, program: str, word: str, found: list[str]) -> str:
    """Return one word of a command without secrets; `program` is the one whose -p is a password."""
    if OPTION.fullmatch(before) and not FLAG.fullmatch(word) and _is_secret(before, word):
        return _hide(word, found)
    if program == "sshpass" and before == "-p":
        return _hide(word, found)
    if program and word.startswith("-p") and len(word) > 2:
        return "-p" + _hide(word[2:], found)
    if SCRIPT_OPTION.fullmatch(before):
        return _redact_text(word, found, script=True)
    if before in HEADER_OPTIONS and (match := HEADER.fullmatch(word)) and _is_secret(match[1], match[3]):
        scheme = SCHEME.match(match[3])
        kept = scheme[0] if scheme else ""
        return f"{match[1]}{match[2]}{kept}{_hide(match[3][len(kept) :], found)}"
    return _redact_assigned(word, found)


def _redact_assigned(word: str, found: list[str]) -> str:
    """Return a word without a secret that takes up its rest: `A=value`, `--env=A=value`."""
    kept, rest = "", word
    for _ in range(ASSIGNED_DEPTH):
        match = ASSIGNED.fullmatch(rest)
        if match is None:
            break
        kept, rest = f"{kept}{match[1]}=", match[2]
        if _is_secret(match[1], rest):
            return kept + _hide(rest, found)
    return _redact_text(word, found, script=False)


def _hide(value: str, found: list[str]) -> str:
    found.append(value)
    return MARK


# Names


def _is_secret(name: str, value: str) -> bool:
    """Say whether the value under a name is a secret."""
    return _speaks_of_a_secret(name) and not _is_trivial(name, value)


@lru_cache(maxsize=4096)
def _speaks_of_a_secret(name: str) -> bool:
    if name in NO_SECRETS:
        return False
    words = [word.lower() for word in WORD.findall(name)]
    if not words or ABOUT.fullmatch(words[-1]):
        return False
    return words[-1] in LAST or any(map(SECRET.fullmatch, words))


def _is_trivial(name: str, value: str) -> bool:
    """Say whether a value needs no hiding: empty, a word of a choice, a count."""
    value = value.strip().strip("\"'")
    if not value or value == MARK or CHOICE.fullmatch(value):
        return True
    return NUMBER.fullmatch(value) is not None and not PASSWORDS.match(name)


def _is_telling(value: str) -> bool:
    """Say whether we can search texts for a value and keep them readable."""
    if (
        not SHORTEST <= len(value) <= LONGEST
        or CHOICE.fullmatch(value)
        or COMMON.fullmatch(value)
        or value in MARK
        or MARK in value
    ):
        return False
    return not (value.startswith(("/", "~/")) and os.path.isdir(os.path.expanduser(value)))


# Values


def _forms_of(secret: str) -> Iterator[str]:
    """Yield a secret's possible forms in a text: plain, JSON, URL, base64, and single lines."""
    data = secret.encode("utf-8", "backslashreplace")
    yield from (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield from (quote(data), quote(data, safe=""), quote_plus(data))
    for standard in _base64_forms(data):
        yield from (standard, standard.translate(URL_SAFE))
    yield from (line.strip() for line in secret.splitlines() if len(line.strip()) >= SHORTEST_LINE)


URL_SAFE = str.maketrans("+/", "-_")


def _base64_forms(data: bytes) -> Iterator[str]:
    """Yield the base64 of a value that stands alone, or anywhere inside a longer one."""
    yield base64.b64encode(data).decode()
    for before in range(3):
        whole = base64.b64encode(bytes(before) + data).decode()
        first, last = (0, 2, 3)[before], (before + len(data)) * 8 // 6  # the characters between depend on this value alone
        if last - first >= SHORTEST:
            yield whole[first:last]


# Texts

# Each begins with what is rare, which makes it fast, then looks behind that: `sk-` counts, `task-` does not. Long parts are
# possessive (+ after the count), so that a search passes them once.
SHAPES = tuple(
    re.compile(pattern, re.ASCII)
    for pattern in (
        # PEM, also cut off or on one line with \n
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,16384}+"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
        r"sk-(?<![A-Za-z0-9]sk-)(?:(?=[\w-]{0,64}[0-9])[\w-]{16,}+|[\w-]{24,}+)",  # OpenAI, Anthropic and many others
        r"sk_(?<![A-Za-z0-9]sk_)(?:live|test)_\w{8,}+",  # Stripe
        r"gh(?<![A-Za-z0-9]gh)[pousr]_\w{16,}+",  # GitHub
        r"github_pat_\w{16,}+",
        r"glpat-[\w-]{16,}+",
        r"xox(?<![A-Za-z0-9]xox)[abeoprs]-[\w-]{10,}+",  # Slack
        r"hooks\.slack\.com/services/[\w/]{16,}+",
        r"AKIA(?<![A-Za-z0-9]AKIA)[A-Z0-9]{16}+(?![A-Za-z0-9])",  # AWS
        r"ASIA(?<![A-Za-z0-9]ASIA)[A-Z0-9]{16}+(?![A-Za-z0-9])",
        r"AIza[\w-]{30,}+",  # Google
        r"ya29\.[\w-]{16,}+",
        r"hf_(?<![A-Za-z0-9]hf_)[A-Za-z0-9]{16,}+",  # Hugging Face
        r"npm_(?<![A-Za-z0-9]npm_)[A-Za-z0-9]{30,}+",
        r"pypi-AgEI[\w-]{16,}+",
        r"eyJ(?<![\w-]eyJ)[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)?",  # JWT
    )
)
BEARER = re.compile(r"([Bb]earer[ \t]+)((?=[\w.~+/=-]{0,64}[0-9])[\w.~+/=-]{6,}+|[\w.~+/=-]{20,}+)", re.ASCII)
BASIC = re.compile(r"([Bb]asic[ \t]+)([A-Za-z0-9+/]{6,}+={0,2})")
# A password ends at the last @ before the path, and may hold others.
URL = re.compile(r"(://[^\s/:@?#\"']{0,200}+:)([^\s/?#\"'@]{1,500}(?:@[^\s/?#\"'@]{1,200}){0,4})(?=@)")
URL_USER = re.compile(r"(://)([\w-]{20,}+)(?=@)", re.ASCII)
SCHEME = re.compile(r"(?i:basic|bearer|token|digest|apikey|negotiate)[ \t]+")

# A name, and what separates it from its value: = or, in JSON and headers, a colon.
NAMED = re.compile(
    r"(?<![\w.-])(?P<name>-{0,2}[A-Za-z_][\w.-]{0,80}+)"
    r"(?:(?P<equals>=(?!=)|[ \t]{1,4}=[ \t]{0,4}(?=[\"']))"
    r"|(?P<field>\\?[\"']\s{0,8}:\s{0,8}(?=\\?[\"']))"
    r"|(?P<header>:[ \t]{0,8}))",
    re.ASCII,
)
IN_SCRIPT = re.compile(r"(?<![\w.-])(?P<name>--?[A-Za-z][\w.-]{0,80}+)(?P<equals>[ \t]++)(?!--?[A-Za-z])", re.ASCII)
VALUE = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'[^']*+'|\\[\"'](?:[^\"'\\]|\\(?![\"']))*+|[\"']?[^\s\"'&;|\\]++", re.DOTALL)
SCRIPT_VALUE = re.compile(r"(?:\"(?:[^\"\\]|\\.)*+\"|'[^']*+'|\\.|[^\s\"'\\&;|<>()]|[\"'][^\n]*+)++", re.DOTALL)
QUOTED = re.compile(r"(\\?[\"'])((?:\\.|(?!\1)[^\\])*+)(\1?)", re.DOTALL)
HEADER_VALUE = re.compile(r"[^\"'\r\n]++")
PIECES_CHARACTERS = 4096  # shlex is quadratic
HEADERS = frozenset({"authorization", "cookie"})


def _redact_text(text: str, found: list[str], script: bool) -> str:
    """Return a text without whatever has a secret's shape or name, and add these to `found`."""

    def hide(match: re.Match[str]) -> str:
        return _hide(match[0], found)

    def hide_rest(match: re.Match[str]) -> str:
        return match[1] + (MARK if match[2] == MARK else _hide(match[2], found))

    for shape in SHAPES:
        text = shape.sub(hide, text)
    if "earer" in text:
        text = BEARER.sub(hide_rest, text)
    if "asic" in text:
        text = BASIC.sub(lambda match: hide_rest(match) if _is_basic(match[2]) else match[0], text)
    if "://" in text and "@" in text:
        text = URL_USER.sub(hide_rest, URL.sub(hide_rest, text))
    if script:
        text = _redact_named(IN_SCRIPT, SCRIPT_VALUE, text, found)
    return _redact_named(NAMED, SCRIPT_VALUE if script else VALUE, text, found)


def _is_basic(word: str) -> bool:
    """Say whether a word is user and password in base64, not just the next word."""
    try:
        return b":" in base64.b64decode(word, validate=True)
    except binascii.Error:
        return False


def _redact_named(named: re.Pattern[str], value: re.Pattern[str], text: str, found: list[str]) -> str:
    """Hide the values of secret names; search other values for names in turn."""
    parts: list[str] = []
    done = start = 0
    while (match := named.search(text, start)) is not None:
        start = match.end()
        if not _counts(match):
            continue
        is_header = match.lastgroup == "header"
        if is_header and (scheme := SCHEME.match(text, start)):
            start = scheme.end()
        stands = (HEADER_VALUE if is_header else value).match(text, start)
        if stands and not REFERENCE.fullmatch(stands[0]) and not _is_trivial(match["name"], stands[0]):
            parts += (text[done:start], _hide_quoted(stands[0], found))
            done = start = stands.end()
    return "".join([*parts, text[done:]])


def _counts(match: re.Match[str]) -> bool:
    """Say whether a name in a text means a secret in this place."""
    name = match["name"]
    if name in PLAIN_NAMES or not _speaks_of_a_secret(name):
        return False
    # `token: unexpected end` is a sentence, `X-Auth-Token: abc` a header, `--token: what for` a manual.
    return match.lastgroup != "header" or (name[0] != "-" and ("-" in name or name.lower() in HEADERS))


def _hide_quoted(value: str, found: list[str]) -> str:
    """Hide a value, and keep the quotes around it."""
    match = QUOTED.fullmatch(value)
    if match is not None:
        return match[1] + _hide(match[2], found) + match[3]
    if len(value) <= PIECES_CHARACTERS:
        try:
            found += shlex.split(value)  # pieces of a script, some of them quoted
        except ValueError:
            pass  # an unclosed quote
    return _hide(value, found)
