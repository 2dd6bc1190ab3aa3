"""What Claude Code says of tokens and costs: of a run, of each model, of one message."""

from __future__ import annotations

from vigil.agents.shapes import Json, count, number, table
from vigil.core.model.speech import Usage


def result_usage(event: Json) -> Usage:
    """Return what a run used since its last result; where only a sum is given, that."""
    since = event.get("model_usage_since_last_result")
    if isinstance(since, dict):
        return model_usage(since, so_far=False)
    if table(event, "modelUsage"):
        return model_usage(table(event, "modelUsage"), so_far=True, cost=number(event, "total_cost_usd"))
    return message_usage(table(event, "usage"), number(event, "total_cost_usd"))


def model_usage(by_model: Json, so_far: bool, cost: float | None = None) -> Usage:
    """Return what all models together were used for."""
    models = [table(by_model, name) for name in by_model]
    costs = [number(model, "costUSD") or 0.0 for model in models]
    return Usage(
        input_tokens=sum(_input_tokens(model) for model in models),
        output_tokens=sum(count(model, "outputTokens") for model in models),
        cached_tokens=sum(count(model, "cacheReadInputTokens") for model in models),
        cost_usd=sum(costs) if cost is None else cost,
        so_far=so_far,
    )


def _input_tokens(model: Json) -> int:
    return count(model, "inputTokens") + count(model, "cacheReadInputTokens") + count(model, "cacheCreationInputTokens")


def message_usage(usage: Json, cost: float | None = None) -> Usage:
    """Return what one message used; tokens from a cache are counted apart from the input there, here they are of it."""
    cached = count(usage, "cache_read_input_tokens")
    given = count(usage, "input_tokens") + cached + count(usage, "cache_creation_input_tokens")
    return Usage(given, count(usage, "output_tokens"), cached, cost)
