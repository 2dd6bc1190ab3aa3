"""The sender: a process that hands one notice to Apprise or to a webhook, and says what became of it.

The daemon runs it by path, isolated (`python -I`), with its order as JSON on standard input: arguments and environment
hold no secret, what hangs ends with it, and the daemon imports none of this. Standard library and Apprise only."""

from __future__ import annotations

import base64
import http.client
import json
import logging
import os
import re
import ssl
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from contextvars import ContextVar
from typing import Any

PASSING = frozenset({408, 421, 423, 425, 429})
ANSWER_BYTES = 4096
REDIRECTED = "Exceeded 0 redirects"
STATUS = re.compile(r"error[= ]+(\d{3})|\b(\d{3}) (?:error|status)|HTTP(?:/[\d.]+)? (\d{3})", re.IGNORECASE)
# In SMTP, 4xx is for now, 5xx for good.
SMTP = re.compile(r"\(([45])\d\d, b?['\"]")

Answer = dict[str, Any]
Heard = list[tuple[int, logging.LogRecord]]  # which URL it was about, and the log record
SPEAKER: ContextVar[int] = ContextVar("speaker", default=-1)


def main() -> None:
    """Carry out the order, and print the answer as JSON."""
    wanted = json.loads(sys.stdin.buffer.read())
    answer = by_webhook(wanted) if wanted["by"] == "webhook" else by_apprise(wanted)
    print(json.dumps(answer), flush=True)
    os._exit(0)  # does not wait for threads that hang


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a notice's signature and content are for its own address only."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


def by_webhook(wanted: Answer) -> Answer:
    """Post a notice."""
    try:
        url, login = _apart(wanted["url"])
        request = urllib.request.Request(url, wanted["body"].encode(), {**wanted["headers"], **login}, method="POST")
        opener = urllib.request.build_opener(NoRedirects)
        with opener.open(request, timeout=wanted["timeout_s"]):
            return answer(True)  # the status is the receipt; the rest of the answer does not count
    except urllib.error.HTTPError as error:
        with error:
            words = " ".join(error.read(ANSWER_BYTES).decode("utf-8", "replace").split())[:80]
        permanent = error.code < 500 and error.code not in PASSING
        return answer(False, f"HTTP {error.code} {error.reason}" + (f": {words}" if words else ""), permanent)
    except urllib.error.URLError as error:
        # Raised while connecting and sending: the other side has not read all of it.
        certificate = isinstance(error.reason, ssl.SSLCertVerificationError)
        return answer(False, str(error.reason), permanent=certificate)
    except (ValueError, http.client.InvalidURL) as error:
        return answer(False, f"not a URL that can be posted to: {type(error).__name__}", permanent=True)
    except (TimeoutError, ConnectionError, http.client.HTTPException) as error:
        return answer(False, f"no answer: {str(error) or type(error).__name__}", unsure=True)


def _apart(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL without its name and password, and the header that holds them."""
    parts = urllib.parse.urlsplit(url)
    who, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    name, _, password = who.partition(":")
    said = f"{urllib.parse.unquote(name)}:{urllib.parse.unquote(password)}".encode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {base64.b64encode(said).decode('ascii')}"}


def by_apprise(wanted: Answer) -> Answer:
    """Hand a notice to all URLs of a route; delivered only when all took it."""
    try:
        import apprise
    except ImportError as error:
        return answer(False, f"Apprise cannot be imported: {error}", permanent=True)
    _follow_no_redirects()
    apprise.URLBase.socket_read_timeout = apprise.URLBase.socket_connect_timeout = wanted["timeout_s"]
    heard: Heard = []
    logger = logging.getLogger("apprise")
    logger.addHandler(Listener(heard))
    logger.setLevel(logging.DEBUG)
    answers: list[Answer | None] = [None] * len(wanted["urls"])

    def tell(number: int) -> None:
        SPEAKER.set(number)
        asset = apprise.AppriseAsset(async_mode=False)  # sends in this context, so that SPEAKER tells whose record it is
        found = _by_url(apprise.Apprise(asset=asset), wanted["urls"][number], wanted)
        said = [record for speaker, record in list(heard) if speaker == number]
        answers[number] = _refused(said) if found is None else found

    threads = [threading.Thread(target=tell, args=(number,), daemon=True) for number in range(len(answers))]
    for thread in threads:
        thread.start()
    until = time.monotonic() + wanted["timeout_s"] + 0.5  # a plugin's own deadline comes first: it can say more
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return _together([one or answer(False, f"no answer in {wanted['timeout_s']:g} s", unsure=True) for one in list(answers)])


def _follow_no_redirects() -> None:
    """Have the HTTP library of Apprise's plugins refuse redirects: a POST that becomes a GET delivers nothing."""
    import requests.sessions

    vars(requests.sessions)["DEFAULT_REDIRECT_LIMIT"] = 0  # each session of theirs takes its limit from here


def _by_url(sender: Any, url: str, wanted: Answer) -> Answer | None:
    """Hand a notice to one URL; None: it was refused, and only the log tells why."""
    try:
        if not sender.add(url):
            return answer(False, "Apprise does not understand this URL", permanent=True)
        if wanted.get("check"):
            return answer(True)
        sent = sender.notify(wanted["text"], title=wanted["title"], notify_type=wanted["type"], body_format="text")
    except Exception as error:  # a fault in one of a hundred plugins
        return answer(False, f"{type(error).__name__}: {error}")
    return answer(True) if sent else None


def _together(answers: list[Answer]) -> Answer:
    """Return one answer for all URLs: why some failed, and which ones took it."""
    failed = [one for one in answers if not one["ok"]]
    words = "; ".join(dict.fromkeys(one["why"] for one in failed))
    if len(answers) > 1 and failed:
        words = f"{len(failed)} of {len(answers)} URLs did not take it: {words}"
    permanent = bool(failed) and all(one["permanent"] for one in failed)
    took = [number for number, one in enumerate(answers) if one["ok"]]
    return {**answer(not failed, words, permanent, any(one["unsure"] for one in failed)), "took": took}


class Listener(logging.Handler):
    """Remembers what Apprise logs: only its log says why something failed."""

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self._heard.append((SPEAKER.get(), record))


def _refused(heard: list[logging.LogRecord]) -> Answer:
    """Return why a URL refused, and whether for good, by warnings; lines below them may hold the message."""
    telling = [record.getMessage() for record in heard if record.levelno >= logging.WARNING]
    below = [line for record in heard if "exception" in (line := record.getMessage()).lower()[:40]]
    if any(REDIRECTED in line for line in below):
        return answer(False, "it answered with a redirect, which is not followed: name the address it leads to", permanent=True)
    words = "; ".join(dict.fromkeys(" ".join(line.split()) for line in [*telling[:2], *below[:1]])) or "Apprise gave no reason"
    codes = [int(code) for line in telling for found in STATUS.findall(line) for code in found if code]
    replies = [first for line in (*telling, *below) for first in SMTP.findall(line)]
    permanent = any(400 <= code < 500 and code not in PASSING for code in codes) or "5" in replies
    unsure = any("timed out" in line.lower() and "connect timeout" not in line.lower() for line in below)
    return answer(False, words, permanent, unsure)


def answer(ok: bool, why: str = "", permanent: bool = False, unsure: bool = False) -> Answer:
    return {"ok": ok, "why": why, "permanent": permanent, "unsure": unsure}


if __name__ == "__main__":
    main()
