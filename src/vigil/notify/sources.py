"""Where a secret stands: `env:NAME`, `file:/path`, or the text itself; read for each notice, never shown."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

LARGEST_BYTES = 1 << 16
MARK = "[hidden]"
SHORTEST = 4  # a shorter part of a URL occurs in too many words
PARTS = re.compile(r"[/?&=;,:@#\s]+")


class NoSecret(Exception):
    """A secret is not where it should be; the message names the place, not its content."""


def read_source(source: str) -> str:
    """Return the text behind a source, stripped; raise NoSecret if there is none."""
    if source.startswith("env:"):
        name = source.removeprefix("env:")
        found = os.environ.get(name, "").strip()
        if not found:
            raise NoSecret(f"{name} is not set in the daemon's environment")
        return found
    if source.startswith("file:"):
        return _read_file(os.path.expanduser(source.removeprefix("file:")))
    return source.strip()


def _read_file(path: str) -> str:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NoSecret(f"{path} is no regular file")
            found = file.read(LARGEST_BYTES).decode("utf-8", "replace").strip()
    except OSError as error:
        raise NoSecret(f"{path} cannot be read: {error.strerror}") from None
    if not found:
        raise NoSecret(f"{path} is empty")
    return found


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without blank ones and comments: a file may hold several URLs."""
    return [line for raw in text.splitlines() if (line := raw.strip()) and not line.startswith("#")]


def hide(text: str, secrets: list[str]) -> str:
    """Return a text without the secrets and without the parts of their URLs; a host may stay."""
    parts = {part for secret in secrets for part in _parts(secret)}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, MARK)
    return text


def _parts(secret: str) -> Iterator[str]:
    yield secret
    if "://" not in secret:
        return
    try:
        url = urlsplit(secret)
        host = url.hostname or ""
    except ValueError:
        host = ""
    for form in (secret, unquote(secret)):
        rest = form.partition("://")[2]
        yield rest
        for part in PARTS.split(rest):
            # A name with a dot is a host; a token in its place has none.
            if len(part) >= SHORTEST and not (part.lower() == host.lower() and ("." in host or host == "localhost")):
                yield part
