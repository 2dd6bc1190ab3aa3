"""Anthropic Messages: what Claude Code speaks."""

from __future__ import annotations

import re
from uuid import uuid4

from tests.real.model_api.dialect import INPUT_TOKENS, Ask, Dialect, Json, Tool, Turn, sent

ERRORS = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}


def _read(_path: str, body: Json) -> Ask:
    tools = tuple(Tool(tool["name"], tool.get("input_schema", {})) for tool in body.get("tools", ()) if "name" in tool)
    return Ask(bool(body.get("stream")), tools, body.get("model", ""))


def _whole(ask: Ask, turn: Turn) -> Json:
    return _message(ask) | {
        "content": [_block(turn)],
        "stop_reason": _stop(turn),
        "usage": _usage(turn.output_tokens),
    }


def _stream(ask: Ask, turn: Turn) -> list[str]:
    nothing: Json = {"input": {}} if turn.tool else {"text": ""}
    events: list[Json] = [
        {"type": "message_start", "message": _message(ask) | {"content": [], "stop_reason": None, "usage": _usage(1)}},
        {"type": "content_block_start", "index": 0, "content_block": _block(turn) | nothing},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in _deltas(turn)),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": _stop(turn), "stop_sequence": None},
            "usage": {"output_tokens": turn.output_tokens},
        },
        {"type": "message_stop"},
    ]
    return [sent(event, event["type"]) for event in events]


def _refuse(status: int, why: str) -> Json:
    return {"type": "error", "error": {"type": ERRORS.get(status, "api_error"), "message": why}}


def _message(ask: Ask) -> Json:
    return {"id": f"msg_{uuid4().hex}", "type": "message", "role": "assistant", "model": ask.model, "stop_sequence": None}


def _block(turn: Turn) -> Json:
    if turn.tool:
        return {"type": "tool_use", "id": f"toolu_{uuid4().hex}", "name": turn.tool, "input": turn.arguments}
    return {"type": "text", "text": turn.text}


def _deltas(turn: Turn) -> list[Json]:
    if turn.tool:
        return [{"type": "input_json_delta", "partial_json": turn.arguments_text}]
    return [{"type": "text_delta", "text": piece} for piece in turn.pieces]


def _stop(turn: Turn) -> str:
    return "tool_use" if turn.tool else "end_turn"


def _usage(output_tokens: int) -> Json:
    return {
        "input_tokens": INPUT_TOKENS,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
    }


ANTHROPIC = Dialect("anthropic", re.compile(r"/v1/messages$"), _read, _whole, _stream, _refuse)
