"""Routes that the sender carries out: Apprise URLs, and webhooks with a signature.

Each notice is a process with a deadline: a resolver, a proxy or a plugin that hangs ends with it."""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vigil.command import run_command
from vigil.notify.contract import DEADLINE_S, WHY_CHARACTERS, Delivery
from vigil.notify.exec_route import ending, last_line
from vigil.notify.message import text_of, title_of
from vigil.notify.sources import NoSecret, hide, lines_of, read_source
from vigil.redact import Redactor
from vigil.text import one_line

SENDER = (sys.executable, "-I", str(Path(__file__).with_name("sender.py")))
ANSWER_BYTES = 1 << 16
SLACK_S = 2.0  # the sender gives up first, so it can say why
TYPES = {"urgent": "failure", "action": "warning", "warning": "info"}
SIGNATURE, TIMESTAMP, NOTICE = "X-Vigil-Signature", "X-Vigil-Timestamp", "X-Vigil-Notice"


@dataclass(frozen=True, slots=True)
class AppriseRoute:
    """Hands notices to Apprise; `source` is a URL, or where to read some."""

    source: str
    deadline_s: float = DEADLINE_S

    def deliver(self, body: bytes, took: Collection[str] = ()) -> Delivery:
        """Send the notice as title and text, to every URL that has not taken it before."""
        said = json.loads(body)
        type_ = "success" if said["event"] in ("resolved", "test") else TYPES.get(said["severity"], "info")
        return self._send({"title": title_of(said), "text": text_of(said), "type": type_}, took)

    def check(self) -> Delivery:
        """Say whether Apprise understands the URLs, without sending anything."""
        return self._send({"check": True})

    def _send(self, words: Mapping[str, Any], took: Collection[str] = ()) -> Delivery:
        try:
            urls = lines_of(read_source(self.source))
        except NoSecret as error:
            return Delivery(False, str(error))
        if not urls:
            return Delivery(False, "there is no URL where it is read from")
        left = {mark: url for url in urls if (mark := _mark_of(url)) not in took}
        if not left:
            return Delivery(True)
        delivery = send({"by": "apprise", "urls": list(left.values()), **words}, self.deadline_s, urls)
        return replace(delivery, took=tuple(list(left)[int(number)] for number in delivery.took))


@dataclass(frozen=True, slots=True)
class WebhookRoute:
    """Posts notices as JSON, signed if there is a secret."""

    source: str
    secret: str | None = None
    deadline_s: float = DEADLINE_S

    def deliver(self, body: bytes, _took: Collection[str] = ()) -> Delivery:
        """Post the notice; the signature covers the moment and the exact bytes of the body."""
        try:
            url = read_source(self.source)
            secret = None if self.secret is None else read_source(self.secret)
        except NoSecret as error:
            return Delivery(False, str(error))
        headers = {"Content-Type": "application/json", "User-Agent": "vigil", NOTICE: str(json.loads(body)["notice"])}
        if secret is not None:
            headers[TIMESTAMP] = str(int(time.time()))  # of this attempt
            headers[SIGNATURE] = signature_of(body, secret, headers[TIMESTAMP])
        wanted = {"by": "webhook", "url": url, "body": body.decode("ascii"), "headers": headers}
        return send(wanted, self.deadline_s, [url, *([secret] if secret else [])])


def _mark_of(url: str) -> str:
    """Return a mark that recognises a URL without showing it."""
    return hashlib.sha256(url.encode()).hexdigest()[:16]


def signature_of(body: bytes, secret: str, timestamp: str) -> str:
    """Return the HMAC of a timestamp, a dot and a body, as the header has it."""
    return f"sha256={hmac.new(secret.encode(), timestamp.encode() + b'.' + body, hashlib.sha256).hexdigest()}"


def send(wanted: Mapping[str, Any], deadline_s: float, secrets: list[str]) -> Delivery:
    """Have the sender carry out an order; its answer comes back without the secrets."""
    order = json.dumps({**wanted, "timeout_s": max(1.0, deadline_s - SLACK_S)}).encode()
    answer = run_command(SENDER, deadline_s, stdin=order, limit_bytes=ANSWER_BYTES, insists=True)
    try:
        said = json.loads(answer.output)
        ok, why, permanent, unsure = said["ok"], str(said["why"]), bool(said["permanent"]), bool(said["unsure"])
        took = tuple(str(number) for number in said.get("took", ()))
    except (ValueError, KeyError, TypeError):
        words = ": ".join(part for part in (ending(answer), last_line(answer.errors)) if part)
        ok, why, permanent, unsure, took = False, words, False, answer.status is None, ()
    why = Redactor(secrets).text(hide(one_line(why), secrets))[:WHY_CHARACTERS]
    return Delivery(ok is True, "" if ok else why, permanent, unsure, () if ok else took)
