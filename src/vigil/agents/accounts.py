"""Accounts: whose limits an agent meets, by its kind and by what its environment says of who it is.

Sessions of one kind with the same home, folder of settings, keys and address of the model share their limits.
Nothing of a key is kept: an account is a fingerprint of all of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b

from vigil.agents.contract import Adapter

DIGEST_BYTES = 5


def account_of(adapter: Adapter, env: Mapping[str, str]) -> str:
    """Return the account of an agent; empty for a kind of which nothing is known, whose limits are its own."""
    if not adapter.identity:
        return ""
    who = [(name, env.get(name, "")) for name in ("HOME", *adapter.identity)]
    return f"{adapter.name}-{blake2b(json.dumps(who).encode(), digest_size=DIGEST_BYTES).hexdigest()}"
