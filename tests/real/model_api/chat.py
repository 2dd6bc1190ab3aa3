"""OpenAI Chat Completions: what OpenCode, Pi and Qwen Code speak here."""

from __future__ import annotations

import re
from uuid import uuid4

from tests.real.model_api.dialect import INPUT_TOKENS, Ask, Dialect, Json, Tool, Turn, sent


def _read(_path: str, body: Json) -> Ask:
    offered = [tool["function"] for tool in body.get("tools") or () if tool.get("type") == "function"]
    tools = tuple(Tool(function["name"], function.get("parameters", {})) for function in offered)
    return Ask(bool(body.get("stream")), tools, body.get("model", ""))


def _whole(ask: Ask, turn: Turn) -> Json:
    message = {"role": "assistant", "content": turn.text or None} | ({"tool_calls": [_call(turn)]} if turn.tool else {})
    choice = {"index": 0, "message": message, "finish_reason": _finish(turn)}
    return _completion(ask, "chat.completion") | {"choices": [choice], "usage": _usage(turn)}


def _stream(ask: Ask, turn: Turn) -> list[str]:
    chunk = _completion(ask, "chat.completion.chunk")
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    if turn.tool:
        deltas.append({"tool_calls": [{"index": 0} | _call(turn)]})
    deltas += [{"content": piece} for piece in turn.pieces]
    choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": _finish(turn)})
    events = [sent(chunk | {"choices": [choice]}) for choice in choices]
    return [*events, sent(chunk | {"choices": [], "usage": _usage(turn)}), "data: [DONE]\n\n"]


def _refuse(status: int, why: str) -> Json:
    return {"error": {"message": why, "type": "error", "param": None, "code": str(status)}}


def _completion(ask: Ask, kind: str) -> Json:
    return {"id": f"chatcmpl-{uuid4().hex}", "object": kind, "created": 0, "model": ask.model}


def _call(turn: Turn) -> Json:
    return {
        "id": f"call_{uuid4().hex}",
        "type": "function",
        "function": {"name": turn.tool, "arguments": turn.arguments_text},
    }


def _finish(turn: Turn) -> str:
    return "tool_calls" if turn.tool else "stop"


def _usage(turn: Turn) -> Json:
    return {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": turn.output_tokens,
        "total_tokens": INPUT_TOKENS + turn.output_tokens,
    }


CHAT = Dialect("chat", re.compile(r"/chat/completions$"), _read, _whole, _stream, _refuse)
