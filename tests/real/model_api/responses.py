"""OpenAI Responses: what Codex speaks."""

from __future__ import annotations

import re
from uuid import uuid4

from tests.real.model_api.dialect import INPUT_TOKENS, Ask, Dialect, Json, Tool, Turn, sent


def _read(_path: str, body: Json) -> Ask:
    offered = body.get("tools") or ()
    tools = tuple(Tool(tool["name"], tool.get("parameters", {})) for tool in offered if tool.get("type") == "function")
    return Ask(bool(body.get("stream")), tools, body.get("model", ""))


def _whole(ask: Ask, turn: Turn) -> Json:
    return _response(ask, "completed") | {"output": [_item(turn)], "usage": _usage(turn)}


def _stream(ask: Ask, turn: Turn) -> list[str]:
    begun, item = _response(ask, "in_progress"), _item(turn)
    events: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"status": "in_progress"}},
        *(
            {
                "type": "response.output_text.delta",
                "item_id": item["id"],
                "output_index": 0,
                "content_index": 0,
                "delta": piece,
            }
            for piece in turn.pieces
        ),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": begun | {"status": "completed", "output": [item], "usage": _usage(turn)},
        },
    ]
    return [sent(event | {"sequence_number": n}, event["type"]) for n, event in enumerate(events)]


def _refuse(status: int, why: str) -> Json:
    return {"error": {"message": why, "type": "error", "param": None, "code": str(status)}}


def _response(ask: Ask, status: str) -> Json:
    return {
        "id": f"resp_{uuid4().hex}",
        "object": "response",
        "created_at": 0,
        "model": ask.model,
        "status": status,
        "output": [],
    }


def _item(turn: Turn) -> Json:
    if turn.tool:
        name, call = turn.tool, f"call_{uuid4().hex}"
        return {"id": f"fc_{uuid4().hex}", "type": "function_call", "call_id": call, "name": name} | {
            "arguments": turn.arguments_text,
            "status": "completed",
        }
    content = [{"type": "output_text", "text": turn.text, "annotations": []}]
    return {
        "id": f"item_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


def _usage(turn: Turn) -> Json:
    return {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": turn.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + turn.output_tokens,
    }


RESPONSES = Dialect("responses", re.compile(r"/responses$"), _read, _whole, _stream, _refuse)
