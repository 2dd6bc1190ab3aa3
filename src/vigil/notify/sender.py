"""The sender: a process of its own that hands one notice to Apprise or to a webhook, and says what became of it.

Run by its path, isolated (`python -I`), with what to send as JSON on its standard input: no secret is in its arguments or its
environment, whatever hangs is ended with it, and the daemon never imports what this imports. Standard library and Apprise only.
"""

from __future__ import annotations

import io
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
SMTP = re.compile(r"\((\d)(\d\d), b?['\"]|\b([45])\d\d [0-9]\.[0-9]\.[0-9]")

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
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    logger = logging.getLogger("apprise")
    logger.addHandler(handler)
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
    return answer(True) if sent else _refused(heard.getvalue().splitlines())


def _refused(lines: list[str]) -> Answer:
    """Return what Apprise's own log says of a failure: it tells nobody else."""
    telling = [line for line in lines if re.search(r"(?i)fail|error|exception|refused|timed? ?out|unable|denied|invalid", line)]
    words = "; ".join(dict.fromkeys(line.strip() for line in telling[:3])) or "Apprise gave no reason"
    codes = [int(code) for line in telling for found in STATUS.findall(line) for code in found if code]
    replies = [first for line in telling for found in SMTP.findall(line) for first in found[:1] if first]
    permanent = any(400 <= code < 500 and code not in PASSING for code in codes) or "5" in replies
    unsure = any("timed out" in line.lower() and "connect" not in line.lower() for line in telling)
    return answer(False, words, permanent, unsure)


def answer(ok: bool, why: str = "", permanent: bool = False, unsure: bool = False) -> Answer:
    """Return what became of it."""
    return {"ok": ok, "why": why, "permanent": permanent, "unsure": unsure}


if __name__ == "__main__":
    main()
