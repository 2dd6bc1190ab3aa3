"""Every route says who may call it; what the table does not name is refused to all."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any, cast

import pytest

from vigil.api.access import ACCESS, ANY
from vigil.api.app import make_app
from vigil.daemon.daemon import Daemon

BARE = {"/openapi.json"}  # it describes the API, and touches no daemon


def test_the_table_names_every_route_and_no_other() -> None:
    app = make_app(cast(Daemon, None))

    found = [(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods]

    assert sorted(found) == sorted((method, path.replace(":whole}", "}")) for method, path in ACCESS)
    assert {route.path for route in app.routes if hasattr(route, "path")} - {path for _, path in ACCESS} == BARE


@pytest.mark.parametrize(("method", "path"), ACCESS)
async def test_every_route_refuses_a_caller_that_cannot_be_told(method: str, path: str) -> None:
    for name in ("name:whole", "name", "verb", "incident_id:whole", "which:whole", "team:whole"):
        path = path.replace(f"{{{name}}}", "restart" if name == "verb" else "x")

    status, body = await ask(method, path)

    assert (status, json.loads(body)["error"][:28]) == (403, "who asks cannot be told: its")


async def ask(method: str, path: str) -> tuple[int, bytes]:
    """Call the API as its server does, without saying who calls."""
    said: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        said.append(message)

    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "headers": []}
    await make_app(cast(Daemon, None))(scope, receive, send)
    return said[0]["status"], b"".join(message.get("body", b"") for message in said[1:])


def test_an_agent_reads_of_others_this_and_no_more() -> None:
    assert {(method, path) for (method, path), callers in ACCESS.items() if callers is ANY} == {
        ("GET", f"/v1/{path}")
        for path in (
            *("daemon", "sessions", "events", "events/stream", "deaths", "deaths/{which:whole}", "roles"),
            *("incidents", "incidents/{incident_id:whole}"),
            *(f"sessions/{{name:whole}}{verb}" for verb in ("", ":why", ":diag", ":logs")),
        )
    }
