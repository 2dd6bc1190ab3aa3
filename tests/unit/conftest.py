"""For all unit tests: the same examples of Hypothesis in every run, so that what fails here fails everywhere; short folders."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "unit",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=100,
    print_blob=True,
    report_multiple_bugs=False,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),  # to explain costs more than to shrink
)
# HYPOTHESIS_PROFILE=search looks for new examples and takes its time.
settings.register_profile("search", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
# HYPOTHESIS_PROFILE=mutants only says whether something fails, quickly: for a look at tests with a program that is wrong.
settings.register_profile("mutants", settings.get_profile("unit"), phases=(Phase.generate,))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "unit"))


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short name: sockets fit into it."""
    with tempfile.TemporaryDirectory(prefix="vh", dir="/tmp") as name:
        yield Path(name)
