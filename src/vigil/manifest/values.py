"""What a manifest declares, with what must not stand beside it in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vigil.core.model.team import Manifest


@dataclass(frozen=True, slots=True)
class DeclaredRole:
    """A manifest, and apart from it what each role adds to its environment: that is kept 0600 and never shown."""

    manifest: Manifest
    env: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)  # by the key of the role
