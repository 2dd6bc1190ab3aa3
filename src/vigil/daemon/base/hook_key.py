"""The hook key: makes each launch's token, by which the daemon believes a hook that it is this launch's.

An agent that sees its own launch alone cannot forge others' hooks; one of our user without a sandbox can read their tokens."""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

from vigil.core.model.launch import Launch
from vigil.kernel.durable import read_json, record_json

KEY_BYTES = 32
TOKEN_CHARS = 32


class HookKey:
    """A home's key for hook tokens; hooks of launches older than the key need none."""

    def __init__(self, path: Path, now: float) -> None:
        known = read_json(str(path)) or {}
        key, made_at = known.get("key"), known.get("made_at")
        if not isinstance(key, str) or not isinstance(made_at, float):
            key, made_at = secrets.token_hex(KEY_BYTES), now
            record_json(os.path.realpath(path), {"key": key, "made_at": made_at})
        self._key = key.encode()
        self._made_at = made_at

    def token_of(self, launch_id: str) -> str:
        """Return the token that a launch's hooks must show."""
        return hmac.digest(self._key, launch_id.encode("utf-8", "replace"), "sha256").hex()[:TOKEN_CHARS]

    def fits(self, launch: Launch, token: str) -> bool:
        """Say whether a hook's token fits its launch, or the launch predates the key."""
        is_its = hmac.compare_digest(token.encode("utf-8", "replace"), self.token_of(launch.id).encode())
        return is_its or launch.created_at < self._made_at
