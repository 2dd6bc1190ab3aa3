"""Names of secrets: which variables, options and fields hold one, and which values under such a name are none."""

from __future__ import annotations

import re
from functools import lru_cache

MARK = "[redacted]"

# A name's words: `--api-key`, `API_KEY`, `apiKey` and `api.key` are all api and key.
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
SECRET = re.compile(
    r"keys?|tokens?|pwd|creds?|o?auth|cookies?|dsn|private|pat|bearer|jwt|otp|mnemonic"
    r"|.*(?:secret|password|passwd|passphrase|passcode|credential|authorization|token|(?:api|access|private|auth|ssh)key)s?"
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
COMMON = re.compile(
    r"(?i)passwords?|secrets?|required|optional|localhost|postgres|mysql|redis|minioadmin|vagrant|docker|github|gitlab|google"
    r"|production|development|staging|testing|example|changeme|administrator|anonymous|username|session|running|failed"
    r"|anthropic|openai|claude|gemini|opencode"
)
NUMBER = re.compile(r"[-+]?[\d._,]+[kKmMgG]?")


def is_secret(name: str, value: str) -> bool:
    """Say whether the value under a name is a secret."""
    return speaks_of_a_secret(name) and not is_trivial(name, value)


@lru_cache(maxsize=4096)
def speaks_of_a_secret(name: str) -> bool:
    """Say whether what has this name is a secret."""
    if name in NO_SECRETS:
        return False
    words = [word.lower() for word in WORD.findall(name)]
    if not words or ABOUT.fullmatch(words[-1]):
        return False
    return words[-1] in LAST or any(map(SECRET.fullmatch, words))


def is_trivial(name: str, value: str) -> bool:
    """Say whether a value needs no hiding: empty, a word of a choice, a count."""
    value = value.strip().strip("\"'")
    if not value or value == MARK or CHOICE.fullmatch(value):
        return True
    return NUMBER.fullmatch(value) is not None and not PASSWORDS.match(name)
