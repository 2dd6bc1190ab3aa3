"""The server: each request is found its scenario and its dialect, acted on, and written down.

A client's address is /s/SCENARIO/CLIENT, so that one server plays for many at once, each from the beginning of its script.
Requests that offer no tools are side calls (titles, routers): they are answered off the script. What a client would ask of
somebody else comes here too, as to a proxy, and is refused.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Coroutine

from tests.real.model_api.acting import perform
from tests.real.model_api.anthropic import ANTHROPIC
from tests.real.model_api.chat import CHAT
from tests.real.model_api.dialect import Dialect
from tests.real.model_api.gemini import GEMINI
from tests.real.model_api.http import HungUpError, Incoming, Reply, read_request
from tests.real.model_api.log import Log
from tests.real.model_api.responses import RESPONSES
from tests.real.model_api.script import SCENARIOS, Act, Say, act_at

DIALECTS = (ANTHROPIC, RESPONSES, CHAT, GEMINI)
ADDRESS = re.compile(r"/s/(?P<scenario>[^/]+)/(?P<client>[^/]+)(?P<path>/.*)?")
OUTSIDE = "outside"  # the client of what was meant for somebody else


class Server:
    """One server, and how far each client is in its script."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._asked: Counter[tuple[str, str]] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        incoming = await read_request(reader)
        if incoming is not None and incoming.method == "CONNECT" and incoming.target == _own_address(writer):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")  # some clients take a proxy also on the way to loopback
            incoming = await read_request(reader)
        reply = Reply(reader, writer)
        try:
            if incoming is not None:
                await self._answer(incoming, reply)
        finally:
            await reply.close()

    async def _answer(self, incoming: Incoming, reply: Reply) -> None:
        found = ADDRESS.fullmatch(incoming.path)
        if found is None or found["scenario"] not in SCENARIOS:
            request = self._log.asked(OUTSIDE, "", incoming.target, None, "refused")
            await self._write_down(request, reply.send(403, {"error": "there is nothing but scenarios here"}))
            return
        scenario, client, path = found["scenario"], found["client"], found["path"] or "/"
        dialect = next((dialect for dialect in DIALECTS if dialect.path.search(path)), None)
        if dialect is None or incoming.method != "POST":
            request = self._log.asked(client, scenario, path, None, "nothing")
            await self._write_down(request, reply.send(404, {"error": "no model is asked here"}))
            return
        await self._take_turn(scenario, client, dialect, Incoming("POST", path, incoming.body), reply)

    async def _take_turn(self, scenario: str, client: str, dialect: Dialect, incoming: Incoming, reply: Reply) -> None:
        ask = dialect.read(incoming.path, json.loads(incoming.body))
        number: int | None = None
        act: Act = Say()
        if ask.tools:
            self._asked[scenario, client] += 1
            number = self._asked[scenario, client]
            act = act_at(scenario, number)
        request = self._log.asked(client, scenario, incoming.path, number, type(act).__name__.lower())
        await self._write_down(request, perform(act, dialect, ask, reply))

    async def _write_down(self, request: int, act: Coroutine[None, None, None]) -> None:
        how = "broken off"  # by our own end
        try:
            await act
            how = "as scripted"
        except HungUpError:
            how = "hung up"
        finally:
            self._log.ended(request, how)


def _own_address(writer: asyncio.StreamWriter) -> str:
    host, port = writer.get_extra_info("sockname")
    return f"{host}:{port}"
