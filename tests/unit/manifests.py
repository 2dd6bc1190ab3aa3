"""Manifests for tests, and what is wrong with them."""

from __future__ import annotations

import pytest

from vigil.config.values import AgentConfig
from vigil.core.model.restart import RestartPolicy
from vigil.core.model.team import Manifest
from vigil.manifest.reading import DEFAULTS, ManifestRefused, read_manifest

START = 'workspace = "w"\n[[team]]\nname = "t"\n[[team.role]]\nname = "r"\n'  # the next line is the sixth
GENERIC = START + 'command = ["x"]\n'
AGENTS = {"mine": AgentConfig(("mine", "--fast")), "bare": AgentConfig(process=("bare",))}


def read(text: str, defaults: RestartPolicy = DEFAULTS) -> Manifest:
    """Read a manifest of a folder and a configuration that all tests share."""
    return read_manifest(text, "vigil.toml", "/srv/shop", AGENTS, defaults)


def problems(text: str) -> list[str]:
    """Return why a manifest is refused."""
    with pytest.raises(ManifestRefused) as refused:
        read(text)
    return [problem.removeprefix("vigil.toml: ") for problem in refused.value.problems]
