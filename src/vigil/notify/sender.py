"""The sender: a process of its own that hands one notice to Apprise or to a webhook, and says what became of it.

Run by its path, isolated (`python -I`), with what to send as JSON on its standard input: no secret is in its arguments or its
environment, whatever hangs is ended with it, and the daemon never imports what this imports. Standard library and Apprise only.
"""

from __future__ import annotations

import json
import logging
import re
import ssl
import sys
import urllib.error
import urllib.request
from typing import Any

PASSING = frozenset({408, 421, 423, 425, 429})
ANSWER_BYTES = 4096
STATUS = re.compile(r"error[= ]+(\d{3})|\b(\d{3}) (?:error|status)|HTTP(?:/[\d.]+)? (\d{3})", re.IGNORECASE)
# Of SMTP: 4xx is for now, 5xx for good.
SMTP = re.compile(r"\(([45])\d\d, b?['\"]")

Answer = dict[str, Any]


def main() -> None:
    """Send what is asked for, and print the answer as JSON."""
    wanted = json.loads(sys.stdin.buffer.read())
    answer = by_webhook(wanted) if wanted["by"] == "webhook" else by_apprise(wanted)
    print(json.dumps(answer))


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A notice goes where it was sent, or nowhere: its signature and its content are for nobody else."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


def by_webhook(wanted: Answer) -> Answer:
    """Post a notice."""
    request = urllib.request.Request(wanted["url"], wanted["body"].encode(), wanted["headers"], method="POST")
    try:
        opener = urllib.request.build_opener(NoRedirects)
        with opener.open(request, timeout=wanted["timeout_s"]) as response:
            response.read(ANSWER_BYTES)
            return answer(True)
    except urllib.error.HTTPError as error:
        with error:
            words = " ".join(error.read(ANSWER_BYTES).decode("utf-8", "replace").split())[:80]
        permanent = error.code < 500 and error.code not in PASSING
        return answer(False, f"HTTP {error.code} {error.reason}" + (f": {words}" if words else ""), permanent)
    except urllib.error.URLError as error:
        # Raised while connecting and sending: nobody has read all of it.
        certificate = isinstance(error.reason, ssl.SSLCertVerificationError)
        return answer(False, str(error.reason), permanent=certificate)
    except (TimeoutError, ConnectionError) as error:
        return answer(False, f"no answer: {str(error) or type(error).__name__}", unsure=True)
    except ValueError as error:
        return answer(False, f"not a URL that can be posted to: {type(error).__name__}", permanent=True)


def by_apprise(wanted: Answer) -> Answer:
    """Hand a notice to every URL of a route; it is delivered when all took it."""
    try:
        import apprise
    except ImportError as error:
        return answer(False, f"Apprise cannot be imported: {error}", permanent=True)
    apprise.URLBase.socket_read_timeout = apprise.URLBase.socket_connect_timeout = wanted["timeout_s"]
    heard: list[logging.LogRecord] = []
    logger = logging.getLogger("apprise")
    logger.addHandler(Listener(heard))
    logger.setLevel(logging.DEBUG)
    sender = apprise.Apprise()
    for url in wanted["urls"]:
        if not sender.add(url):
            return answer(False, "Apprise does not understand this URL", permanent=True)
    if wanted.get("check"):
        return answer(True)
    try:
        sent = sender.notify(wanted["text"], title=wanted["title"], notify_type=wanted["type"], body_format="text")
    except Exception as error:  # a fault of one of a hundred plugins
        return answer(False, f"{type(error).__name__}: {error}")
    return answer(True) if sent else _refused(heard)


class Listener(logging.Handler):
    """Remembers what Apprise says: it tells nobody else why something failed."""

    def __init__(self, heard: list[logging.LogRecord]) -> None:
        super().__init__()
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        """Remember a line."""
        self._heard.append(record)


def _refused(heard: list[logging.LogRecord]) -> Answer:
    """Return why something failed: its warnings say what, and whether for good; what is said below them may be the message."""
    telling = [record.getMessage() for record in heard if record.levelno >= logging.WARNING]
    below = [line for record in heard if "exception" in (line := record.getMessage()).lower()[:40]]
    words = "; ".join(dict.fromkeys(" ".join(line.split()) for line in [*telling[:2], *below[:1]])) or "Apprise gave no reason"
    codes = [int(code) for line in telling for found in STATUS.findall(line) for code in found if code]
    replies = [first for line in (*telling, *below) for first in SMTP.findall(line)]
    permanent = any(400 <= code < 500 and code not in PASSING for code in codes) or "5" in replies
    unsure = any("timed out" in line.lower() and "connect" not in line.lower() for line in below)
    return answer(False, words, permanent, unsure)


def answer(ok: bool, why: str = "", permanent: bool = False, unsure: bool = False) -> Answer:
    """Return what became of it."""
    return {"ok": ok, "why": why, "permanent": permanent, "unsure": unsure}


if __name__ == "__main__":
    main()
