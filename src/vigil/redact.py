"""Redaction: commands, environments and texts without their secrets; a mark stands in their place.

We know a secret by its name, by its shape or, once met in a command or an environment, by its value. Names decide boldly
in a command, where hiding too much costs nothing, and with care in texts, which people read. Pure but for one look at
the disk: whether a value is a folder.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from vigil.secret_names import CHOICE, COMMON, PLAIN_NAMES, is_secret, is_trivial, speaks_of_a_secret
from vigil.secret_names import MARK as HIDDEN
from vigil.secret_shapes import CUT, OPTIONS, find_cut, hide_carried, hide_password, hide_shapes
from vigil.text import one_line

MARK = HIDDEN
SHORTEST = 6  # a shorter value occurs in too many words
LONGEST = 1 << 14  # we hide a longer one where it is named, and search for it nowhere else
SHORTEST_LINE = 16  # of a value of several lines, we also search for each line this long
SHORTEST_CUT = 4  # of a value that the end of a text cut off, so much is hidden
MOST_SECRETS = 4096  # that one redactor knows; beyond them it forgets the oldest
NAME_CHARS, NAMES_KEPT = 64, 256  # names of tools and hooks come again and again

# Placeholders of a value in texts and scripts: $NAME, ${NAME}, <name>, ***.
REFERENCE = re.compile(r"\"?(?:\$\{?\w*\}?|%\w+%|<[^<>]*>|\*++|\.++|x{3,})[\",.)]*+")

OPTION = re.compile(r"--?[A-Za-z][\w.-]{0,199}")
FLAG = re.compile(r"--[A-Za-z].*|-[A-Za-z]", re.DOTALL)
ASSIGNED = re.compile(r"(-{0,2}[A-Za-z_][\w.-]{0,199})=(.*)", re.DOTALL)
ASSIGNED_DEPTH = 3
HEADER = re.compile(r"([\w.-]+)(\s*:\s*)(.*)", re.DOTALL)
HEADER_OPTIONS = frozenset({"-H", "--header", "--proxy-header"})
SCRIPT_OPTION = re.compile(r"-[A-Za-z]*c")  # of a shell: a script follows
PASSWORD_OPTION = {name: re.compile(option) for name, option in OPTIONS.items()}


def redact_command(words: Sequence[str]) -> list[str]:
    """Return a command as it may be shown: word for word, without its secrets."""
    return list(_command(tuple(words)))


def secrets_of(command: Sequence[str], env: Mapping[str, str]) -> frozenset[str]:
    """Return the secrets in a command and its environment, without those too short or too common to find."""
    found: list[str] = []
    _redact_words(command, found)
    for name, value in env.items():
        found += _variable(name, value)
    values = {form.strip() for value in found for form in (value, unquote(value))}
    return frozenset(value for value in values if _is_telling(value))


@lru_cache(maxsize=4096)  # most sessions have most of their environment in common
def _variable(name: str, value: str) -> tuple[str, ...]:
    found = [value] if is_secret(name, value) else []
    _redact_text(value, found, script=False)
    return tuple(found)


class Redactor:
    """Hides the given secrets in every form, and whatever has the shape or the name of a secret."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: dict[str, None] = {}
        self._forms: tuple[str, ...] = ()
        self._names: dict[str, str] = {}  # short texts, as they are shown
        self.lessons = 0  # how often it learned more
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Hide more secrets from now on."""
        new = [secret for secret in secrets if secret not in self._secrets and _is_telling(secret)]
        if not new:
            return
        self._secrets |= dict.fromkeys(new)
        for secret in list(self._secrets)[: max(0, len(self._secrets) - MOST_SECRETS)]:
            del self._secrets[secret]
        forms = {form for secret in self._secrets for form in _forms_of(secret) if len(form) >= SHORTEST}
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))
        self._names = {}
        self.lessons += 1

    def text(self, text: str) -> str:
        """Return a text without secrets, also without the beginning of one that its end cut off."""
        if len(text) > NAME_CHARS:
            return self._text(text)
        if (shown := self._names.get(text)) is None:
            if len(self._names) >= NAMES_KEPT:
                self._names = {}
            shown = self._names[text] = self._text(text)
        return shown

    def _text(self, text: str) -> str:
        text = _redact_text(self.known(text), [], script=False)
        return self.uncut(text) if text.endswith(CUT) else text

    def uncut(self, text: str) -> str:
        """Return a text that was cut off without the beginning of a secret at its end."""
        body = text.removesuffix(CUT)
        found = [at for at in (find_cut(body), self._find_cut(body)) if at is not None]
        return f"{body[: min(found)]}{MARK}" if found and not body.endswith(MARK) else text

    def _find_cut(self, text: str) -> int | None:
        for form in self._forms:
            at = text.find(form[:SHORTEST_CUT], max(0, len(text) - len(form) + 1))
            while at >= 0:
                if form.startswith(text[at:]):
                    return at
                at = text.find(form[:SHORTEST_CUT], at + 1)
        return None

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
        if isinstance(name, str) and isinstance(value, str) and name.lower() not in PLAIN_NAMES and is_secret(name, value):
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
        if (name := os.path.basename(word)) in OPTIONS and (name != "login" or before.endswith(("docker", "podman"))):
            program = name
        before = word if shown[-1] == word else ""  # a word with its own secret does not name the next one
    return shown


def _redact_word(before: str, program: str, word: str, found: list[str]) -> str:
    """Return one word of a command without secrets; `program` is one with password options of its own."""
    if OPTION.fullmatch(before) and not FLAG.fullmatch(word) and is_secret(before, word):
        return _hide(word, found)
    if program and (shown := _redact_password(before, program, word, found)) != word:
        return shown
    if SCRIPT_OPTION.fullmatch(before):
        return _redact_text(word, found, script=True)
    if before in HEADER_OPTIONS and (match := HEADER.fullmatch(word)) and is_secret(match[1], match[3]):
        scheme = SCHEME.match(match[3])
        kept = scheme[0] if scheme else ""
        return f"{match[1]}{match[2]}{kept}{_hide(match[3][len(kept) :], found)}"
    return _redact_assigned(word, found)


def _redact_password(before: str, program: str, word: str, found: list[str]) -> str:
    """Return a word without the password that a program's own option gives, in this word or the one before."""

    def hide(secret: str) -> str:
        return _hide(secret, found)

    option = PASSWORD_OPTION[program]
    if not program.startswith(("mysql", "mariadb")) and option.fullmatch(f"{before} ") and not FLAG.fullmatch(word):
        return hide_password(program, word, hide)
    match = option.match(word)
    return word if match is None or match.end() == len(word) else match[0] + hide_password(program, word[match.end() :], hide)


def _redact_assigned(word: str, found: list[str]) -> str:
    """Return a word without a secret that takes up its rest: `A=value`, `--env=A=value`."""
    kept, rest = "", word
    for _ in range(ASSIGNED_DEPTH):
        match = ASSIGNED.fullmatch(rest)
        if match is None:
            break
        kept, rest = f"{kept}{match[1]}=", match[2]
        if is_secret(match[1], rest):
            return kept + _hide(rest, found)
    return _redact_text(word, found, script=False)


def _hide(value: str, found: list[str]) -> str:
    found.append(value)
    return MARK


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
    yield from (secret, one_line(secret), json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
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
# The rest of a text may be such a value: to match all of it at each name would take the square of its length.
COMMAND_VALUE = re.compile(r"\"?(?:\$\(|`)")
PIECES_CHARACTERS = 4096  # shlex is quadratic
HEADERS = frozenset({"authorization", "cookie"})


def _redact_text(text: str, found: list[str], script: bool) -> str:
    """Return a text without whatever has a secret's shape or name, and add these to `found`."""

    def hide(secret: str) -> str:
        return _hide(secret, found)

    text = hide_carried(hide_shapes(text, hide), hide)
    if script:
        text = _redact_named(IN_SCRIPT, SCRIPT_VALUE, text, found)
    if "=" in text or ":" in text:
        text = _redact_named(NAMED, SCRIPT_VALUE if script else VALUE, text, found)
    return text


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
        if COMMAND_VALUE.match(text, start):
            continue
        stands = (HEADER_VALUE if is_header else value).match(text, start)
        if stands and not REFERENCE.fullmatch(stands[0]) and not is_trivial(match["name"], stands[0]):
            parts += (text[done:start], _hide_quoted(stands[0], found))
            done = start = stands.end()
    return "".join([*parts, text[done:]])


def _counts(match: re.Match[str]) -> bool:
    """Say whether a name in a text means a secret in this place."""
    name = match["name"]
    if name in PLAIN_NAMES or not speaks_of_a_secret(name):
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
