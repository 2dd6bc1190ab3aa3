"""Routes by Apprise and by webhook reach real servers, sign what they send, and never show their secrets."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from pathlib import Path

import pytest

from tests.live.receivers import mail_receiver, web_receiver
from tests.unit.notify.test_workers import make_due, make_incident
from vigil.core.model.incident import IncidentKind
from vigil.notify import AppriseRoute, Delivery, WebhookRoute, message_of, summary_of, trial_of
from vigil.notify.sources import hide

BODY = message_of(make_due())
SECRET = "s3cr3t-of-the-hook"


def test_a_webhook_gets_the_notice_with_its_id_and_its_signature() -> None:
    with web_receiver() as web:
        assert WebhookRoute(web.url, SECRET).deliver(BODY) == Delivery(True)

    ((path, headers, body),) = web.got
    assert (path, body) == ("/hooks/t0psecretpath", BODY)
    signed = f"{headers['X-Vigil-Timestamp']}.".encode() + body
    assert headers["X-Vigil-Signature"] == "sha256=" + hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert abs(time.time() - int(headers["X-Vigil-Timestamp"])) < 60
    assert headers["X-Vigil-Notice"] == "i1:ops:1"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_followed_by_no_route_and_counts_as_no_receipt(status: int) -> None:
    with web_receiver() as web, web_receiver() as elsewhere:
        web.answer = f"HTTP/1.1 {status} Moved\r\nLocation: {elsewhere.url}\r\nContent-Length: 0\r\n\r\n".encode()
        by_apprise = AppriseRoute(f"json://127.0.0.1:{web.port}/x").deliver(BODY)
        by_webhook = WebhookRoute(web.url).deliver(BODY)

    assert (by_apprise.ok, by_apprise.permanent, by_webhook.ok, by_webhook.permanent) == (False, True, False, True)
    assert "a redirect, which is not followed" in by_apprise.why
    assert (len(web.got), elsewhere.got) == (2, [])


@pytest.mark.parametrize(
    ("status", "permanent"),
    [(400, True), (401, True), (404, True), (410, True), (302, True), (429, False), (408, False), (503, False)],
)
def test_what_a_webhook_answers_says_whether_trying_again_is_of_use(status: int, permanent: bool) -> None:
    with web_receiver() as web:
        web.status = status
        delivery = WebhookRoute(web.url).deliver(BODY)

    assert (delivery.ok, delivery.permanent, delivery.unsure) == (False, permanent, False)
    assert f"HTTP {status}" in delivery.why


def test_a_webhook_that_took_it_and_does_not_answer_may_have_told_somebody() -> None:
    with web_receiver() as web:
        web.hangs = threading.Event()
        delivery = WebhookRoute(web.url, deadline_s=3.0).deliver(BODY)

    assert (delivery.ok, delivery.permanent, delivery.unsure) == (False, False, True)
    assert len(web.got) == 1


def test_a_status_of_200_is_the_receipt_whatever_comes_after_it() -> None:
    with web_receiver() as web:
        web.hangs, web.answer = threading.Event(), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nha"
        assert WebhookRoute(web.url, deadline_s=10.0).deliver(BODY) == Delivery(True)


def test_an_answer_that_nobody_understands_may_mean_that_somebody_was_told() -> None:
    with web_receiver() as web:
        web.answer = b"\0\1 what is this\r\n\r\n"
        delivery = WebhookRoute(web.url).deliver(BODY)

    assert (delivery.ok, delivery.permanent, delivery.unsure) == (False, False, True)


def test_a_name_and_a_password_in_a_webhooks_url_are_its_login_and_not_shown() -> None:
    with web_receiver() as web:
        url = web.url.replace("127.0.0.1", "ops:p%40ssw0rd@127.0.0.1")
        assert WebhookRoute(url).deliver(BODY) == Delivery(True)
        web.answer = b"HTTP/1.1 403 p@ssw0rd is wrong\r\n\r\n"
        refused = WebhookRoute(url).deliver(BODY)

    assert base64.b64decode(web.got[0][1]["Authorization"].removeprefix("Basic ")) == b"ops:p@ssw0rd"
    assert "403" in refused.why and "ssw0rd" not in refused.why


def test_a_url_that_cannot_be_posted_to_is_not_tried_again() -> None:
    delivery = WebhookRoute("http://127.0.0.1:1/hooks/of mine").deliver(BODY)

    assert (delivery.ok, delivery.permanent) == (False, True)
    assert delivery.why == "not a URL that can be posted to: InvalidURL"


def test_where_nobody_listens_nobody_was_told() -> None:
    with web_receiver() as web:
        pass
    delivery = WebhookRoute(web.url).deliver(BODY)

    assert (delivery.ok, delivery.permanent, delivery.unsure) == (False, False, False)
    assert "refused" in delivery.why


def test_apprise_sends_to_a_web_server_and_by_mail() -> None:
    with web_receiver() as web, mail_receiver() as mail:
        by_web = AppriseRoute(f"json://127.0.0.1:{web.port}/x").deliver(BODY)
        url = f"mailto://127.0.0.1:{mail.port}?from=vigil@example.com&to=ops@example.com&smtp=127.0.0.1&mode=insecure"
        by_mail = AppriseRoute(url).deliver(BODY)

    assert (by_web, by_mail) == (Delivery(True), Delivery(True))
    (said,) = web.notices()
    assert (said["title"], said["type"]) == ("[vigil] urgent: stuck: backend/coder/0", "failure")
    assert "its server does not answer" in said["message"]
    (letter,) = mail.got
    assert letter["Subject"] == "[vigil] urgent: stuck: backend/coder/0"
    assert "vigil ack i1" in letter.get_body(("plain", "html")).get_content()


def test_several_urls_of_a_file_are_all_sent_to(tmp_path: Path) -> None:
    with web_receiver() as web:
        place = tmp_path / "urls"
        place.write_text(f"# two of them\njson://127.0.0.1:{web.port}/a\n\njson://127.0.0.1:{web.port}/b\n")
        assert AppriseRoute(f"file:{place}").deliver(BODY) == Delivery(True)

    assert sorted(path for path, _, _ in web.got) == ["/a", "/b"]


def test_of_several_urls_those_that_took_a_notice_do_not_get_it_again(tmp_path: Path) -> None:
    place = tmp_path / "urls"
    with web_receiver() as web, web_receiver() as other:
        urls = [f"json://127.0.0.1:{one.port}/t0psecretpath" for one in (web, other)]
        place.write_text("\n".join([*urls, "nosuchservice://x"]))
        other.status = 503
        first = AppriseRoute(f"file:{place}").deliver(BODY)
        second = AppriseRoute(f"file:{place}").deliver(BODY, first.took)
        other.status = 200
        third = AppriseRoute(f"file:{place}").deliver(BODY, second.took + first.took)
        place.write_text("\n".join(urls))
        last = AppriseRoute(f"file:{place}").deliver(BODY, third.took + first.took)

    assert (len(web.got), len(other.got)) == (1, 3)
    assert [(one.ok, one.permanent, len(one.took)) for one in (first, second, third, last)] == [
        (False, False, 1),  # one of them may still take it
        (False, False, 0),
        (False, True, 1),  # nobody understands what is left
        (True, False, 0),
    ]
    assert first.why.startswith("2 of 3 URLs did not take it: ") and "t0psecretpath" not in first.why


def test_a_url_that_hangs_does_not_keep_the_others_of_its_route_from_being_told(tmp_path: Path) -> None:
    place = tmp_path / "urls"
    with web_receiver() as web, web_receiver() as hanging:
        hanging.hangs = threading.Event()
        place.write_text("\n".join(f"json://127.0.0.1:{one.port}/a" for one in (hanging, web)))
        delivery = AppriseRoute(f"file:{place}", deadline_s=16.0).deliver(BODY)

    assert (delivery.ok, delivery.unsure, len(delivery.took)) == (False, True, 1), delivery.why
    assert len(web.got) == 1


def test_a_summary_and_a_test_are_texts_too() -> None:
    summary = summary_of([make_due(n, incident=make_incident(id=f"i{n}", kind=IncidentKind.AUTH)) for n in range(100)])
    with web_receiver() as web:
        for body in (summary, trial_of("ops", 1_700_000_000.0)):
            assert AppriseRoute(f"json://127.0.0.1:{web.port}/").deliver(body).ok

    first, second = web.notices()
    assert first["title"] == "[vigil] urgent: 100 notices at once"
    assert "and 80 more" in first["message"]
    assert second["message"] == "a test: this route works"


@pytest.mark.parametrize(("status", "permanent"), [(401, True), (404, True), (500, False), (503, False)])
def test_apprise_says_in_its_log_whether_trying_again_is_of_use(status: int, permanent: bool) -> None:
    with web_receiver() as web:
        web.status = status
        delivery = AppriseRoute(f"json://user:{SECRET}@127.0.0.1:{web.port}/t0psecretpath").deliver(BODY)

    assert (delivery.ok, delivery.permanent) == (False, permanent)
    assert str(status) in delivery.why
    assert SECRET not in delivery.why and "t0psecretpath" not in delivery.why


@pytest.mark.parametrize("url", ["nosuchservice://token-abcdef", "slack://x"])
def test_a_url_that_apprise_does_not_understand_is_not_tried_again(url: str) -> None:
    delivery = AppriseRoute(url).deliver(BODY)

    assert (delivery.ok, delivery.permanent) == (False, True)
    assert "token-abcdef" not in delivery.why


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("env:VIGIL_TEST_NOWHERE", "VIGIL_TEST_NOWHERE is not set in the daemon's environment"),
        ("file:/nowhere/url", "/nowhere/url cannot be read: No such file or directory"),
        ("file:/dev/zero", "/dev/zero is no regular file"),
    ],
)
def test_a_secret_that_is_not_there_is_named_by_its_place_and_may_come(source: str, why: str) -> None:
    assert AppriseRoute(source).deliver(BODY) == Delivery(False, why)
    assert WebhookRoute("http://127.0.0.1:9/", source).deliver(BODY) == Delivery(False, why)


def test_a_secret_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with web_receiver() as web:
        monkeypatch.setenv("VIGIL_TEST_HOOK", f" {web.url}\n")
        assert WebhookRoute("env:VIGIL_TEST_HOOK").deliver(BODY) == Delivery(True)


def test_every_part_of_a_url_that_may_be_secret_is_hidden() -> None:
    url = "slack://bot@T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/?key=p%40ssw0rd"
    said = f"POST {url} failed; T1JJ3T3L2 A1BRTD4JD TIiajkdnlazkcOXrIdevi7FQ p@ssw0rd at hooks.example.com"

    shown = hide(said, [url])

    assert not any(part in shown for part in ("T1JJ3T3L2", "A1BRTD4JD", "TIiajkdnlazkcOXrIdevi7FQ", "p@ssw0rd"))
    assert "hooks.example.com" in hide(said, ["https://hooks.example.com/t0ken"])


def test_a_sender_that_is_killed_or_says_nonsense_has_not_delivered() -> None:
    assert not WebhookRoute("http://[broken").deliver(BODY).ok
    assert json.loads(BODY)["event"] == "opened"
