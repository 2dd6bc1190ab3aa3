"""Accounts: which sessions share a limit, by the agent's kind and its environment.

Sessions of one kind with the same home, settings folder, keys and model address share their limits.
An account is a fingerprint of these: Vigil keeps no part of a key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b

from vigil.agents.contract import Adapter

DIGEST_BYTES = 5


def account_of(adapter: Adapter, env: Mapping[str, str]) -> str:
    """Return the account of an agent; empty for a kind without known variables, whose limits are its own."""
    if not adapter.identity:
        return ""
    who = [(name, env.get(name, "")) for name in ("HOME", *adapter.identity)]
    return f"{adapter.name}-{blake2b(json.dumps(who).encode(), digest_size=DIGEST_BYTES).hexdigest()}"
