"""What a manifest declares, apart from what the store must not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vigil.core.model.team import Manifest


@dataclass(frozen=True, slots=True)
class DeclaredRole:
    """A manifest, and apart from it what each role adds to its environment, kept 0600 and never shown."""

    manifest: Manifest
    env: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)  # by the role's key
