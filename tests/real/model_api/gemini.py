"""Gemini's generateContent and streamGenerateContent: what Gemini CLI speaks."""

from __future__ import annotations

import re

from tests.real.model_api.dialect import INPUT_TOKENS, Ask, Dialect, Json, Tool, Turn, sent

ERRORS = {401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
PATH = re.compile(r"/models/(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent)$")


def _read(path: str, body: Json) -> Ask:
    found = PATH.search(path)
    assert found is not None
    declared = [function for tool in body.get("tools", ()) for function in tool.get("functionDeclarations", ())]
    tools = (
        Tool(function["name"], function.get("parametersJsonSchema") or function.get("parameters", {})) for function in declared
    )
    return Ask(found["method"].startswith("stream"), tuple(tools), found["model"])


def _whole(ask: Ask, turn: Turn) -> Json:
    return _candidate(ask, turn, _parts(turn), finish="STOP")


def _stream(ask: Ask, turn: Turn) -> list[str]:
    parts = _parts(turn) if turn.tool else [{"text": piece} for piece in turn.pieces]
    last = len(parts) - 1
    return [sent(_candidate(ask, turn, [part], "STOP" if n == last else "")) for n, part in enumerate(parts)]


def _refuse(status: int, why: str) -> Json:
    return {"error": {"code": status, "message": why, "status": ERRORS.get(status, "INTERNAL")}}


def _parts(turn: Turn) -> list[Json]:
    return [{"functionCall": {"name": turn.tool, "args": turn.arguments}} if turn.tool else {"text": turn.text}]


def _candidate(ask: Ask, turn: Turn, parts: list[Json], finish: str) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage = {
        "promptTokenCount": INPUT_TOKENS,
        "candidatesTokenCount": turn.output_tokens,
        "totalTokenCount": INPUT_TOKENS + turn.output_tokens,
    }
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": ask.model}


GEMINI = Dialect("gemini", PATH, _read, _whole, _stream, _refuse)
